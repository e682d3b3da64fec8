//! Repeats Fig. 5 in real time with the TCP of a real kernel, as in the thesis. Simulated curves are shown for
//! comparison.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use super::fig5::{
    AVAILABLE_MBPS, BOTH_USE_IT, LOSSES, MORE_THAN_RENO, NO_LESS_FAR_AWAY, available, delay, interval, line, other_law,
};
use super::scenarios::FIG5;
use super::series::{Stretch, goodput_mbps, resent_within, samples, tcp};
use super::{Found, Options, Spec, parse_with, ratio, scaled};
use crate::experiment::Mean;
use crate::experiment::live::{LiveLab, LiveRuns};
use crate::{Claim, ExperimentError, Figure, Plot, PlotData, PlotLayer, Results, Table};
use equipoise_lab::result::Run;
use equipoise_lab::scenario::{Override, Scenario};
use equipoise_lab::sim;
use equipoise_lab::statistics::{quantile, sorted};

/// The congestion controls of the kernel that this experiment compares.
pub const CONGESTION_CONTROLS: [&str; 4] = ["symbiosis", "reno", "cubic", "bbr"];

/// Number of runs of each case. The thesis shows one run.
const RUNS: u32 = 1;
/// Round-trip times of the short and the long path in ms, in the order of the figure.
const ROUND_TRIPS_MS: [u32; 2] = [30, 150];
/// Length of a stage, in which the background traffic is constant, in seconds.
const STAGE_S: f64 = 40.0;
/// Length of a stage in a quick look, in seconds.
const QUICK_STAGE_S: f64 = 4.0;
const STAGES: usize = 3;

const ASSUMPTIONS: &[&str] = &[
    "The hosts are network namespaces of this machine, and the router is the emulator of `equipoise live`; the thesis had \
     hosts of their own and Dummynet. What the machine does besides shows: see the lateness in the table.",
    "The bottleneck's queue holds 50 packets, Dummynet's default; the thesis does not print it. Links of 1 Gbit/s without a \
     queue to speak of lie before and behind.",
    "The background is even packets of 1500 bytes, as its generator sends.",
    "Symbiosis is this project's program in the kernel: it measures by its own trains, and gamma heeds noise, which the \
     thesis' implementation did not do yet. reno, cubic and bbr are the kernel's.",
    "Goodput is what the receiving application reads. Of an IP packet of 1500 bytes, 1448 are data.",
    "The simulated curves are those of `fig5` without `--live`: bandwidth known every 3.5 round-trip times instead of \
     measured, gamma as it is set, 1460 bytes of data in a packet. Beside them Symbiosis as the kernel's program has it: the \
     same integers, bandwidth from its own segments, and gamma that heeds noise. There is none of bbr, which the simulator does \
     not have.",
];

/// A case: one congestion control over one path.
#[derive(Clone, Copy)]
struct Case {
    control: &'static str,
    round_trip_ms: u32,
    stage_s: f64,
}

/// The results of a case.
struct Outcome {
    case: Case,
    live: Vec<Run>,
    /// The simulated runs for comparison, with the names of their curves.
    simulated: Vec<(&'static str, Run)>,
    /// Why live runs are missing; `None` if no live run is missing.
    missing: Option<String>,
}

impl Case {
    /// Returns the scenario of Fig. 5 with the case's congestion control, round-trip time and stage length.
    fn scenario(self) -> Scenario {
        let seconds = |stages: usize| format!("{} s", self.stage_s * stages as f64);
        let mut overrides = vec![
            delay(self.round_trip_ms),
            Override::set("duration", seconds(STAGES)),
            Override::set("sample_interval", format!("{} s", self.stage_s / STAGE_S)),
            Override::set("flow.background.source.steps.0.at", seconds(1)),
            Override::set("flow.background.source.steps.1.at", seconds(2)),
        ];
        match self.control {
            "symbiosis" => overrides.push(interval(self.round_trip_ms)),
            "bbr" => overrides.extend([
                Override::remove("flow.tcp.window"),
                Override::remove("flow.tcp.bandwidth"),
                Override::set("flow.tcp.kernel", "bbr"),
            ]),
            law => overrides.extend(other_law(law)),
        }
        parse_with(FIG5, &overrides)
    }

    /// Returns the simulated scenarios for comparison, with the names of their curves.
    fn simulated(self) -> Vec<(&'static str, Scenario)> {
        let scenario = self.scenario();
        match self.control {
            "bbr" => Vec::new(),
            "symbiosis" => {
                let as_in_the_kernel = [
                    Override::remove("flow.tcp.window.noise_aware"),
                    Override::set("flow.tcp.window.arithmetic", "fixed"),
                    Override::set("flow.tcp.bandwidth", BTreeMap::from([("kind", "inline")])),
                ];
                let like_the_kernel = parse_with(&scenario.text, &as_in_the_kernel);
                vec![("simulated", scenario), ("simulated, measuring inline", like_the_kernel)]
            }
            _ => vec![("simulated", scenario)],
        }
    }

    fn whole(self) -> Stretch {
        (0.0, self.stage_s * STAGES as f64)
    }

    fn stage(self, number: usize) -> Stretch {
        (self.stage_s * number as f64, self.stage_s * (number + 1) as f64)
    }
}

/// Runs Fig. 5 between network namespaces, in real time. One run of all cases takes 16 minutes, or 100 s in a quick
/// look. Calls `progress` with the completed share of the runs. If `stop` is set, returns the results so far.
///
/// If the kernel lacks a congestion control, the cases that use this congestion control have no live runs, and the
/// figure's text says so.
///
/// # Errors
/// [`ExperimentError`] if the system refuses to create namespaces, sockets or threads.
pub fn run(options: &Options, stop: &AtomicBool, progress: &dyn Fn(f64)) -> Result<Results, ExperimentError> {
    let (runs, stage_s) = (options.runs(RUNS, 1), if options.quick { QUICK_STAGE_S } else { STAGE_S });
    let cases = ROUND_TRIPS_MS
        .iter()
        .flat_map(|&round_trip_ms| CONGESTION_CONTROLS.map(|control| Case { control, round_trip_ms, stage_s }));
    let cases: Vec<_> = cases.collect();
    let lab = LiveLab::new(options, cases.len() as u32 * runs, stop, progress);
    let outcomes = cases.into_iter().map(|case| outcome(&lab, case, runs)).collect::<Result<Vec<_>, _>>()?;
    let found = Found { claims: claims(&outcomes, runs), figures: vec![figure(&outcomes)], ..Found::default() };
    Ok(found.live_results("Kodama 2009", options, ASSUMPTIONS))
}

/// Makes all runs of a case, simulated and live.
fn outcome(lab: &LiveLab<'_>, case: Case, runs: u32) -> Result<Outcome, ExperimentError> {
    let scenario = case.scenario();
    let mut simulated = Vec::new();
    for (name, scenario) in case.simulated() {
        simulated.push((name, sim::simulate(&scenario, lab.options.seed, &mut |_| {})?));
    }
    let LiveRuns { runs: live, missing } = lab.runs(|_| scenario.clone(), runs)?;
    Ok(Outcome { case, live, simulated, missing })
}

/// Returns the mean of a value over the live runs of a case.
fn in_runs(outcomes: &[Outcome], (control, round_trip_ms): (&str, u32), value: impl Fn(Case, &Run) -> f64) -> Mean {
    let of = |outcome: &&Outcome| outcome.case.control == control && outcome.case.round_trip_ms == round_trip_ms;
    let runs = outcomes.iter().filter(of).flat_map(|outcome| outcome.live.iter().map(|run| (outcome.case, run)));
    Mean::of(&runs.map(|(case, run)| value(case, run)).collect::<Vec<_>>())
}

/// Returns the ratio of two means.
fn quotient(above: Mean, below: Mean) -> Mean {
    Mean {
        value: above.value.zip(below.value).map(|(above, below)| above / below),
        estimate: above.estimate.zip(below.estimate).and_then(|(above, below)| ratio(above, below)),
    }
}

fn claims(outcomes: &[Outcome], runs: u32) -> Vec<Claim> {
    let goodput = |control, round_trip_ms| {
        in_runs(outcomes, (control, round_trip_ms), |case, run| goodput_mbps(run, 1, case.whole()))
    };
    let [near, far] =
        ROUND_TRIPS_MS.map(|round_trip_ms| ["symbiosis", "reno"].map(|control| goodput(control, round_trip_ms)));
    let note =
        |[symbiosis, reno]: [Mean; 2]| format!("Symbiosis {}, Reno {} Mbit/s.", symbiosis.words(1), reno.words(1));
    let lesser = match near.map(|mean| mean.value) {
        [Some(symbiosis), Some(reno)] if reno < symbiosis => near[1],
        _ => near[0],
    };
    let least = Mean {
        value: lesser.value.map(|value| value / AVAILABLE_MBPS),
        estimate: lesser.estimate.map(|estimate| scaled(estimate, 1.0 / AVAILABLE_MBPS)),
    };
    let losses = in_runs(outcomes, ("symbiosis", 150), |case, run| resent_within(run, 1, case.stage(1)) as f64);
    let live = |mut spec: Spec, id| {
        spec.id = id;
        spec
    };
    vec![
        live(BOTH_USE_IT, "fig5.live_rtt30_both").decide(runs, least, note(near)),
        live(MORE_THAN_RENO, "fig5.live_rtt150_gain_over_reno").decide(runs, quotient(far[0], far[1]), note(far)),
        live(NO_LESS_FAR_AWAY, "fig5.live_rtt_independent").decide(
            runs,
            quotient(far[0], near[0]),
            format!("{} and {} Mbit/s.", far[0].words(1), near[0].words(1)),
        ),
        live(LOSSES, "fig5.live_rtt150_losses").decide(
            runs,
            losses,
            "The thesis blames the long time between two measurements.",
        ),
    ]
}

fn figure(outcomes: &[Outcome]) -> Figure {
    let missing = outcomes.iter().filter_map(|outcome| {
        let why = outcome.missing.as_ref()?;
        Some(format!(" {} over {} ms: {why}.", outcome.case.control, outcome.case.round_trip_ms))
    });
    Figure {
        name: "Fig. 5, live".to_owned(),
        title: "TCP of the kernel where the available bandwidth changes".to_owned(),
        text: format!(
            "100 Mbit/s with a queue of 50 packets, of which UDP leaves 70, 30 and 50 Mbit/s, {} s each; of these, 48.3 Mbit/s on \
             average are data. Live, and simulated beside it; bbr has no simulated curve.{}",
            outcomes.first().map_or(STAGE_S, |outcome| outcome.case.stage_s),
            missing.collect::<String>()
        ),
        charts: outcomes.iter().map(chart).collect(),
        tables: vec![table(outcomes)],
    }
}

fn chart(outcome: &Outcome) -> Plot {
    let Case { control, round_trip_ms, stage_s } = outcome.case;
    let available = available().into_iter().map(|(at_s, rate)| (at_s / STAGE_S * stage_s, rate)).collect();
    let mut layers = vec![PlotLayer { name: "available".to_owned(), data: PlotData::Line(available) }];
    layers.extend(outcome.live.first().map(|run| line(run, "live")));
    layers.extend(outcome.simulated.iter().map(|(name, run)| line(run, name)));
    Plot {
        title: format!("Goodput of {control} over {round_trip_ms} ms"),
        x: "time (s)",
        y: "goodput (Mbit/s)",
        y_limits: Some((0.0, 80.0)),
        layers,
        marks: Vec::new(),
    }
}

fn table(outcomes: &[Outcome]) -> Table {
    let columns = [
        "connection",
        "round trip (ms)",
        "",
        "at 70 Mbit/s",
        "at 30",
        "at 50",
        "whole run",
        "segments sent again",
        "background's packets lost",
        "median round trip (ms)",
        "late, 99 % below (ms)",
    ];
    let row = |case: Case, world: &str, run: &Run| {
        let mut cells = vec![case.control.to_owned(), case.round_trip_ms.to_string(), world.to_owned()];
        cells.extend((0..STAGES).map(|stage| format!("{:.1}", goodput_mbps(run, 1, case.stage(stage)))));
        cells.push(format!("{:.1}", goodput_mbps(run, 1, case.whole())));
        cells.push(tcp(run, 1).map_or("–".to_owned(), |tcp| tcp.retransmissions.to_string()));
        cells.push(run.flows.first().map_or("–".to_owned(), |background| background.packets_lost.to_string()));
        cells.push(format!("{:.1}", median_round_trip_ms(run)));
        let late = run.emulator.and_then(|emulator| emulator.late_p99_s);
        cells.push(late.map_or("–".to_owned(), |late_s| format!("{:.2}", late_s * 1e3)));
        cells
    };
    let rows = outcomes.iter().flat_map(|outcome| {
        let live = outcome.live.iter().map(|run| row(outcome.case, "live", run));
        live.chain(outcome.simulated.iter().map(|(name, run)| row(outcome.case, name, run)))
    });
    Table {
        caption: "Mean goodput in Mbit/s, and what it cost".to_owned(),
        columns: columns.iter().map(|&head| head.to_owned()).collect(),
        rows: rows.collect(),
    }
}

fn median_round_trip_ms(run: &Run) -> f64 {
    let round_trips = samples(run, 1).iter().filter_map(|sample| Some(sample.smoothed_round_trip_s? * 1e3));
    quantile(&sorted(&round_trips.collect::<Vec<_>>()), 0.5)
}

#[cfg(test)]
mod tests {
    use equipoise::units::Span;

    use super::*;
    use equipoise_lab::scenario::{Direction, FlowKind};

    #[test]
    fn every_case_is_its_own_and_only_bbr_is_live_only() {
        for round_trip_ms in ROUND_TRIPS_MS {
            for control in CONGESTION_CONTROLS {
                for stage_s in [STAGE_S, QUICK_STAGE_S] {
                    let scenario = Case { control, round_trip_ms, stage_s }.scenario();
                    let seconds = |seconds: f64| Span::from_secs_f64(seconds).expect("a time");
                    assert_eq!(scenario.duration, seconds(3.0 * stage_s));
                    assert!(scenario.steps_on(&[0]).is_empty(), "the connection has its access link to itself");
                    assert_eq!(scenario.steps_on(&[2]), [stage_s, 2.0 * stage_s].map(seconds));
                    assert_eq!(
                        scenario.propagation_delay(&scenario.flows[1].path, Direction::Forward) * 2,
                        Span::from_millis(round_trip_ms.into())
                    );
                    assert!(scenario.wants_of_kernel(control), "{control}");
                    let FlowKind::Tcp(tcp) = &scenario.flows[1].kind else { panic!("a connection") };
                    assert_eq!(tcp.law.is_none(), control == "bbr");
                    let simulated = Case { control, round_trip_ms, stage_s }.simulated();
                    assert_eq!(
                        simulated.len(),
                        match control {
                            "bbr" => 0,
                            "symbiosis" => 2,
                            _ => 1,
                        }
                    );
                }
            }
        }
    }
}
