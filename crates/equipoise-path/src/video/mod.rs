//! Video as a source of traffic: video frames and their sizes.
//!
//! A [`Video`] is read from a published trace of frame sizes, or generated from statistical moments and a seed. In both
//! cases it is a list of frames in coding order, one frame per frame interval. A video can be sent in two ways.
//! [`Content`](crate::source::Content) sends all frames, even if this takes longer than the playing time of the video.
//! An [`Encoder`] quantises the frames so that they follow a rate. An encoder can also generate frames without a video,
//! with the model of RFC 8593. The simulator and the emulator use the same code. No pictures are encoded; only sizes
//! matter.

mod encoder;
mod synthetic;
mod trace;

use alloc::sync::Arc;
use alloc::vec::Vec;

pub use encoder::{Encoder, Ladder, LadderError, LadderErrorKind, Transient, VideoModel, VideoModelError};
pub use synthetic::{Synthetic, SyntheticError};
pub use trace::{VideoError, VideoErrorKind};

use equipoise::measure::Moments;
use equipoise::units::{Rate, Size, Span};

/// How a frame is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Coded independently of other frames.
    I,
    /// Predicted from an earlier frame.
    P,
    /// Predicted from both earlier and later frames in display order.
    B,
}

/// A frame of a video.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// How the frame is coded; `None` if the trace does not contain this information.
    pub kind: Option<FrameKind>,
    /// The size of the frame, without network headers.
    pub size: Size,
}

/// Frames in coding order, the order in which an encoder outputs them, one per frame interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Video {
    interval: Span,
    frames: Arc<[Frame]>,
}

impl Video {
    /// A video with one frame per `interval`.
    fn new(interval: Span, frames: Vec<Frame>) -> Self {
        Self { interval, frames: frames.into() }
    }

    /// Time between two successive frames.
    pub const fn interval(&self) -> Span {
        self.interval
    }

    /// The frames in coding order.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Playing time of the video.
    pub fn length(&self) -> Span {
        self.interval * i64::try_from(self.frames.len()).unwrap_or(i64::MAX)
    }

    /// Mean rate of the video, without headers; zero for an empty video.
    pub fn mean_rate(&self) -> Rate {
        let bits: Size = self.frames.iter().map(|frame| frame.size).sum();
        bits.over(self.length()).unwrap_or(Rate::ZERO)
    }

    /// Mean and standard deviation of the frame sizes, in bytes.
    pub fn moments(&self) -> Moments {
        self.frames.iter().map(|frame| frame.size.as_bytes() as f64).collect()
    }

    /// The size of the largest frame; zero for an empty video.
    pub fn peak(&self) -> Size {
        self.frames.iter().map(|frame| frame.size).max().unwrap_or(Size::ZERO)
    }

    /// The section of the video that starts at `from` and lasts for `length`; shorter if the video ends earlier.
    #[must_use]
    pub fn part(&self, from: Span, length: Span) -> Self {
        let frame = |at: Span| (at / self.interval).and_then(|at| usize::try_from(at).ok()).unwrap_or(0);
        let start = frame(from).min(self.frames.len());
        let end = frame(from + length).clamp(start, self.frames.len());
        Self { interval: self.interval, frames: self.frames.get(start..end).unwrap_or_default().into() }
    }

    /// The video with all frame sizes multiplied by one factor, so that the mean rate is `mean`; an empty video is
    /// unchanged.
    #[must_use]
    pub fn scaled_to(&self, mean: Rate) -> Self {
        let bits: Size = self.frames.iter().map(|frame| frame.size).sum();
        if bits == Size::ZERO {
            return self.clone();
        }
        let factor = mean.as_bps_f64() * self.length().as_secs_f64() / bits.as_bits() as f64;
        let scaled = |size: Size| Size::from_bytes(libm::round(size.as_bytes() as f64 * factor) as u64);
        let frames = self.frames.iter().map(|frame| Frame { size: scaled(frame.size), ..*frame });
        Self { interval: self.interval, frames: frames.collect() }
    }
}
