//! Adapters that convert feedback, so that a controller for one kind of feedback works in a session with another kind.
//!
//! - [`Intervals`] converts per-packet feedback into interval summaries, so that AP, LDA or TFRC can use
//!   acknowledgements of TCP or QUIC, transport-wide feedback or RFC 8888.
//! - [`Windowed`] adapts a window law to the trait [`Controller`](super::Controller), so that Reno, CUBIC, Vegas or
//!   Symbiosis can be used outside of TCP.

mod intervals;
mod windowed;

pub use intervals::{IntervalConfig, Intervals, Origin};
pub use windowed::Windowed;
