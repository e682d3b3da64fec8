//! Tests of a complete session: sender, emulated bottleneck, receiver.

use equipoise::control;
use equipoise::measure::ClockMap;
use equipoise::units::{Rate, Schedule, Size, Span};
use equipoise_net::{Clock, Emulator, EmulatorConfig, Finished, Host, Observer, Protocol, Route, Time, run_endpoint};
use equipoise_path::link::{LinkConfig, QueueLimit};
use equipoise_session::Event;
use equipoise_session::rtp::{Receiver, ReceiverConfig, Sender, SenderConfig, StreamConfig};

use super::{eventually, median, socket};

const PACKET: Size = Size::from_bytes(1000);

fn sender(start: Time) -> Sender {
    let entry = control::find("cbr").expect("the catalogue has it");
    let parameters = entry.parse(&[("rate", "3 Mbit/s")]).expect("the parameters are valid");
    let controller = entry.build(&parameters, PACKET).expect("the parameters are valid");
    let stream = StreamConfig::new(1, 96, PACKET, "sender@test");
    let config = SenderConfig::new(stream, Span::from_millis(50), start.assume_clock(), 1);
    Sender::new(config, controller).expect("a valid configuration")
}

fn receiver() -> Receiver {
    let config = ReceiverConfig::new(2, "receiver@test", 1, ClockMap::SYNCHRONISED, 2);
    Receiver::new(config).expect("a valid configuration")
}

/// Runs a session over links with 15 Mbit/s and 10 ms in each direction. The sender ends the session after a second.
/// The receiver ends when it gets the sender's BYE.
fn run() -> (Finished<Sender, Log>, Finished<Receiver, Log>) {
    let clock = Clock::new();
    let (near, far) = (socket(&clock), socket(&clock));
    let rate = Schedule::constant(Rate::from_bps(15_000_000));
    let link = LinkConfig { rate, propagation_delay: Span::from_millis(10), queue: QueueLimit::Packets(100) };
    let route = Route {
        forward: vec![0],
        backward: vec![1],
        protocol: Protocol::Udp,
        sender: near.address(),
        receiver: far.address(),
    };
    let start = clock.now() + Span::from_millis(20);
    let emulator =
        Emulator::start(&clock, EmulatorConfig::new(start, vec![link.clone().into(), link.into()], vec![route]))
            .expect("a valid network");
    let (entrance, exit) = (emulator.entrance(0).expect("route 0"), emulator.exit(0).expect("route 0"));
    let far = Host::new("receiver", far, exit);
    let near = Host::new("sender", near, entrance);
    let receiving = run_endpoint(receiver(), far, Log::default()).expect("a thread");
    let sending = run_endpoint(sender(start), near, Log::default()).expect("a thread");
    clock.sleep_until(start + Span::from_secs(1));
    let sent = sending.stop().expect("the sender's host works");
    assert!(eventually(&clock, || receiving.is_finished()), "the goodbye arrives");
    let received = receiving.join().expect("the receiver's host works");
    emulator.stop().expect("the emulator works");
    (sent, received)
}

#[derive(Default)]
struct Log(Vec<Event>);

impl Observer for Log {
    fn on_event(&mut self, _now: Time, event: &Event) {
        self.0.push(*event);
    }
}

#[test]
fn a_session_measures_the_emulated_path() {
    let (sent, received) = run();
    let media = sent.observer.0.iter().filter(|event| matches!(event, Event::MediaSent { .. })).count();
    let delays: Vec<_> = received
        .observer
        .0
        .iter()
        .filter_map(|event| if let Event::MediaReceived { delay, .. } = event { Some(*delay) } else { None })
        .collect();
    assert_eq!(delays.len(), media, "what was sent before the goodbye arrives before it");
    // The delay without other traffic: 10 ms of propagation, and 0.53 ms for the transmission of 1000 bytes at 15
    // Mbit/s.
    let (median, ideal) = (median(delays), Span::from_micros(10_533));
    assert!((median - ideal).abs() <= Span::from_millis(1), "median {median}, ideal {ideal}");
    let round_trips: Vec<_> = sent
        .observer
        .0
        .iter()
        .filter_map(|event| if let Event::ReportApplied { round_trip, .. } = event { Some(*round_trip) } else { None })
        .collect();
    assert!(round_trips.len() >= 8, "half of the reports of a second at least, not {}", round_trips.len());
    assert!(round_trips.iter().all(|&round_trip| round_trip >= Span::from_millis(20)), "{round_trips:?}");
    assert_eq!(received.observer.0.last(), Some(&Event::Ended { by_peer: true }));
    assert_eq!((sent.stats.foreign, received.stats.foreign), (0, 0));
}
