//! End-to-end rate control for real-time media: **measure → control → pace**.
//!
//! This crate is the pure heart of Equipoise. It reads no clock, opens no socket and draws no random number of its own:
//! time, packets and seeds come in as arguments, decisions go out. The simulator and the sockets are thin adapters
//! round it, so both run the very same control code.
//!
//! - [`units`]: instants, spans, rates and sizes.
//! - [`wire`]: bytes to meaning and back: RTP and RTCP.
//! - [`measure`]: packets sent and arrived → statistics of an interval.
//! - [`control`]: statistics → a sending rate.
//! - [`pace`]: a rate, or a model of traffic → departure times.
//! - [`video`]: video as a source of traffic: frames from traces, or from moments and a seed.
//! - [`link`]: the model of a bottleneck, which the simulator and the emulator share.
//! - [`session`]: the loop closed over RTP and RTCP, and over RTP and TCP in turn.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod control;
pub mod measure;
pub mod pace;
pub mod random;
pub mod units;

/// The README's code, so that it is compiled and run with the other examples.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The same for the package's own README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct PackageReadme;
