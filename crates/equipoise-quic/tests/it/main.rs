//! Two endpoints of each stack in virtual time, with a bottleneck between them.
//!
//! The client sends as much as it may on one stream, or frames as datagrams; its packets go through a link with a queue, the way
//! back is free. No socket and no clock are in this: what the stacks do is the same each time.

mod laws;
mod media;
mod pair;
mod paths;
mod trouble;
