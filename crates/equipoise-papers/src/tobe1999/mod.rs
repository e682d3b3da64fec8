//! Tobe 1999: the experiments of Sec. 3 and 6, and experiments beyond the paper.

mod acknowledged;
mod beyond;
mod fig10;
mod fig16;
mod fig19;
mod fig22;
mod fig29;
mod fig3;
#[cfg(feature = "live")]
mod live;
mod measures;
mod setting;
mod table3;

use super::experiment::{
    Experiment, Found, Lab, Options, Rule, Spec, difference, parse, parse_with, run_parts, with_interval,
};
use super::{Claim, Plot, PlotData, PlotLayer, Reading, Results};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, mean_95};

use self::setting::{Testbed, Trace};

#[cfg(feature = "live")]
pub use live::run as run_live;

/// The parts of the paper that can also be run live, in real time.
pub const LIVE: &[Part] = &[Part::Fig10];

/// A part of the paper that can be run separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Fig. 3: LDA with two TCP flows.
    Fig3,
    /// Fig. 10, 11, 14, 15, 17 and 18: rates and fairness of TPBA, over a short and a long path.
    Fig10,
    /// Fig. 12 and 16: inter-arrival times of ADUs.
    Fig12,
    /// Fig. 19: fairness as a function of the number of TCP connections.
    Fig19,
    /// Table 3: time until the rate responds to a change.
    Table3,
    /// Fig. 20 and 22 to 28: rates of the cases of Table 4.
    Fig22,
    /// Fig. 29 to 31: the deviations in all cases of Table 4, and the claims about Fig. 20 and 24 to 28.
    Fig29,
    /// Beyond the paper: the future work of its Sec. 8, and newer controllers for comparison.
    Beyond,
}

impl Part {
    /// All parts of the paper.
    pub const ALL: [Self; 8] =
        [Self::Fig3, Self::Fig10, Self::Fig12, Self::Fig19, Self::Table3, Self::Fig22, Self::Fig29, Self::Beyond];
}

/// The paper's claims under the main interpretation, and our claims beyond the paper, in the order of the results.
#[cfg(test)]
pub(crate) const CLAIMS: &[&[Spec]] = &[
    &fig3::CLAIMS,
    &fig10::FAIRNESS_CLAIMS,
    &fig10::GAPS_CLAIMS,
    &fig16::CLAIMS,
    &fig19::CLAIMS,
    &table3::CLAIMS,
    &fig22::CLAIMS,
    &fig29::CLAIMS,
    &beyond::CLAIMS,
];

impl Part {
    fn experiment(self) -> Experiment {
        match self {
            Self::Fig3 => (fig3::planned, fig3::run),
            Self::Fig10 => (fig10::planned, fig10::fairness),
            Self::Fig12 => (fig16::planned_with_gaps, fig16::run_with_gaps),
            Self::Fig19 => (fig19::planned, fig19::run),
            Self::Table3 => (table3::planned, table3::run),
            Self::Fig22 => (fig22::planned, fig22::run),
            Self::Fig29 => (fig29::planned, fig29::run),
            Self::Beyond => (beyond::planned, beyond::run),
        }
    }
}

/// Runs the requested parts of the paper. Calls `progress` with the share of the runs that are done.
///
/// # Errors
/// [`SimError`] if a run fails, which is a bug.
pub fn run(parts: &[Part], options: &Options, progress: &(dyn Fn(f64) + Sync)) -> Result<Results, SimError> {
    let found = run_parts(parts, Part::experiment, options, progress)?;
    Ok(found.results("Tobe 1999", options, ASSUMPTIONS))
}

const ASSUMPTIONS: &[&str] = &[
    "The bottleneck has 1.2 Mbit/s and a drop-tail queue of 100 packets. The paper prints no length; it says of Fig. 3 that \
     \"RTCP RR reports no loss\", and 78 packets wait there, so FreeBSD 2.2's 50 of an interface alone it was not. The length was \
     chosen by that sentence, which therefore is no finding; other lengths are among the readings. The round trip without queues is \
     12 or 160 ms, and the hosts' own links have 10 Mbit/s.",
    "TCP is NewReno without SACK, with delayed acknowledgements, a first window of one segment and packets of 1500 bytes. Its \
     receive window is 16 kB, 11 segments: FreeBSD 2.2's default, as the paper has \"FreeBSD 2.2.6R\" and names no other. \
     Windows of 32 kB are among the readings, and what open ones change is among the results beyond.",
    "The paper's long path is the Internet between Japan and America; ours is the same bottleneck with a round trip of 160 ms.",
    "The application always has another ADU. RTP packets carry 512 bytes of an ADU and are 588 bytes with all headers.",
    "Rates are of IP packets at the receiver. Flows that start together start at the same instant (\"start simultaneously\"); runs \
     with different seeds differ by Poisson packets of 64 bytes, which take 1 % of the bottleneck, and by RTCP's draws.",
    "Table 3: \"the rates were calculated every 400 ms\", and r[i] is what Table 2 calls the \"calculated rate\": flow 3 is a flow \
     pair with T_TCP = 400 ms and the paper's ε of 30 kbit/s, and its rate is stable when a running period begins. Other ways to \
     read it are among the readings.",
    "Readings other than the main one have half as many runs.",
    "TPBA begins RTP once TCP has nothing unsent. What is then under way, or lost, TCP still delivers, and the receiver puts \
     it in order.",
    "LDA's packet pairs are one in eight departures; the bottleneck's rate is the median of the last 15 pairs. LDA's least rate is \
     10 kbit/s.",
    "RAP and TFRC have reports every 100 ms. RAP with every packet acknowledged, as its authors have it, is the same law on the \
     acknowledgements of a TCP host with selective acknowledgements, which paces by its rate and sends again what was lost.",
];

/// Returns a chart with the rates of all flows over time.
fn rates_chart(title: &str, trace: &Trace, interval_s: f64, names: &[&str]) -> Plot {
    let layer = |(rates, name): (&Vec<f64>, &&str)| {
        let points = rates.iter().enumerate().map(|(at, bps)| ((at as f64 + 1.0) * interval_s, bps / 1e3));
        PlotLayer { name: (*name).to_owned(), data: PlotData::Line(points.collect()) }
    };
    Plot {
        title: title.to_owned(),
        x: "time (s)",
        y: "rate (kbit/s)",
        y_limits: Some((0.0, 1250.0)),
        layers: trace.rates.iter().zip(names).map(layer).collect(),
        marks: Vec::new(),
    }
}

/// Adds claims to the interpretation named `name`, which may already contain claims of other parts.
fn read(found: &mut Found, name: &str, claims: Vec<Claim>) {
    match found.readings.iter_mut().find(|reading| reading.name == name) {
        Some(reading) => reading.claims.extend(claims),
        None => found.readings.push(Reading { name: name.to_owned(), claims }),
    }
}

/// Adds the claims of a part under every interpretation of the testbed. The main interpretation is the first.
fn read_all(
    found: &mut Found,
    mut judged: impl FnMut(&Testbed) -> Result<Vec<Claim>, SimError>,
) -> Result<(), SimError> {
    for testbed in &Testbed::ALL {
        let claims = judged(testbed)?;
        if *testbed == Testbed::MAIN {
            found.claims.extend(claims.iter().cloned());
        }
        read(found, testbed.name, claims);
    }
    Ok(())
}

/// Returns all estimates. If an estimate is missing, returns an empty list, because the claims concern all estimates.
fn whole(cells: impl IntoIterator<Item = Option<Estimate>>) -> Vec<Estimate> {
    cells.into_iter().collect::<Option<_>>().unwrap_or_default()
}

/// Returns the mean over the runs, with its confidence interval. Runs without a finite value are left out.
fn mean_of(values: impl IntoIterator<Item = f64>) -> Option<Estimate> {
    mean_95(&values.into_iter().filter(|value| value.is_finite()).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests;
