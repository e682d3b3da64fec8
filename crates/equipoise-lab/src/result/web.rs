use serde::{Deserialize, Serialize};

use super::DelayResult;

/// What web traffic fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WebResult {
    /// Fetches that were begun in the whole run, each over a connection of its own.
    pub fetches_begun: u64,
    /// Of these, fetches whose last data came before the end of the run.
    pub fetches: u64,
    /// From the opening of a fetch's connection until its last data came; of complete fetches that began after the warm-up.
    pub time: DelayResult,
    /// Share of their time that its on/off flows were ON, from the start of the traffic; `null` if it did not last.
    pub on_share: Option<f64>,
}
