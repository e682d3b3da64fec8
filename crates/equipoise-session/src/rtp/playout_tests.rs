//! Tests of sessions with a playout buffer at the receiver, and of senders with finite content.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::two_ends::{EPOCH, Passing, TwoEnds, media};
use super::{Clocks, LiveMedia, Payload, Receiver, ReceiverConfig, Sender, SenderConfig, StreamConfig, Supply};
use crate::{Event, Input};
use equipoise::control::find;
use equipoise::measure::ClockMap;
use equipoise::units::{Instant, Rate, Schedule, Size, Span};
use equipoise_path::link::{FifoLink, LinkConfig, QueueLimit};
use equipoise_path::source::Content;
use equipoise_path::video::{Encoder, Video};

const PACKET: Size = Size::from_bytes(1000);

fn mbps(mbps: u64) -> Rate {
    Rate::from_bps(mbps * 1_000_000)
}

/// Creates a session whose sender has the controller TQ and receives reports every 100 ms. The receiver's playout
/// buffer has room for ten waiting packets.
fn session<F: FnMut(&Passing) -> Vec<u64>>(
    supply: Supply,
    payload: Payload,
    service: Schedule<Rate>,
    path: F,
) -> TwoEnds<F> {
    let mut ends = TwoEnds::cbr(payload, path);
    let stream = StreamConfig::new(0x0102_0304, 96, PACKET, "sender@test");
    let base = SenderConfig::new(stream, Span::from_millis(100), Instant::from_nanos(EPOCH), 1);
    let entry = find("tq").expect("in the catalogue");
    let parameters = entry.parse(&[("max_rate", "4 Mbit/s")]).expect("within range");
    let tq = entry.build(&parameters, PACKET).expect("it builds");
    ends.sender = Sender::new(SenderConfig { payload, supply, reports_playout: true, ..base }, tq)
        .expect("a valid configuration");
    let receiver = ReceiverConfig {
        payload,
        clocks: Clocks::Known(ClockMap::SYNCHRONISED),
        ..ReceiverConfig::new(9, "receiver@test", 0x0102_0304, ClockMap::SYNCHRONISED, 2)
    };
    let queue = QueueLimit::Packets(10);
    let config = LinkConfig { rate: service, propagation_delay: Span::ZERO, queue };
    let playout = FifoLink::new(config, Instant::from_nanos(EPOCH)).expect("a valid link");
    ends.receiver = Receiver::new(receiver).expect("a valid configuration").with_playout_buffer(Box::new(playout));
    ends
}

/// Returns when the playout of each buffered packet is complete, in ms.
fn served<F>(ends: &TwoEnds<F>) -> Vec<f64> {
    let buffered = ends.events.iter().filter_map(|(at, event)| match event {
        Event::Buffered { wait, .. } => Some(*at as f64 / 1e6 + wait.as_millis_f64()),
        _ => None,
    });
    buffered.collect()
}

/// The content is 1000 packets at 4 Mbit/s. The network loses one packet in ten, and the sender sends lost content
/// again. The buffer serves 2 Mbit/s, so 1000 packets take at least 4 s. The transfer takes longer, because the control
/// law mistakes the losses for a growing queue.
#[test]
fn a_transfer_is_complete_when_all_has_arrived_however_much_was_lost() {
    let content = Content::constant(mbps(4), PACKET, Span::from_secs(2));
    let path = media(|number, forth| if forth && number.is_multiple_of(10) { vec![] } else { vec![5] });
    let mut ends = session(Supply::Content(content), Payload::Generated, Schedule::constant(mbps(2)), path);
    ends.run_until(20_000);
    let served = served(&ends);
    let discarded = ends.count(|event| matches!(event, Event::Discarded { .. }));
    assert_eq!(served.len(), 1000, "all of it, and nothing twice; {discarded} found the buffer full");
    let last = served.last().copied().unwrap_or(0.0);
    assert!((4000.0..12_000.0).contains(&last), "{last} ms");
}

/// The buffer's service rate falls from 4 to 1 Mbit/s at 1 s. If the test fails, the controller TQ does not limit a
/// session's rate to the rate of the playout.
#[test]
fn tq_keeps_to_what_the_buffer_serves_and_loses_only_in_the_transient() {
    let service = Schedule::new(mbps(4), vec![(Span::from_secs(1), mbps(1))]);
    let mut ends = session(Supply::Unlimited, Payload::Generated, service, media(|_, _| vec![5]));
    ends.run_until(10_000);
    let discarded: Vec<u64> = ends
        .events
        .iter()
        .filter(|(_, event)| matches!(event, Event::Discarded { .. }))
        .map(|(at, _)| *at / 1_000_000)
        .collect();
    assert!(!discarded.is_empty() && discarded.iter().all(|at| (1000..1500).contains(at)), "{discarded:?}");
    // At 1 Mbit/s the buffer serves 125 packets/s, and it is never empty for long.
    let late = served(&ends).iter().filter(|at| (5000.0..10_000.0).contains(*at)).count();
    assert!((600..=626).contains(&late), "{late} packets in 5 s");
}

#[test]
fn payload_waits_in_the_buffer_and_comes_out_in_order() {
    let mut ends = session(Supply::Unlimited, Payload::Stream, Schedule::constant(mbps(1)), media(|_, _| vec![5]));
    let text: Vec<u8> = (0..8 * 944u32).map(|number| number as u8).collect();
    ends.feed(&text);
    ends.run_until(1000);
    assert_eq!((ends.given == text, ends.missing), (true, 0));
    ends.feed(&text);
    ends.run_until(1030);
    // Eight packets arrive within 21 ms, and the buffer serves one packet in 8 ms.
    assert_eq!(ends.given.len(), (8 + 3) * 944, "those of 1013, 1021 and 1029 ms");
    ends.run_until(1200);
    assert_eq!((ends.given == [&text[..], &text].concat(), ends.missing), (true, 0));
    ends.tell(true, Input::Stop);
    ends.run_until(2000);
    assert_eq!(ends.count(|event| matches!(event, Event::Ended { by_peer: true })), 1);
}

/// The encoder's video has 3 Mbit/s, and the playout buffer serves 1 Mbit/s.
#[test]
fn an_encoder_follows_the_rate() {
    let frames = vec!["15000"; 250];
    let video = Video::parse(frames, Span::from_millis(40)).expect("a trace");
    let video = Some(Encoder::quantising(video));
    let supply = Supply::Live(Box::new(LiveMedia { video, audio: None, pacing: LiveMedia::PACING, skip_after: None }));
    let mut ends = session(supply, Payload::Generated, Schedule::constant(mbps(1)), media(|_, _| vec![5]));
    ends.run_until(12_000);
    let sent = ends.count(|event| matches!(event, Event::MediaSent { .. }));
    // Ten seconds at 1 Mbit/s are 1250 packets. The whole video at its full rate would be 4000 packets.
    assert!((900..1400).contains(&sent), "{sent}");
    let late = served(&ends).iter().filter(|at| **at > 10_500.0).count();
    assert!(late < 30, "it does not lag behind: {late}");
}
