//! The tests, in two tiers, with what was skipped and the sum of the counts.

use crate::error::Error;
use crate::workspace::Workspace;

/// The line that ends a test binary's run.
pub(crate) const RESULT: &str = "test result: ";
/// How a line begins that says why a test was skipped.
pub(crate) const SKIPPED: &str = "skipped: ";
/// Packages that bring our controllers to other stacks, or show it.
const ADAPTERS: [&str; 5] = ["equipoise-quic", "equipoise-webrtc", "equipoise-gst", "equipoise-web", "browser"];
/// Tests of the slow tier that run at once. Most of them sleep; those that need the machine to themselves see to it.
const SLOW_AT_ONCE: &str = "6";

/// Which tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tier {
    /// All in simulated time or of a moment, and a short one of each slow family.
    Fast,
    /// Those that are marked `#[ignore]`: real time across namespaces, and long simulations.
    Slow,
    /// One after the other.
    All,
    /// Those of the adapters to other stacks, which are no default members: both tiers.
    Adapters,
}

/// Runs the tests and prints what was skipped and how many there were.
pub(crate) fn run(workspace: &Workspace, tier: Tier) -> Result<(), Error> {
    let mut log = Log::default();
    // The output of tests that pass is asked for, to learn why one was skipped.
    let fast = workspace.cargo(["test", "--no-fail-fast", "--", "--show-output"]);
    // Without documentation, whose ignored examples are not meant to run.
    let slow = workspace.cargo(["test", "--no-fail-fast", "--lib", "--bins", "--tests", "--", "--show-output"]);
    let slow = slow.arguments(["--ignored", "--test-threads", SLOW_AT_ONCE]);
    let runs = match tier {
        Tier::Fast => vec![fast],
        Tier::Slow => vec![slow],
        Tier::All => vec![fast, slow],
        Tier::Adapters => {
            let tests = workspace.cargo(["test", "--no-fail-fast", "--features", "equipoise-quic/quinn"]);
            let tests = ADAPTERS.iter().fold(tests, |tests, name| tests.arguments(["--package", name]));
            vec![tests.arguments(["--", "--show-output", "--include-ignored"])]
        }
    };
    let mut take = |line: &str| {
        if let Some(line) = log.take(line) {
            println!("{line}");
        }
    };
    // Who asks for both learns of both, whatever the first one found.
    let results: Vec<_> = runs.into_iter().map(|run| run.run_lines(&mut take)).collect();
    for reason in &log.skipped {
        println!("{reason}");
    }
    println!("{}", log.total());
    results.into_iter().collect()
}

/// Reads the output of test binaries as it comes.
#[derive(Debug, Default)]
struct Log {
    /// Within the part of the output that lists what passing tests printed.
    in_successes: bool,
    skipped: Vec<String>,
    binaries: u32,
    passed: u32,
    failed: u32,
    ignored: u32,
}

impl Log {
    /// Takes the next line; gives it back unless it is what a passing test printed.
    fn take<'a>(&mut self, line: &'a str) -> Option<&'a str> {
        if let Some(counts) = line.strip_prefix(RESULT) {
            self.in_successes = false;
            self.count(counts);
        } else if line == "failures:" {
            self.in_successes = false;
        } else if line == "successes:" {
            self.in_successes = true;
        }
        if !self.in_successes {
            return Some(line);
        }
        if line.starts_with(SKIPPED) {
            self.skipped.push(line.to_string());
        }
        None
    }

    /// Adds counts such as `ok. 12 passed; 0 failed; 1 ignored; …`.
    fn count(&mut self, counts: &str) {
        self.binaries += 1;
        let words: Vec<_> = counts.split([' ', ';']).collect();
        for pair in words.windows(2) {
            let [number, what] = pair else { continue };
            let Ok(number) = number.parse::<u32>() else { continue };
            match *what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }

    /// The sum over all binaries, in the form in which each of them says its own.
    fn total(&self) -> String {
        let verdict = if self.failed == 0 { "ok" } else { "FAILED" };
        let Self { passed, failed, ignored, binaries, skipped, .. } = self;
        let skipped = skipped.len();
        format!(
            "{RESULT}{verdict}. {passed} passed; {failed} failed; {ignored} ignored; {skipped} of the passed skipped; \
             {binaries} binaries in all"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_are_kept_other_output_of_passing_tests_is_dropped_and_counts_add_up() {
        let mut log = Log::default();
        let lines = [
            "test a ... ok",
            "",
            "successes:",
            "---- a stdout ----",
            "a long table",
            "skipped: no network namespaces here",
            "successes:",
            "    a",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s",
            "test b ... FAILED",
            "successes:",
            "failures:",
            "---- b stdout ----",
            "skipped: is what the failed test said, and is shown with it",
            "test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
        ];
        let shown: Vec<_> = lines.iter().filter_map(|line| log.take(line)).collect();
        assert_eq!(shown.len(), lines.len() - 7, "{shown:?}");
        assert_eq!(log.skipped, ["skipped: no network namespaces here"]);
        assert_eq!(
            log.total(),
            "test result: FAILED. 3 passed; 1 failed; 1 ignored; 1 of the passed skipped; 2 binaries in all"
        );
    }
}
