//! Statistics of several paths → the share of a session's total rate on each.
//!
//! A session over several interfaces makes two decisions: how much to send in total, which a
//! [`Controller`](super::Controller) decides, and on which path. A [`Scheduler`] makes the second decision once per
//! period.
//!
//! Source: Asvarujanon 2014, Sec. 3. The attractor perturbation model predicts how each path's mean delay responds to a
//! change of its rate, so the changes that minimise the mean delay of all packets can be calculated ([`law`]).
//!
//! | symbol | name | unit |
//! | --- | --- | --- |
//! | `a_i`, `Δa_i` | rate of path i, its step | Mbit/s |
//! | `x_i`, `σ_i²` | mean and variance of its one-way delay | s, s² |
//! | `b_i` | its coefficient of response | 1/(s·Mbit/s) |
//! | `c_i = b_i σ_i²` | growth of its mean delay with its rate | s/(Mbit/s) |
//! | `D` | change of the total | Mbit/s |
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

/// The number of a path, which both ends use to identify it.
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
    /// Whether it responds, or is too new to have been queried. A dead path carries nothing.
    pub alive: bool,
    /// The rate last assigned to it; zero for a new path.
    pub rate: Rate,
    /// Its one-way delay in the period that ends now; `None` for too few samples, and if no period ends.
    pub delay: Option<DelaySummary>,
}

/// The share of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Rate of IP packets.
    pub rate: Rate,
    /// The scheduler's explanation of the share.
    pub snapshot: Snapshot,
}

/// Divides a session's total among its paths.
pub trait Scheduler: Send + Sync + fmt::Debug {
    /// Returns a share for each of `paths`, in their order. They sum to `total`, unless no path may carry anything.
    ///
    /// Called with statistics at the end of a period. Called without statistics when a path appears or disappears, or
    /// when the total changes in between.
    fn split(&mut self, total: Rate, paths: &[PathView]) -> Vec<Share>;
}

/// A scheduler on the heap, as a session holds it.
pub type BoxedScheduler = Box<dyn Scheduler>;

/// Converts shares in Mbit/s to rates in whole bit/s, and keeps their sum exact.
fn whole(shares_mbps: &[f64], total: Rate) -> Vec<Rate> {
    let mut bps: Vec<u64> = shares_mbps.iter().map(|mbps| libm::round((mbps * 1e6).max(0.0)) as u64).collect();
    let sum = bps.iter().fold(0u64, |sum, bps| sum.saturating_add(*bps));
    // Adds the rounding remainder to the largest share, where it does not matter, if the total is carried at all.
    if sum.abs_diff(total.as_bps()) <= bps.len() as u64
        && let Some(largest) = bps.iter_mut().max()
    {
        *largest = (*largest + total.as_bps()).saturating_sub(sum);
    }
    bps.into_iter().map(Rate::from_bps).collect()
}

/// An equal share for every path that is alive.
fn equal_mbps(total: Rate, paths: &[PathView]) -> Vec<f64> {
    let alive = paths.iter().filter(|path| path.alive).count().max(1);
    let each = total.as_mbps_f64() / alive as f64;
    paths.iter().map(|path| if path.alive { each } else { 0.0 }).collect()
}
