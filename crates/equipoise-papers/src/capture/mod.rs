//! Analysis of captures: round-trip times of TCP connections and their distribution, and statistics of RTP streams.
//!
//! Source: Waki 2013, Sec. 2. A capture made at the sender shows when a segment was sent and when its acknowledgement
//! arrived. Misleading samples are left out and counted: acknowledgements of retransmitted segments (Karn 1987), and
//! by default also acknowledgements that the delayed-ACK timer caused. The file is read once, from beginning to end.
//! The memory grows with the number of connections and samples, up to about 1 GB.

mod analysis;
mod connection;
mod datagram;
mod distribution;
mod error;
mod frames;
mod gaussian;
mod rtp;
mod segment;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::Read;

use equipoise::units::Span;

pub use analysis::{AckRule, Analysis, Connection, Direction, Side};
pub use distribution::Distribution;
pub use error::CaptureError;
pub use gaussian::GaussianFit;
pub use rtp::{Delays, Jitter, RoundTrip, RoundTripSample, RtpAnalysis, RtpOptions, RtpStream, Second, analyse_rtp};

use connection::{Connections, Room};
use frames::Frames;

/// Options of the analysis of TCP connections.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// Which acknowledgements are used as samples of the round-trip time.
    pub rule: AckRule,
    /// Width of the histograms' bars; `None` to derive it from the samples (Freedman 1981).
    pub bin: Option<Span>,
}

/// Analyses the TCP connections in a capture file, pcap or pcapng, which may be compressed with gzip. The file is
/// analysed up to its end or to its first damaged part.
///
/// # Errors
/// [`CaptureError`] if nothing can be read. If a later part of the file is damaged or missing, the part before it is
/// analysed.
pub fn analyse(source: impl Read + Send, options: &Options) -> Result<Analysis, CaptureError> {
    analyse_within(Room::DEFAULT, source, options)
}

fn analyse_within(room: Room, source: impl Read + Send, options: &Options) -> Result<Analysis, CaptureError> {
    let mut frames = Frames::open(source)?;
    let mut connections = Connections::new(options.rule, room);
    let mut analysis = Analysis {
        version: equipoise_lab::VERSION.to_owned(),
        frames: 0,
        segments: 0,
        skipped: BTreeMap::new(),
        ended: None,
        rule: options.rule,
        bin_s: options.bin.map(Span::as_secs_f64),
        connections: Vec::new(),
    };
    analysis.ended = frames.each(|frame| {
        analysis.frames += 1;
        match segment::parse(frame).and_then(|segment| connections.push(&segment)) {
            Ok(()) => analysis.segments += 1,
            Err(reason) => *analysis.skipped.entry(reason.to_owned()).or_default() += 1,
        }
    });
    analysis.connections = connections.finish(options.bin);
    Ok(analysis)
}
