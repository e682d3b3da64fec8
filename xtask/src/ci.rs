//! What has to hold before a change is taken, in one go.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::workspace::Workspace;
use crate::{generate, library, lint, scenarios, smoke, test};

type Step = fn(&Workspace) -> Result<Option<String>, Error>;

const STEPS: [(&str, Step); 6] = [
    ("lint", |workspace| lint(workspace).map(|()| None)),
    ("test", readme_test),
    ("generate --check", |workspace| generate::check(workspace).map(|()| None)),
    ("scenarios", |workspace| scenarios(workspace).map(|()| None)),
    ("smoke", |workspace| smoke::run(workspace).map(|()| None)),
    ("library", |workspace| library::check(workspace).map(|()| None)),
];

/// Runs all steps, stops at the first that fails, and ends with the times and the counts of the tests.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Error> {
    let mut times: Vec<(&str, Duration)> = Vec::new();
    let mut counts = None;
    for (name, step) in STEPS {
        println!("\n== {name}");
        let start = Instant::now();
        let said = step(workspace).inspect_err(|_| {
            summarise(&times);
            println!("  {name:<18} FAILED");
        })?;
        counts = counts.or(said);
        times.push((name, start.elapsed()));
    }
    summarise(&times);
    if let Some(counts) = counts {
        println!("{counts}");
    }
    Ok(())
}

fn summarise(times: &[(&str, Duration)]) {
    println!("\n== summary");
    for (name, time) in times {
        println!("  {name:<18} ok {:>7.1} s", time.as_secs_f64());
    }
}

/// The README's own command, so that what it promises is what is checked; returns the counts it ends with.
fn readme_test(workspace: &Workspace) -> Result<Option<String>, Error> {
    let mut counts = None;
    workspace.program("./x").argument("test").run_lines(|line| {
        println!("{line}");
        if line.starts_with(test::RESULT) {
            counts = Some(line.to_string());
        }
    })?;
    Ok(counts)
}
