//! One media session over several paths. Each RTP packet has a sequence number in the session and another sequence
//! number on its path.
//!
//! ```text
//!              ┌─ path 0: pacer, requests, reports ─┐
//!   Sender ────┤                                    ├──── Receiver ── payload, in order
//!      ▲       └─ path 1: pacer, requests, reports ─┘        │
//!      └──────── each path's mean and variance ◀─────────────┘
//! ```
//!
//! The format is that of multipath RTP (draft-ietf-avtcore-mprtp-03, Sec. 9): a header extension with the sub-flow's
//! number and the packet's sequence number in the sub-flow, and reports on sub-flows. Everything else is as in a
//! session over one path ([`rtp`](super::rtp)): requests and delay reports for each path, pacers, payload, delivery
//! in order.
//!
//! Either one [`Controller`](equipoise::control::Controller) decides on the total rate, or each path has a controller
//! that decides on the rate of that path ([`Total`]). A [`Scheduler`](equipoise::control::scheduler::Scheduler) divides
//! the total among the paths once per period. The pacers decide on which path a packet is sent: when the pacer of a
//! path allows it, the path takes the next packet.
//!
//! Paths have numbers. The driver informs a sender of the paths that exist ([`Input::Path`](crate::Input::Path)). A
//! receiver learns of paths from arriving packets. The receiver answers a request on the path on which the request
//! arrived, whatever number this path has at the receiver. The receiver's events on media and reports contain the
//! sender's path number.

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

/// Maximum number of paths of a session. Our choice: more than a host has interfaces. The limit bounds a receiver's
/// memory.
pub const MAX_PATHS: usize = 16;
