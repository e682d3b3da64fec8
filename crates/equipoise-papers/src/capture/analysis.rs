use std::collections::BTreeMap;

use serde::Serialize;

use super::distribution::Distribution;

/// Which acknowledgements are used as round-trip samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AckRule {
    /// Acknowledgements of exactly two consecutive segments. An acknowledgement of one segment is assumed to come from
    /// the delayed-ACK timer (Waki 2013, Sec. 2.1).
    #[default]
    Pair,
    /// Every acknowledgement that acknowledges new data and ends at the end of a segment.
    Every,
}

/// The results of a capture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// Version of Equipoise that made the analysis.
    pub version: String,
    /// Number of frames read.
    pub frames: u64,
    /// Number of TCP segments that were analysed.
    pub segments: u64,
    /// Number of other frames, by kind. If a capture has very many connections, only the first ones are analysed.
    pub skipped: BTreeMap<String, u64>,
    /// Why reading ended after the last good frame; `null` if reading reached the end of the file.
    pub ended: Option<String>,
    /// Which acknowledgements were used as samples.
    pub rule: AckRule,
    /// Requested width of the histograms' bars, in seconds; `null` to derive it from the samples.
    pub bin_s: Option<f64>,
    /// The connections, in the order of their first segments.
    pub connections: Vec<Connection>,
}

/// A TCP connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Connection {
    /// Time of the first segment, in seconds since the capture's first frame.
    pub start_s: f64,
    /// The two directions; the direction of the first captured segment comes first.
    pub directions: Vec<Direction>,
}

/// One direction: its data and the acknowledgements of this data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Direction {
    /// Address and port of the sender.
    pub from: String,
    /// Address and port of the receiver.
    pub to: String,
    /// Position of the capture, as seen from this direction.
    pub side: Side,
    /// Number of segments with data, as on the wire: a large segment that hardware offload splits counts as several.
    pub data_segments: u64,
    /// Number of bytes of data, including retransmissions.
    pub data_bytes: u64,
    /// Number of retransmitted segments.
    pub retransmitted: u64,
    /// Number of acknowledgements without a sample, by reason.
    pub left_out: BTreeMap<String, u64>,
    /// Round-trip times; if the capture was taken at the receiver, only its acknowledgement delays. `null` without a
    /// sample.
    pub rtt: Option<Distribution>,
}

/// Position of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// At the sender: samples are round-trip times of the path.
    Sender,
    /// At the receiver: samples are the receiver's acknowledgement delays, without the path.
    Receiver,
    /// Between the ends, or unknown.
    Unknown,
}

impl Analysis {
    /// Returns the analysis as JSON, with a final line break.
    ///
    /// # Panics
    /// Never: numbers, texts, and maps with text keys always have a JSON form.
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("results are plain numbers and texts");
        json.push('\n');
        json
    }

    /// All directions with samples, in descending order of the number of samples.
    pub fn measured(&self) -> Vec<(&Direction, &Distribution)> {
        let directions = self.connections.iter().flat_map(|connection| &connection.directions);
        let mut measured: Vec<_> =
            directions.filter_map(|direction| Some((direction, direction.rtt.as_ref()?))).collect();
        measured.sort_by_key(|(_, rtt)| std::cmp::Reverse(rtt.samples));
        measured
    }
}
