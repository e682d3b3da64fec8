//! Adapters between kinds of feedback: a law that knows one kind serves a session that has another.
//!
//! - [`Intervals`] makes interval summaries of feedback on single packets: AP, TQ's relatives, LDA or TFRC over TCP's or QUIC's
//!   acknowledgements, transport-wide feedback or RFC 8888.
//! - [`Windowed`] makes a [`Controller`](super::Controller) of a window law: Reno, CUBIC, Vegas or Symbiosis outside TCP.

mod intervals;
mod windowed;

pub use intervals::{IntervalConfig, Intervals, Origin};
pub use windowed::Windowed;
