//! Builds the book as a site, and checks its links: `book DOCS SITE PLAYGROUND PAGE...`.
//!
//! PLAYGROUND is the HTML file of the playground, which runs the simulator in a browser. If the file is missing, the
//! chapter about the playground says so. Each PAGE is a page of the repository outside the book, whose links are also
//! checked. This program is not part of `xtask`, because its dependencies take long to build, and `xtask` is built
//! before every command.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "talking to the person at the terminal is its job")]

mod error;
mod links;
mod page;
mod site;

use std::env::args_os;
use std::error::Error as _;
use std::path::PathBuf;
use std::process::ExitCode;

use error::Error;

fn main() -> ExitCode {
    let Err(error) = run(&args_os().skip(1).map(PathBuf::from).collect::<Vec<_>>()) else { return ExitCode::SUCCESS };
    eprintln!("error: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        eprintln!("  {cause}");
        source = cause.source();
    }
    ExitCode::FAILURE
}

fn run(arguments: &[PathBuf]) -> Result<(), Error> {
    let [docs, site, playground, pages @ ..] = arguments else { return Err(Error::Usage) };
    site::build(docs, site, Some(playground.as_path()).filter(|file| file.is_file()))?;
    let count = links::check(docs, site, pages)?;
    println!("{count} links of the book and of {} other pages lead somewhere", pages.len());
    println!("{}", site.join("index.html").display());
    Ok(())
}
