use std::path::PathBuf;

use equipoise::random::stream_seed;
use equipoise::units::{Rate, Size, Span};
use equipoise_path::source::Content;
use equipoise_path::video::{Synthetic, Video};

use crate::video::{self, TraceError};

/// What a controlled session or a TCP connection has to send.
#[derive(Clone, Debug)]
pub struct ContentChoice {
    /// Its mean rate, in IP packets of the flow's size.
    pub rate: Rate,
    /// How long it is when it is sent as it comes to be.
    pub length: Span,
    /// What it is.
    pub kind: ContentKind,
}

/// What the content is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ContentKind {
    /// A packet every so often.
    Constant,
    /// Frames of a video.
    Video(Frames),
}

/// Where a video's frames come from.
#[derive(Clone, Debug)]
pub enum Frames {
    /// A trace, from some place on; scaled to the mean rate.
    Trace(PathBuf),
    /// Moments and a seed; sizes are fitted to the mean rate.
    Synthetic(Box<Synthetic>),
}

/// Frame interval of traces that do not state it: 25 frames/s, as most do.
const TERSE_INTERVAL: Span = Span::from_millis(40);
/// Streams of random numbers from here on are those of videos.
pub(super) const FIRST_VIDEO_STREAM: u64 = 4 << 32;

impl ContentChoice {
    /// The content of flow number `index` in a run of `seed`, in packets of `packet` bytes: all of it, however long that takes.
    ///
    /// All of a packet counts as payload here, as everywhere in a scenario: the same content is as many packets in a
    /// session as over TCP, whatever their headers.
    ///
    /// # Errors
    /// [`TraceError`] where a trace cannot be read.
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
    /// The video of flow number `index` in a run of `seed`, of a mean rate and a length.
    pub(super) fn video(&self, (rate, length): (Rate, Span), (index, seed): (usize, u64)) -> Result<Video, TraceError> {
        let stream = FIRST_VIDEO_STREAM + index as u64;
        let video = match self {
            Self::Synthetic(like) => like.generate((seed, stream))?,
            Self::Trace(file) => {
                let whole = video::read(file, TERSE_INTERVAL)?;
                // Another part of a trace for each seed, so that runs differ.
                let spare = ((whole.length() - length) / whole.interval()).unwrap_or(0).max(0).unsigned_abs() + 1;
                let begins = i64::try_from(stream_seed(seed, stream) % spare).unwrap_or(0);
                whole.part(whole.interval() * begins, length)
            }
        };
        Ok(video.scaled_to(rate))
    }
}
