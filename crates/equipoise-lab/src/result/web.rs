use serde::{Deserialize, Serialize};

use super::DelayResult;

/// The results of web traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WebResult {
    /// Fetches begun in the whole run, each over a connection of its own.
    pub fetches_begun: u64,
    /// Fetches whose last data arrived before the end of the run.
    pub fetches: u64,
    /// Time from the opening of a fetch's connection until its last data arrived, for complete fetches that began after
    /// the warm-up.
    pub time: DelayResult,
    /// Share of time that its on/off flows were ON, from the start of the traffic; `null` if the traffic had no
    /// duration.
    pub on_share: Option<f64>,
}
