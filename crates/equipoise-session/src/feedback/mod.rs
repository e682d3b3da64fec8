//! The state of sender and receiver for per-packet feedback: the receiver's record of arrivals and the sender's history
//! of sent packets.
//!
//! ```text
//!   sender: History ── packets by number ──────────────▶ receiver: Recorder
//!           PacketReport ◀── History ◀── ArrivalReport ◀── Recorder's Stretch, in the format of the wire
//! ```
//!
//! The record and the history are independent of the wire format: the recorder yields
//! [`PacketStatus`](crate::wire::feedback::PacketStatus), and the history takes an
//! [`ArrivalReport`](crate::wire::feedback::ArrivalReport), the parsed form of RFC 8888 and of transport-wide feedback.
//! The history matches a report with the packets sent, and produces one
//! [`PacketReport`](equipoise::control::PacketReport) per packet for the controller. Sessions and adapters use a
//! [`Reporter`], which contains a recorder, decides when a report is due and writes the report. All these types have
//! bounded memory and accept any input from a peer.

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
