//! Bottleneck links, and impairments of the packets on a path.
//!
//! The end hosts do not know the properties of the link. The simulator calls this code with virtual times. The emulator
//! calls it with the kernel's arrival timestamps of packets.
//!
//! [`FifoLink`] is a simple bottleneck: drop-tail, with exact times, without randomness. [`Pipe`] is one direction of a
//! path with all impairments. Its bottleneck has a rate or follows a trace, with drop-tail or active queue management.
//! In addition, packets can be lost, duplicated, delayed by jitter and reordered.

mod agenda;
mod aqm;
mod bucket;
mod fifo;
mod impairment;
mod pipe;
mod service;
mod stats;
mod table;
mod trace;

use core::fmt;
use core::str::FromStr;

use alloc::string::{String, ToString};
use thiserror::Error;

pub use agenda::Agenda;
pub use aqm::{Codel, DualPi2, Ecn, FqCodel, Pie, Queued};
pub use bucket::TokenBucket;
pub use fifo::{FifoLink, Passage};
pub use impairment::{GilbertElliott, Jitter, Loss, Reordering};
pub use pipe::{Capacity, Discipline, Pipe, PipeConfig, PipeError};
pub use stats::{LinkStats, Usage};
pub use trace::{DeliveryTrace, TraceError, TraceErrorKind, rate_steps};

use equipoise::random::stream_seed;
use equipoise::units::{Rate, Schedule, Size, Span, UnitError};

/// A network's seed has many numbered streams of random numbers. The stream with this number is the first that belongs
/// to a link.
const FIRST_LINK_STREAM: u64 = 5 << 32;

/// Returns the seed of a link, from the network's seed and the link's number. The simulator and the emulator use the
/// same seed, so the n-th packet on the link meets the same random impairments in both.
pub fn link_seed(network: u64, link: usize) -> u64 {
    stream_seed(network, FIRST_LINK_STREAM + link as u64)
}

/// The limit of a queue. With drop-tail, an arriving packet that would exceed this limit is dropped.
///
/// As in ns-2 and in Linux's `pfifo`, the packet in transmission does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// Maximum number of waiting packets.
    Packets(u32),
    /// Maximum number of waiting bytes of IP packets.
    Bytes(Size),
    /// Maximum waiting time: a packet that would wait for longer is dropped on arrival.
    Time(Span),
}

/// Parses `"1000 packets"`, a size such as `"64 kB"`, or a time such as `"50 ms"`.
impl FromStr for QueueLimit {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let trimmed = text.trim();
        match trimmed.strip_suffix("packets").or_else(|| trimmed.strip_suffix("packet")) {
            Some(count) => count.trim().parse().map(Self::Packets).map_err(|_| UnitError::NoNumber {
                text: text.to_string(),
                kind: "a queue limit",
                example: "1000 packets",
            }),
            None => match trimmed.parse::<Span>() {
                Ok(time) if time < Span::ZERO => {
                    Err(UnitError::OutOfRange { text: text.to_string(), kind: "a queue limit" })
                }
                Ok(time) => Ok(Self::Time(time)),
                Err(_) => trimmed.parse().map(Self::Bytes),
            },
        }
    }
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(count) => write!(f, "{count} packets"),
            Self::Bytes(size) => write!(f, "{size}"),
            Self::Time(time) => write!(f, "{time}"),
        }
    }
}

/// The configuration of a link: rate over time, propagation delay, queue limit.
///
/// Rates count IP packets including headers, without link-layer framing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// Capacity; may be zero for some time (an outage), but the last rate must be above zero.
    pub rate: Schedule<Rate>,
    /// Time from the end of a packet's transmission to its arrival at the receiving end of the link; not negative.
    pub propagation_delay: Span,
    /// The limit of the queue of waiting packets.
    pub queue: QueueLimit,
}

/// Why a link configuration is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The last rate of the schedule is zero, so a waiting packet would never leave.
    #[error("the link's rate ends at zero; its last step must be above zero")]
    RateEndsAtZero,
    /// The propagation delay is negative.
    #[error("the propagation delay {found} is negative; it must be zero or more")]
    NegativeDelay {
        /// The configured delay.
        found: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_limit_reads_as_packets_bytes_or_time_and_prints_what_reads_back() {
        let limits = [
            ("1000 packets", QueueLimit::Packets(1000)),
            ("64 kB", QueueLimit::Bytes(Size::from_bytes(64_000))),
            ("50ms", QueueLimit::Time(Span::from_millis(50))),
        ];
        for (text, limit) in limits {
            assert_eq!(text.parse(), Ok(limit));
            assert_eq!(limit.to_string().parse(), Ok(limit));
        }
        for wrong in ["", "1000", "-5 ms", "-1 packets", "5 Mbit/s", "many packets"] {
            assert!(wrong.parse::<QueueLimit>().is_err(), "{wrong}");
        }
    }
}
