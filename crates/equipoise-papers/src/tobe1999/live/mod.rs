//! Fig. 10 and 11 with real sockets: a flow pair beside the kernel's TCP, live, with the simulated curves beside.

mod bench;

use std::sync::atomic::AtomicBool;

use equipoise_net::NetError;
use equipoise_net::flow_pair::{PairState, WindowControl};

use super::fig10::{Visit, fairness_after_probing};
use super::measures::mean_rate;
use super::setting::{FIG10, OPEN_WINDOW, PAPER_WINDOW, Trace, simulate, with_window};
use super::{Found, Options, drafts, parse, rates_chart};
use crate::experiment::Mean;
use crate::{Claim, ExperimentError, Figure, Plot, Results, Table};
use bench::{Seen, live};
use equipoise::units::Span;
use equipoise_lab::live::LiveError;
use equipoise_lab::result::PairTransport;
use equipoise_lab::scenario::FlowKind;

/// The kernel's congestion controls under all flows of a case, the pair's TCP among them.
const CONTROLS: [&str; 2] = ["reno", "cubic"];
/// The paper shows one run.
const RUNS: u32 = 1;
/// Flow 2 is there from 10 to 25 s (Tobe 1999, Sec. 6.1); shorter for a quick look.
const VISIT: Visit = Visit { second: (10.0, 25.0), duration_s: 40.0 };
const QUICK: Visit = Visit { second: (10.0, 18.0), duration_s: 24.0 };
/// When flow 3, the pair, begins.
const PAIR_START_S: f64 = 1.0;

const ASSUMPTIONS: &[&str] = &[
    "The hosts are network namespaces of this machine, and the router is the emulator of `equipoise live`; the paper had hosts of \
     their own. What the machine does besides shows: see the lateness in the table.",
    "The bottleneck, its queue of 100 packets, the hosts' links and the round trip without queues are those of the simulated part; \
     there are no Poisson packets beside.",
    "TCP is this kernel's: SACK, timestamps, an initial window of 10 segments. Windows of 16 kB come from receive buffers of 32 kB, of \
     which the kernel takes half for its own bookkeeping at first; the table has what was in flight at most. Open windows are limited \
     by 16 MB.",
    "The pair is what `equipoise_net::flow_pair` gives any application, with the paper's parameters, and RTP packets of 588 bytes. Its \
     host keeps TCP's window over idleness (net.ipv4.tcp_slow_start_after_idle = 0). At the beginning of a probing period the window is \
     set to what the law asks for, by this kernel's reno and cubic in BPF, or else the first round trips are paced to it: the table's \
     caption says which.",
    "Rates are of IP packets, reckoned from what the receiving applications read: of 1500 bytes 1448 are TCP's data.",
    "The simulated curves are one run of the same setting with the simulator's NewReno, without SACK, its first window one segment; \
     there is no simulated cubic in this setting.",
];

/// Which connections, and how far their windows open.
#[derive(Clone, Copy)]
struct Case {
    control: &'static str,
    /// In segments, for the simulator.
    window: u64,
}

/// What was found of a case.
struct Outcome {
    case: Case,
    visit: Visit,
    live: Vec<Seen>,
    simulated: Trace,
    /// Why there is nothing live, where there is not.
    unavailable: Option<String>,
}

impl Case {
    /// The host's limits of a receive buffer, as the kernel wants them; `None` where they stay as they are.
    const fn receive_buffers(self) -> Option<&'static str> {
        if self.window == PAPER_WINDOW { Some("4096 32768 32768") } else { None }
    }

    const fn words(self) -> &'static str {
        if self.window == PAPER_WINDOW { "16 kB" } else { "open" }
    }

    fn simulate(self, visit: Visit, seed: u64) -> Result<Trace, ExperimentError> {
        let seconds = |seconds| Span::from_secs_f64(seconds).unwrap_or(Span::ZERO);
        let mut scenario = with_window(parse(FIG10), self.window);
        scenario.duration = seconds(visit.duration_s);
        if let Some(second) = scenario.flows.get_mut(1) {
            second.start = seconds(visit.second.0);
            if let FlowKind::Tcp(tcp) = &mut second.kind {
                tcp.stop = Some(seconds(visit.second.1));
            }
        }
        Ok(simulate(&scenario, seed)?)
    }
}

/// Runs Fig. 10 across network namespaces, in real time: 40 s for each of the runs of each of four cases, or 24 s of two for a quick
/// look. `progress` is told the share that is done; where `stop` is set, what was run by then is given.
///
/// A congestion control that the kernel does not have is left out, and the figure says so. `window_control` is asked who can set
/// the window of a pair over the congestion control of that name.
///
/// # Errors
/// [`ExperimentError`] where the system refuses namespaces, sockets or threads.
pub fn run(
    options: &Options,
    window_control: &dyn Fn(&str) -> Option<WindowControl>,
    stop: &AtomicBool,
    progress: &dyn Fn(f64),
) -> Result<Results, ExperimentError> {
    let (runs, visit) = (options.runs(RUNS, 1), if options.quick { QUICK } else { VISIT });
    let windows: &[u64] = if options.quick { &[PAPER_WINDOW] } else { &[PAPER_WINDOW, OPEN_WINDOW] };
    let cases: Vec<_> = windows.iter().flat_map(|&window| CONTROLS.map(|control| Case { control, window })).collect();
    let total = cases.len() as f64 * f64::from(runs);
    let mut outcomes = Vec::new();
    for (number, case) in cases.into_iter().enumerate() {
        let simulated = case.simulate(visit, options.seed)?;
        let mut outcome = Outcome { case, visit, live: Vec::new(), simulated, unavailable: None };
        for run in 0..runs {
            let done = number as f64 * f64::from(runs) + f64::from(run);
            let progress = |share| progress((done + share) / total);
            outcome.unavailable = match live(case, visit, window_control(case.control), (stop, &progress)) {
                Ok(Some(seen)) => {
                    outcome.live.push(seen);
                    continue;
                }
                Ok(None) => Some("interrupted".to_owned()),
                Err(error @ NetError::NoCongestionControl { .. }) => Some(error.to_string()),
                Err(error) => return Err(LiveError::from(error).into()),
            };
            break;
        }
        outcomes.push(outcome);
    }
    let found = Found { claims: claims(&outcomes, runs), figures: vec![figure(&outcomes)] };
    Ok(found.live_results("Tobe 1999", options, ASSUMPTIONS))
}

/// From second `change` until the pair, which may be running then, has probed again: until its next running period.
fn response_s(trace: &Trace, change: f64) -> Option<f64> {
    let next = trace.began.iter().find(|began| began.at_s > change && began.over == PairTransport::Rtp)?;
    Some(next.at_s - change)
}

/// While all three flows are there and have had time.
const fn together(visit: Visit) -> (f64, f64) {
    (visit.second.0 + 3.0, visit.second.1)
}

/// The pair's mean rate over that of the TCP flows, while all are there.
fn share(trace: &Trace, visit: Visit) -> f64 {
    let [first, second, pair] = [0, 1, 2].map(|flow| mean_rate(trace, flow, together(visit)));
    pair / f64::midpoint(first, second)
}

const FAIR: &str = "After each probing period fairness is near 1, with the paper's windows of 16 kB. Rule: above 0.95 on average over \
                    the running periods, as long as no flow comes or goes; rates are means over seconds.";
const OPEN: &str = "The same with open windows, which the paper has none of.";

fn claims(outcomes: &[Outcome], runs: u32) -> Vec<Claim> {
    let ids = [
        ("fig11.live_fair_reno", "fig11.live_fair_reno_open"),
        ("fig11.live_fair_cubic", "fig11.live_fair_cubic_open"),
    ];
    let draft = drafts("Fig. 11", runs);
    let claim = |outcome: &Outcome| {
        let fair = |trace: &Trace| fairness_after_probing(trace, outcome.visit);
        let found: Vec<_> = outcome.live.iter().map(|seen| fair(&seen.trace)).collect();
        let (paper, open) = if outcome.case.control == CONTROLS[0] { ids[0] } else { ids[1] };
        let note = format!("Simulated with Reno: {}.", number(fair(&outcome.simulated), 3));
        let finite: Vec<_> = found.into_iter().filter(|fair| fair.is_finite()).collect();
        let ours = Mean::of(&finite);
        if outcome.case.window == PAPER_WINDOW {
            let statement = format!("Beside the kernel's {}: {FAIR}", outcome.case.control);
            draft(paper, &statement, Some(1.0), "Jain's index").decide(ours, |ours| ours.ci95[0] > 0.95, note)
        } else {
            let statement = format!("Beside the kernel's {}: {OPEN}", outcome.case.control);
            draft(open, &statement, None, "Jain's index").beyond(ours, note)
        }
    };
    outcomes.iter().map(claim).collect()
}

fn figure(outcomes: &[Outcome]) -> Figure {
    let visit = outcomes.first().map_or(VISIT, |outcome| outcome.visit);
    let unavailable = outcomes.iter().filter_map(|outcome| {
        let why = outcome.unavailable.as_ref()?;
        Some(format!(" {} with windows of {}: {why}.", outcome.case.control, outcome.case.words()))
    });
    Figure {
        name: "Fig. 10 and 11, live".to_owned(),
        title: "A flow pair beside TCP of the kernel".to_owned(),
        text: format!(
            "1.2 Mbit/s, 12 ms. Flow 2 is there from {} to {} s. Live, and simulated with Reno beside it.{}",
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
    let Case { control, .. } = outcome.case;
    let windows = outcome.case.words();
    let live = outcome
        .live
        .first()
        .map(|seen| rates_chart(&format!("Live beside {control}, windows: {windows}"), &seen.trace, 1.0, &names));
    // One simulated curve for each size of windows.
    let simulated = (control == CONTROLS[0])
        .then(|| rates_chart(&format!("Simulated beside Reno, windows: {windows}"), &outcome.simulated, 1.0, &names));
    live.into_iter().chain(simulated).collect()
}

fn table(outcomes: &[Outcome]) -> Table {
    let columns = [
        "TCP",
        "windows",
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
        let mut cells = vec![outcome.case.control.to_owned(), outcome.case.words().to_owned(), world.to_owned()];
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
        let live = outcome.live.iter().map(|seen| {
            let late = seen.late.as_ref().map_or("–".to_owned(), |late| number(late.p99.as_secs_f64() * 1e3, 2));
            let mut cells = row(outcome, "live", &seen.trace);
            cells.extend([seen.missing.to_string(), seen.in_flight.to_string(), late]);
            cells
        });
        let mut simulated = row(outcome, "simulated, Reno", &outcome.simulated);
        simulated.extend(["–", "–", "–"].map(str::to_owned));
        let simulated = (outcome.case.control == CONTROLS[0]).then_some(simulated);
        live.chain(simulated).collect::<Vec<_>>()
    });
    let host = outcomes.iter().flat_map(|outcome| &outcome.live).next().map_or(String::new(), |seen| {
        let PairState { window_preset, idle_window, .. } = &seen.state;
        format!("; the pair's TCP window is {}, and {}", idle_window.name(), window_preset.name())
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
