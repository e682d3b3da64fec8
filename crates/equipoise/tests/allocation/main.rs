//! A media packet costs no allocation on its way through a sender, a link and a receiver.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use equipoise::control::Cbr;
use equipoise::measure::ClockMap;
use equipoise::session::rtp::{Receiver, ReceiverConfig, Sender, SenderConfig, StreamConfig};
use equipoise::session::{Endpoint as _, Input, Output};
use equipoise::units::{Instant, Rate, Size, Span};

/// Counts every allocation of the process.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
#[expect(unsafe_code, reason = "counting allocations takes an allocator, whose trait is unsafe")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise on `layout` is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise on `pointer` and `layout` is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn media_packets_are_sent_and_received_without_allocation() {
    let stream = StreamConfig::new(1, 96, Size::from_bytes(1000), "a");
    let config = SenderConfig::new(stream, Span::from_secs(3600), Instant::ZERO, 1);
    let mut sender = Sender::new(config, Box::new(Cbr::new(Rate::from_bps(8_000_000)))).expect("valid");
    let config = ReceiverConfig::new(2, "b", 1, ClockMap::SYNCHRONISED, 1);
    let mut receiver = Receiver::new(config).expect("valid");
    let mut datagram = [0u8; 972];
    let mut received = 0;
    let mut before = 0;
    // 1000 packets/s; the first seconds let queues and the meter's runs grow to their size for good.
    for millis in 0..12_000u64 {
        if millis == 6_000 {
            before = ALLOCATIONS.load(Ordering::Relaxed);
        }
        let now = millis * 1_000_000;
        sender.handle(Instant::from_nanos(now), Input::Timer);
        while let Some(output) = sender.poll() {
            let Output::Transmit(transmit) = output else { continue };
            // Compounds go out every few seconds and may allocate; only media counts here.
            if transmit.media == 0 {
                continue;
            }
            datagram[..transmit.head.len()].copy_from_slice(transmit.head);
            receiver.handle(Instant::from_nanos(now + 5_000_000), Input::Datagram(&datagram));
            while receiver.poll().is_some() {
                received += 1;
            }
        }
    }
    let during = ALLOCATIONS.load(Ordering::Relaxed) - before;
    assert!(received > 11_900, "{received}");
    // At most three compounds of the sender fall into the six seconds counted, each one buffer.
    assert!(during <= 3, "{during} allocations for 6000 packets");
}
