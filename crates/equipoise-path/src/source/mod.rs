//! What an application sends and when: models of traffic, and content of a given length.
//!
//! A [`Source`] says when the packets of background traffic leave; a [`Content`] when an application has something to send.

mod content;
mod traffic;

pub use content::Content;
pub use traffic::{Source, Traffic};
