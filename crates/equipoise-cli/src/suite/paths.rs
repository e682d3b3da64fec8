//! `equipoise suite paths`: simulates random network paths, and judges each run.

use equipoise_lab::scenario::Catalogue;
use equipoise_lab::suite::paths::{self, Path, Plan};

use super::args::Paths;
use crate::bar::Bar;
use crate::error::CliError;
use crate::outcome::Outcome;
use crate::output::{Output, say};

/// Simulates the random paths, or writes one of the paths to a scenario file.
pub(super) fn run(options: &Paths) -> Result<Outcome, CliError> {
    let catalogue = Catalogue::default();
    let law = (&catalogue, options.controller.as_str());
    if let Some(file) = &options.scenario {
        let output = Output::promise(file)?;
        let scenario = paths::scenario(&Path::draw(options.first_seed), law).map_err(CliError::Suite)?;
        output.fulfil(&scenario.text)?;
        return Ok(Outcome::Complete);
    }
    let json = options.json.as_deref().map(Output::promise).transpose()?;
    let is_quiet = options.quiet || matches!(json, Some(Output::Stdout));
    let bar = Bar::new(options.quiet, "simulated");
    let Paths { first_seed, runs, threads, .. } = *options;
    let plan = Plan { first_seed, runs, threads: threads.map(usize::from) };
    let result = paths::run(law, &plan, &|share| bar.progress(share)).map_err(CliError::Suite)?;
    bar.finish();
    say(is_quiet, &result.to_text());
    json.map_or(Ok(()), |json| json.fulfil(&result.to_json()))?;
    Ok(if options.check && !result.is_good() { Outcome::NotHeld } else { Outcome::Complete })
}
