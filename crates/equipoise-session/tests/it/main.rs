//! Compares the wire formats with packets of other implementations, with another implementation itself, and with the
//! book's examples. Also parses truncated packets.

mod book;
mod corpora;
mod duplex;
mod feedback;
mod oracle;
mod prefixes;
mod samples;
