//! The wire formats against packets of other implementations, another implementation, and the book's examples.

mod book;
mod corpora;
mod duplex;
mod feedback;
mod oracle;
mod prefixes;
mod samples;
