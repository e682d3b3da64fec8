use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Errors when the site of the book is built, or when its links are checked.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// The arguments are invalid.
    #[error("usage: book DOCS SITE PLAYGROUND PAGE...")]
    Usage,
    /// The site cannot be built.
    #[error("the book cannot be made a site")]
    Book(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A file or folder cannot be read, written or removed.
    #[error("cannot {verb} {}", path.display())]
    File {
        /// The operation.
        verb: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The chapter about the playground lacks the line that the playground replaces.
    #[error("{chapter} has no line `{mark}`, in whose place the playground comes")]
    NoPlace {
        /// The file name of the chapter.
        chapter: &'static str,
        /// The missing line.
        mark: &'static str,
    },
    /// Links are broken, or pages of the book are missing in `SUMMARY.md`.
    #[error("{count} links lead nowhere")]
    Links {
        /// The number of broken links and missing pages.
        count: usize,
    },
}
