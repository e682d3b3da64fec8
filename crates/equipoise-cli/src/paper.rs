//! `equipoise paper`: a paper's experiments, run again.

use clap::ValueEnum;
use equipoise_lab::paper::{Options, Results, kodama2009, waki2013};
use equipoise_lab::report;
use equipoise_lab::sim::SimError;

use crate::args::{KodamaPart, Paper, PaperRun, WakiPart};
use crate::commands::{Outcome, say};
use crate::error::CliError;
use crate::output::Output;
use crate::table::Table;

/// Runs the parts that were asked for; complete whatever the verdicts.
pub(crate) fn run(paper: &Paper) -> Result<Outcome, CliError> {
    match paper {
        Paper::Waki2013(asked) => carry_out(asked, |parts, how, progress| {
            waki2013::run(&parts.iter().copied().flat_map(waki_parts).collect::<Vec<_>>(), how, progress)
        }),
        Paper::Kodama2009(asked) => carry_out(asked, |parts, how, progress| {
            kodama2009::run(&parts.iter().copied().flat_map(kodama_parts).collect::<Vec<_>>(), how, progress)
        }),
    }
}

fn carry_out<P: ValueEnum + Send + Sync>(
    asked: &PaperRun<P>,
    run: impl FnOnce(&[P], &Options, &(dyn Fn(f64) + Sync)) -> Result<Results, SimError>,
) -> Result<Outcome, CliError> {
    let html = asked.results.report.as_deref().map(Output::promise).transpose()?;
    let json = asked.results.json.as_deref().map(Output::promise).transpose()?;
    let table = Table::new(asked.results.quiet, "simulated");
    let how =
        Options { runs: asked.runs, quick: asked.quick, seed: asked.seed, threads: asked.threads.map(usize::from) };
    let results = run(&asked.parts, &how, &|share| table.progress(share))?;
    table.finish();
    let json_to_stdout = matches!(json, Some(Output::Stdout));
    say(asked.results.quiet || json_to_stdout, &results.to_text());
    if let Some(html) = html {
        html.fulfil(&report::paper_html(&results))?;
    }
    json.map_or(Ok(()), |json| json.fulfil(&results.to_json()))?;
    Ok(Outcome::Complete)
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
        KodamaPart::Inline => vec![Part::Inline],
        KodamaPart::All => Part::ALL.to_vec(),
    }
}
