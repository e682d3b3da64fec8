//! Tests with a Poisson source on a link of constant rate. This is an M/D/1 queue: the mean and the variance of a
//! packet's time in the system have closed forms.

use equipoise::control::ap::md1;
use equipoise::measure::Moments;
use equipoise::units::Schedule;
use equipoise_path::source::Traffic;

use crate::support::{link, mbps, single};

/// Student's t with 19 degrees of freedom: the two-sided 99 % quantile.
const T_19: f64 = 2.861;

/// The mean of twenty runs, and the half-width of its 99 % confidence interval.
fn interval(runs: &Moments) -> (f64, f64) {
    assert_eq!(runs.count(), 20);
    let mean = runs.mean().expect("twenty runs");
    (mean, T_19 * runs.standard_deviation().expect("twenty runs") / 20f64.sqrt())
}

/// Means and variances of the time in the system, over twenty seeds. If they differ from theory, the simulator's
/// results are wrong.
#[test]
fn mean_and_variance_of_the_time_in_the_system_are_those_of_m_d_1() {
    for (rho, secs) in [(0.8, 60.0), (0.9, 120.0)] {
        let (mut means, mut variances) = (Moments::EMPTY, Moments::EMPTY);
        for seed in 0..20 {
            let rate = Schedule::constant(mbps(15.0 * rho));
            let infinite = link(Schedule::constant(mbps(15.0)), u32::MAX);
            let (seen, _) = single(Traffic::Poisson, rate, infinite, seed, secs);
            means.push(seen.time_in_system_s.mean().expect("many packets"));
            variances.push(seen.time_in_system_s.variance().expect("many packets"));
        }
        let (mean, half) = interval(&means);
        let theory = md1::mean_time(rho * 1875.0, 1875.0);
        assert!((mean - theory).abs() < half, "load {rho}: mean {mean} ± {half}, theory {theory}");
        assert!(half < 0.05 * theory, "an interval so wide, {half}, proves nothing");
        let (variance, half) = interval(&variances);
        let theory = md1::variance(rho * 1875.0, 1875.0);
        assert!((variance - theory).abs() < half, "load {rho}: variance {variance} ± {half}, theory {theory}");
        assert!(half < 0.1 * theory, "an interval so wide, {half}, proves nothing");
    }
}

/// Compares the link's own counters with theory by Little's law: number of waiting packets = arrival rate x mean
/// waiting time.
#[test]
fn the_links_counters_agree_with_theory() {
    let rate = Schedule::constant(mbps(12.0));
    let (seen, world) = single(Traffic::Poisson, rate, link(Schedule::constant(mbps(15.0)), u32::MAX), 1, 400.0);
    let stats = world.link_stats(world.links().next().expect("a link")).expect("the only link");
    assert!((stats.usage.utilisation.expect("time has passed") - 0.8).abs() < 0.01);
    let waiting = 1500.0 * (md1::mean_time(1500.0, 1875.0) - 1.0 / 1875.0);
    assert!((stats.usage.mean_queue.expect("time has passed") / waiting - 1.0).abs() < 0.1, "{stats:?}");
    assert_eq!((stats.dropped(), stats.left), (0, seen.sent));
}
