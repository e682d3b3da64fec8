//! If these tests fail, custom parts do not work in the simulator or in live runs.

use std::sync::atomic::AtomicBool;

use equipoise::control;
use equipoise_lab::live::{self, Setup, Stage};
use equipoise_lab::result::{FlowResult, Run};
use equipoise_lab::scenario::{Override, Scenario};
use equipoise_lab::sim;
use own_parts::{SCENARIO, catalogue};

fn flow<'a>(run: &'a Run, name: &str) -> &'a FlowResult {
    run.flows.iter().find(|flow| flow.name == name).expect("a flow of the scenario")
}

#[test]
fn scenarios_name_all_four_and_the_simulator_runs_them() {
    let catalogue = catalogue().expect("names of their own");
    let scenario = Scenario::parse_in(&catalogue, SCENARIO, &[]).expect("a right scenario");
    for words in ["`gentle`", "climb = 0.05", "`scalable`", "`inverse-delay`", "`pareto`", "shape = 1.4"] {
        assert!(scenario.explain().contains(words), "{words} is missing from {}", scenario.explain());
    }
    let run = sim::simulate(&scenario, 1, &mut |_| {}).expect("it runs");
    let both = flow(&run, "both");
    assert_eq!((both.controller.as_deref(), both.split.as_deref()), (Some("gentle"), Some("inverse-delay")));
    let highest = both.intervals.iter().map(|interval| interval.rate_bps).fold(0.0, f64::max);
    assert!(highest > 530_000.0, "it climbs from where it began, 500 kbit/s, until something is lost: {highest}");
    let [wired, mobile] = &both.paths[..] else { panic!("two paths") };
    assert!(wired.packets_received > mobile.packets_received, "the nearer path carries more");
    let others = flow(&run, "others").mean_rate_bps.expect("a rate");
    assert!((1_000_000.0..3_000_000.0).contains(&others), "{others} bit/s for 2 Mbit/s with a heavy tail");
    let download = flow(&run, "download").tcp.as_ref().expect("a connection");
    assert!(download.retransmissions > 0, "it fills the queue");
}

#[test]
fn what_crosses_real_sockets_runs_live() {
    let catalogue = catalogue().expect("names of their own");
    let short =
        [Override::remove("flow.download"), Override::set("duration", "2 s"), Override::set("warm_up", "0.5 s")];
    let scenario = Scenario::parse_in(&catalogue, SCENARIO, &short).expect("a right scenario");
    let run =
        live::run(&scenario, &Setup::new(1, Stage::Loopback), &AtomicBool::new(false), &mut |_| {}).expect("it runs");
    for flow in &run.flows {
        assert!(flow.packets_received > 50, "{}: {} packets", flow.name, flow.packets_received);
    }
}

#[test]
fn a_name_is_taken_once_and_what_is_wrong_is_named_as_with_ours() {
    let mut taken = catalogue().expect("names of their own");
    let ours = control::entries().iter().find(|entry| entry.name == "cbr").expect("ours");
    let error = taken.controllers.add(ours).expect_err("it is there");
    assert_eq!(error.to_string(), "there is a controller `cbr` already; give the new one another name");
    for (key, value, remedy) in [
        ("flow.others.source.shape", "1", "between 1.05 and 100"),
        ("flow.others.source.kind", "weibull", "poisson, constant, on-off, pareto"),
        ("flow.others.source.scale", "1", "not a parameter of pareto; it has shape"),
        ("flow.call.controller.climb", "2", "between 0.001 and 1"),
    ] {
        let error = Scenario::parse_in(&taken, SCENARIO, &[Override::set(key, value)]).expect_err("wrong on purpose");
        assert!(error.to_string().contains(remedy), "{key}: {error}");
    }
    assert!(Scenario::parse(SCENARIO).is_err(), "without the catalogue nobody knows them");
}
