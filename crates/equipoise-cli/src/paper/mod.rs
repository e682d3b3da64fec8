//! `equipoise paper`: repeats the experiments of a paper.

pub(crate) mod args;
mod asked;
#[cfg(feature = "live")]
mod live;

use clap::ValueEnum;
use equipoise_lab::sim::SimError;
use equipoise_papers::{Options, Results, asvarujanon2014, kodama2009, subramanya2003, tobe1999, waki2013};

use crate::error::CliError;
use crate::outcome::Outcome;
use args::{AsvarujanonRun, EitherWorld, Paper, PaperRun};
use asked::{asvarujanon_parts, carry_out, kodama_parts, subramanya_parts, tobe_parts, waki_parts};

/// Runs the requested parts of a paper. The outcome does not depend on whether the results confirm the paper.
pub(crate) fn run(paper: &Paper) -> Result<Outcome, CliError> {
    if paper.is_live() {
        #[cfg(feature = "live")]
        return live::run(paper);
        #[cfg(not(feature = "live"))]
        return Err(crate::error::PaperError::SimulatedOnly.into());
    }
    match paper {
        Paper::Waki2013(asked) => simulate(asked, waki_parts, waki2013::run),
        Paper::Kodama2009(EitherWorld { run: asked, .. }) => simulate(asked, kodama_parts, kodama2009::run),
        Paper::Subramanya2003(EitherWorld { run: asked, .. }) => simulate(asked, subramanya_parts, subramanya2003::run),
        Paper::Tobe1999(EitherWorld { run: asked, .. }) => simulate(asked, tobe_parts, tobe1999::run),
        Paper::Asvarujanon2014(AsvarujanonRun { run: EitherWorld { run: asked, .. }, pairs }) => {
            let parts: Vec<_> = asked.parts.iter().flat_map(|part| asvarujanon_parts(*part, pairs.is_some())).collect();
            carry_out(asked, "simulated", |how, progress| {
                asvarujanon2014::run(&parts, pairs.as_deref(), how, progress)
            })?;
            Ok(Outcome::Complete)
        }
    }
}

fn simulate<P: ValueEnum + Send + Sync, T>(
    asked: &PaperRun<P>,
    parts: fn(P) -> Vec<T>,
    run: impl FnOnce(&[T], &Options, &(dyn Fn(f64) + Sync)) -> Result<Results, SimError>,
) -> Result<Outcome, CliError> {
    let parts: Vec<T> = asked.parts.iter().cloned().flat_map(parts).collect();
    carry_out(asked, "simulated", |how, progress| run(&parts, how, progress))?;
    Ok(Outcome::Complete)
}
