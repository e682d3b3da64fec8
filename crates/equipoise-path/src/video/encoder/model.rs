use rand_distr::{Distribution, Open01};
use thiserror::Error;

use super::Ladder;
use equipoise::random::{Generator, generator};
use equipoise::units::{Rate, Size, Span};

/// The parameters of a model of a live encoder (RFC 8593).
///
/// After the encoder has accepted a new rate, it accepts the next rate only after [`reaction`](Self::reaction) (Sec.
/// 5.1). If the new rate differs substantially from the previous rate, a [`transient`](Self::transient) follows: a
/// large frame, and then smaller frames that compensate for the large frame (Sec. 5.2). Without a transient, frame
/// sizes vary independently around the mean size for the rate (Sec. 5.3), or follow recorded traces (Sec. 6). Traces
/// together with transients are the hybrid model of Sec. 7.
///
/// What the RFC leaves open is our choice. The first frame begins a transient, because it cannot be predicted from
/// another frame. The mean rate during a transient is the requested rate. If the frames after the burst frame would
/// have to be smaller than [`SMALLEST`](Self::SMALLEST) to achieve this, the burst frame is made smaller than
/// [`Transient::burst`].
#[derive(Clone, Debug, PartialEq)]
pub struct VideoModel {
    /// Frames per second; above zero.
    pub frame_rate: f64,
    /// The lowest rate that the encoder supports, without headers (`R_min`).
    pub min_rate: Rate,
    /// The highest rate that the encoder supports, without headers (`R_max`).
    pub max_rate: Rate,
    /// The minimum time between two changes of the rate (`tau_v`).
    pub reaction: Span,
    /// The transient after a substantial change of the rate: a large frame, and then smaller frames. `None` if the
    /// encoder has no transients.
    pub transient: Option<Transient>,
    /// Scale of the Laplace distribution of the time between frames, relative to the mean of this time (`SCALE_t`).
    pub interval_spread: f64,
    /// Scale of the Laplace distribution of frame sizes, relative to the mean size (`SCALE_B`); ignored if there are
    /// traces.
    pub size_spread: f64,
    /// Recorded frame sizes; `None` for random frame sizes.
    pub traces: Option<Ladder>,
}

/// The transient after a substantial change of the rate (RFC 8593, Sec. 5.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transient {
    /// Number of frames in the transient (`K_d`).
    pub frames: u32,
    /// Size of the first frame of the transient, the burst frame (`K_B`).
    pub burst: Size,
    /// A transient follows if the relative change of the rate exceeds this value.
    pub threshold: f64,
}

/// Why the parameters of an encoder model are invalid.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum VideoModelError {
    /// The frame rate is zero, negative, `NaN` or too high.
    #[error("a frame rate of {found}; it must be above 0 and at most {most} frames/s")]
    FrameRate {
        /// The configured frame rate.
        found: f64,
        /// The maximum frame rate.
        most: f64,
    },
    /// The lowest rate is zero or above the highest rate.
    #[error("rates from {min} to {max}; the lowest must be above zero, and the highest not below it")]
    Rates {
        /// The configured lowest rate.
        min: Rate,
        /// The configured highest rate.
        max: Rate,
    },
    /// A spread is negative, `NaN` or above 1.
    #[error("a spread of {found}; it must be 0 to 1")]
    Spread {
        /// The configured spread.
        found: f64,
    },
    /// The reaction time is negative.
    #[error("a reaction of {found}; it must not be negative")]
    Reaction {
        /// The configured reaction time.
        found: Span,
    },
    /// A transient has too few frames, or its threshold is invalid.
    #[error(
        "a transient of {frames} frames from a change by {threshold} on; it must have two or more frames, and the change be 0 or more"
    )]
    Transient {
        /// The configured number of frames.
        frames: u32,
        /// The configured threshold.
        threshold: f64,
    },
}

impl Default for VideoModel {
    /// The example values of RFC 8593, Fig. 2, without traces of frame sizes.
    fn default() -> Self {
        Self {
            frame_rate: 30.0,
            min_rate: Rate::from_bps(150_000),
            max_rate: Rate::from_bps(1_500_000),
            reaction: Span::from_millis(200),
            transient: Some(Transient::default()),
            interval_spread: 0.15,
            size_spread: 0.15,
            traces: None,
        }
    }
}

impl Default for Transient {
    /// The values of RFC 8593, Fig. 2; the threshold is the example value of Sec. 7.
    fn default() -> Self {
        Self { frames: 8, burst: Size::from_bytes(13_500), threshold: 0.1 }
    }
}

impl VideoModel {
    /// The highest allowed frame rate, in frames/s.
    pub const MOST_FRAME_RATE: f64 = 1000.0;
    /// The minimum size of a frame in a transient, in bytes: `fs_min` of RFC 8593, Sec. 6.2.1.
    pub const SMALLEST: u64 = 10;

    /// Checks the parameters.
    ///
    /// # Errors
    /// [`VideoModelError`] for the first invalid parameter.
    pub fn check(&self) -> Result<(), VideoModelError> {
        let most = Self::MOST_FRAME_RATE;
        if !(self.frame_rate > 0.0 && self.frame_rate <= most) {
            return Err(VideoModelError::FrameRate { found: self.frame_rate, most });
        }
        let (min, max) = (self.min_rate, self.max_rate);
        if min == Rate::ZERO || max < min {
            return Err(VideoModelError::Rates { min, max });
        }
        for found in [self.interval_spread, self.size_spread] {
            if !(0.0..=1.0).contains(&found) {
                return Err(VideoModelError::Spread { found });
            }
        }
        if self.reaction < Span::ZERO {
            return Err(VideoModelError::Reaction { found: self.reaction });
        }
        match self.transient {
            Some(Transient { frames, threshold, .. }) if frames < 2 || threshold.is_nan() || threshold < 0.0 => {
                Err(VideoModelError::Transient { frames, threshold })
            }
            _ => Ok(()),
        }
    }
}

/// The state of an encoder that follows a model.
#[derive(Clone, Debug)]
pub(super) struct ModelledVideo {
    model: VideoModel,
    interval: Span,
    random: Generator,
    next: Span,
    /// The rate that the encoder follows now, and the time since which it follows this rate; `None` before the first
    /// frame.
    taken: Option<(Rate, Span)>,
    /// Number of remaining frames of the current transient, and the size of each of these frames.
    transient: (u32, Size),
    /// The index of the next frame in the traces.
    index: usize,
}

impl ModelledVideo {
    /// The minimum time between two frames. Our choice: above zero, so that no two frames have the same time.
    const SHORTEST: Span = Span::from_micros(1);

    pub(super) fn new(model: VideoModel, (seed, stream): (u64, u64)) -> Result<Self, VideoModelError> {
        model.check()?;
        let interval = Span::from_secs_f64(1.0 / model.frame_rate).unwrap_or(Span::from_secs(1));
        let random = generator(seed, stream.wrapping_mul(2));
        Ok(Self { model, interval, random, next: Span::ZERO, taken: None, transient: (0, Size::ZERO), index: 0 })
    }

    pub(super) const fn next_frame(&self) -> Span {
        self.next
    }

    pub(super) const fn frame_interval(&self) -> Span {
        self.interval
    }

    pub(super) fn encode(&mut self, target: Rate) -> Size {
        let burst = self.follow(target.max(self.model.min_rate).min(self.model.max_rate));
        let steady = self.steady();
        let (left, smaller) = self.transient;
        let size = match burst {
            Some(burst) => burst,
            None if left > 0 => {
                self.transient.0 = left - 1;
                smaller
            }
            None => steady,
        };
        self.skip();
        size
    }

    pub(super) fn skip(&mut self) {
        let gap = self.interval.as_secs_f64() * (1.0 + self.laplace(self.model.interval_spread));
        self.next = self.next + Span::from_secs_f64(gap).unwrap_or(self.interval).max(Self::SHORTEST);
    }

    /// Accepts `target` as the new rate if the reaction time has passed. If a transient begins, returns the size of its
    /// burst frame.
    fn follow(&mut self, target: Rate) -> Option<Size> {
        let change = match self.taken {
            Some((rate, _)) if rate == target => return None,
            Some((_, at)) if self.next - at < self.model.reaction => return None,
            Some((rate, _)) => (target.as_bps_f64() / rate.as_bps_f64() - 1.0).abs(),
            None => f64::INFINITY,
        };
        self.taken = Some((target, self.next));
        let Transient { frames, burst, .. } = self.model.transient.filter(|it| change > it.threshold)?;
        let all = self.mean_size() * f64::from(frames);
        let others = f64::from(frames - 1);
        let least = VideoModel::SMALLEST as f64;
        let burst = (burst.as_bytes() as f64).min(all - others * least).max(least);
        let smaller = ((all - burst) / others).max(least);
        self.transient = (frames - 1, Size::from_bytes(libm::round(smaller) as u64));
        Some(Size::from_bytes(libm::round(burst) as u64))
    }

    /// Returns the size that the next frame has unless it is part of a transient.
    fn steady(&mut self) -> Size {
        let rate = self.taken.map_or(self.model.min_rate, |(rate, _)| rate);
        if let Some(traces) = &self.model.traces {
            let index = self.index;
            self.index = traces.after(index);
            return traces.size(index, rate);
        }
        let bytes = self.mean_size() * (1.0 + self.laplace(self.model.size_spread));
        Size::from_bytes((libm::round(bytes) as u64).max(1))
    }

    /// Mean frame size in bytes at the last accepted rate (`B0`).
    fn mean_size(&self) -> f64 {
        let rate = self.taken.map_or(self.model.min_rate, |(rate, _)| rate);
        rate.as_bps_f64() / 8.0 / self.model.frame_rate
    }

    /// Draws a random number from a Laplace distribution with mean zero.
    fn laplace(&mut self, scale: f64) -> f64 {
        let uniform: f64 = Open01.sample(&mut self.random);
        let centred = uniform - 0.5;
        libm::copysign(scale * libm::log(1.0 - 2.0 * centred.abs()), centred)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use equipoise::measure::Moments;

    const MBPS: Rate = Rate::from_bps(1_000_000);

    fn encoder(model: VideoModel) -> ModelledVideo {
        ModelledVideo::new(model, (1, 7)).expect("right")
    }

    fn sizes(encoder: &mut ModelledVideo, target: Rate, frames: usize) -> Vec<u64> {
        (0..frames).map(|_| encoder.encode(target).as_bytes()).collect()
    }

    /// RFC 8593, Fig. 2: the mean frame size B0 is 4.17 kB at 1 Mbit/s and 30 frames/s. A Laplace distribution with
    /// scale b has the variance 2 b².
    #[test]
    fn steady_frames_have_the_mean_and_the_spread_of_their_distributions() {
        let mut encoder = encoder(VideoModel { transient: None, ..VideoModel::default() });
        let mut gaps = Moments::default();
        let mut bytes = Moments::default();
        for _ in 0..100_000 {
            let before = encoder.next_frame();
            bytes.push(encoder.encode(MBPS).as_bytes() as f64);
            gaps.push((encoder.next_frame() - before).as_secs_f64() * 30.0);
        }
        let spread = 0.15 * core::f64::consts::SQRT_2;
        let close = |found: Option<f64>, expected: f64| (found.unwrap_or(0.0) / expected - 1.0).abs() < 0.01;
        assert!(close(bytes.mean(), 4166.7) && close(gaps.mean(), 1.0), "{bytes:?} {gaps:?}");
        assert!(close(bytes.standard_deviation(), 4166.7 * spread), "{bytes:?}");
        assert!(close(gaps.standard_deviation(), spread), "{gaps:?}");
    }

    /// RFC 8593, Fig. 2 and Sec. 5.2: a burst frame of 13.5 kB, then seven frames of (8 · 4166.7 - 13 500) / 7 bytes.
    #[test]
    fn a_transient_has_a_burst_and_the_mean_of_the_rate() {
        let mut encoder = encoder(VideoModel::default());
        let first = sizes(&mut encoder, MBPS, 8);
        assert_eq!(first[..2], [13_500, 2833]);
        let mean = first.iter().sum::<u64>() as f64 / 8.0;
        assert!((mean - 4166.7).abs() < 1.0, "{mean}");
        sizes(&mut encoder, MBPS, 30);
        // At the lowest rate, seven of the eight frames have the minimum size, and the burst frame has all other data.
        let lowest = sizes(&mut encoder, Rate::from_bps(1), 8);
        assert_eq!(lowest, [4930, 10, 10, 10, 10, 10, 10, 10]);
    }

    /// If this test fails, the encoder accepts a rate too early, or never, or outside of its supported range.
    #[test]
    fn a_rate_is_taken_a_reaction_after_the_last_one_and_within_the_range() {
        let even = VideoModel { frame_rate: 25.0, interval_spread: 0.0, size_spread: 0.0, ..VideoModel::default() };
        let mut encoder = encoder(VideoModel { transient: None, ..even });
        assert_eq!(encoder.encode(MBPS).as_bytes(), 5000);
        // The new rate is not accepted 40 to 160 ms after the first frame. It is accepted at 200 ms.
        assert_eq!(sizes(&mut encoder, Rate::from_bps(500_000), 5), [5000, 5000, 5000, 5000, 2500]);
        sizes(&mut encoder, MBPS, 5);
        assert_eq!(sizes(&mut encoder, Rate::from_bps(9_000_000), 5)[4], 7500, "1.5 Mbit/s");
    }

    #[test]
    fn a_small_change_makes_no_transient() {
        let model = VideoModel { interval_spread: 0.0, size_spread: 0.0, ..VideoModel::default() };
        let mut encoder = encoder(model);
        sizes(&mut encoder, MBPS, 20);
        assert_eq!(encoder.encode(Rate::from_bps(1_090_000)).as_bytes(), 4542);
        sizes(&mut encoder, MBPS, 20);
        assert_eq!(encoder.encode(Rate::from_bps(880_000)).as_bytes(), 13_500);
    }

    #[test]
    fn traces_take_the_place_of_independent_sizes() {
        let lines = ["500 1000"].into_iter().chain(["1000 2000", "3000 5000"].into_iter().cycle().take(40));
        let traces = Some(Ladder::parse(lines).expect("traces"));
        let mut encoder = encoder(VideoModel { traces, transient: None, ..VideoModel::default() });
        assert_eq!(sizes(&mut encoder, MBPS, 4), [2000, 5000, 2000, 5000]);
        sizes(&mut encoder, Rate::from_bps(750_000), 10);
        assert_eq!(sizes(&mut encoder, Rate::from_bps(750_000), 2), [1500, 4000]);
    }

    #[test]
    fn a_frame_that_is_passed_over_takes_its_time() {
        let mut encoder = encoder(VideoModel { interval_spread: 0.0, ..VideoModel::default() });
        encoder.skip();
        assert_eq!(encoder.next_frame().as_nanos(), 33_333_333);
        assert_eq!(encoder.encode(MBPS).as_bytes(), 13_500);
    }

    #[test]
    fn what_no_encoder_has_is_refused() {
        let default = VideoModel::default;
        let wrong = [
            VideoModel { frame_rate: 0.0, ..default() },
            VideoModel { frame_rate: f64::NAN, ..default() },
            VideoModel { min_rate: Rate::ZERO, ..default() },
            VideoModel { max_rate: Rate::from_bps(1), ..default() },
            VideoModel { interval_spread: 1.5, ..default() },
            VideoModel { size_spread: -0.1, ..default() },
            VideoModel { reaction: Span::from_millis(-1), ..default() },
            VideoModel { transient: Some(Transient { frames: 1, ..Transient::default() }), ..default() },
        ];
        for model in wrong {
            assert!(ModelledVideo::new(model.clone(), (1, 1)).is_err(), "{model:?}");
        }
    }
}
