//! Equipoise's rate controllers as the congestion control of [webrtc-rs](https://webrtc.rs). The crate works with
//! `rtc`, which is sans-IO, and with `webrtc`, which drives `rtc`.
//!
//! ```
//! use equipoise_webrtc::{Config, install};
//! use rtc::peer_connection::configuration::interceptor_registry::{Registry, register_default_interceptors};
//! use rtc::peer_connection::configuration::media_engine::MediaEngine;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut media_engine = MediaEngine::default();
//! media_engine.register_default_codecs()?;
//! let config = Config::named("equipoise", &[("max_rate", "5 Mbit/s")])?;
//! let (registry, monitor) = install(Registry::new(), &mut media_engine, config)?;
//! let registry = register_default_interceptors(registry, &mut media_engine)?;
//! // Build the peer connection from `registry` and `media_engine`. Then, for each frame:
//! let encoder_bitrate_bps = monitor.status().media_rate.as_bps();
//! # let _ = (registry, encoder_bitrate_bps);
//! # Ok(())
//! # }
//! ```
//!
//! The crate has one interceptor, [`CongestionControl`], which is the last interceptor before the network. It contains
//! the complete control loop. It *measures* the path with the receiver's feedback, which is transport-wide or RFC 8888
//! feedback. It *controls* the rate with any controller of [`equipoise::control::entries`] that needs no other
//! feedback. It *paces* the packets. The control laws are in [`equipoise`]. For most controllers,
//! [`equipoise_session::guest`] limits the rate to twice the delivery rate that feedback confirms.
#![forbid(unsafe_code)]

mod config;
mod interceptor;
mod monitor;
#[cfg(test)]
mod tests;

pub use config::{Config, InstallError, install};
pub use equipoise_session::feedback::Format;
pub use interceptor::CongestionControl;
pub use monitor::{Monitor, Status};

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
