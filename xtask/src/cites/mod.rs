//! Checks the prose of the project. Every cite must name a known source in the standard form, such as
//! `Waki 2013, Eq. 15` or `RFC 3550, App. A.1`. Phrases that are hard to read, listed in `words.rs`, are errors.

mod known;
mod prose;
mod scan;
mod words;

use std::path::Path;

use crate::error::Error;
use crate::workspace::{self, Workspace};
use known::{DRAFTS, PAPERS, RFCS};
use prose::{Form, Prose};

/// Extensions of the files in which cites are checked.
const CITING: [&str; 3] = ["rs", "md", "toml"];

/// Extensions of the files that are checked for phrases that are hard to read. Scenarios (`toml`) are excluded, because
/// recorded results contain their descriptions, which may change only with the results.
const WRITTEN: [&str; 7] = ["rs", "md", "py", "pyi", "js", "mjs", "ts"];

/// The crate whose strings are recorded with results in `docs/results`. Its strings are not checked for phrases that
/// are hard to read, because they may change only when all experiments are run again.
const RECORDED: &str = "crates/equipoise-papers";

/// Checks all files of the project, and prints each error with its file and line.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Error> {
    let cites = check_cites(workspace);
    let phrases = check_phrases(workspace);
    cites.and(phrases)
}

fn check_cites(workspace: &Workspace) -> Result<(), Error> {
    let mut count = 0;
    let mut faults = 0;
    for extension in CITING {
        for path in workspace.files("", extension)? {
            // `scan.rs` is not checked, because its tests contain wrong cites.
            if path == workspace.path("xtask/src/cites/scan.rs") {
                continue;
            }
            let text = workspace::read(&path)?;
            for (number, line) in text.lines().enumerate() {
                for cite in scan::cites(line) {
                    count += 1;
                    if let Err(fault) = cite {
                        faults += 1;
                        println!("{}:{}: {fault}", workspace.relative(&path).display(), number + 1);
                    }
                }
            }
        }
    }
    if faults > 0 {
        return Err(Error::Cites { count: faults });
    }
    println!("{count} cites name known sources");
    Ok(())
}

fn check_phrases(workspace: &Workspace) -> Result<(), Error> {
    let mut files = 0;
    let mut faults = 0;
    for extension in WRITTEN {
        for path in workspace.files("", extension)? {
            // `words.rs` is not checked, because it contains the list of phrases.
            if path == workspace.path("xtask/src/cites/words.rs") {
                continue;
            }
            files += 1;
            let prose = Prose::of(form(workspace.relative(&path)), &workspace::read(&path)?);
            for found in words::find(&prose) {
                faults += 1;
                println!("{}:{}: {found}", workspace.relative(&path).display(), found.line);
            }
        }
    }
    if faults > 0 {
        return Err(Error::Phrases { count: faults });
    }
    println!("{files} files have no phrase that is hard to read");
    Ok(())
}

/// Returns the form of a file, which determines how the file's prose is found.
fn form(path: &Path) -> Form {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("rs") if path.starts_with(RECORDED) => Form::RustComments,
        Some("rs") => Form::Rust,
        Some("md") => Form::Markdown,
        _ => Form::Lines,
    }
}

/// Returns the book's page of sources, generated from the list of known sources.
pub(crate) fn page() -> String {
    let mut page = String::from(
        "# Sources\n\nThe code and this book cite only these sources. A cite has the form `Waki 2013, Eq. 15` or \
         `RFC 3550, Sec. 6.4.1`.\nIn Rust, Markdown and TOML files, `cargo xtask cites` reports cites of other \
         sources, and cites in other forms.\n\n## Papers\n\n",
    );
    page.extend(PAPERS.iter().map(|(handle, title)| format!("- **{handle}**: {title}.\n")));
    page.push_str("\n## Internet standards\n\n");
    page.extend(
        RFCS.iter()
            .map(|(number, title)| format!("- [RFC {number}](https://www.rfc-editor.org/rfc/rfc{number}): {title}.\n")),
    );
    page.extend(DRAFTS.iter().map(|(name, title)| format!("- {name}: {title}.\n")));
    page
}
