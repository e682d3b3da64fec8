//! Runs the items of a suite over real sockets. The runs use network namespaces and the emulator, one run after
//! another.

use std::sync::atomic::{AtomicBool, Ordering};

use equipoise::units::Span;

use super::kept::Kept;
use super::result::{CaseResult, Machine, NotRun, SuiteResult};
use super::series::Watch;
use super::{Item, Plan, Prepared, SuiteError, case_result, law, prepare};
use crate::Progress;
use crate::live::{self, Setup, Stage};
use crate::result::{Run, World};
use crate::scenario::Catalogue;
use crate::sim::RunObserver as _;

/// Default number of live runs of each item under each controller. It is small, because live runs take real time.
pub const RUNS: u32 = 1;

/// Estimated time of a live run in addition to the length of the scenario, for the creation of namespaces and for
/// packets in flight at the end.
const AROUND: Span = Span::from_secs(3);

/// The live run in progress, and the share of this run that is complete.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The name of the case.
    pub case: &'a str,
    /// The name of the variant.
    pub variant: &'a str,
    /// The name of the controller.
    pub controller: &'a str,
    /// The seed of the run.
    pub seed: u64,
    /// The number of the run among all live runs, counted from 0.
    pub number: usize,
    /// The number of all live runs.
    pub runs: usize,
    /// The completed share of the run, 0 to 1.
    pub share: f64,
}

/// The number of the live runs, and approximately how long they take in total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    /// Number of live runs.
    pub runs: usize,
    /// Total time of all live runs, which run one after another.
    pub time: Span,
}

/// Checks whether live runs are possible, which requires that network namespaces can be created.
///
/// # Errors
/// [`SuiteError::Live`], which names what the machine lacks.
pub fn check() -> Result<(), SuiteError> {
    Ok(Stage::Namespaces.check()?)
}

/// Returns the number and the total time of the live runs of a plan. `plan.runs` is the number of live runs of each
/// item under each controller.
///
/// # Errors
/// The errors of [`super::run`] except [`SuiteError::Run`].
pub fn length(items: &[Item], law: (&Catalogue, &[String]), plan: &Plan) -> Result<Length, SuiteError> {
    let (prepared, _) = prepare(items, law, plan)?;
    let each = prepared.iter().map(|prepared| prepared.scenario.duration + AROUND);
    let time = each.fold(Span::ZERO, |sum, time| sum + time * i64::from(plan.runs));
    Ok(Length { runs: prepared.len() * plan.runs as usize, time })
}

/// Adds live results to the simulated results in `result`. The items, the controllers and the plan are those of the
/// simulated runs, except that `plan.runs` is the number of live runs of each item under each controller. The live runs
/// take place one after another. If a run is not possible, or is not done because `stop` is set, the result contains
/// the reason.
///
/// # Errors
/// The errors of [`super::run`] except [`SuiteError::Run`]. A live run that fails is not an error.
pub fn run_beside(
    result: &mut SuiteResult,
    items: &[Item],
    law: (&Catalogue, &[String]),
    plan: &Plan,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Step<'_>),
) -> Result<(), SuiteError> {
    let (prepared, refused) = prepare(items, law, plan)?;
    let runs = prepared.len() * plan.runs as usize;
    let mut found = Vec::new();
    for (place, prepared) in prepared.iter().enumerate() {
        let first = Step {
            case: &prepared.item.case,
            variant: &prepared.item.variant,
            controller: prepared.controller,
            seed: plan.seed,
            number: place * plan.runs as usize,
            runs,
            share: 0.0,
        };
        let (live, failed) = case(prepared, plan, stop, &mut |number, share| {
            let seed = plan.seed.wrapping_add(u64::from(number));
            progress(Step { seed, number: first.number + number as usize, share, ..first });
        });
        found.extend(live);
        result.not_run.extend(failed.map(|reason| prepared.not_run(reason, vec![World::Live])));
    }
    // The suite of simulated runs has already refused every variant in `refused`, for the same reason. So
    // `result.not_run` already has an entry for each of these variants. `World::Live` is added to these entries.
    let is_refused = |not_run: &NotRun| refused.iter().any(|refused| refused.is_of_same(not_run));
    result
        .not_run
        .iter_mut()
        .filter(|not_run| is_refused(not_run))
        .for_each(|not_run| not_run.worlds.push(World::Live));
    result.live_runs = Some(plan.runs);
    lay_beside(&mut result.results, found);
    Ok(())
}

/// Runs a variant under a controller. Returns the result of the completed runs, and the reason if some runs are
/// missing.
fn case(
    prepared: &Prepared<'_>,
    plan: &Plan,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(u32, f64),
) -> (Option<CaseResult>, Option<String>) {
    let (mut kept, mut machine, mut failed) = (Vec::new(), Machine::default(), None);
    for number in 0..plan.runs {
        let seed = plan.seed.wrapping_add(u64::from(number));
        match one(prepared, seed, stop, &mut |share| progress(number, share)) {
            Ok((run, watch)) => {
                machine.add(&run);
                kept.push(Kept::of(run, watch));
            }
            Err(reason) => {
                failed = Some(reason);
                break;
            }
        }
    }
    let live = (!kept.is_empty())
        .then(|| CaseResult { machine: Some(machine), ..case_result(prepared, &kept, plan, World::Live) });
    (live, failed)
}

/// Performs one run. Returns the run if it was complete, or the reason why it was not.
fn one(
    prepared: &Prepared<'_>,
    seed: u64,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<(Run, Watch), String> {
    const INTERRUPTED: &str = "the suite was interrupted";
    if stop.load(Ordering::Relaxed) {
        return Err(INTERRUPTED.to_owned());
    }
    progress(0.0);
    let mut watch = Watch::default();
    let run = live::run(&prepared.scenario, &Setup::new(seed, Stage::Namespaces), stop, &mut |news| match news {
        Progress::Share(share) => progress(share),
        Progress::Event { at, flow, event, .. } => watch.on_event(at, flow, &event),
        Progress::Waited { at, flow, waited } => watch.on_waited(at, flow, waited),
        Progress::Interval(_) => {}
    });
    let run = run.map_err(|error| law::in_one_line(&error))?;
    match (run.complete, stop.load(Ordering::Relaxed)) {
        (true, _) => Ok((run, watch)),
        (false, true) => Err(INTERRUPTED.to_owned()),
        (false, false) => Err(format!("the live run ended by itself after {:.1} s", run.lasted_s)),
    }
}

/// Inserts each live result directly after the simulated result of the same variant and controller.
fn lay_beside(results: &mut Vec<CaseResult>, live: Vec<CaseResult>) {
    for live in live {
        let is_same = |found: &CaseResult| {
            found.case == live.case && found.variant == live.variant && found.controller == live.controller
        };
        let place = results.iter().rposition(is_same).map_or(results.len(), |place| place + 1);
        results.insert(place, live);
    }
}

impl Machine {
    fn add(&mut self, run: &Run) {
        self.stalled_s += run.stalls.iter().map(|stall| stall.end_s - stall.start_s).sum::<f64>();
        let Some(emulator) = &run.emulator else { return };
        self.packets_lost += emulator.packets_lost;
        let larger = |one: Option<f64>, other: Option<f64>| one.into_iter().chain(other).reduce(f64::max);
        self.late_p99_s = larger(self.late_p99_s, emulator.late_p99_s);
        self.late_max_s = larger(self.late_max_s, emulator.late_max_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{EmulatorResult, Stall};
    use crate::suite::rfc8867;

    #[test]
    fn the_length_is_that_of_all_runs_one_after_another() {
        let items = rfc8867::items(&["5.1/50ms-link".to_owned(), "6.1/50ms".to_owned()], false).expect("cases");
        let controllers = ["ap", "nada"].map(str::to_owned);
        let plan = Plan { seed: 1, runs: 2, aqm: None, execution: None.into() };
        let found = length(&items, (&Catalogue::default(), &controllers), &plan).expect("they can be run");
        // There are two seeds. With each seed, both controllers run case 5.1 for 100 s, and one of them runs case 6.1
        // for 120 s. Each run takes 3 s more.
        assert_eq!(found, Length { runs: 6, time: Span::from_secs(2 * (2 * 103 + 123)) });
    }

    /// If this test fails, the result of several runs does not contain the totals of the lost packets and of the
    /// stalls, or the worst run's 99th percentile of how late the emulator sent packets.
    #[test]
    fn what_the_machine_did_is_summed_up_over_the_runs() {
        let run = |late_ms: f64, lost, stalled_s| Run {
            world: World::Live,
            seed: 1,
            lasted_s: 1.0,
            complete: true,
            clock: String::new(),
            stalls: vec![Stall { start_s: 1.0, end_s: 1.0 + stalled_s }],
            emulator: Some(EmulatorResult {
                packets_foreign: 0,
                packets_lost: lost,
                late_p50_s: None,
                late_p99_s: Some(late_ms / 1e3),
                late_max_s: None,
            }),
            media: None,
            flows: Vec::new(),
            links: Vec::new(),
        };
        let mut machine = Machine::default();
        for run in [run(0.5, 1, 0.25), run(2.0, 3, 0.5), run(1.0, 0, 0.0)] {
            machine.add(&run);
        }
        let expected = Machine { stalled_s: 0.75, packets_lost: 4, late_p99_s: Some(0.002), late_max_s: None };
        assert_eq!(machine, expected);
    }
}
