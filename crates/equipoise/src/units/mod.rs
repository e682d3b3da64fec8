//! Quantities with units. Only this module turns numbers into quantities and back.
//!
//! Everything outside this module uses [`Instant`], [`Span`], [`Rate`], [`Size`] and [`Share`]; bare numbers appear
//! only in the constructors and accessors, whose names carry the unit. Arithmetic saturates: it neither panics nor
//! wraps, because times and sizes also come from the network.

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
