//! Two endpoints of each stack in virtual time, with a bottleneck between them.
//!
//! The client sends as much as possible on one stream, or frames as datagrams. Its packets pass a link with a queue;
//! the return path has no limit. There are no sockets and no real clocks, so each run is identical.

mod laws;
mod media;
mod pair;
mod paths;
mod trouble;
