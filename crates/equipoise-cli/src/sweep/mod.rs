//! `equipoise sweep`: runs all combinations of a design's values, and can merge the results into one table.

pub(crate) mod args;
mod meter;

use std::path::PathBuf;

use equipoise_lab::scenario::{Override, Scenario};
use equipoise_lab::sweep::{Design, Folder, NamedText, Plan, Shard, SweepError};

use crate::error::CliError;
use crate::outcome::Outcome;
use crate::output::{Output, say};
use args::Sweep;
use meter::Meter;

/// Runs `equipoise sweep`.
pub(crate) fn run(options: &Sweep) -> Result<Outcome, CliError> {
    let promise = |path: &Option<PathBuf>| path.as_deref().map(Output::promise).transpose();
    let (parquet, csv) = (promise(&options.merge)?, promise(&options.csv)?);
    let is_merged = parquet.is_some() || csv.is_some();
    let folder = match options.files.as_slice() {
        [] => Folder::open(&options.out),
        _ => Plan::new(design(options)?).and_then(|plan| Folder::create(&options.out, &plan)),
    };
    let folder = folder.map_err(CliError::Sweep)?;
    let is_quiet = options.quiet || Output::take_stdout([&parquet, &csv]);
    // With `--merge` or `--csv` but without scenario files, no runs are simulated. So the front end of a cluster can
    // merge results without simulating the missing runs of other computers.
    if !(options.files.is_empty() && is_merged) {
        let meter = Meter::new(options.quiet);
        let shard = options.shard.unwrap_or(Shard::ALL);
        let done = folder.run(shard, options.threads.map(usize::from), &|progress| meter.progress(progress));
        let done = done.map_err(CliError::Sweep)?;
        meter.finish();
        let (plan, planned) = (folder.plan(), done.planned);
        let (points, runs) = (counted(plan.points(), "point"), counted(plan.runs(), "run"));
        say(is_quiet, &format!("{points}, {runs}, of which {planned} were run now: {}\n", options.out.display()));
    }
    if is_merged {
        merge(&folder, options, parquet, csv)?;
    }
    Ok(Outcome::Complete)
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Returns the design of the sweep: its scenarios, and the values to combine.
fn design(options: &Sweep) -> Result<Design, CliError> {
    let read = |file: &PathBuf| {
        let text = Scenario::read_text(file);
        let text = text.map_err(|source| CliError::Scenario { file: file.clone(), source })?;
        Ok(NamedText { file: file.display().to_string(), text })
    };
    let scenarios = options.files.iter().map(read).collect::<Result<Vec<_>, CliError>>()?;
    let seed = options.seed.map_or_else(|| first_seed(options, &scenarios), Ok)?;
    Ok(Design {
        scenarios,
        set: options.set.clone(),
        vary: options.vary.clone(),
        draw: options.draw.clone(),
        random_points: options.points.unwrap_or(1),
        seed,
        runs: options.runs.unwrap_or(1),
    })
}

/// Returns the seed of the first scenario, after the changes of `--set`.
fn first_seed(options: &Sweep, scenarios: &[NamedText]) -> Result<u64, CliError> {
    let (Some(file), Some(first)) = (options.files.first(), scenarios.first()) else { return Ok(1) };
    // Errors in the values of `--set` are reported later, when the whole design is checked.
    let set = options.set.iter().map(|text| text.parse()).collect::<Result<Vec<Override>, _>>().unwrap_or_default();
    let scenario = Scenario::parse_with(&first.text, &set);
    scenario.map(|scenario| scenario.seed).map_err(|source| CliError::Scenario { file: file.clone(), source })
}

fn merge(
    folder: &Folder,
    options: &Sweep,
    mut parquet: Option<Output>,
    mut csv: Option<Output>,
) -> Result<(), CliError> {
    let merged = folder.merge(parquet.as_mut().map(Output::writer), csv.as_mut().map(Output::writer));
    merged.map_err(|error| match (error, &options.merge, &options.csv) {
        (SweepError::Output(source), Some(path), _) | (SweepError::Csv(source), _, Some(path)) => {
            CliError::Lost { path: path.clone(), source }
        }
        (error, ..) => CliError::Sweep(error),
    })?;
    parquet.map_or(Ok(()), Output::finish)?;
    csv.map_or(Ok(()), Output::finish)
}
