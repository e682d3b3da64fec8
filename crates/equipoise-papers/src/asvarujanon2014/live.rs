//! Repeats Fig. 3 and 4 in real time: sends the session over sockets and emulated links, and compares the results with
//! those of the simulation.

use std::sync::atomic::AtomicBool;

use super::figures::{self, AtTotal, Specs, specs};
use super::part::Part;
use super::setting::{METHODS, Method, Outcome, Row, TOTALS, session};
use super::{Found, Options, Rule, Spec, parse_with};
use crate::experiment::live::LiveLab;
use crate::{ExperimentError, Results};
use equipoise_lab::scenario::{Override, Scenario};
use equipoise_lab::sim;

/// The parts of the paper that can also be run live, in real time.
pub const LIVE: &[Part] = &[Part::Fig3, Part::Fig4];

/// Number of live runs of each method at each total rate. The paper has five.
const RUNS: u32 = 1;
/// The total rates of the panels (a) and (c) of Fig. 3 and 4. Panel (b) is only simulated.
const LIVE_TOTALS: [&str; 2] = [TOTALS[0], TOTALS[2]];
/// Length of a run: by default, and in a quick look. In 20 s, the scheduler divides the traffic four times.
const DURATIONS: [&str; 2] = ["100 s", "20 s"];

const SPECS: Specs = specs!(["Fig. 3, live", "Fig. 4, live"], "fig3.live_", "fig4.live_");

const ASSUMPTIONS: &[&str] = &[
    "The hosts are network namespaces of this machine. Each path is a pair of sockets of its own, whose packets go through the links \
     of the scenario in the emulator of `equipoise live`, with the traffic of others as packets.",
    "Scenario, totals and methods are those of the simulated runs, without 3.0 Mbit/s; see there. The methods take turns within a \
     run, as in the paper.",
    "The rows that say so are simulated, with the same seeds.",
];

/// Runs the methods between network namespaces in real time. One run of every method at both total rates takes 17
/// minutes, or 4 minutes in a quick look. Calls `progress` with the share of the runs that are done. If `stop` is set,
/// returns the results so far.
///
/// # Errors
/// [`ExperimentError`] if the system refuses to create namespaces, sockets or threads.
pub fn run(
    parts: &[Part],
    options: &Options,
    stop: &AtomicBool,
    progress: &dyn Fn(f64),
) -> Result<Results, ExperimentError> {
    let (runs, duration) = (options.runs(RUNS, 1), DURATIONS[usize::from(options.quick)]);
    let lab = LiveLab::new(options, (LIVE_TOTALS.len() * METHODS.len()) as u32 * runs, stop, progress);
    let mut measured = Vec::new();
    for total in LIVE_TOTALS {
        measured.push(at_total(&lab, total, runs, duration)?);
    }
    let mut found = Found::default();
    figures::draw(parts, &measured, &SPECS, &mut found);
    Ok(found.live_results("Asvarujanon 2014", options, ASSUMPTIONS))
}

/// Returns the results of all methods at one total rate: first those of the live runs, then those of the simulated
/// runs.
fn at_total(lab: &LiveLab<'_>, total: &'static str, runs: u32, duration: &str) -> Result<AtTotal, ExperimentError> {
    let scenario = |method: Method| -> Scenario {
        parse_with(&session(total, method).text, &[Override::set("duration", duration)])
    };
    let row = |name: String| Row { name, outcomes: Vec::new() };
    let mut live = METHODS.map(|method| row(method.name.to_owned()));
    let mut simulated = METHODS.map(|method| row(format!("{}, simulated", method.name)));
    for number in 0..runs {
        for (method, (live, simulated)) in METHODS.into_iter().zip(live.iter_mut().zip(&mut simulated)) {
            let scenario = scenario(method);
            let Some(run) = lab.run(&scenario, number)? else { continue };
            live.outcomes.push(Outcome::of(&run));
            let seed = lab.options.seed.wrapping_add(number.into());
            simulated.outcomes.push(Outcome::of(&sim::simulate(&scenario, seed, &mut |_| {})?));
        }
    }
    Ok(AtTotal { total, rows: live.into_iter().chain(simulated).collect() })
}
