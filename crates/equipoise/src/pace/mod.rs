//! A rate, or a model of traffic → departure times.
//!
//! The last step of the loop. A [`Pacer`] spaces the packets of a controlled session; a [`Source`] says when the packets
//! of background traffic leave; a [`Content`] when an application has what to send. All are asked, and told, in the caller's time: threads and timers are the world's.

mod content;
mod pacer;
mod source;

pub use content::Content;
pub use pacer::{Pacer, Readiness};
pub(crate) use source::generator;
pub use source::{Source, Traffic, stream_seed};
