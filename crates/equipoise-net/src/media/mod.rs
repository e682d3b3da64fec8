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
//! Sessions live on the same threads as those of [`send`](crate::send) and [`Server`](crate::Server), which are the form
//! for applications that want to be called: an [`Observer`](crate::Observer) or a [`SessionObserver`](crate::SessionObserver) sees every
//! event and every packet, on the session's own thread. What is here never runs there. A task hands payload over through
//! the same [`PayloadSender`](crate::PayloadSender), and observes the session by [`tokio::sync::watch`], where only the latest value
//! counts. No session ever waits for an application: neither pacing nor the times of arrivals hang on the runtime.
//!
//! All of it wants to be called within a tokio runtime, of any kind; timers and sockets of the runtime need not be enabled.

mod measurement;
mod news;
mod receiver;
mod sender;

pub use measurement::{Measurement, Reception, Summary};
pub use receiver::{Incoming, MediaReceiver, Received};
pub use sender::MediaSender;
