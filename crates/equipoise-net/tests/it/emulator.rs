use std::net::SocketAddr;

use equipoise::units::{Rate, Schedule, Size, Span};
use equipoise_net::{
    Clock, Emulator, EmulatorConfig, NetError, Protocol, Received, Route, Socket, Time, TimestampSource,
};
use equipoise_path::link::{Discipline, DualPi2, Ecn, LinkConfig, LinkError, PipeConfig, PipeError, QueueLimit};
use equipoise_session::Transmit;

use super::{any_port, eventually, median, receive, socket};

/// Size of the payload in bytes: with 28 bytes of headers, an IP packet has 1000 bytes.
const PAYLOAD: usize = 972;

/// A datagram with `PAYLOAD` bytes of payload, which begins with `head`.
fn padded(head: &[u8]) -> Transmit<'_> {
    Transmit { media: PAYLOAD - head.len(), ..Transmit::datagram(head) }
}

/// A link with rate 0 for a second, and then 8 Mbit/s. All packets of the first second are in the queue together, even
/// on a slow machine.
fn slow_starter(packets: u32) -> LinkConfig {
    let rate = Schedule::new(Rate::ZERO, vec![(Span::from_secs(1), Rate::from_bps(8_000_000))]);
    LinkConfig { rate, propagation_delay: Span::ZERO, queue: QueueLimit::Packets(packets) }
}

fn link(rate_bps: u64, propagation_delay: Span, packets: u32) -> LinkConfig {
    let rate = Schedule::constant(Rate::from_bps(rate_bps));
    LinkConfig { rate, propagation_delay, queue: QueueLimit::Packets(packets) }
}

/// An emulator, and the sockets of the sender and the receiver. The emulator has one route, which has one forward link
/// and no backward link.
struct Bench {
    clock: Clock,
    origin: Time,
    sender: Socket,
    receiver: Socket,
    emulator: Emulator,
    entrance: SocketAddr,
    exit: SocketAddr,
}

fn bench(link: LinkConfig) -> Bench {
    bench_of(link.into())
}

fn bench_of(link: PipeConfig) -> Bench {
    let clock = Clock::new();
    let (sender, receiver) = (socket(&clock), socket(&clock));
    let route = Route {
        forward: vec![0],
        backward: vec![],
        protocol: Protocol::Udp,
        sender: sender.address(),
        receiver: receiver.address(),
    };
    let origin = clock.now();
    let emulator =
        Emulator::start(&clock, EmulatorConfig::new(origin, vec![link], vec![route])).expect("a valid network");
    let (entrance, exit) = (emulator.entrance(0).expect("route 0"), emulator.exit(0).expect("route 0"));
    Bench { clock, origin, sender, receiver, emulator, entrance, exit }
}

#[test]
fn each_packet_is_delayed_by_its_service_and_the_propagation() {
    let mut bench = bench(link(8_000_000, Span::from_millis(20), 100));
    let mut sent = Vec::new();
    for number in 0..100_u8 {
        bench.clock.sleep_until(bench.clock.now() + Span::from_millis(4));
        sent.push(bench.clock.now());
        bench.sender.send_to(bench.entrance, &padded(&[number])).unwrap();
    }
    let received = receive(&mut bench.receiver, 100);
    let report = bench.emulator.stop().unwrap();
    assert!(received.iter().map(|(_, payload)| payload[0]).eq(0..100), "all come, in order");
    assert!(received.iter().all(|(received, payload)| received.from == bench.exit && payload.len() == PAYLOAD));
    let delays = received.iter().zip(&sent).map(|((received, _), &sent)| received.at - sent).collect();
    let median = median(delays);
    let (ideal, bound) = (Span::from_millis(21), Span::from_millis(1));
    assert!((median - ideal).abs() <= bound, "median {median}, ideal {ideal}");
    let lateness = report.lateness.expect("packets were relayed");
    assert!(Span::ZERO <= lateness.p50 && lateness.p50 <= bound, "{lateness:?}");
    assert!(lateness.p50 <= lateness.p99 && lateness.p99 <= lateness.max);
    assert_eq!((report.links[0].left, report.links[0].dropped(), report.in_flight), (100, 0, 0));
    assert_eq!((report.foreign, report.refused, report.lost_at_sockets), (0, 0, 0));
    assert_eq!(report.timestamps, TimestampSource::Kernel);
}

#[test]
fn a_burst_loses_just_what_the_queue_has_no_room_for() {
    let mut bench = bench(slow_starter(5));
    for number in 0..20_u8 {
        bench.sender.send_to(bench.entrance, &padded(&[number])).unwrap();
    }
    let received = receive(&mut bench.receiver, 6);
    let report = bench.emulator.stop().unwrap();
    assert!(received.iter().map(|(_, payload)| payload[0]).eq(0..6), "one in service and five waiting");
    assert!(received[0].0.at >= bench.origin + Span::from_secs(1), "not before the link came up");
    assert_eq!(bench.receiver.recv(&mut [0; 2048]).unwrap(), None, "no seventh comes");
    let link = report.links[0];
    assert_eq!((link.left, link.dropped(), link.usage.longest_queue), (6, 14, 5));
}

#[test]
fn what_strangers_send_is_dropped_and_counted() {
    let mut bench = bench(link(8_000_000, Span::from_millis(1), 10));
    let mut stranger = socket(&bench.clock);
    stranger.send_to(bench.entrance, &Transmit::datagram(b"forward")).unwrap();
    stranger.send_to(bench.exit, &Transmit::datagram(b"backward")).unwrap();
    bench.sender.send_to(bench.entrance, &Transmit::datagram(b"known")).unwrap();
    let received = receive(&mut bench.receiver, 1);
    assert_eq!(received[0].1, b"known");
    assert_eq!(bench.sender.recv(&mut [0; 10]).unwrap(), None);
    let report = bench.emulator.stop().unwrap();
    assert_eq!((report.foreign, report.links[0].left), (2, 1));
}

#[test]
fn reports_go_back_from_where_the_media_went_in() {
    let mut bench = bench(link(8_000_000, Span::from_millis(1), 10));
    bench.receiver.send_to(bench.exit, &Transmit::datagram(b"report")).unwrap();
    let received = receive(&mut bench.sender, 1);
    assert_eq!((received[0].0.from, &received[0].1[..]), (bench.entrance, &b"report"[..]));
    let report = bench.emulator.stop().unwrap();
    assert_eq!(report.links[0].entered_bytes.as_bytes(), 0, "the way back has no links");
}

#[test]
fn routes_that_share_a_link_share_its_queue() {
    let clock = Clock::new();
    let mut sockets: Vec<_> = (0..4).map(|_| socket(&clock)).collect();
    let route = |sender: usize| Route {
        forward: vec![0],
        backward: vec![],
        protocol: Protocol::Udp,
        sender: sockets[sender].address(),
        receiver: sockets[sender + 1].address(),
    };
    let (routes, link) = (vec![route(0), route(2)], slow_starter(10));
    let emulator = Emulator::start(&clock, EmulatorConfig::new(clock.now(), vec![link.into()], routes)).unwrap();
    for (sender, route) in [(0, 0), (2, 1)] {
        sockets[sender].send_to(emulator.entrance(route).unwrap(), &padded(&[0])).unwrap();
    }
    let first = receive(&mut sockets[1], 1)[0].0.at;
    let second = receive(&mut sockets[3], 1)[0].0.at;
    assert!(first < second, "{first:?} {second:?}");
    assert_eq!(emulator.stop().unwrap().links[0].usage.longest_queue, 1);
}

/// If this test fails, a long queue does not mark ECN-capable packets, or changes the ECN field of other packets.
#[test]
fn a_queue_marks_what_may_be_marked() {
    // The target delay is long, so that the queue drops nothing and marks packets only by its delay threshold. The
    // queue never marks the first and the last packet of the low-latency traffic. Therefore the test sends these two
    // packets with a mark.
    let dual = Discipline::DualPi2(DualPi2 { target: Span::from_secs(10), ..DualPi2::default() });
    let mut bench = bench_of(PipeConfig { discipline: dual, ..slow_starter(1000).into() });
    for number in 0..20_u8 {
        let ecn = [Ecn::NotCapable, Ecn::Marked, Ecn::Ect1][usize::from(number % 3)];
        bench.sender.send_to(bench.entrance, &Transmit { ecn, ..padded(&[number]) }).unwrap();
    }
    let received = receive(&mut bench.receiver, 20);
    assert_eq!(received.len(), 20);
    for (Received { ecn, .. }, payload) in received {
        let expected = [Ecn::NotCapable, Ecn::Marked, Ecn::Marked][usize::from(payload[0] % 3)];
        assert_eq!(ecn, expected, "packet {}", payload[0]);
    }
    bench.receiver.send_to(bench.exit, &Transmit { ecn: Ecn::Ect0, ..Transmit::datagram(b"back") }).unwrap();
    assert_eq!(receive(&mut bench.sender, 1)[0].0.ecn, Ecn::Ect0, "nothing marks on the way back");
    assert_eq!(bench.emulator.stop().unwrap().links[0].marked, 6);
}

#[test]
fn the_load_counts_what_was_offered_against_the_capacity() {
    let mut bench = bench(link(8_000_000, Span::ZERO, 1));
    let mut probe = bench.emulator.load_probe(0, false).unwrap();
    for _ in 0..10 {
        bench.sender.send_to(bench.entrance, &padded(&[])).unwrap();
    }
    let one_second = bench.origin + Span::from_secs(1);
    let watch = || {
        let load = bench.emulator.load_probe(0, false).and_then(|mut probe| probe.load(one_second));
        load.is_some_and(|load| load >= 0.01)
    };
    assert!(eventually(&bench.clock, watch), "80 kbit arrive at the link");
    // The offered load includes packets that the link dropped.
    assert_eq!(probe.load(one_second), Some(0.01));
    assert_eq!(probe.load(one_second + Span::from_secs(1)), Some(0.0));
}

#[test]
fn a_route_that_is_not_there_has_no_ends_and_no_load() {
    let emulator = bench(link(8_000_000, Span::ZERO, 1)).emulator;
    for route in [1, usize::MAX] {
        assert_eq!((emulator.entrance(route), emulator.exit(route)), (None, None));
        assert!(emulator.load_probe(route, false).is_none());
    }
}

#[test]
fn a_stopped_emulator_frees_its_ports() {
    let bench = bench(link(8_000_000, Span::ZERO, 1));
    assert!(bench.emulator.is_running());
    bench.emulator.stop().unwrap();
    for address in [bench.entrance, bench.exit] {
        assert_eq!(Socket::bind(address, &bench.clock).unwrap().address(), address);
    }
}

#[test]
fn a_dropped_emulator_frees_its_ports_too() {
    let bench = bench(link(8_000_000, Span::ZERO, 1));
    drop(bench.emulator);
    for address in [bench.entrance, bench.exit] {
        assert_eq!(Socket::bind(address, &bench.clock).unwrap().address(), address);
    }
}

#[test]
fn an_impossible_network_is_refused_with_its_place() {
    let clock = Clock::new();
    let start = |link: LinkConfig, way: usize| {
        let route = Route {
            forward: vec![0],
            backward: vec![way],
            protocol: Protocol::Udp,
            sender: any_port(),
            receiver: any_port(),
        };
        Emulator::start(&clock, EmulatorConfig::new(clock.now(), vec![link.into()], vec![route])).unwrap_err()
    };
    let error = start(link(8_000_000, Span::ZERO, 1), 1);
    assert!(matches!(error, NetError::UnknownLink { route: 0, link: 1, links: 1 }), "{error:?}");
    let protocol = Protocol::Tcp { packet: Size::from_bytes(1500) };
    let route = Route { forward: vec![], backward: vec![], protocol, sender: any_port(), receiver: any_port() };
    let error = Emulator::start(&clock, EmulatorConfig::new(clock.now(), vec![], vec![route])).unwrap_err();
    assert!(matches!(error, NetError::NoStream { route: 0 }), "{error:?}");
    let error = start(link(0, Span::ZERO, 1), 0);
    assert!(
        matches!(error, NetError::Link { link: 0, source: PipeError::Link(LinkError::RateEndsAtZero) }),
        "{error:?}"
    );
}
