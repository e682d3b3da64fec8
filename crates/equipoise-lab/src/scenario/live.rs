use equipoise::units::{Rate, Span};
use equipoise_path::video::{Encoder, VideoModel, VideoModelError};
use equipoise_session::rtp::{LiveMedia, Supply};
use thiserror::Error;

use super::Frames;
use super::content::FIRST_VIDEO_STREAM;
use crate::video::TraceError;

/// Live media of a session: video frames whose sizes follow the session's rate, and audio frames.
#[derive(Clone, Debug)]
pub struct LiveChoice {
    /// The video; `None` if the session sends no video.
    pub video: Option<VideoChoice>,
    /// The audio; `None` if the session sends no audio. Audio packets have priority over video packets.
    pub audio: Option<AudioChoice>,
    /// Ratio of the pacing rate to the session's rate ([`LiveMedia::pacing`]).
    pub pacing: f64,
    /// Video frames are skipped while the queued data would take longer than this time to send. With `None`, no frame
    /// is skipped for this reason.
    pub skip_after: Option<Span>,
    /// A frame is late if it is complete at the receiver later than this time after its capture.
    pub deadline: Span,
}

/// A live video.
#[derive(Clone, Debug)]
pub enum VideoChoice {
    /// A model of an encoder (RFC 8593).
    Modelled(Box<VideoModel>),
    /// The frames of a video. They are encoded again with coarser quantisation, to follow the session's rate.
    Quantised {
        /// The source of the frames.
        frames: Frames,
        /// Mean rate of the frames before they are encoded again. The rate does not include packet headers.
        rate: Rate,
        /// Duration of the video.
        length: Span,
    },
}

/// Audio at a constant bit rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AudioChoice {
    /// Bit rate of the audio, without packet headers.
    pub rate: Rate,
    /// Time between two audio frames.
    pub interval: Span,
}

/// Why the live media of a session cannot be produced.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LiveMediaError {
    /// The frames of a video cannot be read or generated.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The parameters of an encoder model are invalid.
    #[error(transparent)]
    Model(#[from] VideoModelError),
}

impl LiveChoice {
    /// Default of [`deadline`](Self::deadline): the one-way delay that should not be exceeded in general network
    /// planning (ITU-T G.114).
    pub const DEADLINE: Span = Span::from_millis(400);

    /// Returns the live media of flow number `index` in a run with the seed `seed`.
    ///
    /// # Errors
    /// [`LiveMediaError`] if a trace cannot be read, or if the choice is invalid because it was not made by
    /// [`Scenario::parse`](super::Scenario::parse).
    pub fn supply(&self, index: usize, seed: u64) -> Result<Supply, LiveMediaError> {
        let stream = FIRST_VIDEO_STREAM + index as u64;
        let video = match &self.video {
            None => None,
            Some(VideoChoice::Modelled(model)) => Some(Encoder::modelled(model.as_ref().clone(), (seed, stream))?),
            Some(VideoChoice::Quantised { frames, rate, length }) => {
                Some(Encoder::quantising(frames.video((*rate, *length), (index, seed))?))
            }
        };
        let audio = self.audio.map(|audio| Encoder::constant(audio.rate, audio.interval));
        let media = LiveMedia { video, audio, pacing: self.pacing, skip_after: self.skip_after };
        Ok(Supply::Live(Box::new(media)))
    }

    /// Returns the maximum rate of these media, without headers; `None` if the media have no limit of their own.
    pub(crate) fn most(&self) -> Option<Rate> {
        let video = match &self.video {
            None => Rate::ZERO,
            Some(VideoChoice::Modelled(model)) => model.max_rate,
            Some(VideoChoice::Quantised { .. }) => return None,
        };
        let audio = self.audio.map_or(Rate::ZERO, |audio| audio.rate);
        Some(Rate::from_bps(video.as_bps().saturating_add(audio.as_bps())))
    }
}
