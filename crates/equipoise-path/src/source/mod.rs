//! The data that an application sends, and when it is sent: traffic models, and content of a given length.
//!
//! A [`Source`] returns the departure times of background traffic. A [`Content`] returns the times at which an
//! application's packets are available. A [`Web`] returns the start times and sizes of fetches by short web flows. The
//! gaps between the packets of a `Source` come from a [`TrafficModel`], which is built in ([`Traffic`]) or custom.

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
