//! Tests of a flow pair, which sends application data units (ADUs) alternately over TCP and RTP: the order and
//! completeness of the ADUs, and the flow pair's share of the link.

use equipoise::control::window::Reno;
use equipoise::measure::ClockMap;
use equipoise::units::{Rate, Schedule, Size, Span};
use equipoise_path::link::{LinkConfig, QueueLimit};
use equipoise_session::{Event, Transport, rtp};
use equipoise_sim::pair::{PairFar, PairNear, PairParts, pair};
use equipoise_sim::tcp::{self, Supply};
use equipoise_sim::{Flow, FlowId, LinkId, Observer, Side, Time, World};

use crate::support::at;

const PACKET: Size = Size::from_bytes(1500);

/// The ADUs that a flow pair delivered, and when the periods of the flow pair began.
#[derive(Default)]
struct Log {
    next: u64,
    missing: u64,
    given: [u64; 2],
    began: Vec<(f64, Transport, f64)>,
    ended: bool,
}

impl Observer for Log {
    fn on_event(&mut self, now: Time, _: FlowId, _: Side, event: &Event) {
        match *event {
            Event::AduReceived { number, missing, over, size } => {
                assert_eq!((number, size), (self.next + missing, Size::from_bytes(5120)));
                (self.next, self.missing) = (number + 1, self.missing + missing);
                self.given[usize::from(over == Transport::Rtp)] += 1;
            }
            Event::Switched { to, rate, .. } => {
                self.began.push(((now - Time::ZERO).as_secs_f64(), to, rate.as_bps_f64()));
            }
            Event::Ended { .. } => self.ended = true,
            _ => {}
        }
    }
}

fn link(world: &mut World, kbit: u64, millis: i64, packets: u32) -> LinkId {
    let config = LinkConfig {
        rate: Schedule::constant(Rate::from_bps(kbit * 1000)),
        propagation_delay: Span::from_millis(millis),
        queue: QueueLimit::Packets(packets),
    };
    world.add_link(config).expect("a valid link")
}

fn parts() -> PairParts {
    let stream = rtp::StreamConfig::new(7, 96, Size::from_bytes(588), "sender");
    let rtp = rtp::SenderConfig::new(stream, Span::from_secs(1), at(0.0).assume_clock(), 1);
    let near = equipoise_pair::Sender::new(equipoise_pair::SenderConfig::new(rtp)).expect("valid");
    let rtp = rtp::ReceiverConfig::new(8, "receiver", 7, ClockMap::SYNCHRONISED, 2);
    let far = equipoise_pair::Receiver::new(equipoise_pair::ReceiverConfig::new(rtp)).expect("valid");
    let config = tcp::SenderConfig { supply: Supply::Written, idle_restart: false, ..tcp::SenderConfig::new(PACKET) };
    PairParts {
        near,
        far,
        tcp_near: tcp::Sender::new(config, tcp::Law::Window(Box::new(Reno::new(2.0)))).expect("valid"),
        tcp_far: tcp::Receiver::new(tcp::ReceiverConfig::new()).expect("valid"),
        packet: PACKET,
        adu: Size::from_bytes(5120),
        start: Time::ZERO,
    }
}

fn flow(parts: PairParts, there: LinkId, back: LinkId) -> Flow {
    let (near, far) = pair(parts);
    Flow::new(near, far, vec![there], vec![back])
}

/// Without competing traffic, the flow pair must send at the rate of the link. The queue is so large that no packet is
/// dropped, so no ADU may be missing.
#[test]
fn alone_it_runs_at_the_links_rate_and_loses_nothing() {
    let mut world = World::new();
    let (there, back) = (link(&mut world, 1200, 6, 10_000), link(&mut world, 100_000, 6, 1000));
    let receiver = tcp::ReceiverConfig { window: 30, ..tcp::ReceiverConfig::new() };
    let tcp_far = tcp::Receiver::new(receiver).expect("valid");
    world.add_flow(flow(PairParts { tcp_far, ..parts() }, there, back)).expect("links of this world");
    let mut log = Log::default();
    world.run(at(100.0), &mut log);
    world.stop(&mut log);
    world.run(at(105.0), &mut log);
    let rates: Vec<_> = log.began.iter().filter(|began| began.1 == Transport::Rtp).map(|began| began.2 / 1e6).collect();
    assert!(rates.len() >= 5 && rates.iter().all(|rate| (1.1..1.21).contains(rate)), "{:?}", log.began);
    assert!(log.ended && log.missing == 0, "{} missing", log.missing);
    // In 100 s at 1.2 Mbit/s, the link carries about 2700 ADUs. This number takes the headers of the packets into
    // account.
    assert!(log.given.iter().all(|given| *given > 500) && log.given.iter().sum::<u64>() > 2400, "{:?}", log.given);
}

/// With one competing TCP flow, the flow pair must get about half of the link.
#[test]
fn beside_tcp_it_runs_at_about_the_rate_of_tcp() {
    let mut world = World::new();
    let (there, back) = (link(&mut world, 1200, 6, 20), link(&mut world, 100_000, 6, 1000));
    let near =
        tcp::Sender::new(tcp::SenderConfig::new(PACKET), tcp::Law::Window(Box::new(Reno::new(2.0)))).expect("valid");
    let far = tcp::Receiver::new(tcp::ReceiverConfig::new()).expect("valid");
    let other = world.add_flow(Flow::new(near, far, vec![there], vec![back])).expect("links of this world");
    let ours_id = world.add_flow(flow(parts(), there, back)).expect("links of this world");
    let mut log = Log::default();
    world.run(at(300.0), &mut log);
    let ours = (log.given[0] + log.given[1]) as f64 * 5120.0 * 8.0 / 300.0;
    let theirs = world.far::<tcp::Receiver>(other).expect("a connection").delivered().as_bits() as f64 / 300.0;
    assert!((0.5..2.0).contains(&(ours / theirs)), "{ours} beside {theirs} bit/s: {:?}", log.began);
    assert!(log.began.len() > 10, "{:?}", log.began);
    let near: &PairNear = world.near(ours_id).expect("a flow pair");
    let far: &PairFar = world.far(ours_id).expect("a flow pair");
    assert!(near.tcp().stats().acknowledged <= far.tcp().next());
}

/// If this test fails, two runs of the same simulation have different events.
#[test]
fn a_run_is_a_function_of_its_world() {
    let run = || {
        let mut world = World::new();
        let (there, back) = (link(&mut world, 1200, 80, 10), link(&mut world, 100_000, 80, 1000));
        world.add_flow(flow(parts(), there, back)).expect("links of this world");
        let mut log = Log::default();
        world.run(at(60.0), &mut log);
        (log.next, log.given, log.began)
    };
    assert_eq!(run(), run());
}
