//! What each subcommand does.

#[cfg(feature = "live")]
mod live;

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;
use equipoise::control::{self, Entry, Kind};
use equipoise::units::{Instant, SenderClock, Span};
use equipoise_lab::result::Report;
use equipoise_lab::scenario::Scenario;
use equipoise_lab::{Progress, report, sim as sim_world, trace};
use equipoise_session::{Event, PathId};

use crate::args::{Cli, Run};
use crate::bar::Bar;
use crate::error::CliError;
use crate::output::Output;
use crate::summary;
#[cfg(feature = "live")]
pub(crate) use live::{catch_interrupt, demo, live, outcome, window_control};

/// How a command ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It did all it was asked.
    Complete,
    /// Ctrl-C cut it short; what was run is written.
    #[cfg(feature = "live")]
    Interrupted,
}

/// `equipoise sim`.
pub(crate) fn sim(options: &Run) -> Result<Outcome, CliError> {
    let (scenario, mut outputs) = prepare(options)?;
    let seed = options.seed.unwrap_or(scenario.seed);
    let bar = Bar::new(options.results.quiet, "simulated");
    let runs = if options.runs == 1 {
        let mut trace = outputs.tracer(&scenario);
        vec![sim_world::simulate(&scenario, seed, &mut |progress| match progress {
            Progress::Share(share) => bar.progress(share),
            Progress::Event { at, origin, flow, path, event } => trace.line(at, origin, (flow, path), &event),
            Progress::Interval(_) => {}
        })?]
    } else {
        let threads = options.threads.map(usize::from);
        sim_world::simulate_many(&scenario, (seed, options.runs), threads, |run| run, &|share| bar.progress(share))?
    };
    bar.finish();
    outputs.fulfil(&Report::new(&scenario, seed, runs), options.results.quiet)?;
    Ok(Outcome::Complete)
}

/// `equipoise check`.
pub(crate) fn check(file: &Path) -> Result<Outcome, CliError> {
    let scenario = read(file)?;
    say(false, &scenario.explain());
    Ok(Outcome::Complete)
}

/// `equipoise controllers`.
pub(crate) fn controllers() -> Outcome {
    let mut text = "For media sessions: rate controllers\n\n".to_owned();
    for entry in control::entries() {
        describe(&mut text, entry);
    }
    text.push_str("For TCP flows: window laws\n\n");
    for entry in control::window::entries() {
        describe(&mut text, entry);
    }
    text.push_str("For media sessions with several paths: splitters\n\n");
    for entry in control::split::entries() {
        describe(&mut text, entry);
    }
    say(false, text.trim_end_matches('\n'));
    say(false, "\n");
    Outcome::Complete
}

/// Adds what can be said of a controller.
fn describe<C, X>(text: &mut String, entry: &Entry<C, X>) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{}\n  {}\n  source: {}", entry.name, entry.summary, entry.source);
    for parameter in entry.parameters {
        let unit = match parameter.kind {
            Kind::Number { unit: "" } => "a ratio".to_owned(),
            Kind::Number { unit } => unit.to_owned(),
            Kind::Rate => "a rate, such as \"3 Mbit/s\"".to_owned(),
            Kind::Span => "a time, such as \"8.2 ms\"".to_owned(),
            Kind::Choice(words) => words.join(" or "),
        };
        let default = parameter.default.map_or("required".to_owned(), |default| format!("default {default}"));
        let range = parameter.range.map_or(String::new(), |(min, max)| format!(", {min} to {max}"));
        let _ = writeln!(text, "    {:15} {unit}; {default}{range}", parameter.name);
        let _ = writeln!(text, "    {:15} {} ({})", "", parameter.meaning, parameter.source);
    }
    text.push('\n');
}

/// `equipoise completions`.
pub(crate) fn completions(shell: Shell) -> Outcome {
    clap_complete::generate(shell, &mut Cli::command(), "equipoise", &mut io::stdout());
    Outcome::Complete
}

/// The files that a run was asked for.
#[derive(Default)]
struct Outputs {
    json: Option<Output>,
    html: Option<Output>,
    trace: Option<Output>,
    /// What went wrong with the trace while the run went on.
    trace_error: Option<CliError>,
}

/// Writes the events of a run to the trace, where one was asked for.
struct Tracer<'a> {
    outputs: &'a mut Outputs,
    /// Names of the flows, and of the paths of each that has several.
    flows: Vec<(&'a str, Vec<&'a str>)>,
}

impl Tracer<'_> {
    fn line(&mut self, at: Span, origin: Instant<SenderClock>, (flow, path): (usize, Option<PathId>), event: &Event) {
        let (Some(file), Some((name, paths))) = (&mut self.outputs.trace, self.flows.get(flow)) else { return };
        let path = path.and_then(|path| paths.get(usize::from(path.0))).copied();
        if let Err(error) = file.append(trace::line(at, (name, path), origin, event)) {
            // The run goes on; the command fails for it in the end.
            self.outputs.trace = None;
            self.outputs.trace_error = Some(error);
        }
    }
}

impl Outputs {
    fn tracer<'a>(&'a mut self, scenario: &'a Scenario) -> Tracer<'a> {
        let paths = |flow| scenario.paths_of(flow).map(|path| path.name.as_str()).collect();
        Tracer { outputs: self, flows: scenario.flows.iter().map(|flow| (flow.name.as_str(), paths(flow))).collect() }
    }

    fn fulfil(self, results: &Report, quiet: bool) -> Result<(), CliError> {
        if let Some(error) = self.trace_error {
            return Err(error);
        }
        if let Some(trace) = self.trace {
            trace.finish()?;
        }
        // Where the results themselves go to standard output, the table would spoil them.
        let json_to_stdout = matches!(self.json, Some(Output::Stdout));
        say(quiet || json_to_stdout, &summary::of(&results.runs));
        if let Some(html) = self.html {
            html.fulfil(&report::html(results))?;
        }
        self.json.map_or(Ok(()), |json| json.fulfil(&results.to_json()))
    }
}

/// Reads the scenario and opens all outputs, so that whatever is wrong is said before the run begins.
fn prepare(options: &Run) -> Result<(Scenario, Outputs), CliError> {
    let scenario = read(&options.file)?;
    let json = options.results.json.as_deref().map(Output::promise).transpose()?;
    let html = options.results.report.as_deref().map(Output::promise).transpose()?;
    let mut trace = options.trace.as_deref().map(Output::promise).transpose()?;
    if let Some(trace) = &mut trace {
        trace.append(trace::HEADER)?;
    }
    Ok((scenario, Outputs { json, html, trace, trace_error: None }))
}

fn read(file: &Path) -> Result<Scenario, CliError> {
    Scenario::read(file).map_err(|source| CliError::Scenario { file: file.to_path_buf(), source })
}

/// Prints to standard output; a reader that has gone away is no reason to fail.
pub(crate) fn say(quiet: bool, text: &str) {
    if !quiet {
        let _ = io::stdout().write_all(text.as_bytes());
    }
}
