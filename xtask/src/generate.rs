//! Generates the C headers and some pages of the book from the code and from result files. CI checks that they are
//! current.

use std::fs;
use std::path::Path;

use crate::cites;
use crate::error::Error;
use crate::library;
use crate::process::Process;
use crate::results;
use crate::workspace::{self, Workspace};

const NOTE: &str = "<!-- Written by `cargo xtask generate`; changes made here are lost. -->\n\n";

/// Writes all generated files.
pub(crate) fn write(workspace: &Workspace) -> Result<(), Error> {
    for (name, content) in pages(workspace)? {
        let path = workspace.path(&name);
        fs::write(&path, content).map_err(|source| Error::File { verb: "write", path, source })?;
        println!("{name}");
    }
    Ok(())
}

/// Returns an error if a file differs from the content that would be generated now.
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

/// Returns the path and the content of every generated file.
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

/// Returns the book's page with the help texts of the command and of all its subcommands, at every level.
fn command_page(command: &Path) -> Result<String, Error> {
    let mut page = format!("{NOTE}# The command\n");
    let mut waiting = vec![Vec::<String>::new()];
    while let Some(words) = waiting.pop() {
        let help = [words.iter().map(String::as_str).collect(), vec!["--help"]].concat();
        let printed = printed(command, &help)?;
        if !words.is_empty() {
            page.push_str(&format!("\n## {}\n", words.join(" ")));
        }
        page.extend(["\n", &fenced(&help, &printed)]);
        // Push the last subcommand first, because `waiting` is a stack.
        let below = verbs(&printed).rev().map(|verb| [words.as_slice(), &[verb.to_owned()]].concat());
        waiting.extend(below);
    }
    Ok(page)
}

/// Returns the names of the subcommands in a help text, in the order of the text.
fn verbs(help: &str) -> impl DoubleEndedIterator<Item = &str> {
    let section = help.split_once("\nCommands:\n").map_or("", |(_, rest)| rest.split("\n\n").next().unwrap_or(rest));
    // A line with a subcommand is indented by two spaces. The following lines of its description are indented further.
    let named = section.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    named.filter_map(|line| line.split_whitespace().next()).filter(|verb| *verb != "help")
}

fn controllers_page(command: &Path) -> Result<String, Error> {
    Ok(format!(
        "{NOTE}# Controllers\n\nA scenario names a controller and sets its parameters; a parameter that the \
         scenario omits has its default value. The list has four groups: rate controllers drive media sessions, window laws drive TCP flows, schedulers divide a media session among several paths, and traffic models generate background flows.\n\n\
         The parentheses after a parameter say where the parameter or its default comes from: from a publication, from \
         us (`ours`), or from the application, which has to choose the value.\n\n{}",
        fenced(&["controllers"], &printed(command, &["controllers"])?)
    ))
}

/// Returns the output of the command with these arguments.
fn printed(command: &Path, arguments: &[&str]) -> Result<String, Error> {
    // The line width of the output must not depend on the width of the terminal.
    Process::new(command).arguments(arguments).variable("COLUMNS", "100").output()
}

/// Returns the output as a Markdown code block that begins with the command line.
fn fenced(arguments: &[&str], printed: &str) -> String {
    let lines: Vec<_> = printed.trim_end().lines().map(str::trim_end).collect();
    format!("```text\n$ equipoise {}\n{}\n```\n", arguments.join(" "), lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this test fails, the generated page lacks a subcommand, or has a subcommand that does not exist.
    #[test]
    fn every_verb_of_a_help_is_found_and_nothing_else() {
        let help = "Some words\n\nUsage: x <COMMAND>\n\nCommands:\n  one   Does one thing, and says so in\n          two lines\n  \
                    two-b Short\n  help  Print this message\n\nOptions:\n  -h, --help\n";
        assert_eq!(verbs(help).collect::<Vec<_>>(), ["one", "two-b"]);
        assert_eq!(verbs("Usage: x\n\nOptions:\n  -h\n").count(), 0);
    }
}
