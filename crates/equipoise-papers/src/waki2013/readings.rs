//! Interpretations of Waki 2013, Sec. 5 and 6, other than the main one.

use super::criteria::Outcome;
use super::scenarios::{AP_407, AP_LOAD, CBR_3, CBR_08};
use super::{Found, parse_with};
use crate::{Claim, Reading};
use equipoise_lab::scenario::{Override, Scenario};

/// Name of the main interpretation, which follows the text of the paper. The book's chapter on Waki 2013 describes it.
pub(super) const MAIN: &str = "main: from 1 s on, 50 s of transient, AIMD in its steady state";
/// The session starts at the same time as the run. As a result, a report is due exactly at the load step.
pub(super) const AT_ZERO: Other =
    Other { name: "Fig. 10 to 12: the session starts at 0 s", change: Change::Start("0 s") };
/// Sec. 5.2 states 13 packets/s at 0.1 Mbit/s and 2048 packets/s at 15 Mbit/s. These numbers are right if 960 bytes of
/// each packet count and if a Mbit has 2²⁰ bits. On the link, a packet has 1000 bytes.
pub(super) const SEC_5_2: Other = Other {
    name: "Fig. 10 to 12: the session's rates are of payload, 960 bytes of 1000, in 2²⁰ bit/s",
    change: Change::Unit { mbps: 1.048_576 * 1000.0 / 960.0 },
};
/// Both ends of the session send, and report on the packets that they receive (RFC 3550, Sec. 6.4). Both directions
/// have the same load, because Sec. 5.1 assumes equal one-way delays. Only the direction from S1 to D1 is evaluated.
pub(super) const BOTH_WAYS: Other =
    Other { name: "Fig. 10 to 14: media both ways in one session, the background, too", change: Change::BothWays };

/// An interpretation that changes a session of Sec. 6.1.
pub(super) struct Other {
    pub(super) name: &'static str,
    change: Change,
}

enum Change {
    /// The session starts at this time of the run.
    Start(&'static str),
    /// The paper states the session's rates in another unit: 1 Mbit/s in the paper is `mbps` Mbit/s on the link.
    Unit { mbps: f64 },
    /// Both ends of the session send media of the same kind. Both directions have the same background traffic.
    BothWays,
}

impl Other {
    /// Returns the scenario under this interpretation.
    pub(super) fn scenario(&self, text: &str) -> Scenario {
        match self.change {
            Change::Start(start) => parse_with(text, &[Override::set("flow.media.start", start)]),
            Change::Unit { mbps } => in_unit(text, mbps),
            Change::BothWays => both_ways(text),
        }
    }

    /// Returns `outcome` with its rates converted from Mbit/s on the link to the paper's unit. This interpretation
    /// defines the paper's unit.
    pub(super) fn outcome(&self, outcome: &Outcome) -> Outcome {
        let unit_mbps = if let Change::Unit { mbps } = self.change { mbps } else { 1.0 };
        let rates_mbps = outcome.rates_mbps.iter().map(|mbps| mbps / unit_mbps).collect();
        Outcome { rates_mbps, ..outcome.clone() }
    }
}

/// Returns the scenario with all rates of the session converted. One Mbit/s of the session is `unit_mbps` Mbit/s on the
/// link.
fn in_unit(text: &str, unit_mbps: f64) -> Scenario {
    let rate = |key: &str, mbps: f64| {
        Override::set(format!("flow.media.controller.{key}"), format!("{:.6} Mbit/s", mbps * unit_mbps))
    };
    let limits = [rate("min_rate", 0.1), rate("max_rate", 15.0)];
    match text {
        CBR_3 => parse_with(text, &[rate("rate", 3.0)]),
        CBR_08 => parse_with(text, &[rate("rate", 0.8)]),
        // AP's coefficient of response b(ρ) is computed from the load ρ of the link, so it does not depend on the unit
        // of the session's rates.
        AP_LOAD => parse_with(text, &limits),
        text => {
            let [min, max] = limits;
            let given = if text == AP_407 { 407.63 } else { 300.0 };
            parse_with(text, &[min, max, Override::set("flow.media.controller.b", given / unit_mbps)])
        }
    }
}

/// Returns the scenario with media and background traffic in both directions.
fn both_ways(text: &str) -> Scenario {
    const BACK: &str = "flow.media.media_back";
    let mut overrides = vec![Override::set(format!("{BACK}.report_interval"), "10 s")];
    if text == AP_LOAD {
        // Only the sender in the forward direction can compute the coefficient of response b from the load of the link.
        // The other sender has a constant b.
        overrides.push(Override::set(format!("{BACK}.controller.name"), "ap-printed"));
        overrides.push(Override::set(format!("{BACK}.controller.target"), "8.2 ms"));
        overrides.push(Override::set(format!("{BACK}.controller.b"), 300));
    }
    let background = text.rsplit_once(BACKGROUND).map_or("", |(_, rest)| rest);
    let there_and_back = format!("{text}\n{BACKGROUND} back\"\ndirection = \"back{background}");
    parse_with(&there_and_back, &overrides)
}

/// The beginning of the background flow in a scenario file, including the flow's name. In the scenario files of Fig. 10
/// to 14, the background flow is the last entry.
const BACKGROUND: &str = "[[flow]]\nname = \"background";

/// Adds claims to the interpretation named `name`.
pub(super) fn read(found: &mut Found, name: &str, claims: impl IntoIterator<Item = Claim>) {
    match found.readings.iter_mut().find(|reading| reading.name == name) {
        Some(reading) => reading.claims.extend(claims),
        None => found.readings.push(Reading { name: name.to_owned(), claims: claims.into_iter().collect() }),
    }
}
