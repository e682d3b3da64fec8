//! Models of network paths: bottlenecks, and the traffic through them.
//!
//! The simulator and the emulator of real paths use the same models, so a link, a source and a video behave alike in
//! both. No model reads a clock: time is an argument, and random numbers come from seeds.
//!
//! - [`link`]: queues, service by a rate or a trace, CoDel, impairments.
//! - [`source`]: background traffic and content of a given length → departure times.
//! - [`video`]: frames from published traces, or generated from statistical moments and a seed.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod link;
pub mod source;
pub mod video;
