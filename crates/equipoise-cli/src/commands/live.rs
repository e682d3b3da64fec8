use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use equipoise_lab::live::{Setup, Stage, WindowControl};
use equipoise_lab::record::IntervalRow;
use equipoise_lab::result::{Report, Run as RunResult, World};
use equipoise_lab::scenario::{Flow, FlowKind, Scenario};
use equipoise_lab::{Progress, live as live_world, report, sim as sim_world};

use super::outputs::{Outputs, prepare};
use crate::args::{Demo, Live};
use crate::bar::Bar;
use crate::error::CliError;
use crate::outcome::{Outcome, catch_interrupt, checked, outcome};
use crate::output::{Output, say};
use crate::summary::{self, millis};
use crate::views::Views;
use crate::views::told::{Interval, Measured, Open, Start, Told, Way};

/// Runs `equipoise demo`.
pub(crate) fn demo(options: &Demo) -> Result<Outcome, CliError> {
    let session = if options.short { equipoise_lab::DEMO_SHORT } else { equipoise_lab::DEMO };
    fs::create_dir_all(&options.out).map_err(|source| CliError::Output { path: options.out.clone(), source })?;
    let html_path = options.out.join("report.html");
    let html = Output::promise(&html_path)?;
    let json = Output::promise(&options.out.join("report.json"))?;
    let stop = catch_interrupt()?;
    let mut reports = Vec::new();
    for text in [session, equipoise_lab::DEMO_OWN] {
        let scenario = parse(Path::new("the demo's scenario"), text)?;
        reports.push(in_both_worlds(&scenario, options, &stop)?);
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    html.fulfil(&report::html_of_several(&reports))?;
    json.fulfil(&Report::several_to_json(&reports))?;
    say(options.quiet, &format!("report: {}\n", html_path.display()));
    Ok(outcome(&stop))
}

/// Runs a scenario of the demo twice, simulated and live, and returns the report of both runs.
fn in_both_worlds(scenario: &Scenario, options: &Demo, stop: &AtomicBool) -> Result<Report, CliError> {
    let seed = options.seed.unwrap_or(scenario.seed);
    say(options.quiet, &format!("{}\n", scenario.description));
    let watched = Watched { scenario, views: &Views::default(), quiet: options.quiet, run: 0, from_s: 0.0 };
    let live = run_live(&watched, &setup(seed, options.namespaces), stop, &mut Outputs::default())?;
    let mut runs = sim_world::simulate_many(scenario, (seed, 1), None, |run| run, &|_| {})?;
    runs.push(live);
    let report = Report::new(scenario, seed, runs);
    say(options.quiet, &format!("\n{}\n", summary::of(&report)));
    Ok(report)
}

/// Runs `equipoise live`.
pub(crate) fn live(options: &Live) -> Result<Outcome, CliError> {
    let Live { file, run: options, namespaces, overlay, viewing } = options;
    let (mut scenarios, mut outputs) = prepare(std::slice::from_ref(file), options, World::Live)?;
    // `prepare` returns one scenario for each file, and `live` has exactly one file.
    let scenario = scenarios.remove(0);
    let seed = options.seed.unwrap_or(scenario.seed);
    if *overlay {
        sim_world::check(&scenario)?;
    }
    #[cfg(feature = "kernel")]
    let _symbiosis = crate::kernel::lend(*namespaces && scenario.wants_of_kernel(equipoise_kernel::NAME))?;
    let stop = catch_interrupt()?;
    // The views write no report (`None`), because the report is made later from the results of all runs.
    let views = Views::open(viewing, None, options.results.quiet, outputs.take_stdout(), &stop)?;
    views.tell(Told::Start(Start {
        version: env!("CARGO_PKG_VERSION"),
        command: "live",
        title: scenario.name.clone(),
    }));
    let quiet = options.results.quiet || views.takes_stdout() || outputs.take_stdout();
    let mut runs = Vec::new();
    let mut from_s = 0.0;
    for number in 0..u64::from(options.runs) {
        let watched =
            Watched { scenario: &scenario, views: &views, quiet: quiet || views.has_ui(), run: number, from_s };
        let run = run_live(&watched, &setup(seed.wrapping_add(number), *namespaces), &stop, &mut outputs)?;
        from_s += run.lasted_s;
        runs.push(run);
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    let viewed = views.finish(from_s);
    if *overlay {
        let simulated = (seed, runs.len() as u32);
        let threads = options.threads.map(usize::from);
        runs.extend(sim_world::simulate_many(&scenario, simulated, threads, |run| run, &|_| {})?);
    }
    let report = Report::new(&scenario, seed, runs);
    outputs.list(None, &report, quiet);
    let reports = [report];
    outputs.fulfil(&reports)?;
    viewed?;
    let [report] = reports;
    Ok(match outcome(&stop) {
        Outcome::Complete => checked(options.check, &report.runs),
        interrupted => interrupted,
    })
}

/// One of the command's runs, and the views that show it.
struct Watched<'a> {
    scenario: &'a Scenario,
    views: &'a Views,
    quiet: bool,
    /// `run` is the number of this run, counted from 0. `from_s` is the total length of all earlier runs, in s.
    run: u64,
    from_s: f64,
}

impl Watched<'_> {
    /// Returns the series number of a flow of this run. In the views, each flow of each run is a series.
    fn series(&self, flow: usize) -> u64 {
        self.run * self.scenario.flows.len() as u64 + flow as u64
    }

    /// Returns the flows that report measurements for each interval, each with its index in the scenario.
    fn told(&self) -> impl Iterator<Item = (usize, &Flow)> {
        let has_intervals = |flow: &Flow| matches!(flow.kind, FlowKind::Session { .. } | FlowKind::Multipath(_));
        self.scenario.flows.iter().enumerate().filter(move |(_, flow)| has_intervals(flow))
    }

    /// Announces to the views all flows that report measurements for each interval.
    fn begin(&self) {
        for (flow, it) in self.told() {
            let name = if self.run > 0 { format!("{}, run {}", it.name, self.run + 1) } else { it.name.clone() };
            let open = Open { series: self.series(flow), at_s: self.from_s, name, direction: Way::Sent };
            self.views.tell(Told::Open(open));
        }
    }

    fn row(&self, row: IntervalRow) {
        let Some(flow) = self.scenario.flows.iter().position(|flow| flow.name == row.flow) else { return };
        let (series, at_s) = (self.series(flow), self.from_s + row.end_s);
        let interval = Interval { series, at_s, measured: Measured::Flow(row) };
        self.views.tell(Told::Interval(Box::new(interval)));
    }

    fn end(&self, at_s: f64) {
        for (flow, _) in self.told() {
            self.views.tell(Told::End { series: self.series(flow), at_s, why: "the run ended" });
        }
    }
}

fn run_live(
    watched: &Watched<'_>,
    setup: &Setup<'_>,
    stop: &AtomicBool,
    outputs: &mut Outputs,
) -> Result<RunResult, CliError> {
    let mut table = Table::new(watched.quiet, "live");
    let mut trace = outputs.tracer(watched.scenario);
    watched.begin();
    let run = live_world::run(watched.scenario, setup, stop, &mut |progress| match progress {
        Progress::Share(share) => table.bar.progress(share),
        Progress::Interval(row) => {
            table.row(&row);
            watched.row(row);
        }
        Progress::Event { at, origin, flow, path, half, event } => {
            trace.line(at, origin, (flow, path, half), &event);
            if path.is_none() {
                watched.views.tell_of_breaker(watched.series(flow), watched.from_s + at.as_secs_f64(), &event);
            }
        }
        _ => {}
    })?;
    table.bar.finish();
    watched.end(watched.from_s + run.lasted_s);
    Ok(run)
}

fn setup(seed: u64, namespaces: bool) -> Setup<'static> {
    let stage = if namespaces { Stage::Namespaces } else { Stage::Loopback };
    Setup { seed, stage, window_control: &window_control }
}

/// Registers a variant of the congestion control `control` (`reno` or `cubic`) whose congestion window can be set.
/// Returns `None` if `control` has another value, if the registration fails, or if this build lacks the feature
/// `kernel`.
pub(crate) fn window_control(control: &str) -> Option<WindowControl> {
    #[cfg(feature = "kernel")]
    return crate::kernel::window_control(control);
    #[cfg(not(feature = "kernel"))]
    {
        let _ = control;
        None
    }
}

fn parse(name: &Path, text: &str) -> Result<Scenario, CliError> {
    Scenario::parse(text).map_err(|source| CliError::Scenario { file: name.to_path_buf(), source })
}

/// The table of a live run. It prints one line for each interval to standard output, with a progress bar below the
/// lines.
#[derive(Debug)]
struct Table {
    bar: Bar,
    quiet: bool,
    rows: usize,
}

/// Number of rows after which the table's header is printed again.
const PAGE: usize = 20;

impl Table {
    /// Creates a table that prints nothing if `quiet` is set. `what` is the label of the progress bar.
    fn new(quiet: bool, what: &'static str) -> Self {
        Self { bar: Bar::new(quiet, what), quiet, rows: 0 }
    }

    /// Prints the row of one interval of a session with a rate controller.
    fn row(&mut self, row: &IntervalRow) {
        if self.quiet {
            return;
        }
        if self.rows.is_multiple_of(PAGE) {
            self.line("    time     rate     delay: mean      p95   target    lost  decided by");
        }
        self.rows += 1;
        let lost = if row.packets == 0 { 0.0 } else { 100.0 * row.packets_lost as f64 / row.packets as f64 };
        self.line(&format!(
            "{:6.1} s {:6.2} Mbit/s {} {} {} {:5.1} %  {}",
            row.end_s,
            row.rate_bps / 1e6,
            millis(row.delay_mean_s),
            millis(row.delay_p95_s),
            millis(row.target_s),
            lost,
            row.reason.as_deref().unwrap_or("-"),
        ));
    }

    fn line(&self, text: &str) {
        // A write error is ignored: if standard output was closed, the run continues, because its report is still
        // needed.
        self.bar.aside(|| {
            let _ = writeln!(io::stdout(), "{text}");
        });
    }
}
