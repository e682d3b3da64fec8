//! One scenario in two worlds, and what comes of it.
//!
//! ```text
//!                 ┌─ sim  ─┐
//!   scenario ─────┤        ├──── record ──── result ──── report
//!                 └─ live ─┘
//! ```
//!
//! This is the only crate that knows the scenario and both worlds. [`scenario`] is the file, checked; [`sim`] and
//! [`live`] run it with the same endpoints from the same seed; [`record`] sums up the events of either; [`result`] is
//! the one form of results, and [`report`] draws them. [`compare`] sets several scenarios against each
//! other, [`suite`] many cases under many controllers, and a sweep (the feature `sweep`) runs many variants of a scenario into a
//! table. [`timeline`] is what a person watches of a run while it goes on, [`link`] the emulated path as a program of its own.
#![forbid(unsafe_code)]

use equipoise::units::{Instant, SenderClock, Span};
pub use equipoise_session::{Event, Half, PathId, Transport};

pub mod capacity;
pub mod compare;
mod coupling;
mod csv;
mod ends;
#[cfg(feature = "live")]
pub mod link;
#[cfg(feature = "live")]
pub mod live;
pub mod metrics;
pub mod packets;
pub mod pcapng;
mod phases;
mod playout;
pub mod qlog;
pub mod record;
pub mod report;
pub mod result;
pub mod scenario;
pub mod sim;
pub mod statistics;
pub mod suite;
#[cfg(feature = "sweep")]
pub mod sweep;
mod text_file;
pub mod timeline;
pub mod trace;
pub mod verdict;
pub mod video;

pub use ends::EndsError;

/// The scenario of the demo: the main job, forty seconds long.
pub const DEMO: &str = include_str!("../scenarios/demo.toml");

/// The demo in ten seconds, which show that it works and are too short to judge by.
pub const DEMO_SHORT: &str = include_str!("../scenarios/demo-short.toml");

/// The demo's second part: our own law on a link that becomes faster and slower.
pub const DEMO_OWN: &str = include_str!("../scenarios/demo-own.toml");

/// The version of Equipoise, which all results name.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How far a run has come.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Progress {
    /// This share of it is done, 0 to 1.
    Share(f64),
    /// Something happened at one end of a flow.
    Event {
        /// When, since the run's start.
        at: Span,
        /// The start of the run.
        origin: Instant<SenderClock>,
        /// The flow's place in the scenario.
        flow: usize,
        /// Which of its paths, where it has several and this is of one.
        path: Option<PathId>,
        /// Which end: the one that sends the flow's media, or the one that receives them.
        half: Half,
        /// What happened.
        event: Event,
    },
    /// A packet has come to the receiver of a flow, after it waited in the queues of its way for so long; if it was media, its event follows.
    /// Of live runs alone.
    Waited {
        /// When, since the run's start.
        at: Span,
        /// The flow's place in the scenario.
        flow: usize,
        /// How long.
        waited: Span,
    },
    /// A control interval of a session is over.
    Interval(record::IntervalRow),
}

/// The README's code, so that it is compiled with the other examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
