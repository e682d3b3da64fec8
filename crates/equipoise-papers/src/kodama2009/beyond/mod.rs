//! What the thesis leaves open: its two mechanisms on other laws, other laws in its scenarios, and other laws beside its own.

mod join;
mod noise;
mod rivals;
mod step;

use std::collections::BTreeMap;

use super::{Found, Lab, Options};
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;

pub(super) fn planned(options: &Options) -> u32 {
    step::planned(options) + join::planned(options) + noise::planned(options) + rivals::planned(options)
}

pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    join::run(lab, found)?;
    step::run(lab, found)?;
    noise::run(lab, found)?;
    rivals::run(lab, found)
}

/// Where the claims stand that the thesis does not make.
const OURS: &str = "ours";
/// The bottleneck of every scenario of the thesis.
const BOTTLENECK: &str = "E0-E1";
/// A window law.
#[derive(Clone, Copy)]
struct Law {
    /// In tables.
    name: &'static str,
    /// In scenarios; `None` for the thesis' law, which they have.
    other: Option<&'static str>,
}

/// The thesis' law as it is before Sec. 3, first; then what it is compared with.
const LAWS: [Law; 4] = [
    Law { name: "Symbiosis", other: None },
    Law { name: "Reno", other: Some("reno") },
    Law { name: "CUBIC", other: Some("cubic") },
    Law { name: "Vegas", other: Some("vegas") },
];

impl Law {
    /// Sets the law of a flow of this name, or of all.
    fn of_flow(self, flow: &str) -> Option<Override> {
        self.other.map(|law| Override::set(format!("flow.{flow}.window"), BTreeMap::from([("name", law)])))
    }
}
