//! The data that an application sends, and when: traffic models, and content of a given length.
//!
//! A [`Source`] yields the departure times of background traffic, and a [`Content`] the times at which an application's
//! packets are available. [`Web`] yields the times and sizes of fetches by short web flows. The gaps of a source come
//! from a [`TrafficModel`], built in ([`Traffic`]) or custom.

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
