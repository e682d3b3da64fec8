use std::path::PathBuf;

use equipoise::random::stream_seed;
use equipoise::units::{Rate, Size, Span};
use equipoise_path::source::Content;
use equipoise_path::video::{Encoder, Synthetic, Video};
use equipoise_session::rtp::Supply;

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
    Video {
        /// Where the frames come from.
        frames: Frames,
        /// Whether frames are quantised to follow the rate; otherwise all is sent, however long that takes.
        quantised: bool,
    },
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
const FIRST_VIDEO_STREAM: u64 = 4 << 32;

impl ContentChoice {
    /// The content of flow number `index` in a run of `seed`, in packets of `packet` bytes.
    ///
    /// All of a packet counts as payload here, as everywhere in a scenario: the same content is as many packets in a
    /// session as over TCP, whatever their headers.
    ///
    /// # Errors
    /// [`TraceError`] where a trace cannot be read.
    pub fn supply(&self, packet: Size, index: usize, seed: u64) -> Result<Supply, TraceError> {
        let video = match &self.kind {
            ContentKind::Constant => {
                return Ok(Supply::Content(Content::constant(self.rate, packet, self.length)));
            }
            ContentKind::Video { frames: Frames::Synthetic(like), .. } => {
                like.generate((seed, FIRST_VIDEO_STREAM + index as u64)).map_err(TraceError::Synthetic)?
            }
            ContentKind::Video { frames: Frames::Trace(file), .. } => {
                let whole = video::read(file, TERSE_INTERVAL)?;
                whole.part(self.begins(&whole, index, seed), self.length)
            }
        };
        let video = video.scaled_to(self.rate);
        Ok(match self.kind {
            ContentKind::Video { quantised: true, .. } => Supply::Encoder(Encoder::new(video)),
            _ => Supply::Content(Content::video(&video, packet)),
        })
    }

    /// Another part of a trace for each seed, so that runs differ.
    fn begins(&self, whole: &Video, index: usize, seed: u64) -> Span {
        let spare = ((whole.length() - self.length) / whole.interval()).unwrap_or(0).max(0).unsigned_abs() + 1;
        let frame = stream_seed(seed, FIRST_VIDEO_STREAM + index as u64) % spare;
        whole.interval() * i64::try_from(frame).unwrap_or(0)
    }
}
