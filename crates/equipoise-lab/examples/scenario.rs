//! Simulates a scenario with 30 seeds on all cores: `cargo run --example scenario [FILE]`.
#![expect(clippy::print_stdout, reason = "a program that is read by a person")]

use std::path::Path;

use equipoise_lab::scenario::Scenario;
use equipoise_lab::statistics::{mean_95, sorted};
use equipoise_lab::{DEMO_SHORT, sim};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1);
    let scenario = file.map_or_else(|| Scenario::parse(DEMO_SHORT), |file| Scenario::read(Path::new(&file)))?;
    println!("{}", scenario.explain());
    // The only value kept from each run is the settled delay of its first flow, in s.
    let settled = |run: equipoise_lab::result::Run| run.flows.first().and_then(|flow| flow.settled_delay_s);
    let delays = sim::simulate_many(&scenario, (scenario.seed, 30), None, settled, &|_| {})?;
    let delays_ms: Vec<_> = delays.into_iter().flatten().map(|seconds| seconds * 1e3).collect();
    let Some(mean) = mean_95(&delays_ms) else { return Err("nothing was measured".into()) };
    let [low, high] = mean.ci95;
    println!("settled delay: {:.2} ms, 95 % interval {low:.2} to {high:.2} ms", mean.value);
    if let (Some(least), Some(most)) = (sorted(&delays_ms).first(), sorted(&delays_ms).last()) {
        println!("least and most of {} runs: {least:.2} and {most:.2} ms", delays_ms.len());
    }
    Ok(())
}
