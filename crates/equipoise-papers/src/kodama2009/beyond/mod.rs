//! Experiments beyond the thesis. Control laws other than Symbiosis run in scenarios of the thesis. Some runs add noise
//! awareness or self-induced oscillation to these laws. In other runs, the laws compete with Symbiosis.

mod join;
mod laws;
mod noise;
mod rivals;
mod step;

use super::{Found, Lab, Options, Spec};
use equipoise_lab::sim::SimError;

pub(super) const CLAIMS: [&[Spec]; 4] = [join::CLAIMS, step::CLAIMS, noise::CLAIMS, rivals::CLAIMS];

pub(super) fn planned(options: &Options) -> u32 {
    step::planned(options) + join::planned(options) + noise::planned(options) + rivals::planned(options)
}

pub(super) fn run(lab: &Lab<'_>, found: &mut Found) -> Result<(), SimError> {
    join::run(lab, found)?;
    step::run(lab, found)?;
    noise::run(lab, found)?;
    rivals::run(lab, found)
}
