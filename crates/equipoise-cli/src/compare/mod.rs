//! `equipoise compare`: simulates variants of a scenario with the same random seeds, and compares their results.

pub(crate) mod args;
mod table;

use std::path::Path;

use equipoise_lab::compare::{self, Plan, Variant};
use equipoise_lab::report;
use equipoise_lab::scenario::{Catalogue, Scenario, ScenarioError, Swap, SwapError};

use crate::args::Changes;
use crate::bar::Bar;
use crate::commands::{read, refused};
use crate::error::CliError;
use crate::outcome::Outcome;
use crate::output::{Output, say};
use args::Compare;

/// Runs `equipoise compare`.
pub(crate) fn run(options: &Compare) -> Result<Outcome, CliError> {
    let (variants, flow) = variants(options)?;
    let json = options.results.json.as_deref().map(Output::promise).transpose()?;
    let html = options.results.report.as_deref().map(Output::promise).transpose()?;
    let seed = options.seed.or_else(|| Some(variants.first()?.scenario.seed)).unwrap_or_default();
    let plan = Plan { seed, runs: options.runs, execution: options.threads.map(usize::from).into() };
    let bar = Bar::new(options.results.quiet, "simulated");
    let comparison = compare::run(&variants, flow.as_deref(), &plan, &|share| bar.progress(share));
    let comparison = comparison.map_err(CliError::Compare)?;
    bar.finish();
    let quiet = options.results.quiet || Output::take_stdout([&json, &html]);
    say(quiet, &table::of(&comparison));
    if let Some(html) = html {
        html.fulfil(&report::comparison_html(&comparison))?;
    }
    json.map_or(Ok(()), |json| json.fulfil(&comparison.to_json()))?;
    Ok(Outcome::Complete)
}

/// Returns the variants, and the name of the flow whose delay and rate are compared. The name is `None` if several
/// files are compared and the user names no flow.
fn variants(options: &Compare) -> Result<(Vec<Variant>, Option<String>), CliError> {
    match (options.files.as_slice(), options.controller.as_slice()) {
        ([file], [_, _, ..]) => of_controllers(options, file),
        ([_, _, ..], []) => Ok((of_files(options)?, options.flow.clone())),
        (files, controllers) => Err(CliError::Variants {
            files: counted(files.len(), "file"),
            controllers: counted(controllers.len(), "controller"),
        }),
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Returns one variant for each scenario file. A variant's name is the scenario's name, or the file's path if several
/// scenarios have the same name.
fn of_files(options: &Compare) -> Result<Vec<Variant>, CliError> {
    let scenarios = options.files.iter().map(|file| read(file, &options.changes)).collect::<Result<Vec<_>, _>>()?;
    let names: Vec<_> = scenarios.iter().map(|scenario| scenario.name.clone()).collect();
    let name = |place: usize, file: &Path| match names.get(place) {
        Some(name) if names.iter().filter(|other| *other == name).count() == 1 => name.clone(),
        _ => file.display().to_string(),
    };
    let named = options.files.iter().enumerate().map(|(place, file)| name(place, file));
    Ok(named.zip(scenarios).map(|(name, scenario)| Variant { name, scenario }).collect())
}

/// Returns the variants of a single scenario, one for each controller.
fn of_controllers(options: &Compare, file: &Path) -> Result<(Vec<Variant>, Option<String>), CliError> {
    let wrong = |error| refused_swap(file, &options.changes, error);
    let text = Scenario::read_text(file).map_err(|source| refused(file, &options.changes, source))?;
    let catalogue = Catalogue::default();
    let swap = Swap::new(&catalogue, &text, &options.changes.set, options.flow.as_deref()).map_err(wrong)?;
    let names = &options.controller;
    let scenarios = swap.with(names.iter().map(String::as_str)).map_err(wrong)?;
    let variants =
        names.iter().zip(scenarios).map(|(name, scenario)| Variant { name: name.clone(), scenario }).collect();
    Ok((variants, Some(swap.flow().to_owned())))
}

/// Converts a [`SwapError`] to an error of the command. An invalid value of `--set` is reported in the form in which
/// the user wrote it.
fn refused_swap(file: &Path, changes: &Changes, error: SwapError) -> CliError {
    let is_set = |path: &str| changes.set.iter().any(|change| change.path() == path);
    match error {
        SwapError::Scenario(source) => refused(file, changes, source),
        SwapError::With { source: ScenarioError::Override { path, problem }, .. } if is_set(&path) => {
            refused(file, changes, ScenarioError::Override { path, problem })
        }
        source => CliError::Swap { file: file.to_path_buf(), source },
    }
}
