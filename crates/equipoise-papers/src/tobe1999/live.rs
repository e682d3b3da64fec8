//! Repeats Fig. 10, 11, 14 and 15 in real time over real sockets, with a flow pair and the kernel's TCP. Simulated
//! curves are shown for comparison.

use std::sync::atomic::AtomicBool;

use super::fig10::{LONG, SHORT, Visit, fairness_after_probing};
use super::measures::mean_rate;
use super::setting::{FIG10, PAPER_WINDOW, Trace, over, seeded};
use super::{Found, Options, Rule, Spec, parse_with, rates_chart};
use crate::experiment::Mean;
use crate::experiment::live::{LiveLab, LiveRuns};
use crate::{Claim, ExperimentError, Figure, Plot, Results, Table};
use equipoise::units::Span;
use equipoise_lab::live::WindowControl;
use equipoise_lab::result::{PairHost, PairResult, PairTransport, Run};
use equipoise_lab::scenario::{Override, Scenario};
use equipoise_lab::sim;

/// The congestion controls of the kernel. All TCP flows of a case use the same one, including the TCP of the flow pair.
const CONTROLS: [&str; 2] = ["reno", "cubic"];
/// Number of runs of each case. The paper shows one run.
const RUNS: u32 = 1;
/// Flow 2 is active from 10 s to 25 s (Tobe 1999, Sec. 6.1). With the option `quick`, the run is shorter.
const VISIT: Visit = Visit { second: (10.0, 25.0), duration_s: 40.0 };
const QUICK: Visit = Visit { second: (10.0, 18.0), duration_s: 24.0 };
const ASSUMPTIONS: &[&str] = &[
    "The hosts are network namespaces of this machine, and the router is the emulator of `equipoise live`; the paper had hosts of \
     their own. What the machine does besides shows: see the lateness in the table.",
    "The scenario is that of the simulated part, with the same starts and the same Poisson packets; so are the ends of the pair.",
    "TCP is this kernel's: SACK, timestamps, an initial window of 10 segments. With windows of 16 kB receivers offer no more than 11 \
     segments of 1448 bytes (TCP_WINDOW_CLAMP); the table has what was in flight at most. Open windows are limited by 16 MB.",
    "Hosts keep TCP's window over idleness (net.ipv4.tcp_slow_start_after_idle = 0). At the beginning of a probing period the window of \
     the pair's TCP is set to what the law asks for, by this kernel's reno and cubic in BPF, or else the first round trips are paced to \
     it: the table's caption says which.",
    "Rates of TCP are of IP packets, reckoned from what the receiving applications read: of 1500 bytes 1448 are TCP's data.",
    "The simulated curves are one run of the same setting with the simulator's NewReno, without SACK, its first window one segment; \
     there is no simulated cubic in this setting.",
];

/// The path of a case, and the limit of TCP's windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setting {
    /// Fig. 10 and 11: a round-trip time of 12 ms. TCP windows are limited to 16 kB, as in the paper.
    Short,
    /// A round-trip time of 12 ms and windows without a limit. The paper does not have this setting.
    Open,
    /// Fig. 14 and 15: a round-trip time of 160 ms, and TCP windows limited to 16 kB as in the paper.
    Long,
}

impl Setting {
    /// All settings, in the order of [`SPECS`]. A quick look uses only the first setting.
    const ALL: [Self; 3] = [Self::Short, Self::Open, Self::Long];

    const fn window(self) -> &'static str {
        if matches!(self, Self::Open) { "open" } else { "16 kB" }
    }

    const fn round_trip(self) -> Span {
        if matches!(self, Self::Long) { LONG } else { SHORT }
    }

    /// Returns the text for titles of charts.
    fn words(self) -> String {
        format!("{} ms, windows: {}", self.round_trip().as_millis_f64(), self.window())
    }
}

/// A case: a congestion control of the kernel, and a setting.
#[derive(Clone, Copy)]
struct Case {
    control: &'static str,
    setting: Setting,
}

/// The results of a case.
struct Outcome {
    case: Case,
    visit: Visit,
    live: Vec<Run>,
    simulated: Trace,
    /// Why the case has no live run; `None` if it has one.
    unavailable: Option<String>,
}

impl Case {
    /// Returns the scenario of Fig. 10 over the case's path, with the kernel's congestion control and the times of
    /// `visit`.
    fn scenario(self, visit: Visit) -> Scenario {
        let seconds = |seconds: f64| format!("{seconds} s");
        let mut overrides = vec![
            Override::set("duration", seconds(visit.duration_s)),
            Override::set("flow.\"flow 2\".start", seconds(visit.second.0)),
            Override::set("flow.\"flow 2\".stop", seconds(visit.second.1)),
        ];
        for flow in ["flow 1", "flow 2", "flow 3"] {
            overrides.push(Override::set(format!("flow.\"{flow}\".kernel"), self.control));
            let window = format!("flow.\"{flow}\".tcp.receive_window");
            overrides.push(if self.setting == Setting::Open {
                Override::remove(window)
            } else {
                Override::set(window, PAPER_WINDOW as i64)
            });
        }
        over(parse_with(FIG10, &overrides), self.setting.round_trip())
    }
}

/// Runs Fig. 10 and 14 between network namespaces, in real time. One run of each of the six cases takes 240 s in total.
/// With the option `quick`, there are only two cases with shorter runs, which take 48 s in total. Calls `progress` with
/// the share of the runs that are done. If `stop` is set, returns the results so far.
///
/// If the kernel lacks a congestion control, the cases that use this congestion control have no live runs, and the
/// figure's text says so. `window_control` gets the name of a congestion control, and returns the [`WindowControl`]
/// that sets the window of a flow pair's TCP with this congestion control.
///
/// # Errors
/// [`ExperimentError`] if the system refuses to create namespaces, sockets or threads.
pub fn run(
    options: &Options,
    window_control: &dyn Fn(&str) -> Option<WindowControl>,
    stop: &AtomicBool,
    progress: &dyn Fn(f64),
) -> Result<Results, ExperimentError> {
    let (runs, visit) = (options.runs(RUNS, 1), if options.quick { QUICK } else { VISIT });
    let settings = if options.quick { &Setting::ALL[..1] } else { &Setting::ALL[..] };
    let cases: Vec<_> =
        settings.iter().flat_map(|&setting| CONTROLS.map(|control| Case { control, setting })).collect();
    let lab = LiveLab::new(options, cases.len() as u32 * runs, stop, progress).with_windows(window_control);
    let outcomes = cases.into_iter().map(|case| outcome(&lab, case, visit, runs)).collect::<Result<Vec<_>, _>>()?;
    let found = Found { claims: claims(&outcomes, runs), figures: vec![figure(&outcomes)], ..Found::default() };
    Ok(found.live_results("Tobe 1999", options, ASSUMPTIONS))
}

/// Makes all live runs of a case, and one simulated run.
fn outcome(lab: &LiveLab<'_>, case: Case, visit: Visit, runs: u32) -> Result<Outcome, ExperimentError> {
    let (scenario, seed) = (case.scenario(visit), lab.options.seed);
    let simulated = Trace::of(&sim::simulate(&seeded(&scenario, seed), seed, &mut |_| {})?);
    let in_run = |number: u32| seeded(&scenario, seed.wrapping_add(number.into()));
    let LiveRuns { runs: live, missing: unavailable } = lab.runs(in_run, runs)?;
    Ok(Outcome { case, visit, live, simulated, unavailable })
}

/// Returns the time from `change` until the next running period of the flow pair starts, in seconds; `None` if no
/// running period follows.
fn response_s(trace: &Trace, change: f64) -> Option<f64> {
    let next = trace.began.iter().find(|began| began.at_s > change && began.over == PairTransport::Rtp)?;
    Some(next.at_s - change)
}

/// Returns the part of a run in which all three flows are active and their rates have settled, in seconds.
const fn together(visit: Visit) -> (f64, f64) {
    (visit.second.0 + 3.0, visit.second.1)
}

/// Returns the mean rate of the flow pair, divided by the average of the two TCP flows' mean rates. Only the time in
/// which all flows are active counts.
fn share(trace: &Trace, visit: Visit) -> f64 {
    let [first, second, pair] = [0, 1, 2].map(|flow| mean_rate(trace, flow, together(visit)));
    pair / f64::midpoint(first, second)
}

const fn fair(id: &'static str, figure: &'static str, statement: &'static str) -> Spec {
    Spec::new(id, figure, statement, Rule::above(0.95)).paper(1.0).unit("Jain's index")
}

const fn fair_open(id: &'static str, statement: &'static str) -> Spec {
    Spec::shown(id, "Fig. 11", statement).unit("Jain's index").ours()
}

/// The claims, indexed by the kernel's congestion control and then by the setting.
const SPECS: [[Spec; 3]; 2] = [
    [
        fair(
            "fig11.live_fair_reno",
            "Fig. 11",
            "Beside the kernel's reno: after each probing period fairness is near 1, with the paper's windows of 16 kB: above 0.95 on \
             average over the running periods, as long as no flow comes or goes; rates are means over seconds.",
        ),
        fair_open("fig11.live_fair_reno_open", "The same with open windows, which the paper has none of."),
        fair(
            "fig15.live_fair_reno",
            "Fig. 15",
            "Beside the kernel's reno over the path of 160 ms, with windows of 16 kB.",
        ),
    ],
    [
        fair("fig11.live_fair_cubic", "Fig. 11", "The same beside the kernel's cubic, with windows of 16 kB."),
        fair_open(
            "fig11.live_fair_cubic_open",
            "Beside the kernel's cubic, with open windows, which the paper has none of.",
        ),
        fair(
            "fig15.live_fair_cubic",
            "Fig. 15",
            "Beside the kernel's cubic over the path of 160 ms, with windows of 16 kB.",
        ),
    ],
];

fn claims(outcomes: &[Outcome], runs: u32) -> Vec<Claim> {
    let claim = |outcome: &Outcome| {
        let fair = |trace: &Trace| fairness_after_probing(trace, outcome.visit);
        let found: Vec<_> = outcome.live.iter().map(|run| fair(&Trace::of(run))).collect();
        let note = format!("Simulated with Reno: {}.", number(fair(&outcome.simulated), 3));
        let finite: Vec<_> = found.into_iter().filter(|fair| fair.is_finite()).collect();
        let control = CONTROLS.iter().position(|control| *control == outcome.case.control).unwrap_or_default();
        SPECS[control][outcome.case.setting as usize].decide(runs, Mean::of(&finite), note)
    };
    outcomes.iter().map(claim).collect()
}

fn figure(outcomes: &[Outcome]) -> Figure {
    let visit = outcomes.first().map_or(VISIT, |outcome| outcome.visit);
    let unavailable = outcomes.iter().filter_map(|outcome| {
        let why = outcome.unavailable.as_ref()?;
        Some(format!(" {} ({}): {why}.", outcome.case.control, outcome.case.setting.words()))
    });
    Figure {
        name: "Fig. 10, 11, 14 and 15, live".to_owned(),
        title: "A flow pair beside TCP of the kernel".to_owned(),
        text: format!(
            "1.2 Mbit/s, 12 or 160 ms. Flow 2 is there from {} to {} s. Live, and simulated with Reno beside it.{}",
            visit.second.0,
            visit.second.1,
            unavailable.collect::<String>()
        ),
        charts: outcomes.iter().flat_map(charts).collect(),
        tables: vec![table(outcomes)],
    }
}

fn charts(outcome: &Outcome) -> Vec<Plot> {
    let names = ["flow 1, TCP", "flow 2, TCP", "flow 3, TPBA"];
    let Case { control, setting } = outcome.case;
    let setting = setting.words();
    let live = outcome
        .live
        .first()
        .map(|run| rates_chart(&format!("Live beside {control}, {setting}"), &Trace::of(run), 1.0, &names));
    // The simulated curve of a setting is shown only once.
    let simulated = (control == CONTROLS[0])
        .then(|| rates_chart(&format!("Simulated beside Reno, {setting}"), &outcome.simulated, 1.0, &names));
    live.into_iter().chain(simulated).collect()
}

fn table(outcomes: &[Outcome]) -> Table {
    let columns = [
        "TCP",
        "round trip, windows",
        "",
        "fairness in running periods",
        "flow 1 (kbit/s)",
        "flow 2",
        "flow 3, TPBA",
        "TPBA over TCP",
        "running periods",
        "running again after flow 2 came (s)",
        "after it went (s)",
        "ADUs missing",
        "most in flight (segments)",
        "late, 99 % below (ms)",
    ];
    let row = |outcome: &Outcome, world: &str, trace: &Trace| {
        let visit = outcome.visit;
        let mut cells = vec![outcome.case.control.to_owned(), outcome.case.setting.words(), world.to_owned()];
        cells.push(number(fairness_after_probing(trace, visit), 3));
        cells.extend((0..3).map(|flow| number(mean_rate(trace, flow, together(visit)) / 1e3, 0)));
        cells.push(number(share(trace, visit), 2));
        cells.push(trace.began.iter().filter(|began| began.over == PairTransport::Rtp).count().to_string());
        cells.extend(
            [visit.second.0, visit.second.1]
                .map(|change| response_s(trace, change).map_or("–".to_owned(), |response| number(response, 1))),
        );
        cells
    };
    let rows = outcomes.iter().flat_map(|outcome| {
        let live = outcome.live.iter().map(|run| {
            let late = run.emulator.and_then(|emulator| emulator.late_p99_s);
            let late = late.map_or("–".to_owned(), |late_s| number(late_s * 1e3, 2));
            let missing: u64 = pairs(run).map(|pair| pair.adus_missing).sum();
            let mut cells = row(outcome, "live", &Trace::of(run));
            cells.extend([missing.to_string(), most_in_flight(run).to_string(), late]);
            cells
        });
        let mut simulated = row(outcome, "simulated, Reno", &outcome.simulated);
        simulated.extend(["–", "–", "–"].map(str::to_owned));
        let simulated = (outcome.case.control == CONTROLS[0]).then_some(simulated);
        live.chain(simulated).collect::<Vec<_>>()
    });
    let mut hosts = outcomes.iter().flat_map(|outcome| outcome.live.iter().flat_map(pairs));
    let host = hosts.find_map(|pair| pair.host.as_ref()).map_or(String::new(), |host| {
        let PairHost { window, idle_window, .. } = host;
        format!("; the pair's TCP window is {idle_window}, and {window}")
    });
    Table {
        caption: format!("Rates while all three flows are there{host}"),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}

fn number(value: f64, decimals: usize) -> String {
    if value.is_finite() { format!("{value:.decimals$}") } else { "–".to_owned() }
}

/// Returns the results of all flow pairs in a run.
fn pairs(run: &Run) -> impl Iterator<Item = &PairResult> {
    run.flows.iter().filter_map(|flow| flow.pair.as_ref())
}

/// Returns the largest number of segments in flight of any TCP flow.
fn most_in_flight(run: &Run) -> u64 {
    let samples = run.flows.iter().filter_map(|flow| flow.tcp.as_ref()).flat_map(|tcp| &tcp.samples);
    samples.map(|sample| sample.in_flight_segments).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use equipoise_lab::scenario::FlowKind;

    #[test]
    fn every_case_is_the_papers_scenario_under_its_own_congestion_control() {
        for visit in [VISIT, QUICK] {
            for (control, setting) in CONTROLS.iter().flat_map(|control| Setting::ALL.map(|setting| (control, setting)))
            {
                let scenario = Case { control, setting }.scenario(visit);
                assert!((scenario.duration.as_secs_f64() - visit.duration_s).abs() < 1e-9);
                let tcp: Vec<_> = scenario.flows.iter().filter_map(|flow| flow.connection()).collect();
                assert_eq!(tcp.len(), 3);
                for tcp in tcp {
                    assert_eq!((tcp.name(), tcp.congestion_control()), ("reno", *control));
                    assert_eq!(tcp.receive_window, (setting != Setting::Open).then_some(PAPER_WINDOW));
                }
                assert!(matches!(scenario.flows[2].kind, FlowKind::Pair(_)));
                let back = scenario.links.iter().find(|link| link.name == "back").expect("a way back");
                let way = Span::from_nanos(setting.round_trip().as_nanos() / 2);
                assert_eq!(back.forward.delay, way.into());
            }
        }
    }

    #[test]
    fn probing_is_no_answer_yet() {
        use super::super::setting::Began;
        let began = |at_s, over| Began { at_s, over, first_adu: 0 };
        let began = vec![began(1.2, PairTransport::Tcp), began(4.0, PairTransport::Rtp)];
        assert_eq!(response_s(&Trace { began, ..Trace::default() }, 1.0), Some(3.0));
    }
}
