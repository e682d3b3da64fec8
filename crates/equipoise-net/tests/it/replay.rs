//! One recorded list of inputs gives the same outputs, whoever drives the session.

use equipoise::session::{Endpoint, Event, Input, Output, Transmit};
use equipoise_net::{Observer, Time};

use super::rtp::{self, Law};

/// A law that makes use of every report.
const LAW: Law = Law("ap", &[("target", "13 ms"), ("min_rate", "2 Mbit/s")]);

/// What went into an endpoint and what came out, in order.
#[derive(Clone, Debug, PartialEq)]
enum Entry {
    Datagram(Time, Vec<u8>),
    Timer(Time),
    PathLoad(Time, f64),
    Stop(Time),
    Transmit(Vec<u8>, usize),
    Event(Event),
}

/// Writes everything down; knows a load of the path that was never measured.
#[derive(Default)]
struct Recorder(Vec<Entry>);

impl Observer for Recorder {
    fn on_event(&mut self, _now: Time, event: &Event) {
        self.0.push(Entry::Event(*event));
    }

    fn on_input(&mut self, now: Time, input: &Input<'_>) {
        self.0.push(match input {
            Input::Datagram(payload) => Entry::Datagram(now, payload.to_vec()),
            Input::Timer => Entry::Timer(now),
            Input::PathLoad(load) => Entry::PathLoad(now, *load),
            Input::Stop => Entry::Stop(now),
        });
    }

    fn on_transmit(&mut self, _now: Time, transmit: &Transmit<'_>) {
        self.0.push(Entry::Transmit(transmit.head.to_vec(), transmit.media));
    }

    fn path_load(&mut self, _now: Time) -> Option<f64> {
        Some(0.75)
    }
}

/// Drives `endpoint` by the inputs of `record`, as a simulator does: no clock, no socket.
fn replay<E: Endpoint>(mut endpoint: E, record: &[Entry]) -> Vec<Entry> {
    let mut replayed = outputs(&mut endpoint);
    for entry in record {
        let (at, input) = match entry {
            Entry::Datagram(at, payload) => (at, Input::Datagram(payload)),
            Entry::Timer(at) => (at, Input::Timer),
            Entry::PathLoad(at, load) => (at, Input::PathLoad(*load)),
            Entry::Stop(at) => (at, Input::Stop),
            Entry::Transmit(..) | Entry::Event(_) => continue,
        };
        endpoint.handle(at.assume_clock(), input);
        replayed.push(entry.clone());
        replayed.extend(outputs(&mut endpoint));
    }
    replayed
}

fn outputs<E: Endpoint>(endpoint: &mut E) -> Vec<Entry> {
    let mut all = Vec::new();
    while let Some(output) = endpoint.poll() {
        all.push(match output {
            Output::Transmit(transmit) => Entry::Transmit(transmit.head.to_vec(), transmit.media),
            Output::Event(event) => Entry::Event(event),
        });
    }
    all
}

fn count(record: &[Entry], matches: impl Fn(&Entry) -> bool) -> usize {
    record.iter().filter(|entry| matches(entry)).count()
}

/// If it fails, a session does something that its inputs do not explain, and a simulation of it proves nothing.
#[test]
fn a_session_over_sockets_replays_without_them_to_the_byte() {
    let session = rtp::run(LAW, Recorder::default(), Recorder::default());
    let (sent, received) = (session.sent.observer.0, session.received.observer.0);
    // There must be something to compare.
    assert!(count(&sent, |entry| matches!(entry, Entry::Transmit(..))) >= 20);
    assert!(count(&sent, |entry| matches!(entry, Entry::Event(Event::ReportApplied { delay: Some(_), .. }))) >= 4);
    assert!(count(&sent, |entry| matches!(entry, Entry::PathLoad(..))) >= 4);
    assert!(count(&received, |entry| matches!(entry, Entry::Event(Event::MediaReceived { .. }))) >= 20);

    assert_eq!(replay(rtp::sender(session.start, LAW), &sent), sent);
    assert_eq!(replay(rtp::receiver(), &received), received);
}
