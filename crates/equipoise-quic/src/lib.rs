//! Equipoise's rate and window controllers as congestion controllers of QUIC stacks: of [noq](https://docs.rs/noq) with
//! the feature `noq`, and of [quinn](https://docs.rs/quinn) with the feature `quinn`.
//!
//! ```
//! # #[cfg(feature = "noq")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use equipoise_quic::Config;
//! use std::sync::Arc;
//!
//! let config = Config::named("equipoise", &[("max_rate", "50 Mbit/s")])?;
//! let monitor = config.monitor();
//! let mut transport = noq::TransportConfig::default();
//! transport.congestion_controller_factory(Arc::new(config));
//! // ... and `transport` goes into the client's or the server's configuration; then, while a connection lives:
//! let rates_bps: Vec<_> = monitor.paths().iter().map(|path| path.rate.map(|rate| rate.as_bps())).collect();
//! # let _ = rates_bps;
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "noq"))]
//! # fn main() {}
//! ```
//!
//! | | noq | quinn |
//! | --- | --- | --- |
//! | rate controllers (`equipoise`, `ap`, `gcc`, …) | paced at their rate | window of rate times round-trip time, paced by the stack at 1.25 times the rate |
//! | window controllers (`symbiosis`, `vegas`, `reno`, `cubic`) | their window, paced by the stack | their window, paced by the stack |
//!
//! The crate has no control law of its own. It matches QUIC's acknowledgements with the packets sent, and passes them
//! to a controller of [`equipoise::control`]. [`equipoise_session::guest`] limits the rate of a rate controller by the
//! rate at which data is acknowledged.
//!
//! QUIC's acknowledgements contain no arrival times. The time at which an acknowledgement arrives is used instead. So
//! the one-way delay that a controller uses is really the round-trip time, including the acknowledgement delay. Packets
//! that one acknowledgement covers are assumed to have arrived evenly since the previous acknowledgement. Configure the
//! receiver to acknowledge promptly (`AckFrequencyConfig`).
#![forbid(unsafe_code)]

#[cfg(not(any(feature = "noq", feature = "quinn")))]
compile_error!("equipoise-quic needs one of its features `noq` and `quinn`, or both");

mod config;
mod driver;
mod monitor;
#[cfg(feature = "noq")]
mod noq;
#[cfg(feature = "quinn")]
mod quinn;
mod sent;
#[cfg(feature = "noq")]
mod split;

pub use config::{Config, UnknownController};
pub use monitor::{Monitor, PathStatus};
#[cfg(feature = "noq")]
pub use split::Split;

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
