//! Compares waiting times in queues with closed forms. Other delays on a path must not count as waiting time.

use equipoise::control::ap::md1;
use equipoise::measure::Moments;
use equipoise::units::{Schedule, Span};
use equipoise_path::link::{Codel, Discipline, Jitter, PipeConfig};
use equipoise_path::source::Traffic;
use equipoise_session::Event;
use equipoise_sim::{Arrival, FlowId, Observer, Side, Time, World};

use crate::support::{PACKET, at, constant, link, mbps, stream};

/// The waiting times of packets that arrived at the far endpoint, in order of arrival.
#[derive(Default)]
struct Waits {
    far: Vec<Span>,
    /// Number of packets that arrived at the near endpoint.
    back: usize,
}

impl Observer for Waits {
    fn on_event(&mut self, _: Time, _: FlowId, _: Side, _: &Event) {}

    fn on_arrival(&mut self, _: Time, _: FlowId, side: Side, Arrival { waited, .. }: Arrival) {
        match side {
            Side::Far => self.far.push(waited),
            Side::Near => self.back += 1,
        }
    }
}

/// Returns the waiting times of the packets of a stream over a chain of links.
fn waits<L: Into<PipeConfig>>(traffic: Traffic, rate_mbps: f64, links: Vec<L>, seed: u64, secs: f64) -> Vec<Span> {
    let mut world = World::seeded(seed);
    let path = links.into_iter().map(|link| world.add_link(link).expect("a valid link")).collect();
    world.add_stream(stream(traffic, Schedule::constant(mbps(rate_mbps)), seed, path)).expect("links of this world");
    let mut waits = Waits::default();
    world.run(at(secs), &mut waits);
    waits.far
}

/// Packets of 8000 bits take 1 ms at 8 Mbit/s. A packet arrives every 0.8 ms, so each packet waits 0.2 ms longer than
/// the previous packet.
#[test]
fn above_the_capacity_each_packet_waits_longer_than_the_one_before_by_the_excess() {
    let found = waits(Traffic::Constant, 10.0, vec![link(Schedule::constant(mbps(8.0)), u32::MAX)], 1, 2.0);
    assert!(found.len() > 1900, "{}", found.len());
    for (number, wait) in found.iter().enumerate() {
        assert_eq!(*wait, Span::from_micros(200 * number as i64));
    }
}

/// At the first link, a packet arrives every 0.8 ms and takes 1 ms, so each packet waits 0.2 ms longer than the
/// previous packet. At the second link, a packet arrives every 1 ms and takes 2 ms, so each packet waits 1 ms longer.
#[test]
fn waits_on_two_links_add() {
    let links = vec![8.0, 4.0].into_iter().map(|rate| link(Schedule::constant(mbps(rate)), u32::MAX)).collect();
    let found = waits(Traffic::Constant, 10.0, links, 1, 2.0);
    assert!(found.len() > 900, "{}", found.len());
    for (number, wait) in found.iter().enumerate() {
        assert_eq!(*wait, Span::from_micros(1200 * number as i64));
    }
}

/// Evenly spaced packets at half of the capacity: no packet waits in the queue, whatever delays follow after the queue.
#[test]
fn jitter_propagation_and_transmission_are_no_wait() {
    for jitter in [Jitter::None, Jitter::Uniform(Span::from_millis(4)), Jitter::HalfNormal(Span::from_millis(5))] {
        let config = PipeConfig { jitter, ..link(Schedule::constant(mbps(8.0)), 100).into() };
        let found = waits(Traffic::Constant, 4.0, vec![config], 1, 5.0);
        assert!(found.len() > 2400 && found.iter().all(|wait| *wait == Span::ZERO), "{jitter:?}");
    }
}

/// CoDel with a target that is never exceeded must report the same waiting times as a drop-tail queue. A drop-tail
/// queue with jitter after it must report these waiting times, too.
#[test]
fn a_managed_queue_tells_the_waits_of_drop_tail() {
    let target = Span::from_secs(100);
    let plain = || PipeConfig::from(link(Schedule::constant(mbps(8.0)), 10_000));
    let codel = Discipline::Codel(Codel { target, ..Codel::default() });
    let managed = PipeConfig { discipline: codel, ..plain() };
    let jittered = PipeConfig { jitter: Jitter::Uniform(Span::from_millis(1)), ..plain() };
    let found = [plain(), managed, jittered].map(|config| waits(Traffic::Poisson, 7.0, vec![config], 1, 20.0));
    assert!(found[0].iter().any(|wait| *wait > Span::from_millis(3)), "some wait");
    assert!(found[0][..15_000] == found[1][..15_000] && found[0][..15_000] == found[2][..15_000]);
}

/// M/D/1: the mean waiting time is rho / (2 mu (1 - rho)). With a service rate mu of 1875 packets/s and a load rho of
/// 0.5, this is 1/3750 s.
#[test]
fn the_mean_wait_behind_a_poisson_source_is_that_of_m_d_1() {
    let mut means = Moments::EMPTY;
    for seed in 0..20 {
        let infinite = link(Schedule::constant(mbps(15.0)), u32::MAX);
        let found = waits(Traffic::Poisson, 7.5, vec![infinite], seed, 60.0);
        let sum: f64 = found.iter().map(|wait| wait.as_secs_f64()).sum();
        means.push(sum / found.len() as f64);
    }
    let mean = means.mean().expect("twenty runs");
    // Student's t with 19 degrees of freedom: the two-sided 99 % quantile.
    let half = 2.861 * means.standard_deviation().expect("twenty runs") / 20f64.sqrt();
    let theory = 0.5 / (2.0 * 1875.0 * 0.5);
    assert!((mean - theory).abs() < half && half < 0.05 * theory, "{mean} ± {half}, theory {theory}");
    assert!((theory - (md1::mean_time(937.5, 1875.0) - 1.0 / 1875.0)).abs() < 1e-12);
}

/// If this test fails, the arrivals of a session's media or feedback packets are not reported, or the reported waiting
/// times are too long.
#[test]
fn a_session_over_a_narrow_link_waits_as_a_stream_does() {
    let mut world = World::new();
    let [there, back] = [8.0, 100.0].map(|rate| link(Schedule::constant(mbps(rate)), u32::MAX));
    let [there, back] = [there, back].map(|link| world.add_link(link).expect("a valid link"));
    world.add_flow(constant(mbps(4.0), vec![there], vec![back])).expect("links of this world");
    let mut waits = Waits::default();
    world.run(at(10.0), &mut waits);
    let (count, whole) = (waits.far.len(), PACKET.as_bits() as f64 / 8e6);
    // A media packet waits only if a report request, which is short, is sent directly before it.
    let waited = waits.far.iter().filter(|wait| **wait > Span::ZERO);
    assert!(count > 4900 && waits.back > 5 && waited.clone().count() < count / 100);
    assert!(waited.clone().all(|wait| wait.as_secs_f64() < whole), "less than a packet's time");
}
