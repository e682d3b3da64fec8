//! The development tasks of the project. Each is a subcommand: `./x NAME`, or `cargo xtask NAME`.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "talking to the person at the terminal is its job")]

mod book;
mod ci;
mod cites;
mod dist;
mod error;
mod fuzz;
mod generate;
mod library;
mod lint;
mod nightly;
mod package;
mod peers;
mod portable;
mod process;
mod python;
mod results;
mod scenarios;
mod smoke;
mod test;
mod web;
mod workspace;

use std::path::Path;
use std::process::ExitCode;

use error::Error;
use library::Build;
use test::Tier;
use workspace::Workspace;

const HELP: &str = include_str!("../help.txt");

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            let mut source = std::error::Error::source(&error);
            while let Some(cause) = source {
                eprintln!("  {cause}");
                source = cause.source();
            }
            ExitCode::from(if matches!(error, Error::Usage { .. }) { 2 } else { 1 })
        }
    }
}

fn dispatch(words: &[&str]) -> Result<(), Error> {
    let workspace = Workspace::find()?;
    match words {
        [] | ["help" | "-h" | "--help"] => {
            print!("{HELP}");
            Ok(())
        }
        ["demo", arguments @ ..] => demo(&workspace, arguments),
        ["test"] => test::run(&workspace, Tier::Fast),
        ["test", "--slow"] => test::run(&workspace, Tier::Slow),
        ["test", "--all"] => test::run(&workspace, Tier::All),
        ["test", "--adapters"] => test::run(&workspace, Tier::Adapters),
        ["lint"] => lint::run(&workspace),
        ["dist"] => dist::run(&workspace).map(drop),
        ["dist", "wheels"] => dist::wheels(&workspace),
        ["package"] => package::check(&workspace, true),
        ["cites"] => cites::run(&workspace),
        ["generate"] => generate::write(&workspace),
        ["generate", "--check"] => generate::check(&workspace),
        ["scenarios"] => scenarios::check(&workspace),
        ["smoke"] => smoke::run(&workspace),
        ["library"] => library::check(&workspace),
        ["library", prefix] => library::install(&workspace, Build::Release, Path::new(prefix)),
        ["book"] => book::build(&workspace).map(drop),
        ["book", "--check"] => book::check(&workspace),
        ["web"] => web::build(&workspace).map(drop),
        ["web", "--check"] => web::check(&workspace).map(drop),
        ["python"] => python::run(&workspace, python::Profile::Release, |line| println!("{line}")),
        ["bench"] => workspace.cargo(["bench", "--workspace"]).run(),
        ["peers", options @ ..] => peers::run(&workspace, options),
        ["fuzz"] => fuzz::run(&workspace, fuzz::DEFAULT_SECONDS),
        ["fuzz", seconds] => match seconds.parse() {
            Ok(seconds) if seconds > 0 => fuzz::run(&workspace, seconds),
            _ => Err(Error::Usage { found: words.join(" ") }),
        },
        ["nightly", words @ ..] => nightly::run(&workspace, &words.join(" ")),
        ["ci"] => ci::run(&workspace),
        _ => Err(Error::Usage { found: words.join(" ") }),
    }
}

/// Builds the command `equipoise` for release, and replaces this process with the command's demo. So Ctrl-C goes to the
/// command, and the caller gets the command's exit code.
fn demo(workspace: &Workspace, arguments: &[&str]) -> Result<(), Error> {
    let run = ["run", "--release", "--package", "equipoise-cli", "--bin", "equipoise", "--", "demo"];
    let manifest = workspace.path("Cargo.toml");
    // The demo runs in the caller's folder, so that the path of its option `--out` is relative to this folder.
    workspace.cargo(run).option("--manifest-path", &manifest).arguments(arguments).in_callers_folder().become_it()
}
