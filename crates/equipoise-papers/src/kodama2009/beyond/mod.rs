//! What the thesis leaves open: its two mechanisms on other laws, other laws in its scenarios, and other laws beside its own.

mod join;
mod noise;
mod rivals;
mod step;

use super::{Found, Lab, Options};
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
/// A window law: the name in tables, and the words in a scenario that ask for it.
type Law = (&'static str, &'static str);
/// The thesis' law as it is before Sec. 3, first; then what it is compared with.
const LAWS: [Law; 4] = [
    ("Symbiosis", "name = \"symbiosis\", noise_aware = \"off\""),
    ("Reno", "name = \"reno\""),
    ("CUBIC", "name = \"cubic\""),
    ("Vegas", "name = \"vegas\""),
];
