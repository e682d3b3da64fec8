//! Tests that a recorded list of inputs results in the same outputs over real sockets and in the simulator.
//!
//! A session runs over real sockets through the emulated bottleneck, and all inputs and outputs of its endpoints are
//! recorded. The simulator's driver then passes the same inputs to new endpoints.

use equipoise::control;
use equipoise::measure::ClockMap;
use equipoise::units::{Rate, Schedule, Size, Span};
use equipoise_net::{
    Clock, Emulator, EmulatorConfig, Finished, Host, Observer, Protocol, Route, Socket, Time, run_endpoint,
};
use equipoise_path::link::{LinkConfig, QueueLimit};
use equipoise_session::rtp::{Receiver, ReceiverConfig, Sender, SenderConfig, StreamConfig};
use equipoise_session::{Endpoint, Event, Input, Output, PathChange, PathId, Transmit};
use equipoise_sim::turn;

const PACKET: Size = Size::from_bytes(1000);

fn sender(start: Time) -> Sender {
    // This control law uses every report and also the load of the path.
    let entry = control::find("ap-load").expect("in the catalogue");
    let parameters = entry.parse(&[("target", "13 ms"), ("min_rate", "2 Mbit/s")]).expect("valid");
    let controller = entry.build(&parameters, PACKET).expect("valid");
    let stream = StreamConfig::new(1, 96, PACKET, "sender@test");
    let config = SenderConfig::new(stream, Span::from_millis(50), start.assume_clock(), 1);
    Sender::new(config, controller).expect("valid")
}

fn receiver() -> Receiver {
    let clocks = ClockMap::SYNCHRONISED;
    let config = ReceiverConfig::new(2, "receiver@test", 1, clocks, 2);
    Receiver::new(config).expect("valid")
}

/// One input or output of an endpoint. A recording lists all inputs and outputs in order.
#[derive(Clone, Debug, PartialEq)]
enum Entry {
    Datagram(Time, Vec<u8>),
    Timer(Time),
    Path(Time, PathId, PathChange),
    Stop(Time),
    Transmit(Vec<u8>, usize),
    Event(Event),
}

/// Records all inputs and outputs of an endpoint.
#[derive(Default)]
struct Recorder(Vec<Entry>);

impl Observer for Recorder {
    fn on_event(&mut self, _now: Time, event: &Event) {
        self.0.push(Entry::Event(*event));
    }

    fn on_input(&mut self, now: Time, input: &Input<'_>) {
        self.0.push(match input {
            Input::Datagram { datagram: payload, .. } => Entry::Datagram(now, payload.to_vec()),
            Input::Timer => Entry::Timer(now),
            Input::Path { path, change } => Entry::Path(now, *path, *change),
            Input::Stop => Entry::Stop(now),
            other => unreachable!("nobody gives {other:?} here"),
        });
    }

    fn on_transmit(&mut self, _now: Time, transmit: &Transmit<'_>) {
        self.0.push(Entry::Transmit(transmit.head.to_vec(), transmit.media));
    }
}

/// Runs a session for 1 s over a link with a rate of 15 Mbit/s and a delay of 10 ms in each direction. Returns the
/// session's start, and the records of both endpoints.
fn over_sockets() -> (Time, Vec<Entry>, Vec<Entry>) {
    let clock = Clock::new();
    let socket = || Socket::bind(([127, 0, 0, 1], 0).into(), &clock).expect("127.0.0.1 has a free port");
    let (near, far) = (socket(), socket());
    let rate = Schedule::constant(Rate::from_bps(15_000_000));
    let link = LinkConfig { rate, propagation_delay: Span::from_millis(10), queue: QueueLimit::Packets(100) };
    let route = Route {
        forward: vec![0],
        backward: vec![1],
        protocol: Protocol::Udp,
        sender: near.address(),
        receiver: far.address(),
    };
    let start = clock.now() + Span::from_millis(100);
    let emulator =
        Emulator::start(&clock, EmulatorConfig::new(start, vec![link.clone().into(), link.into()], vec![route]))
            .expect("a valid network");
    let (entrance, exit) = (emulator.entrance(0).expect("route 0"), emulator.exit(0).expect("route 0"));
    let far = Host::new("receiver", far, exit);
    let near = Host::new("sender", near, entrance);
    let receiving = run_endpoint(receiver(), far, Recorder::default()).expect("a thread");
    let sending = run_endpoint(sender(start), near, Recorder::default()).expect("a thread");
    clock.sleep_until(start + Span::from_secs(1));
    let Finished { observer: Recorder(sent), .. } = sending.stop().expect("the sender's host works");
    // The maximum wait of 10 s is longer than any stall of the machine. A BYE packet that has not
    // arrived after this wait is lost.
    let give_up = clock.now() + Span::from_secs(10);
    while !receiving.is_finished() && clock.now() < give_up {
        clock.sleep_until(clock.now() + Span::from_millis(1));
    }
    let Finished { observer: Recorder(received), .. } = receiving.stop().expect("the receiver's host works");
    emulator.stop().expect("the emulator works");
    (start, sent, received)
}

/// Passes the inputs in `record` to an endpoint through the simulated driver. Returns these inputs and the outputs of
/// the endpoint, in order.
fn simulated<E: Endpoint>(mut end: E, record: &[Entry]) -> Vec<Entry> {
    let mut replayed = Vec::new();
    let mut drive = |at: Time, input: Option<Input<'_>>, replayed: &mut Vec<Entry>| {
        turn(&mut end, at.assume_clock(), input, |output| {
            replayed.push(match output {
                Output::Transmit { transmit, .. } => Entry::Transmit(transmit.head.to_vec(), transmit.media),
                Output::Event { event, .. } => Entry::Event(event),
                Output::Payload { .. } => unreachable!("generated media is not given out"),
            });
        });
    };
    drive(Time::ZERO, None, &mut replayed);
    for entry in record {
        let (at, input) = match entry {
            Entry::Datagram(at, payload) => (at, Input::datagram(payload)),
            Entry::Timer(at) => (at, Input::Timer),
            Entry::Path(at, path, change) => (at, Input::Path { path: *path, change: *change }),
            Entry::Stop(at) => (at, Input::Stop),
            Entry::Transmit(..) | Entry::Event(_) => continue,
        };
        replayed.push(entry.clone());
        drive(*at, Some(input), &mut replayed);
    }
    replayed
}

fn count(record: &[Entry], matches: impl Fn(&Entry) -> bool) -> usize {
    record.iter().filter(|entry| matches(entry)).count()
}

/// If this test fails, the behaviour of a session does not depend on its inputs alone, so a simulation does not show
/// how the session behaves on a real network.
#[test]
fn a_session_over_sockets_goes_the_same_way_through_the_simulated_driver() {
    let (start, sent, received) = over_sockets();
    // The records must contain enough entries for a comparison.
    assert!(count(&sent, |entry| matches!(entry, Entry::Transmit(..))) >= 20);
    assert!(count(&sent, |entry| matches!(entry, Entry::Event(Event::ReportApplied { delay: Some(_), .. }))) >= 4);
    assert!(count(&received, |entry| matches!(entry, Entry::Event(Event::MediaReceived { .. }))) >= 20);

    assert_eq!(simulated(sender(start), &sent), sent);
    assert_eq!(simulated(receiver(), &received), received);
}
