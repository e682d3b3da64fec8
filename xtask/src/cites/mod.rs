//! Checks that every cite names a known source in the standard form: `Waki 2013, Eq. 15`, `RFC 3550, App. A.1`.

mod known;
mod scan;

use crate::error::Error;
use crate::workspace::{self, Workspace};
use known::{DRAFTS, PAPERS, RFCS};

/// Checks all code, scenarios and docs; prints each error with its location.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Error> {
    let mut count = 0;
    let mut faults = 0;
    for extension in ["rs", "md", "toml"] {
        for path in workspace.files("", extension)? {
            // Its tests contain every kind of wrong cite.
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

/// The book's page of sources.
pub(crate) fn page() -> String {
    let mut page = String::from(
        "# Sources\n\nWhat the code and this book cite, and how: `Waki 2013, Eq. 15`, `RFC 3550, Sec. 6.4.1`. \
         `cargo xtask cites` refuses any other.\n\n## Papers\n\n",
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
