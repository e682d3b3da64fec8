//! A rate, or a model of traffic → departure times.
//!
//! The last step of the loop. A [`Pacer`] spaces the packets of a controlled session; a [`Source`] says when the packets
//! of background traffic leave. Both are asked, and told, in the caller's time: threads and timers are the world's.

mod pacer;
mod source;

pub use pacer::{Pacer, Readiness};
pub use source::{Source, Traffic, stream_seed};
