//! Models of network paths: bottleneck links, and the traffic that is sent through them.
//!
//! The simulator and the emulator of real paths use the same models, so a link, a source and a video behave alike in
//! both programs. No model reads a clock: the caller passes the time as an argument. Random numbers come from seeds.
//!
//! - [`link`]: queues, active queue management such as CoDel, transmission at a rate or by a trace, impairments.
//! - [`source`]: departure times of background traffic, and of content with a given length.
//! - [`video`]: video frames from published traces, or generated from statistical moments and a seed.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod link;
pub mod source;
pub mod video;
