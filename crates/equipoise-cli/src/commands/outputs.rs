use std::path::Path;

use equipoise::units::{Instant, SenderClock, Span};
use equipoise_lab::result::Report;
use equipoise_lab::scenario::{Flow, FlowKind, Scenario};
use equipoise_lab::{report, trace};
use equipoise_session::{Event, PathId};

use crate::args::Run;
use crate::error::CliError;
use crate::output::{Output, say};
use crate::summary;

/// The files that a run was asked for.
#[derive(Default)]
pub(super) struct Outputs {
    json: Option<Output>,
    html: Option<Output>,
    trace: Option<Output>,
    /// What went wrong with the trace while the run went on.
    trace_error: Option<CliError>,
}

/// Writes the events of a run to the trace, where one was asked for.
pub(super) struct Tracer<'a> {
    outputs: &'a mut Outputs,
    /// Names of the flows, and of the paths of each that has several.
    flows: Vec<(&'a str, Vec<&'a str>)>,
}

impl Tracer<'_> {
    pub(super) fn line(
        &mut self,
        at: Span,
        origin: Instant<SenderClock>,
        (flow, path): (usize, Option<PathId>),
        event: &Event,
    ) {
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
    pub(super) fn tracer<'a>(&'a mut self, scenario: &'a Scenario) -> Tracer<'a> {
        let paths = |flow| scenario.paths_of(flow).map(|path| path.name.as_str()).collect();
        Tracer { outputs: self, flows: scenario.flows.iter().map(|flow| (flow.name.as_str(), paths(flow))).collect() }
    }

    pub(super) fn fulfil(self, results: &Report, quiet: bool) -> Result<(), CliError> {
        if let Some(trace) = self.trace {
            trace.finish()?;
        }
        // Where the results themselves go to standard output, the table would spoil them.
        let json_to_stdout = matches!(self.json, Some(Output::Stdout));
        say(quiet || json_to_stdout, &summary::of(&results.runs));
        if let Some(html) = self.html {
            html.fulfil(&report::html(results))?;
        }
        self.json.map_or(Ok(()), |json| json.fulfil(&results.to_json()))?;
        self.trace_error.map_or(Ok(()), Err)
    }
}

/// Reads the scenario and opens all outputs, so that whatever is wrong is said before the run begins.
pub(super) fn prepare(options: &Run) -> Result<(Scenario, Outputs), CliError> {
    let scenario = read(&options.file)?;
    let has_target = |flow: &Flow| flow.target().is_some() && !matches!(flow.kind, FlowKind::Pair(_));
    if options.check && !scenario.flows.iter().any(has_target) {
        return Err(CliError::NothingToCheck { file: options.file.clone() });
    }
    let json = options.results.json.as_deref().map(Output::promise).transpose()?;
    let html = options.results.report.as_deref().map(Output::promise).transpose()?;
    let mut trace = options.trace.as_deref().map(Output::promise).transpose()?;
    if let Some(trace) = &mut trace {
        trace.append(trace::HEADER)?;
    }
    Ok((scenario, Outputs { json, html, trace, trace_error: None }))
}

pub(super) fn read(file: &Path) -> Result<Scenario, CliError> {
    Scenario::read(file).map_err(|source| CliError::Scenario { file: file.to_path_buf(), source })
}
