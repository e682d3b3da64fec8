use serde::{Deserialize, Serialize};

use super::DelayResult;

/// What became of the frames of one live medium, of those captured after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FramesResult {
    /// Frames captured.
    pub captured: u64,
    /// Of these, frames that were not encoded, as too much waited to be sent.
    pub skipped: u64,
    /// Frames that were encoded and never complete at the receiver. What was captured too late for its deadline to come before the
    /// end of the run does not count.
    pub lost: u64,
    /// Frames that were complete later than the deadline.
    pub late: u64,
    /// The deadline, from the capture on, in seconds.
    pub deadline_s: f64,
    /// From a frame's capture until all its packets have arrived.
    pub delay: DelayResult,
    /// How long packets waited at the sender, from the frame's capture until they left.
    pub sender_wait: DelayResult,
    /// How often no frame became complete for 200 ms or more, while some were captured.
    pub freezes: u64,
    /// All of these times together, in seconds.
    pub frozen_s: f64,
    /// The longest of them, in seconds.
    pub longest_freeze_s: f64,
}

impl FramesResult {
    /// The share of the captured frames that a count is.
    pub fn share(&self, count: u64) -> Option<f64> {
        (self.captured > 0).then(|| count as f64 / self.captured as f64)
    }
}
