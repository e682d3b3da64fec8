use std::path::{Path, PathBuf};

use equipoise::units::{Instant, SenderClock, Span};
use equipoise_lab::packets::PacketLines;
use equipoise_lab::result::{Report, World};
use equipoise_lab::scenario::{Flow, FlowKind, Scenario, ScenarioError};
use equipoise_lab::{report, trace};
use equipoise_session::{Event, Half, PathId};

use super::qlog::QlogFiles;
use crate::args::{Changes, Run};
use crate::error::CliError;
use crate::output::{Output, say};
use crate::summary;

/// The requested output files of a run.
#[derive(Default)]
pub(super) struct Outputs {
    json: Option<Output>,
    html: Option<Output>,
    intervals: Option<Output>,
    trace: Option<Output>,
    log: Option<Output>,
    packets: Option<(Output, PacketLines)>,
    qlog: Option<QlogFiles>,
    /// The first error that occurred while an output was written during the run.
    error: Option<CliError>,
}

/// Writes the events of a run to the requested trace, log, list of packets and qlog.
pub(super) struct Tracer<'a> {
    outputs: &'a mut Outputs,
    /// The name of each flow, with the names of the flow's paths.
    flows: Vec<(&'a str, Vec<&'a str>)>,
}

impl Tracer<'_> {
    pub(super) fn line(
        &mut self,
        at: Span,
        origin: Instant<SenderClock>,
        (flow, path, half): (usize, Option<PathId>, Half),
        event: &Event,
    ) {
        let Some((name, paths)) = self.flows.get(flow) else { return };
        let path = path.and_then(|path| paths.get(usize::from(path.0))).copied();
        let Outputs { trace, log, packets, qlog, error, .. } = self.outputs;
        append(trace, error, || Some(trace::line(at, (name, path), origin, event)));
        append(log, error, || trace::decision(at, (name, path), event));
        if let Some((file, lines)) = packets
            && let Some(line) = lines.line(at, (name, path), origin, event)
            && let Err(failed) = file.append(line)
        {
            *packets = None;
            error.get_or_insert(failed);
        }
        if let Some(files) = qlog
            && let Err(failed) = files.records((flow, half), at, path, origin, event)
        {
            *qlog = None;
            error.get_or_insert(failed);
        }
    }
}

impl Outputs {
    pub(super) fn tracer<'a>(&'a mut self, scenario: &'a Scenario) -> Tracer<'a> {
        let paths = |flow| scenario.paths_of(flow).map(|path| path.name.as_str()).collect();
        Tracer { outputs: self, flows: scenario.flows.iter().map(|flow| (flow.name.as_str(), paths(flow))).collect() }
    }

    /// Whether an output needs the events of a run.
    pub(super) const fn wants_events(&self) -> bool {
        self.trace.is_some() || self.log.is_some() || self.packets.is_some() || self.qlog.is_some()
    }

    /// Whether an output needs all data of every run.
    pub(super) const fn wants_all(&self) -> bool {
        self.json.is_some() || self.intervals.is_some()
    }

    /// Whether an output uses standard output. If so, no other text may be printed there.
    pub(super) fn take_stdout(&self) -> bool {
        let Self { json, html, intervals, trace, log, packets, .. } = self;
        let packets_take_it = matches!(packets, Some((Output::Stdout, _)));
        packets_take_it || Output::take_stdout([json, html, intervals, trace, log])
    }

    /// Prints a scenario's results as text. If there are several scenarios, `file` is given, and its name is printed
    /// first.
    pub(super) fn list(&self, file: Option<&Path>, results: &Report, quiet: bool) {
        // If an output file goes to standard output, the printed text must not be mixed with the file's content.
        let quiet = quiet || self.take_stdout();
        if let Some(file) = file {
            say(quiet, &format!("{}: {}\n", file.display(), results.scenario));
        }
        say(quiet, &summary::of(results));
        if file.is_some() {
            say(quiet, "\n");
        }
    }

    /// Writes the results of all scenarios to the requested files.
    pub(super) fn fulfil(self, results: &[Report]) -> Result<(), CliError> {
        for file in [self.trace, self.log].into_iter().flatten() {
            file.finish()?;
        }
        if let Some((file, lines)) = self.packets {
            file.fulfil(&lines.finish())?;
        }
        if let Some(qlog) = self.qlog {
            qlog.finish()?;
        }
        if let Some(intervals) = self.intervals {
            intervals.fulfil(&Report::intervals_to_csv(results))?;
        }
        if let Some(html) = self.html {
            html.fulfil(&match results {
                [only] => report::html(only),
                several => report::html_of_several(several),
            })?;
        }
        if let Some(json) = self.json {
            json.fulfil(&match results {
                [only] => only.to_json(),
                several => Report::several_to_json(several),
            })?;
        }
        self.error.map_or(Ok(()), Err)
    }
}

/// Reads the scenarios and opens all outputs, so that errors are reported before the first run.
pub(super) fn prepare(files: &[PathBuf], options: &Run, world: World) -> Result<(Vec<Scenario>, Outputs), CliError> {
    let of_one = [&options.trace, &options.log, &options.packets_csv, &options.qlog];
    if of_one.into_iter().any(Option::is_some) && files.len() > 1 {
        return Err(CliError::TraceOfSeveral);
    }
    let scenarios = files.iter().map(|file| read(file, &options.changes)).collect::<Result<Vec<_>, _>>()?;
    let has_target = |flow: &Flow| flow.target().is_some() && !matches!(flow.kind, FlowKind::Pair(_));
    let mut all = files.iter().zip(&scenarios);
    if let (true, Some((file, _))) = (options.check, all.find(|(_, scenario)| !scenario.flows.iter().any(has_target))) {
        return Err(CliError::NothingToCheck { file: file.clone() });
    }
    let promise = |path: &Option<PathBuf>| path.as_deref().map(Output::promise).transpose();
    let mut outputs = Outputs {
        json: promise(&options.results.json)?,
        html: promise(&options.results.report)?,
        intervals: promise(&options.intervals_csv)?,
        trace: promise(&options.trace)?,
        log: promise(&options.log)?,
        packets: promise(&options.packets_csv)?.map(|file| (file, PacketLines::default())),
        qlog: None,
        error: None,
    };
    if let Some(trace) = &mut outputs.trace {
        trace.append(trace::HEADER)?;
    }
    if let Some((packets, _)) = &mut outputs.packets {
        packets.append(PacketLines::HEADER)?;
    }
    if let (Some(folder), [scenario]) = (&options.qlog, scenarios.as_slice()) {
        outputs.qlog = Some(QlogFiles::promise(folder, scenario, options.seed.unwrap_or(scenario.seed), world)?);
    }
    Ok((scenarios, outputs))
}

/// Appends `line` to a requested output file. After an error the run continues without this file, and the command fails
/// at the end of the run.
fn append(file: &mut Option<Output>, error: &mut Option<CliError>, line: impl FnOnce() -> Option<String>) {
    let Some(open) = file else { return };
    if let Some(Err(failed)) = line().map(|line| open.append(line)) {
        *file = None;
        error.get_or_insert(failed);
    }
}

/// Reads a scenario file, and applies the changes that `--set` requests.
pub(crate) fn read(file: &Path, changes: &Changes) -> Result<Scenario, CliError> {
    let text = Scenario::read_text(file);
    let scenario = text.and_then(|text| Scenario::parse_with(&text, &changes.set));
    scenario.map_err(|source| refused(file, changes, source))
}

/// Returns the error for an invalid scenario, or for a value of `--set` that is not valid in the scenario.
pub(crate) fn refused(file: &Path, changes: &Changes, source: ScenarioError) -> CliError {
    let file = file.to_path_buf();
    match source {
        ScenarioError::Override { path, problem } => {
            let set = changes.set.iter().rev().find(|change| change.path() == path);
            CliError::Set { file, set: set.map_or(path, ToString::to_string), problem }
        }
        source => CliError::Scenario { file, source },
    }
}
