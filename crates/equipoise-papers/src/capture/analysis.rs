use std::collections::BTreeMap;

use serde::Serialize;

use super::distribution::Distribution;

/// Which acknowledgements are used as samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AckRule {
    /// Those of exactly two consecutive segments. An acknowledgement of one segment is assumed to come from the
    /// delayed-ACK timer (Waki 2013, Sec. 2.1).
    #[default]
    Pair,
    /// Each one that acknowledges new data and ends at the end of a segment.
    Every,
}

/// The results of a capture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// Version of Equipoise that made it.
    pub version: String,
    /// Frames that were read.
    pub frames: u64,
    /// TCP segments among them that were analysed.
    pub segments: u64,
    /// The other frames, by kind. Of a capture with very many connections, only the first ones are analysed.
    pub skipped: BTreeMap<String, u64>,
    /// Why reading ended early, after the last good frame; `null` if it reached the end of the file.
    pub ended: Option<String>,
    /// The rule for acknowledgements.
    pub rule: AckRule,
    /// Requested width of the histograms' bars, in seconds; `null` to derive it from the samples.
    pub bin_s: Option<f64>,
    /// The connections, in the order of their first segments.
    pub connections: Vec<Connection>,
}

/// A TCP connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Connection {
    /// First segment, in seconds since the capture's first frame.
    pub start_s: f64,
    /// Its two directions; the direction of the first captured segment comes first.
    pub directions: Vec<Direction>,
}

/// The data of one direction and its acknowledgements.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Direction {
    /// Address and port of the sender.
    pub from: String,
    /// Address and port of the receiver.
    pub to: String,
    /// Position of the capture, as seen from this direction.
    pub side: Side,
    /// Segments with data, counted as on the wire: a large segment left to hardware offload counts as several.
    pub data_segments: u64,
    /// Bytes of data, including retransmissions.
    pub data_bytes: u64,
    /// Retransmitted segments.
    pub retransmitted: u64,
    /// Acknowledgements without a sample, by reason.
    pub left_out: BTreeMap<String, u64>,
    /// Round-trip times. At a receiver's side, only the time until it acknowledges. `null` without a sample.
    pub rtt: Option<Distribution>,
}

/// Position of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// At the sender: samples are round-trip times of the path.
    Sender,
    /// At the receiver: samples are its own acknowledgement delay, without the path.
    Receiver,
    /// In between, or unknown.
    Unknown,
}

impl Analysis {
    /// The analysis as JSON, with a final line break.
    ///
    /// # Panics
    /// Never: numbers, texts and maps by text always have a JSON form.
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("results are plain numbers and texts");
        json.push('\n');
        json
    }

    /// All directions with samples, in descending order of their number.
    pub fn measured(&self) -> Vec<(&Direction, &Distribution)> {
        let directions = self.connections.iter().flat_map(|connection| &connection.directions);
        let mut measured: Vec<_> =
            directions.filter_map(|direction| Some((direction, direction.rtt.as_ref()?))).collect();
        measured.sort_by_key(|(_, rtt)| std::cmp::Reverse(rtt.samples));
        measured
    }
}
