//! Tests of TCP over links: packets are conserved, links are full, shares are fair, and runs are deterministic.

use equipoise::control::window::{Reno, Symbiosis, SymbiosisConfig};
use equipoise::units::{Rate, Schedule, Size, Span};
use equipoise_path::link::{LinkConfig, LinkStats, QueueLimit};
use equipoise_path::source::Traffic;
use equipoise_session::Event;
use equipoise_sim::tcp::{
    KnownBandwidth, Law, LossRecovery, Receiver, ReceiverConfig, Sender, SenderConfig, SenderStats, Supply,
};
use equipoise_sim::{BandwidthOracle, Flow, FlowError, FlowId, LinkId, Side, Time, WhiteNoise, World};

use crate::support::{Seen, at, constant, link, mbps, stream};

const BOTH: [LossRecovery; 2] = [LossRecovery::NewReno, LossRecovery::Sack];
const SEGMENT: Size = Size::from_bytes(1500);
/// Number of data bytes in a full segment.
const PAYLOAD: u64 = 1460;

pub(crate) fn bulk(recovery: LossRecovery) -> SenderConfig {
    SenderConfig { recovery, ..SenderConfig::new(SEGMENT) }
}

pub(crate) fn connection(config: SenderConfig, forward: Vec<LinkId>, backward: Vec<LinkId>) -> Flow {
    let near = Sender::new(config, Law::Window(Box::new(Reno::new(10.0)))).expect("a valid configuration");
    let far = Receiver::new(ReceiverConfig::new()).expect("a valid configuration");
    Flow::new(near, far, forward, backward)
}

/// The sender and the receiver of a connection.
fn ends(world: &World, flow: FlowId) -> (&Sender, &Receiver) {
    (world.near(flow).expect("a connection"), world.far(flow).expect("a connection"))
}

/// A bottleneck link, a fast link for the reverse direction, and TCP connections over both.
struct Dumbbell {
    world: World,
    there: LinkId,
    flows: Vec<FlowId>,
}

impl Dumbbell {
    fn new(rate: Rate, round_trip_ms: i64, queue: u32, configs: impl IntoIterator<Item = SenderConfig>) -> Self {
        let mut world = World::new();
        let propagation_delay = Span::from_micros(500 * round_trip_ms);
        let mut add = |rate, queue| {
            let queue = QueueLimit::Packets(queue);
            world.add_link(LinkConfig { rate: Schedule::constant(rate), propagation_delay, queue }).expect("valid")
        };
        let (there, back) = (add(rate, queue), add(mbps(1000.0), 100_000));
        let mut add =
            |config| world.add_flow(connection(config, vec![there], vec![back])).expect("links of this world");
        let flows = configs.into_iter().map(&mut add).collect();
        Self { world, there, flows }
    }

    fn run(&mut self, secs: f64) {
        self.world.run(at(secs), &mut |_: Time, _: FlowId, _: Side, _: &Event| {});
    }

    fn link(&self) -> LinkStats {
        self.world.link_stats(self.there).expect("a link of this world")
    }

    fn stats(&self, flow: usize) -> SenderStats {
        self.world.near::<Sender>(self.flows[flow]).expect("a connection").stats()
    }

    fn receiver(&self, flow: usize) -> &Receiver {
        self.world.far(self.flows[flow]).expect("a connection")
    }

    fn delivered(&self, flow: usize) -> f64 {
        self.receiver(flow).delivered().as_bits() as f64
    }
}

/// If this test fails, a segment that was sent is neither received nor dropped nor on the path.
#[test]
fn segments_are_conserved() {
    for recovery in BOTH {
        let configs = [0, 700].map(|start| SenderConfig {
            start: Time::ZERO + Span::from_millis(start),
            handshake: false,
            stop: Some(at(20.0)),
            ..bulk(recovery)
        });
        let mut dumbbell = Dumbbell::new(mbps(5.0), 40, 15, configs);
        for (secs, over) in [(3.0, false), (11.1, false), (60.0, true)] {
            dumbbell.run(secs);
            let link = dumbbell.link();
            let sent: u64 = (0..2).map(|flow| dumbbell.stats(flow).sent).sum();
            let received: u64 = (0..2).map(|flow| dumbbell.receiver(flow).received().0).sum();
            assert_eq!(sent, link.left + link.dropped(), "{recovery:?} at {secs} s");
            // At most 9 segments are on the path (20 ms at 5 Mbit/s), 15 in the queue, and 1 in transmission.
            let under_way = link.left - received;
            assert!(if over { under_way == 0 } else { under_way <= 9 + 15 + 1 }, "{under_way} at {secs} s");
            for flow in 0..2 {
                let stats = dumbbell.stats(flow);
                assert!(dumbbell.delivered(flow) as u64 >= stats.acknowledged * PAYLOAD * 8);
                assert_eq!(stats.finished.is_some(), over, "{recovery:?} at {secs} s: {stats:?}");
            }
        }
        assert!(dumbbell.link().dropped() > 50, "{:?}", dumbbell.link());
    }
}

/// If the queue holds one bandwidth-delay product (BDP), the window at a loss is two BDPs. After halving, the window
/// still fills the link exactly. With almost no queue, the window at a loss is one BDP, and the mean utilisation is
/// three quarters.
#[test]
fn a_queue_of_one_bandwidth_delay_product_fills_the_link_and_none_does_not() {
    for recovery in BOTH {
        // 10 Mbit/s for 48 ms are 40 segments, the bandwidth-delay product.
        let mut full = Dumbbell::new(mbps(10.0), 48, 40, [bulk(recovery)]);
        full.run(100.0);
        let utilisation = full.link().usage.utilisation.expect("time has passed");
        assert!(utilisation > 0.98, "{recovery:?}: {utilisation}, {:?}", full.stats(0));
        assert!(full.delivered(0) / 100.0 > 0.97 * 10e6 * PAYLOAD as f64 / 1500.0);

        // The queue has room for three segments. The receiver acknowledges every second segment, so the sender may send
        // two segments after each acknowledgement. The third place is for the segment by which the window grows.
        let mut bare = Dumbbell::new(mbps(10.0), 48, 3, [bulk(recovery)]);
        bare.run(100.0);
        let utilisation = bare.link().usage.utilisation.expect("time has passed");
        assert!((0.7..0.85).contains(&utilisation), "{recovery:?}: {utilisation}, {:?}", bare.stats(0));
    }
}

/// Between two losses, the window grows from half of its maximum to its maximum.
#[test]
fn the_saw_tooth_has_the_period_of_its_height() {
    // The window is 80 segments before a loss and 40 segments after the loss. Every second segment is acknowledged.
    // Therefore the window grows by one segment in two round-trip times, and by 40 segments in 80 round-trip times. At
    // 10 Mbit/s, the mean window of 60 segments corresponds to a mean round-trip time of 72 ms.
    let mut dumbbell = Dumbbell::new(mbps(10.0), 48, 40, [bulk(LossRecovery::Sack)]);
    dumbbell.run(50.0);
    let before = dumbbell.stats(0).recoveries;
    dumbbell.run(450.0);
    let period = 400.0 / (dumbbell.stats(0).recoveries - before) as f64;
    assert!((period / (40.0 * 2.0 * 0.072) - 1.0).abs() < 0.15, "{period} s");
    assert_eq!(dumbbell.stats(0).timeouts, 0);
}

#[test]
fn two_flows_share_evenly_in_the_long_run() {
    for recovery in BOTH {
        let configs = [0, 5].map(|start| SenderConfig { start: at(f64::from(start)), ..bulk(recovery) });
        let mut dumbbell = Dumbbell::new(mbps(10.0), 40, 25, configs);
        dumbbell.run(20.0);
        let before = [0, 1].map(|flow| dumbbell.delivered(flow));
        dumbbell.run(420.0);
        let [first, second] = [0, 1].map(|flow| dumbbell.delivered(flow) - before[flow]);
        let jain = (first + second) * (first + second) / (2.0 * (first * first + second * second));
        assert!(jain > 0.95, "{recovery:?}: {first} and {second} bits, {jain}");
    }
}

#[test]
fn a_flow_gives_way_to_another_and_takes_its_share_back() {
    let guest = SenderConfig { start: at(30.0), stop: Some(at(90.0)), ..bulk(LossRecovery::Sack) };
    let mut dumbbell = Dumbbell::new(mbps(10.0), 40, 40, [bulk(LossRecovery::Sack), guest]);
    let mut rate = |from: f64, to: f64| {
        dumbbell.run(from);
        let before = dumbbell.delivered(0);
        dumbbell.run(to);
        (dumbbell.delivered(0) - before) / (to - from) / 1e6
    };
    let (alone, beside, again) = (rate(10.0, 30.0), rate(40.0, 90.0), rate(95.0, 120.0));
    assert!(alone > 9.0 && again > 9.0, "{alone} and {again} Mbit/s alone");
    assert!((2.5..7.5).contains(&beside), "{beside} Mbit/s beside another");
    assert!(dumbbell.stats(1).finished.is_some_and(|at| at < crate::support::at(95.0)));
}

/// Simulates a TCP connection, an RTP session and a stream over one link for 20 s, with `steps` calls of
/// [`World::run`]. The number of calls must not change the results.
fn together(steps: u32) -> (Seen, String, Vec<LinkStats>) {
    let mut world = World::new();
    let mut add = || world.add_link(link(Schedule::constant(mbps(15.0)), 100)).expect("valid");
    let (there, back) = (add(), add());
    world.add_flow(constant(mbps(3.0), vec![there], vec![back])).expect("links of this world");
    world.add_stream(stream(Traffic::Poisson, Schedule::constant(mbps(4.0)), 3, vec![there])).expect("links");
    let tcp = world.add_flow(connection(bulk(LossRecovery::Sack), vec![there], vec![back])).expect("links");
    let mut seen = Seen { log: Some(String::new()), ..Seen::default() };
    (1..=steps).for_each(|step| world.run(at(20.0 * f64::from(step) / f64::from(steps)), &mut seen));
    // The events of a stream may be reported ahead of time, so the lines are compared in sorted order.
    let mut lines: Vec<_> = seen.log.take().unwrap_or_default().lines().map(str::to_owned).collect();
    lines.sort();
    seen.log = Some(lines.join("\n"));
    let (near, far) = ends(&world, tcp);
    let state = format!("{:?} {:?} {:?}", near.stats(), far.delivered(), far.received());
    (seen, state, world.links().filter_map(|link| world.link_stats(link)).collect())
}

#[test]
fn tcp_takes_what_session_and_background_leave() {
    let (seen, state, links) = together(1);
    assert!(links[0].usage.utilisation.expect("time has passed") > 0.97, "{links:?}");
    // The RTP session and the stream send 3 and 4 Mbit/s in packets of 1000 bytes over a link of 15 Mbit/s, for 20 s.
    assert!((seen.sent as f64 / 17_500.0 - 1.0).abs() < 0.03, "{}", seen.sent);
    assert!(seen.received as f64 / seen.sent as f64 > 0.95, "{} of {}", seen.received, seen.sent);
    assert!(state.contains("timeouts: 0"), "{state}");
}

/// If this test fails, two runs have different events, or a run in many steps has other events than a run in one step.
#[test]
fn the_same_world_gives_the_same_connection() {
    let (once, twice, often) = (together(1), together(1), together(700));
    assert!(once.0.log == twice.0.log && once.0.log == often.0.log);
    assert_eq!((&once.1, &once.2), (&twice.1, &twice.2));
    assert_eq!((once.1, once.2), (often.1, often.2));
}

/// A transfer of 100 segments in slow start, from a window of ten, without delayed acknowledgements: the segments are
/// sent in bursts of 10, 20, 40 and 30.
#[test]
fn a_short_transfer_takes_the_round_trips_of_slow_start() {
    let supply = Supply::Transfer(Size::from_bytes(100 * PAYLOAD));
    let mut world = World::new();
    let wide = LinkConfig {
        rate: Schedule::constant(mbps(1000.0)),
        propagation_delay: Span::from_millis(50),
        queue: QueueLimit::Packets(1000),
    };
    let (there, back) = (world.add_link(wide.clone()).expect("valid"), world.add_link(wide).expect("valid"));
    let config = SenderConfig { supply, ..bulk(LossRecovery::Sack) };
    let far = Receiver::new(ReceiverConfig { delayed_acks: None, ..ReceiverConfig::new() }).expect("valid");
    let flow =
        world.add_flow(Flow { far: Box::new(far), ..connection(config, vec![there], vec![back]) }).expect("links");
    world.run(at(10.0), &mut |_: Time, _: FlowId, _: Side, _: &Event| {});
    let (near, far) = ends(&world, flow);
    let took = (near.stats().finished.expect("an end") - Time::ZERO).as_secs_f64();
    // The handshake and the four bursts take one round-trip time each, plus some transmission time on the links.
    assert!((0.5..0.502).contains(&took), "{took} s");
    assert_eq!(far.delivered(), Size::from_bytes(100 * PAYLOAD));
}

/// If this test fails, the oracle does not restart its measurement after a timeout. An older measurement could at once
/// end the slow start after the timeout.
#[test]
fn after_a_timeout_the_oracle_measures_for_a_whole_interval_before_it_tells() {
    let mut world = World::new();
    // The link has rate zero for half a second, so that the retransmission timer expires once.
    let rates =
        Schedule::new(mbps(10.0), vec![(Span::from_secs(3), Rate::ZERO), (Span::from_millis(3500), mbps(10.0))]);
    let (there, back) = (
        world.add_link(link(rates, 1000)).expect("valid"),
        world.add_link(link(Schedule::constant(mbps(10.0)), 1000)).expect("valid"),
    );
    let told = KnownBandwidth::default();
    let config =
        SenderConfig { bandwidth: Some(told.clone()), min_rto: Span::from_millis(200), ..bulk(LossRecovery::Sack) };
    let law =
        SymbiosisConfig { gamma: 0.95, epsilon_per_s: 1.95, noise_weight: 0.0, initial_window: 10.0, packet: SEGMENT };
    let near = Sender::new(config, Law::Window(Box::new(Symbiosis::new(law)))).expect("a valid configuration");
    let far = Receiver::new(ReceiverConfig::new()).expect("a valid configuration");
    let flow = world.add_flow(Flow::new(near, far, vec![there], vec![back])).expect("links of this world");
    let noise = WhiteNoise::new(Schedule::constant(0.0), 1);
    let interval = Span::from_millis(420);
    let oracle = BandwidthOracle { start: Time::ZERO, interval, noise, told };
    world.share_bandwidth(flow, oracle).expect("a flow of this world");
    let (mut out, mut back_at) = (None, None);
    for step in 300..500 {
        let now = f64::from(step) / 100.0;
        world.run(at(now), &mut |_: Time, _: FlowId, _: Side, _: &Event| {});
        let stats = ends(&world, flow).0.stats();
        if stats.timeouts > 0 {
            assert_eq!(stats.timeouts, 1, "the test wants one");
            out = out.or(Some(now));
            back_at = back_at.or(stats.law.bandwidth.map(|_| now));
        }
    }
    let took = back_at.expect("a result") - out.expect("a timeout");
    // The test reads the state every 10 ms. The oracle's measurement takes 420 ms, and restarts at most 10 ms after the
    // timeout.
    assert!((0.41..0.49).contains(&took), "{took} s");
}

#[test]
fn a_connection_that_cannot_be_is_refused() {
    let mut world = World::new();
    let free = LinkConfig { propagation_delay: Span::ZERO, ..link(Schedule::constant(mbps(1.0)), 9) };
    let (one, two) = (world.add_link(free.clone()).expect("valid"), world.add_link(free).expect("valid"));
    let new = |forward, backward| connection(bulk(LossRecovery::Sack), forward, backward);
    assert_eq!(world.add_flow(new(vec![], vec![])), Err(FlowError::NoLink));
    let interval = Span::ZERO;
    let noise = WhiteNoise::new(Schedule::constant(0.0), 1);
    let oracle = BandwidthOracle { start: Time::ZERO, interval, noise, told: KnownBandwidth::default() };
    let flow = world.add_flow(new(vec![one], vec![two])).expect("links of this world");
    assert_eq!(world.share_bandwidth(flow, oracle), Err(FlowError::MeasuringInterval { interval }));
    let mut other = World::new();
    assert_eq!(other.add_flow(new(vec![two], vec![one])), Err(FlowError::UnknownLink { link: 1, links: 0 }));
    assert!(matches!(world.add_flow(new(vec![one, two, one], vec![two])), Err(FlowError::Ring { .. })));
    other.run(at(1.0), &mut |_: Time, _: FlowId, _: Side, _: &Event| {});
    assert_eq!(other.add_flow(new(vec![one], vec![one])), Err(FlowError::Running));
}
