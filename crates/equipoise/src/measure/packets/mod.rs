//! Packets sent and arrived, one by one → what they tell of the path.
//!
//! Each meter takes [`Sample`]s and answers a question of its own: how long the empty path takes ([`BaseDelay`]), how fast a busy
//! bottleneck serves ([`Recent::service`]), what its capacity is ([`Capacity`]), at which rate what went in faster came out ([`Trains`]), and how rough delays are
//! ([`Roughness`]). All are ours, after what the doc comment of each names; all of them need no more of the two clocks than that
//! both run on.

mod base;
mod capacity;
mod recent;
mod roughness;
mod trains;

pub use base::{BaseDelay, SizeClass};
pub use capacity::Capacity;
pub use recent::{Recent, Service};
pub use roughness::Roughness;
pub use trains::{TrainRates, Trains};

/// A packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Its number; packets that left one after the other have consecutive ones.
    pub number: u64,
    /// When it left, in s by the sender's clock since whenever.
    pub departed_s: f64,
    /// When it arrived, in s by the receiver's clock since whenever.
    pub arrived_s: f64,
    /// Its size in bits.
    pub bits: f64,
    /// What of its delay is above the base of its size, in s.
    pub over_s: f64,
}
