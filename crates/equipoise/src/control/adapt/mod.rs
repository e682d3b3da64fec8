//! Adapters between kinds of feedback: a law for one kind works in a session with another kind.
//!
//! - [`Intervals`] turns per-packet feedback into interval summaries. So AP, LDA or TFRC can use TCP or QUIC
//!   acknowledgements, transport-wide feedback or RFC 8888.
//! - [`Windowed`] turns a window law into a [`Controller`](super::Controller): for Reno, CUBIC, Vegas or Symbiosis
//!   outside TCP.

mod intervals;
mod windowed;

pub use intervals::{IntervalConfig, Intervals, Origin};
pub use windowed::Windowed;
