//! Other readings of Sec. 5 and 6, beside the main one.

use super::criteria::Outcome;
use super::scenarios::{CBR_3, CBR_08};
use super::{Found, parse_with};
use crate::{Claim, Reading};
use equipoise_lab::scenario::{Override, Scenario};

/// The main one: as the chapter of the book dates it and takes it from the paper's words.
pub(super) const MAIN: &str = "main: from 1 s on, 50 s of transient, AIMD in its steady state";
/// The session starts with the run, so that reports coincide with the load step.
pub(super) const AT_ZERO: Other =
    Other { name: "Fig. 10 to 12: the session starts at 0 s", start: "0 s", unit_mbps: 1.0 };
/// 13 packets/s at 0.1 Mbit/s and 2048 at 15 Mbit/s, as Sec. 5.2 has it, are packets of 960 bytes and 2²⁰ bits in a Mbit. On the link a
/// packet has 1000 bytes.
pub(super) const SEC_5_2: Other = Other {
    name: "Fig. 10 to 12: the session's rates are of payload, 960 bytes of 1000, in 2²⁰ bit/s",
    start: "1 s",
    unit_mbps: 1.048_576 * 1000.0 / 960.0,
};

/// A reading under which a session of Sec. 6.1 runs in another way.
pub(super) struct Other {
    pub(super) name: &'static str,
    start: &'static str,
    /// The link's Mbit/s in one of the session's.
    unit_mbps: f64,
}

impl Other {
    /// The scenario under this reading.
    pub(super) fn scenario(&self, text: &str) -> Scenario {
        let mut overrides = vec![Override::set("flow.media.start", self.start)];
        let rate = |key: &str, mbps: f64| {
            Override::set(format!("flow.media.controller.{key}"), format!("{:.6} Mbit/s", mbps * self.unit_mbps))
        };
        match text {
            CBR_3 => overrides.push(rate("rate", 3.0)),
            CBR_08 => overrides.push(rate("rate", 0.8)),
            // b(ρ) follows from the link's load, which knows no such unit.
            text if text.contains("ap-load") => overrides.extend([rate("min_rate", 0.1), rate("max_rate", 15.0)]),
            text => {
                let given = if text.contains("b = 407.63") { 407.63 } else { 300.0 };
                overrides.extend([rate("min_rate", 0.1), rate("max_rate", 15.0)]);
                overrides.push(Override::set("flow.media.controller.b", given / self.unit_mbps));
            }
        }
        parse_with(text, &overrides)
    }

    /// The outcome with its rates in the session's unit.
    pub(super) fn outcome(&self, outcome: &Outcome) -> Outcome {
        let rates_mbps = outcome.rates_mbps.iter().map(|mbps| mbps / self.unit_mbps).collect();
        Outcome { rates_mbps, ..outcome.clone() }
    }
}

/// Adds claims to the reading of that name.
pub(super) fn read(found: &mut Found, name: &str, claims: impl IntoIterator<Item = Claim>) {
    match found.readings.iter_mut().find(|reading| reading.name == name) {
        Some(reading) => reading.claims.extend(claims),
        None => found.readings.push(Reading { name: name.to_owned(), claims: claims.into_iter().collect() }),
    }
}
