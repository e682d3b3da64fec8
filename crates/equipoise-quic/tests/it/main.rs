//! Tests with two endpoints of each QUIC stack in virtual time, and a bottleneck between them.
//!
//! The client sends as much as possible on one stream, or it sends frames in datagrams. The client's packets pass a
//! link with a queue; the return path has no rate limit. There are no sockets and no real clocks. Only the random
//! numbers of QUIC and TLS differ between runs.

mod laws;
mod media;
mod pair;
mod paths;
mod trouble;
