//! Tests with datagrams from UDP source port 0. The kernel delivers such datagrams, but refuses to send answers to port
//! 0.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use equipoise::control::Cbr;
use equipoise::units::{Rate, SenderClock, Size, Span};
use equipoise_net::flow_pair::PairListener;
use equipoise_net::{Bridge, BridgeConfig, Clock, Key, SendConfig, Server, ServerConfig, Socket, Time, send};
use equipoise_pair::wire::PairHello;
use equipoise_session::rtp::{Delays, Sender, SenderConfig, StreamConfig};
use equipoise_session::{Endpoint as _, Event, Input, Output};
use socket2::{Domain, Protocol, Type};

use super::any_port;
use super::sessions::Book;

/// Sends datagrams from port 0 of 127.0.0.1. This is possible only with a raw socket.
struct PortZero(socket2::Socket);

impl PortZero {
    /// Opens a raw socket. If this is not permitted, prints the reason and returns `None`.
    #[expect(clippy::print_stdout, reason = "a test that is skipped says why")]
    fn open() -> Option<Self> {
        match socket2::Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::UDP)) {
            Ok(socket) => Some(Self(socket)),
            Err(error) => {
                println!("{error}\nskipped: a raw socket, which takes CAP_NET_RAW");
                None
            }
        }
    }

    fn send(&self, to: u16, payload: &[u8]) {
        // The UDP header (RFC 768): source port, destination port, length, and no checksum.
        let mut datagram = vec![0, 0];
        datagram.extend(to.to_be_bytes());
        datagram.extend((payload.len() as u16 + 8).to_be_bytes());
        datagram.extend([0, 0]);
        datagram.extend(payload);
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        self.0.send_to(&datagram, &to.into()).expect("a raw socket sends to anybody");
    }
}

/// The first message of a sender that opens a session.
fn open() -> Vec<u8> {
    let mut open = vec![b'e', b'q', 3, 1, 1, 0, 0, 0];
    open.resize(96, 7);
    open
}

/// A datagram that looks like a message, a media packet or a report, or has random bytes. Equal numbers give equal
/// datagrams.
fn random_datagram(number: u64) -> Vec<u8> {
    let draw = |at: u64| (number * 1000 + at).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    let mut datagram: Vec<u8> = (0..draw(0) % 200).map(|at| draw(at + 1) as u8).collect();
    let beginning: &[u8] = match number % 4 {
        0 => &open()[..8],
        1 => &[0x80, 96],
        2 => &[0x80, 200, 0, 6],
        _ => &[],
    };
    let length = datagram.len().min(beginning.len());
    datagram[..length].copy_from_slice(&beginning[..length]);
    datagram
}

/// If this test fails, a single spoofed datagram ends a server and all its sessions.
#[test]
fn a_keyed_server_and_its_session_go_on_untouched() {
    const STRANGE: u64 = 200;
    let Some(port_zero) = PortZero::open() else { return };
    let clock = Clock::new();
    let key = Key::new(b"a secret of this test").expect("long enough");
    let book = Book::default();
    let socket = Socket::bind(any_port(), &clock).expect("a free port");
    let server = Server::start(socket, ServerConfig::new(Some(key.clone())), book.clone()).expect("a server");
    let config = SendConfig { report_interval: Span::from_millis(50), ..SendConfig::new(server.address(), Some(key)) };
    let reports = Arc::new(AtomicU64::new(0));
    let counter = reports.clone();
    let observer = move |_: Time, event: &Event| {
        counter.fetch_add(u64::from(matches!(event, Event::ReportApplied { .. })), Ordering::Relaxed);
    };
    let controller = Box::new(Cbr::new(Rate::from_bps(1_000_000)));
    let own = Socket::bind(any_port(), &clock).expect("a free port");
    let (running, _) = send(own, &config, controller, observer).expect("an open session");
    let more_reports = |what: &str| {
        let (before, start) = (reports.load(Ordering::Relaxed), Instant::now());
        while reports.load(Ordering::Relaxed) < before + 3 {
            assert!(start.elapsed() < Duration::from_secs(10) && !server.is_finished(), "{what}: no reports any more");
            thread::sleep(Duration::from_millis(5));
        }
    };
    more_reports("before");
    port_zero.send(server.address().port(), &open());
    more_reports("after one datagram");
    for number in 0..STRANGE {
        port_zero.send(server.address().port(), &random_datagram(number));
    }
    more_reports("after many");
    // The events are read before the sender stops, because a sender that stops sends its BYE several times. The server
    // ignores the copies that arrive after the end of the session, and counts them as foreign.
    let seen = book.read();
    let finished = running.stop().expect("the session did not fail");
    assert_eq!(finished.stats.socket.unsent, 0);
    assert_eq!((seen.opened.len(), seen.ignored.len()), (1, 0), "{:?}", seen.ignored);
    let (_, stats) = server.stop().expect("the server did not fail");
    assert_eq!((stats.socket.unanswerable, stats.socket.unsent), (STRANGE + 1, 0));
    assert!(stats.foreign > STRANGE, "{}", stats.foreign);
}

/// A report request, as the sender of a flow pair sends it over RTP.
fn request(ssrc: u32) -> Vec<u8> {
    let start = equipoise::units::Instant::<SenderClock>::ZERO;
    let stream = StreamConfig::new(ssrc, 96, Size::from_bytes(1000), "s");
    let config =
        SenderConfig { delays: Delays::Queueing, ..SenderConfig::new(stream, Span::from_millis(10), start, 1) };
    let mut sender = Sender::new(config, Box::new(Cbr::new(Rate::from_bps(1_000_000)))).expect("a configuration");
    loop {
        let wake = sender.wake().expect("it goes on");
        sender.handle(wake.at, Input::Timer);
        while let Some(output) = sender.poll() {
            match output {
                // A sender report (RFC 3550, Sec. 12.1).
                Output::Transmit { transmit, .. } if transmit.head[1] == 200 => return transmit.head.to_vec(),
                _ => {}
            }
        }
    }
}

/// If this test fails, a request from port 0 ends a flow. The receiver sends its report to the source of the last
/// request, and sending to port 0 fails.
#[test]
fn a_flow_pairs_receiver_goes_on() {
    const SSRC: u32 = 77;
    let Some(port_zero) = PortZero::open() else { return };
    let mut listener = PairListener::bind(any_port()).expect("a free port");
    let mut stream = TcpStream::connect(listener.local_address()).expect("it listens");
    let datagrams = UdpSocket::bind(any_port()).expect("a free port");
    datagrams.set_read_timeout(Some(Duration::from_secs(10))).expect("a time");
    let port = datagrams.local_addr().expect("bound").port();
    stream.write_all(&PairHello { port, ssrc: SSRC }.to_bytes()).expect("it is there");
    let mut answer = [0; PairHello::LEN];
    stream.read_exact(&mut answer).expect("an answer");
    let receiver = PairHello::parse(answer).expect("a hello");
    let pair = listener.accept().expect("it listens");
    let request = request(SSRC);
    for _ in 0..10 {
        port_zero.send(receiver.port, &request);
    }
    datagrams.send_to(&request, (Ipv4Addr::LOCALHOST, receiver.port)).expect("sent");
    let (length, _) = datagrams.recv_from(&mut [0; 2000]).expect("the report reaches who asked last");
    assert!(length > 0 && pair.end().is_none());
    pair.close().expect("the flow did not fail");
}

/// If this test fails, a datagram from port 0 ends an emulated path.
#[test]
fn a_relay_goes_on() {
    let Some(port_zero) = PortZero::open() else { return };
    let (server, client) = (UdpSocket::bind(any_port()).expect("a port"), UdpSocket::bind(any_port()).expect("a port"));
    server.set_read_timeout(Some(Duration::from_secs(10))).expect("a time");
    let target = server.local_addr().expect("bound");
    let bridge = Bridge::relay(&Clock::new(), &BridgeConfig::default(), any_port(), target).expect("a relay");
    let relay = bridge.address().expect("a relay has one");
    for number in 0..10 {
        port_zero.send(relay.port(), &random_datagram(number));
    }
    client.send_to(b"through", relay).expect("sent");
    let mut buffer = [0; 100];
    let (length, _) = server.recv_from(&mut buffer).expect("it passes");
    assert_eq!(&buffer[..length], b"through");
    let report = bridge.stop().expect("the relay did not fail");
    assert_eq!((report.ports.clients, report.ports.foreign, report.forward.path.left), (1, 10, 1));
}
