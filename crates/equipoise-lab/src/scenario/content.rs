use std::path::PathBuf;

use equipoise::random::stream_seed;
use equipoise::units::{Rate, Size, Span};
use equipoise_path::source::Content;
use equipoise_path::video::{Synthetic, Video};

use crate::video::{self, TraceError};

/// The content that a controlled session or a TCP connection sends.
#[derive(Clone, Debug)]
pub struct ContentChoice {
    /// Its mean rate, in IP packets of the flow's size.
    pub rate: Rate,
    /// Its duration when it is sent in real time.
    pub length: Span,
    /// Its kind.
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
    /// A trace, from a position that depends on the seed; scaled to the mean rate.
    Trace(PathBuf),
    /// Statistical moments and a seed; sizes are fitted to the mean rate.
    Synthetic(Box<Synthetic>),
}

/// Frame interval of traces that do not state it: 25 frames/s, as in most traces.
const TERSE_INTERVAL: Span = Span::from_millis(40);
/// First random number stream of videos.
pub(super) const FIRST_VIDEO_STREAM: u64 = 4 << 32;

impl ContentChoice {
    /// Returns the whole content of flow number `index` in a run of `seed`, in packets of `packet` bytes.
    ///
    /// As everywhere in a scenario, a whole packet counts as payload: the same content has as many packets in a session
    /// as over TCP, whatever their headers.
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
    /// Returns the video of flow number `index` in a run of `seed`, with a mean rate and a length.
    pub(super) fn video(&self, (rate, length): (Rate, Span), (index, seed): (usize, u64)) -> Result<Video, TraceError> {
        let stream = FIRST_VIDEO_STREAM + index as u64;
        let video = match self {
            Self::Synthetic(like) => like.generate((seed, stream))?,
            Self::Trace(file) => {
                let whole = video::read(file, TERSE_INTERVAL)?;
                // Each seed uses another part of a trace, so that runs differ.
                let spare = ((whole.length() - length) / whole.interval()).unwrap_or(0).max(0).unsigned_abs() + 1;
                let begins = i64::try_from(stream_seed(seed, stream) % spare).unwrap_or(0);
                whole.part(whole.interval() * begins, length)
            }
        };
        Ok(video.scaled_to(rate))
    }
}
