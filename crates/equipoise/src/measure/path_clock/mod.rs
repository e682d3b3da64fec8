//! The clocks of two hosts that nobody synchronised, from what reports show of them.

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

/// How the two clocks and the empty path look, from the minima of many reports.
///
/// A shown delay is the receiver's clock at arrival less the sender's at departure: the one-way delay plus the clocks'
/// offset. Queues only add to it, so the least shown delays of successive windows lie on a line or above it; the line is
/// the empty path's, and rises or falls with the drift.
///
/// - **Drift**: the median slope of all pairs of window minima (Sen 1968). Pairs whose round trips differ by more than
///   5 ms are passed over: one of the two stood in a queue or took another path. Until the 95 % interval is within
///   ±50 ppm and 20 s of reports are there, the drift is taken to be zero; once known it is kept until a better one.
/// - **Base**: the highest line of that slope with no minimum below it (the lower hull of Moon 1999).
/// - **Offset**: base less half of the least round trip. How the round trip divides into its two ways cannot be known.
/// - **Step**: the shown minimum leaves the base, and the round trip does not follow by at least half: a queue, an
///   outage and another path move both. Noticed from 5 ms on, plus twenty times the root mean square distance from the
///   base that round trips do not explain, plus what the drift's uncertainty comes to; in the first sixteen reports from
///   1 s on. A smaller step down is followed at once, a smaller step up within the horizon. All points move with a step.
///
/// Limits. A path that became longer is followed when the last of its minima is ten minutes old, one that became shorter
/// at once. A queue that never empties within ten minutes is part of the base. A drift that changes (a clock being
/// disciplined, a warming crystal) is followed at once downwards, and upwards as the slope follows. A report's minimum
/// counts as seen when the report came: under drift the base is off by up to the drift times the reports' interval, 0.1 ms
/// at 100 ppm and 1 s. A step up in the report just before the round trip rises by the like is taken back: it was a queue
/// whose round trip came late. It counts as noise, and steps smaller than it go unnoticed for a few hundred reports. After
/// ten minutes of silence the past is forgotten, but a step across the silence is still noticed.
///
/// Fixed memory, no allocation after [`PathClock::new`]; a report costs some 2000 slopes and their sorting. Any input is
/// safe; arithmetic saturates.
#[derive(Clone, Debug)]
pub struct PathClock {
    windows: Windows,
    finder: DriftFinder,
    /// The point that carries the base line.
    lowest: Option<Window>,
    slope: Slope,
    drift: Option<Drift>,
    /// Median distance of the points above the line.
    spread: Span,
    /// Mean square of the reports' distances from the base that round trips do not explain, in ns².
    noise_ns2: f64,
    reports: u32,
    last: Instant<SenderClock>,
    /// The step that the last report was taken for, where a late round trip may still explain it.
    suspect: Option<Span>,
}

/// What a report brought to light.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Nothing: clocks and path are as they were, or changed too little to tell.
    Consistent,
    /// One of the clocks was set.
    ClockStepped {
        /// By how much the receiver's clock went on, or the sender's back; negative the other way round.
        by: Span,
    },
    /// The step that the last report was taken for was none: the round trip rose too, one report late.
    StepTakenBack {
        /// What had been noticed.
        by: Span,
    },
}

/// How far the receiver's clock is ahead of the sender's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// The receiver's clock less the sender's at the same moment; negative where the receiver's is behind.
    pub receiver_ahead: Span,
    /// The truth lies within so much of it: half the least round trip, which the two ways may share in any manner, the
    /// spread of the minima, and the drift that may have gone unseen.
    pub uncertainty: Span,
}

impl PathClock {
    /// Least step that is noticed (ours): above the granularity and wake-up jitter of ordinary hosts' stamps.
    pub const LEAST_STEP: Span = Span::from_millis(5);
    /// Root mean square distances that a step must exceed (ours): exponential noise goes so far once in 10¹² reports, and
    /// once in 10⁷ where a round trip that knows nothing of it explains two reports of three away.
    const STEP_NOISES: f64 = 20.0;
    /// Reports before the noise is known (ours), and the step that is noticed until then (ours: hardly a queue's delay).
    const SETTLED: u32 = 16;
    const LEAST_EARLY_STEP: Span = Span::from_secs(1);
    /// Weight of one report in the mean square (ours); smaller forgets a noisy past later, larger misjudges rare noise.
    const NOISE_GAIN: f64 = 1.0 / 256.0;
    /// An interval within which the drift counts as known, in ppm (ours): what two ordinary crystals differ by.
    const KNOWN_WITHIN_PPM: f64 = 50.0;
    /// Least stretch of time that gives a drift (ours): a queue that rises by 1 ms unseen makes no more than 50 ppm.
    const LEAST_HORIZON: Span = Span::from_secs(20);

    /// Nothing known yet.
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

    /// Takes a report that came at `now`: the least of its interval's one-way delays as the two clocks show it, and the
    /// round trip on the sender's clock. Returns what is noticed.
    ///
    /// A `now` before the last one means that the sender's clock was set back: the stored times go with it.
    pub fn observe(&mut self, now: Instant<SenderClock>, shown_minimum: Span, round_trip: Span) -> Notice {
        if self.reports > 0 && now < self.last {
            self.move_times(now - self.last);
        }
        let notice = self.judge(now, shown_minimum, round_trip);
        let stepped = matches!(notice, Notice::ClockStepped { .. });
        // A receiver that steps while it holds a report spoils the round trip.
        let sound = (!stepped && round_trip >= Span::ZERO).then_some(round_trip);
        self.windows.push(now, shown_minimum, sound, self.slope);
        self.reports = self.reports.saturating_add(1);
        self.last = now;
        self.fit();
        notice
    }

    /// The shown delay of an empty path at `now`: the queueing delay's zero. `None` before the first report.
    pub fn base(&self, now: Instant<SenderClock>) -> Option<Span> {
        self.lowest.map(|lowest| lowest.shown + self.slope.over(now - lowest.at))
    }

    /// How far the receiver's clock is ahead at `now`, with its uncertainty. `None` before a sound round trip.
    pub fn offset(&self, now: Instant<SenderClock>) -> Option<Offset> {
        let half = Span::from_nanos(self.windows.least_round_trip()?.as_nanos() / 2);
        Some(Offset {
            receiver_ahead: self.base(now)? - half,
            uncertainty: half + self.spread + self.unseen_drift(now),
        })
    }

    /// The drift with its 95 % interval; `None` until it is known to within ±50 ppm.
    pub const fn drift_ppm(&self) -> Option<Drift> {
        self.drift
    }

    /// Finds out whether a clock stepped, and if so moves the points.
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
            // What looks like a long silence is the sender's own clock, set forward.
            self.move_times(-excess);
        }
        Notice::ClockStepped { by: excess }
    }

    /// How far a report may lie from the base at `now`.
    fn step_limit(&self, now: Instant<SenderClock>) -> Span {
        let noise = Span::from_nanos((Self::STEP_NOISES * libm::sqrt(self.noise_ns2)) as i64);
        let limit = Self::LEAST_STEP + noise + self.unseen_drift(now);
        if self.reports < Self::SETTLED { limit.max(Self::LEAST_EARLY_STEP) } else { limit }
    }

    /// What the drift's uncertainty comes to between the point that carries the line and `now`.
    fn unseen_drift(&self, now: Instant<SenderClock>) -> Span {
        let slack = self.drift.map_or(Slope::STEEPEST, |drift| Slope::from_ppm(drift.uncertainty_ppm));
        self.lowest.map_or(Span::ZERO, |lowest| slack.over((now - lowest.at).abs()))
    }

    /// A plain mean at first, then an exponential one.
    fn learn_noise(&mut self, distance: Span) {
        let gain = (1.0 / f64::from(self.reports.max(1))).max(Self::NOISE_GAIN);
        let nanos = distance.as_nanos() as f64;
        self.noise_ns2 += (nanos * nanos - self.noise_ns2) * gain;
    }

    /// The sender's own clock was set: the points go with it, along the line.
    fn move_times(&mut self, by: Span) {
        self.windows.move_times(by, self.slope);
        if let Some(lowest) = &mut self.lowest {
            lowest.move_along(by, self.slope);
        }
    }

    /// Drift, line and spread anew.
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

/// What of a distance from the base, up or down, the round trip's change does not explain.
///
/// A queue or a path that adds `x` one way adds at least `x` to the round trip. Half of that will do: the report's
/// minimum and the round trip are not of the same moment.
fn unexplained(distance: Span, rise: Span) -> Span {
    if distance >= Span::ZERO {
        (distance - rise.max(Span::ZERO) * 2).max(Span::ZERO)
    } else {
        (distance - rise.min(Span::ZERO) * 2).min(Span::ZERO)
    }
}
