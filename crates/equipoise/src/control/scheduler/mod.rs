//! Divides a session's total rate among several paths, by the statistics of each path.
//!
//! A session over several interfaces makes two decisions: the total rate, which a [`Controller`](super::Controller)
//! decides, and the share of each path, which a [`Scheduler`] decides at least once per period.
//!
//! Source: Asvarujanon 2014, Sec. 3. The attractor perturbation model predicts how each path's mean delay responds to a
//! change of its rate, so the changes that minimise the mean delay of all packets can be calculated ([`law`]).
//!
//! | symbol | name | unit |
//! | --- | --- | --- |
//! | `a_i`, `Δa_i` | rate of path i, step of this rate | Mbit/s |
//! | `x_i`, `σ_i²` | mean and variance of the one-way delay of path i | s, s² |
//! | `b_i` | coefficient of response of path i | 1/(s·Mbit/s) |
//! | `c_i = b_i σ_i²` | growth of the mean delay of path i with its rate | s/(Mbit/s) |
//! | `D` | change of the total rate | Mbit/s |
//!
//! [`ApScheduler`] is the paper's method; [`Single`], [`Equal`] and [`MinDelay`] are its comparators.

mod ap;
pub mod law;
mod plain;
mod pool;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

pub use ap::{ApScheduler, ApSchedulerConfig};
pub use plain::{Equal, MinDelay, Single};
pub use pool::{PeriodDelay, pooled};

use super::Snapshot;
pub use super::catalogue::{SchedulerEntry, find_scheduler as find, scheduler_entries as entries};
use crate::measure::DelaySummary;
use crate::units::Rate;

/// The number of a path, which both endpoints use to identify the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u16);

impl core::fmt::Display for PathId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// The state of a path, as input of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// Number of the path.
    pub path: PathId,
    /// Whether the path responds; also `true` if the path is too new to have been queried. A dead path carries no
    /// packets.
    pub alive: bool,
    /// The rate last assigned to the path; zero for a new path.
    pub rate: Rate,
    /// The path's one-way delay in the period that ends now; `None` if there are too few samples, or if no period ends.
    pub delay: Option<DelaySummary>,
    /// The highest rate that the path may carry, set by the path's own control law; `None` if there is no limit.
    pub most: Option<Rate>,
}

impl PathView {
    /// Returns the highest rate that the path may carry, in Mbit/s: zero if the path is dead, infinite if there is no
    /// limit.
    fn most_mbps(&self) -> f64 {
        if self.alive { self.most.map_or(f64::INFINITY, Rate::as_mbps_f64) } else { 0.0 }
    }
}

/// The share of the total rate that a scheduler assigns to a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The rate at which IP packets may be sent on the path.
    pub rate: Rate,
    /// The scheduler's explanation of the share.
    pub snapshot: Snapshot,
}

/// Divides a session's total rate among its paths.
pub trait Scheduler: Send + Sync + fmt::Debug {
    /// Returns a share for each of `paths`, in the same order. The sum of the shares is `total`, or less if the maximum
    /// rates of the paths do not allow `total`.
    ///
    /// At the end of each scheduler period, the session calls this method, and `paths` contains the delays of the
    /// paths. The session also calls this method during a period: when a path appears or disappears, when the total
    /// rate changes, or when the maximum rate of a path changes. In these calls, `paths` contains no delays.
    fn split(&mut self, total: Rate, paths: &[PathView]) -> Vec<Share>;
}

/// A scheduler on the heap, as a session owns it.
pub type BoxedScheduler = Box<dyn Scheduler>;

/// Converts shares in Mbit/s to rates in whole bit/s. If the sum of the shares is `total`, the sum of the rates is also
/// `total`, as far as the paths' limits allow.
fn whole(shares_mbps: &[f64], total: Rate, paths: &[PathView]) -> Vec<Rate> {
    let mut bps: Vec<u64> = shares_mbps.iter().map(|mbps| libm::round((mbps * 1e6).max(0.0)) as u64).collect();
    let sum = bps.iter().fold(0u64, |sum, bps| sum.saturating_add(*bps));
    // A difference of at most 1 bit/s per path comes from rounding, and is added to the largest share. A larger
    // difference means that the paths cannot carry the total.
    if sum.abs_diff(total.as_bps()) <= bps.len() as u64
        && let Some(largest) = bps.iter_mut().max()
    {
        let missing = total.as_bps().saturating_sub(sum);
        *largest = largest.saturating_add(missing).saturating_sub(sum.saturating_sub(total.as_bps()));
    }
    bps.into_iter().zip(paths).map(|(bps, path)| within(Rate::from_bps(bps), path)).collect()
}

/// Limits a rate to what the path may carry.
fn within(rate: Rate, path: &PathView) -> Rate {
    path.most.map_or(rate, |most| rate.min(most))
}

/// Returns an equal share in Mbit/s for every path that is alive, but not more than the path may carry.
fn equal_mbps(total: Rate, paths: &[PathView]) -> Vec<f64> {
    let alive = || paths.iter().filter(|path| path.alive).map(PathView::most_mbps);
    let mut each = total.as_mbps_f64() / alive().count().max(1) as f64;
    // Some paths cannot carry the equal share, so the share of the other paths is higher. Then more paths may be unable
    // to carry their share. Therefore the share is computed again, at most once for each path.
    for _ in 0..paths.len() {
        let full = || alive().filter(|most| *most < each);
        let open = alive().count() - full().count();
        if full().count() == 0 || open == 0 {
            break;
        }
        each = (total.as_mbps_f64() - full().sum::<f64>()) / open as f64;
    }
    paths.iter().map(|path| each.min(path.most_mbps())).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::Size;

    /// Generates paths that either all have a highest rate of their own, or all have none.
    fn views() -> impl Strategy<Value = Vec<PathView>> {
        let rate = || 0u64..20_000_000;
        let delay = proptest::option::of((-1.0f64..2.0, 0.0f64..1e-2));
        let path = (any::<bool>(), rate(), delay, rate());
        (any::<bool>(), proptest::collection::vec(path, 0..8)).prop_map(|(have_laws, paths)| {
            let paths = (0..).zip(paths).map(|(at, (alive, rate, delay, most))| PathView {
                path: PathId(at),
                alive,
                rate: Rate::from_bps(rate),
                delay: delay.map(|(mean_s, variance_s2)| DelaySummary { mean_s, variance_s2, samples: 10 }),
                most: have_laws.then_some(Rate::from_bps(most)),
            });
            paths.collect()
        })
    }

    proptest! {
        /// If this test fails, a scheduler exceeds the limit of a path, or sends less than the total although paths
        /// could carry more.
        #[test]
        fn no_more_than_the_total_is_carried_and_no_more_than_each_path_may(
            rounds in proptest::collection::vec((views(), 0u64..60_000_000), 1..4),
        ) {
            for entry in entries() {
                let given: &[(&str, &str)] = if entry.name == "single" { &[("path", "1")] } else { &[] };
                let parameters = entry.parse(given).expect("right");
                let mut scheduler = entry.build(&parameters, Size::from_bytes(1000)).expect("right");
                for (paths, total) in &rounds {
                    let shares = scheduler.split(Rate::from_bps(*total), paths);
                    prop_assert_eq!(shares.len(), paths.len());
                    let sum: u64 = shares.iter().map(|share| share.rate.as_bps()).sum();
                    prop_assert!(sum <= *total, "{}: {} of {}", entry.name, sum, total);
                    for (share, path) in shares.iter().zip(paths) {
                        prop_assert!(path.most.is_none_or(|most| share.rate <= most), "{}: {share:?}", entry.name);
                    }
                    let alive = || paths.iter().filter(|path| path.alive);
                    let room = alive().fold(0u64, |sum, path| sum.saturating_add(path.most.map_or(u64::MAX, Rate::as_bps)));
                    // The scheduler `single` uses only one path, so it need not fill the other paths. With the other
                    // schedulers, rounding may cost each path up to 2 bit/s.
                    let fills = entry.name == "single" || sum + 2 * paths.len() as u64 >= room.min(*total);
                    prop_assert!(fills, "{}: {} of {} where {} have room", entry.name, sum, total, room);
                }
            }
        }
    }
}
