//! `equipoise paper`: a paper's experiments, run again.

pub(crate) mod args;
#[cfg(feature = "live")]
mod live;

use clap::ValueEnum;
use equipoise_lab::sim::SimError;
use equipoise_papers::page::paper_html;
use equipoise_papers::{Options, Results, asvarujanon2014, kodama2009, subramanya2003, tobe1999, waki2013};

use crate::bar::Bar;
use crate::error::CliError;
use crate::outcome::Outcome;
use crate::output::{Output, say};
use args::{
    AsvarujanonPart, AsvarujanonRun, EitherWorld, KodamaPart, Paper, PaperRun, SubramanyaPart, TobePart, WakiPart,
};

/// Runs the parts that were asked for; complete whatever the verdicts.
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

fn carry_out<P: ValueEnum + Send + Sync, E: Into<CliError>>(
    asked: &PaperRun<P>,
    doing: &'static str,
    run: impl FnOnce(&Options, &(dyn Fn(f64) + Sync)) -> Result<Results, E>,
) -> Result<(), CliError> {
    let html = asked.results.report.as_deref().map(Output::promise).transpose()?;
    let json = asked.results.json.as_deref().map(Output::promise).transpose()?;
    let bar = Bar::new(asked.results.quiet, doing);
    let how =
        Options { runs: asked.runs, quick: asked.quick, seed: asked.seed, threads: asked.threads.map(usize::from) };
    let results = run(&how, &|share| bar.progress(share)).map_err(Into::into)?;
    bar.finish();
    let json_to_stdout = matches!(json, Some(Output::Stdout));
    say(asked.results.quiet || json_to_stdout, &results.to_text());
    if let Some(html) = html {
        html.fulfil(&paper_html(&results))?;
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
