//! Runs a scenario in the simulator or with real packets, and evaluates the results.
//!
//! ```text
//!                 ┌─ sim  ─┐
//!   scenario ─────┤        ├──── record ──── result ──── report
//!                 └─ live ─┘
//! ```
//!
//! Only this crate connects the scenario with the simulator and the network. [`scenario`] is the validated file.
//! [`sim`] and [`live`] run it with the same endpoints from the same seed. [`record`] summarises the events of both.
//! [`result`] is the single format of results, and [`report`] draws them.
//!
//! [`compare`] compares several scenarios, and [`suite`] runs many cases with many controllers. A sweep (feature
//! `sweep`) runs many variants of a scenario and writes a table. [`timeline`] shows a run while it is running. [`link`]
//! is the emulated path as a separate program.
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

/// The scenario of the demo, 40 s long: the main use case.
pub const DEMO: &str = include_str!("../scenarios/demo.toml");

/// The demo in 10 s. It shows that everything works, but is too short for conclusions.
pub const DEMO_SHORT: &str = include_str!("../scenarios/demo-short.toml");

/// The second part of the demo: our own law on a link whose capacity rises and falls.
pub const DEMO_OWN: &str = include_str!("../scenarios/demo-own.toml");

/// The version of Equipoise, which all results include.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Progress of a run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Progress {
    /// The completed share of the run, 0 to 1.
    Share(f64),
    /// Something happened at one end of a flow.
    Event {
        /// Time since the run's start.
        at: Span,
        /// Start of the run.
        origin: Instant<SenderClock>,
        /// Index of the flow in the scenario.
        flow: usize,
        /// The path, if the flow has several paths and the event belongs to one of them.
        path: Option<PathId>,
        /// Whether the event is from the end that sends the flow's media or from the end that receives them.
        half: Half,
        /// What happened.
        event: Event,
    },
    /// A packet arrived at the receiver of a flow. If it carried media, its event follows. Only in live runs.
    Waited {
        /// Time since the run's start.
        at: Span,
        /// Index of the flow in the scenario.
        flow: usize,
        /// Total time that the packet waited in the queues of its route.
        waited: Span,
    },
    /// A control interval of a session is over.
    Interval(record::IntervalRow),
}

/// Compiles the code of the README together with the other examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
