//! Computes statistics per interval from packets sent and arrived.
//!
//! This is the first step of the control loop. Meters process one packet at a time in bounded memory, and report "too
//! few samples" as a value. They do not depend on wire formats or on controllers.

mod accumulation;
mod bandwidth;
mod clock_map;
mod delay;
mod inline;
mod jitter;
mod moments;
mod packet_pair;
pub mod packets;
mod path_clock;
mod replay;
mod sequence;
mod summary;

pub use accumulation::{PlayoutSummary, Traffic, TrafficAccumulation};
pub use bandwidth::{BandwidthEstimate, Measured};
pub use clock_map::ClockMap;
pub use delay::DelayMeter;
pub use inline::{InlineConfig, InlineMeasurement};
pub use jitter::InterarrivalJitter;
pub use moments::Moments;
pub use packet_pair::PacketPairs;
pub use path_clock::{Drift, Notice, Offset, PathClock};
pub use replay::{Novelty, ReplayWindow};
pub use sequence::{Arrival, LossInterval, SequenceTracker};
pub use summary::DelaySummary;
