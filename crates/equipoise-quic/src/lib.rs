//! Equipoise's rate controllers and window laws as congestion controllers of QUIC: of [noq](https://docs.rs/noq) with the feature
//! `noq`, of [quinn](https://docs.rs/quinn) with the feature `quinn`.
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
//! | rate controllers (`equipoise`, `ap`, `gcc`, …) | paced by their rate | by a window of their rate times the round trip: the stack paces by that, a quarter faster |
//! | window laws (`symbiosis`, `vegas`, `reno`, `cubic`) | their window, which the stack paces | the same |
//!
//! The crate has no law of its own. It combines QUIC's acknowledgements with the packets sent, and passes them to a
//! controller of [`equipoise::control`], which [`equipoise_session::guest`] limits to what was proved to arrive.
//!
//! QUIC's acknowledgements contain no arrival times. The time at which an acknowledgement arrives is used instead, so a
//! law sees the round-trip time, including the acknowledgement delay, as the one-way delay. Packets of one
//! acknowledgement are assumed to have arrived evenly since the previous one. Ask the receiver for prompt
//! acknowledgements (`AckFrequencyConfig`).
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
