//! Tests of RTP sessions in the simulator.

use equipoise::control::PathLoad;
use equipoise::units::Schedule;
use equipoise_path::source::Traffic;
use equipoise_session::Event;
use equipoise_sim::{FlowError, FlowId, Side, Time, World};

use crate::support::{at, constant, link, mbps, stream};

#[test]
fn reports_are_asked_for_answered_and_applied_over_the_links() {
    let mut world = World::new();
    let there = world.add_link(link(Schedule::constant(mbps(15.0)), 1000)).expect("valid");
    let back = world.add_link(link(Schedule::constant(mbps(15.0)), 1000)).expect("valid");
    world.add_flow(constant(mbps(3.0), vec![there], vec![back])).expect("links of this world");
    let mut applied = Vec::new();
    let mut ended = 0;
    let mut observer = |now: Time, _: FlowId, side: Side, event: &Event| match event {
        Event::ReportApplied { number, delay, round_trip, .. } => {
            assert_eq!(side, Side::Near);
            applied.push((now, *number, delay.expect("many packets"), *round_trip));
        }
        Event::Ended { .. } => ended += 1,
        _ => {}
    };
    world.run(at(10.5), &mut observer);
    world.stop(&mut observer);
    world.run(at(11.0), &mut observer);
    assert_eq!(applied.iter().map(|(_, number, ..)| *number).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    for (_, _, delay, round_trip) in applied {
        // A packet of 1000 bytes takes 533.3 µs at 15 Mbit/s. The only other traffic in this direction is one report
        // request per second.
        assert!((delay.mean_s - 5.533_4e-3).abs() < 2e-6, "{delay:?}");
        assert!((round_trip.as_millis_f64() - 10.07).abs() < 0.6, "{round_trip}");
    }
    assert_eq!(ended, 2, "the goodbye ends both sides");
}

/// At each request for a report, the simulator must write into the flow's `PathLoad` the load of the most loaded link
/// on the route. The load is the rate of background traffic and media, as a share of the link's capacity.
#[test]
fn the_path_load_is_written_at_each_request() {
    let mut world = World::new();
    let wide = world.add_link(link(Schedule::constant(mbps(100.0)), 1000)).expect("valid");
    let narrow = world.add_link(link(Schedule::constant(mbps(15.0)), 1000)).expect("valid");
    let flow = world.add_flow(constant(mbps(3.0), vec![wide, narrow], vec![])).expect("links of this world");
    let cell = PathLoad::default();
    world.share_load(flow, cell.clone()).expect("a flow of this world");
    let cross = stream(Traffic::Constant, Schedule::constant(mbps(9.0)), 1, vec![narrow]);
    world.add_stream(cross).expect("a link of this world");
    assert_eq!(cell.get(), None);
    for secs in 1..=5 {
        world.run(at(f64::from(secs) + 0.5), &mut |_: Time, _: FlowId, _: Side, _: &Event| {});
        let load = cell.get().expect("a request was sent");
        assert!((load - 0.8).abs() < 0.005, "{load}");
    }
}

#[test]
fn a_path_over_a_foreign_link_is_refused() {
    let mut other = World::new();
    let config = link(Schedule::constant(mbps(15.0)), 1);
    let foreign = other.add_link(config).expect("valid");
    let mut world = World::new();
    let refused = world.add_flow(constant(mbps(1.0), vec![foreign], vec![]));
    assert_eq!(refused.err(), Some(FlowError::UnknownLink { link: 0, links: 0 }));
}

/// After the start, some links may be computed ahead of the current time. The packets of a flow that is added later
/// would arrive at these links too late.
#[test]
fn a_flow_that_comes_after_time_has_passed_is_refused() {
    let mut world = World::new();
    world.run(at(1.0), &mut |_: Time, _: FlowId, _: Side, _: &Event| {});
    assert_eq!(world.add_flow(constant(mbps(1.0), vec![], vec![])).err(), Some(FlowError::Running));
}
