//! Waki 2013: every analysis and experiment of Sec. 4 and 7, and experiments beyond the paper.

mod criteria;
mod fig10;
mod fig12;
mod fig13;
mod fig5;
mod fig7;
mod learning;
mod readings;
mod robust;
mod runaway;
mod scenarios;

use self::fig13::Wanted;
use self::readings::{AT_ZERO, BOTH_WAYS, MAIN, SEC_5_2, read};
use super::Results;
use super::experiment::{Found, Lab, Options, Rule, Spec, parse, parse_with, ratio, scaled, with_interval};
use equipoise_lab::sim::SimError;

/// A part of the paper that can be run separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Fig. 5: the coefficient of response b as a function of the load, from the closed form for an M/D/1 queue.
    Fig5,
    /// Fig. 7: the increase of the mean delay when the rate rises by 0.1 Mbit/s, as a function of the variance of the
    /// delay. There are 45 rates and ten traffic patterns.
    Fig7,
    /// Fig. 10 and 11: delay and rate of each controller over time in one run.
    Fig10,
    /// Fig. 12: criteria of AP and of constant rates over thirty runs.
    Fig12,
    /// Fig. 13: criteria of AP and AIMD over a hundred runs.
    Fig13,
    /// Fig. 14: sending rates of AP and AIMD over a hundred runs.
    Fig14,
    /// Beyond the paper: how often the delay runs away under the printed control law, what causes this, and a robust
    /// control law.
    Runaway,
    /// Future work of the paper: the coefficient of response b is learned instead of given.
    Learning,
}

impl Part {
    /// All parts of the paper.
    pub const ALL: [Self; 8] =
        [Self::Fig5, Self::Fig7, Self::Fig10, Self::Fig12, Self::Fig13, Self::Fig14, Self::Runaway, Self::Learning];
}

/// Runs the requested parts of the paper. Calls `progress` with the share of the runs that are done.
///
/// # Errors
/// [`SimError`] if a scenario cannot be run, which is a bug.
pub fn run(parts: &[Part], options: &Options, progress: &(dyn Fn(f64) + Sync)) -> Result<Results, SimError> {
    let mut parts = parts.to_vec();
    parts.sort_unstable();
    parts.dedup();
    let has = |part: Part| parts.contains(&part);
    let criteria = has(Part::Fig13) || has(Part::Fig14);
    let planned = [
        (has(Part::Fig7), fig7::planned(options)),
        (has(Part::Fig10), fig10::planned(options)),
        (has(Part::Fig12), fig12::planned(options)),
        (criteria, fig13::planned(options)),
        (has(Part::Runaway), runaway::planned(options) + robust::planned(options)),
        (has(Part::Learning), learning::planned(options)),
    ];
    let total = planned.iter().filter(|(wanted, _)| *wanted).map(|(_, runs)| runs).sum();
    let lab = Lab::new(options, total, progress);
    let mut found = Found::default();
    if has(Part::Fig5) {
        fig5::run(&mut found);
    }
    if has(Part::Fig7) {
        fig7::run(&lab, &mut found)?;
    }
    if has(Part::Fig10) {
        fig10::run(&lab, &mut found)?;
    }
    if has(Part::Fig12) {
        fig12::run(&lab, &mut found)?;
    }
    if criteria {
        fig13::run(&lab, Wanted { fig13: has(Part::Fig13), fig14: has(Part::Fig14) }, &mut found)?;
    }
    if has(Part::Runaway) {
        let printed = runaway::run(&lab, &mut found)?;
        robust::run(&lab, &printed, &mut found)?;
    }
    if has(Part::Learning) {
        learning::run(&lab, &mut found)?;
    }
    Ok(found.results("Waki 2013", options, ASSUMPTIONS))
}

/// The claims of all parts, in the order of the parts.
#[cfg_attr(not(test), expect(dead_code, reason = "a test compares them with the committed results"))]
pub(crate) const CLAIMS: &[&[Spec]] = &[
    fig5::CLAIMS,
    fig7::CLAIMS,
    fig10::CLAIMS,
    fig12::CLAIMS,
    fig13::CLAIMS_13,
    fig13::CLAIMS_14,
    runaway::CLAIMS,
    robust::CLAIMS,
    learning::CLAIMS,
];

const ASSUMPTIONS: &[&str] = &[
    "All links are drop-tail queues of 1000 packets; a packet is 1000 bytes on every link, as in the paper's ns-2.",
    "The session starts at 1 s: the paper prints that its control acts at 201 and 211 s. Background traffic starts at 0 s.",
    "Media go from S1 to D1 alone: the paper has a sender of SR and a receiver of RR, of 64 and 72 bytes. The table of readings has media \
     both ways in one session.",
    "The initial transient is taken to last 50 s; the paper does not state it. The table of readings has 20 and 100 s.",
    "AIMD runs for 600 s before the paper's 400 s, because the paper looks at its steady state. The table of readings has it within \
     the 400 s.",
    "The percentages of Fig. 14 are of AIMD's rate, as `higher than that of AIMD by` says. Of AP's rate they fit better; these claims are \
     marked as fitted.",
    "An interval's delay T_i is the mean over the packets sent in it, intervals of 10 s from the session's start on, whatever the report \
     interval; the 9 s that remain of the run are left out.",
    "A run has run away where three intervals in a row, 30 s, have a mean delay above twice the target.",
    "Medians are compared rather than means: a few runs that have run away ruin every mean. Both are in the tables.",
];

#[cfg(test)]
mod tests;
