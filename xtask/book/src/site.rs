//! Builds the book as a web site with mdbook.

use std::fs;
use std::path::Path;

use mdbook_driver::MDBook;

use crate::error::Error;

/// File name of the chapter that shows the playground.
const CHAPTER: &str = "playground.md";
/// A line of the chapter. The playground replaces this line. The line is a comment, which readers do not see.
const MARK: &str = "<!-- playground -->";
/// File name of the playground's page in the site. (`playground.html` is the chapter, which embeds this page.)
const ALONE: &str = "playground-alone.html";

/// Builds the site. `playground` is the HTML file of the playground, if it was built.
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
    // Remove `404.html`, the page that a server shows for missing paths. This page works only if the site is at the
    // root of the server.
    let lost = site.join("404.html");
    fs::remove_file(&lost).map_err(|source| Error::File { verb: "remove", path: lost, source })?;
    if let Some(file) = playground {
        let path = site.join(ALONE);
        fs::copy(file, &path).map_err(|source| Error::File { verb: "write", path, source })?;
    }
    Ok(())
}

/// Returns the text that replaces [`MARK`].
fn place(has_playground: bool) -> String {
    if has_playground {
        format!(
            "<iframe src=\"{ALONE}\" title=\"The playground\" loading=\"lazy\" class=\"embedded\"></iframe>\n\n[The playground alone]({ALONE}), in the whole window."
        )
    } else {
        "*This copy of the book was made without the playground: `./x web`, then `./x book`, put it here.*".to_owned()
    }
}
