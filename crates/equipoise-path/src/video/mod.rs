//! Video as a source of traffic: frames and their sizes.
//!
//! A [`Video`] is read from a published trace of frame sizes or generated from statistical moments and a seed. In both
//! cases it is a list of frames in coding order, one per frame interval. There are two ways to send it:
//! [`Content`](crate::source::Content) sends all of it, however long that takes; an [`Encoder`] follows a rate, by
//! quantising its frames or by a model of encoders (RFC 8593). The simulator and the emulator use the same code. No
//! pictures are encoded; only sizes matter.

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
    /// Independently of other frames.
    I,
    /// Predicted from an earlier frame.
    P,
    /// Predicted from frames on both sides.
    B,
}

/// A frame of a video.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// How it is coded; `None` if the trace does not include it.
    pub kind: Option<FrameKind>,
    /// Its size, without network headers.
    pub size: Size,
}

/// Frames in coding order, the order in which an encoder outputs them, one per frame interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Video {
    interval: Span,
    frames: Arc<[Frame]>,
}

impl Video {
    /// Frames that are `interval` apart.
    fn new(interval: Span, frames: Vec<Frame>) -> Self {
        Self { interval, frames: frames.into() }
    }

    /// Time between two frames.
    pub const fn interval(&self) -> Span {
        self.interval
    }

    /// The frames.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Playing time.
    pub fn length(&self) -> Span {
        self.interval * i64::try_from(self.frames.len()).unwrap_or(i64::MAX)
    }

    /// Mean rate of the frames, without headers; zero for an empty video.
    pub fn mean_rate(&self) -> Rate {
        let bits: Size = self.frames.iter().map(|frame| frame.size).sum();
        bits.over(self.length()).unwrap_or(Rate::ZERO)
    }

    /// Mean and standard deviation of the frame sizes, in bytes.
    pub fn moments(&self) -> Moments {
        self.frames.iter().map(|frame| frame.size.as_bytes() as f64).collect()
    }

    /// The largest frame; zero for an empty video.
    pub fn peak(&self) -> Size {
        self.frames.iter().map(|frame| frame.size).max().unwrap_or(Size::ZERO)
    }

    /// The part that plays from `from` on for `length`; shorter if the video ends.
    #[must_use]
    pub fn part(&self, from: Span, length: Span) -> Self {
        let frame = |at: Span| (at / self.interval).and_then(|at| usize::try_from(at).ok()).unwrap_or(0);
        let start = frame(from).min(self.frames.len());
        let end = frame(from + length).clamp(start, self.frames.len());
        Self { interval: self.interval, frames: self.frames.get(start..end).unwrap_or_default().into() }
    }

    /// The video with all frame sizes scaled by one factor to a mean rate of `mean`; an empty video stays unchanged.
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
