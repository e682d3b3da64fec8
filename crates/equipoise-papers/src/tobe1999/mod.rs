//! Tobe 1999: the experiments of Sec. 3 and 6, and what we found beyond them.

mod beyond;
mod fig10;
mod fig19;
mod fig29;
mod fig3;
#[cfg(feature = "live")]
mod live;
mod measures;
mod setting;
mod table3;

use super::experiment::{
    Experiment, Found, Lab, Options, difference, drafts, parse, parse_with, run_parts, with_interval,
};
use super::{Plot, PlotData, PlotLayer, Results};
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::{Estimate, mean_95};

use self::setting::Trace;

#[cfg(feature = "live")]
pub use live::run as run_live;

/// What can be run live, too.
pub const LIVE: &[Part] = &[Part::Fig10];

/// A part of the paper that can be run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Fig. 3: LDA beside two TCP flows.
    Fig3,
    /// Fig. 10, 11, 14 to 18: rates and fairness of TPBA, over a short and a long path; with Fig. 12 and 16.
    Fig10,
    /// Fig. 12 and 16: inter-arrival times of ADUs.
    Fig12,
    /// Fig. 19: fairness over the number of TCP connections.
    Fig19,
    /// Table 3: response to a change.
    Table3,
    /// Fig. 20 and 22 to 28: rates of the cases of Table 4.
    Fig22,
    /// Fig. 29 to 31: the deviations of all cases of Table 4; with the claim of Fig. 28.
    Fig29,
    /// Beyond the paper: its Sec. 8 and later comparators.
    Beyond,
}

impl Part {
    /// All of it.
    pub const ALL: [Self; 8] =
        [Self::Fig3, Self::Fig10, Self::Fig12, Self::Fig19, Self::Table3, Self::Fig22, Self::Fig29, Self::Beyond];
}

impl Part {
    fn experiment(self) -> Experiment {
        match self {
            Self::Fig3 => (fig3::planned, fig3::run),
            Self::Fig10 => (fig10::planned, fig10::fairness),
            Self::Fig12 => (fig10::planned, fig10::gaps),
            Self::Fig19 => (fig19::planned, fig19::run),
            Self::Table3 => (table3::planned, table3::run),
            Self::Fig22 => (fig29::planned_snapshots, fig29::snapshots),
            Self::Fig29 => (fig29::planned, fig29::run),
            Self::Beyond => (beyond::planned, beyond::run),
        }
    }
}

/// Runs parts of the paper. `progress` is told the share that is done.
///
/// # Errors
/// [`SimError`] where a run cannot be made, which is a fault of ours.
pub fn run(parts: &[Part], options: &Options, progress: &(dyn Fn(f64) + Sync)) -> Result<Results, SimError> {
    let found = run_parts(parts, Part::experiment, options, progress)?;
    Ok(found.results("Tobe 1999", options, ASSUMPTIONS))
}

const ASSUMPTIONS: &[&str] = &[
    "The bottleneck has 1.2 Mbit/s and a drop-tail queue of 100 packets. The paper prints no length; it says that \
     nothing is lost in Fig. 3, where 78 packets wait, so FreeBSD 2.2's 50 of an interface alone it was not. The round trip without queues is 12 or 160 ms, and the hosts' own links have 10 Mbit/s.",
    "TCP is NewReno without SACK, with delayed acknowledgements, a first window of one segment and packets of 1500 bytes. Its \
     receive window is 16 kB, 11 segments, FreeBSD 2.2's default. Two or three such windows fit into the queue, so that TCP \
     alone loses nothing and its rates are steady, which is what the paper's text says of them. What today's windows change \
     is among the results beyond.",
    "The paper's long path is the Internet between Japan and America; ours is the same bottleneck with a round trip of 160 ms.",
    "The application always has another ADU. RTP packets carry 512 bytes of an ADU and are 588 bytes with all headers.",
    "Rates are of IP packets at the receiver. Flows that start together start within 0.2 s of each other, and Poisson packets of \
     64 bytes take 1 % of the bottleneck, by which runs with different seeds differ.",
    "TPBA begins RTP once TCP has nothing unsent. What is then under way, or lost, TCP still delivers, and the receiver puts \
     it in order.",
    "LDA's packet pairs are one in eight departures; the bottleneck's rate is the median of the last 15 pairs. LDA's least rate is \
     10 kbit/s.",
    "RAP and TFRC have reports every 100 ms in place of acknowledgements of every packet.",
];

/// A chart of the rates of all flows.
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

/// Mean and interval of what single runs gave, those that gave nothing left out.
fn mean_of(values: impl IntoIterator<Item = f64>) -> Option<Estimate> {
    mean_95(&values.into_iter().filter(|value| value.is_finite()).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests;
