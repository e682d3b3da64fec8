//! Builds the book as a site with mdbook.

use std::fs;
use std::path::Path;

use mdbook_driver::MDBook;

use crate::error::Error;

/// The chapter that shows the playground.
const CHAPTER: &str = "playground.md";
/// The line of the chapter that the playground replaces. In Markdown it is an invisible comment.
const MARK: &str = "<!-- playground -->";
/// The file name of the playground's page in the site; `playground.html` is the chapter.
const ALONE: &str = "playground-alone.html";

/// Builds the site, with the playground's file if there is one.
pub(crate) fn build(docs: &Path, site: &Path, playground: Option<&Path>) -> Result<(), Error> {
    let mut book = MDBook::load(docs).map_err(|source| Error::Book(source.into()))?;
    site.clone_into(&mut book.config.build.build_dir);
    let place = place(playground.is_some());
    let mut placed = false;
    book.book.for_each_chapter_mut(|chapter| {
        if chapter.path.as_deref() == Some(Path::new(CHAPTER)) {
            placed = chapter.content.contains(MARK);
            chapter.content = chapter.content.replace(MARK, &place);
        }
    });
    if !placed {
        return Err(Error::NoPlace { chapter: CHAPTER, mark: MARK });
    }
    book.build().map_err(|source| Error::Book(source.into()))?;
    // Remove the page for missing paths, because only this page would need the path of the site on its server.
    let lost = site.join("404.html");
    fs::remove_file(&lost).map_err(|source| Error::File { verb: "remove", path: lost, source })?;
    if let Some(file) = playground {
        let path = site.join(ALONE);
        fs::copy(file, &path).map_err(|source| Error::File { verb: "write", path, source })?;
    }
    Ok(())
}

/// The text that replaces the mark.
fn place(has_playground: bool) -> String {
    if has_playground {
        format!(
            "<iframe src=\"{ALONE}\" title=\"The playground\" loading=\"lazy\" class=\"embedded\"></iframe>\n\n[The playground alone]({ALONE}), in the whole window."
        )
    } else {
        "*This copy of the book was made without the playground: `./x web`, then `./x book`, put it here.*".to_owned()
    }
}
