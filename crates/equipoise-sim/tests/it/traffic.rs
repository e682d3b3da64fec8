//! Packets are conserved, queues overflow by just the excess, capacity steps hold, seeds decide everything.

use equipoise::pace::Traffic;
use equipoise::units::{Schedule, Span};
use equipoise_sim::World;

use crate::support::{Seen, at, background, constant, link, mbps, single};

#[test]
fn an_overload_loses_just_its_excess() {
    // 20 Mbit/s into 15: a quarter is lost once the queue of 100 packets is full.
    let overload = Schedule::constant(mbps(20.0));
    let (seen, world) = single(Traffic::Constant, overload, link(Schedule::constant(mbps(15.0)), 100), 1, 40.0);
    let stats = world.link_stats(world.links().next().expect("a link")).expect("the only link");
    assert_eq!(seen.sent, stats.forwarded + stats.dropped);
    let excess = 625.0 * 40.0 - 100.0;
    assert!((stats.dropped as f64 - excess).abs() <= 2.0, "{} dropped, {excess} expected", stats.dropped);
    assert_eq!(stats.longest_queue, 100);
    assert!(stats.utilisation.expect("time has passed") > 0.999);
}

#[test]
fn a_capacity_step_takes_hold_at_its_time() {
    // 10 Mbit/s fit into 15 and, from 10 s on, not into 5: 625 packets a second are too many.
    let capacity = Schedule::new(mbps(15.0), vec![(Span::from_secs(10), mbps(5.0))]);
    let (_, world) = single(Traffic::Constant, Schedule::constant(mbps(10.0)), link(capacity, 1000), 1, 20.0);
    let stats = world.link_stats(world.links().next().expect("a link")).expect("the only link");
    assert!((stats.dropped as f64 - (6250.0 - 1000.0)).abs() <= 3.0, "{stats:?}");
}

/// Each traffic model loads a link as it says. Allowed for are one packet on an even schedule, and about five standard
/// errors of what is drawn: 281 250 packets, 5000 bursts and as many silences.
#[test]
fn sources_offer_their_mean_rate() {
    let on_off = Traffic::OnOff { on: Span::from_millis(25), off: Span::from_millis(25) };
    let secs = 250.0;
    for (traffic, rate, mean, tolerance) in
        [(Traffic::Constant, 9.0, 9.0, 4e-6), (Traffic::Poisson, 9.0, 9.0, 0.01), (on_off, 12.0, 6.0, 0.05)]
    {
        let wide = link(Schedule::constant(mbps(15.0)), u32::MAX);
        let (seen, world) = single(traffic.clone(), Schedule::constant(mbps(rate)), wide, 1, secs);
        let stats = world.link_stats(world.links().next().expect("a link")).expect("the only link");
        let offered = stats.offered.as_bits() as f64 / secs / 1e6;
        assert!((offered / mean - 1.0).abs() < tolerance, "{traffic:?}: {offered} Mbit/s, not {mean}");
        assert_eq!((seen.sent, stats.dropped), (stats.forwarded, 0), "{traffic:?}");
        let utilisation = stats.utilisation.expect("time has passed");
        assert!((utilisation * 15.0 / offered - 1.0).abs() < 1e-3, "{traffic:?}: {utilisation} of 15 Mbit/s");
    }
}

/// A chain of three links and a dumbbell's two flows over its middle: what is sent is received, dropped or under way.
#[test]
fn packets_are_conserved_on_chains_and_dumbbells() {
    let mut world = World::new();
    let mut add = |rate: f64, queue| world.add_link(link(Schedule::constant(mbps(rate)), queue)).expect("valid");
    let (first, middle, last) = (add(100.0, 50), add(15.0, 20), add(100.0, 50));
    let flows = [
        background(Traffic::Poisson, Schedule::constant(mbps(12.0)), 5, vec![first, middle, last]),
        background(
            Traffic::OnOff { on: Span::from_millis(100), off: Span::from_millis(100) },
            Schedule::constant(mbps(20.0)),
            6,
            vec![middle],
        ),
    ];
    for flow in flows {
        world.add_flow(flow).expect("links of this world");
    }
    let mut seen = Seen::default();
    world.run(at(30.0), &mut seen);
    world.stop(&mut seen);
    world.run(at(31.0), &mut seen);
    let dropped: u64 = world.links().filter_map(|link| world.link_stats(link)).map(|stats| stats.dropped).sum();
    assert!(dropped > 1000, "this dumbbell is overloaded: {dropped}");
    assert_eq!(seen.sent, seen.received + dropped);
}

fn log(seed: u64) -> String {
    let mut world = World::new();
    let there = world.add_link(link(Schedule::constant(mbps(15.0)), 100)).expect("valid");
    let back = world.add_link(link(Schedule::constant(mbps(15.0)), 100)).expect("valid");
    world.add_flow(constant(mbps(3.0), vec![there], vec![back])).expect("links of this world");
    let cross = background(Traffic::Poisson, Schedule::constant(mbps(9.0)), seed, vec![there]);
    world.add_flow(cross).expect("links of this world");
    let mut seen = Seen { log: Some(String::new()), ..Seen::default() };
    world.run(at(5.0), &mut seen);
    seen.log.unwrap_or_default()
}

#[test]
fn the_same_seed_gives_the_same_events_and_another_seed_others() {
    assert!(log(1) == log(1), "two runs of one seed differ");
    assert!(log(1) != log(2), "two seeds give the same run");
}

/// A world run in one go and in many small steps is the same world.
#[test]
fn pausing_changes_nothing() {
    let run = |steps: u32| {
        let mut world = World::new();
        let only = world.add_link(link(Schedule::constant(mbps(15.0)), 100)).expect("valid");
        let cross = background(Traffic::Poisson, Schedule::constant(mbps(9.0)), 3, vec![only]);
        world.add_flow(cross).expect("a link of this world");
        let mut seen = Seen { log: Some(String::new()), ..Seen::default() };
        (1..=steps).for_each(|step| world.run(at(2.0 * f64::from(step) / f64::from(steps)), &mut seen));
        seen.log
    };
    assert!(run(1) == run(400));
}
