use std::sync::atomic::AtomicBool;

use clap::ValueEnum;
use equipoise_papers::{ExperimentError, Options, Results, asvarujanon2014, kodama2009, subramanya2003, tobe1999};

use super::args::{AsvarujanonRun, EitherWorld, Paper, PaperRun};
use super::asked::{asvarujanon_parts, carry_out, kodama_parts, subramanya_parts, tobe_parts};
use crate::commands::window_control;
use crate::error::{CliError, PaperError};
use crate::outcome::{Outcome, catch_interrupt, outcome};

/// Runs the requested parts of a paper in real time.
pub(super) fn run(paper: &Paper) -> Result<Outcome, CliError> {
    match paper {
        // Clap never passes `--live` for this paper, because its subcommand does not have this option.
        Paper::Waki2013(_) => Ok(Outcome::Complete),
        Paper::Kodama2009(EitherWorld { run: asked, .. }) => {
            live_parts(asked, kodama_parts, kodama2009::LIVE)?;
            #[cfg(feature = "kernel")]
            let _symbiosis = crate::kernel::lend(kodama2009::CONGESTION_CONTROLS.contains(&equipoise_kernel::NAME))?;
            run_live(asked, kodama2009::run_live)
        }
        Paper::Subramanya2003(EitherWorld { run: asked, .. }) => {
            let parts = live_parts(asked, subramanya_parts, subramanya2003::LIVE)?;
            run_live(asked, |how, stop, progress| subramanya2003::run_live(&parts, how, stop, progress))
        }
        Paper::Tobe1999(EitherWorld { run: asked, .. }) => {
            live_parts(asked, tobe_parts, tobe1999::LIVE)?;
            run_live(asked, |how, stop, progress| tobe1999::run_live(how, &window_control, stop, progress))
        }
        Paper::Asvarujanon2014(AsvarujanonRun { run: EitherWorld { run: asked, .. }, .. }) => {
            let parts = live_parts(asked, |part| asvarujanon_parts(part, false), asvarujanon2014::LIVE)?;
            run_live(asked, |how, stop, progress| asvarujanon2014::run_live(&parts, how, stop, progress))
        }
    }
}

/// Runs the experiments. If the user interrupts them, the results contain the completed experiments.
fn run_live<P: ValueEnum + Send + Sync>(
    asked: &PaperRun<P>,
    run: impl FnOnce(&Options, &AtomicBool, &dyn Fn(f64)) -> Result<Results, ExperimentError>,
) -> Result<Outcome, CliError> {
    let stop = catch_interrupt()?;
    carry_out(asked, "live", |how, progress| run(how, &stop, progress))?;
    Ok(outcome(&stop))
}

/// Returns the requested parts, or an error if one of them cannot be run live. `all` requests all parts that can be run
/// live.
fn live_parts<P: ValueEnum + Send + Sync, T: PartialEq + Copy>(
    asked: &PaperRun<P>,
    parts: fn(P) -> Vec<T>,
    live: &[T],
) -> Result<Vec<T>, CliError> {
    let name = |part: &P| part.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned());
    let can_be = |part: &&P| parts((*part).clone()).iter().all(|part| live.contains(part));
    if let Some(part) = asked.parts.iter().find(|part| name(part) != "all" && !can_be(part)) {
        let live: Vec<_> = P::value_variants().iter().filter(can_be).map(name).collect();
        return Err(PaperError::NotLive { part: name(part), live: live.join(", ") }.into());
    }
    let wanted = asked.parts.iter().cloned().flat_map(parts);
    Ok(wanted.filter(|part| live.contains(part)).collect())
}
