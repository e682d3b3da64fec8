//! Runs the tests, which have two tiers (fast and slow). Prints the skipped tests and the total counts.

use crate::error::Error;
use crate::workspace::Workspace;

/// The beginning of the line with which a test binary reports its counts.
pub(crate) const RESULT: &str = "test result: ";
/// The beginning of a line with which a test reports why it was skipped.
pub(crate) const SKIPPED: &str = "skipped: ";
/// Packages that connect the controllers to other software (QUIC, WebRTC, GStreamer, web browsers), and the example
/// `browser`.
const ADAPTERS: [&str; 5] = ["equipoise-quic", "equipoise-webrtc", "equipoise-gst", "equipoise-web", "browser"];
/// Number of fast tests that run at the same time. Many of the tests sleep, so they need few cores.
const FAST_AT_ONCE: &str = "5";
/// Number of slow tests that run at the same time. Most of these tests only sleep or wait. For example, a test that
/// needs the whole machine waits until no other test runs.
const SLOW_AT_ONCE: &str = "20";

/// Which tests are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tier {
    /// Fast tests: tests in simulated time, very short tests, and one short test for each kind of slow test.
    Fast,
    /// Slow tests, which are marked with `#[ignore]`, such as tests in real time in network namespaces, and long
    /// simulations.
    Slow,
    /// Fast and slow tests, one after the other.
    All,
    /// Fast and slow tests of [`ADAPTERS`], which are not default members of the workspace.
    Adapters,
}

/// Runs the tests of a tier, and prints the skipped tests and the total counts.
pub(crate) fn run(workspace: &Workspace, tier: Tier) -> Result<(), Error> {
    let mut log = Log::default();
    // By default, Cargo hides the output of successful tests. Skipped tests count as successful, and their output
    // states the reason for the skip. Therefore `--show-output` is needed.
    let fast = workspace.cargo(["test", "--no-fail-fast", "--", "--show-output"]);
    let fast = fast.arguments(["--test-threads", FAST_AT_ONCE]);
    // Exclude doc tests, because `--ignored` would run those that are marked `ignore`.
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
    // If fast and slow tests are requested, the slow tests run even if a fast test fails.
    let results: Vec<_> = runs.into_iter().map(|run| run.run_lines(&mut take)).collect();
    for reason in &log.skipped {
        println!("{reason}");
    }
    println!("{}", log.total());
    results.into_iter().collect()
}

/// Reads the output of test binaries line by line, and collects the counts and the skipped tests.
#[derive(Debug, Default)]
struct Log {
    /// Whether the current line is in the section with the output of successful tests.
    in_successes: bool,
    skipped: Vec<String>,
    binaries: u32,
    passed: u32,
    failed: u32,
    ignored: u32,
}

impl Log {
    /// Processes the next line. Returns the line if it is to be printed; `None` for the output of successful tests.
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

    /// Adds the counts of one test binary, such as `ok. 12 passed; 0 failed; 1 ignored; …`, to the totals.
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

    /// Returns the total counts of all test binaries, in the format of a single binary's counts.
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
