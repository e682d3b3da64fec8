//! Estimates the offset and the drift of two unsynchronised clocks from reports.

mod drift;
mod slope;
#[cfg(test)]
mod tests;
mod windows;

pub use drift::Drift;
use drift::DriftFinder;
use slope::Slope;
use windows::{Window, Windows};

use crate::units::{Instant, SenderClock, Span};

/// The relation of two clocks and the delay of the empty path, from the minimum delays in many reports.
///
/// A shown delay is the receiver's clock at arrival minus the sender's clock at departure: the one-way delay plus the
/// clocks' offset. Successive reports form a window, which keeps its minimum shown delay. Queues only add to the delay,
/// so all minima are on or above the line that an empty path would show. The slope of this line is the drift.
///
/// - **Drift**: the median slope of all pairs of window minima (Sen 1968). A pair is skipped if a step is between its
///   minima. A pair is also skipped if the round trips of the two minima differ by more than 5 ms, because one of the
///   minima then contains a queueing delay or belongs to another path. An estimate is accepted if its 95 % confidence
///   interval ends at most 50 ppm from the estimate, and if the minima cover 20 s. The drift is zero before the first
///   accepted estimate.
/// - **Base**: the highest line with the slope of the drift and no minimum below it (the lower hull of Moon 1999).
/// - **Offset**: base minus half of the least round trip. How the round trip divides into its two directions cannot be
///   known.
/// - **Step**: one of the clocks was set. A queue, an outage or another path changes both the shown delay and the round
///   trip. Therefore up to twice the change of the round trip is subtracted from the distance between a shown delay and
///   the base. The rest of the distance is noise or a step. The rest counts as a step if it exceeds 5 ms, plus twenty
///   times the root mean square of the noise, plus the effect of the drift's uncertainty. In the first sixteen reports,
///   the rest must also exceed 1 s. If a step is too small to be detected, the base follows the step: at once if the
///   step is down, within ten minutes if the step is up. A detected step is applied to all stored points.
///
/// Limits:
///
/// - A longer path is followed when the last minimum of the old path is ten minutes old. A shorter path is followed at
///   once.
/// - A queue that never empties within ten minutes becomes part of the base.
/// - If the drift changes (NTP adjusts a clock, a crystal warms up), a falling base is followed at once. A rising base
///   is followed only as fast as the estimated slope changes.
/// - A minimum is dated at the arrival of its report. Therefore the base is wrong by up to the drift times the interval
///   between reports: 0.1 ms at 100 ppm and 1 s.
/// - A queue looks like a step up if a report contains the queue's delay, but not yet the longer round trip. The step
///   is taken back if the round trip of the next report has risen by at least half of the step. The step then counts as
///   noise, and smaller steps are not detected for a few hundred reports.
/// - After ten minutes without a report all points are dropped, but a step during that time is still detected.
///
/// Memory is fixed, with no allocation after [`PathClock::new`]. Each report computes and sorts up to 2016 slopes. Any
/// input is safe; arithmetic saturates.
#[derive(Clone, Debug)]
pub struct PathClock {
    windows: Windows,
    finder: DriftFinder,
    /// A point on the base line, which is the delay of the empty path plus the clocks' offset, as a function of time.
    lowest: Option<Window>,
    slope: Slope,
    drift: Option<Drift>,
    /// Median of the distances from the base line up to the minimum delays of the stored windows. The delays of the
    /// empty path would lie on the base line.
    spread: Span,
    /// Mean square of the noise, in ns². The noise is the distance of a report's minimum delay from the estimated delay
    /// of the empty path, without the part that a change of the round trip explains.
    noise_ns2: f64,
    reports: u32,
    last: Instant<SenderClock>,
    /// The increase of the delay that counted as a clock step at the last report. If the round trip of the next report
    /// shows that a queue caused this increase, the step is taken back. `None` if no step can be taken back.
    suspect: Option<Span>,
}

/// What a report showed about the clocks and the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The clocks and the path did not change, or changed too little to be detected.
    Consistent,
    /// One of the clocks was set.
    ClockStepped {
        /// How far the receiver's clock was set forward or the sender's clock was set back; negative for the opposite
        /// direction.
        by: Span,
    },
    /// No clock was set, although the previous report seemed to show a clock step. This report shows that the
    /// round-trip time has risen, so the path's delay became longer.
    StepTakenBack {
        /// The step that had been detected.
        by: Span,
    },
}

/// How far the receiver's clock is ahead of the sender's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// The receiver's clock minus the sender's clock at the same moment; negative if the receiver's clock is behind.
    pub receiver_ahead: Span,
    /// Estimate of the maximum error. It is the sum of three values: half of the shortest round-trip time, the median
    /// distance of the stored minimum delays from the estimated delay of the empty path, and the error that the
    /// uncertainty of the drift may cause.
    pub uncertainty: Span,
}

impl PathClock {
    /// Minimum step that is detected (our choice): above the granularity and wake-up jitter of timestamps on ordinary
    /// hosts.
    pub const LEAST_STEP: Span = Span::from_millis(5);
    /// A clock step must exceed this multiple of the root mean square of the noise in the delay (our choice). Noise
    /// with an exponential distribution exceeds this limit once in 10¹² reports. If two of three reports have no noise,
    /// the root mean square is smaller, and noise exceeds the limit once in 10⁷ reports.
    const STEP_NOISES: f64 = 20.0;
    /// `SETTLED` is the number of reports after which the noise of the delays is known. Before, only a change above
    /// `LEAST_EARLY_STEP`, which is longer than most queueing delays, counts as a step of a clock (both our choice).
    const SETTLED: u32 = 16;
    const LEAST_EARLY_STEP: Span = Span::from_secs(1);
    /// Weight of one report in the mean square of the noise (our choice). With a smaller value, old noise counts for
    /// longer. With a larger value, rare noise is forgotten too early. When such noise occurs again, it is mistaken for
    /// a step of a clock.
    const NOISE_GAIN: f64 = 1.0 / 256.0;
    /// The drift is known if its uncertainty is at most this, in ppm. Our choice: the frequencies of two ordinary
    /// crystals differ by about this much.
    const KNOWN_WITHIN_PPM: f64 = 50.0;
    /// Minimum time between the first and the last window from which a drift is estimated (our choice). If a queue
    /// grows by 1 ms in this time and is not detected, the drift is wrong by 50 ppm at most.
    const LEAST_HORIZON: Span = Span::from_secs(20);

    /// Creates a path clock without reports.
    pub fn new() -> Self {
        Self {
            windows: Windows::new(),
            finder: DriftFinder::new(),
            lowest: None,
            slope: Slope::default(),
            drift: None,
            spread: Span::ZERO,
            noise_ns2: 0.0,
            reports: 0,
            last: Instant::ZERO,
            suspect: None,
        }
    }

    /// Processes a report that arrived at `now`. `shown_minimum` is the minimum one-way delay of the report's interval
    /// as shown by the two clocks, and `round_trip` is the round-trip time on the sender's clock. Returns what the
    /// report shows.
    ///
    /// A `now` before the previous one means that the sender's clock was set back. In this case the stored times are
    /// moved back by the same amount.
    pub fn observe(&mut self, now: Instant<SenderClock>, shown_minimum: Span, round_trip: Span) -> Notice {
        if self.reports > 0 && now < self.last {
            self.move_times(now - self.last);
        }
        let notice = self.judge(now, shown_minimum, round_trip);
        let stepped = matches!(notice, Notice::ClockStepped { .. });
        // After a detected clock step, the round-trip time is not used. It is wrong if the receiver's clock was set
        // while the receiver held the report back.
        let sound = (!stepped && round_trip >= Span::ZERO).then_some(round_trip);
        self.windows.push(now, shown_minimum, sound, self.slope);
        self.reports = self.reports.saturating_add(1);
        self.last = now;
        self.fit();
        notice
    }

    /// Returns the one-way delay of an empty path at `now`, including the offset of the two clocks. Returns `None`
    /// before the first report. A delay above this value is queueing delay.
    pub fn base(&self, now: Instant<SenderClock>) -> Option<Span> {
        self.lowest.map(|lowest| lowest.shown + self.slope.over(now - lowest.at))
    }

    /// Returns by how much the receiver's clock is ahead of the sender's clock at `now`, with the uncertainty of this
    /// value; `None` before the first valid round-trip time.
    pub fn offset(&self, now: Instant<SenderClock>) -> Option<Offset> {
        let half = Span::from_nanos(self.windows.least_round_trip()?.as_nanos() / 2);
        Some(Offset {
            receiver_ahead: self.base(now)? - half,
            uncertainty: half + self.spread + self.unseen_drift(now),
        })
    }

    /// Returns the drift with its 95 % interval; `None` until the drift is known to within ±50 ppm.
    pub const fn drift_ppm(&self) -> Option<Drift> {
        self.drift
    }

    /// Decides whether a clock stepped, and if so moves the stored delay measurements by the step.
    fn judge(&mut self, now: Instant<SenderClock>, shown: Span, round_trip: Span) -> Notice {
        let Some(base) = self.base(now) else { return Notice::Consistent };
        let excess = shown - base;
        let rise = self.windows.least_round_trip().map_or(Span::ZERO, |least| round_trip - least);
        if let Some(by) = self.suspect.take()
            && unexplained(by, rise) == Span::ZERO
        {
            self.windows.take_back(by);
            self.learn_noise(by);
            return Notice::StepTakenBack { by };
        }
        let distance = unexplained(excess, rise);
        if distance.abs() <= self.step_limit(now) {
            self.learn_noise(distance);
            return Notice::Consistent;
        }
        self.windows.step(excess);
        if excess > Span::ZERO {
            self.suspect = Some(excess);
        } else if -excess >= Self::LEAST_EARLY_STEP && now - self.last >= -excess {
            // By the sender's clock, the time since the last report is at least as long as the step. So the
            // sender's clock may have been set forward. In this case the times of the stored delays are now too early.
            self.move_times(-excess);
        }
        Notice::ClockStepped { by: excess }
    }

    /// Returns the limit at `now` for the unexplained change of the delay. This is the part of the difference between a
    /// report's delay and the base delay that no change of the round-trip time explains. If this part exceeds the
    /// limit, a clock stepped.
    fn step_limit(&self, now: Instant<SenderClock>) -> Span {
        let noise = Span::from_nanos((Self::STEP_NOISES * libm::sqrt(self.noise_ns2)) as i64);
        let limit = Self::LEAST_STEP + noise + self.unseen_drift(now);
        if self.reports < Self::SETTLED { limit.max(Self::LEAST_EARLY_STEP) } else { limit }
    }

    /// Returns the error that the uncertainty of the clock drift may cause in the base delay at `now`. This error grows
    /// with the time since the report that determined the base delay.
    fn unseen_drift(&self, now: Instant<SenderClock>) -> Span {
        let slack = self.drift.map_or(Slope::STEEPEST, |drift| Slope::from_ppm(drift.uncertainty_ppm));
        self.lowest.map_or(Span::ZERO, |lowest| slack.over((now - lowest.at).abs()))
    }

    /// Updates the mean square of the noise: a plain mean at first, then an exponential mean.
    fn learn_noise(&mut self, distance: Span) {
        let gain = (1.0 / f64::from(self.reports.max(1))).max(Self::NOISE_GAIN);
        let nanos = distance.as_nanos() as f64;
        self.noise_ns2 += (nanos * nanos - self.noise_ns2) * gain;
    }

    /// Corrects the stored delays after the sender's clock was set by `by`: moves their times by `by`, and changes
    /// their values by the clock drift during a time of `by`.
    fn move_times(&mut self, by: Span) {
        self.windows.move_times(by, self.slope);
        if let Some(lowest) = &mut self.lowest {
            lowest.move_along(by, self.slope);
        }
    }

    /// Recomputes drift, base line and spread.
    fn fit(&mut self) {
        if self.windows.horizon() >= Self::LEAST_HORIZON
            && let Some(drift) = self.finder.drift(&self.windows)
            && drift.uncertainty_ppm <= Self::KNOWN_WITHIN_PPM
        {
            self.drift = Some(drift);
            self.slope = Slope::from_ppm(drift.ppm);
        }
        let slope = self.slope;
        self.lowest = self
            .windows
            .iter()
            .copied()
            .reduce(|lowest, window| if window.above(&lowest, slope) < Span::ZERO { window } else { lowest });
        self.spread = self.lowest.map_or(Span::ZERO, |lowest| self.finder.spread(&self.windows, &lowest, slope));
    }
}

impl Default for PathClock {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the part of `distance` that `rise` does not explain. `distance` is a report's one-way delay minus the delay
/// of the empty path. `rise` is the round-trip time minus its minimum.
///
/// If a queue or a longer path adds `x` to the delay in one direction, it adds at least `x` to the round-trip time.
/// Here a rise of `x / 2` already explains `x`, because the report's minimum delay and the round-trip time are not
/// measured at the same moment.
fn unexplained(distance: Span, rise: Span) -> Span {
    if distance >= Span::ZERO {
        (distance - rise.max(Span::ZERO) * 2).max(Span::ZERO)
    } else {
        (distance - rise.min(Span::ZERO) * 2).min(Span::ZERO)
    }
}
