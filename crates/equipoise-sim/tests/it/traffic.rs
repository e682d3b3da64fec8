//! Tests of streams: packets are conserved, queues drop exactly the excess, the capacity changes when scheduled, and
//! seeds determine all random numbers.

use equipoise::units::{Instant, Schedule, Span};
use equipoise_path::link::LinkStats;
use equipoise_path::source::{Source, Traffic};
use equipoise_session::Event;
use equipoise_sim::{FlowId, Side, SimClock, Stream, Time, World};

use crate::support::{PACKET, PROPAGATION, Seen, at, constant, link, mbps, single, stream};

#[test]
fn an_overload_loses_just_its_excess() {
    // 20 Mbit/s enter a link of 15 Mbit/s. Once the queue of 100 packets is full, a quarter of the packets is lost.
    let overload = Schedule::constant(mbps(20.0));
    let (seen, world) = single(Traffic::Constant, overload, link(Schedule::constant(mbps(15.0)), 100), 1, 40.0);
    let stats = world.link_stats(world.links().next().expect("a link")).expect("the only link");
    assert_eq!(seen.sent, stats.left + stats.dropped());
    let excess = 625.0 * 40.0 - 100.0;
    assert!((stats.dropped() as f64 - excess).abs() <= 2.0, "{} dropped, {excess} expected", stats.dropped());
    assert_eq!(stats.usage.longest_queue, 100);
    assert!(stats.usage.utilisation.expect("time has passed") > 0.999);
}

#[test]
fn a_capacity_step_takes_hold_at_its_time() {
    // The stream sends packets of 1000 bytes at 10 Mbit/s. The capacity is 15 Mbit/s at first, and 5 Mbit/s from 10 s
    // on. From then on, 625 packets per second exceed the capacity: 6250 packets in 10 s. The queue takes 1000 of them.
    let capacity = Schedule::new(mbps(15.0), vec![(Span::from_secs(10), mbps(5.0))]);
    let (_, world) = single(Traffic::Constant, Schedule::constant(mbps(10.0)), link(capacity, 1000), 1, 20.0);
    let stats = world.link_stats(world.links().next().expect("a link")).expect("the only link");
    assert!((stats.dropped() as f64 - (6250.0 - 1000.0)).abs() <= 3.0, "{stats:?}");
}

/// If this test fails, the mean rate of a traffic model is not the model's stated rate. The tolerance is one packet for
/// constant traffic, and about five standard errors for random traffic. The standard error follows from the 281 250
/// packets of a run with Poisson traffic, or from the 5000 bursts and 5000 silences of a run with on-off traffic.
#[test]
fn sources_offer_their_mean_rate() {
    let on_off = Traffic::OnOff { on: Span::from_millis(25), off: Span::from_millis(25) };
    let secs = 250.0;
    for (traffic, rate, mean, tolerance) in
        [(Traffic::Constant, 9.0, 9.0, 4e-6), (Traffic::Poisson, 9.0, 9.0, 0.01), (on_off, 12.0, 6.0, 0.05)]
    {
        let wide = link(Schedule::constant(mbps(15.0)), u32::MAX);
        let (seen, world) = single(traffic, Schedule::constant(mbps(rate)), wide, 1, secs);
        let stats = world.link_stats(world.links().next().expect("a link")).expect("the only link");
        let offered = stats.entered_bytes.as_bits() as f64 / secs / 1e6;
        assert!((offered / mean - 1.0).abs() < tolerance, "{traffic:?}: {offered} Mbit/s, not {mean}");
        assert_eq!((seen.sent, stats.dropped()), (stats.left, 0), "{traffic:?}");
        let utilisation = stats.usage.utilisation.expect("time has passed");
        assert!((utilisation * 15.0 / offered - 1.0).abs() < 1e-3, "{traffic:?}: {utilisation} of 15 Mbit/s");
    }
}

/// Three links in a chain, a stream over all three links, and another stream over the middle link. If the test fails, a
/// packet that was sent is neither received nor dropped.
#[test]
fn packets_are_conserved_on_chains_and_dumbbells() {
    let mut world = World::new();
    let mut add = |rate: f64, queue| world.add_link(link(Schedule::constant(mbps(rate)), queue)).expect("valid");
    let (first, middle, last) = (add(100.0, 50), add(15.0, 20), add(100.0, 50));
    let flows = [
        stream(Traffic::Poisson, Schedule::constant(mbps(12.0)), 5, vec![first, middle, last]),
        stream(
            Traffic::OnOff { on: Span::from_millis(100), off: Span::from_millis(100) },
            Schedule::constant(mbps(20.0)),
            6,
            vec![middle],
        ),
    ];
    for flow in flows {
        world.add_stream(flow).expect("links of this world");
    }
    let mut seen = Seen::default();
    world.run(at(30.0), &mut seen);
    world.stop(&mut seen);
    world.run(at(31.0), &mut seen);
    let dropped: u64 = world.links().filter_map(|link| world.link_stats(link)).map(|stats| stats.dropped()).sum();
    assert!(dropped > 1000, "this dumbbell is overloaded: {dropped}");
    assert_eq!(seen.sent, seen.received + dropped);
}

fn log(seed: u64) -> String {
    let mut world = World::new();
    let there = world.add_link(link(Schedule::constant(mbps(15.0)), 100)).expect("valid");
    let back = world.add_link(link(Schedule::constant(mbps(15.0)), 100)).expect("valid");
    world.add_flow(constant(mbps(3.0), vec![there], vec![back])).expect("links of this world");
    let cross = stream(Traffic::Poisson, Schedule::constant(mbps(9.0)), seed, vec![there]);
    world.add_stream(cross).expect("links of this world");
    let mut seen = Seen { log: Some(String::new()), ..Seen::default() };
    world.run(at(5.0), &mut seen);
    seen.log.unwrap_or_default()
}

#[test]
fn the_same_seed_gives_the_same_events_and_another_seed_others() {
    assert!(log(1) == log(1), "two runs of one seed differ");
    assert!(log(1) != log(2), "two seeds give the same run");
}

/// Simulates a session over three links and a stream over the last two links. The simulation takes `steps` calls of
/// `run`. If `apart` is true, each of the last two links has an additional stream, which sends nothing.
fn chain(steps: u32, apart: bool) -> (Seen, Vec<LinkStats>) {
    let mut world = World::new();
    let mut add = |rate: f64| world.add_link(link(Schedule::constant(mbps(rate)), 20)).expect("valid");
    let (first, middle, last, back) = (add(20.0), add(15.0), add(100.0), add(100.0));
    world.add_flow(constant(mbps(6.0), vec![first, middle, last], vec![back])).expect("links of this world");
    let rate = Schedule::constant(mbps(9.5));
    world.add_stream(stream(Traffic::Poisson, rate, 3, vec![middle, last])).expect("links of this world");
    for only in [middle, last].into_iter().filter(|_| apart) {
        let silent = stream(Traffic::Poisson, Schedule::constant(mbps(0.0)), 1, vec![only]);
        world.add_stream(silent).expect("links of this world");
    }
    let mut seen = Seen { log: Some(String::new()), ..Seen::default() };
    (1..=steps).for_each(|step| world.run(at(5.0 * f64::from(step) / f64::from(steps)), &mut seen));
    let stats = world.links().filter_map(|link| world.link_stats(link)).collect();
    // `run` may report an event of a stream before earlier events of the session. So the order of the lines depends on
    // the calls of `run`, and the lines are sorted.
    let mut lines: Vec<_> = seen.log.take().unwrap_or_default().lines().map(str::to_owned).collect();
    lines.sort();
    seen.log = Some(lines.join("\n"));
    (seen, stats)
}

/// If this test fails, a simulation has other events or counters in many short calls of `run` than in one call.
#[test]
fn pausing_changes_nothing() {
    let (once, often) = (chain(1, false), chain(700, false));
    assert!(once.0.received > 5000 && once.1.iter().any(|stats| stats.dropped() > 0), "{:?}", once.1);
    assert!(once.0.log == often.0.log);
    assert_eq!(once.1, often.1);
}

/// If this test fails, streams that send nothing change the results.
#[test]
fn going_ahead_changes_nothing() {
    let (ahead, apart) = (chain(1, false), chain(1, true));
    assert!(ahead.0.log == apart.0.log);
    assert_eq!(ahead.1, apart.1);
}

/// Compares the simulated delays with a recursion. For the packets of both sources, in order of departure, the
/// recursion computes when each link becomes free.
#[test]
fn delays_over_three_links_are_those_of_the_recursion() {
    let sources = || {
        [(Traffic::Constant, 3.0, 1), (Traffic::Poisson, 9.0, 2)].map(|(traffic, rate, number)| {
            Source::<SimClock>::new(traffic, Schedule::constant(mbps(rate)), PACKET, Instant::ZERO, (1, number))
        })
    };
    let rates = [1000.0, 15.0, 1000.0];
    let mut world = World::new();
    let path = rates.map(|rate| world.add_link(link(Schedule::constant(mbps(rate)), 1000)).expect("valid"));
    for source in sources() {
        world.add_stream(Stream { source, forward: path.to_vec() }).expect("links of this world");
    }
    let mut found = Vec::new();
    world.run(at(20.0), &mut |_: Time, _: FlowId, _: Side, event: &Event| {
        if let Event::MediaReceived { delay, .. } = event {
            found.push(delay.as_secs_f64());
        }
    });
    let mut free = [0.0f64; 3];
    let mut sources = sources();
    for delay in found {
        let next = |source: &Source<SimClock>| source.next_departure().expect("it never ends").as_nanos();
        let source = if next(&sources[1]) < next(&sources[0]) { &mut sources[1] } else { &mut sources[0] };
        let sent = next(source) as f64 / 1e9;
        source.advance();
        let arrived = rates.iter().zip(&mut free).fold(sent, |at, (rate, free)| {
            *free = free.max(at) + 8000.0 / (rate * 1e6);
            *free + PROPAGATION.as_secs_f64()
        });
        assert!(
            (arrived - sent - delay).abs() < 5e-9,
            "sent at {sent}: {delay} s, by the recursion {}",
            arrived - sent
        );
    }
}
