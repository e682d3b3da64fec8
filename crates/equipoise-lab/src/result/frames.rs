use serde::{Deserialize, Serialize};

use super::DelayResult;

/// Results of the frames of one live medium that were captured after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FramesResult {
    /// Frames captured.
    pub captured: u64,
    /// Captured frames that were not encoded, because too much data was queued at the sender.
    pub skipped: u64,
    /// Frames that were encoded and never completed at the receiver. A frame whose deadline is after the end of the run
    /// does not count.
    pub lost: u64,
    /// Frames completed after the deadline.
    pub late: u64,
    /// The deadline, as a time since the capture, in seconds.
    pub deadline_s: f64,
    /// Delay from a frame's capture until all its packets have arrived.
    pub delay: DelayResult,
    /// Time that packets were queued at the sender, from the frame's capture until they were sent.
    pub sender_wait: DelayResult,
    /// Number of freezes: times of at least 200 ms without a completed frame while frames were captured.
    pub freezes: u64,
    /// Total length of the freezes, in seconds.
    pub frozen_s: f64,
    /// Length of the longest freeze, in seconds.
    pub longest_freeze_s: f64,
}

impl FramesResult {
    /// A count as a share of the captured frames; `None` without captured frames.
    pub fn share(&self, count: u64) -> Option<f64> {
        (self.captured > 0).then(|| count as f64 / self.captured as f64)
    }
}
