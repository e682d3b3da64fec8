//! A drop of the available bandwidth, over m and over the buffer: the runs of Fig. 15 and 16.

use super::parse_with;
use super::scenarios::FIG15;
use super::series::{dropped_within, mean_of_link, timeouts_within};
use equipoise_lab::result::Run;
use equipoise_lab::scenario::{Override, Scenario};
use equipoise_lab::statistics::{Estimate, mean_95, share_95};

/// What is available behind the drop, in Mbit/s.
pub(super) const DROPS: [u32; 4] = [20, 30, 40, 50];
/// Buffers in packets, 1000 of which are the bandwidth-delay product.
pub(super) const BUFFERS: [u32; 6] = [250, 500, 1000, 1500, 2000, 3000];
/// The buffer of Fig. 15.
pub(super) const BUFFER: u32 = 1000;
/// Before the drop.
const BEFORE: (f64, f64) = (0.0, 5.5);
/// From the drop to the end of the run.
const BEHIND: (f64, f64) = (5.5, 9.5);

/// What counts of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    pub(super) timed_out: bool,
    /// Packets were lost before the drop.
    pub(super) early: bool,
    /// No packet was lost from the beginning on, so that a longer queue would have made no difference.
    pub(super) calm: bool,
    utilisation: f64,
}

/// All runs of one m, drop and buffer.
pub(super) struct Cell {
    pub(super) available_mbps: u32,
    pub(super) strength: f64,
    pub(super) buffer: u32,
    pub(super) outcomes: Vec<Outcome>,
}

impl Outcome {
    pub(super) fn of(run: &Run) -> Self {
        let early = dropped_within(run, "E0-E1", BEFORE) > 0;
        Self {
            timed_out: timeouts_within(run, 0, BEHIND) > 0,
            early,
            calm: !early && dropped_within(run, "E0-E1", BEHIND) == 0,
            utilisation: mean_of_link(run, "E0-E1", BEHIND, |sample| sample.utilisation),
        }
    }
}

impl Cell {
    /// Share of the runs with a timeout.
    pub(super) fn timed_out(&self) -> Option<Estimate> {
        share_95(self.outcomes.iter().filter(|outcome| outcome.timed_out).count(), self.outcomes.len())
    }

    /// Mean utilisation of the runs that are like this.
    pub(super) fn utilisation(&self, are: impl Fn(&Outcome) -> bool) -> Option<Estimate> {
        mean_95(
            &self.outcomes.iter().filter(|outcome| are(outcome)).map(|outcome| outcome.utilisation).collect::<Vec<_>>(),
        )
    }
}

/// The scenario of a drop, an m and a buffer; `phase` is where between two measurements the drop comes.
pub(super) fn scenario(
    (available_mbps, strength, buffer): (u32, f64, u32),
    phase: f64,
    overrides: &[Override],
) -> Scenario {
    let mut all = vec![
        Override::set("flow.UDP.source.steps.0.rate", format!("{} Mbit/s", 100 - available_mbps)),
        Override::set("flow.symbiosis.window.oscillation", strength),
        Override::set("link.E0-E1.queue", format!("{buffer} packets")),
        Override::set("flow.symbiosis.start", format!("{:.3} ms", 420.0 * phase)),
    ];
    all.extend_from_slice(overrides);
    parse_with(FIG15, &all)
}
