use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why there is no site, or none whose links can be followed.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// Something else was asked for.
    #[error("usage: book DOCS SITE PLAYGROUND PAGE...")]
    Usage,
    /// The book cannot be made a site.
    #[error("the book cannot be made a site")]
    Book(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A file or folder cannot be read or written.
    #[error("cannot {verb} {}", path.display())]
    File {
        /// What was to be done.
        verb: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The chapter on the playground has no mark for the place of the page.
    #[error("{chapter} has no line `{mark}`, in whose place the playground comes")]
    NoPlace {
        /// The chapter.
        chapter: &'static str,
        /// The line.
        mark: &'static str,
    },
    /// Links lead nowhere.
    #[error("{count} links lead nowhere")]
    Links {
        /// How many.
        count: usize,
    },
}
