//! Divides the runs of a report into simulated and live ones.

use super::chart::Style;
use super::figure::look;
use crate::result::{FlowResult, Report, Run, World};

/// All simulated runs, or all live runs, of a report. There is at least one run.
pub(super) struct InWorld<'a> {
    pub(super) name: &'static str,
    /// The style of the lines of these runs.
    pub(super) style: Style,
    pub(super) runs: Vec<&'a Run>,
}

/// Returns the group of simulated runs and the group of live runs of the report, without empty groups.
pub(super) fn worlds(report: &Report) -> Vec<InWorld<'_>> {
    let runs = |world| report.runs.iter().filter(|run| run.world == world).collect();
    let with_runs = [World::Sim, World::Live].map(|world| {
        let (style, name) = look(world);
        InWorld { name, style, runs: runs(world) }
    });
    let mut found: Vec<_> = with_runs.into_iter().filter(|world| !world.runs.is_empty()).collect();
    // Dash patterns distinguish simulated from live lines. If all lines are of one kind, dashes would only make the
    // lines harder to see.
    if let [only] = found.as_mut_slice() {
        only.style.dash = "";
    }
    found
}

impl InWorld<'_> {
    /// Returns the number of runs that have kept their time series.
    pub(super) fn drawn(&self) -> usize {
        let samples = |flow: &FlowResult| flow.tcp.as_ref().is_some_and(|tcp| !tcp.samples.is_empty());
        let has_series = |run: &Run| run.flows.iter().any(|flow| !flow.intervals.is_empty() || samples(flow));
        self.runs.iter().filter(|run| has_series(run)).count()
    }

    /// Returns the name with a capital letter, for the beginning of a sentence.
    pub(super) fn title(&self) -> String {
        let mut letters = self.name.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
    }

    /// Returns the seeds of the runs in words: "seed 1", or "20 runs, seeds 1 to 20".
    pub(super) fn seeds(&self) -> String {
        match self.runs.as_slice() {
            [first, .., last] => format!("{} runs, seeds {} to {}", self.runs.len(), first.seed, last.seed),
            runs => runs.first().map(|run| format!("seed {}", run.seed)).unwrap_or_default(),
        }
    }
}
