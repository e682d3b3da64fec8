//! The runs of a report by their world.

use crate::result::{Report, Run, World};

/// The runs of one world: at least one.
pub(super) struct InWorld<'a> {
    pub(super) name: &'static str,
    pub(super) runs: Vec<&'a Run>,
}

/// The worlds that the report has runs of.
pub(super) fn worlds(report: &Report) -> Vec<InWorld<'_>> {
    let all = [(World::Sim, "simulated"), (World::Live, "live")].into_iter();
    let with_runs =
        all.map(|(world, name)| InWorld { name, runs: report.runs.iter().filter(|run| run.world == world).collect() });
    with_runs.filter(|world| !world.runs.is_empty()).collect()
}

impl InWorld<'_> {
    /// The name as a sentence begins with it.
    pub(super) fn title(&self) -> String {
        let mut letters = self.name.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
    }

    /// "seed 1", or "20 runs, seeds 1 to 20".
    pub(super) fn seeds(&self) -> String {
        match self.runs.as_slice() {
            [first, .., last] => format!("{} runs, seeds {} to {}", self.runs.len(), first.seed, last.seed),
            runs => runs.first().map(|run| format!("seed {}", run.seed)).unwrap_or_default(),
        }
    }
}
