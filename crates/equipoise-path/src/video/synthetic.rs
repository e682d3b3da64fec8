//! Generates videos from statistical moments and a seed, for users without the published traces.

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
    /// Mean size of the frames.
    pub mean: Size,
    /// Size of the largest frame.
    pub peak: Size,
    /// Coefficient of variation: the standard deviation of the frame sizes, divided by the mean size.
    pub cv: f64,
    /// The kinds of the frames in a group of pictures, in coding order. The video repeats this pattern.
    pub pattern: Vec<FrameKind>,
}

/// Why a synthetic video cannot be generated.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SyntheticError {
    /// The frame interval is not positive, there are too few or too many frames, or there is no pattern.
    #[error("a video needs two frames, {most} at most, a time between them and a pattern of frames such as IPBBPBB")]
    Shape {
        /// The maximum allowed number of frames.
        most: usize,
    },
    /// No video with the given mean, peak and coefficient of variation can be generated.
    #[error("no frames of {mean} in the mean and at most {peak} vary by {cv}; they can by {least:.3} to {most:.3}")]
    Moments {
        /// The given mean size.
        mean: Size,
        /// The given peak size.
        peak: Size,
        /// The given coefficient of variation.
        cv: f64,
        /// The minimum coefficient of variation: one frame has the peak size, and all other frames have the same size.
        least: f64,
        /// The maximum coefficient of variation that can be generated. Above it, nearly all frames would be empty or
        /// have the peak size.
        most: f64,
    },
}

/// Relative sizes of I, P and B frames, before the sizes are fitted to the given mean and coefficient of variation. Our
/// choice: the values are close to the means of three films.
const KINDS: [f64; 3] = [2.4, 1.4, 1.0];
/// Standard deviations of the logarithm of a frame size: `GROUP_SPREAD` between groups of pictures, and `FRAME_SPREAD`
/// between the frames of a group. Our choice: in films, sizes vary more between scenes than within a scene.
const GROUP_SPREAD: f64 = 0.4;
const FRAME_SPREAD: f64 = 0.2;
/// Correlation between the noise of successive groups of pictures. Our choice: a scene lasts for about
/// 1 / (1 - 0.9) = 10 groups, 5 s.
const SCENE: f64 = 0.9;
/// The largest accepted coefficient of variation, as a share of its theoretical maximum. At that maximum, every frame
/// would be empty or have the peak size.
const REACHABLE: f64 = 0.8;
const MOST_FRAMES: usize = 1 << 22;
/// Number of bisection steps, enough to find numbers to full precision.
const HALVINGS: usize = 60;
/// The largest power to which frame sizes are raised.
const STEEPEST: f64 = 64.0;

impl Synthetic {
    /// Generates a video from a seed and the number of a stream of random numbers. The result is the same on every
    /// machine.
    ///
    /// Each frame starts with a size that depends on its kind. The size is multiplied by log-normal noise per group of
    /// pictures and per frame. The noise of successive groups is correlated, because successive groups often belong to
    /// one scene. The sizes are then raised to a power and scaled, so that they have the given mean and coefficient of
    /// variation. The largest frame is set to the peak size. All other frames are limited to the peak size.
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

    /// The logarithms of the frames' sizes before the moments are fitted; only their differences matter.
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

/// Computes frame sizes from their logarithms `levels`: the sizes are raised to the power `power` and scaled to the
/// mean `mean`. The largest frame gets the size `peak`, and sizes above `peak` are reduced to `peak`.
fn fitted(levels: &[f64], power: f64, mean: f64, peak: f64) -> Vec<f64> {
    let top = levels.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let bottom = levels.iter().copied().fold(top, f64::min);
    // `level - top` is at most 0 and `power` is not negative, so the exponential is at most 1 and cannot overflow.
    let shapes: Vec<f64> = levels.iter().map(|level| libm::exp(power * (level - top))).collect();
    let largest = shapes.iter().position(|shape| *shape >= 1.0);
    let at = |scale: f64| {
        let size = move |(place, shape): (usize, &f64)| {
            if Some(place) == largest { peak } else { (shape * libm::exp(scale)).min(peak) }
        };
        shapes.iter().enumerate().map(size)
    };
    // Bisection between the logarithms of two scales. At `low`, all sizes except the largest are about zero. At `high`,
    // all sizes exceed the mean.
    let (mut low, mut high) = (libm::log(mean) - STEEPEST, libm::log(mean) + power * (top - bottom) + 1.0);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        let found: f64 = at(middle).sum::<f64>() / levels.len() as f64;
        if found < mean { low = middle } else { high = middle }
    }
    at(low).collect()
}

/// The standard deviation of the sizes, divided by their mean.
fn variation(sizes: &[f64]) -> f64 {
    let moments: Moments = sizes.iter().copied().collect();
    moments.standard_deviation().zip(moments.mean()).map_or(0.0, |(deviation, mean)| deviation / mean)
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    /// Star Wars IV in high quality, with the published values: mean 1376 bytes, peak 9370 bytes, coefficient of
    /// variation 0.66, 25 frames/s, groups of 12 frames.
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
        // Generating a video takes a tenth of a second, so only 32 cases are tested.
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// For parameters in these ranges, the mean differs from its given value by less than 2 %, and the coefficient
        /// of variation differs from its given value by less than 10 %.
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
