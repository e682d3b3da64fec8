//! Packets sent and arrived → statistics of an interval.
//!
//! The first step of the loop. Meters take packets one at a time in bounded memory and say "too few samples" as a
//! value; they know nothing of wire formats or of what a controller will make of their results.

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
