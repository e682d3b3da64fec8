//! Models of live encoders: only the sizes and capture times of frames are computed.

mod ladder;
mod model;
mod quantiser;

pub use ladder::{Ladder, LadderError, LadderErrorKind};
pub use model::{Transient, VideoModel, VideoModelError};

use equipoise::units::{Rate, Size, Span};

use super::Video;
use model::ModelledVideo;
use quantiser::Quantiser;

/// A live encoder: a sequence of frames whose sizes follow a requested rate as far as the encoder can.
///
/// When a frame is due, it is either encoded for the current rate ([`encode`](Self::encode)) or skipped
/// ([`skip`](Self::skip)). A frame is never encoded in advance, and never encoded a second time.
#[derive(Clone, Debug)]
pub struct Encoder(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Quantiser(Quantiser),
    Modelled(ModelledVideo),
    Constant(Constant),
}

/// Frames of the same size at equal intervals, like audio at a constant bit rate.
#[derive(Clone, Debug)]
struct Constant {
    frame: Size,
    interval: Span,
    next: i64,
}

impl Encoder {
    /// An encoder that quantises the frames of a video so that its output follows the requested rate. The output is at
    /// most a ninth below the requested rate, unless the video itself has a lower rate or a new scene begins. After the
    /// last frame of the video, the encoder has no more frames.
    pub fn quantising(video: Video) -> Self {
        Self(Kind::Quantiser(Quantiser::new(video)))
    }

    /// An encoder that follows a model (RFC 8593). The number of frames is unlimited. Its random numbers follow from
    /// `seed` and `stream`: encoders with the same seed and different values of `stream` have independent random
    /// numbers.
    ///
    /// # Errors
    /// [`VideoModelError`] for invalid parameters.
    pub fn modelled(model: VideoModel, (seed, stream): (u64, u64)) -> Result<Self, VideoModelError> {
        Ok(Self(Kind::Modelled(ModelledVideo::new(model, (seed, stream))?)))
    }

    /// An encoder with a constant bit rate, which ignores the requested rate. The first frame is due at once, then one
    /// frame per `interval`, without end. The frame size is rounded to whole bytes, at least one byte.
    pub fn constant(rate: Rate, interval: Span) -> Self {
        let bytes = rate.as_bps_f64() / 8.0 * interval.as_secs_f64();
        let frame = Size::from_bytes((libm::round(bytes) as u64).max(1));
        Self(Kind::Constant(Constant { frame, interval: interval.max(Span::from_micros(1)), next: 0 }))
    }

    /// When the next frame is captured, as time since the start; `None` after the last frame.
    pub fn next_frame(&self) -> Option<Span> {
        match &self.0 {
            Kind::Quantiser(quantiser) => quantiser.next_frame(),
            Kind::Modelled(model) => Some(model.next_frame()),
            Kind::Constant(constant) => Some(constant.interval * constant.next),
        }
    }

    /// Encodes the next frame for the rate `target`. Returns the size of the frame without headers; `None` after the
    /// last frame.
    pub fn encode(&mut self, target: Rate) -> Option<Size> {
        match &mut self.0 {
            Kind::Quantiser(quantiser) => quantiser.encode(target),
            Kind::Modelled(model) => Some(model.encode(target)),
            Kind::Constant(constant) => {
                constant.next += 1;
                Some(constant.frame)
            }
        }
    }

    /// Skips the next frame without encoding it.
    pub fn skip(&mut self) {
        match &mut self.0 {
            Kind::Quantiser(quantiser) => quantiser.skip(),
            Kind::Modelled(model) => model.skip(),
            Kind::Constant(constant) => constant.next += 1,
        }
    }

    /// Mean time between two frames; `None` for a video with fewer than two frames.
    pub fn frame_interval(&self) -> Option<Span> {
        match &self.0 {
            Kind::Quantiser(quantiser) => quantiser.frame_interval(),
            Kind::Modelled(model) => Some(model.frame_interval()),
            Kind::Constant(constant) => Some(constant.interval),
        }
    }

    /// The rate of an encoder with a constant bit rate, without headers; `None` for other encoders.
    pub fn constant_rate(&self) -> Option<Rate> {
        match &self.0 {
            Kind::Quantiser(_) | Kind::Modelled(_) => None,
            Kind::Constant(constant) => constant.frame.over(constant.interval),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Audio with 20 kbit/s, as in the tests of RFC 8867, and one frame every 20 ms.
    #[test]
    fn audio_has_frames_of_one_size_at_even_times() {
        let mut audio = Encoder::constant(Rate::from_bps(20_000), Span::from_millis(20));
        assert_eq!(audio.constant_rate(), Some(Rate::from_bps(20_000)));
        assert_eq!(audio.next_frame(), Some(Span::ZERO));
        assert_eq!(audio.encode(Rate::from_bps(1)), Some(Size::from_bytes(50)));
        audio.skip();
        assert_eq!(audio.next_frame(), Some(Span::from_millis(40)));
        assert_eq!(audio.encode(Rate::from_bps(1_000_000_000)), Some(Size::from_bytes(50)));
    }

    #[test]
    fn no_frame_is_empty_and_time_goes_on() {
        let mut audio = Encoder::constant(Rate::ZERO, Span::ZERO);
        assert_eq!(audio.encode(Rate::ZERO), Some(Size::from_bytes(1)));
        assert!(audio.next_frame() > Some(Span::ZERO));
    }
}
