//! Runs the scenario in the file that the first argument names, once for each line of standard input. The lines may be
//! empty. Prints for each run the total time to read the file, to simulate and to build the report, in seconds.
//! `bench/python/overhead.py` compares this time with the time that the same call takes from Python.
#![expect(clippy::print_stdout, reason = "it is what it is for")]

use std::error::Error;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

use equipoise_lab::result::Report;
use equipoise_lab::scenario::Scenario;
use equipoise_lab::sim::simulate_many;

fn main() -> Result<(), Box<dyn Error>> {
    let file = PathBuf::from(std::env::args().nth(1).ok_or("which scenario?")?);
    for _ in std::io::stdin().lines() {
        #[expect(clippy::disallowed_methods, reason = "a measurement of real time")]
        let start = Instant::now();
        let scenario = Scenario::read(&file)?;
        let runs = simulate_many(&scenario, (scenario.seed, 1), None, |run| run, &|_| {})?;
        black_box(Report::new(&scenario, scenario.seed, runs));
        println!("{:.9}", start.elapsed().as_secs_f64());
    }
    Ok(())
}
