//! Runs a scenario in the simulator, or live with `--live`: `cargo run -p own-parts [-- --live]`.
#![expect(clippy::print_stdout, reason = "a program that is read by a person")]

use std::sync::atomic::AtomicBool;

use equipoise_lab::live::{self, Setup, Stage};
use equipoise_lab::scenario::Scenario;
use equipoise_lab::sim;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scenario = Scenario::parse_in(&own_parts::catalogue()?, own_parts::SCENARIO, &[])?;
    println!("{}", scenario.explain());
    let run = if std::env::args().any(|argument| argument == "--live") {
        // The scenario has a TCP flow, for which a live run needs network namespaces.
        let setup = Setup::new(scenario.seed, Stage::Namespaces);
        live::run(&scenario, &setup, &AtomicBool::new(false), &mut |_| {})?
    } else {
        sim::simulate(&scenario, scenario.seed, &mut |_| {})?
    };
    for flow in &run.flows {
        println!("{}: {:.2} Mbit/s", flow.name, flow.mean_rate_bps.unwrap_or(0.0) / 1e6);
    }
    Ok(())
}
