//! All checks that a change must pass.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::workspace::{self, Workspace};
use crate::{book, generate, library, lint, package, portable, python, scenarios, smoke, test, web};

type Step = fn(&Workspace, &mut Told) -> Result<(), Error>;

const STEPS: [(&str, Step); 13] = [
    ("lint", |workspace, _| lint::run(workspace)),
    ("portable", |workspace, told| told.portable(workspace)),
    // `./x test` is the command that the README documents, so this step also tests that command.
    ("test", |workspace, told| told.tests(workspace, &["test"])),
    ("test --slow", |workspace, told| told.tests(workspace, &["test", "--slow"])),
    ("adapters", |workspace, told| told.tests(workspace, &["test", "--adapters"])),
    ("generate --check", |workspace, _| generate::check(workspace)),
    // The playground must be built before the book, which embeds it.
    ("playground", |workspace, _| web::check_page(workspace).map(drop)),
    ("book", |workspace, _| book::build(workspace).map(drop)),
    ("scenarios", |workspace, _| scenarios::check(workspace)),
    ("smoke", |workspace, _| smoke::run(workspace)),
    ("library", |workspace, _| library::check(workspace)),
    ("python", |workspace, told| told.python(workspace)),
    ("package", |workspace, _| package::check(workspace, false)),
];

/// File with the reasons for which CI may skip a test. A test prints its reason after `skipped: `. Each line of the
/// file is the beginning of such a reason, or a comment.
const MAY_BE_SKIPPED: &str = ".ci/skips";

/// Runs all steps until one fails. Prints the duration of each step, and the counts of the tests.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Error> {
    let mut times: Vec<(&str, Duration)> = Vec::new();
    let mut told = Told::default();
    for (name, step) in STEPS {
        println!("\n== {name}");
        let start = Instant::now();
        step(workspace, &mut told).inspect_err(|_| {
            summarise(&times);
            println!("  {name:<18} FAILED");
        })?;
        times.push((name, start.elapsed()));
    }
    summarise(&times);
    told.summarise();
    Ok(())
}

fn summarise(times: &[(&str, Duration)]) {
    println!("\n== summary");
    for (name, time) in times {
        println!("  {name:<18} ok {:>7.1} s", time.as_secs_f64());
    }
}

/// Information that was collected from the output of tests.
#[derive(Debug, Default)]
struct Told {
    /// For each test run, the line with the total numbers of passed, failed, ignored and skipped tests.
    counts: Vec<String>,
    /// The number of skipped tests for each reason.
    skipped: BTreeMap<String, u32>,
}

impl Told {
    /// Runs tests with the command `./x`. Returns an error if a test fails, or if a test is skipped for a reason that
    /// is not in [`MAY_BE_SKIPPED`], because CI must not pass on a machine on which nothing can be tested.
    fn tests(&mut self, workspace: &Workspace, arguments: &[&str]) -> Result<(), Error> {
        let mut counts = String::new();
        let ran = workspace.program("./x").arguments(arguments).run_lines(|line| {
            self.line(line);
            if line.starts_with(test::RESULT) {
                // The last result line has the sum over all test binaries.
                line.clone_into(&mut counts);
            }
        });
        self.counts.push(counts);
        ran?;
        self.check_skipped(workspace)
    }

    /// Builds and tests the Python package. Its tests may be skipped for the reasons in [`MAY_BE_SKIPPED`].
    fn python(&mut self, workspace: &Workspace) -> Result<(), Error> {
        python::run(workspace, python::Profile::Dev, |line| self.line(line))?;
        self.check_skipped(workspace)
    }

    /// Prints a line from the output of tests. If the line reports a skipped test, counts the line.
    fn line(&mut self, line: &str) {
        println!("{line}");
        if line.starts_with(test::SKIPPED) {
            *self.skipped.entry(line.to_owned()).or_default() += 1;
        }
    }

    fn check_skipped(&self, workspace: &Workspace) -> Result<(), Error> {
        let list = workspace::read(&workspace.path(MAY_BE_SKIPPED))?;
        let skipped = self.unlisted(&list);
        if skipped.is_empty() { Ok(()) } else { Err(Error::Skipped { list: MAY_BE_SKIPPED, skipped }) }
    }

    /// Checks that the command `equipoise` compiles for other operating systems. If the standard library of a target
    /// cannot be installed, the check of this target counts as a skipped test.
    fn portable(&mut self, workspace: &Workspace) -> Result<(), Error> {
        for target in portable::check(workspace)? {
            *self.skipped.entry(format!("{}the standard library of {target}", test::SKIPPED)).or_default() += 1;
        }
        Ok(())
    }

    /// Returns the message of each skipped test whose reason does not begin with a line of `list`. Empty lines and
    /// comments in `list` are ignored.
    fn unlisted(&self, list: &str) -> Vec<String> {
        let listed: Vec<_> = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        let reason = |said: &str| said.strip_prefix(test::SKIPPED).unwrap_or(said).to_owned();
        let is_listed = |said: &String| listed.iter().any(|line| reason(said).starts_with(line));
        self.skipped.keys().filter(|said| !is_listed(said)).cloned().collect()
    }

    fn summarise(&self) {
        for (reason, times) in &self.skipped {
            println!("  {times} {reason}");
        }
        for counts in &self.counts {
            println!("{counts}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this test fails, CI passes on a machine on which nothing can be tested.
    #[test]
    fn a_reason_to_skip_that_is_not_listed_is_found() {
        let skipped = ["skipped: no moon", "skipped: this machine stalled for 1 s"].map(|said| (said.to_owned(), 1));
        let told = Told { counts: Vec::new(), skipped: skipped.into() };
        assert_eq!(told.unlisted("# machines\nthis machine stalled\n\n"), ["skipped: no moon"]);
        assert_eq!(told.unlisted("").len(), 2);
    }
}
