//! A media session over RTP and RTCP with the delay reports of Waki 2013, Sec. 5.1.
//!
//! ```text
//!   Sender ── RTP, each with its sending time ──────────▶ Receiver
//!          ── SR: "how was it since t?" every interval ─▶
//!          ◀─ RR: mean and variance of the delay ───────
//! ```
//!
//! [`Sender`] paces media at the rate of a controller and requests reports. [`Receiver`] measures the delay and
//! answers the requests. [`Background`] sends media on a traffic model's schedule, without feedback. [`Duplex`] is an
//! endpoint with both roles in one session; the roles share a synchronisation source and RTCP datagrams.
//!
//! A request is a single SR, and an answer is a single RR. Requests and answers have a profile-specific extension, and
//! are reduced-size RTCP (RFC 5506). In addition, a full compound with a CNAME is sent at the interval of RFC 3550,
//! Sec. 6.2. The sender's configuration sets the report interval.

pub(super) mod application;
mod background;
pub(super) mod breaker;
pub(super) mod by_packet;
#[cfg(test)]
mod by_packet_tests;
#[cfg(test)]
mod clock_tests;
pub(super) mod compound;
mod delays;
mod duplex;
#[cfg(test)]
mod duplex_tests;
mod ecn;
#[cfg(test)]
mod ecn_tests;
pub(super) mod exchange;
#[cfg(test)]
mod fault_tests;
mod frames;
#[cfg(test)]
mod frames_tests;
mod further;
#[cfg(test)]
mod further_tests;
pub(super) mod governor;
#[cfg(test)]
mod harm_tests;
pub(super) mod key_frames;
#[cfg(test)]
mod key_frames_tests;
mod missing;
pub(super) mod outbox;
pub(super) mod payload;
#[cfg(test)]
mod payload_tests;
mod playout;
#[cfg(test)]
mod playout_tests;
mod probe_budget;
pub(super) mod proof;
pub(super) mod receipts;
mod receiver;
pub(super) mod reception;
pub(super) mod reorder;
mod repeats;
#[cfg(test)]
mod repeats_tests;
mod sender;
pub(super) mod stream;
mod supply;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod two_ends;
#[cfg(test)]
mod whole_frames_tests;

pub use background::Background;
pub use breaker::Breaker;
pub use delays::Delays;
pub use duplex::{Duplex, DuplexConfig};
pub use frames::LiveMedia;
pub use payload::Payload;
pub use playout::PlayoutBuffer;
pub use receiver::{Receiver, ReceiverConfig};
pub use reception::Clocks;
pub use reorder::ReorderConfig;
pub use repeats::Repeating;
pub use sender::{Sender, SenderConfig};
pub use stream::{SessionError, StreamConfig};
pub use supply::{Pause, Supply};
