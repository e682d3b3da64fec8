//! The implementation of each subcommand.

#[cfg(feature = "live")]
mod live;
mod outputs;
mod qlog;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;
use equipoise::control::{self, Entry, Kind};
use equipoise_lab::pcapng::Pcapng;
use equipoise_lab::result::{Report, Run as RunResult, World};
use equipoise_lab::scenario::Scenario;
use equipoise_lab::{Progress, sim as sim_world};
use equipoise_path::source;

use crate::args::{Changes, Cli, Run, Sim};
use crate::bar::Bar;
use crate::error::CliError;
use crate::outcome::{Outcome, checked};
use crate::output::{Output, say};
#[cfg(feature = "live")]
pub(crate) use live::{demo, live, window_control};
use outputs::{Outputs, prepare};
pub(crate) use outputs::{read, refused};

/// Runs `equipoise sim`.
pub(crate) fn sim(Sim { files, pcapng, run: options }: &Sim) -> Result<Outcome, CliError> {
    if pcapng.is_some() && files.len() > 1 {
        return Err(CliError::TraceOfSeveral);
    }
    let mut capture = pcapng.as_deref().map(Output::promise).transpose()?;
    let (scenarios, mut outputs) = prepare(files, options, World::Sim)?;
    let mut reports = Vec::new();
    for (file, scenario) in files.iter().zip(&scenarios) {
        let report = simulate(scenario, options, &mut outputs, capture.as_mut())?;
        let title = if files.len() > 1 { Some(file.as_path()) } else { None };
        outputs.list(title, &report, options.results.quiet || matches!(capture, Some(Output::Stdout)));
        reports.push(report);
    }
    outputs.fulfil(&reports)?;
    capture.map_or(Ok(()), Output::finish)?;
    let outcomes = reports.iter().map(|report| checked(options.check, &report.runs));
    Ok(outcomes.into_iter().find(|outcome| *outcome != Outcome::Complete).unwrap_or(Outcome::Complete))
}

/// Simulates all runs of a scenario.
fn simulate(
    scenario: &Scenario,
    options: &Run,
    outputs: &mut Outputs,
    capture: Option<&mut Output>,
) -> Result<Report, CliError> {
    let seed = options.seed.unwrap_or(scenario.seed);
    let bar = Bar::new(options.results.quiet, "simulated");
    // Only a single run can have a trace. Creating the events takes more time than the rest of a run, so they are
    // created only if an output needs them.
    let runs = if outputs.wants_events() || capture.is_some() {
        let mut trace = outputs.tracer(scenario);
        let mut progress = |progress| match progress {
            Progress::Share(share) => bar.progress(share),
            Progress::Event { at, origin, flow, path, half, event } => {
                trace.line(at, origin, (flow, path, half), &event);
            }
            _ => {}
        };
        vec![match capture {
            Some(capture) => captured(scenario, seed, &mut progress, capture)?,
            None => sim_world::simulate(scenario, seed, &mut progress)?,
        }]
    } else {
        // The JSON file and the file of intervals contain the series of every run. Without these files, the series are
        // kept for a limited number of runs, to limit the memory.
        let series = if outputs.wants_all() { options.runs } else { scenario.runs_with_series() };
        let is_whole = |run: &RunResult| run.seed.wrapping_sub(seed) < u64::from(series);
        let keep = |run: RunResult| if is_whole(&run) { run } else { run.without_series() };
        let threads = options.threads.map(usize::from);
        sim_world::simulate_many(scenario, (seed, options.runs), threads, keep, &|share| bar.progress(share))?
    };
    bar.finish();
    Ok(Report::new(scenario, seed, runs))
}

/// Simulates one run, and writes all its datagrams to the capture `file`.
fn captured(
    scenario: &Scenario,
    seed: u64,
    progress: &mut dyn FnMut(Progress),
    file: &mut Output,
) -> Result<RunResult, CliError> {
    let path = file.path().to_path_buf();
    let lost = |source| CliError::Lost { path: path.clone(), source };
    let mut capture = Pcapng::new(file.writer()).map_err(lost)?;
    let mut failed = None;
    let run = sim_world::simulate_captured(scenario, seed, progress, &mut |at, datagram| {
        if failed.is_none() {
            failed = capture.write(at, datagram).err();
        }
    })?;
    let finished = capture.finish().map(drop);
    failed.map_or(finished, Err).map_err(lost)?;
    Ok(run)
}

/// Runs `equipoise check`.
pub(crate) fn check(file: &Path, changes: &Changes) -> Result<Outcome, CliError> {
    let scenario = read(file, changes)?;
    say(false, &scenario.explain());
    if let Err(refused) = scenario.check_budget() {
        // If standard error is closed, the warning cannot be printed; this error is ignored.
        let _ = writeln!(anstream::stderr(), "warning: `equipoise sim` refuses this: {refused}");
    }
    Ok(Outcome::Complete)
}

/// Runs `equipoise controllers`.
pub(crate) fn controllers() -> Outcome {
    let mut text = "For media sessions: rate controllers\n\n".to_owned();
    for entry in control::entries() {
        describe(&mut text, entry);
    }
    text.push_str("For TCP flows: window laws\n\n");
    for entry in control::window::entries() {
        describe(&mut text, entry);
    }
    text.push_str("For media sessions with several paths: schedulers\n\n");
    for entry in control::scheduler::entries() {
        describe(&mut text, entry);
    }
    text.push_str("For background flows: traffic models\n\n");
    for entry in source::entries() {
        describe(&mut text, entry);
    }
    say(false, text.trim_end_matches('\n'));
    say(false, "\n");
    Outcome::Complete
}

/// Appends the description of a controller, scheduler or traffic model to `text`.
fn describe<C, X>(text: &mut String, entry: &Entry<C, X>) {
    // Writing to a `String` never fails, so the result is ignored.
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

/// Runs `equipoise completions`.
pub(crate) fn completions(shell: Shell) -> Outcome {
    // The generator panics if it cannot write, for example to a pipe that `head` has closed. A write to a vector cannot
    // fail, so the script is generated into a vector and printed afterwards.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "equipoise", &mut script);
    say(false, &String::from_utf8_lossy(&script));
    Outcome::Complete
}

/// Runs `equipoise man`.
pub(crate) fn man(folder: &Path) -> Result<Outcome, CliError> {
    let failed = |source| CliError::Output { path: folder.to_path_buf(), source };
    fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), folder).map_err(failed)?;
    Ok(Outcome::Complete)
}
