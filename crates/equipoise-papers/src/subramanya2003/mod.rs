//! Subramanya 2003: its three cases, with TQ and `NewReno` for the same content, and with other parameters of TQ.

mod cases;
mod fig6;
#[cfg(feature = "live")]
mod live;
mod outcome;
mod part;
mod rows;
mod scenarios;
mod sensitivity;
mod table1;
mod table4;
mod table6;
mod traces;

use super::experiment::{
    Experiment, Found, Lab, Mean, Options, Rule, Spec, difference, parse_with, run_parts, with_interval,
};
use super::{Claim, Reading, Results};
use equipoise_lab::sim::SimError;

#[cfg(feature = "live")]
pub use live::{LIVE, run as run_live};
pub use part::Part;

/// The claims of the paper under the main interpretation, in the order of the results.
#[cfg(test)]
pub(crate) const CLAIMS: &[&[Spec]] = &[
    &table1::COMPARED,
    &table1::CLAIMS,
    &table4::COMPARED,
    &table4::CLAIMS,
    &table6::COMPARED,
    &table6::CLAIMS,
    &fig6::CLAIMS,
];

impl Part {
    fn experiment(self) -> Experiment {
        match self {
            Self::Table1 => (table1::planned, table1::run),
            Self::Table4 => (table4::planned, table4::run),
            Self::Table6 => (table6::planned, table6::run),
            Self::Fig6 => (fig6::planned, fig6::run),
        }
    }
}

/// Runs the requested parts of the paper. Calls `progress` with the share of the runs that are done.
///
/// # Errors
/// [`SimError`] if a scenario cannot be run, which is a bug.
pub fn run(parts: &[Part], options: &Options, progress: &(dyn Fn(f64) + Sync)) -> Result<Results, SimError> {
    let found = run_parts(parts, Part::experiment, options, progress)?;
    Ok(found.results("Subramanya 2003", options, ASSUMPTIONS))
}

/// Adds claims to the interpretation named `name`. This interpretation may already contain claims of other parts.
fn read(found: &mut Found, name: &str, claims: impl IntoIterator<Item = Claim>) {
    match found.readings.iter_mut().find(|reading| reading.name == name) {
        Some(reading) => reading.claims.extend(claims),
        None => found.readings.push(Reading { name: name.to_owned(), claims: claims.into_iter().collect() }),
    }
}

const ASSUMPTIONS: &[&str] = &[
    "Where TQ measures: in cases I and II the egress buffer is the queue in front of Link0, as Fig. 3 has it (\"observed in the \
     Link0\") and the abstract (\"arrival and service rate at the outgoing link\"). TQ's receiver stands there; what it counts, \
     the buffer's arrivals, services and packets, goes back from there. In case III the bottlenecks are several, so that \
     none of them can be the egress: it is the last link of each path, and the bottlenecks show in q alone.",
    "T = 100 ms, k_v = 0.5, x_d = 5 packets for each source: half of the buffer in cases I and II. The paper prints none of them.",
    "Each source is controlled by the report on its own packets, the components of the paper's vectors. Changes of all add up to \
     that of their sum, as the law is linear; a first-come buffer shares its service by what each has in it.",
    "A transmission is complete when all packets have arrived. TQ's sources send again what the reports say was lost, as new \
     packets; without that, loss would shorten a transmission below its lower bound.",
    "Content comes to be in real time, for 30 s; what waits may be sent as fast as TQ or TCP allow, up to the access link's rate, \
     which is taken for the peak packet rate. T_o is 30 s. T_c is the time at which the last of the sources is complete.",
    "Power is the content's rate over the transmission delay: so do the paper's own numbers come out (power times delay is 2.00 \
     in Table 1, and 4.61 in Tables 4 and 6), though a transmission that takes longer has a lower throughput.",
    "From these 4.61 Mbit/s the three videos have 1.11. They are synthetic: 25 frames/s, groups of twelve, peak over mean and \
     variation of the high-quality traces of Star Wars IV (6.81, 0.66), Jurassic Park I (4.37, 0.59) and Soccer (3.24, 0.41), and \
     their rates in the same proportion (142, 396 and 572 kbit/s). The paper does not say which quality it used.",
    "NewReno is as ns-2 had it: RFC 6582, every segment acknowledged, least timeout 200 ms, and a receive window of 20 segments: the \
     paper says \"Network Simulator 2 (NS-2) is used\" and states no window, and 20 is what ns-2 has then. This is the main reading \
     since 2026-11-23; before, the window limited nobody, and what 20 gives in Tables 1, 4 and 6 was known. Both stand in the table \
     of readings. Packets are of 1000 bytes with all headers, and the content is the same number of packets for both.",
    "Packet loss ratio: packets that any buffer on the way dropped over packets sent, those sent again among them.",
    "In case I each run begins at another moment of the first 100 ms, by which reports and cut meet differently. The cut \
     then comes by as much earlier in the content, and the least transmission delay of the run is that much larger: excess is counted \
     from it.",
    "A transient ends 1 s behind a cut: by the paper's Eq. 5 the ten intervals T of a second leave a thousandth of the error.",
    "Case III: which source goes where is not printed. Here the constant ones go over all four links, and each video over one of \
     the first three. The cuts are taken to last, as the text has it (10 → 4 Mbit/s and so on). The cuts alone then cost a transmission \
     delay of 0.987, which Table 6 is below: no method can meet its numbers so. A routing that can is among the readings; it was chosen \
     because it fits, as were some hundred others that would.",
];

#[cfg(test)]
mod tests;
