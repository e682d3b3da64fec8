use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::law::{self, Term};
use super::{PathId, PathView, Scheduler, Share, whole};
use crate::control::ap::learn::{Learner, heads};
use crate::control::ap::{Learning, md1};
use crate::control::{Reason, Snapshot};
use crate::measure::DelaySummary;
use crate::units::{Rate, Size};

/// The configuration of an [`ApScheduler`].
#[derive(Clone, Copy, Debug)]
pub struct ApSchedulerConfig {
    /// Coefficient of response b, in 1/(s·Mbit/s): the growth of the mean delay with the rate, divided by the variance
    /// of the delay. If b is learned, this is the initial estimate.
    pub response: f64,
    /// How the coefficient of response b is determined, separately for each path.
    pub learning: Learning,
    /// Maximum change of a path's rate in one period, as a share of the total rate; above 0.
    pub longest_step: f64,
    /// Minimum rate on every path that is alive, so that the path's delay can be measured.
    pub probe: Rate,
    /// Size of an IP packet, which converts between packets/s and Mbit/s.
    pub packet: Size,
}

/// Divides the total rate by attractor perturbation (AP): applies the equations of [`law`] to the reports of each path.
///
/// Source: Asvarujanon 2014, Alg. 1. Our interpretation and additions:
///
/// 1. Before the first report with statistics on any path, all paths that are alive carry the same rate (as in the
///    paper).
/// 2. Every path that is alive carries at least [`ApSchedulerConfig::probe`]. The paper's minimum is zero, at which a
///    path could never show that it has improved.
/// 3. If a live path has no statistics for a whole period while other paths have, its rate is reduced by the longest
///    step, because its queue is probably full. (A single-path sender without reports halves its rate; Waki 2013,
///    Sec. 5.1.) The rate is not reduced if the path has its own control law, which already reacts to missing reports.
/// 4. A dead path carries nothing. The other paths take over its rate at once, even beyond their step limits. The
///    rate beyond the step limits is divided equally.
/// 5. If configured, b is learned from small changes of the rate, called pushes ([`Learning`]). Two paths at a time are
///    pushed in opposite, random directions, so that the total stays the same.
#[derive(Clone, Debug)]
pub struct ApScheduler {
    config: ApSchedulerConfig,
    models: BTreeMap<PathId, Model>,
    periods: u64,
}

/// The model of a path, estimated from its reports.
#[derive(Clone, Debug)]
struct Model {
    learner: Learner,
    /// The expected mean delay of the next report without a push, in seconds. A push is a small deliberate change of
    /// the rate.
    expected_s: Option<f64>,
    /// Variance of the reports' deviations from the expected mean delay, in s².
    surprise_s2: Option<f64>,
}

/// Initial variance of the deviations, as a share of the variance of the delay. A deviation is the mean delay in a
/// report minus the expected mean delay. The single-path controller has the same value.
const FIRST_SURPRISE: f64 = 0.1;
/// Weight of a report in the variance of the deviations from the expected mean delay. It is low because the deviations
/// have long tails.
const SURPRISE_WEIGHT: f64 = 1.0 / 16.0;
/// Maximum size of a push, as a share of the free capacity. A push is a small random change of the rate. The limit
/// applies with `Learning::Adapted` after the probing phase. The value is that of the single-path controller.
const UNREST: f64 = 0.08;

impl ApScheduler {
    /// Creates a scheduler without reports so far.
    pub const fn new(config: ApSchedulerConfig) -> Self {
        Self { config, models: BTreeMap::new(), periods: 0 }
    }

    /// Updates the models from the reports of a period.
    fn learn(&mut self, paths: &[PathView]) {
        self.models.retain(|path, _| paths.iter().any(|view| view.path == *path));
        let (learning, response) = (self.config.learning, self.config.response);
        for view in paths {
            let model = self.models.entry(view.path).or_insert_with(|| Model {
                learner: Learner::new(learning, response),
                expected_s: None,
                surprise_s2: None,
            });
            match view.delay {
                Some(delay) => model.observe(&delay),
                None => model.expected_s = None,
            }
        }
    }

    fn response(&self, path: PathId) -> f64 {
        self.models.get(&path).map_or(self.config.response, |model| model.learner.response())
    }

    fn term(&self, view: &PathView, total: f64, gives_up: bool) -> Term {
        // Before the first period all paths count as equal, regardless of the order in which they become alive.
        let rate = if self.periods == 0 { 0.0 } else { view.rate.as_mbps_f64() };
        let probe = self.config.probe.as_mbps_f64();
        let cap = if gives_up || view.delay.is_some() { self.config.longest_step * total } else { 0.0 };
        let (min, max) = match view.delay {
            _ if !view.alive => (0.0, 0.0),
            // The rate of a path without reports falls, unless the path has its own control law. That law already
            // reacts to missing reports.
            None if gives_up && view.most.is_none() => (probe, (rate - cap).max(probe)),
            _ => (probe, total.min(view.most_mbps())),
        };
        let (mean_s, variance_s2) = view.delay.map_or((0.0, 0.0), |delay| (delay.mean_s, delay.variance_s2));
        Term { mean_s, growth: self.response(view.path) * variance_s2, rate, min, max, cap }
    }

    /// Changes the rates of two paths in opposite directions, if the coefficient of response b (how strongly the delay
    /// grows with the rate) can be learned from these changes.
    fn push(&mut self, paths: &[PathView], terms: &[Term], rates: &mut [f64]) {
        for (view, (term, rate)) in paths.iter().zip(terms.iter().zip(rates.iter())) {
            let Some(model) = self.models.get_mut(&view.path) else { continue };
            model.learner.rest();
            // The delay that the linear model predicts for the new rate of the path.
            model.expected_s = view.delay.map(|delay| delay.mean_s + term.growth * (rate - term.rate));
        }
        let spoken: Vec<usize> =
            (0..paths.len()).filter(|at| paths.get(*at).is_some_and(|p| p.delay.is_some())).collect();
        let Some(first) = (self.periods as usize).checked_rem(spoken.len()).filter(|_| spoken.len() > 1) else {
            return;
        };
        let pair = [first, first + 1].map(|at| spoken.get(at % spoken.len()).copied().unwrap_or_default());
        let length = pair.iter().map(|at| self.room(*at, paths, terms, rates)).fold(f64::INFINITY, f64::min);
        let coin = paths.get(pair[0]).and_then(|view| view.delay).is_some_and(|delay| heads(delay.mean_s));
        let push = if coin { length } else { -length };
        for (at, push) in pair.into_iter().zip([push, -push]) {
            let (Some(view), Some(rate)) = (paths.get(at), rates.get_mut(at)) else { continue };
            *rate += push;
            if let Some(model) = self.models.get_mut(&view.path) {
                model.learner.push(push);
            }
        }
    }

    /// Returns by how much a path's rate may be pushed up or down, in Mbit/s, within the path's limits and its step
    /// limit.
    fn room(&self, at: usize, paths: &[PathView], terms: &[Term], rates: &[f64]) -> f64 {
        let room = || {
            let (view, term, rate) = (paths.get(at)?, terms.get(at)?, *rates.get(at)?);
            let (model, delay) = (self.models.get(&view.path)?, view.delay?);
            let headroom = md1::headroom_mbps(model.learner.response(), delay.variance_s2, self.config.packet);
            let within = (rate - term.min).min(term.max - rate).min(term.cap - (rate - term.rate).abs());
            Some(model.learner.length_mbps(headroom, UNREST).min(within).max(0.0))
        };
        room().unwrap_or(0.0)
    }
}

impl Model {
    fn observe(&mut self, delay: &DelaySummary) {
        let Some(expected_s) = self.expected_s else { return };
        let pushed_s = self.learner.response() * self.learner.push_mbps() * delay.variance_s2;
        let surprise = delay.mean_s - expected_s - pushed_s;
        let surprise_s2 = self.surprise_s2.unwrap_or(delay.variance_s2 * FIRST_SURPRISE);
        self.learner.observe(surprise, delay.variance_s2, surprise_s2);
        self.surprise_s2 = Some(surprise_s2 + SURPRISE_WEIGHT * (surprise * surprise - surprise_s2));
    }
}

impl Scheduler for ApScheduler {
    fn split(&mut self, total: Rate, paths: &[PathView]) -> Vec<Share> {
        let is_period = paths.iter().any(|view| view.delay.is_some());
        if is_period {
            self.learn(paths);
            self.periods = self.periods.wrapping_add(1);
        }
        // A path may give up rate only if another path can take it.
        let gives_up = paths.iter().any(|view| view.alive && view.delay.is_some());
        let terms: Vec<Term> = paths.iter().map(|view| self.term(view, total.as_mbps_f64(), gives_up)).collect();
        let mut rates = law::rates(&terms, total.as_mbps_f64());
        if is_period {
            self.push(paths, &terms, &mut rates);
        }
        let share = |(view, (rate, term)): (&PathView, (Rate, &Term))| {
            let step = rate.as_mbps_f64() - term.rate;
            let reason = match view.delay {
                _ if !view.alive => Reason::ReportsMissing,
                None => Reason::NoStatistics,
                // Rates were rounded to whole bit/s, so the comparison needs a tolerance.
                Some(_) if step.abs() >= term.cap - 1e-6 => Reason::StepGuard,
                Some(_) => Reason::Law,
            };
            let response = view.delay.map(|_| self.response(view.path));
            Share { rate, snapshot: Snapshot { reason: Some(reason), law_step_bps: Some(step * 1e6), response } }
        };
        paths.iter().zip(whole(&rates, total, paths).into_iter().zip(&terms)).map(share).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TOTAL: Rate = Rate::from_bps(4_000_000);

    fn scheduler(learning: Learning) -> ApScheduler {
        let (probe, packet) = (Rate::from_bps(64_000), Size::from_bytes(1000));
        ApScheduler::new(ApSchedulerConfig { response: 300.0, learning, longest_step: 0.1, probe, packet })
    }

    /// Returns the statistics of a period for an M/D/1 queue with the given propagation delay and capacity.
    fn delay(way_ms: f64, capacity_mbps: f64, rate: Rate) -> DelaySummary {
        let (lambda, mu) = (rate.as_mbps_f64() * 125.0, capacity_mbps * 125.0);
        let lambda = lambda.min(0.99 * mu);
        DelaySummary {
            mean_s: way_ms / 1e3 + md1::mean_time(lambda, mu),
            variance_s2: md1::variance(lambda, mu),
            samples: 100,
        }
    }

    fn settle(scheduler: &mut ApScheduler, queues: &[(f64, f64)], periods: usize) -> Vec<Rate> {
        let view = |at: usize, rate, delay| PathView { path: PathId(at as u16), alive: true, rate, delay, most: None };
        let young: Vec<PathView> = (0..queues.len()).map(|at| view(at, Rate::ZERO, None)).collect();
        let mut rates: Vec<Rate> = scheduler.split(TOTAL, &young).iter().map(|share| share.rate).collect();
        assert!(
            rates.iter().all(|rate| rate.as_bps().abs_diff(TOTAL.as_bps() / queues.len() as u64) < 9),
            "equal at first"
        );
        for _ in 0..periods {
            let views = queues.iter().zip(&rates).enumerate();
            let views: Vec<_> = views
                .map(|(at, ((way, capacity), rate))| view(at, *rate, Some(delay(*way, *capacity, *rate))))
                .collect();
            rates = scheduler.split(TOTAL, &views).iter().map(|share| share.rate).collect();
            assert_eq!(rates.iter().map(|rate| rate.as_bps()).sum::<u64>(), TOTAL.as_bps());
        }
        rates
    }

    /// Returns the mean delay over the packets of all queues at these rates, in ms.
    fn mean_ms(queues: &[(f64, f64)], rates: &[f64]) -> f64 {
        let sum: f64 = queues
            .iter()
            .zip(rates)
            .map(|((way, capacity), rate)| rate * (way + 1e3 * md1::mean_time(rate * 125.0, capacity * 125.0)))
            .sum();
        sum / rates.iter().sum::<f64>()
    }

    /// Compares the result with the least mean delay that a search over all splits finds.
    #[test]
    fn two_queues_settle_where_the_mean_delay_is_within_a_tenth_of_the_least() {
        for queues in [[(5.0, 3.0), (5.0, 3.0)], [(5.0, 3.0), (5.0, 9.0)], [(20.0, 5.0), (22.0, 2.0)]] {
            let rates: Vec<f64> =
                settle(&mut scheduler(Learning::Fixed), &queues, 60).iter().map(|rate| rate.as_mbps_f64()).collect();
            let search = (0..=4000).map(|step| [f64::from(step) / 1e3, 4.0 - f64::from(step) / 1e3]);
            let possible = search.filter(|r| r[0] < 0.99 * queues[0].1 && r[1] < 0.99 * queues[1].1);
            let least = possible.map(|r| mean_ms(&queues, &r)).fold(f64::INFINITY, f64::min);
            let found = mean_ms(&queues, &rates);
            assert!(found < 1.1 * least, "{queues:?}: {rates:?} give {found} ms, {least} ms are possible");
        }
    }

    #[test]
    fn a_dead_path_is_left_at_once_and_taken_up_again_from_its_probe_by_steps() {
        let mut scheduler = scheduler(Learning::Fixed);
        let view = |path, alive, bps, way: Option<f64>| {
            let rate = Rate::from_bps(bps);
            PathView { path: PathId(path), alive, rate, delay: way.map(|way| delay(way, 10.0, rate)), most: None }
        };
        scheduler.periods = 1;
        let mut bps = |views: &[PathView]| -> Vec<u64> {
            scheduler.split(TOTAL, views).iter().map(|share| share.rate.as_bps()).collect()
        };
        assert_eq!(bps(&[view(0, true, 2_000_000, None), view(1, false, 2_000_000, None)]), [4_000_000, 0]);
        assert_eq!(bps(&[view(0, true, 4_000_000, Some(9.0)), view(1, false, 0, None)]), [4_000_000, 0]);
        assert_eq!(bps(&[view(0, true, 4_000_000, None), view(1, true, 0, None)]), [3_936_000, 64_000]);
        assert_eq!(bps(&[view(0, true, 3_936_000, Some(9.0)), view(1, true, 64_000, Some(1.0))]), [3_536_000, 464_000]);
    }

    #[test]
    fn a_path_of_which_a_whole_period_tells_nothing_gives_up_a_step_down_to_its_probe() {
        let mut scheduler = scheduler(Learning::Fixed);
        scheduler.periods = 1;
        let view = |path, bps, way: Option<f64>| {
            let rate = Rate::from_bps(bps);
            PathView { path: PathId(path), alive: true, rate, delay: way.map(|way| delay(way, 10.0, rate)), most: None }
        };
        let mut bps = |first, second: (u64, Option<f64>)| -> Vec<u64> {
            let views = [view(0, first, Some(900.0)), view(1, second.0, second.1)];
            scheduler.split(TOTAL, &views).iter().map(|share| share.rate.as_bps()).collect()
        };
        // The delay of the second path is unknown. Therefore the first path takes over rate from the second path, even
        // though the first path has a long delay.
        assert_eq!(bps(2_000_000, (2_000_000, None)), [2_400_000, 1_600_000]);
        assert_eq!(bps(3_800_000, (200_000, None)), [3_936_000, 64_000]);
        assert_eq!(bps(3_936_000, (64_000, None)), [3_936_000, 64_000]);
    }

    /// Path 0 has far less delay than path 1. However, the law of path 0 limits the rate of path 0, so the rest of the
    /// total rate stays on path 1. If reports on a path are missing, the scheduler does not reduce the path's rate,
    /// because the path's own law already does this.
    #[test]
    fn no_path_is_given_more_than_its_own_law_lets_it_carry() {
        let mut scheduler = scheduler(Learning::Fixed);
        scheduler.periods = 1;
        let view = |path, bps, way: Option<f64>, most| {
            let rate = Rate::from_bps(bps);
            let most = Some(Rate::from_bps(most));
            PathView { path: PathId(path), alive: true, rate, delay: way.map(|way| delay(way, 10.0, rate)), most }
        };
        let mut bps = |views: &[PathView]| -> Vec<u64> {
            scheduler.split(TOTAL, views).iter().map(|share| share.rate.as_bps()).collect()
        };
        let far = |bps, most| view(1, bps, Some(900.0), most);
        assert_eq!(bps(&[view(0, 2_000_000, Some(9.0), 2_100_000), far(2_000_000, 9_000_000)]), [2_100_000, 1_900_000]);
        assert_eq!(bps(&[view(0, 2_000_000, None, 2_000_000), far(2_000_000, 2_000_000)]), [2_000_000, 2_000_000]);
        assert_eq!(bps(&[view(0, 2_000_000, Some(9.0), 1_500_000), far(2_000_000, 1_000_000)]), [1_500_000, 1_000_000]);
    }

    /// Two queues with a capacity of 3.5 Mbit/s carry 2 Mbit/s each. At this load, the coefficient of response b is
    /// 383/(s·Mbit/s) by Waki 2013, Eq. 11, but 1200/(s·Mbit/s) was configured.
    #[test]
    fn a_wrong_b_is_learned_for_each_path_while_the_total_stands() {
        let mut scheduler = scheduler(Learning::Adapted);
        scheduler.config.response = 1200.0;
        settle(&mut scheduler, &[(5.0, 3.5), (5.0, 3.5)], 400);
        for at in 0..2 {
            let learned = scheduler.response(PathId(at));
            assert!((300.0..500.0).contains(&learned), "{learned}");
        }
    }

    fn views() -> impl Strategy<Value = Vec<PathView>> {
        let path = (any::<bool>(), 0u64..20_000_000, proptest::option::of((-1.0f64..2.0, 0.0f64..1e-2)));
        proptest::collection::vec(path, 0..8).prop_map(|paths| {
            let view = |at: usize, alive, bps, delay: Option<(f64, f64)>| PathView {
                path: PathId(at as u16),
                alive,
                rate: Rate::from_bps(bps),
                delay: delay.map(|(mean_s, variance_s2)| DelaySummary { mean_s, variance_s2, samples: 10 }),
                most: None,
            };
            paths.into_iter().enumerate().map(|(at, (alive, bps, delay))| view(at, alive, bps, delay)).collect()
        })
    }

    proptest! {
        #[test]
        fn whatever_the_reports_the_total_is_carried_and_no_dead_path_carries_any(
            rounds in proptest::collection::vec((views(), 0u64..30_000_000), 1..5), adapt: bool,
        ) {
            let mut scheduler = scheduler(if adapt { Learning::Adapted } else { Learning::Fixed });
            for (paths, total) in rounds {
                let shares = scheduler.split(Rate::from_bps(total), &paths);
                let sum: u64 = shares.iter().map(|share| share.rate.as_bps()).sum();
                let alive = paths.iter().filter(|path| path.alive).count() as u64;
                prop_assert_eq!(sum, if alive == 0 { 0 } else { total });
                for (share, path) in shares.iter().zip(&paths) {
                    prop_assert!(path.alive || share.rate == Rate::ZERO);
                    prop_assert!(!path.alive || total < 64_000 * alive || share.rate.as_bps() + alive >= 64_000);
                }
            }
        }
    }
}
