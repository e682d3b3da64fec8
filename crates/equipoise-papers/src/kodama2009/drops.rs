//! The runs of Fig. 15 and 16, in which the available bandwidth drops. The runs differ in the buffer size and in the
//! strength m of the self-induced oscillation.

use super::readings::Way;
use super::scenarios::FIG15;
use super::series::{dropped_within, mean_of_link, timeouts_within};
use super::{Lab, parse_with};
use equipoise_lab::result::Run;
use equipoise_lab::scenario::{Override, Scenario};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, mean_95, share_95};

/// Available bandwidth after the drop, in Mbit/s.
pub(super) const DROPS: [u32; 4] = [20, 30, 40, 50];
/// Buffer sizes in packets. For comparison, the bandwidth-delay product is 1000 packets.
pub(super) const BUFFERS: [u32; 6] = [250, 500, 1000, 1500, 2000, 3000];
/// The buffer size of Fig. 15, in packets.
pub(super) const BUFFER: u32 = 1000;
/// The part of a run before the drop of the available bandwidth, in seconds.
const BEFORE: (f64, f64) = (0.0, 5.5);
/// The part of a run from the drop of the available bandwidth to the end of the run, in seconds.
const BEHIND: (f64, f64) = (5.5, 9.5);

/// Values from one run, for the claims and figures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// Whether a retransmission timeout occurred after the drop of the available bandwidth.
    timed_out: bool,
    /// Whether packets were lost before the available bandwidth dropped. If so, the window is already small at the
    /// drop, and a later timeout may be caused by the earlier loss.
    early: bool,
    /// Whether no packet was lost in the whole run. If so, the run would be the same with a larger buffer.
    calm: bool,
    utilisation: f64,
}

/// The parameters of a run. All runs of a [`Cell`] have the same parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    /// Available bandwidth after the drop, in Mbit/s, before multiplication by `scale`.
    pub(super) available_mbps: u32,
    /// Strength m of the self-induced oscillation, as in the thesis. Its unit depends on the interpretation: see
    /// [`Way::strength`].
    pub(super) m: f64,
    /// Buffer size in packets.
    pub(super) buffer: u32,
    /// All rates, and the bandwidth-delay product, are those of the thesis multiplied by this factor.
    pub(super) scale: u32,
}

/// All runs with the same parameters.
pub(super) struct Cell {
    pub(super) place: Place,
    outcomes: Vec<Outcome>,
}

impl Outcome {
    fn of(run: &Run) -> Self {
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
    /// Returns the share of runs with a timeout after the drop of the available bandwidth. Runs with losses before this
    /// drop are left out, because the cause of their timeout is not known.
    pub(super) fn timed_out(&self) -> Option<Estimate> {
        let sound = self.outcomes.iter().filter(|outcome| !outcome.early);
        share_95(sound.clone().filter(|outcome| outcome.timed_out).count(), sound.count())
    }

    /// Returns the share of runs with losses before the drop of the available bandwidth.
    pub(super) fn early(&self) -> Option<Estimate> {
        share_95(self.outcomes.iter().filter(|outcome| outcome.early).count(), self.outcomes.len())
    }

    /// Returns the mean utilisation over all runs.
    pub(super) fn utilisation(&self) -> Option<Estimate> {
        mean_95(&self.outcomes.iter().map(|outcome| outcome.utilisation).collect::<Vec<_>>())
    }

    /// Returns the mean utilisation over the runs with a timeout if `timed_out` is set, otherwise over the runs without
    /// a timeout. Runs in which packets were lost before the drop of the available bandwidth are left out.
    pub(super) fn utilisation_if(&self, timed_out: bool) -> Option<Estimate> {
        let are = self.outcomes.iter().filter(|outcome| !outcome.early && outcome.timed_out == timed_out);
        mean_95(&are.map(|outcome| outcome.utilisation).collect::<Vec<_>>())
    }
}

/// Returns the cell with these parameters.
pub(super) fn cell(cells: &[Cell], available_mbps: u32, m: f64, buffer: u32) -> Option<&Cell> {
    cells.iter().find(|Cell { place, .. }| {
        place.available_mbps == available_mbps && place.buffer == buffer && (place.m - m).abs() < 1e-9
    })
}

/// Runs each drop of the available bandwidth with each buffer size in `buffers` and each oscillation strength m in
/// `strengths`. Strengths that the interpretation `way` does not allow are left out. The buffer sizes must be in
/// ascending order, because the result of a run without losses is reused for larger buffers.
pub(super) fn cells(
    lab: &Lab<'_>,
    way: Way,
    strengths: &[f64],
    (buffers, scale): (&[u32], u32),
    runs: u32,
) -> Result<Vec<Cell>, SimError> {
    let mut cells = Vec::new();
    for available_mbps in DROPS {
        for &m in strengths {
            let mut outcomes: Vec<Option<Outcome>> = vec![None; runs as usize];
            for &buffer in buffers {
                let place = Place { available_mbps, m, buffer, scale };
                let anew: Vec<_> =
                    (0..runs).filter(|&run| outcomes[run as usize].is_none_or(|outcome| !outcome.calm)).collect();
                lab.count(runs - anew.len() as u32);
                let Some(strength) = way.strength(m) else { continue };
                let scenario = |run| scenario(place, (way, strength), f64::from(run) / f64::from(runs));
                let new = lab.each(anew.iter().map(|&run| (scenario(run), run)), Outcome::of)?;
                for (run, outcome) in anew.into_iter().zip(new) {
                    outcomes[run as usize] = Some(outcome);
                }
                cells.push(Cell { place, outcomes: outcomes.iter().flatten().copied().collect() });
            }
        }
    }
    Ok(cells)
}

/// Returns the scenario of a run. `phase`, from 0 to just below 1, shifts the results of the bandwidth measurement
/// relative to the drop of the available bandwidth.
fn scenario(place: Place, (way, strength): (Way, f64), phase: f64) -> Scenario {
    let Place { available_mbps, buffer, scale, .. } = place;
    let rate = |mbps: u32| format!("{} Mbit/s", mbps * scale);
    let mut all = vec![
        Override::set("link.E0-E1.rate", rate(100)),
        Override::set("flow.UDP.source.rate", rate(20)),
        Override::set("flow.UDP.source.steps.0.rate", rate(100 - available_mbps)),
        Override::set("flow.symbiosis.window.oscillation", strength),
        Override::set("link.E0-E1.queue", format!("{buffer} packets")),
        Override::set("flow.symbiosis.start", format!("{:.3} ms", 420.0 * phase)),
    ];
    all.extend(way.overrides("symbiosis"));
    parse_with(FIG15, &all)
}
