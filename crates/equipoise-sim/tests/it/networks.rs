//! Tests on random and on unusual networks. If a test fails, the results depend on how far the simulator computes
//! ahead.

use equipoise::units::{Schedule, Share, Size, Span};
use equipoise_path::link::{
    Capacity, Codel, Discipline, FqCodel, Jitter, LinkStats, Loss, PipeConfig, QueueLimit, Reordering,
};
use equipoise_path::source::Traffic;
use equipoise_sim::tcp::LossRecovery;
use equipoise_sim::{FlowError, LinkId, World};
use proptest::prelude::*;

use crate::support::{Seen, at, constant, mbps, stream};
use crate::tcp::{bulk, connection};

/// A route over one to three of the four links of a random network; each link occurs at most once.
type Way = Vec<usize>;

#[derive(Clone, Debug)]
enum Guest {
    /// A TCP connection, which reacts to every acknowledgement.
    Tcp(Way, Way),
    Session(Way, Way),
    Stream(Way),
}

fn any_link() -> impl Strategy<Value = PipeConfig> {
    let share = |most: f64| (0.0..most).prop_map(|share| Share::from_fraction(share).expect("a share"));
    let span = |most: i64| (0..most).prop_map(Span::from_micros);
    let by_chance = (share(0.05), share(0.05), share(0.05), span(10_000), 0usize..3).prop_map(
        |(loss, duplication, reorder, time, which)| {
            let discipline = [
                Discipline::DropTail,
                Discipline::Codel(Codel::default()),
                Discipline::FqCodel(FqCodel { flows: 2, ..FqCodel::default() }),
            ][which];
            let reordering = Some(Reordering { share: reorder, by: Span::ZERO - time });
            let jitter = Jitter::HalfNormal(time);
            PipeConfig {
                loss: Loss::Random(loss).into(),
                duplication,
                discipline,
                reordering,
                jitter,
                ..PipeConfig::default()
            }
        },
    );
    let kind = prop_oneof![2 => Just(PipeConfig::default()), 1 => by_chance];
    // Every link has a rate limit, because otherwise TCP's window would grow without bound.
    (kind, 100i64..10_000, 1u32..40, 1.0..20.0f64).prop_map(|(kind, delay, queue, rate)| {
        let capacity = Capacity::Rate(Schedule::constant(mbps(rate)));
        PipeConfig { capacity, delay: Span::from_micros(delay).into(), queue: QueueLimit::Packets(queue), ..kind }
    })
}

fn any_way() -> impl Strategy<Value = Way> {
    proptest::sample::subsequence(vec![0, 1, 2, 3], 1..4).prop_shuffle()
}

fn any_guest() -> impl Strategy<Value = Guest> {
    prop_oneof![
        2 => (any_way(), any_way()).prop_map(|(there, back)| Guest::Tcp(there, back)),
        1 => (any_way(), any_way()).prop_map(|(there, back)| Guest::Session(there, back)),
        1 => any_way().prop_map(Guest::Stream),
    ]
}

/// Runs a network for a second, in `steps` calls of `World::run`. Returns all observations in time order, and the
/// counters of the links; `None` if links form a cycle without delay.
fn run(links: &[PipeConfig], guests: &[Guest], steps: u32) -> Option<(Vec<String>, Vec<LinkStats>)> {
    let mut world = World::seeded(1);
    let ids: Vec<_> = links.iter().map(|link| world.add_link(link.clone()).expect("a valid link")).collect();
    let way = |way: &Way| -> Vec<LinkId> { way.iter().map(|&link| ids[link]).collect() };
    for (guest, seed) in guests.iter().zip(1..) {
        let added = match guest {
            Guest::Tcp(there, back) => world.add_flow(connection(bulk(LossRecovery::Sack), way(there), way(back))),
            Guest::Session(there, back) => world.add_flow(constant(mbps(2.0), way(there), way(back))),
            Guest::Stream(there) => {
                world.add_stream(stream(Traffic::Poisson, Schedule::constant(mbps(3.0)), seed, way(there)))
            }
        };
        match added {
            Err(FlowError::Ring { .. }) => return None,
            added => drop(added.expect("links of this world")),
        }
    }
    let mut seen = Seen { log: Some(String::new()), ..Seen::default() };
    (1..=steps).for_each(|step| world.run(at(f64::from(step) / f64::from(steps)), &mut seen));
    // The events of a stream may be reported before earlier events of other flows. Each line begins with its time, so
    // sorting restores the order.
    let mut lines: Vec<_> = seen.log.unwrap_or_default().lines().map(str::to_owned).collect();
    lines.sort();
    Some((lines, world.links().filter_map(|link| world.link_stats(link)).collect()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// In addition to the assertions of this test, the simulator asserts that no session sends a packet in a period
    /// that the network has already computed.
    #[test]
    fn a_network_runs_the_same_in_one_go_and_in_many_steps(
        links in proptest::collection::vec(any_link(), 4),
        guests in proptest::collection::vec(any_guest(), 1..5),
        steps in 2u32..300,
    ) {
        let (once, often) = (run(&links, &guests, 1), run(&links, &guests, steps));
        if let (Some(once), Some(often)) = (once, often) {
            prop_assert_eq!(once.0.len(), often.0.len());
            let differ = once.0.iter().zip(&often.0).find(|(once, often)| once != often);
            prop_assert!(differ.is_none(), "{differ:?}");
            prop_assert_eq!(once.1, often.1);
        }
    }
}

/// If this test fails, a link processes a packet although an earlier packet may still arrive at the link. In this test,
/// a session sends directly into the middle of another session's route.
#[test]
fn guests_in_the_middle_of_a_way_are_waited_for() {
    let config = |delay| PipeConfig {
        capacity: Capacity::Rate(Schedule::constant(mbps(10.0))),
        delay: Span::from_millis(delay).into(),
        queue: QueueLimit::Bytes(Size::from_bytes(30_000)),
        ..PipeConfig::default()
    };
    let links = [config(20), config(5), config(20), config(5)];
    let guests = [Guest::Tcp(vec![0, 1], vec![2, 3]), Guest::Stream(vec![1]), Guest::Tcp(vec![3, 0], vec![2, 1])];
    assert_eq!(run(&links, &guests, 1), run(&links, &guests, 300));
}

/// A cycle of links with very little delay. In the first case, only streams use the cycle, and sessions use other
/// links. In the second case, the sessions also use the cycle.
#[test]
fn a_ring_with_hardly_any_delay_takes_a_round_for_a_packet_and_not_for_a_nanosecond() {
    let config = |delay: i64, by: i64| PipeConfig {
        capacity: Capacity::Rate(Schedule::constant(mbps(10.0))),
        delay: Span::from_millis(delay).into(),
        queue: QueueLimit::Packets(20),
        reordering: Some(Reordering {
            share: Share::from_fraction(0.01).expect("a share"),
            by: Span::from_millis(-by),
        }),
        ..PipeConfig::default()
    };
    // On the links of the cycle, 1 % of the packets skip the propagation delay of 5 ms.
    let links = [config(5, 5), config(5, 5), config(20, 0), config(20, 0)];
    let streams = [Guest::Stream(vec![0, 1]), Guest::Stream(vec![1, 0])];
    let beside = [&streams[..], &[Guest::Tcp(vec![2], vec![3]), Guest::Session(vec![2], vec![3])]].concat();
    let within = [&streams[..], &[Guest::Tcp(vec![2, 0, 1], vec![3]), Guest::Session(vec![3, 1, 0], vec![2])]].concat();
    for guests in [beside, within] {
        assert_eq!(run(&links, &guests, 1), run(&links, &guests, 100));
    }
}
