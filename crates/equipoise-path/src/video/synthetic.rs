//! Video generated from statistical moments and a seed, for use without the published traces.

use alloc::vec::Vec;

use rand_distr::{Distribution, StandardNormal};
use thiserror::Error;

use super::{Frame, FrameKind, Video};
use equipoise::measure::Moments;
use equipoise::random::generator;
use equipoise::units::{Size, Span};

/// The properties of a synthetic video.
#[derive(Clone, Debug, PartialEq)]
pub struct Synthetic {
    /// Time between two frames; above zero.
    pub interval: Span,
    /// Number of frames; at least two.
    pub frames: usize,
    /// Mean size of a frame.
    pub mean: Size,
    /// Size of the largest frame.
    pub peak: Size,
    /// Standard deviation of the sizes relative to their mean.
    pub cv: f64,
    /// Frame kinds of a group of pictures in coding order, which repeats.
    pub pattern: Vec<FrameKind>,
}

/// Why a synthetic video cannot be generated.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SyntheticError {
    /// The frame interval is not positive, there are too few or too many frames, or there is no pattern.
    #[error("a video needs two frames, {most} at most, a time between them and a pattern of frames such as IPBBPBB")]
    Shape {
        /// The maximum number of frames.
        most: usize,
    },
    /// No sizes between zero and the peak have the given mean and variation.
    #[error("no frames of {mean} in the mean and at most {peak} vary by {cv}; they can by {least:.3} to {most:.3}")]
    Moments {
        /// The mean that was given.
        mean: Size,
        /// The peak that was given.
        peak: Size,
        /// The coefficient of variation that was given.
        cv: f64,
        /// The minimum, with one frame at the peak.
        least: f64,
        /// The maximum that can be fitted: at more, nearly all frames would be empty or at the peak.
        most: f64,
    },
}

/// Relative sizes of I, P and B frames before they are fitted: about the means of three films (our choice).
const KINDS: [f64; 3] = [2.4, 1.4, 1.0];
/// Standard deviations of the logarithm of a size: of a group of pictures from the mean, and of a frame from its group.
/// Our choice: films vary more between scenes than within one.
const GROUP_SPREAD: f64 = 0.4;
const FRAME_SPREAD: f64 = 0.2;
/// Correlation between the deviations of successive groups: scenes last about ten groups, five seconds (our choice).
const SCENE: f64 = 0.9;
/// Share of the maximum variation that can be fitted. At the maximum, all frames are empty or at the peak.
const REACHABLE: f64 = 0.8;
const MOST_FRAMES: usize = 1 << 22;
/// Number of bisections by which numbers are fitted to full precision.
const HALVINGS: usize = 60;
/// The largest power to which sizes are raised.
const STEEPEST: f64 = 64.0;

impl Synthetic {
    /// Generates the video of a seed, which is the same on every machine.
    ///
    /// The kind of a frame determines its level. Log-normal noise of groups of pictures and of frames is added; the
    /// noise of the groups is correlated, like scenes. The levels are then raised to a power and scaled, so that the
    /// sizes have the given mean and coefficient of variation. The largest frame is at the peak, and larger sizes are
    /// clamped.
    ///
    /// # Errors
    /// [`SyntheticError`] if no such video can be generated.
    pub fn generate(&self, (seed, stream): (u64, u64)) -> Result<Video, SyntheticError> {
        if self.interval <= Span::ZERO || !(2..=MOST_FRAMES).contains(&self.frames) || self.pattern.is_empty() {
            return Err(SyntheticError::Shape { most: MOST_FRAMES });
        }
        let (mean, peak) = (self.mean.as_bytes() as f64, self.peak.as_bytes() as f64);
        let above = if mean > 0.0 { (peak / mean - 1.0).max(0.0) } else { 0.0 };
        let (least, most) = (above / libm::sqrt(self.frames as f64), REACHABLE * libm::sqrt(above));
        if !(self.cv > least && self.cv <= most) {
            let (mean, peak, cv) = (self.mean, self.peak, self.cv);
            return Err(SyntheticError::Moments { mean, peak, cv, least, most });
        }
        let levels = self.levels(seed, stream);
        let (mut low, mut high) = (0.0, STEEPEST);
        for _ in 0..HALVINGS {
            let power = f64::midpoint(low, high);
            let spread = variation(&fitted(&levels, power, mean, peak));
            if spread < self.cv { low = power } else { high = power }
        }
        let sizes = fitted(&levels, low, mean, peak);
        let kinds = self.pattern.iter().cycle();
        let frame = |(size, kind): (&f64, &FrameKind)| Frame {
            kind: Some(*kind),
            size: Size::from_bytes(libm::round(*size) as u64),
        };
        Ok(Video::new(self.interval, sizes.iter().zip(kinds).map(frame).collect()))
    }

    /// Logarithms of the frames' sizes, in arbitrary scale.
    fn levels(&self, seed: u64, stream: u64) -> Vec<f64> {
        let mut random = generator(seed, stream.wrapping_mul(2));
        let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
        let mut group = normal();
        let mut levels = Vec::with_capacity(self.frames);
        for number in 0..self.frames {
            let place = number % self.pattern.len();
            if place == 0 && number > 0 {
                group = SCENE * group + libm::sqrt(1.0 - SCENE * SCENE) * normal();
            }
            let kind = match self.pattern.get(place) {
                Some(FrameKind::I) => KINDS[0],
                Some(FrameKind::P) => KINDS[1],
                Some(FrameKind::B) | None => KINDS[2],
            };
            levels.push(libm::log(kind) + GROUP_SPREAD * group + FRAME_SPREAD * normal());
        }
        levels
    }
}

/// Sizes from levels raised to a power and scaled to `mean`. The largest level has the size `peak`, and larger sizes
/// are clamped.
fn fitted(levels: &[f64], power: f64, mean: f64, peak: f64) -> Vec<f64> {
    let top = levels.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let bottom = levels.iter().copied().fold(top, f64::min);
    // The largest shape is 1, so no power overflows.
    let shapes: Vec<f64> = levels.iter().map(|level| libm::exp(power * (level - top))).collect();
    let largest = shapes.iter().position(|shape| *shape >= 1.0);
    let at = |scale: f64| {
        let size = move |(place, shape): (usize, &f64)| {
            if Some(place) == largest { peak } else { (shape * libm::exp(scale)).min(peak) }
        };
        shapes.iter().enumerate().map(size)
    };
    // Search from a scale at which all sizes but the largest are zero, to one at which the smallest exceeds the mean.
    let (mut low, mut high) = (libm::log(mean) - STEEPEST, libm::log(mean) + power * (top - bottom) + 1.0);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        let found: f64 = at(middle).sum::<f64>() / levels.len() as f64;
        if found < mean { low = middle } else { high = middle }
    }
    at(low).collect()
}

/// Standard deviation relative to the mean.
fn variation(sizes: &[f64]) -> f64 {
    let moments: Moments = sizes.iter().copied().collect();
    moments.standard_deviation().zip(moments.mean()).map_or(0.0, |(deviation, mean)| deviation / mean)
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    /// Star Wars IV in high quality, as published: mean 1376 bytes, peak 9370, variation 0.66, 25 frames/s, groups of
    /// 12.
    fn star_wars(frames: usize) -> Synthetic {
        use FrameKind::{B, I, P};
        Synthetic {
            interval: Span::from_millis(40),
            frames,
            mean: Size::from_bytes(1376),
            peak: Size::from_bytes(9370),
            cv: 0.66,
            pattern: [I, P, B, B, P, B, B, P, B, B, B, B].into(),
        }
    }

    #[test]
    fn it_meets_its_moments_and_its_pattern() {
        let (like, seconds) = (star_wars(9000), 360);
        let video = like.generate((1, 7)).expect("a video");
        let moments = video.moments();
        let (mean, deviation) = moments.mean().zip(moments.standard_deviation()).expect("frames");
        assert!((mean / 1376.0 - 1.0).abs() < 0.005, "{mean}");
        assert!((deviation / mean / 0.66 - 1.0).abs() < 0.02, "{}", deviation / mean);
        assert_eq!((video.peak(), video.length()), (like.peak, Span::from_secs(seconds)));
        let mean_of = |kind| {
            let sizes = video.frames().iter().filter(|frame| frame.kind == Some(kind));
            sizes.map(|frame| frame.size.as_bytes() as f64).collect::<Moments>().mean().expect("frames")
        };
        let [i, p, b] = [FrameKind::I, FrameKind::P, FrameKind::B].map(mean_of);
        assert!(i > 1.3 * p && p > 1.1 * b, "{i} {p} {b}");
        assert!(video.frames().chunks(12).all(|group| group[0].kind == Some(FrameKind::I)));
    }

    #[test]
    fn seeds_and_streams_give_the_same_or_unrelated_videos() {
        let like = star_wars(100);
        assert_eq!(like.generate((1, 1)), like.generate((1, 1)));
        assert_ne!(like.generate((1, 1)), like.generate((2, 1)));
        assert_ne!(like.generate((1, 1)), like.generate((1, 2)));
    }

    #[test]
    fn what_no_video_can_be_is_refused() {
        let wild = Synthetic { cv: 3.0, ..star_wars(100) }.generate((1, 1)).expect_err("beyond the peak");
        assert!(wild.to_string().contains("to 1.9"), "{wild}");
        for cv in [0.0, -1.0, f64::NAN] {
            assert!(Synthetic { cv, ..star_wars(100) }.generate((1, 1)).is_err());
        }
        assert!(Synthetic { pattern: Vec::new(), ..star_wars(100) }.generate((1, 1)).is_err());
        assert!(Synthetic { mean: Size::ZERO, ..star_wars(100) }.generate((1, 1)).is_err());
        assert!(Synthetic { frames: 1, ..star_wars(1) }.generate((1, 1)).is_err());
    }

    proptest! {
        // Generating a video takes a tenth of a second.
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// For accepted parameters, the mean is met within 2 %, and the variation within 10 %.
        #[test]
        fn moments_are_met_within_their_range(seed: u64, cv in 0.35f64..0.9, peak in 5u64..12, mean in 200u64..20_000) {
            let like = Synthetic {
                mean: Size::from_bytes(mean), peak: Size::from_bytes(mean * peak), cv, ..star_wars(1500)
            };
            let moments = like.generate((seed, 1)).expect("a video").moments();
            let (found, deviation) = moments.mean().zip(moments.standard_deviation()).expect("frames");
            prop_assert!((found / mean as f64 - 1.0).abs() < 0.02, "{found} for {mean}");
            prop_assert!((deviation / found / cv - 1.0).abs() < 0.1, "{} for {cv}", deviation / found);
        }
    }
}
