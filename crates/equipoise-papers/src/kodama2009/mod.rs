//! Kodama 2009, a thesis on TCP Symbiosis: every experiment of Sec. 2.2.3, 3 and 4, and experiments beyond the thesis.

mod beyond;
mod drops;
mod fig10;
mod fig11;
mod fig12;
mod fig15;
mod fig16;
mod fig3;
mod fig5;
#[cfg(feature = "live")]
mod fig5_live;
mod fig6;
mod inline;
mod readings;
mod scenarios;
mod series;

use super::experiment::{
    Experiment, Found, Lab, Options, Rule, Spec, parse, parse_with, ratio, run_parts, scaled, with_interval,
};
use super::{Claim, Reading, Results};
use equipoise_lab::sim::SimError;

#[cfg(feature = "live")]
pub use fig5_live::{CONGESTION_CONTROLS, run as run_live};

/// The parts of the thesis that can also be run live, in real time.
pub const LIVE: &[Part] = &[Part::Fig5];

/// A part of the thesis that can be run separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Fig. 3: two connections, of which the second joins later.
    Fig3,
    /// Fig. 5: Symbiosis and Reno when the available bandwidth changes, over a short and a long path.
    Fig5,
    /// Fig. 6 to 8: noise in the measurement, and a γ (weight of cross traffic) that depends on the noise.
    Fig6,
    /// Fig. 10 and 14: the available bandwidth drops and rises again, without and with oscillation.
    Fig10,
    /// Fig. 11 and 17: fairness of one to ten connections, without and with self-induced oscillation of the window.
    Fig11,
    /// Fig. 12 and 13: the throughput that is lost because of oscillation.
    Fig12,
    /// Fig. 15 and 16: how often a drop of the available bandwidth causes a timeout, for several strengths of the
    /// oscillation and several buffer sizes.
    Fig15,
    /// Sec. 2.2.1: the bandwidth measurement with the connection's own segments (inline).
    Inline,
    /// Experiments beyond the thesis: its mechanisms in other control laws, other control laws in its scenarios, and
    /// other control laws in competition with Symbiosis.
    Beyond,
}

impl Part {
    /// All parts of the thesis, in order.
    pub const ALL: [Self; 9] = [
        Self::Fig3,
        Self::Fig5,
        Self::Fig6,
        Self::Fig10,
        Self::Fig11,
        Self::Fig12,
        Self::Fig15,
        Self::Inline,
        Self::Beyond,
    ];
}

impl Part {
    fn experiment(self) -> Experiment {
        match self {
            Self::Fig3 => (fig3::planned, fig3::run),
            Self::Fig5 => (fig5::planned, fig5::run),
            Self::Fig6 => (fig6::planned, fig6::run),
            Self::Fig10 => (fig10::planned, fig10::run),
            Self::Fig11 => (fig11::planned, fig11::run),
            Self::Fig12 => (fig12::planned, fig12::run),
            Self::Fig15 => (fig15::planned, fig15::run),
            Self::Inline => (inline::planned, inline::run),
            Self::Beyond => (beyond::planned, beyond::run),
        }
    }
}

/// The claims under the main interpretation, in the order of the parts.
#[cfg_attr(not(test), expect(dead_code, reason = "a test compares them with the committed results"))]
pub(crate) const CLAIMS: &[&[Spec]] = &[
    fig3::CLAIMS,
    fig5::CLAIMS,
    fig6::CLAIMS,
    fig10::CLAIMS,
    fig11::CLAIMS,
    fig12::CLAIMS,
    fig15::CLAIMS,
    fig16::CLAIMS,
    inline::CLAIMS,
    beyond::CLAIMS[0],
    beyond::CLAIMS[1],
    beyond::CLAIMS[2],
    beyond::CLAIMS[3],
];

/// Name of the main interpretation, which follows the text of the thesis.
const MAIN: &str = "main";

/// Runs the requested parts of the thesis. Calls `progress` with the share of the runs that are done.
///
/// # Errors
/// [`SimError`] if a scenario cannot be run, which is a bug.
pub fn run(parts: &[Part], options: &Options, progress: &(dyn Fn(f64) + Sync)) -> Result<Results, SimError> {
    let mut found = run_parts(parts, Part::experiment, options, progress)?;
    put_main_first(&mut found);
    Ok(found.results("Kodama 2009", options, ASSUMPTIONS))
}

/// Adds claims to the interpretation named `name`, which is not the main one.
fn read(found: &mut Found, name: &str, claims: Vec<Claim>) {
    match found.readings.iter_mut().find(|reading| reading.name == name) {
        Some(reading) => reading.claims.extend(claims),
        None => found.readings.push(Reading { name: name.to_owned(), claims }),
    }
}

/// Inserts the main interpretation before the other interpretations. The inserted entry contains only the claims that
/// were also tested under other interpretations.
fn put_main_first(found: &mut Found) {
    let tried = |claim: &&Claim| found.readings.iter().any(|reading| reading.claims.iter().any(|of| of.id == claim.id));
    let claims: Vec<_> = found.claims.iter().filter(tried).cloned().collect();
    if !claims.is_empty() {
        found.readings.insert(0, Reading { name: MAIN.to_owned(), claims });
    }
}

const ASSUMPTIONS: &[&str] = &[
    "A packet is 1500 bytes on every link, by which 100 Mbit/s over 120 ms are the 1000 packets that the thesis reads off; \
     drop-tail queues of 1000 packets.",
    "ε is 1.95 per second; the thesis does not give its own, nor its unit. γ is 0.95 where nothing else is said.",
    "From Fig. 10 on a connection measures inline, by its own segments (Sec. 2.2.1, 4.1). In Fig. 3 to 8 and beyond, it is told the true \
     available bandwidth of the last 420 ms every 420 ms, one result per three to four round trips; in Fig. 6 to 8 with noise. After a \
     timeout either way of measuring begins anew.",
    "In Fig. 3 to 8 and beyond, TCP hosts acknowledge every second segment and recover by SACK. From Fig. 10 on they are as ns-2, which the \
     thesis used, had them by default in 2009: NewReno in its impatient variant, every segment acknowledged, a least timeout \
     of 200 ms. The thesis does not say which TCP of ns-2 it built on.",
    "UDP traffic in flows of 10 Mbit/s is taken together as one Poisson stream, by which runs with different seeds differ. Its \
     packets are of 1400 bytes: were they as large as TCP's, each segment would come to the full queue just when an \
     acknowledged one had left it, and the queue would drop hardly any of TCP's (phase effects, Floyd 1992).",
    "The thesis' first noise is not printed: 2.5 % of what others use, doubled every 100 s to 40 %.",
    "The Dummynet router of Fig. 5 has its default queue of 50 packets; the thesis does not print it.",
    "Fairness is Jain's index of the mean windows over a stretch; the index of each moment's windows is shown beside it.",
];

#[cfg(test)]
mod tests;
