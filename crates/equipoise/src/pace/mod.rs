//! Computes departure times from a rate.
//!
//! This is the last step of the control loop. A [`Pacer`] spaces the packets of a controlled session. The caller passes
//! the time to each call: threads and timers belong to the caller.

mod pacer;

pub use pacer::{Pacer, Readiness};
