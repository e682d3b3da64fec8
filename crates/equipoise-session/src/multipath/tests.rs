//! Tests of a sender and a receiver with several paths, in simulated time.

mod bench;
mod ecn;
mod harm;
mod laws;
mod life;
mod payload;
