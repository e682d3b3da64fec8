//! What both ends keep for feedback by packet: the receiver's record of arrivals and the sender's history of departures.
//!
//! ```text
//!   sender: History ── packets by number ──────────────▶ receiver: Recorder
//!           PacketReport ◀── History ◀── ArrivalReport ◀── Recorder's Stretch, in the format of the wire
//! ```
//!
//! Neither knows a format: the recorder yields [`PacketStatus`](crate::wire::feedback::PacketStatus), and the history takes an
//! [`ArrivalReport`](crate::wire::feedback::ArrivalReport), which RFC 8888 and transport-wide feedback are read into. The history
//! joins a report with what was sent, into the [`PacketReport`](equipoise::control::PacketReport)s of the seam to the controllers.
//! A [`Reporter`] has a recorder and says when a report is due and how it is written; a session has one, and so has an adapter.
//! All are bounded in memory and take anything that a peer may send.

mod history;
#[cfg(test)]
mod history_tests;
mod recorder;
mod reporter;
mod traps;

pub use history::{FeedbackCounts, History, Joined, Outcome, Refusal, Scope};
pub use recorder::{Recorded, Recorder, Stretch};
pub use reporter::{Format, Reporter, Reporting};
pub use traps::Traps;
