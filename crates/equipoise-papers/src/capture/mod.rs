//! Captures: round-trip times of TCP by connection, and how they are distributed; and what can be said of streams of RTP.
//!
//! Source: Waki 2013, Sec. 2. A capture taken beside the sender shows when a segment left and when its acknowledgement
//! came. What would spoil that is left out and counted: retransmitted segments (Karn 1987) and acknowledgements that the
//! delayed-ACK timer sent. The file is read once, from its beginning to its end; memory grows with the connections and
//! with the samples, up to a bound for all of them.

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

/// How to read a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// Which acknowledgements count.
    pub rule: AckRule,
    /// Width of the histograms' bars; `None` for one that follows from the samples (Freedman 1981).
    pub bin: Option<Span>,
}

/// Reads a capture: pcap or pcapng, compressed by gzip or not, to its end or as far as it is whole.
///
/// # Errors
/// [`CaptureError`] where nothing can be had; a capture that is cut off or damaged further on gives what comes before.
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
