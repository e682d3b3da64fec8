//! Kodama 2009: every experiment of Sec. 2.2.3, 3 and 4, and what we found beyond them.

mod fig3;
mod inline;
mod series;

use super::Results;
use super::experiment::{Draft, Found, Lab, Options, parse, variant};
use crate::sim::SimError;

/// A part of the thesis that can be run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Fig. 3: two connections, the second joins.
    Fig3,
    /// Sec. 2.2.1: the measurement by the connection's own segments, and Fig. 3 with it.
    Inline,
}

impl Part {
    /// All of it.
    pub const ALL: [Self; 2] = [Self::Fig3, Self::Inline];
}

/// What runs a part, and how many runs it takes.
type Experiment = (fn(&Options) -> u32, fn(&Lab<'_>, &mut Found) -> Result<(), SimError>);

impl Part {
    fn experiment(self) -> Experiment {
        match self {
            Self::Fig3 => (fig3::planned, fig3::run),
            Self::Inline => (inline::planned, inline::run),
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
    "Where nothing else is said, a connection knows the true available bandwidth of the last 420 ms every 420 ms, one result \
     per three to four round trips, as the thesis says of inline measurement.",
];

macro_rules! scenario {
    ($name:literal) => {
        include_str!(concat!("../../../../../scenarios/kodama2009/", $name, ".toml"))
    };
}

const FIG3: &str = scenario!("fig3");
const INLINE: &str = scenario!("inline");
