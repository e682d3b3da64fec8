//! Quantities with units. Only this module turns numbers into quantities and back.
//!
//! Most interfaces outside this module use [`Instant`], [`Span`], [`Rate`], [`Size`] and [`Share`]. Equations, and
//! interfaces close to them such as [`measure::packets`](crate::measure::packets), use bare numbers, whose units are in
//! their names or comments. The constructors and accessors of this module carry the unit in their names. Arithmetic
//! saturates: it neither panics nor wraps, because times and sizes also come from the network.

mod instant;
mod parse;
mod rate;
mod schedule;
mod share;
mod size;
mod span;

pub use instant::{Instant, ReceiverClock, SenderClock};
pub use parse::UnitError;
pub use rate::Rate;
pub use schedule::Schedule;
pub use share::Share;
pub use size::Size;
pub use span::Span;
