//! A rate → departure times.
//!
//! The last step of the loop. A [`Pacer`] spaces the packets of a controlled session. It is queried, and informed, in the
//! caller's time: threads and timers belong to the world.

mod pacer;

pub use pacer::{Pacer, Readiness};
