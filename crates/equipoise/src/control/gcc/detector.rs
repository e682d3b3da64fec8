use super::trendline::Estimate;
use crate::units::{Instant, ReceiverClock, Span};

/// Detects overuse of the path, by comparing an estimate m of the delay's trend with an adaptive threshold γ.
///
/// ```text
/// γ_i = γ_{i-1} + k Δt (|m| - γ_{i-1})        k = k_u if |m| > γ, else k_d;  6 ms ≤ γ ≤ 600 ms
/// ```
///
/// m and γ are in ms. `k_u` and `k_d` are the [`Gains`], in 1/ms. Δt is the time since the previous estimate, in ms.
///
/// With a small fixed threshold, other flows that fill the queue starve this flow. With a large fixed threshold,
/// overuse is detected late. Therefore the threshold follows the estimate. An estimate far above the threshold is a
/// spike and does not move the threshold.
///
/// Source: draft-ietf-rmcat-gcc-02, Sec. 5.4; Carlucci 2016; libwebrtc, `trendline_estimator`.
#[derive(Clone, Debug)]
pub(super) struct Detector {
    gains: Gains,
    threshold_ms: f64,
    adapted: Option<Instant<ReceiverClock>>,
    /// Time in ms, by the departure times of packets, for which the estimate has been above the threshold. The time
    /// restarts at zero at each report of overuse. `None` if the last estimate was not above the threshold.
    over_ms: Option<f64>,
    /// Number of consecutive estimates above the threshold since the last report of overuse.
    over: u32,
    samples: u32,
    trend: f64,
    usage: Usage,
}

/// How fast the threshold follows the estimate, in 1/ms. With a larger `k_u`, the detector is less sensitive to the
/// queues of other flows. With a larger `k_d`, the detector detects smaller overloads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gains {
    /// `k_u`: how fast the threshold rises towards an estimate above the threshold.
    pub up: f64,
    /// `k_d`: how fast the threshold falls towards an estimate below the threshold.
    pub down: f64,
}

impl Gains {
    /// The draft's gains. With them, a raised threshold falls with a time constant of 5.6 s (draft-ietf-rmcat-gcc-02,
    /// Sec. 5.4).
    pub(super) const DRAFT: Self = Self { up: 0.01, down: 0.000_18 };
    /// The gains of libwebrtc, `trendline_estimator`. With them, the threshold falls with a time constant of 26 ms, so
    /// on a path without delay changes it is at its lower limit.
    pub(super) const LIBWEBRTC: Self = Self { up: 0.0087, down: 0.039 };
}

/// The state of the path's queue, as the delays show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Usage {
    /// The queue neither grows nor shrinks.
    #[default]
    Normal,
    /// The queue grows.
    Over,
    /// The queue shrinks.
    Under,
}

/// The initial threshold γ, in ms (draft-ietf-rmcat-gcc-02, Sec. 5.4).
const FIRST_THRESHOLD: f64 = 12.5;
/// The minimum of the threshold γ, in ms (draft-ietf-rmcat-gcc-02, Sec. 5.4).
const LEAST_THRESHOLD: f64 = 6.0;
/// The maximum of the threshold γ, in ms (draft-ietf-rmcat-gcc-02, Sec. 5.4).
const HIGHEST_THRESHOLD: f64 = 600.0;
/// An estimate whose magnitude exceeds the threshold γ by more than this, in ms, does not change γ
/// (draft-ietf-rmcat-gcc-02, Sec. 5.4).
const SPIKE: f64 = 15.0;
/// The maximum elapsed time Δt that counts for one change of the threshold (libwebrtc, `trendline_estimator`).
const LONGEST_STEP: Span = Span::from_millis(100);
/// Overuse is reported only after the estimate was above the threshold γ for longer than this time, in ms. The time is
/// measured between departures of packets (draft-ietf-rmcat-gcc-02, Sec. 5.4).
const OVERUSE_MS: f64 = 10.0;

impl Detector {
    pub(super) const fn new(gains: Gains) -> Self {
        Self {
            gains,
            threshold_ms: FIRST_THRESHOLD,
            adapted: None,
            over_ms: None,
            over: 0,
            samples: 0,
            trend: 0.0,
            usage: Usage::Normal,
        }
    }

    pub(super) const fn usage(&self) -> Usage {
        self.usage
    }

    /// Processes the estimate after a group of packets. The group left `departed` later than the previous group, and
    /// the next group began to arrive at `arrived`.
    ///
    /// Overuse is reported if the trend does not fall, and the estimate has been above the threshold at least twice in
    /// a row and for more than 10 ms, by departure times. For the first estimate above the threshold, only half of
    /// `departed` counts. An estimate above the threshold that does not yet show overuse leaves the state unchanged.
    pub(super) fn push(&mut self, estimate: Estimate, departed: Span, arrived: Instant<ReceiverClock>) -> Usage {
        self.samples = self.samples.saturating_add(1);
        if self.samples < 2 {
            self.usage = Usage::Normal;
            return self.usage;
        }
        let departed_ms = departed.as_millis_f64();
        if estimate.compared_ms > self.threshold_ms {
            let over_ms = self.over_ms.map_or(departed_ms / 2.0, |before| before + departed_ms);
            self.over_ms = Some(over_ms);
            self.over += 1;
            if over_ms > OVERUSE_MS && self.over > 1 && estimate.trend >= self.trend {
                (self.over_ms, self.over) = (Some(0.0), 0);
                self.usage = Usage::Over;
            }
        } else {
            (self.over_ms, self.over) = (None, 0);
            self.usage = if estimate.compared_ms < -self.threshold_ms { Usage::Under } else { Usage::Normal };
        }
        self.trend = estimate.trend;
        self.adapt(libm::fabs(estimate.compared_ms), arrived);
        self.usage
    }

    fn adapt(&mut self, size_ms: f64, arrived: Instant<ReceiverClock>) {
        let since = arrived - self.adapted.replace(arrived).unwrap_or(arrived);
        if size_ms > self.threshold_ms + SPIKE {
            return;
        }
        let gain = if size_ms < self.threshold_ms { self.gains.down } else { self.gains.up };
        let step_ms = since.clamp(Span::ZERO, LONGEST_STEP).as_millis_f64();
        let threshold_ms = self.threshold_ms + gain * step_ms * (size_ms - self.threshold_ms);
        self.threshold_ms = threshold_ms.clamp(LEAST_THRESHOLD, HIGHEST_THRESHOLD);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::kalman::Kalman;
    use super::super::trendline::Trendline;
    use super::*;

    /// Groups are sent every 20 ms and arrive every `spacing_us`. Returns the number of the first delay difference at
    /// which overuse is detected, the time of this difference in ms, and the threshold in ms after this difference.
    fn first_overuse(spacing_us: u64) -> Option<(u64, f64, f64)> {
        let (mut line, mut detector) = (Trendline::default(), Detector::new(Gains::LIBWEBRTC));
        (1..=3000).find_map(|number| {
            let arrived = Instant::from_nanos(number * spacing_us * 1000);
            let estimate = line.push(spacing_us as f64 / 1e3 - 20.0, arrived);
            let usage = detector.push(estimate, Span::from_millis(20), arrived);
            (usage == Usage::Over).then_some((number, number as f64 * spacing_us as f64 / 1e3, detector.threshold_ms))
        })
    }

    /// By calculation, an overload of 10 % of the capacity is detected after 24 delay differences, an overload of 5 %
    /// after 36, and an overload of 2 % never.
    #[test]
    fn overload_is_found_when_it_was_computed_to_be() {
        let (number, millis, threshold) = first_overuse(22_000).expect("10 % of overload");
        assert_eq!((number, millis.to_bits()), (24, 528.0f64.to_bits()));
        assert!((threshold - 6.044).abs() < 0.15, "{threshold}");
        let (number, millis, _) = first_overuse(21_000).expect("5 % of overload");
        assert_eq!((number, millis.to_bits()), (36, 756.0f64.to_bits()));
        assert_eq!(first_overuse(20_400), None);
    }

    /// The estimate is at most 240 times the slope of the delay, and must exceed the minimum threshold of 6 ms.
    /// Therefore an overload below 2.5 % of the rate is never detected.
    #[test]
    fn an_overload_below_a_fortieth_is_not_seen() {
        let spacing = |overload: f64| (20_000.0 / (1.0 - overload)) as u64;
        assert_eq!(first_overuse(spacing(0.024)), None);
        assert!(first_overuse(spacing(0.03)).is_some());
    }

    #[test]
    fn a_queue_that_empties_is_underuse_and_then_normal() {
        let (mut line, mut detector) = (Trendline::default(), Detector::new(Gains::LIBWEBRTC));
        let mut millis = 0;
        let mut run = |spacing: u64, count: u64| {
            (0..count).fold(Usage::Normal, |_, _| {
                millis += spacing;
                let arrived = Instant::from_nanos(millis * 1_000_000);
                detector.push(line.push(spacing as f64 - 20.0, arrived), Span::from_millis(20), arrived)
            })
        };
        assert_eq!(run(20, 40), Usage::Normal);
        assert_eq!(run(15, 40), Usage::Under);
        assert_eq!(run(20, 80), Usage::Normal);
    }

    /// If the threshold is not clamped, a step multiplies the difference between threshold and estimate by
    /// 1 - gain · duration. At the downward gain of 0.039/ms and a duration of 2 ms, this factor is 0.922.
    #[test]
    fn the_threshold_follows_by_its_gains() {
        let mut detector = Detector::new(Gains::LIBWEBRTC);
        let quiet = Estimate { compared_ms: 0.0, trend: 0.0 };
        for millis in [0u64, 20, 22, 24] {
            detector.push(quiet, Span::from_millis(20), Instant::from_nanos((100 + millis) * 1_000_000));
        }
        // The first sample is ignored. The second sample adapts the threshold over a duration of zero, which changes
        // nothing.
        let expected = FIRST_THRESHOLD * (1.0 - 0.039f64 * 2.0).powi(2);
        assert!((detector.threshold_ms - expected).abs() < 1e-9, "{} for {expected}", detector.threshold_ms);
        let spike = Estimate { compared_ms: 1000.0, trend: 1.0 };
        detector.push(spike, Span::from_millis(20), Instant::from_nanos(200_000_000));
        assert!((detector.threshold_ms - expected).abs() < 1e-9, "a spike does not move it");
    }

    /// With the draft's gains, the threshold hardly falls within 2 s. If it fell quickly, other flows that fill the
    /// queue would take the rate of this flow.
    #[test]
    fn the_drafts_form_finds_an_overload_and_keeps_its_threshold() {
        let (mut kalman, mut detector) = (Kalman::default(), Detector::new(Gains::DRAFT));
        let mut found = None;
        for number in 1..100u64 {
            let arrived = Instant::from_nanos(number * 22_000_000);
            let estimate = kalman.push(2.0, Span::from_millis(22));
            if detector.push(estimate, Span::from_millis(20), arrived) == Usage::Over {
                found = found.or(Some(number));
            }
        }
        assert!(found.is_some_and(|number| (5..20).contains(&number)), "{found:?}");
        assert!(detector.threshold_ms > 11.0, "{}", detector.threshold_ms);
    }

    proptest! {
        #[test]
        fn the_threshold_stays_between_its_limits_whatever_comes(
            samples in prop::collection::vec((-1e9..1e9f64, -1e3..1e3f64, any::<i64>(), any::<u64>()), 1..100),
        ) {
            for gains in [Gains::DRAFT, Gains::LIBWEBRTC] {
                let mut detector = Detector::new(gains);
                for (compared_ms, trend, departed, arrived) in &samples {
                    let estimate = Estimate { compared_ms: *compared_ms, trend: *trend };
                    detector.push(estimate, Span::from_nanos(*departed), Instant::from_nanos(*arrived));
                    prop_assert!((LEAST_THRESHOLD..=HIGHEST_THRESHOLD).contains(&detector.threshold_ms));
                }
            }
        }
    }
}
