//! Tests of media in both directions in one session over sockets: without encryption through an emulated bottleneck,
//! and encrypted by DTLS-SRTP.

use std::thread;

use equipoise::control;
use equipoise::measure::ClockMap;
use equipoise::units::{Rate, Schedule, SenderClock, Size, Span};
use equipoise_net::dtls_srtp::{DtlsSrtp, HandshakeError, Identity, OpenDtlsSrtp, PeerConfig, Profile, Setup};
use equipoise_net::{
    Clock, Emulator, EmulatorConfig, Finished, Host, NetError, Observer, Protocol, Route, Running, Socket, Time,
    run_endpoint,
};
use equipoise_path::link::{LinkConfig, QueueLimit};
use equipoise_session::rtp::{Clocks, Duplex, DuplexConfig, SenderConfig, StreamConfig};
use equipoise_session::wire::is_rtcp;
use equipoise_session::{Event, Half, Transmit};

use super::{PATIENCE, eventually, median, socket};

const PACKET: Size = Size::from_bytes(1000);
const SSRCS: [u32; 2] = [1, 2];
/// The sending rates of the two endpoints.
const RATES: [&str; 2] = ["3 Mbit/s", "1.5 Mbit/s"];

type End = Duplex<SenderClock>;

fn end(number: usize, start: Time, overhead: Size) -> End {
    let entry = control::find("cbr").expect("the catalogue has it");
    let parameters = entry.parse(&[("rate", RATES[number])]).expect("the parameters are valid");
    let controller = entry.build(&parameters, PACKET).expect("the parameters are valid");
    let stream = StreamConfig { overhead, ..StreamConfig::new(SSRCS[number], 96, PACKET, format!("end{number}@test")) };
    let sending = SenderConfig::new(stream, Span::from_millis(50), start.assume_clock(), 1 + number as u64);
    let clocks = Clocks::Known(ClockMap::SYNCHRONISED);
    Duplex::new(DuplexConfig::new(sending, SSRCS[1 - number], clocks), controller).expect("a valid configuration")
}

/// What was observed at one endpoint.
#[derive(Default)]
struct Log {
    events: Vec<Event>,
    /// How many sender reports this endpoint sent with a report block about the peer's media.
    reports: usize,
}

impl Observer for Log {
    fn on_event(&mut self, _now: Time, event: &Event) {
        self.events.push(*event);
    }

    fn on_transmit(&mut self, _now: Time, transmit: &Transmit<'_>) {
        // The first bytes of a sender report (RFC 3550, Sec. 6.4.1) with one report block.
        self.reports += usize::from(is_rtcp(transmit.head) && transmit.head[..2] == [0x81, 200]);
    }
}

impl Log {
    fn count(&self, is_such: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|event| is_such(event)).count()
    }

    fn sent(&self) -> usize {
        self.count(|event| matches!(event, Event::MediaSent { .. }))
    }

    fn delays(&self) -> Vec<Span> {
        let delay = |event: &Event| if let Event::MediaReceived { delay, .. } = event { Some(*delay) } else { None };
        self.events.iter().filter_map(delay).collect()
    }

    fn round_trips(&self) -> Vec<Span> {
        let time = |event: &Event| match event {
            Event::ReportApplied { round_trip, .. } => Some(*round_trip),
            _ => None,
        };
        self.events.iter().filter_map(time).collect()
    }
}

/// Both endpoints send for a second. Then the near endpoint ends the session.
fn second(clock: &Clock, start: Time, [near, far]: [Running<End, Log>; 2]) -> [Finished<End, Log>; 2] {
    clock.sleep_until(start + Span::from_secs(1));
    let near = near.stop().expect("the near end's host works");
    assert!(eventually(clock, || far.is_finished()), "the goodbye arrives");
    [near, far.join().expect("the far end's host works")]
}

/// Checks the results after both endpoints have sent media for one second, over any transport.
fn assert_both_ways(ends: &[Finished<End, Log>; 2]) {
    let [near, far] = ends.each_ref().map(|end| &end.observer);
    // On a machine that does not stall, the two endpoints send 375 and 187 packets.
    assert!(near.sent() > 90 && far.sent() > 45, "{} {}", near.sent(), far.sent());
    assert_eq!(far.delays().len(), near.sent(), "what was sent before the goodbye arrives before it");
    assert!(near.delays().len() <= far.sent() && near.delays().len() * 2 > far.sent(), "{}", near.delays().len());
    for log in [near, far] {
        assert!(log.round_trips().len() >= 8, "half of the reports of a second at least");
        assert!(log.reports >= 8, "{} reports with a block", log.reports);
        assert_eq!(log.count(|event| matches!(event, Event::Ignored(_))), 0);
        assert!(log.count(|event| event.half() == Half::Receiving) > log.delays().len(), "it answers, too");
    }
    assert_eq!(near.events.last(), Some(&Event::Ended { by_peer: false }));
    assert_eq!(far.events.last(), Some(&Event::Ended { by_peer: true }));
    assert_eq!(ends.each_ref().map(|end| end.stats.foreign), [0, 0]);
}

#[test]
fn both_ends_of_a_session_send_and_measure_the_emulated_path() {
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
    let config = EmulatorConfig::new(start, vec![link.clone().into(), link.into()], vec![route]);
    let emulator = Emulator::start(&clock, config).expect("a valid network");
    let (entrance, exit) = (emulator.entrance(0).expect("route 0"), emulator.exit(0).expect("route 0"));
    let run = |number: usize, socket, peer| {
        let host = Host::new(format!("end {number}"), socket, peer);
        run_endpoint(end(number, start, Size::ZERO), host, Log::default()).expect("a thread")
    };
    let ends = second(&clock, start, [run(0, near, entrance), run(1, far, exit)]);
    emulator.stop().expect("the emulator works");
    assert_both_ways(&ends);
    // The delay without other traffic: 10 ms of propagation, and 0.53 ms for the transmission of 1000 bytes at 15
    // Mbit/s.
    let ideal = Span::from_micros(10_533);
    for Finished { observer, .. } in &ends {
        let median = median(observer.delays());
        assert!((median - ideal).abs() <= Span::from_millis(1), "median {median}, ideal {ideal}");
        assert!(observer.round_trips().iter().all(|&round_trip| round_trip >= Span::from_millis(20)));
    }
}

/// Two DTLS-SRTP associations, each with the fingerprint of the other's certificate.
fn associations(sockets: &[Socket; 2], identities: [Identity; 2]) -> [DtlsSrtp; 2] {
    let fingerprints = identities.each_ref().map(|identity| *identity.fingerprint());
    let mut setups = [Setup::Active, Setup::Passive].into_iter();
    let mut number = 0;
    identities.map(|identity| {
        let (other, setup) = (1 - number, setups.next().expect("two ends"));
        number += 1;
        let peer = PeerConfig { address: sockets[other].address(), fingerprint: fingerprints[other], setup };
        DtlsSrtp::new(peer, identity, sockets[other].clock().now()).expect("a configuration")
    })
}

/// If this test fails, a session with media in both directions has no keys, or has keys for only one direction.
#[test]
fn both_ends_of_a_session_send_by_the_keys_of_one_handshake() {
    let clock = Clock::new();
    let sockets = [socket(&clock), socket(&clock)];
    let [active, passive] = associations(&sockets, [Identity::generate(), Identity::generate()]);
    let [near, far] = sockets;
    let answering = thread::spawn(move || OpenDtlsSrtp::open(far, passive, PATIENCE));
    let near = OpenDtlsSrtp::open(near, active, PATIENCE).expect("the far end answers");
    let far = answering.join().expect("no panic").expect("the near end asks");
    let start = clock.now() + Span::from_millis(20);
    let run = |number: usize, open: OpenDtlsSrtp| {
        assert_eq!(open.profile(), Profile::Aes256Gcm);
        let end = end(number, start, open.profile().overhead());
        open.run(&format!("end {number}"), end, Log::default()).expect("a thread")
    };
    let ends = second(&clock, start, [run(0, near), run(1, far)]);
    assert_both_ways(&ends);
}

#[test]
fn an_end_whose_peer_is_somebody_else_says_so() {
    let clock = Clock::new();
    let sockets = [socket(&clock), socket(&clock)];
    let [active, _] = associations(&sockets, [Identity::generate(), Identity::generate()]);
    // `stranger` has a new certificate, which the active endpoint does not expect.
    let peer = PeerConfig {
        address: sockets[0].address(),
        fingerprint: *active.identity().fingerprint(),
        setup: Setup::Passive,
    };
    let stranger = DtlsSrtp::new(peer, Identity::generate(), clock.now()).expect("a configuration");
    let [near, far] = sockets;
    let answering = thread::spawn(move || OpenDtlsSrtp::open(far, stranger, Span::from_secs(2)));
    match OpenDtlsSrtp::open(near, active, Span::from_secs(2)).err() {
        Some(NetError::NotOpened { source: HandshakeError::OtherCertificate { .. } }) => {}
        other => panic!("{other:?}"),
    }
    drop(answering.join().expect("no panic"));
}
