//! `equipoise suite`: runs many test cases with many controllers.

pub(crate) mod args;
mod bars;
#[cfg(feature = "live")]
mod live;
mod paths;
mod table;

use std::path::PathBuf;

use equipoise_lab::report;
use equipoise_lab::scenario::Catalogue;
use equipoise_lab::suite::{self, Aqm, Item, Plan, SuiteResult, rfc8867, traces};

use crate::bar::Bar;
use crate::error::CliError;
use crate::outcome::Outcome;
use crate::output::{Output, Results, say};
use args::{Common, Rfc8867, Suite, Traces};

/// Runs `equipoise suite`.
pub(crate) fn run(suite: &Suite) -> Result<Outcome, CliError> {
    match suite {
        Suite::Rfc8867(options) => cases(options),
        Suite::Bars(options) => bars::run(options),
        Suite::Traces(options) => over_traces(options),
        Suite::Paths(options) => paths::run(options),
    }
}

fn cases(options: &Rfc8867) -> Result<Outcome, CliError> {
    let items = rfc8867::items(&options.cases, options.quick).map_err(CliError::Suite)?;
    let usual = if options.quick { rfc8867::QUICK_RUNS } else { rfc8867::RUNS };
    let asked = Asked {
        name: rfc8867::NAME,
        items,
        runs: options.runs.unwrap_or(usual),
        #[cfg(feature = "live")]
        live_runs: options.live.then(|| options.runs.unwrap_or(suite::live::RUNS)),
    };
    all(&asked, &options.common)
}

fn over_traces(options: &Traces) -> Result<Outcome, CliError> {
    let settings = traces::Settings { duration: options.duration, max_rate: options.max_rate };
    let items = traces::items(&options.folder, &settings).map_err(CliError::Suite)?;
    let asked = Asked {
        name: traces::NAME,
        items,
        runs: options.runs,
        #[cfg(feature = "live")]
        live_runs: None,
    };
    all(&asked, &options.common)
}

/// The seed of the first run if the user sets no seed. `suite bars` has its own default.
const FIRST_SEED: u64 = 1;

/// The runs that the user requested.
struct Asked {
    name: &'static str,
    items: Vec<Item>,
    /// Number of simulated runs of each variant with each controller.
    runs: u32,
    /// Number of live runs of each variant with each controller; `None` without `--live`.
    #[cfg(feature = "live")]
    live_runs: Option<u32>,
}

/// The output files that the user requested.
struct Files {
    json: Option<Output>,
    csv: Option<Output>,
    html: Option<Output>,
}

impl Files {
    fn promise(options: &Common) -> Result<Self, CliError> {
        let promise = |path: &Option<PathBuf>| path.as_deref().map(Output::promise).transpose();
        let Results { json, report, .. } = &options.results;
        Ok(Self { json: promise(json)?, csv: promise(&options.csv)?, html: promise(report)? })
    }

    /// Whether a result file goes to standard output. If so, no other text may be printed there.
    fn take_stdout(&self) -> bool {
        Output::take_stdout([&self.json, &self.csv, &self.html])
    }

    fn fulfil(self, result: &SuiteResult) -> Result<(), CliError> {
        if let Some(html) = self.html {
            html.fulfil(&report::suite_html(result))?;
        }
        self.csv.map_or(Ok(()), |csv| csv.fulfil(&result.to_csv()))?;
        self.json.map_or(Ok(()), |json| json.fulfil(&result.to_json()))
    }
}

/// Runs all items with all controllers, prints the results, and writes the requested files.
fn all(asked: &Asked, options: &Common) -> Result<Outcome, CliError> {
    let files = Files::promise(options)?;
    let is_quiet = options.results.quiet || files.take_stdout();
    let catalogue = Catalogue::default();
    let controllers = match options.controllers.as_slice() {
        [] => suite::default_controllers(&catalogue),
        named => named.to_vec(),
    };
    let law = (&catalogue, controllers.as_slice());
    let plan = Plan {
        seed: options.seed.unwrap_or(FIRST_SEED),
        runs: asked.runs,
        aqm: options.aqm.as_deref().and_then(Aqm::find),
        execution: options.threads.map(usize::from).into(),
    };
    #[cfg(feature = "live")]
    let live =
        asked.live_runs.map(|runs| live::Live::announce(&asked.items, law, Plan { runs, ..plan.clone() }, is_quiet));
    #[cfg(feature = "live")]
    let live = live.transpose()?;
    let bar = Bar::new(options.results.quiet, "simulated");
    let result = suite::run(asked.name, &asked.items, law, &plan, &|share| bar.progress(share));
    let result = result.map_err(CliError::Suite)?;
    bar.finish();
    #[cfg(feature = "live")]
    let (result, outcome) = match live {
        Some(live) => live.run_beside(result, options.results.quiet)?,
        None => (result, Outcome::Complete),
    };
    #[cfg(not(feature = "live"))]
    let outcome = Outcome::Complete;
    say(is_quiet, &table::of(&result));
    if asked.name == traces::NAME {
        say(is_quiet, &format!("\n{}", result.link_verdicts_markdown()));
    }
    files.fulfil(&result)?;
    Ok(outcome)
}
