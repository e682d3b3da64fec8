//! Wire formats: RTP, RTCP, the extensions for delay statistics, and per-packet feedback.
//!
//! All input may be hostile: lengths are checked before anything is read, and parsing neither panics nor allocates. The
//! number of report blocks comes from the count field and not from the length of the packet, because an extension may
//! follow the blocks. The controllers of [`equipoise`] do not depend on these formats.
#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::arithmetic_side_effects))]

mod delay_report;
mod error;
pub mod feedback;
mod joint;
pub mod key_frames;
pub mod nack;
mod ntp;
mod reader;
mod receipt;
pub mod relay;
pub mod rtcp;
pub mod rtp;

pub use delay_report::{DelayOrigin, DelayReport, MarkReport, PlayoutReport, ReportRequest};
pub use error::WireError;
pub use joint::JointExtension;
pub use ntp::NtpTime;
pub use receipt::{Receipt, ReceiptRequest};

/// Whether a datagram is RTCP, if RTP and RTCP share a port.
///
/// Source: RFC 5761, Sec. 4. A datagram is RTCP if its second byte is between 192 and 223.
pub fn is_rtcp(datagram: &[u8]) -> bool {
    datagram.get(1).is_some_and(|packet_type| (192..=223).contains(packet_type))
}
