//! Tests of a session over several paths in the simulator.

use std::collections::BTreeMap;

use equipoise::control::{BoxedController, Cbr, find, scheduler};
use equipoise::measure::{ClockMap, Moments};
use equipoise::units::{Instant, Rate, Schedule, Size, Span};
use equipoise_path::link::{LinkConfig, QueueLimit};
use equipoise_path::source::Traffic;
use equipoise_session::multipath::{Receiver, Sender, Total};
use equipoise_session::rtp::{ReceiverConfig, SenderConfig, StreamConfig};
use equipoise_session::{Event, PathChange, PathId};
use equipoise_sim::{Flow, FlowId, Observer, PathLinks, Side, Time, World};

use crate::support::{at, mbps, stream};

/// Size of every media packet: 500 bytes, as in Asvarujanon 2014, Sec. 4.3.
const PACKET: Size = Size::from_bytes(500);

/// Numbers of packets sent and received on each path in each second. For each received packet, the arrival time and the
/// delay, in s.
#[derive(Default)]
struct Seen {
    sent: BTreeMap<(u16, u64), u64>,
    received: BTreeMap<(u16, u64), u64>,
    delays_s: Vec<(f64, f64)>,
}

impl Observer for Seen {
    fn on_event(&mut self, _: Time, _: FlowId, _: Side, _: &Event) {}

    fn on_path_event(&mut self, now: Time, _: FlowId, _: Side, PathId(path): PathId, event: &Event) {
        let second = now.as_nanos() / 1_000_000_000;
        match event {
            Event::MediaSent { .. } => *self.sent.entry((path, second)).or_default() += 1,
            Event::MediaReceived { delay, .. } => {
                *self.received.entry((path, second)).or_default() += 1;
                self.delays_s.push(((now - Time::ZERO).as_secs_f64(), delay.as_secs_f64()));
            }
            _ => {}
        }
    }
}

impl Seen {
    fn sum(counts: &BTreeMap<(u16, u64), u64>, paths: &[u16], from: u64, to: u64) -> f64 {
        let within = counts.iter().filter(|((path, second), _)| paths.contains(path) && (from..to).contains(second));
        within.map(|(_, count)| *count as f64).sum::<f64>()
    }

    /// Mean rate in Mbit/s that is received on these paths from `from` to `to`, in s.
    fn goodput(&self, paths: &[u16], from: u64, to: u64) -> f64 {
        Self::sum(&self.received, paths, from, to) * PACKET.as_bits() as f64 / 1e6 / (to - from) as f64
    }

    /// Mean one-way delay, in ms, of the packets that arrived at the time `from` (in s) or later.
    fn mean_delay_ms(&self, from: f64) -> f64 {
        let delays: Moments =
            self.delays_s.iter().filter(|(at, _)| *at >= from).map(|(_, delay)| delay * 1e3).collect();
        delays.mean().expect("some packets")
    }
}

/// A path with rate `rate` forward and 10 Mbit/s backward. Both directions have a propagation delay of `millis`.
fn path(world: &mut World, rate: Schedule<Rate>, millis: i64) -> PathLinks {
    let mut add = |rate: Schedule<Rate>| {
        let (propagation_delay, queue) = (Span::from_millis(millis), QueueLimit::Packets(200));
        world.add_link(LinkConfig { rate, propagation_delay, queue }).expect("a valid link")
    };
    PathLinks { forward: vec![add(rate)], backward: vec![add(Schedule::constant(mbps(10.0)))], ..PathLinks::default() }
}

fn session(total: BoxedController, (name, given): (&str, &[(&str, &str)]), paths: Vec<PathLinks>) -> Flow {
    let stream = StreamConfig::new(7, 96, PACKET, "near@test");
    // The overload is part of the test, so the circuit breakers, which would end the session, are switched off.
    let base = SenderConfig::new(stream, Span::from_millis(500), Instant::ZERO, 1);
    let config = SenderConfig { circuit_breakers: false, ..base };
    let entry = scheduler::find(name).expect("in the catalogue");
    let scheduler = entry.build(&entry.parse(given).expect("right"), PACKET).expect("right");
    let far = ReceiverConfig::new(8, "far@test", 7, ClockMap::SYNCHRONISED, 1);
    let near = Sender::new(config, Sender::PERIOD, Total::Pooled(total), scheduler).expect("a valid configuration");
    let far = Receiver::new(far).expect("a valid configuration");
    Flow { near: Box::new(near), far: Box::new(far), paths }
}

/// Runs a session over two paths with a delay of 20 ms and these rates. Poisson cross traffic takes 1 Mbit/s of the
/// first path and 0.5 Mbit/s of the second path.
fn run(total: BoxedController, scheduler: (&str, &[(&str, &str)]), rates: [Schedule<Rate>; 2], secs: u64) -> Seen {
    run_with(total, scheduler, rates, Vec::new(), secs)
}

/// Like `run`, with changes of the second path's state.
fn run_with(
    total: BoxedController,
    scheduler: (&str, &[(&str, &str)]),
    rates: [Schedule<Rate>; 2],
    changes: Vec<(Time, PathChange)>,
    secs: u64,
) -> Seen {
    let mut world = World::new();
    let [wide, narrow] = rates;
    let paths = vec![path(&mut world, wide, 20), PathLinks { changes, ..path(&mut world, narrow, 20) }];
    for (path, (rate, seed)) in paths.iter().zip([(1.0, 1), (0.5, 2)]) {
        let others = stream(Traffic::Poisson, Schedule::constant(mbps(rate)), seed, path.forward.clone());
        world.add_stream(others).expect("a link of this world");
    }
    world.add_flow(session(total, scheduler, paths)).expect("links of this world");
    let mut seen = Seen::default();
    world.run(at(secs as f64), &mut seen);
    seen
}

fn constant(bps: f64) -> BoxedController {
    Box::new(Cbr::new(mbps(bps)))
}

fn steady() -> [Schedule<Rate>; 2] {
    [3.0, 1.5].map(|rate| Schedule::constant(mbps(rate)))
}

/// 2.4 Mbit/s are more than the faster path can carry, and less than both paths together can carry.
#[test]
fn a_total_above_the_better_paths_capacity_is_carried_by_both() {
    let ap = run(constant(2.4), ("ap", &[]), steady(), 100);
    assert!((ap.goodput(&[0, 1], 30, 100) - 2.4).abs() < 0.03, "{}", ap.goodput(&[0, 1], 30, 100));
    let single = run(constant(2.4), ("single", &[("path", "0")]), steady(), 100);
    // The cross traffic leaves 2 Mbit/s to the session. The session may get more, because a full queue also drops
    // packets of the cross traffic.
    assert!((1.9..2.3).contains(&single.goodput(&[0, 1], 30, 100)), "{}", single.goodput(&[0, 1], 30, 100));
    let (ap, single) = (ap.mean_delay_ms(30.0), single.mean_delay_ms(30.0));
    assert!(ap < 40.0 && single > 200.0, "{ap} ms, and {single} ms with a full queue of 200 packets");
}

/// The rate of the second path is zero from 30 s to 40 s.
#[test]
fn a_path_that_is_dead_for_ten_seconds_costs_a_moment() {
    let outage = vec![(Span::from_secs(30), Rate::ZERO), (Span::from_secs(40), mbps(1.5))];
    let rates = [Schedule::constant(mbps(3.0)), Schedule::new(mbps(1.5), outage)];
    let seen = run(constant(1.5), ("ap", &[]), rates, 70);
    let on = |path, from, to| Seen::sum(&seen.sent, &[path], from, to);
    assert!(on(1, 25, 30) > 50.0, "it was used before");
    // The sender stops using the path after 1.5 s to 2 s without a report (three to four report intervals).
    assert!(on(1, 33, 40) < 1.0, "and is not, from 2.5 s after its death");
    assert!((on(0, 33, 40) - 7.0 * 375.0).abs() <= 4.0, "the other carries all");
    assert!(on(1, 40, 45) > 0.0, "it is used again within 5 s of its return");
    assert!(on(1, 60, 70) > 300.0, "and has a share of its own again");
    let lost = Seen::sum(&seen.sent, &[0, 1], 0, 60) - Seen::sum(&seen.received, &[0, 1], 0, 60);
    assert!(lost < 300.0, "{lost}: less than 0.8 s of the whole");
}

/// The host tells the session that its network interface is down, so the session need not wait for a timeout.
#[test]
fn a_path_that_is_taken_away_for_ten_seconds_costs_what_was_under_way() {
    let changes = vec![(at(30.0), PathChange::Down), (at(40.0), PathChange::Up)];
    let seen = run_with(constant(1.5), ("ap", &[]), steady(), changes, 70);
    let on = |path, from, to| Seen::sum(&seen.sent, &[path], from, to);
    assert!(on(1, 25, 30) > 50.0 && on(1, 30, 40) < 1.0, "{} and {}", on(1, 25, 30), on(1, 30, 40));
    assert!((on(0, 31, 40) - 9.0 * 375.0).abs() <= 4.0, "the other carries all");
    assert!(on(1, 40, 45) > 0.0 && on(1, 60, 70) > 300.0, "it is used again, and has a share of its own");
    let lost = Seen::sum(&seen.sent, &[0, 1], 0, 60) - Seen::sum(&seen.received, &[0, 1], 0, 60);
    assert!(lost.abs() < 20.0, "{lost}: nothing but what is in flight at the ends of the seconds");
}

/// The controller allows up to 5 Mbit/s; the two paths together can carry 3 Mbit/s besides the cross traffic.
#[test]
fn the_total_is_held_to_a_target_where_the_paths_cannot_carry_more() {
    let entry = find("ap").expect("in the catalogue");
    let given = [("target", "60 ms"), ("min_rate", "0.5 Mbit/s"), ("max_rate", "5 Mbit/s")];
    let total = entry.build(&entry.parse(&given).expect("right"), PACKET).expect("right");
    let seen = run(total, ("ap", &[]), steady(), 300);
    let (goodput, delay) = (seen.goodput(&[0, 1], 100, 300), seen.mean_delay_ms(100.0));
    assert!((1.5..3.0).contains(&goodput) && (25.0..150.0).contains(&delay), "{goodput} Mbit/s, {delay} ms");
    let sent = Seen::sum(&seen.sent, &[0, 1], 100, 298);
    let received = Seen::sum(&seen.received, &[0, 1], 100, 298);
    assert!(received > 0.97 * sent, "{received} of {sent}");
}

#[test]
fn the_same_world_gives_the_same_packets() {
    let [one, other] = [(); 2].map(|()| run(constant(2.4), ("ap", &[("learn", "adapt")]), steady(), 40));
    assert!(one.sent == other.sent && one.received == other.received && one.delays_s == other.delays_s);
}
