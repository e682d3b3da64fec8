//! One media session over several paths: RTP whose packets carry a common sequence number and one of their path.
//!
//! ```text
//!              ┌─ path 0: pacer, requests, reports ─┐
//!   Sender ────┤                                    ├──── Receiver ── payload, in order
//!      ▲       └─ path 1: pacer, requests, reports ─┘        │
//!      └──────── each path's mean and variance ◀─────────────┘
//! ```
//!
//! The shape is that of multipath RTP (draft-ietf-avtcore-mprtp-03, Sec. 9): a header extension with the sub-flow's
//! number and a sequence number within it, and reports on sub-flows. Everything else is the session of one path
//! ([`rtp`](super::rtp)), of whose parts this one is made: requests and delay reports on each path by themselves, pacers,
//! payload, the order of what is given out.
//!
//! A [`Controller`](equipoise::control::Controller) says how much is sent in all, or one for each path how much on that path
//! ([`Total`]), a [`Scheduler`](equipoise::control::scheduler::Scheduler) how much of it on each path, once in a period. Which packet goes where
//! follows the pacers: the path whose turn has come takes the packet that is next.
//!
//! Paths have numbers. To a sender, its world says which there are ([`Input::Path`](crate::Input::Path)). A receiver learns of them
//! from what comes in. What it sends it sends back on the path that brought the question, whatever number its world has
//! for that; its events have the sender's number.

mod law;
mod path;
mod paths;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;
mod total;

pub use receiver::Receiver;
pub use sender::Sender;
pub use total::{PathLaws, Total};

/// Paths of a session at one time. Ours: more than a host has interfaces; what a stranger could make a receiver keep.
pub const MAX_PATHS: usize = 16;
