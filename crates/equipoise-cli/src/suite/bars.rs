//! `equipoise suite bars`: tests our own control law against its performance targets (bars), and prints a table of the
//! bars.

use equipoise_lab::scenario::Catalogue;
use equipoise_lab::suite::{Aqm, BarResult, NotRun, Plan, SuiteResult, bars};

use super::Files;
use super::args::Bars;
use crate::bar::Bar;
use crate::error::CliError;
use crate::outcome::Outcome;
use crate::output::say;

pub(super) fn run(options: &Bars) -> Result<Outcome, CliError> {
    let variants = bars::variants(&options.cases, options.quick).map_err(CliError::Suite)?;
    let common = &options.common;
    let files = Files::promise(common)?;
    let is_quiet = common.results.quiet || files.take_stdout();
    let catalogue = Catalogue::default();
    let controllers = match common.controllers.as_slice() {
        [] => bars::CONTROLLERS.map(str::to_owned).to_vec(),
        named => named.to_vec(),
    };
    let usual = if options.quick { bars::QUICK_RUNS } else { bars::RUNS };
    let plan = Plan {
        seed: common.seed.unwrap_or(bars::SEED),
        runs: options.runs.unwrap_or(usual),
        aqm: common.aqm.as_deref().and_then(Aqm::find),
        execution: common.threads.map(usize::from).into(),
    };
    let bar = Bar::new(common.results.quiet, "simulated");
    let result = bars::run(&variants, (&catalogue, &controllers), &plan, &|share| bar.progress(share));
    let result = result.map_err(CliError::Suite)?;
    bar.finish();
    say(is_quiet, &table(&result));
    files.fulfil(&result)?;
    Ok(Outcome::Complete)
}

/// Returns a table for each variant of the network. Below the tables are the variants that were not run, the number of
/// bars (pass criteria) that are met, and the bars that are not met.
fn table(result: &SuiteResult) -> String {
    let controllers = result.controllers();
    let heads = ["quantity", "bar"].into_iter().chain(controllers.iter().copied()).chain(["verdict"]);
    let head: Vec<_> = heads.map(str::to_owned).collect();
    let row = |bar: &BarResult| {
        let laws = controllers.iter().map(|law| bar.of(law));
        // A dash means that the bar was not judged. If a bar is not met, the control laws that do better are listed
        // below the table.
        let verdict = bar.met.map_or("–", |met| if met { "met" } else { "not met" });
        let first = [bar.label(), bar.limit_in_short()];
        first.into_iter().chain(laws).chain([verdict.to_owned()]).collect::<Vec<_>>()
    };
    let rows: Vec<_> = result.bars.iter().map(row).collect();
    let widths: Vec<_> = (0..head.len())
        .map(|column| {
            let cells = rows.iter().chain([&head]).filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            0 => format!("{cell:width$}"),
            _ if column + 1 == head.len() => cell.clone(),
            _ => format!("{cell:>width$}"),
        });
        format!("  {}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    let mut text = format!("{}, {}\n", result.suite, result.seeds());
    let mut last = None;
    for (bar, row) in result.bars.iter().zip(&rows) {
        let name = (&bar.case, &bar.variant);
        if last.replace(name) != Some(name) {
            text.push_str(&format!("\n{} {}\n{}", bar.case, bar.variant, line(&head)));
        }
        text.push_str(&line(row));
    }
    text.push_str(&format!("\n{}\n", bars::FOOTNOTES.join("\n")));
    let mut heads = "\nnot run:\n";
    for not_run @ NotRun { reason, .. } in &result.not_run {
        text.push_str(&format!("{heads}  {}: {reason}\n", not_run.name()));
        heads = "";
    }
    text.push_str(&format!("\n{}\n", result.verdicts()));
    for bar in result.bars.iter().filter(|bar| bar.met == Some(false)) {
        let (limit, own, verdict) = (bar.limit_in_short(), bar.of(bars::JUDGED), bar.verdict());
        text.push_str(&format!("  {}/{}: {}, {limit}: {own}, {verdict}\n", bar.case, bar.variant, bar.label()));
    }
    text
}
