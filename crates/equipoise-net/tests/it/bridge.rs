//! Tests of clients and a server that use plain UDP through a bridge, on the loopback interface.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use equipoise::units::{Rate, Schedule, Share, Span};
use equipoise_net::{Bridge, BridgeConfig, Clock, NetError, Socket};
use equipoise_path::link::{Capacity, Discipline, DualPi2, Ecn, Loss, PipeConfig, PipeError, QueueLimit};
use equipoise_session::Transmit;

use super::receive;

const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind(ANY).expect("a free port");
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a time that is no zero");
    socket
}

fn relay(config: &BridgeConfig, target: &UdpSocket) -> Bridge {
    Bridge::relay(&Clock::new(), config, ANY, target.local_addr().expect("bound")).expect("a valid path")
}

fn delayed(millis: i64) -> PipeConfig {
    PipeConfig { delay: Span::from_millis(millis).into(), ..PipeConfig::default() }
}

#[test]
fn every_client_gets_its_own_answers_and_both_delays() {
    let (server, clients) = (socket(), [socket(), socket()]);
    let bridge = relay(&BridgeConfig { forward: delayed(20), back: delayed(10), ..BridgeConfig::default() }, &server);
    let begin = Instant::now();
    for (number, client) in clients.iter().enumerate() {
        client.send_to(&[number as u8], bridge.address().unwrap()).unwrap();
    }
    let mut buffer = [0; 10];
    let mut froms = Vec::new();
    for _ in &clients {
        let (len, from) = server.recv_from(&mut buffer).unwrap();
        assert!(begin.elapsed() >= Duration::from_millis(20));
        server.send_to(&[&buffer[..len], b"!"].concat(), from).unwrap();
        froms.push(from);
    }
    assert_ne!(froms[0], froms[1], "each client has a socket of its own");
    for (number, client) in clients.iter().enumerate() {
        let (len, from) = client.recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..len], Some(from)), (&[number as u8, b'!'][..], bridge.address()));
    }
    assert!(begin.elapsed() >= Duration::from_millis(30));
    let report = bridge.stop().unwrap();
    assert_eq!((report.ports.clients, report.forward.path.left, report.back.path.left), (2, 2, 2));
    assert_eq!(report.forward.punctuality.packets, 2);
}

/// If this test fails, a relay loses the ECN field or does not mark packets, in one direction or with one IP version.
#[test]
fn marks_pass_a_relay_and_its_queue_sets_them() {
    let clock = Clock::new();
    // The target delay is long, so that no packet is dropped, and only the delay threshold of the low-latency queue
    // causes marks. This queue does not mark its first packet, because a mark needs an accumulated probability above 1.
    // The queue does not mark its last packet, because no packet waits behind it. Therefore the test sends these two
    // packets with a mark.
    let dual = Discipline::DualPi2(DualPi2 { target: Span::from_secs(10), ..DualPi2::default() });
    let rate = Schedule::new(Rate::ZERO, vec![(Span::from_secs(1), Rate::from_bps(8_000_000))]);
    let forward = PipeConfig { capacity: Capacity::Rate(rate), discipline: dual, ..PipeConfig::default() };
    let config = BridgeConfig { forward, ..BridgeConfig::default() };
    for ip in [IpAddr::V4(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
        let [mut server, mut client] = [(); 2].map(|()| Socket::bind((ip, 0).into(), &clock).expect("a free port"));
        let bridge = Bridge::relay(&clock, &config, (ip, 0).into(), server.address()).expect("a valid path");
        for ecn in [Ecn::NotCapable, Ecn::Marked, Ecn::Ect1, Ecn::Marked] {
            client.send_to(bridge.address().unwrap(), &Transmit { ecn, ..Transmit::datagram(&[0; 900]) }).unwrap();
        }
        let received = receive(&mut server, 4);
        let found: Vec<_> = received.iter().map(|(received, _)| received.ecn).collect();
        assert_eq!(found, [Ecn::NotCapable, Ecn::Marked, Ecn::Marked, Ecn::Marked], "{ip}");
        for ecn in [Ecn::Ect0, Ecn::Marked] {
            server.send_to(received[0].0.from, &Transmit { ecn, ..Transmit::datagram(b"back") }).unwrap();
        }
        let back: Vec<_> = receive(&mut client, 2).iter().map(|(received, _)| received.ecn).collect();
        assert_eq!(back, [Ecn::Ect0, Ecn::Marked], "{ip}");
        assert_eq!(bridge.stop().unwrap().forward.path.marked, 1);
    }
}

#[test]
fn a_burst_leaves_at_the_rate_and_in_order_and_what_exceeds_the_queue_is_dropped() {
    let (server, client) = (socket(), socket());
    // A payload of 972 bytes results in an IP packet of 1000 bytes, whose transmission takes 1 ms. During the first 500
    // ms no packet leaves. Therefore all packets arrive before the first packet leaves, even on a slow machine.
    let rate = Schedule::new(Rate::ZERO, vec![(Span::from_millis(500), Rate::from_bps(8_000_000))]);
    let forward =
        PipeConfig { capacity: Capacity::Rate(rate), queue: QueueLimit::Packets(50), ..PipeConfig::default() };
    let begin = Instant::now();
    let bridge = relay(&BridgeConfig { forward, ..BridgeConfig::default() }, &server);
    for number in 0..200u8 {
        let mut payload = [0; 972];
        payload[0] = number;
        client.send_to(&payload, bridge.address().unwrap()).unwrap();
    }
    let mut buffer = [0; 2000];
    let mut numbers = Vec::new();
    while numbers.len() < 51 {
        server.recv(&mut buffer).unwrap();
        numbers.push(buffer[0]);
    }
    // 51 packets leave: one packet that was in transmission, and 50 packets that waited in the queue. Each transmission
    // takes 1 ms. The first transmission starts after 500 ms, when the rate rises from zero.
    assert!(begin.elapsed() >= Duration::from_millis(550), "{:?}", begin.elapsed());
    // On a busy machine, a few timestamps may be out of order. Then some of the first 51 packets are dropped, and later
    // packets leave instead.
    let is_first = numbers.windows(2).all(|pair| pair[0] < pair[1]) && numbers.last().is_some_and(|last| *last < 56);
    assert!(is_first, "the first, in order: {numbers:?}");
    let report = bridge.stop().unwrap();
    assert_eq!((report.forward.path.entered, report.forward.path.dropped_full), (200, 149));
}

#[test]
fn a_share_is_lost_and_the_same_seed_loses_the_same() {
    let half = Loss::Random(Share::from_fraction(0.5).unwrap());
    let config = BridgeConfig {
        forward: PipeConfig { loss: half.into(), ..PipeConfig::default() },
        seed: 5,
        ..BridgeConfig::default()
    };
    let arrivals = || {
        let (server, client) = (socket(), socket());
        let bridge = relay(&config, &server);
        for number in 0..100u8 {
            client.send_to(&[number], bridge.address().unwrap()).unwrap();
            // The pause ensures that datagrams are lost only on the emulated path, and not in a socket buffer.
            thread::sleep(Duration::from_micros(200));
        }
        server.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let mut buffer = [0; 10];
        let mut numbers = Vec::new();
        while server.recv(&mut buffer).is_ok() {
            numbers.push(buffer[0]);
        }
        let report = bridge.stop().unwrap();
        assert_eq!(report.forward.path.lost + numbers.len() as u64, 100);
        // The first datagram may have a later timestamp than the second datagram, because the kernel is still turning
        // on its timestamps.
        numbers.sort_unstable();
        numbers
    };
    let first = arrivals();
    assert!((20..80).contains(&first.len()), "{first:?}");
    assert_eq!(first, arrivals());
}

#[test]
fn what_cannot_be_bridged_is_refused_by_name() {
    let clock = Clock::new();
    let negative = BridgeConfig { back: delayed(-1), ..BridgeConfig::default() };
    let refused = Bridge::relay(&clock, &negative, ANY, ANY).err();
    let source = PipeError::Negative { what: "delay", found: "-1 ms".to_owned() };
    assert!(matches!(refused, Some(NetError::Path { direction: "back", source: found }) if found == source));
    let between = |first, second| Bridge::between(&clock, &BridgeConfig::default(), first, second).err();
    assert!(matches!(between("same", "same"), Some(NetError::SameInterface { .. })));
    assert!(matches!(between("lo", "lo2"), Some(NetError::NotEthernet { name }) if name == "lo"));
    let missing = between("equipoise-none", "lo");
    assert!(matches!(missing, Some(NetError::NoInterface { known, .. }) if known.iter().any(|name| name == "lo")));
    let taken = socket();
    let refused = Bridge::relay(&clock, &BridgeConfig::default(), taken.local_addr().unwrap(), ANY).err();
    assert!(matches!(refused, Some(NetError::PortInUse { .. })));
}
