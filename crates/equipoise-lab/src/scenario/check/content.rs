//! Checks the content that a session or a TCP connection sends.

use equipoise::units::{Rate, Size, Span};
use equipoise_path::video::{FrameKind, Synthetic};
use toml::{Spanned, Value};

use super::Check;
use crate::scenario::error::{Problem, ScenarioError};
use crate::scenario::raw_source::RawSource;
use crate::scenario::{ContentChoice, ContentKind, Frames};

/// Maximum number of frames per second, and maximum number of frames in a group of pictures. Both limits are our
/// choice.
const MOST_FRAME_RATE: f64 = 1000.0;
const MOST_PATTERN: usize = 1000;
/// Maximum of `peak` and of `cv`. `peak` is the ratio of the largest frame size to the mean frame size, and `cv` is the
/// coefficient of variation of the frame sizes. Both numbers are far smaller for real films.
const MOST_PEAK: f64 = 1000.0;
/// The default frame rate and group of pictures, as in the traces of TU Berlin (Fitzek 2001).
const FRAME_RATE: f64 = 25.0;
const PATTERN: &str = "IPBBPBBPBBBB";

impl Check<'_> {
    /// Checks the content of a flow that always sends its whole content and never adapts it to the path.
    pub(super) fn content(&self, raw: &RawSource) -> Result<ContentChoice, ScenarioError> {
        match raw.kind.get_ref().as_str() {
            "constant" => {
                self.no_video(raw)?;
                let (rate, length) = self.rate_and_length(raw)?;
                Ok(ContentChoice { rate, length, kind: ContentKind::Constant })
            }
            "video" => {
                let (frames, rate, length) = self.video(raw)?;
                Ok(ContentChoice { rate, length, kind: ContentKind::Video(frames) })
            }
            _ => Err(self.wrong("kind", raw.kind.span(), Problem::UnknownContent)),
        }
    }

    /// Checks a video, and returns its frames, mean rate and length.
    pub(super) fn video(&self, raw: &RawSource) -> Result<(Frames, Rate, Span), ScenarioError> {
        let (rate, length) = self.rate_and_length(raw)?;
        Ok((self.frames(raw, rate, length)?, rate, length))
    }

    fn rate_and_length(&self, raw: &RawSource) -> Result<(Rate, Span), ScenarioError> {
        let written = self.rate_of(raw)?;
        let rate: Rate = self.quantity("rate", written)?;
        self.that(rate > Rate::ZERO, "rate", written, || Problem::NotPositive)?;
        let length = raw.length.as_ref().ok_or_else(|| self.wrong("kind", raw.kind.span(), Problem::NoLength))?;
        let length = self.positive("length", length)?;
        if let Some(step) = raw.steps.first() {
            return Err(self.not_of_this(raw, "steps", step.at.span(), BACKGROUND));
        }
        if let Some((key, value)) = raw.model.iter().next() {
            return Err(self.not_of_this(raw, key, value.span(), CONTENT));
        }
        Ok((rate, length))
    }

    /// Returns the rate of the source `raw`, whose kind needs a rate.
    pub(super) fn rate_of<'r>(&self, raw: &'r RawSource) -> Result<&'r Spanned<Value>, ScenarioError> {
        let missing = || Problem::NoRate { kind: raw.kind.get_ref().clone() };
        raw.rate.as_ref().ok_or_else(|| self.wrong("kind", raw.kind.span(), missing()))
    }

    fn frames(&self, raw: &RawSource, rate: Rate, length: Span) -> Result<Frames, ScenarioError> {
        match (&raw.video.trace, &raw.video.peak, &raw.video.cv) {
            (Some(trace), None, None) => Ok(Frames::Trace(trace.get_ref().into())),
            (None, Some(peak), Some(cv)) => {
                let frame_rate = raw.video.frame_rate.as_ref();
                let frame_rate =
                    frame_rate.map_or(Ok(FRAME_RATE), |rate| self.within("frame_rate", rate, MOST_FRAME_RATE))?;
                let mean = rate.as_bps_f64() / 8.0 / frame_rate;
                let peak = self.within("peak", peak, MOST_PEAK)?;
                let like = Synthetic {
                    interval: Span::from_secs_f64(1.0 / frame_rate).unwrap_or(Span::ZERO),
                    frames: (length.as_secs_f64() * frame_rate).round() as usize,
                    mean: Size::from_bytes(mean.round() as u64),
                    peak: Size::from_bytes((mean * peak).round() as u64),
                    cv: self.within("cv", cv, MOST_PEAK)?,
                    pattern: self.pattern(raw)?,
                };
                // Whether a video with these properties is possible does not depend on the seed, so checking one seed
                // is enough.
                like.generate((0, 0)).map_err(|problem| self.wrong("cv", cv.span(), problem.into()))?;
                Ok(Frames::Synthetic(Box::new(like)))
            }
            _ => Err(self.wrong("kind", raw.kind.span(), Problem::NoMoments)),
        }
    }

    fn pattern(&self, raw: &RawSource) -> Result<Vec<FrameKind>, ScenarioError> {
        let kind = |letter| match letter {
            'I' => Some(FrameKind::I),
            'P' => Some(FrameKind::P),
            'B' => Some(FrameKind::B),
            _ => None,
        };
        let text = raw.video.pattern.as_ref().map_or(PATTERN, |pattern| pattern.get_ref());
        let kinds: Option<Vec<_>> = text.chars().map(kind).collect();
        let kinds = kinds.filter(|kinds| (1..=MOST_PATTERN).contains(&kinds.len()));
        let at = raw.video.pattern.as_ref().map_or(raw.kind.span(), Spanned::span);
        kinds.ok_or_else(|| self.wrong("pattern", at, Problem::Pattern { most: MOST_PATTERN }))
    }

    pub(super) fn within(&self, key: &str, value: &Spanned<f64>, most: f64) -> Result<f64, ScenarioError> {
        let right = *value.get_ref() > 0.0 && *value.get_ref() <= most;
        self.that(right, key, value, || Problem::OutOfRange { most })?;
        Ok(*value.get_ref())
    }

    /// Refuses keys that only a video can have.
    pub(super) fn no_video(&self, raw: &RawSource) -> Result<(), ScenarioError> {
        match &raw.video.frame_rate {
            Some(rate) => Err(self.not_of_this(raw, "frame_rate", rate.span(), "a video source has")),
            None => self.only_frame_rate(raw),
        }
    }

    /// Refuses keys that a video made of frames can have and that a model of an encoder cannot have.
    pub(super) fn only_frame_rate(&self, raw: &RawSource) -> Result<(), ScenarioError> {
        let numbers = [("peak", &raw.video.peak), ("cv", &raw.video.cv)];
        let words = [("pattern", &raw.video.pattern), ("trace", &raw.video.trace), ("adapt", &raw.video.adapt)];
        let spans = numbers.iter().filter_map(|(key, value)| Some((*key, value.as_ref()?.span())));
        let mut spans = spans.chain(words.iter().filter_map(|(key, value)| Some((*key, value.as_ref()?.span()))));
        spans.next().map_or(Ok(()), |(key, span)| Err(self.not_of_this(raw, key, span, "a video source has")))
    }

    pub(super) fn not_of_this(
        &self,
        raw: &RawSource,
        key: &str,
        span: std::ops::Range<usize>,
        known: &'static str,
    ) -> ScenarioError {
        self.wrong(key, span, Problem::NotOfThisSource { kind: raw.kind.get_ref().clone(), known })
    }
}

const BACKGROUND: &str = "a background source has";
const CONTENT: &str = "it has `kind`, `rate` and `length`, for video also `trace` or `peak`, `cv`, `frame_rate` and `pattern`, and `adapt`";
