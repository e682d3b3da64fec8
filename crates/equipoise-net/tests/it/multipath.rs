//! Tests of sessions over several paths, on the loopback interface. Interfaces that appear and disappear are tested by
//! the tests of the command-line program.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use equipoise::control::scheduler::Equal;
use equipoise::control::{Cbr, find};
use equipoise::measure::ClockMap;
use equipoise::units::{Rate, Size, Span};
use equipoise_net::{
    Clock, Host, Key, Multipath, MultipathSession, NetError, Observer, SendConfig, Server, ServerConfig, Socket, Time,
    Via, run_endpoint, send_multipath,
};
use equipoise_session::multipath::{PathLaws, Receiver, Sender, Total};
use equipoise_session::rtp::{ReceiverConfig, SenderConfig, StreamConfig};
use equipoise_session::{DropReason, Event, PathId};

use crate::sessions::Book;
use crate::sessions::machine::Machine;

const REPORTS: Span = Span::from_millis(100);

/// For each path of a session: number of media packets, and number of reports. A sender counts packets sent and reports
/// applied. A receiver counts packets received and reports sent.
#[derive(Clone, Default)]
struct Counts(Arc<Mutex<Vec<(u64, u64)>>>);

impl Counts {
    fn read(&self) -> Vec<(u64, u64)> {
        self.0.lock().expect("nobody panics").clone()
    }

    fn wait(&self, what: &str, is: impl Fn(&[(u64, u64)]) -> bool) {
        let start = Instant::now();
        while !is(&self.read()) {
            assert!(start.elapsed() < Duration::from_secs(10), "{what} did not come: {:?}", self.read());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Observer for Counts {
    fn on_event(&mut self, _now: Time, _event: &Event) {}

    fn on_path_event(&mut self, _now: Time, path: PathId, event: &Event) {
        let mut counts = self.0.lock().expect("nobody panics");
        let at = usize::from(path.0);
        if counts.len() <= at {
            counts.resize(at + 1, (0, 0));
        }
        match event {
            Event::MediaSent { .. } | Event::MediaReceived { .. } => counts[at].0 += 1,
            Event::ReportSent { .. } | Event::ReportApplied { .. } => counts[at].1 += 1,
            _ => {}
        }
    }
}

fn socket() -> Socket {
    Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), &Clock::new()).expect("a socket")
}

fn loopback() -> Via {
    Via::Device("lo".to_owned())
}

#[test]
fn two_ends_talk_over_two_pairs_of_sockets() {
    let clock = Clock::new();
    let bind = || Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), &clock).expect("a socket");
    let (near, far) = ([bind(), bind()], [bind(), bind()]);
    let address = |sockets: &[Socket; 2]| [sockets[0].address(), sockets[1].address()];
    let (to_near, to_far) = (address(&near), address(&far));
    let start = clock.now().assume_clock();
    let stream = StreamConfig::new(1, 96, Size::from_bytes(1000), "a");
    let config = SenderConfig::new(stream, REPORTS, start, 1);
    let total = Total::Pooled(Box::new(Cbr::new(Rate::from_bps(4_000_000))));
    let sender = Sender::new(config, Span::from_millis(500), total, Box::new(Equal)).expect("valid");
    let receiver = Receiver::new(ReceiverConfig::new(2, "b", 1, ClockMap::SYNCHRONISED, 1)).expect("valid");
    let (sent, received) = (Counts::default(), Counts::default());
    let far = far.into_iter().zip(to_near).collect();
    let receiving =
        run_endpoint(receiver, Host { name: "far".to_owned(), paths: far }, received.clone()).expect("a thread");
    let near = near.into_iter().zip(to_far).collect();
    let sending = run_endpoint(sender, Host { name: "near".to_owned(), paths: near }, sent.clone()).expect("a thread");
    let has = |counts: &[(u64, u64)]| {
        counts.len() == 2 && counts.iter().all(|(packets, reports)| *packets > 100 && *reports > 2)
    };
    sent.wait("media and reports on both paths", has);
    sending.stop().expect("no failure");
    receiving.stop().expect("no failure");
    let (sent, received) = (sent.read(), received.read());
    assert!(has(&received), "{received:?}");
    assert!(sent.iter().zip(&received).all(|(sent, received)| received.0 <= sent.0));
    assert!(
        run_endpoint(
            Receiver::new(ReceiverConfig::new(2, "b", 1, ClockMap::SYNCHRONISED, 1)).expect("valid"),
            Host { name: "none".to_owned(), paths: Vec::new() },
            Counts::default()
        )
        .is_err()
    );
}

fn open(peer: SocketAddr, key: Option<Key>, paths: Vec<Via>) -> (Result<MultipathSession<Counts>, NetError>, Counts) {
    let config = SendConfig { report_interval: REPORTS, patience: Span::from_secs(2), ..SendConfig::stream(peer, key) };
    let counts = Counts::default();
    let multipath = Multipath { period: Span::from_millis(500), ..Multipath::new(paths, Box::new(Equal)) };
    let total = Total::Pooled(Box::new(Cbr::new(Rate::from_bps(8_000_000))));
    (send_multipath(&Clock::new(), &config, multipath, total, counts.clone()), counts)
}

#[test]
fn a_stream_arrives_whole_while_its_only_path_is_exchanged_for_another() {
    let key = Key::new(b"a secret of this test").expect("long enough");
    a_path_is_exchanged(&[(Ipv4Addr::LOCALHOST.into(), Some(key))], 200_000);
}

#[test]
#[ignore = "real time: 7 s"]
fn a_long_stream_arrives_whole_with_and_without_a_key_while_its_only_path_is_exchanged_for_another() {
    let _machine = Machine::shared();
    let key = Key::new(b"a secret of this test").expect("long enough");
    let cases = [
        (Ipv4Addr::LOCALHOST.into(), Some(key.clone())),
        (Ipv4Addr::LOCALHOST.into(), None),
        (Ipv6Addr::LOCALHOST.into(), Some(key)),
    ];
    a_path_is_exchanged(&cases, 500_000);
}

/// Sends streams of `numbers` four-byte numbers. When half of a stream has been passed to the session, the session's
/// only path is replaced.
#[expect(clippy::print_stdout, reason = "a test that is skipped says why")]
fn a_path_is_exchanged(cases: &[(IpAddr, Option<Key>)], numbers: u32) {
    for (address, key) in cases.iter().cloned() {
        let socket = match Socket::bind((address, 0).into(), &Clock::new()) {
            Err(error) if address.is_ipv6() => {
                println!("{error}\nskipped: IPv6 on the loopback interface");
                return;
            }
            socket => socket.expect("a socket"),
        };
        let book = Book::default();
        let server = Server::start(socket, ServerConfig::new(key.clone()), book.clone()).expect("a server");
        let (session, counts) = open(server.address(), key, vec![loopback()]);
        let MultipathSession { running, payloads, paths } = session.expect("an open session");
        let payloads = payloads.expect("a stream has one");
        let payload: Vec<u8> = (0..numbers).flat_map(u32::to_be_bytes).collect();
        let (before, after) = payload.split_at(payload.len() / 2);
        payloads.push(before).expect("open");
        counts.wait("the first path", |counts| counts.first().is_some_and(|first| first.0 > 100 && first.1 > 0));
        assert!(paths.remove(PathId(0)) && !paths.remove(PathId(0)));
        assert_eq!(paths.add(loopback()).expect("it is free again"), PathId(1));
        counts.wait("the second path", |counts| counts.get(1).is_some_and(|second| second.0 > 100 && second.1 > 0));
        payloads.push(after).expect("open");
        drop(payloads);
        running.join().expect("it ends by itself");
        book.wait("the end", |seen| !seen.ended.is_empty());
        let seen = book.read();
        assert!(seen.opened.len() == 1 && seen.opened[0].is_multipath);
        assert_eq!(seen.missing, 0);
        assert!(seen.payload[&0] == payload, "{} bytes of {}", seen.payload[&0].len(), payload.len());
        server.stop().expect("no failure");
    }
}

/// Number of per-packet reports, and the last total rate of all paths, in bit/s.
#[derive(Clone, Default)]
struct Reports(Arc<Mutex<(u64, u64)>>);

impl Observer for Reports {
    fn on_event(&mut self, _now: Time, event: &Event) {
        if let Event::RateDecided { rate, .. } = event {
            self.0.lock().expect("nobody panics").1 = rate.as_bps();
        }
    }

    fn on_path_event(&mut self, _now: Time, _path: PathId, event: &Event) {
        if let Event::PacketsReported { .. } = event {
            self.0.lock().expect("nobody panics").0 += 1;
        }
    }
}

#[test]
fn a_law_of_a_path_goes_by_reports_on_its_packets() {
    let key = Key::new(b"a secret of this test").expect("long enough");
    let server = Server::start(socket(), ServerConfig::new(Some(key.clone())), Book::default()).expect("a server");
    let entry = find("equipoise").expect("in the catalogue");
    let parameters = entry.parse(&[("initial_rate", "300 kbit/s"), ("max_rate", "20 Mbit/s")]).expect("right");
    let laws = PathLaws::new(move || entry.build(&parameters, Size::from_bytes(1200)).ok(), None);
    let config = SendConfig { report_interval: REPORTS, ..SendConfig::new(server.address(), Some(key)) };
    let (multipath, reports) = (Multipath::new(vec![loopback()], Box::new(Equal)), Reports::default());
    let session = send_multipath(&Clock::new(), &config, multipath, Total::PerPath(laws), reports.clone());
    let session = session.expect("an open session");
    let start = Instant::now();
    let read = || *reports.0.lock().expect("nobody panics");
    // The loopback interface has no bottleneck, so the rate increases with each report.
    while read().0 < 10 || read().1 < 1_000_000 {
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", read());
        std::thread::sleep(Duration::from_millis(5));
    }
    session.running.stop().expect("no failure");
    server.stop().expect("no failure");
}

#[test]
fn a_path_that_leads_nowhere_or_is_there_already_is_named() {
    let server = Server::start(socket(), ServerConfig::new(None), Book::default()).expect("a server");
    let fails = |paths: Vec<Via>| open(server.address(), None, paths).0.map(|_| ()).expect_err("no session");
    let nobodys = Via::Address(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 77)));
    assert!(matches!(fails(Vec::new()), NetError::Paths { found: 0, most: 16 }));
    assert!(
        matches!(fails(vec![Via::Device("nosuch0".to_owned())]), NetError::NoInterface { name, .. } if name == "nosuch0")
    );
    assert!(matches!(fails(vec![nobodys]), NetError::NotOurAddress { family: "IPv4", .. }));
    let same = vec![loopback(), Via::Address(IpAddr::V4(Ipv4Addr::LOCALHOST))];
    assert!(matches!(fails(same), NetError::SamePath { .. }));
}

/// If this test fails, a stranger can redirect the reports of a session to itself, or insert packets into the session.
#[test]
fn a_stranger_cannot_join_a_session_of_several_paths() {
    let key = Key::new(b"a secret of this test").expect("long enough");
    for (key, expected) in [(Some(key), DropReason::Forged), (None, DropReason::Foreign)] {
        let book = Book::default();
        let server = Server::start(socket(), ServerConfig::new(key.clone()), book.clone()).expect("a server");
        let (session, counts) = open(server.address(), key, vec![loopback()]);
        let session = session.expect("an open session");
        counts.wait("a report", |counts| counts.first().is_some_and(|first| first.1 > 0));
        let ssrc = book.read().opened[0].ssrc.to_be_bytes();
        let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        stranger.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
        // The stranger sends a forged sender report, which would require an answer, and a forged media packet.
        let report = [&[0x80, 200, 0, 6][..], &ssrc, &[1; 20]].concat();
        let media = [&[0x80, 96, 0, 1, 0, 0, 0, 1][..], &ssrc, &[1; 40]].concat();
        for datagram in [&report, &media].repeat(20) {
            stranger.send_to(datagram, server.address()).expect("sent");
        }
        // The stranger knows the session's SSRC, and sends its own Open message. This message has a valid cookie, but
        // not the random number of the Open message that opened the session.
        let open = |cookie: &[u8]| [b"eq\x03\x01\x0a\0\0\0".as_slice(), &[7; 16], cookie, &ssrc, &[0; 52]].concat();
        let mut buffer = [0; 2048];
        stranger.send_to(&open(&[0; 16]), server.address()).expect("sent");
        let length = stranger.recv(&mut buffer).expect("a cookie");
        assert_eq!((length, buffer[3]), (96, 2));
        let cookie = buffer[24..40].to_vec();
        stranger.send_to(&open(&cookie), server.address()).expect("sent");
        let length = stranger.recv(&mut buffer).expect("an answer");
        assert_eq!((length, buffer[3]), (96, 4), "refused");
        stranger.send_to(&report, server.address()).expect("sent");
        stranger.set_read_timeout(Some(Duration::from_millis(200))).expect("a timeout");
        assert!(stranger.recv(&mut buffer).is_err(), "nothing more comes to him");
        book.wait("all of his", |seen| seen.ignored.iter().filter(|reason| **reason == expected).count() >= 41);
        let reports = counts.read()[0].1;
        counts.wait("further reports", |counts| counts[0].1 > reports + 3);
        assert_eq!(book.read().missing, 0);
        drop(session);
        server.stop().expect("no failure");
    }
}
