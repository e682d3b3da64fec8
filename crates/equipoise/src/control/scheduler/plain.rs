use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{PathId, PathView, Scheduler, Share, equal_mbps, whole};
use crate::control::{Reason, Snapshot};
use crate::units::Rate;

fn fixed(rates: Vec<Rate>) -> Vec<Share> {
    let snapshot = Snapshot { reason: Some(Reason::Fixed), ..Snapshot::default() };
    rates.into_iter().map(|rate| Share { rate, snapshot }).collect()
}

/// Everything on one path, whatever happens: a comparator (Asvarujanon 2014, Sec. 4.4).
#[derive(Clone, Copy, Debug)]
pub struct Single {
    path: PathId,
}

impl Single {
    /// Everything on `path`.
    pub const fn new(path: PathId) -> Self {
        Self { path }
    }
}

impl Scheduler for Single {
    fn split(&mut self, total: Rate, paths: &[PathView]) -> Vec<Share> {
        fixed(paths.iter().map(|view| if view.path == self.path { total } else { Rate::ZERO }).collect())
    }
}

/// An equal rate on every path that is alive: a comparator (Asvarujanon 2014, Sec. 4.4).
#[derive(Clone, Copy, Debug, Default)]
pub struct Equal;

impl Scheduler for Equal {
    fn split(&mut self, total: Rate, paths: &[PathView]) -> Vec<Share> {
        fixed(whole(&equal_mbps(total, paths), total))
    }
}

/// Nearly everything on the path with the least mean delay in the last period: a comparator (Asvarujanon 2014, Sec.
/// 4.4).
///
/// Readings: a path without a report in the last period counts with its last report; if no path has reported yet, all
/// carry the same rate; a total too small for the probes is divided equally.
#[derive(Clone, Debug)]
pub struct MinDelay {
    probe: Rate,
    means_s: BTreeMap<PathId, f64>,
}

impl MinDelay {
    /// With a rate of `probe` on each of the other paths.
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
        let known = paths.iter().enumerate().filter(|(_, view)| view.alive);
        let known = known.filter_map(|(at, view)| self.means_s.get(&view.path).map(|mean_s| (at, *mean_s)));
        let best = known.min_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(at, _)| at);
        let others = paths.iter().filter(|view| view.alive).count().saturating_sub(1);
        let left = total.as_bps().checked_sub(self.probe.as_bps().saturating_mul(others as u64));
        let (Some(best), Some(left)) = (best, left.filter(|left| *left >= self.probe.as_bps())) else {
            return fixed(whole(&equal_mbps(total, paths), total));
        };
        let rate = |(at, view): (usize, &PathView)| match view.alive {
            _ if at == best => Rate::from_bps(left),
            true => self.probe,
            false => Rate::ZERO,
        };
        fixed(paths.iter().enumerate().map(rate).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::DelaySummary;

    fn path(number: u16, alive: bool, mean_ms: Option<f64>) -> PathView {
        let delay = mean_ms.map(|ms| DelaySummary { mean_s: ms / 1e3, variance_s2: 1e-6, samples: 9 });
        PathView { path: PathId(number), alive, rate: Rate::ZERO, delay }
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
}
