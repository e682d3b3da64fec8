//! Kodama 2009: every experiment of Sec. 2.2.3, 3 and 4, and what we found beyond them.

mod beyond;
mod fig3;
mod fig5;
mod fig6;
mod series;

use super::Results;
use super::experiment::{Draft, Found, Lab, Options, parse, ratio, scaled, variant, with_interval};
use crate::sim::SimError;

/// A part of the thesis that can be run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Fig. 3: two connections, the second joins.
    Fig3,
    /// Fig. 5: Symbiosis and Reno where the available bandwidth changes, over a short and a long path.
    Fig5,
    /// Fig. 6 to 8: noise in the measurement, and a γ that heeds it.
    Fig6,
    /// Beyond the thesis: its mechanisms on other laws, other laws in its scenarios, and other laws beside its own.
    Beyond,
}

impl Part {
    /// All of it.
    pub const ALL: [Self; 4] = [Self::Fig3, Self::Fig5, Self::Fig6, Self::Beyond];
}

/// What runs a part, and how many runs it takes.
type Experiment = (fn(&Options) -> u32, fn(&Lab<'_>, &mut Found) -> Result<(), SimError>);

impl Part {
    fn experiment(self) -> Experiment {
        match self {
            Self::Fig3 => (fig3::planned, fig3::run),
            Self::Fig5 => (fig5::planned, fig5::run),
            Self::Fig6 => (fig6::planned, fig6::run),
            Self::Beyond => (beyond::planned, beyond::run),
        }
    }
}

/// Runs parts of the thesis. `progress` is told the share that is done.
///
/// # Errors
/// [`SimError`] where a scenario cannot be run, which is a fault of ours.
pub fn run(parts: &[Part], options: &Options, progress: &(dyn Fn(f64) + Sync)) -> Result<Results, SimError> {
    let mut parts = parts.to_vec();
    parts.sort_unstable();
    parts.dedup();
    let experiments: Vec<_> = parts.iter().map(|part| part.experiment()).collect();
    let total = experiments.iter().map(|(planned, _)| planned(options)).sum();
    let lab = Lab::new(options, total, progress);
    let mut found = Found::default();
    for (_, run) in experiments {
        run(&lab, &mut found)?;
    }
    Ok(found.results("Kodama 2009", options, ASSUMPTIONS))
}

const ASSUMPTIONS: &[&str] = &[
    "A packet is 1500 bytes on every link, by which 100 Mbit/s over 120 ms are the 1000 packets that the thesis reads off; \
     drop-tail queues of 1000 packets.",
    "ε is 1.95 per second; the thesis does not give its own. γ is 0.95 where nothing else is said.",
    "TCP hosts acknowledge every second segment and recover by SACK.",
    "The thesis' first noise is not printed: 2.5 % of what others use, doubled every 100 s to 40 %.",
    "The Dummynet router of Fig. 5 has its default queue of 50 packets; the thesis does not print it.",
    "Where nothing else is said, a connection knows the true available bandwidth of the last 420 ms every 420 ms, one result \
     per three to four round trips, as the thesis says of inline measurement.",
];

macro_rules! scenario {
    ($name:literal) => {
        include_str!(concat!("../../../../../scenarios/kodama2009/", $name, ".toml"))
    };
}

const FIG3: &str = scenario!("fig3");
const FIG5: &str = scenario!("fig5");
const FIG6: &str = scenario!("fig6");
const BEYOND_STEP: &str = scenario!("beyond-step");
const BEYOND_NOISE: &str = scenario!("beyond-noise");
const BEYOND_RIVALS: &str = scenario!("beyond-rivals");

#[cfg(test)]
mod tests;
