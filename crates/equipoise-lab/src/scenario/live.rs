use equipoise::units::{Rate, Span};
use equipoise_path::video::{Encoder, VideoModel, VideoModelError};
use equipoise_session::rtp::{LiveMedia, Supply};
use thiserror::Error;

use super::Frames;
use super::content::FIRST_VIDEO_STREAM;
use crate::video::TraceError;

/// Live media of a session: frames that follow its rate.
#[derive(Clone, Debug)]
pub struct LiveChoice {
    /// The pictures.
    pub video: Option<VideoChoice>,
    /// The sound, whose packets go first.
    pub audio: Option<AudioChoice>,
    /// How much faster than the media's rate packets leave ([`LiveMedia::pacing`]).
    pub pacing: f64,
    /// While what waits would take longer to be sent, frames are skipped; `None` for never.
    pub skip_after: Option<Span>,
    /// A frame that is complete later than so long after its capture is late.
    pub deadline: Span,
}

/// A live video.
#[derive(Clone, Debug)]
pub enum VideoChoice {
    /// A model of an encoder (RFC 8593).
    Modelled(Box<VideoModel>),
    /// The frames of a video, quantised to follow the rate.
    Quantised {
        /// Where the frames come from.
        frames: Frames,
        /// Their mean rate before they are quantised, without headers.
        rate: Rate,
        /// How long the video is.
        length: Span,
    },
}

/// Sound at a constant bit rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AudioChoice {
    /// Its rate, without headers.
    pub rate: Rate,
    /// Time between two frames.
    pub interval: Span,
}

/// Why a live medium cannot be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LiveMediaError {
    /// A video's frames cannot be had.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The model of an encoder is none.
    #[error(transparent)]
    Model(#[from] VideoModelError),
}

impl LiveChoice {
    /// Beyond it a conversation suffers, whatever else is done (ITU-T G.114). A frame has this long at the most.
    pub const DEADLINE: Span = Span::from_millis(400);

    /// The media of flow number `index` in a run of `seed`.
    ///
    /// # Errors
    /// [`LiveMediaError`] where a trace cannot be read, or the choice was not made by [`Scenario::parse`](super::Scenario::parse)
    /// and is none.
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

    /// The most that it sends, without headers; `None` where it has no limit of its own.
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
