//! `equipoise paper`: a paper's experiments, run again.

use equipoise_lab::paper::waki2013::{self, Options, Part};
use equipoise_lab::report;

use crate::args::{Paper, PaperName, PaperPart};
use crate::commands::{Outcome, say};
use crate::error::CliError;
use crate::output::Output;
use crate::table::Table;

/// Runs the parts that were asked for; complete whatever the verdicts.
pub(crate) fn run(options: &Paper) -> Result<Outcome, CliError> {
    let html = options.results.report.as_deref().map(Output::promise).transpose()?;
    let json = options.results.json.as_deref().map(Output::promise).transpose()?;
    let table = Table::new(options.results.quiet, "simulated");
    let PaperName::Waki2013 = options.name;
    let how = Options {
        runs: options.runs,
        quick: options.quick,
        seed: options.seed,
        threads: options.threads.map(usize::from),
    };
    let results = waki2013::run(&parts(&options.parts), &how, &|share| table.progress(share))?;
    table.finish();
    let json_to_stdout = matches!(json, Some(Output::Stdout));
    say(options.results.quiet || json_to_stdout, &results.to_text());
    if let Some(html) = html {
        html.fulfil(&report::paper_html(&results))?;
    }
    json.map_or(Ok(()), |json| json.fulfil(&results.to_json()))?;
    Ok(Outcome::Complete)
}

fn parts(asked: &[PaperPart]) -> Vec<Part> {
    let part = |asked: &PaperPart| match asked {
        PaperPart::Fig5 => vec![Part::Fig5],
        PaperPart::Fig7 => vec![Part::Fig7],
        PaperPart::Fig10 => vec![Part::Fig10],
        PaperPart::Fig12 => vec![Part::Fig12],
        PaperPart::Fig13 => vec![Part::Fig13],
        PaperPart::Fig14 => vec![Part::Fig14],
        PaperPart::Runaway => vec![Part::Runaway],
        PaperPart::Learning => vec![Part::Learning],
        PaperPart::All => Part::ALL.to_vec(),
    };
    asked.iter().flat_map(part).collect()
}
