//! Inserts tables of results into pages of the book. The tables are generated from result files in the repository.

use crate::error::Error;
use crate::workspace::{self, Workspace};

/// Folder with the results of the papers, in one file per paper.
pub(crate) const FOLDER: &str = "docs/results";
const END: &str = "<!-- end of results -->";

/// Returns the path and the new content of each chapter whose paper has results.
pub(crate) fn chapters(workspace: &Workspace) -> Result<Vec<(String, String)>, Error> {
    let chapter = workspace.build_example("chapter")?;
    let mut chapters = Vec::new();
    for path in workspace.files(FOLDER, "json")? {
        let name = path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let results = workspace.program(&chapter).argument(&path).output()?;
        let page = format!("docs/src/{name}.md");
        let content = with_results(&workspace::read(&workspace.path(&page))?, &name, &results);
        let content = content.ok_or_else(|| Error::NoPlace { page: page.clone(), name })?;
        chapters.push((page, content));
    }
    Ok(chapters)
}

/// A page of the book, and the suites whose tables the page shows. Each suite has a name and a file of results.
type SuitePage = (&'static str, &'static [(&'static str, &'static str)]);

const SUITES: [SuitePage; 2] = [
    ("docs/src/suite.md", &[("rfc8867", "docs/suite/rfc8867.json"), ("rfc8867-live", "docs/suite/rfc8867-live.json")]),
    ("docs/src/equipoise.md", &[("bars", "docs/suite/bars.json")]),
];

/// Returns the path and the new content of each page that shows tables of suites. The table of a suite without a result
/// file is left unchanged.
pub(crate) fn suites(workspace: &Workspace) -> Result<Vec<(String, String)>, Error> {
    SUITES.iter().map(|page| suite(workspace, page)).collect()
}

fn suite(workspace: &Workspace, (page, tables): &SuitePage) -> Result<(String, String), Error> {
    let page = (*page).to_owned();
    let mut content = workspace::read(&workspace.path(&page))?;
    for (name, file) in *tables {
        let file = workspace.path(file);
        if !file.exists() {
            continue;
        }
        let results = workspace.program(workspace.build_example("suite")?).argument(&file).output()?;
        let made = with_results(&content, name, results.trim_end());
        content = made.ok_or_else(|| Error::NoPlace { page: page.clone(), name: (*name).to_owned() })?;
    }
    Ok((page, content))
}

/// Replaces the results between the markers for `name` in a page. Returns `None` if the page has no markers for `name`.
fn with_results(page: &str, name: &str, results: &str) -> Option<String> {
    let begin = format!("<!-- results {name} -->");
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{begin}\n\n{results}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chapter_keeps_its_words_and_gets_its_results() {
        let page = "# A\n\nWords.\n\n<!-- results a -->\nold\n<!-- end of results -->\n\nMore.\n";
        let made = "# A\n\nWords.\n\n<!-- results a -->\n\nnew\n\n<!-- end of results -->\n\nMore.\n";
        assert_eq!(with_results(page, "a", "new\n").as_deref(), Some(made));
        assert_eq!(with_results(made, "a", "new\n").as_deref(), Some(made), "made again it is the same");
        assert_eq!(with_results(page, "b", ""), None);
    }
}
