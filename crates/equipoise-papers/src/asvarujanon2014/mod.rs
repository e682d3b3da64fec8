//! Asvarujanon 2014: the traffic of one session is divided among several paths, either by attractor perturbation (AP)
//! or by another method.

mod beyond;
mod figures;
#[cfg(feature = "live")]
mod live;
mod pairs;
mod part;
mod paths;
mod setting;

use std::path::Path;

use thiserror::Error;

use super::Results;
use super::experiment::{Found, Lab, Mean, Options, Rule, Spec, parse_with};
use equipoise_lab::sim::SimError;

#[cfg(feature = "live")]
pub use self::live::{LIVE, run as run_live};
pub use self::pairs::PairsError;
pub use self::part::Part;

/// Why the experiments cannot be run.
#[derive(Debug, Error)]
pub enum AsvarujanonError {
    /// The simulator refused a scenario, which is a bug.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The measured capacities cannot be used.
    #[error(transparent)]
    Pairs(#[from] PairsError),
}

/// Runs the requested parts of the paper. [`Part::Pairs`] needs the folder `pairs`. Calls `progress` with the share of
/// the runs that are done.
///
/// # Errors
/// [`AsvarujanonError`] if the files of measured pairs of paths cannot be read, or if there are no pairs.
pub fn run(
    parts: &[Part],
    pairs: Option<&Path>,
    options: &Options,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Results, AsvarujanonError> {
    let pairs = if parts.contains(&Part::Pairs) { pairs::read(pairs)? } else { Vec::new() };
    let has = |part| parts.contains(&part);
    let has_figures = has(Part::Fig3) || has(Part::Fig4);
    let planned = [
        (has_figures, figures::planned(options)),
        (has(Part::Fig3), paths::planned(options)),
        (has(Part::Pairs), pairs::planned(&pairs, options)),
        (has(Part::Beyond), beyond::planned(options)),
    ];
    let total = planned.iter().filter(|(wanted, _)| *wanted).map(|(_, runs)| runs).sum();
    let lab = Lab::new(options, total, progress);
    let mut found = Found::default();
    if has(Part::Fig3) {
        paths::run(&lab, &mut found)?;
    }
    if has_figures {
        figures::run(&lab, parts, &mut found)?;
    }
    if has(Part::Pairs) {
        pairs::run(&lab, &pairs, &mut found)?;
    }
    if has(Part::Beyond) {
        beyond::run(&lab, &mut found)?;
    }
    Ok(found.results("Asvarujanon 2014", options, ASSUMPTIONS))
}

/// The claims of all parts that need no measured data, in the order of the parts.
#[cfg_attr(not(test), expect(dead_code, reason = "a test compares them with the committed results"))]
pub(crate) const CLAIMS: &[&[Spec]] = &[paths::CLAIMS, figures::CLAIMS_3, figures::CLAIMS_4, beyond::CLAIMS];

const ASSUMPTIONS: &[&str] = &[
    "The paper's paths were a WiMAX and an LTE router in use. Ours stand for them: a third of the maximum uplink that the paper \
     states for each, 5.1 and 1.9 Mbit/s; 40 and 25 ms of propagation; queues of one second. Its figures are drawn and not printed, \
     so that no number can be laid beside ours: the claims are those of its text.",
    "Others take a fifth of either path: 15 % in bursts of half its capacity, one second long in the mean, and 5 % as Poisson \
     packets. Within a burst LTE leaves less than 1.5 Mbit/s and WiMAX more: that is the lower tolerance of bursts, which the paper \
     saw. What it says of LTE alone and of Min-delay follows from that choice: these claims are marked as fitted.",
    "A path whose reports stay away gives up a step, which the paper does not say. The law was given this rule after the first runs, in \
     which AP's throughput at 4.8 Mbit/s was not clearly above WiMAX-only's: that claim is marked as fitted.",
    "Totals of 1.5 Mbit/s, as in the paper, and 3.0 and 4.8: above what LTE carries, and between the 4.1 that WiMAX leaves and the \
     5.6 that both leave. The paper's two higher ones are on the axes of its figures only; the table of readings has others.",
    "The paper ran its five methods in rotation so that all meet similar networks. Here all five meet the same one: the same seed is the \
     same traffic of others. Differences and ratios are taken run by run, and have the interval of their mean.",
    "Each run has 100 s, split every 5 s. The paper has five runs, we have thirty, for the sake of the intervals. Reports come every \
     0.5 s, so that a silent path is noticed; those of a period are taken together.",
    "b is 600 for each path, which the paper does not print: 300 is that of packets of 1000 bytes (Waki 2013), and b goes with the \
     inverse of their size. The table of readings has 300.",
    "Delay is the mean over all packets that arrive. Throughput counts packets sent in the 100 s that arrive at any time.",
];

#[cfg(test)]
mod tests;
