//! Computes departure times from a rate.
//!
//! This is the last step of the control loop. A [`Pacer`] spaces the packets of a controlled session. It reads no
//! clock: the caller passes the current time, and provides threads and timers.

mod pacer;

pub use pacer::{Pacer, Readiness};
