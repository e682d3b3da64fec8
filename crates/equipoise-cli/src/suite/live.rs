//! `equipoise suite rfc8867 --live`: also runs the simulated test cases over real sockets.

use equipoise_lab::scenario::Catalogue;
use equipoise_lab::suite::live::{self, Length, Step};
use equipoise_lab::suite::{Item, Plan, SuiteError, SuiteResult};

use crate::bar::Bar;
use crate::error::CliError;
use crate::outcome::{Outcome, catch_interrupt, outcome};
use crate::output::say;
use crate::waiting::in_words;

/// The live runs of a suite. A value of this type exists only after the check that this machine can run them.
pub(super) struct Live<'a> {
    items: &'a [Item],
    law: (&'a Catalogue, &'a [String]),
    plan: Plan,
    /// Whether only result files may go to standard output.
    is_quiet: bool,
}

impl<'a> Live<'a> {
    /// Checks that this machine can run the live runs, then prints how long they will take.
    pub(super) fn announce(
        items: &'a [Item],
        law: (&'a Catalogue, &'a [String]),
        plan: Plan,
        is_quiet: bool,
    ) -> Result<Self, CliError> {
        live::check().map_err(in_class)?;
        let Length { runs, time } = live::length(items, law, &plan).map_err(in_class)?;
        let runs = if runs == 1 { "1 live run".to_owned() } else { format!("{runs} live runs, one after another") };
        say(is_quiet, &format!("{runs}: about {}\n", in_words(time.as_secs_f64())));
        Ok(Self { items, law, plan, is_quiet })
    }

    /// Runs the live runs and adds their results to `result`, the result of the simulated runs. After Ctrl-C, only
    /// completed live runs are added.
    pub(super) fn run_beside(
        self,
        mut result: SuiteResult,
        has_no_bar: bool,
    ) -> Result<(SuiteResult, Outcome), CliError> {
        let Self { items, law, plan, is_quiet } = self;
        let stop = catch_interrupt()?;
        let bar = Bar::new(has_no_bar, "live");
        let mut begun = None;
        let done = live::run_beside(&mut result, items, law, &plan, &stop, &mut |step| {
            let Step { case, variant, controller, seed, number, runs, share } = step;
            if begun.replace(number) != Some(number) {
                let line = format!("live {} of {runs}: {case}/{variant} under {controller}, seed {seed}\n", number + 1);
                bar.aside(|| say(is_quiet, &line));
            }
            bar.progress((number as f64 + share) / runs.max(1) as f64);
        });
        bar.finish();
        done.map_err(in_class)?;
        Ok((result, outcome(&stop)))
    }
}

/// Converts an error of live runs, so that it has the same exit code and hint as in other commands.
fn in_class(error: SuiteError) -> CliError {
    match error {
        SuiteError::Live(error) => error.into(),
        error => CliError::Suite(error),
    }
}
