//! The wire formats against the outside: packets of other makers, another implementation, and the book's examples.

mod book;
mod corpora;
mod duplex;
mod feedback;
mod oracle;
mod prefixes;
mod samples;
