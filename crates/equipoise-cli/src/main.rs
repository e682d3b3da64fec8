//! The `equipoise` command.

mod args;
mod bar;
#[cfg(feature = "papers")]
mod capture;
mod commands;
mod compare;
mod error;
#[cfg(feature = "live")]
mod hosts;
#[cfg(feature = "kernel")]
mod kernel;
#[cfg(feature = "live")]
mod link;
mod outcome;
mod output;
#[cfg(feature = "papers")]
mod paper;
mod suite;
mod summary;
mod sweep;
#[cfg(feature = "live")]
mod views;
mod waiting;
#[cfg(feature = "live")]
mod writer;

use std::error::Error as _;
use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use args::{Cli, Command};
use error::CliError;
use outcome::Outcome;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match dispatch(&cli.command) {
        Ok(Outcome::Complete) => ExitCode::SUCCESS,
        Ok(Outcome::NotHeld) => ExitCode::from(6),
        #[cfg(feature = "live")]
        Ok(Outcome::Interrupted) => ExitCode::from(outcome::INTERRUPTED as u8),
        Err(error) => {
            if !error.is_closed_pipe() {
                complain(&error);
            }
            ExitCode::from(error.exit_code())
        }
    }
}

fn dispatch(command: &Command) -> Result<Outcome, CliError> {
    match command {
        #[cfg(feature = "live")]
        Command::Demo(demo) => commands::demo(demo),
        Command::Sim(run) => commands::sim(run),
        Command::Compare(options) => compare::run(options),
        Command::Suite(suite) => suite::run(suite),
        Command::Sweep(options) => sweep::run(options),
        #[cfg(feature = "live")]
        Command::Live(run) => commands::live(run),
        #[cfg(feature = "live")]
        Command::Send(send) => hosts::send::run(send),
        #[cfg(feature = "live")]
        Command::Receive(receive) => hosts::receive::run(receive),
        #[cfg(feature = "live")]
        Command::Keygen(options) => hosts::keygen(options),
        #[cfg(feature = "papers")]
        Command::Paper(paper) => paper::run(paper),
        #[cfg(feature = "papers")]
        Command::Capture(capture::args::Capture::Rtt(rtt)) => capture::rtt(rtt),
        #[cfg(feature = "papers")]
        Command::Capture(capture::args::Capture::Rtp(rtp)) => capture::rtp(rtp),
        #[cfg(feature = "live")]
        Command::Link(options) => link::link(options),
        #[cfg(feature = "kernel")]
        Command::Kernel(command) => kernel::run(command),
        Command::Check { file, changes } => commands::check(file, changes),
        Command::Controllers => Ok(commands::controllers()),
        Command::Completions { shell } => Ok(commands::completions(*shell)),
        Command::Man { folder } => commands::man(folder),
    }
}

/// Prints the error with its causes, then a hint if there is one.
fn complain(error: &CliError) {
    let mut lines = format!("error: {error}\n");
    let mut source = error.source();
    while let Some(cause) = source {
        for line in cause.to_string().lines() {
            lines.push_str(&format!("  {line}\n"));
        }
        source = cause.source();
    }
    if let Some(hint) = error.hint() {
        lines.push_str(&format!("hint: {hint}\n"));
    }
    // If standard error is closed, the message cannot be printed; this error is ignored.
    let _ = anstream::stderr().write_all(lines.as_bytes());
}
