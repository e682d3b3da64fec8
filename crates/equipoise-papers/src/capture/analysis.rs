use std::collections::BTreeMap;

use serde::Serialize;

use super::distribution::Distribution;

/// Which acknowledgements give a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AckRule {
    /// Those of exactly two successive segments: one alone is taken for the work of the delayed-ACK timer
    /// (Waki 2013, Sec. 2.1).
    #[default]
    Pair,
    /// Every one that acknowledges something new and ends with a segment.
    Every,
}

/// What a capture tells.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// Version of Equipoise that made it.
    pub version: String,
    /// Frames that were read.
    pub frames: u64,
    /// Of these, TCP segments that were analysed.
    pub segments: u64,
    /// The others, by what they are. Of a capture with very many connections, only the first are analysed.
    pub skipped: BTreeMap<String, u64>,
    /// Why reading ended before the end of the file, with what there was until then; `null` where it did not.
    pub ended: Option<String>,
    /// Which acknowledgements count.
    pub rule: AckRule,
    /// Width of the histograms' bars that was asked for, in seconds; `null` for one that follows from the samples.
    pub bin_s: Option<f64>,
    /// The connections, in the order of their first segments.
    pub connections: Vec<Connection>,
}

/// A TCP connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Connection {
    /// First segment, in seconds since the capture's first frame.
    pub start_s: f64,
    /// Its two directions, that of the first segment seen first.
    pub directions: Vec<Direction>,
}

/// The data of one direction and what comes back for them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Direction {
    /// Address and port of the sender.
    pub from: String,
    /// Address and port of the receiver.
    pub to: String,
    /// Where the capture was taken, as seen from this direction.
    pub side: Side,
    /// Segments with data; what a network card was to cut into segments counts as these.
    pub data_segments: u64,
    /// Bytes of data, repeated ones included.
    pub data_bytes: u64,
    /// Segments that repeat data.
    pub retransmitted: u64,
    /// Acknowledgements that gave no sample, by reason.
    pub left_out: BTreeMap<String, u64>,
    /// Round-trip times; at a receiver's side only how long it takes to acknowledge. `null` without a sample.
    pub rtt: Option<Distribution>,
}

/// Where a capture was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Beside the sender: samples are round-trip times of the path.
    Sender,
    /// Beside the receiver: samples are its own delay in acknowledging, and nothing of the path.
    Receiver,
    /// In between, or not to be told.
    Unknown,
}

impl Analysis {
    /// The analysis as JSON, with a line break at its end.
    ///
    /// # Panics
    /// Never: numbers, texts and maps by text always have a JSON form.
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("results are plain numbers and texts");
        json.push('\n');
        json
    }

    /// All directions with samples, those with most samples first.
    pub fn measured(&self) -> Vec<(&Direction, &Distribution)> {
        let directions = self.connections.iter().flat_map(|connection| &connection.directions);
        let mut measured: Vec<_> =
            directions.filter_map(|direction| Some((direction, direction.rtt.as_ref()?))).collect();
        measured.sort_by_key(|(_, rtt)| std::cmp::Reverse(rtt.samples));
        measured
    }
}
