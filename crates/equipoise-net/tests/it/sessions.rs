//! Tests of senders and a server, on the loopback interface.

/// The lock for slow tests. The tests of the command-line program use the same lock.
#[expect(dead_code, reason = "none of them needs the machine alone")]
#[path = "../../../equipoise-cli/tests/it/machine.rs"]
pub(crate) mod machine;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use equipoise::control::{BoxedController, Cbr};
use equipoise::units::{Rate, Span};
use equipoise_net::{
    Clock, End, Key, NetError, Refusal, SendConfig, Server, ServerConfig, Session, SessionObserver, Socket, Time, send,
};
use equipoise_session::rtp::Payload;
use equipoise_session::{DropReason, Ecn, Event};

#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) opened: Vec<Session>,
    pub(crate) payload: BTreeMap<u64, Vec<u8>>,
    pub(crate) missing: u64,
    received: u64,
    /// The ECN fields of received media packets.
    ecn: Vec<Ecn>,
    pub(crate) ignored: Vec<DropReason>,
    pub(crate) ended: Vec<(u64, End)>,
}

/// Observations of a server. They are shared, so that a test can read them while the server runs.
#[derive(Clone, Default)]
pub(crate) struct Book(Arc<Mutex<Seen>>);

impl Book {
    pub(crate) fn read(&self) -> Seen {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().expect("nobody panics while looking")
    }

    /// Waits until `is` returns true, for at most ten seconds.
    pub(crate) fn wait(&self, what: &str, is: impl Fn(&Seen) -> bool) {
        let start = Instant::now();
        while !is(&self.lock()) {
            assert!(start.elapsed() < Duration::from_secs(10), "{what} did not come: {:?}", self.read().ended);
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl SessionObserver for Book {
    fn on_open(&mut self, _now: Time, session: &Session) {
        self.lock().opened.push(*session);
    }
    fn on_event(&mut self, _now: Time, _session: &Session, event: &Event) {
        let mut seen = self.lock();
        match event {
            Event::MediaReceived { ecn, .. } => {
                seen.received += 1;
                seen.ecn.push(*ecn);
            }
            Event::Ignored(reason) => seen.ignored.push(*reason),
            _ => {}
        }
    }
    fn on_payload(&mut self, _now: Time, session: &Session, missing: u64, payload: &[u8]) {
        let mut seen = self.lock();
        seen.missing += missing;
        seen.payload.entry(session.number).or_default().extend_from_slice(payload);
    }
    fn on_end(&mut self, _now: Time, session: &Session, why: End) {
        self.lock().ended.push((session.number, why));
    }
    fn on_ignored(&mut self, _now: Time, reason: DropReason) {
        self.lock().ignored.push(reason);
    }
}

fn socket() -> Socket {
    Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), &Clock::new()).expect("a socket")
}

fn key(secret: &str) -> Key {
    Key::new(secret.as_bytes()).expect("long enough")
}

fn server(key: Option<Key>, change: impl FnOnce(&mut ServerConfig)) -> (Server<Book>, Book) {
    let (book, mut config) = (Book::default(), ServerConfig::new(key));
    change(&mut config);
    (Server::start(socket(), config, book.clone()).expect("a server"), book)
}

fn cbr(mbps: u64) -> BoxedController {
    Box::new(Cbr::new(Rate::from_bps(mbps * 1_000_000)))
}

fn stream(peer: SocketAddr, key: Option<Key>) -> SendConfig {
    let report_interval = Span::from_millis(100);
    SendConfig { payload: Payload::Stream, report_interval, patience: Span::from_secs(2), ..SendConfig::new(peer, key) }
}

fn quiet(_: Time, _: &Event) {}

const SECRET: &str = "a secret of this test";

#[test]
fn a_stream_arrives_whole_with_and_without_a_key() {
    for key in [Some(key(SECRET)), None] {
        let (server, book) = server(key.clone(), |_| {});
        let config = stream(server.address(), key);
        let (running, payloads) = send(socket(), &config, cbr(20), quiet).expect("an open session");
        let payload: Vec<u8> = (0..250_000u32).flat_map(u32::to_be_bytes).collect();
        let payloads = payloads.expect("a stream has one");
        payloads.push(&payload).expect("open");
        drop(payloads);
        running.join().expect("it ends by itself");
        book.wait("the end", |seen| !seen.ended.is_empty());
        let seen = book.read();
        assert_eq!(seen.ended, [(0, End::Goodbye)]);
        assert_eq!(seen.missing, 0);
        assert!(seen.payload[&0] == payload, "{} bytes of {}", seen.payload[&0].len(), payload.len());
        server.stop().expect("no failure");
    }
}

/// If this test fails, queues between hosts do not mark packets, or marks are not reported to the sender.
#[test]
fn packets_that_may_be_marked_say_so_when_they_come_and_reports_tell_of_it() {
    for key in [Some(key(SECRET)), None] {
        let (server, book) = server(key.clone(), |_| {});
        let config = SendConfig { ecn: Ecn::Ect1, ..stream(server.address(), key) };
        let (told, shares) = std::sync::mpsc::channel();
        let observe = move |_: Time, event: &Event| match event {
            Event::ReportApplied { fraction_marked, .. } => told.send(*fraction_marked).expect("the test listens"),
            Event::EcnFailed { .. } => panic!("loopback clears no field"),
            _ => {}
        };
        let (running, payloads) = send(socket(), &config, cbr(4), observe).expect("an open session");
        payloads.expect("a stream has one").push(&vec![7; 100_000]).expect("open");
        let told = || shares.recv_timeout(Duration::from_secs(10)).expect("reports come");
        while told() != Some(0.0) {}
        running.stop().expect("no failure");
        let seen = book.read();
        assert!(seen.received > 0 && seen.ecn.iter().all(|ecn| *ecn == Ecn::Ect1), "{:?}", seen.ecn);
        server.stop().expect("no failure");
    }
}

/// If this test fails, a control law with per-packet feedback gets no feedback between hosts, because the server does
/// not know that it has to send per-packet reports.
#[test]
fn laws_by_packet_are_told_of_packets_and_raise_their_rate() {
    for (name, payload, key) in [
        ("gcc", Payload::Generated, Some(key(SECRET))),
        ("nada", Payload::Generated, None),
        ("scream", Payload::Stream, Some(key(SECRET))),
    ] {
        let (server, _book) = server(key.clone(), |_| {});
        let entry = equipoise::control::find(name).expect("in the catalogue");
        let given = [("max_rate", "4 Mbit/s"), ("min_rate", "300 kbit/s")];
        let controller =
            entry.build(&entry.parse(&given).expect("right"), equipoise::units::Size::from_bytes(1200)).expect("right");
        let config = SendConfig { payload, ..stream(server.address(), key) };
        let (told, reports) = std::sync::mpsc::channel();
        let observe = move |_: Time, event: &Event| {
            if let Event::PacketsReported { .. } | Event::RateDecided { .. } = event {
                let _ = told.send(*event);
            }
        };
        let (running, payloads) = send(socket(), &config, controller, observe).expect("an open session");
        let feeder = payloads.map(|payloads| std::thread::spawn(move || while payloads.push(&[7; 10_000]).is_ok() {}));
        let (mut arrived, mut highest) = (0, Rate::ZERO);
        let end = std::time::Instant::now() + Duration::from_secs(20);
        while (arrived < 50 || highest < Rate::from_bps(600_000)) && std::time::Instant::now() < end {
            match reports.recv_timeout(Duration::from_secs(10)).expect("reports come") {
                Event::PacketsReported { arrived: more, .. } => arrived += more,
                Event::RateDecided { rate, .. } => highest = highest.max(rate),
                _ => {}
            }
        }
        running.stop().expect("no failure");
        if let Some(feeder) = feeder {
            feeder.join().expect("it ends with the session");
        }
        assert!(arrived >= 50 && highest >= Rate::from_bps(600_000), "{name}: {arrived} {highest}");
        server.stop().expect("no failure");
    }
}

#[test]
fn keys_that_differ_or_are_missing_are_named() {
    let cases = [
        (Some(key(SECRET)), Some(key("another secret of 16")), Refusal::OtherKey),
        (Some(key(SECRET)), None, Refusal::NeedsKey),
        (None, Some(key(SECRET)), Refusal::HasNoKey),
    ];
    for (servers, senders, expected) in cases {
        let (server, book) = server(servers, |_| {});
        let refused = send(socket(), &stream(server.address(), senders), cbr(1), quiet);
        assert!(matches!(refused, Err(NetError::Refused { reason, .. }) if reason == expected), "{expected:?}");
        assert!(book.read().opened.is_empty());
    }
}

#[test]
fn a_server_serves_no_more_than_it_may_and_forgets_who_is_silent() {
    let (server, book) = server(Some(key(SECRET)), |config| {
        config.most_sessions = 1;
        config.idle = Span::from_millis(300);
    });
    let open = || send(socket(), &stream(server.address(), Some(key(SECRET))), cbr(1), quiet);
    let (first, payloads) = open().expect("room for one");
    assert!(matches!(open(), Err(NetError::Refused { reason: Refusal::Full, .. })));
    // The sender's compound reports are seconds apart, but its requests for reports are more frequent, so the session
    // stays open.
    std::thread::sleep(Duration::from_secs(1));
    assert!(book.read().ended.is_empty(), "a session that asks is not silent");
    // When the sender's thread ends, the server must end the session, by the sender's BYE or because no packets arrive.
    drop(payloads);
    first.join().expect("it ends by itself");
    book.wait("the end", |seen| !seen.ended.is_empty());
    assert!(open().is_ok(), "there is room again");
}

#[test]
fn nobody_home_is_said_within_the_time_that_was_given() {
    let nobody = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let config = SendConfig {
        patience: Span::from_millis(400),
        ..stream(nobody.local_addr().expect("bound"), Some(key(SECRET)))
    };
    let start = Instant::now();
    assert!(matches!(send(socket(), &config, cbr(1), quiet), Err(NetError::NoAnswer { .. })));
    assert!(start.elapsed() < Duration::from_secs(5));
}

/// If this test fails, attackers can use a server for amplification against any address.
#[test]
fn strangers_get_no_more_than_they_send_and_nothing_is_kept_of_them() {
    let (server, book) = server(Some(key(SECRET)), |_| {});
    let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    stranger.set_read_timeout(Some(Duration::from_millis(200))).expect("a timeout");
    let mut open = vec![b'e', b'q', 3, 1, 1, 0, 0, 0];
    open.resize(96, 7);
    // With zeros in these bytes, the request asks for no per-packet feedback.
    open[44..48].fill(0);
    let mut report = vec![0x80, 200, 0, 6];
    report.resize(28, 1);
    let (mut sent, mut got, mut buffer) = (0, 0, [0; 2048]);
    for datagram in [open.as_slice(), &report, b"garbage", &[0x80; 100], &[0x65; 80], &[]] {
        for _ in 0..50 {
            sent += stranger.send_to(datagram, server.address()).expect("sent");
        }
    }
    while let Ok(length) = stranger.recv(&mut buffer) {
        got += length;
    }
    assert!(got > 0 && got <= 50 * 96, "{got} bytes for {sent}");
    assert!(book.read().opened.is_empty());
    assert!(book.read().ignored.len() >= 200, "{}", book.read().ignored.len());
}

/// If this test fails, an attacker disturbs a session by sending recorded, changed or invented datagrams.
#[test]
fn forged_and_replayed_datagrams_are_counted_and_change_nothing() {
    let (server, book) = server(Some(key(SECRET)), |_| {});
    // The socket of an attacker. All datagrams between sender and server pass through this socket.
    let middle = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    middle.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
    let config = stream(middle.local_addr().expect("bound"), Some(key(SECRET)));
    let target = server.address();
    let over = Arc::new(AtomicBool::new(false));
    let is_over = over.clone();
    let relay = std::thread::spawn(move || {
        let (mut sender, mut buffer, mut replayed) = (None, [0; 2048], 0u64);
        while !is_over.load(Ordering::Relaxed) {
            let Ok((length, from)) = middle.recv_from(&mut buffer) else { continue };
            let datagram = &mut buffer[..length];
            if from == target {
                if let Some(sender) = sender {
                    middle.send_to(datagram, sender).expect("sent");
                    // The attacker sends the receiver's report a second time, and then with one bit changed.
                    middle.send_to(datagram, sender).expect("sent");
                    datagram[length - 1] ^= 1;
                    middle.send_to(datagram, sender).expect("sent");
                }
            } else {
                sender = Some(from);
                middle.send_to(datagram, target).expect("sent");
                if datagram[0] & 0xC0 == 0x80 {
                    middle.send_to(datagram, target).expect("sent");
                    datagram[length - 1] ^= 1;
                    middle.send_to(datagram, target).expect("sent");
                    replayed += 1;
                }
            }
        }
        replayed
    });
    let events = Arc::new(Mutex::new(Vec::new()));
    let log = events.clone();
    let observer = move |_: Time, event: &Event| log.lock().expect("no panic").push(*event);
    let (running, payloads) = send(socket(), &config, cbr(2), observer).expect("an open session");
    let payload = vec![5; 100_000];
    payloads.expect("a stream has one").push(&payload).expect("open");
    let finished = running.join().expect("it ends by itself");
    book.wait("the end", |seen| !seen.ended.is_empty());
    over.store(true, Ordering::Relaxed);
    let replayed = relay.join().expect("no panic");
    let seen = book.read();
    assert!(seen.payload[&0] == payload && seen.missing == 0);
    let forged = seen.ignored.iter().filter(|reason| **reason == DropReason::Forged).count() as u64;
    assert!(forged >= 2 * (replayed - 8), "of {replayed} datagrams each was replayed and changed: {forged}");
    let events = events.lock().expect("no panic");
    let applied = events.iter().filter(|event| matches!(event, Event::ReportApplied { .. })).count();
    let refused = events.iter().filter(|event| **event == Event::Ignored(DropReason::Forged)).count();
    assert!(applied > 0 && refused >= 2 * (applied - 1), "{applied} applied, {refused} refused");
    assert!(finished.stats.foreign >= refused as u64);
}

/// Two packets with the same nonce reveal their contents and the authentication key, so that an observer can forge
/// packets. If this test fails, a restarted encoder causes such packets.
#[test]
fn a_program_that_repeats_its_numbers_makes_no_two_packets_of_one_nonce() {
    const SSRC: u32 = 0x0102_0304;
    let (server, book) = server(Some(key(SECRET)), |_| {});
    let [front, back] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket"));
    let peer = front.local_addr().expect("bound");
    back.connect(server.address()).expect("an address");
    let relay = Relay::start(front, back);
    let config = SendConfig { payload: Payload::Rtp, ssrc: Some(SSRC), ..stream(peer, Some(key(SECRET))) };
    let (running, payloads) = send(socket(), &config, cbr(4), quiet).expect("an open session");
    let payloads = payloads.expect("there is a payload");
    let packet = |number: u16, content: u8| {
        let head =
            [&[0x80, 96][..], &number.to_be_bytes(), &u32::from(number).to_be_bytes(), &SSRC.to_be_bytes()].concat();
        [head, vec![content; 100]].concat()
    };
    // The program sends 50 packets, then 20 packets of which 10 repeat earlier numbers, and after a restart 50 packets
    // with very different numbers.
    let given: Vec<_> = (1000..1050).map(|number| (number, 1)).chain((1040..1060).map(|number| (number, 2))).collect();
    for (number, content) in given.into_iter().chain((40_000..40_050).map(|number| (number, 3))) {
        payloads.push(&packet(number, content)).expect("open");
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(payloads);
    running.join().expect("it ends by itself");
    book.wait("the end", |seen| !seen.ended.is_empty());
    let seen = relay.close();
    let media: Vec<_> = seen.iter().filter(|datagram| datagram[0] == 0x80 && datagram[1] & 0x7F == 96).collect();
    let nonces: std::collections::BTreeSet<_> = media.iter().map(|datagram| &datagram[2..4]).collect();
    assert_eq!((media.len(), nonces.len()), (110, 110), "as many numbers as packets, of 120 that were given");
    let arrived = &book.read().payload[&0];
    let expected = (1000..1050).map(|number| packet(number, 1)).chain((1050..1060).map(|number| packet(number, 2)));
    assert!(
        *arrived == expected.chain((40_000..40_050).map(|number| packet(number, 3))).flatten().collect::<Vec<u8>>()
    );
}

/// Forwards datagrams between any client of `front` and a server, and stores a copy of each datagram from the client.
/// When the relay is stopped, `front` is closed.
struct Relay {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Vec<Vec<u8>>>,
}

impl Relay {
    fn start(front: UdpSocket, back: UdpSocket) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let (mut sender, mut buffer, mut seen) = (None, [0; 2000], Vec::new());
            for socket in [&front, &back] {
                socket.set_nonblocking(true).expect("a socket can");
            }
            while !stopped.load(Ordering::Relaxed) {
                while let Ok((length, from)) = front.recv_from(&mut buffer) {
                    sender = Some(from);
                    back.send(&buffer[..length]).expect("sent");
                    seen.push(buffer[..length].to_vec());
                }
                while let (Ok(length), Some(sender)) = (back.recv(&mut buffer), sender) {
                    front.send_to(&buffer[..length], sender).expect("sent");
                }
                std::thread::sleep(Duration::from_micros(500));
            }
            seen
        });
        Self { stop, thread }
    }

    /// Stops the relay. Returns the copies of the client's datagrams.
    fn close(self) -> Vec<Vec<u8>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic")
    }
}

/// The events [`Event::ReportApplied`] and [`Event::ReportsMissing`], each with the time of the event.
type Noted = [(Time, Event)];

/// If this test fails, a sender whose receiver has disappeared sends at its full rate for four report intervals to
/// whoever has the receiver's address now.
#[test]
fn a_closed_port_counts_as_silence_before_three_reports_are_missing_and_ends_nothing() {
    let (server, _book) = server(Some(key(SECRET)), |_| {});
    let front = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let back = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    back.connect(server.address()).expect("a local address");
    let address = front.local_addr().expect("bound");
    let relay = Relay::start(front, back.try_clone().expect("a copy"));
    let config = SendConfig::new(address, Some(key(SECRET)));
    let aimd = equipoise::control::find("aimd").expect("in the catalogue");
    let limits = [("target", "100 ms"), ("min_rate", "200k"), ("max_rate", "2M")];
    let parameters = aimd.parse(&limits).expect("its own parameters");
    let controller = aimd.build(&parameters, config.packet_size).expect("a controller");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = seen.clone();
    let observer = move |now: Time, event: &Event| {
        if matches!(event, Event::ReportApplied { .. } | Event::ReportsMissing) {
            noted.lock().expect("no panic").push((now, *event));
        }
    };
    let (running, _) = send(socket(), &config, controller, observer).expect("an open session");
    let wait = |what: &str, is: &dyn Fn(&Noted) -> bool| {
        let start = Instant::now();
        while !is(&seen.lock().expect("no panic")) {
            assert!(start.elapsed() < Duration::from_secs(10) && !running.is_finished(), "{what} did not come");
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    let applied = |seen: &Noted| seen.iter().filter(|(_, event)| *event != Event::ReportsMissing).count();
    wait("two reports", &|seen| applied(seen) >= 2);
    relay.close();
    wait("silence", &|seen| seen.last().is_some_and(|(_, event)| *event == Event::ReportsMissing));
    let (heard, missed) = {
        let seen = seen.lock().expect("no panic");
        (seen.iter().rev().nth(1).expect("a report").0, seen.last().expect("silence").0)
    };
    // ICMP errors show that the relay's port is closed. Therefore the sender detects missing reports at the second
    // request without an answer. Without ICMP errors, the sender would detect missing reports at the fourth request.
    assert!(missed - heard < Span::from_secs(3), "after {}", missed - heard);
    let before = applied(&seen.lock().expect("no panic"));
    let relay = Relay::start(UdpSocket::bind(address).expect("the same port"), back);
    wait("the session's next report", &|seen| applied(seen) > before);
    let finished = running.stop().expect("the session was whole");
    assert_eq!(finished.stats.socket.unsent, 0, "word of an earlier datagram costs no other");
    relay.close();
    server.stop().expect("the server goes on");
}
