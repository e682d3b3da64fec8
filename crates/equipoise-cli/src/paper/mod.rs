//! `equipoise paper`: a paper's experiments, run again.

pub(crate) mod args;

use std::sync::atomic::AtomicBool;

use clap::ValueEnum;
use equipoise_lab::paper::{
    ExperimentError, Options, Results, asvarujanon2014, kodama2009, subramanya2003, tobe1999, waki2013,
};
use equipoise_lab::report;
use equipoise_lab::sim::SimError;

use crate::commands::{Outcome, catch_interrupt, outcome, say};
use crate::error::CliError;
use crate::output::Output;
use crate::table::Table;
use args::{
    AsvarujanonPart, AsvarujanonRun, EitherWorld, KodamaPart, Paper, PaperRun, SubramanyaPart, TobePart, WakiPart,
};

/// Runs the parts that were asked for; complete whatever the verdicts.
pub(crate) fn run(paper: &Paper) -> Result<Outcome, CliError> {
    match paper {
        Paper::Waki2013(asked) => simulate(asked, waki_parts, waki2013::run),
        Paper::Kodama2009(EitherWorld { run: asked, live: false }) => simulate(asked, kodama_parts, kodama2009::run),
        Paper::Kodama2009(EitherWorld { run: asked, live: true }) => {
            live_parts(asked, kodama_parts, kodama2009::LIVE)?;
            #[cfg(feature = "kernel")]
            let _symbiosis = crate::kernel::lend(kodama2009::CONGESTION_CONTROLS.contains(&equipoise_kernel::NAME))?;
            run_live(asked, kodama2009::run_live)
        }
        Paper::Subramanya2003(EitherWorld { run: asked, live: false }) => {
            simulate(asked, subramanya_parts, subramanya2003::run)
        }
        Paper::Subramanya2003(EitherWorld { run: asked, live: true }) => {
            let parts = live_parts(asked, subramanya_parts, subramanya2003::LIVE)?;
            run_live(asked, |how, stop, progress| subramanya2003::run_live(&parts, how, stop, progress))
        }
        Paper::Tobe1999(EitherWorld { run: asked, live: false }) => simulate(asked, tobe_parts, tobe1999::run),
        Paper::Tobe1999(EitherWorld { run: asked, live: true }) => {
            live_parts(asked, tobe_parts, tobe1999::LIVE)?;
            #[cfg(feature = "kernel")]
            let window_control = crate::kernel::window_control;
            #[cfg(not(feature = "kernel"))]
            let window_control = |_: &str| None;
            run_live(asked, |how, stop, progress| tobe1999::run_live(how, &window_control, stop, progress))
        }
        Paper::Asvarujanon2014(AsvarujanonRun { run: EitherWorld { run: asked, live: true }, .. }) => {
            let parts = live_parts(asked, |part| asvarujanon_parts(part, false), asvarujanon2014::LIVE)?;
            run_live(asked, |how, stop, progress| asvarujanon2014::run_live(&parts, how, stop, progress))
        }
        Paper::Asvarujanon2014(AsvarujanonRun { run: EitherWorld { run: asked, live: false }, pairs }) => {
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

/// Interrupted, it gives what it has.
fn run_live<P: ValueEnum + Send + Sync>(
    asked: &PaperRun<P>,
    run: impl FnOnce(&Options, &AtomicBool, &dyn Fn(f64)) -> Result<Results, ExperimentError>,
) -> Result<Outcome, CliError> {
    let stop = catch_interrupt()?;
    carry_out(asked, "live", |how, progress| run(how, &stop, progress))?;
    Ok(outcome(&stop))
}

/// What was asked for, of the parts that can be run live; all of these for `all`.
fn live_parts<P: ValueEnum + Send + Sync, T: PartialEq + Copy>(
    asked: &PaperRun<P>,
    parts: fn(P) -> Vec<T>,
    live: &[T],
) -> Result<Vec<T>, CliError> {
    let name = |part: &P| part.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned());
    let can_be = |part: &&P| parts((*part).clone()).iter().all(|part| live.contains(part));
    if let Some(part) = asked.parts.iter().find(|part| name(part) != "all" && !can_be(part)) {
        let live: Vec<_> = P::value_variants().iter().filter(can_be).map(name).collect();
        return Err(CliError::NotLive { part: name(part), live: live.join(", ") });
    }
    let wanted = asked.parts.iter().cloned().flat_map(parts);
    Ok(wanted.filter(|part| live.contains(part)).collect())
}

fn carry_out<P: ValueEnum + Send + Sync, E: Into<CliError>>(
    asked: &PaperRun<P>,
    doing: &'static str,
    run: impl FnOnce(&Options, &(dyn Fn(f64) + Sync)) -> Result<Results, E>,
) -> Result<(), CliError> {
    let html = asked.results.report.as_deref().map(Output::promise).transpose()?;
    let json = asked.results.json.as_deref().map(Output::promise).transpose()?;
    let table = Table::new(asked.results.quiet, doing);
    let how =
        Options { runs: asked.runs, quick: asked.quick, seed: asked.seed, threads: asked.threads.map(usize::from) };
    let results = run(&how, &|share| table.progress(share)).map_err(Into::into)?;
    table.finish();
    let json_to_stdout = matches!(json, Some(Output::Stdout));
    say(asked.results.quiet || json_to_stdout, &results.to_text());
    if let Some(html) = html {
        html.fulfil(&report::paper_html(&results))?;
    }
    json.map_or(Ok(()), |json| json.fulfil(&results.to_json()))
}

fn waki_parts(asked: WakiPart) -> Vec<waki2013::Part> {
    use waki2013::Part;
    match asked {
        WakiPart::Fig5 => vec![Part::Fig5],
        WakiPart::Fig7 => vec![Part::Fig7],
        WakiPart::Fig10 => vec![Part::Fig10],
        WakiPart::Fig12 => vec![Part::Fig12],
        WakiPart::Fig13 => vec![Part::Fig13],
        WakiPart::Fig14 => vec![Part::Fig14],
        WakiPart::Runaway => vec![Part::Runaway],
        WakiPart::Learning => vec![Part::Learning],
        WakiPart::All => Part::ALL.to_vec(),
    }
}

fn kodama_parts(asked: KodamaPart) -> Vec<kodama2009::Part> {
    use kodama2009::Part;
    match asked {
        KodamaPart::Fig3 => vec![Part::Fig3],
        KodamaPart::Fig10 => vec![Part::Fig10],
        KodamaPart::Fig11 => vec![Part::Fig11],
        KodamaPart::Fig12 => vec![Part::Fig12],
        KodamaPart::Fig15 => vec![Part::Fig15],
        KodamaPart::Fig5 => vec![Part::Fig5],
        KodamaPart::Fig6 => vec![Part::Fig6],
        KodamaPart::Inline => vec![Part::Inline],
        KodamaPart::Beyond => vec![Part::Beyond],
        KodamaPart::All => Part::ALL.to_vec(),
    }
}

fn subramanya_parts(asked: SubramanyaPart) -> Vec<subramanya2003::Part> {
    use subramanya2003::Part;
    match asked {
        SubramanyaPart::Table1 => vec![Part::Table1],
        SubramanyaPart::Table4 => vec![Part::Table4],
        SubramanyaPart::Table6 => vec![Part::Table6],
        SubramanyaPart::Fig6 => vec![Part::Fig6],
        SubramanyaPart::All => Part::ALL.to_vec(),
    }
}

fn tobe_parts(asked: TobePart) -> Vec<tobe1999::Part> {
    use tobe1999::Part;
    match asked {
        TobePart::Fig3 => vec![Part::Fig3],
        TobePart::Fig10 => vec![Part::Fig10],
        TobePart::Fig12 => vec![Part::Fig12],
        TobePart::Fig19 => vec![Part::Fig19],
        TobePart::Table3 => vec![Part::Table3],
        TobePart::Fig22 => vec![Part::Fig22],
        TobePart::Fig29 => vec![Part::Fig29],
        TobePart::Beyond => vec![Part::Beyond],
        TobePart::All => Part::ALL.to_vec(),
    }
}

/// The parts asked for; those that need pairs are among all only where there are any.
fn asvarujanon_parts(asked: AsvarujanonPart, has_pairs: bool) -> Vec<asvarujanon2014::Part> {
    use asvarujanon2014::Part;
    match asked {
        AsvarujanonPart::Fig3 => vec![Part::Fig3],
        AsvarujanonPart::Fig4 => vec![Part::Fig4],
        AsvarujanonPart::Pairs => vec![Part::Pairs],
        AsvarujanonPart::Beyond => vec![Part::Beyond],
        AsvarujanonPart::All => {
            let pairs = has_pairs.then_some(Part::Pairs);
            Part::ALL.into_iter().chain(pairs).collect()
        }
    }
}
