//! Sessions for asynchronous applications: an application opens a sender or a receiver, passes payload, and watches
//! rates and measurements.
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
//! Sessions run on separate threads, like those of [`send`](crate::send) and [`Server`](crate::Server).
//! [`send`](crate::send) and [`Server`](crate::Server) are for applications with callbacks: an
//! [`Observer`](crate::Observer) or a [`SessionObserver`](crate::SessionObserver) is called with every event and
//! packet, on the session's thread. This module never runs application code on the session's thread. A task passes
//! payload through a [`PayloadSender`](crate::PayloadSender), and reads the latest rates and measurements from
//! [`tokio::sync::watch`] channels. No session waits for the application. Therefore neither pacing nor arrival times
//! depend on the runtime.
//!
//! This module must be used within a tokio runtime of any kind. The timers and sockets of the runtime need not be
//! enabled.

mod measurement;
mod news;
mod receiver;
mod sender;

pub use measurement::{Measurement, Reception, Summary};
pub use receiver::{Incoming, MediaReceiver, Received};
pub use sender::MediaSender;
