//! Pages of the book, and the header for C, that are made from the code, so that they cannot drift from it.

use std::fs;
use std::path::Path;

use crate::cites;
use crate::error::Error;
use crate::library;
use crate::process::Process;
use crate::results;
use crate::workspace::{self, Workspace};

const NOTE: &str = "<!-- Written by `cargo xtask generate`; changes made here are lost. -->\n\n";

/// Those that the page of the command shows, each in words.
const SUBCOMMANDS: [&[&str]; 16] = [
    &["demo"],
    &["sim"],
    &["compare"],
    &["sweep"],
    &["suite", "rfc8867"],
    &["suite", "bars"],
    &["suite", "traces"],
    &["suite", "paths"],
    &["live"],
    &["send"],
    &["receive"],
    &["link"],
    &["check"],
    &["controllers"],
    &["completions"],
    &["man"],
];

/// Writes all generated pages.
pub(crate) fn write(workspace: &Workspace) -> Result<(), Error> {
    for (name, content) in pages(workspace)? {
        let path = workspace.path(&name);
        fs::write(&path, content).map_err(|source| Error::File { verb: "write", path, source })?;
        println!("{name}");
    }
    Ok(())
}

/// Fails where a page differs from what would be written.
pub(crate) fn check(workspace: &Workspace) -> Result<(), Error> {
    let mut stale = Vec::new();
    let pages = pages(workspace)?;
    let count = pages.len();
    for (name, content) in pages {
        if workspace::read(&workspace.path(&name))? != content {
            stale.push(name);
        }
    }
    if !stale.is_empty() {
        return Err(Error::Stale { pages: stale });
    }
    println!("{count} generated pages are fresh");
    Ok(())
}

/// Every page with its content.
fn pages(workspace: &Workspace) -> Result<Vec<(String, String)>, Error> {
    let command = workspace.build_command()?;
    let mut pages = vec![
        ("docs/src/command.md".to_owned(), command_page(&command)?),
        ("docs/src/controllers.md".to_owned(), controllers_page(&command)?),
        ("docs/src/sources.md".to_owned(), format!("{NOTE}{}", cites::page())),
    ];
    pages.extend(library::headers(workspace)?);
    pages.extend(results::chapters(workspace)?);
    pages.extend(results::suites(workspace)?);
    Ok(pages)
}

fn command_page(command: &Path) -> Result<String, Error> {
    let mut page = format!("{NOTE}# The command\n\n{}", fenced(command, &["--help"])?);
    for name in SUBCOMMANDS {
        let title = name.join(" ");
        page.extend(["\n## ", &title, "\n\n", &fenced(command, &[name, &["--help"]].concat())?]);
    }
    Ok(page)
}

fn controllers_page(command: &Path) -> Result<String, Error> {
    Ok(format!(
        "{NOTE}# Controllers\n\nA scenario names a controller and sets its parameters; what it leaves out takes the \
         default. Rate controllers drive media sessions, window laws drive TCP flows, schedulers divide a media session among several paths.\n\n{}",
        fenced(command, &["controllers"])?
    ))
}

/// What the command prints with these arguments, as a code block headed by the command line.
fn fenced(command: &Path, arguments: &[&str]) -> Result<String, Error> {
    // The width of the page must not be that of somebody's terminal.
    let printed = Process::new(command).arguments(arguments).variable("COLUMNS", "100").output()?;
    let lines: Vec<_> = printed.trim_end().lines().map(str::trim_end).collect();
    Ok(format!("```text\n$ equipoise {}\n{}\n```\n", arguments.join(" "), lines.join("\n")))
}
