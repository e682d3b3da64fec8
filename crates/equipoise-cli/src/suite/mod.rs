//! `equipoise suite`: many cases under many controllers.

pub(crate) mod args;
mod table;

use equipoise_lab::report;
use equipoise_lab::scenario::Catalogue;
use equipoise_lab::suite::{self, Aqm, Item, Plan, rfc8867, traces};

use crate::bar::Bar;
use crate::error::CliError;
use crate::outcome::Outcome;
use crate::output::{Output, say};
use args::{Common, Rfc8867, Suite, Traces};

/// `equipoise suite`.
pub(crate) fn run(suite: &Suite) -> Result<Outcome, CliError> {
    match suite {
        Suite::Rfc8867(options) => cases(options),
        Suite::Traces(options) => over_traces(options),
    }
}

fn cases(options: &Rfc8867) -> Result<Outcome, CliError> {
    let items = rfc8867::items(&options.cases, options.quick).map_err(CliError::Suite)?;
    let usual = if options.quick { rfc8867::QUICK_RUNS } else { rfc8867::RUNS };
    all(rfc8867::NAME, &items, options.runs.unwrap_or(usual), &options.common)
}

fn over_traces(options: &Traces) -> Result<Outcome, CliError> {
    let settings = traces::Settings { duration: options.duration, max_rate: options.max_rate };
    let items = traces::items(&options.folder, &settings).map_err(CliError::Suite)?;
    all(traces::NAME, &items, options.runs, &options.common)
}

/// Runs all items, and writes what was asked for.
fn all(name: &str, items: &[Item], runs: u32, options: &Common) -> Result<Outcome, CliError> {
    let promise = |path: &Option<std::path::PathBuf>| path.as_deref().map(Output::promise).transpose();
    let [json, csv, html] = [&options.results.json, &options.csv, &options.results.report].map(promise);
    let (json, csv, html) = (json?, csv?, html?);
    let catalogue = Catalogue::default();
    let controllers = match options.controllers.as_slice() {
        [] => suite::default_controllers(&catalogue),
        named => named.to_vec(),
    };
    let plan = Plan {
        seed: options.seed,
        runs,
        aqm: options.aqm.as_deref().and_then(Aqm::find),
        threads: options.threads.map(usize::from),
    };
    let bar = Bar::new(options.results.quiet, "simulated");
    let result = suite::run(name, items, (&catalogue, &controllers), &plan, &|share| bar.progress(share));
    let result = result.map_err(CliError::Suite)?;
    bar.finish();
    let is_taken = [&json, &csv].into_iter().any(|output| matches!(output, Some(Output::Stdout)));
    say(options.results.quiet || is_taken, &table::of(&result));
    if let Some(html) = html {
        html.fulfil(&report::suite_html(&result))?;
    }
    csv.map_or(Ok(()), |csv| csv.fulfil(&result.to_csv()))?;
    json.map_or(Ok(()), |json| json.fulfil(&result.to_json()))?;
    Ok(Outcome::Complete)
}
