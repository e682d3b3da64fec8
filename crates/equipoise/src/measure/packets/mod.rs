//! Measures properties of the path from single packets that were sent and arrived.
//!
//! Each meter measures one property:
//! - [`BaseDelay`]: the delay of the empty path, for packets
//! - [`IdleDelay`]: the delay of the empty path, for whole reports
//! - [`PairedDelay`]: the queueing delay that flows of all rates measure alike
//! - [`Recent::service`]: the service rate of a busy bottleneck
//! - [`Capacity`]: the bottleneck's capacity
//! - [`PacketTime`]: the time that the bottleneck takes for a packet
//! - [`Trains`]: the rate at which the path delivers packet trains
//! - [`Roughness`]: the delay variation that is not queueing
//!
//! All are our own methods, based on the sources in their doc comments. The clocks of the sender and the receiver need
//! not agree; they only have to run steadily.

mod base;
mod capacity;
mod idle;
mod packet_time;
mod paired;
mod recent;
mod roughness;
mod trains;

pub use base::{BaseDelay, SizeClass};
pub use capacity::Capacity;
pub use idle::IdleDelay;
pub use packet_time::PacketTime;
pub use paired::PairedDelay;
pub use recent::{Recent, Service};
pub use roughness::Roughness;
pub use trains::{TrainRates, Trains};

/// A packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Number of the packet. Packets sent one after the other have consecutive numbers.
    pub number: u64,
    /// Departure time, in s on the sender's clock, relative to any origin.
    pub departed_s: f64,
    /// Arrival time, in s on the receiver's clock, relative to any origin.
    pub arrived_s: f64,
    /// Size of the packet in bits.
    pub bits: f64,
    /// Delay of the packet minus the base delay for its size, in s.
    pub over_s: f64,
}
