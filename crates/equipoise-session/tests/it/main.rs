//! Compares the wire formats with captured packets, with the code of another implementation, and with the examples in
//! the book. Other tests parse truncated packets.

mod book;
mod corpora;
mod duplex;
mod feedback;
mod oracle;
mod prefixes;
mod samples;
