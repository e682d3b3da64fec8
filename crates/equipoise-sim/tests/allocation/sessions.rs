//! Tests that neither a media packet nor an ADU causes an allocation in a sender or a receiver.

use equipoise::control::scheduler::Equal;
use equipoise::control::{BoxedController, Cbr};
use equipoise::measure::ClockMap;
use equipoise::units::{Instant, Rate, Size, Span};
use equipoise_pair::TcpState;
use equipoise_pair::tpba::{ProbeInterval, Tolerance, TpbaConfig};
use equipoise_session::feedback::{Format, Reporting};
use equipoise_session::multipath;
use equipoise_session::rtp::{Receiver, ReceiverConfig, Sender, SenderConfig, StreamConfig};
use equipoise_session::{Endpoint as _, Event, Input, Output, PathChange, PathId};

use crate::ALLOCATIONS;

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
    // 1000 packets per second are sent. In the first seconds, the buffers of the sender and of the receiver reach their
    // final size.
    for millis in 0..12_000u64 {
        if millis == 6_000 {
            before = ALLOCATIONS.get();
        }
        let now = millis * 1_000_000;
        sender.handle(Instant::from_nanos(now), Input::Timer);
        while let Some(output) = sender.poll() {
            let Output::Transmit { transmit, .. } = output else { continue };
            // Compound RTCP packets are sent every few seconds and may allocate memory; this test is about media
            // packets.
            if transmit.media == 0 {
                continue;
            }
            datagram[..transmit.head.len()].copy_from_slice(transmit.head);
            receiver.handle(Instant::from_nanos(now + 5_000_000), Input::datagram(&datagram));
            while receiver.poll().is_some() {
                received += 1;
            }
        }
    }
    let during = ALLOCATIONS.get() - before;
    assert!(received > 11_900, "{received}");
    // In the last six seconds, the sender sends at most three compound RTCP packets, and allocates one buffer for each.
    assert!(during <= 3, "{during} allocations for 6000 packets");
}

#[test]
fn so_are_those_of_a_session_over_two_paths() {
    let total = multipath::Total::Pooled(Box::new(Cbr::new(Rate::from_bps(8_000_000))));
    over_two_paths(total, None);
}

#[test]
fn so_are_those_of_paths_with_a_law_each_and_the_reports_on_their_packets() {
    let law = || -> Option<BoxedController> { Some(Box::new(Cbr::new(Rate::from_bps(4_000_000)))) };
    let total = multipath::Total::PerPath(multipath::PathLaws::new(law, None));
    over_two_paths(total, Some(Reporting { format: Format::CongestionFeedback, interval: Reporting::INTERVAL }));
}

/// Runs a session of 8 Mbit/s over two paths, and checks that its second half makes almost no allocations. Packets take
/// 5 ms to the receiver. Reports reach the sender without delay.
fn over_two_paths(total: multipath::Total, reporting: Option<Reporting>) {
    let stream = StreamConfig::new(1, 96, Size::from_bytes(1000), "a");
    let base = SenderConfig::new(stream, Span::from_secs(3600), Instant::ZERO, 1);
    let config = SenderConfig { reporting, ..base };
    let mut sender = multipath::Sender::new(config, Span::from_secs(3600), total, Box::new(Equal)).expect("valid");
    for path in [0, 1].map(PathId) {
        sender.handle(Instant::ZERO, Input::Path { path, change: PathChange::Up });
    }
    let config = ReceiverConfig { reporting, ..ReceiverConfig::new(2, "b", 1, ClockMap::SYNCHRONISED, 1) };
    let mut receiver = multipath::Receiver::new(config).expect("valid");
    let (mut datagram, mut report) = ([0u8; 972], [0u8; 128]);
    let (mut received, mut reported, mut before) = ([0; 2], 0, 0);
    let ecn = equipoise_session::Ecn::NotCapable;
    for millis in 0..12_000u64 {
        if millis == 6_000 {
            before = ALLOCATIONS.get();
        }
        let now = millis * 1_000_000;
        sender.handle(Instant::from_nanos(now), Input::Timer);
        while let Some(output) = sender.poll() {
            reported += u64::from(matches!(output, Output::Event { event: Event::PacketsReported { .. }, .. }));
            let Output::Transmit { path, transmit } = output else { continue };
            if transmit.media == 0 {
                continue;
            }
            datagram[..transmit.head.len()].copy_from_slice(transmit.head);
            receiver.handle(Instant::from_nanos(now + 5_000_000), Input::Datagram { path, datagram: &datagram, ecn });
            while let Some(output) = receiver.poll() {
                received[usize::from(path.0)] += 1;
                let Output::Transmit { path, transmit } = output else { continue };
                let length = transmit.head.len();
                report[..length].copy_from_slice(transmit.head);
                let input = Input::Datagram { path, datagram: &report[..length], ecn };
                sender.handle(Instant::from_nanos(now), input);
            }
        }
    }
    let during = ALLOCATIONS.get() - before;
    assert!(received.iter().all(|count| *count > 5_900), "{received:?}");
    assert_eq!(reported > 400, reporting.is_some(), "{reported} reports on packets");
    assert!(during <= 3, "{during} allocations for 6000 packets");
}

/// The state of a TCP connection after all data was sent and acknowledged.
fn tcp_state(acknowledged: u64) -> TcpState {
    let (window, segment, header) = (Size::from_bytes(14_600), Size::from_bytes(1460), Size::from_bytes(40));
    TcpState { acknowledged, unsent: 0, window, segment, header, reductions: 0 }
}

#[test]
fn adus_go_through_a_flow_pair_without_allocation() {
    let stream = StreamConfig::new(1, 96, Size::from_bytes(588), "a");
    let rtp = SenderConfig::new(stream, Span::from_secs(3600), Instant::ZERO, 1);
    let tpba = TpbaConfig {
        interval: ProbeInterval::Fixed(Span::from_millis(10)),
        tolerance: Tolerance::Absolute(Rate::from_bps(1 << 40)),
        running: Span::from_secs(1),
        early_return: None,
    };
    let config = equipoise_pair::SenderConfig { tpba, ..equipoise_pair::SenderConfig::new(rtp) };
    let mut sender = equipoise_pair::Sender::new(config).expect("valid");
    let config = ReceiverConfig::new(2, "b", 1, ClockMap::SYNCHRONISED, 1);
    let mut receiver = equipoise_pair::Receiver::new(equipoise_pair::ReceiverConfig::new(config)).expect("valid");
    let (adu, mut written, mut given, mut before, mut began) = ([7; 5120], 0, 0u64, (0, 0, 0), 0u64);
    for millis in 0..20_000u64 {
        if millis == 10_000 {
            before = (ALLOCATIONS.get(), given, began);
        }
        let now = Instant::from_nanos(millis * 1_000_000);
        sender.handle(now, equipoise_pair::Input::Tcp(tcp_state(written)));
        sender.handle(now, equipoise_pair::Input::Timer);
        if sender.waiting() < adu.len() {
            sender.push(now, &adu, true).expect("room");
        }
        let taken = receiver.tcp_received(now.assume_clock(), sender.tcp_pending());
        written += taken as u64;
        sender.tcp_written(now, taken);
        while let Some(output) = sender.poll() {
            match output {
                equipoise_pair::Output::Transmit(transmit) => {
                    receiver.handle(now.assume_clock(), equipoise_pair::Input::Datagram(transmit.head));
                }
                equipoise_pair::Output::Event(equipoise_pair::Event::Began { .. }) => began += 1,
                _ => {}
            }
        }
        receiver.handle(now.assume_clock(), equipoise_pair::Input::Timer);
        while receiver.poll().is_some() {}
        while receiver.take_adu().is_some() {
            given += 1;
        }
    }
    let (during, given, began) = (ALLOCATIONS.get() - before.0, given - before.1, began - before.2);
    assert!(given > 1000 && began >= 10, "{given} ADUs, {began} periods");
    // Each period allocates one controller. Compound RTCP packets are sent every few seconds and also allocate memory.
    assert!(during <= began + 20, "{during} allocations for {given} ADUs in {began} periods");
}
