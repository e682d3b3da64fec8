//! All tests, with what was skipped and the sum of the counts.

use crate::error::Error;
use crate::workspace::Workspace;

/// The line that ends a test binary's run.
pub(crate) const RESULT: &str = "test result: ";

/// Runs every test and prints what was skipped and how many there were.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Error> {
    let mut log = Log::default();
    let runs = [
        // Unit, integration and doc tests. The output of tests that pass is asked for, to learn why one was skipped.
        workspace.cargo(["test", "--workspace", "--no-fail-fast", "--", "--show-output"]),
        workspace.cargo(["test", "--manifest-path", "fuzz/Cargo.toml", "--", "--show-output"]),
    ];
    for run in runs {
        run.run_lines(|line| {
            if let Some(line) = log.take(line) {
                println!("{line}");
            }
        })?;
    }
    for reason in &log.skipped {
        println!("{reason}");
    }
    println!("{}", log.total());
    Ok(())
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
        if line.starts_with("skipped: ") {
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
