use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{PathId, PathView, Scheduler, Share, equal_mbps, whole, within};
use crate::control::{Reason, Snapshot};
use crate::units::Rate;

fn fixed(rates: Vec<Rate>) -> Vec<Share> {
    let snapshot = Snapshot { reason: Some(Reason::Fixed), ..Snapshot::default() };
    rates.into_iter().map(|rate| Share { rate, snapshot }).collect()
}

/// Sends all data on one path, whatever the reports say, for comparison with other schedulers (Asvarujanon 2014,
/// Sec. 4.4).
#[derive(Clone, Copy, Debug)]
pub struct Single {
    path: PathId,
}

impl Single {
    /// Creates a scheduler that sends all data on `path`.
    pub const fn new(path: PathId) -> Self {
        Self { path }
    }
}

impl Scheduler for Single {
    fn split(&mut self, total: Rate, paths: &[PathView]) -> Vec<Share> {
        let share = |view: &PathView| if view.path == self.path { within(total, view) } else { Rate::ZERO };
        fixed(paths.iter().map(share).collect())
    }
}

/// Sends an equal rate on every path that is alive, for comparison with other schedulers (Asvarujanon 2014, Sec. 4.4).
#[derive(Clone, Copy, Debug, Default)]
pub struct Equal;

impl Scheduler for Equal {
    fn split(&mut self, total: Rate, paths: &[PathView]) -> Vec<Share> {
        fixed(whole(&equal_mbps(total, paths), total, paths))
    }
}

/// Sends data at the probe rate on each live path. Sends all other data on the path with the least mean delay in the
/// last period. This scheduler is for comparison with other schedulers (Asvarujanon 2014, Sec. 4.4).
///
/// Our interpretation: for a path without a report in the last period, its latest report counts. If no live path has
/// reported yet, all live paths carry the same rate. A total that is too small for the probes is divided equally.
#[derive(Clone, Debug)]
pub struct MinDelay {
    probe: Rate,
    means_s: BTreeMap<PathId, f64>,
}

impl MinDelay {
    /// Creates a scheduler that sends at the rate `probe` on each path except the path with the least mean delay.
    pub const fn new(probe: Rate) -> Self {
        Self { probe, means_s: BTreeMap::new() }
    }
}

impl Scheduler for MinDelay {
    fn split(&mut self, total: Rate, paths: &[PathView]) -> Vec<Share> {
        self.means_s.retain(|path, _| paths.iter().any(|view| view.path == *path));
        for view in paths {
            if let Some(mean_s) = view.delay.map(|delay| delay.mean_s).filter(|mean_s| mean_s.is_finite()) {
                self.means_s.insert(view.path, mean_s);
            }
        }
        let probe = |view: &PathView| if view.alive { within(self.probe, view) } else { Rate::ZERO };
        let mut rates: Vec<Rate> = paths.iter().map(probe).collect();
        let probes = rates.iter().fold(0u64, |sum, rate| sum.saturating_add(rate.as_bps()));
        let mut known: Vec<(f64, usize)> = (paths.iter().enumerate().filter(|(_, view)| view.alive))
            .filter_map(|(at, view)| Some((*self.means_s.get(&view.path)?, at)))
            .collect();
        let Some(mut left) = total.as_bps().checked_sub(probes).filter(|_| !known.is_empty()) else {
            return fixed(whole(&equal_mbps(total, paths), total, paths));
        };
        // The path with the least delay is filled first. If the rate exceeds this path's maximum rate, the next path
        // carries the excess. Paths without a known delay are last.
        known.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let unknown = (0..paths.len()).filter(|at| known.iter().all(|(_, known)| known != at));
        let order: Vec<usize> = known.iter().map(|(_, at)| *at).chain(unknown).collect();
        for at in order {
            if let (Some(view), Some(rate)) = (paths.get(at).filter(|view| view.alive), rates.get_mut(at)) {
                let more = within(Rate::from_bps(rate.as_bps().saturating_add(left)), view).as_bps() - rate.as_bps();
                *rate = Rate::from_bps(rate.as_bps() + more);
                left -= more;
            }
        }
        fixed(rates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::DelaySummary;

    fn path(number: u16, alive: bool, mean_ms: Option<f64>) -> PathView {
        let delay = mean_ms.map(|ms| DelaySummary { mean_s: ms / 1e3, variance_s2: 1e-6, samples: 9 });
        PathView { path: PathId(number), alive, rate: Rate::ZERO, delay, most: None }
    }

    fn kbps(scheduler: &mut impl Scheduler, paths: &[PathView]) -> Vec<u64> {
        let shares = scheduler.split(Rate::from_bps(1_500_000), paths);
        shares.iter().map(|share| share.rate.as_bps() / 1000).collect()
    }

    #[test]
    fn single_and_equal_do_not_look_at_delays() {
        let paths = [path(0, true, Some(10.0)), path(4, true, Some(90.0)), path(7, false, None)];
        assert_eq!(kbps(&mut Single::new(PathId(4)), &paths), [0, 1500, 0]);
        assert_eq!(kbps(&mut Single::new(PathId(5)), &paths), [0, 0, 0], "there is no such path");
        assert_eq!(kbps(&mut Equal, &paths), [750, 750, 0]);
    }

    #[test]
    fn min_delay_follows_the_least_mean_and_remembers_it() {
        let mut scheduler = MinDelay::new(Rate::from_bps(64_000));
        let news = |first, second| [path(0, true, first), path(1, true, second)];
        assert_eq!(kbps(&mut scheduler, &news(None, None)), [750, 750]);
        assert_eq!(kbps(&mut scheduler, &news(Some(30.0), Some(20.0))), [64, 1436]);
        assert_eq!(kbps(&mut scheduler, &news(None, Some(40.0))), [1436, 64]);
        assert_eq!(kbps(&mut scheduler, &news(None, None)), [1436, 64]);
        assert_eq!(kbps(&mut scheduler, &[path(0, false, None), path(1, true, None)]), [0, 1500], "the best one died");
    }

    #[test]
    fn a_total_too_small_for_probes_is_divided_alike() {
        let mut scheduler = MinDelay::new(Rate::from_bps(900_000));
        assert_eq!(kbps(&mut scheduler, &[path(0, true, Some(3.0)), path(1, true, Some(2.0))]), [750, 750]);
    }

    #[test]
    fn what_a_path_may_not_carry_the_others_take_as_far_as_they_may() {
        let limited = |kbps: [Option<u64>; 3]| {
            let mut paths = [path(0, true, Some(20.0)), path(1, true, Some(10.0)), path(2, true, Some(30.0))];
            paths
                .iter_mut()
                .zip(kbps)
                .for_each(|(path, kbps)| path.most = kbps.map(|kbps| Rate::from_bps(kbps * 1000)));
            paths
        };
        assert_eq!(kbps(&mut Equal, &limited([Some(100), None, Some(600)])), [100, 800, 600]);
        assert_eq!(kbps(&mut Equal, &limited([Some(100), Some(200), Some(300)])), [100, 200, 300]);
        let mut min_delay = MinDelay::new(Rate::from_bps(64_000));
        assert_eq!(kbps(&mut min_delay, &limited([None, Some(900), None])), [536, 900, 64]);
        assert_eq!(kbps(&mut min_delay, &limited([Some(500), Some(900), Some(40)])), [500, 900, 40]);
        assert_eq!(kbps(&mut Single::new(PathId(1)), &limited([None, Some(900), None])), [0, 900, 0]);
    }
}
