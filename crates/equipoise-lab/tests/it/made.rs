//! Tests of controllers that a program creates at run time, and of runs that a program stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use equipoise::control::{Cbr, ConfigError};
use equipoise::units::Rate;
use equipoise_lab::compare::{self, CompareError, Variant};
use equipoise_lab::scenario::{Catalogue, Override, Scenario, Swap};
use equipoise_lab::sim::{Execution, SimError, Stop, simulate, simulate_each, simulate_many};
use equipoise_lab::{DEMO, DEMO_SHORT};

/// Returns a catalogue with the controller `steady`, and a counter of how often this controller was created. The
/// controller sends at the rate `bps`.
fn catalogue(bps: u64) -> (Catalogue, Arc<AtomicU32>) {
    let mut catalogue = Catalogue::default();
    let made = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&made);
    let make = move |_: &_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(Cbr::new(Rate::from_bps(bps))) as _)
    };
    catalogue.controllers.add_made("steady", make).expect("a new name");
    (catalogue, made)
}

#[test]
fn a_scenario_names_what_the_program_made_and_runs_as_with_the_entry_of_the_same_law() {
    let (catalogue, made) = catalogue(3_000_000);
    let swap = |names: [&str; 1]| {
        let rate = [Override::set("flow.media.controller.rate", "3 Mbit/s")];
        let overrides: &[_] = if names == ["cbr"] { &rate } else { &[] };
        let swap = Swap::new(&catalogue, DEMO_SHORT, overrides, None).expect("a flow with a controller");
        swap.with(names).expect("it fits").pop().expect("one scenario")
    };
    let (own, ours) = (swap(["steady"]), swap(["cbr"]));
    assert!(made.load(Ordering::Relaxed) > 0, "it was tried when the scenario was checked");
    let run = |scenario: &Scenario| simulate(scenario, 1, &mut |_| {}).expect("it runs").flows.remove(0);
    let (own, ours) = (run(&own), run(&ours));
    assert_eq!(own.controller.as_deref(), Some("steady"));
    assert_eq!((own.packets_sent, own.delay), (ours.packets_sent, ours.delay));
}

#[test]
fn its_name_is_its_own_and_it_takes_no_parameters() {
    let (mut catalogue, _) = catalogue(1);
    let taken = catalogue.controllers.add_made("ap", |_| Err(ConfigError::ZeroRate)).expect_err("ours");
    assert!(taken.to_string().contains("`ap`"), "{taken}");
    let named = |more: &str| {
        let set =
            format!("flow.media.controller={{ name = 'steady'{more} }}").parse::<Override>().expect("an override");
        Scenario::parse_in(&catalogue, DEMO_SHORT, &[set])
    };
    named("").expect("its name alone");
    let refused = named(", target = '9 ms'").expect_err("a parameter").to_string();
    assert!(refused.contains("not a parameter of steady"), "{refused}");
}

#[test]
fn a_run_that_is_stopped_ends_at_once_and_says_so() {
    let long = Scenario::parse_with(DEMO, &[Override::set("duration", "2 h")]).expect("a right scenario");
    let stop = Stop::default();
    let execution = Execution { threads: Some(2), stop: stop.clone() };
    let ended = simulate_many(&long, (1, 1), execution.clone(), |_| (), &|share| {
        // After the first call, `stop` must end the run before a tenth of the run is simulated.
        assert!(share < 0.1, "it went on to {share}");
        stop.stop();
    });
    assert!(matches!(ended, Err(SimError::Stopped)), "{ended:?}");
    let ended = simulate_each(&[(&long, 1), (&long, 2)], execution.clone(), |_| ());
    assert!(matches!(ended, Err(SimError::Stopped)), "{ended:?}");
    let variants = ["one", "other"].map(|name| Variant { name: name.to_owned(), scenario: long.clone() });
    let plan = compare::Plan { seed: 1, runs: 2, execution };
    let ended = compare::run(&variants, None, &plan, &|_| {});
    assert!(matches!(ended, Err(CompareError::Run(SimError::Stopped))), "{ended:?}");
}
