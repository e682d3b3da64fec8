//! What an application sends and when: models of traffic, and content of a given length.
//!
//! A [`Source`] says when the packets of background traffic leave; a [`Content`] when an application has something to send.
//! [`Web`] says when short flows of web traffic fetch what.
//! The gaps of a source are those of a [`TrafficModel`], ours ([`Traffic`]) or another's.

mod catalogue;
mod content;
mod departures;
mod model;
mod web;

pub use catalogue::{TrafficEntry, entries};
pub use content::Content;
pub use departures::Source;
pub use model::{BoxedTraffic, Traffic, TrafficModel};
pub use web::{Fetch, Web, WebConfig, WebError};
