//! Runs a scenario in the simulator or with real packets, and evaluates the results.
//!
//! ```text
//!                 ┌─ sim  ─┐
//!   scenario ─────┤        ├──── record ──── result ──── report
//!                 └─ live ─┘
//! ```
//!
//! Only this crate connects the scenario with the simulator and the network. [`scenario`] is the validated scenario
//! file. [`sim`] and [`live`] run the scenario with the same RTP endpoints. [`record`] summarises the events of both
//! kinds of run. [`result`] is the single format of results, and [`report`] draws the results.
//!
//! [`compare`] compares several scenarios, and [`suite`] runs many cases with many controllers. A sweep (feature
//! `sweep`) runs many variants of a scenario and writes a table. [`timeline`] shows a run while it is running. [`link`]
//! runs the emulated path as a separate program.
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

/// The scenario of the demo, which lasts 40 s and shows the main use case.
pub const DEMO: &str = include_str!("../scenarios/demo.toml");

/// The scenario of the demo, shortened to 10 s. It shows that everything works, but is too short for conclusions.
pub const DEMO_SHORT: &str = include_str!("../scenarios/demo-short.toml");

/// The second part of the demo: our own control law on a link whose capacity rises and falls.
pub const DEMO_OWN: &str = include_str!("../scenarios/demo-own.toml");

/// The version of Equipoise, which all results include.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Progress of a run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Progress {
    /// The completed share of the run, 0 to 1.
    Share(f64),
    /// An event happened at one endpoint of a flow.
    Event {
        /// Time since the run's start.
        at: Span,
        /// Start of the run, on the sender's clock.
        origin: Instant<SenderClock>,
        /// Index of the flow in the scenario.
        flow: usize,
        /// The path, if the flow has several paths and the event belongs to one of them.
        path: Option<PathId>,
        /// Whether the event happened at the endpoint that sends the flow's media or at the endpoint that receives
        /// them.
        half: Half,
        /// What happened.
        event: Event,
    },
    /// A packet arrived at the receiver of a flow. If the packet carried media of a session or of a flow pair, the
    /// packet's [`Event`](Self::Event) follows immediately. Only live runs report `Waited`.
    Waited {
        /// Time since the run's start.
        at: Span,
        /// Index of the flow in the scenario.
        flow: usize,
        /// Total time that the packet waited in the queues of its route.
        waited: Span,
    },
    /// A control interval of a session is over. Only live runs report this.
    Interval(record::IntervalRow),
}

/// Compiles the code of the README together with the other examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
