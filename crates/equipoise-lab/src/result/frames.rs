use serde::{Deserialize, Serialize};

use super::DelayResult;

/// Results of one live medium. They include only frames that were captured after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FramesResult {
    /// Number of captured frames.
    pub captured: u64,
    /// Number of captured frames that were not encoded, because too much data was queued at the sender.
    pub skipped: u64,
    /// Number of encoded frames that were never complete at the receiver. A frame whose deadline is after the end of
    /// the run does not count.
    pub lost: u64,
    /// Number of frames that were complete at the receiver only after the deadline.
    pub late: u64,
    /// The deadline for complete arrival, in seconds since a frame's capture.
    pub deadline_s: f64,
    /// Delay from a frame's capture until all packets of the frame have arrived.
    pub delay: DelayResult,
    /// Time from the capture of a packet's frame until the packet is sent, over all packets.
    pub sender_wait: DelayResult,
    /// Number of freezes. A freeze is a time of at least 200 ms without a completed frame, while frames were captured.
    pub freezes: u64,
    /// Total length of the freezes, in seconds.
    pub frozen_s: f64,
    /// Length of the longest freeze, in seconds.
    pub longest_freeze_s: f64,
}

impl FramesResult {
    /// Returns a count as a share of the captured frames; `None` if no frame was captured.
    pub fn share(&self, count: u64) -> Option<f64> {
        (self.captured > 0).then(|| count as f64 / self.captured as f64)
    }
}
