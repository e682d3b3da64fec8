use std::collections::VecDeque;

use equipoise::units::{Instant, SenderClock, Span};
use equipoise_net::{Clock, Host, Time, run_endpoint};
use equipoise_session::{DropReason, Endpoint, Event, Input, Output, PathId, Transmit, Wake, WakeReason};

use super::{eventually, median, receive, socket};

/// An endpoint that sends one byte every 2 ms. If a byte is late by 2 ms or more, the next byte follows 2 ms after the
/// late byte. The endpoint ends when it receives "end".
struct Metronome {
    next: Instant<SenderClock>,
    outbox: VecDeque<Output<'static>>,
}

impl Metronome {
    const GAP: Span = Span::from_millis(2);

    fn new(start: Time) -> Self {
        Self { next: start.assume_clock(), outbox: VecDeque::new() }
    }
}

fn transmit(head: &'static [u8]) -> Output<'static> {
    Output::Transmit { path: PathId(0), transmit: Transmit::datagram(head) }
}

fn said(event: Event) -> Output<'static> {
    Output::Event { path: None, event }
}

impl Endpoint for Metronome {
    type Clock = SenderClock;

    fn handle(&mut self, now: Instant<SenderClock>, input: Input<'_>) {
        match input {
            Input::Timer if now >= self.next => {
                self.outbox.push_back(transmit(b"t"));
                self.next = self.next + Self::GAP;
                if self.next <= now {
                    self.next = now + Self::GAP;
                }
            }
            Input::Datagram { datagram: b"end", .. } => self.outbox.push_back(said(Event::Ended { by_peer: true })),
            Input::Stop => {
                self.outbox.push_back(transmit(b"bye"));
                self.outbox.push_back(said(Event::Ended { by_peer: false }));
            }
            Input::Datagram { .. } => self.outbox.push_back(said(Event::Ignored(DropReason::Malformed))),
            _ => {}
        }
    }

    fn poll(&mut self) -> Option<Output<'_>> {
        self.outbox.pop_front()
    }

    fn wake(&self) -> Option<Wake<SenderClock>> {
        Some(Wake { at: self.next, reason: WakeReason::Media })
    }
}

fn host(clock: &Clock, peer: &equipoise_net::Socket) -> Host {
    Host::new("metronome", socket(clock), peer.address())
}

#[test]
fn media_leaves_when_it_is_due() {
    let clock = Clock::new();
    let mut peer = socket(&clock);
    let host = host(&clock, &peer);
    let start = clock.now() + Span::from_millis(20);
    let running = run_endpoint(Metronome::new(start), host, |_, _: &Event| ()).unwrap();
    let received = receive(&mut peer, 150);
    running.stop().unwrap();
    assert!(received[0].0.at >= start - Span::from_micros(500), "not before the start");
    let error = |pair: &[(equipoise_net::Received, Vec<u8>)]| (pair[1].0.at - pair[0].0.at - Metronome::GAP).abs();
    let median = median(received.windows(2).map(error).collect());
    assert!(median <= Span::from_micros(500), "median error of the gaps {median}");
}

#[test]
fn a_stopped_endpoint_says_goodbye() {
    let clock = Clock::new();
    let mut peer = socket(&clock);
    let host = host(&clock, &peer);
    let running = run_endpoint(Metronome::new(Time::MAX), host, |_, _: &Event| ()).unwrap();
    assert!(!running.is_finished());
    running.stop().unwrap();
    assert_eq!(receive(&mut peer, 1)[0].1, b"bye");
}

#[test]
fn an_endpoint_that_ends_by_itself_ends_its_thread() {
    let clock = Clock::new();
    let mut peer = socket(&clock);
    let host = host(&clock, &peer);
    let address = host.paths[0].0.address();
    let running = run_endpoint(Metronome::new(Time::MAX), host, |_, _: &Event| ()).unwrap();
    peer.send_to(address, &Transmit::datagram(b"end")).unwrap();
    assert!(eventually(&clock, || running.is_finished()));
    let finished = running.join().unwrap();
    assert_eq!((finished.stats.foreign, finished.stats.socket.unsent), (0, 0));
}

/// If this test fails, anybody who guesses a port can end a session or change its measurements.
#[test]
fn what_strangers_send_does_not_reach_the_endpoint() {
    let clock = Clock::new();
    let (mut peer, mut stranger) = (socket(&clock), socket(&clock));
    let host = host(&clock, &peer);
    let address = host.paths[0].0.address();
    let (events, seen) = std::sync::mpsc::channel();
    let observe = move |_: Time, event: &Event| events.send(*event).expect("the test listens");
    let running = run_endpoint(Metronome::new(Time::MAX), host, observe).unwrap();
    stranger.send_to(address, &Transmit::datagram(b"end")).unwrap();
    peer.send_to(address, &Transmit::datagram(b"what?")).unwrap();
    peer.send_to(address, &Transmit::datagram(b"end")).unwrap();
    assert!(eventually(&clock, || running.is_finished()));
    let finished = running.join().unwrap();
    assert_eq!(finished.stats.foreign, 1);
    // When the observer is dropped, the channel is closed, so that `seen.iter()` ends.
    drop(finished);
    let expected =
        [Event::Ignored(DropReason::Foreign), Event::Ignored(DropReason::Malformed), Event::Ended { by_peer: true }];
    assert_eq!(seen.iter().collect::<Vec<_>>(), expected);
}

#[test]
fn a_dropped_endpoint_is_stopped() {
    let clock = Clock::new();
    let mut peer = socket(&clock);
    let host = host(&clock, &peer);
    drop(run_endpoint(Metronome::new(Time::MAX), host, |_, _: &Event| ()).unwrap());
    assert_eq!(receive(&mut peer, 1)[0].1, b"bye");
}
