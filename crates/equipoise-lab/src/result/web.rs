use serde::{Deserialize, Serialize};

use super::DelayResult;

/// The results of web traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WebResult {
    /// Number of fetches started in the whole run, each over its own connection.
    pub fetches_begun: u64,
    /// Number of fetches whose last data arrived before the end of the run.
    pub fetches: u64,
    /// Time from the opening of a fetch's connection until the fetch's last data arrived, for completed fetches that
    /// started after the warm-up.
    pub time: DelayResult,
    /// Share of the traffic's duration in which a web flow was ON, averaged over the web flows. `null` if the traffic
    /// had no duration.
    pub on_share: Option<f64>,
}
