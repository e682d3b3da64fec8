//! Statistics of several paths → how much of a session's total rate each of them carries.
//!
//! A session over several interfaces decides twice: how much to send in all, which is a
//! [`Controller`](super::Controller)'s business, and where. A [`Scheduler`] answers the second question once in a period.
//!
//! Source: Asvarujanon 2014, Sec. 3. The attractor perturbation model says how each path's mean delay answers to a change
//! of its rate, so the changes that make the delay of all packets least can be calculated ([`law`]).
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

/// A path's number, by which the two ends and their worlds call it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u16);

impl core::fmt::Display for PathId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// A path as a scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// Which one.
    pub path: PathId,
    /// It answers, or is too young to have been asked; a dead path carries nothing.
    pub alive: bool,
    /// What it was given last; zero for a path that is new.
    pub rate: Rate,
    /// Its one-way delay in the period that ends now; `None` for too few samples, and where no period ends.
    pub delay: Option<DelaySummary>,
}

/// What a path is given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Rate of IP packets.
    pub rate: Rate,
    /// What the scheduler says of it.
    pub snapshot: Snapshot,
}

/// Divides a session's total among its paths.
pub trait Scheduler: Send + Sync + fmt::Debug {
    /// A share for each of `paths`, in their order. They sum to `total`, where any path may carry anything.
    ///
    /// Called at the end of a period, with its statistics, and without any when a path appears or goes, or when the total
    /// changes in between.
    fn split(&mut self, total: Rate, paths: &[PathView]) -> Vec<Share>;
}

/// A scheduler on the heap, as a session holds it.
pub type BoxedScheduler = Box<dyn Scheduler>;

/// Rates in whole bit/s out of shares in Mbit/s, with the sum of the shares kept to the bit.
fn whole(shares_mbps: &[f64], total: Rate) -> Vec<Rate> {
    let mut bps: Vec<u64> = shares_mbps.iter().map(|mbps| libm::round((mbps * 1e6).max(0.0)) as u64).collect();
    let sum = bps.iter().fold(0u64, |sum, bps| sum.saturating_add(*bps));
    // What rounding has left over, where the total is carried at all, does not show in the largest share.
    if sum.abs_diff(total.as_bps()) <= bps.len() as u64
        && let Some(largest) = bps.iter_mut().max()
    {
        *largest = (*largest + total.as_bps()).saturating_sub(sum);
    }
    bps.into_iter().map(Rate::from_bps).collect()
}

/// The same share for every path that is alive.
fn equal_mbps(total: Rate, paths: &[PathView]) -> Vec<f64> {
    let alive = paths.iter().filter(|path| path.alive).count().max(1);
    let each = total.as_mbps_f64() / alive as f64;
    paths.iter().map(|path| if path.alive { each } else { 0.0 }).collect()
}
