//! Media for asynchronous applications: open a sender or a receiver, push payload, watch rate and measurements.
//!
//! ```no_run
//! use equipoise::control::Cbr;
//! use equipoise::units::Rate;
//! use equipoise_net::media::MediaSender;
//! use equipoise_net::{Key, SendConfig};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let secret = std::fs::read_to_string("key")?;
//! let config = SendConfig::stream("192.0.2.7:5004".parse()?, Some(Key::from_base64(&secret)?));
//! let sender = MediaSender::open(config, Box::new(Cbr::new(Rate::from_bps(1_000_000)))).await?;
//! let rate = sender.target_rate();
//! sender.send(b"the next bytes of a stream").await?;
//! println!("an encoder may give {}", sender.payload_rate(*rate.borrow()));
//! sender.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Sessions run on the same threads as those of [`send`](crate::send) and [`Server`](crate::Server). These two are for
//! applications with callbacks: an [`Observer`](crate::Observer) or a [`SessionObserver`](crate::SessionObserver) sees
//! every event and every packet, on the session's own thread. This module never runs application code on that thread. A
//! task passes payload through the same [`PayloadSender`](crate::PayloadSender), and observes the session with
//! [`tokio::sync::watch`], which keeps only the latest value. No session ever waits for an application: neither pacing
//! nor arrival times depend on the runtime.
//!
//! Call this module within a tokio runtime of any kind. The timers and sockets of the runtime need not be enabled.

mod measurement;
mod news;
mod receiver;
mod sender;

pub use measurement::{Measurement, Reception, Summary};
pub use receiver::{Incoming, MediaReceiver, Received};
pub use sender::MediaSender;
