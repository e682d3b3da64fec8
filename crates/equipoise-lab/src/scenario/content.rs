use std::path::PathBuf;

use equipoise::random::stream_seed;
use equipoise::units::{Rate, Size, Span};
use equipoise_path::source::Content;
use equipoise_path::video::{Synthetic, Video};

use crate::video::{self, TraceError};

/// The content that is sent by a TCP connection or by a session that has a controller.
#[derive(Clone, Debug)]
pub struct ContentChoice {
    /// Mean rate of the content if it is sent in real time, in bit/s of IP packets.
    pub rate: Rate,
    /// Duration of the content if it is sent in real time.
    pub length: Span,
    /// Kind of the content: constant, or a video.
    pub kind: ContentKind,
}

/// The kind of content.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ContentKind {
    /// Packets at equal intervals.
    Constant,
    /// Frames of a video.
    Video(Frames),
}

/// The source of a video's frames.
#[derive(Clone, Debug)]
pub enum Frames {
    /// Frames from a trace. The seed selects the part of the trace. The frame sizes are scaled to the mean rate.
    Trace(PathBuf),
    /// Frames that are generated from statistical moments and a seed. Their sizes are scaled to the mean rate.
    Synthetic(Box<Synthetic>),
}

/// Frame interval of traces that do not specify the interval: 25 frames/s, as in most traces.
const TERSE_INTERVAL: Span = Span::from_millis(40);
/// Number of the first random stream for videos.
pub(super) const FIRST_VIDEO_STREAM: u64 = 4 << 32;

impl ContentChoice {
    /// Returns the whole content of flow number `index` in a run with the seed `seed`, in packets of size `packet`.
    ///
    /// All bytes of an IP packet count as content, including the headers. As a result, the same content has the same
    /// number of packets in a session and over TCP, although RTP and TCP have headers of different sizes.
    ///
    /// # Errors
    /// [`TraceError`] if a trace cannot be read.
    pub fn content(&self, packet: Size, index: usize, seed: u64) -> Result<Content, TraceError> {
        Ok(match &self.kind {
            ContentKind::Constant => Content::constant(self.rate, packet, self.length),
            ContentKind::Video(frames) => {
                Content::video(&frames.video((self.rate, self.length), (index, seed))?, packet)
            }
        })
    }
}

impl Frames {
    /// Returns the video of flow number `index` in a run with the seed `seed`. The video has the mean rate `rate` and
    /// the length `length`.
    pub(super) fn video(&self, (rate, length): (Rate, Span), (index, seed): (usize, u64)) -> Result<Video, TraceError> {
        let stream = FIRST_VIDEO_STREAM + index as u64;
        let video = match self {
            Self::Synthetic(like) => like.generate((seed, stream))?,
            Self::Trace(file) => {
                let whole = video::read(file, TERSE_INTERVAL)?;
                // The seed determines which part of the trace is used, so that runs with different seeds differ.
                let spare = ((whole.length() - length) / whole.interval()).unwrap_or(0).max(0).unsigned_abs() + 1;
                let begins = i64::try_from(stream_seed(seed, stream) % spare).unwrap_or(0);
                whole.part(whole.interval() * begins, length)
            }
        };
        Ok(video.scaled_to(rate))
    }
}
