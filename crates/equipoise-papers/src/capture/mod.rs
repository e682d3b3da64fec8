//! Captures of TCP: round-trip times by connection, and how they are distributed.
//!
//! Source: Waki 2013, Sec. 2. A capture taken beside the sender shows when a segment left and when its acknowledgement
//! came. What would spoil that is left out and counted: retransmitted segments (Karn 1987) and acknowledgements that the
//! delayed-ACK timer sent. The file is read once, from its beginning to its end; memory grows with the connections and
//! with the samples, eight bytes each.

mod connection;
mod distribution;
mod frames;
mod gaussian;
mod segment;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::Read;

use equipoise::units::Span;
use serde::Serialize;
use thiserror::Error;

pub use distribution::Distribution;
pub use gaussian::GaussianFit;

use connection::Connections;
use frames::Frames;

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

/// How to read a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// Which acknowledgements count.
    pub rule: AckRule,
    /// Width of the histograms' bars; `None` for one that follows from the samples (Freedman 1981).
    pub bin: Option<Span>,
}

/// Why nothing can be had from a capture.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// It does not begin as a capture does.
    #[error("this is not a capture: it begins neither as pcap nor as pcapng, compressed by gzip or not")]
    NotACapture,
    /// There is nothing in it.
    #[error("the capture is empty; not even its header is there")]
    Empty,
    /// It cannot be read.
    #[error("the capture cannot be read")]
    Read(#[from] std::io::Error),
}

/// What a capture tells.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// Frames that were read.
    pub frames: u64,
    /// Of these, TCP segments.
    pub segments: u64,
    /// The others, by what they are.
    pub skipped: BTreeMap<String, u64>,
    /// Why reading ended before the end of the file, with what there was until then; `null` where it did not.
    pub ended: Option<String>,
    /// Which acknowledgements count.
    pub rule: AckRule,
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

/// Reads a capture: pcap or pcapng, compressed by gzip or not, to its end or as far as it is whole.
///
/// # Errors
/// [`CaptureError`] where nothing can be had; a capture that is cut off or damaged further on gives what comes before.
pub fn analyse(source: impl Read + Send, options: &Options) -> Result<Analysis, CaptureError> {
    let mut frames = Frames::open(source)?;
    let mut connections = Connections::new(options.rule);
    let mut analysis = Analysis {
        frames: 0,
        segments: 0,
        skipped: BTreeMap::new(),
        ended: None,
        rule: options.rule,
        connections: Vec::new(),
    };
    analysis.ended = frames.each(|frame| {
        analysis.frames += 1;
        match segment::parse(frame) {
            Ok(segment) => {
                analysis.segments += 1;
                connections.push(&segment);
            }
            Err(reason) => *analysis.skipped.entry(reason.to_owned()).or_default() += 1,
        }
    });
    analysis.connections = connections.finish(options.bin);
    Ok(analysis)
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
