use std::collections::BTreeMap;

use serde::Serialize;

use super::distribution::Distribution;

/// Which acknowledgements are used as samples of the round-trip time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AckRule {
    /// Only acknowledgements of exactly two consecutive segments are samples. An acknowledgement of one segment is not,
    /// because it is assumed that the delayed-ACK timer caused it (Waki 2013, Sec. 2.1).
    #[default]
    Pair,
    /// An acknowledgement of new data is a sample if it acknowledges data up to the end of a segment and does not
    /// acknowledge a retransmitted segment.
    Every,
}

/// The results of the analysis of a capture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// Version of Equipoise that made the analysis.
    pub version: String,
    /// Number of frames read.
    pub frames: u64,
    /// Number of TCP segments that were analysed.
    pub segments: u64,
    /// Number of frames that were not analysed, by reason. One reason is that the capture has very many connections, of
    /// which only the first ones are analysed.
    pub skipped: BTreeMap<String, u64>,
    /// Why reading ended after the last complete frame; `null` if reading reached the end of the file.
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
    /// Time of the first segment, in seconds since the capture's first TCP segment.
    pub start_s: f64,
    /// The two directions. The first one is the direction of the first captured segment.
    pub directions: Vec<Direction>,
}

/// One direction of a connection: its data, and the acknowledgements of this data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Direction {
    /// Address and port of the sender of the data.
    pub from: String,
    /// Address and port of the receiver of the data.
    pub to: String,
    /// Where the capture was made: at the sender or the receiver of this direction's data, or elsewhere.
    pub side: Side,
    /// Number of segments with data that were sent on the wire. A large segment that hardware offload splits counts as
    /// several segments.
    pub data_segments: u64,
    /// Number of bytes of data, including retransmissions.
    pub data_bytes: u64,
    /// Number of retransmitted segments.
    pub retransmitted: u64,
    /// Number of acknowledgements that were not used as samples, by reason.
    pub left_out: BTreeMap<String, u64>,
    /// Round-trip times. If the capture was made at the receiver, these are only the receiver's acknowledgement delays.
    /// `null` if there are no samples.
    pub rtt: Option<Distribution>,
}

/// The end of a connection at which a capture was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The capture was made at the sender of the data: each sample is a round-trip time of the path.
    Sender,
    /// The capture was made at the receiver of the data: each sample is only the delay of the receiver's
    /// acknowledgement, not the round-trip time of the path.
    Receiver,
    /// The capture was made at a point between the ends, or at an unknown point.
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

    /// Returns all directions that have samples, in descending order of the number of samples.
    pub fn measured(&self) -> Vec<(&Direction, &Distribution)> {
        let directions = self.connections.iter().flat_map(|connection| &connection.directions);
        let mut measured: Vec<_> =
            directions.filter_map(|direction| Some((direction, direction.rtt.as_ref()?))).collect();
        measured.sort_by_key(|(_, rtt)| std::cmp::Reverse(rtt.samples));
        measured
    }
}
