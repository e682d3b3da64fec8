use alloc::collections::VecDeque;

use super::slope::Slope;
use crate::units::{Instant, SenderClock, Span};

/// A window of successive reports, represented by the report with the minimum delay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Time when the first report of the window arrived.
    opened: Instant<SenderClock>,
    /// Time when the report with the window's minimum delay arrived.
    pub(super) at: Instant<SenderClock>,
    /// The minimum delay of the window: arrival time by the receiver's clock minus sending time by the sender's clock.
    /// The drift of the clocks is not subtracted. Later clock steps are added to this value.
    pub(super) shown: Span,
    /// Minimum round-trip time of the window's reports; `None` if no report had a valid one.
    pub(super) round_trip: Option<Span>,
    /// Number of times that a clock was set before the report with the minimum delay.
    epoch: u32,
}

impl Window {
    /// Returns the vertical distance of this window's minimum delay above a line in a plot of delay over time. The line
    /// goes through the minimum delay of `other` and has the slope `slope`.
    pub(super) fn above(&self, other: &Self, slope: Slope) -> Span {
        self.shown - other.shown - slope.over(self.at - other.at)
    }

    /// Whether this window and `other` can show the drift. They can if they have the same clock epoch, different times
    /// and similar round trips.
    pub(super) fn compares_with(&self, other: &Self) -> bool {
        let (Some(mine), Some(others)) = (self.round_trip, other.round_trip) else { return false };
        self.epoch == other.epoch && self.at != other.at && (mine - others).abs() <= Windows::SAME_ROUND_TRIP
    }

    /// Moves this window by `by` in time. Its minimum delay changes by the rise of a line with slope `slope` over the
    /// time `by`.
    pub(super) fn move_along(&mut self, by: Span, slope: Slope) {
        self.opened = self.opened + by;
        self.at = self.at + by;
        self.shown = self.shown + slope.over(by);
    }

    /// Merges `other` into this window. The lower of the two minimum delays, compared along `slope`, is kept.
    fn join(&mut self, other: &Self, slope: Slope) {
        if other.above(self, slope) < Span::ZERO {
            (self.at, self.shown, self.epoch) = (other.at, other.shown, other.epoch);
        }
        self.round_trip = match (self.round_trip, other.round_trip) {
            (Some(mine), Some(others)) => Some(mine.min(others)),
            (mine, others) => mine.or(others),
        };
    }
}

/// The minimum delays of successive windows of reports, the oldest first.
///
/// At first, a window covers one report. When [`Windows::MOST`] windows are in use, neighbouring windows are merged in
/// pairs, and a new window covers twice as many reports as before. Therefore the memory is limited. Minima older than
/// [`Windows::HORIZON`] are dropped.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    kept: VecDeque<Window>,
    /// Number of reports in the newest window.
    filled: u32,
    /// Maximum number of reports per window.
    per_window: u32,
    epoch: u32,
}

impl Windows {
    /// Maximum number of windows (our choice). With twice as many windows of half the length, the estimate of the
    /// clocks' drift would be four times as expensive.
    pub(super) const MOST: usize = 64;
    /// Age at which a minimum is dropped. Our choice: if the path becomes longer, the base delay follows within this
    /// time. With a larger value, the estimate of the clock drift is more precise.
    pub(super) const HORIZON: Span = Span::from_secs(600);
    /// Maximum duration of a window of reports. Our choice: about thirty windows of this duration cover `HORIZON`.
    /// Without the limit, windows would become longer if reports became rarer.
    const LONGEST: Span = Span::from_secs(20);
    /// Maximum difference between the round trips of two windows (groups of reports) whose minimum delays may be
    /// compared. Our choice: more than the jitter of most wired paths. An undetected change of the path by 5 ms is an
    /// error of 8 ppm over `HORIZON`.
    const SAME_ROUND_TRIP: Span = Span::from_millis(5);

    pub(super) fn new() -> Self {
        Self { kept: VecDeque::with_capacity(Self::MOST), filled: 0, per_window: 1, epoch: 0 }
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.kept.capacity()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Window> {
        self.kept.iter()
    }

    /// Returns the time between the first and the last point.
    pub(super) fn horizon(&self) -> Span {
        match (self.kept.front(), self.kept.back()) {
            (Some(first), Some(last)) => last.at - first.at,
            _ => Span::ZERO,
        }
    }

    /// Returns the minimum round-trip time in the reports of all kept windows.
    pub(super) fn least_round_trip(&self) -> Option<Span> {
        self.kept.iter().filter_map(|window| window.round_trip).min()
    }

    /// Adds a report. `slope` is the drift of the clocks. When the delays of two reports are compared, the effect of
    /// the drift between these reports is subtracted.
    pub(super) fn push(&mut self, now: Instant<SenderClock>, shown: Span, round_trip: Option<Span>, slope: Slope) {
        self.kept.retain(|window| now - window.at <= Self::HORIZON);
        let report = Window { opened: now, at: now, shown, round_trip, epoch: self.epoch };
        if let Some(newest) = self.kept.back_mut()
            && newest.epoch == self.epoch
            && self.filled < self.per_window
            && now - newest.opened < Self::LONGEST
        {
            newest.join(&report, slope);
            self.filled += 1;
            return;
        }
        if self.kept.len() >= Self::MOST {
            self.join_pairs(slope);
        }
        self.kept.push_back(report);
        self.filled = 1;
    }

    fn join_pairs(&mut self, slope: Slope) {
        let half = self.kept.len() / 2;
        for index in 0..half {
            let (Some(&first), Some(second)) = (self.kept.get(2 * index), self.kept.get(2 * index + 1)) else { break };
            let mut joined = first;
            joined.join(second, slope);
            if let Some(slot) = self.kept.get_mut(index) {
                *slot = joined;
            }
        }
        self.kept.truncate(half);
        self.per_window = self.per_window.saturating_mul(2);
    }

    /// Applies a clock step: all stored points move by `by`, and later points belong to a new epoch.
    pub(super) fn step(&mut self, by: Span) {
        self.kept.iter_mut().for_each(|window| window.shown = window.shown + by);
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// Takes back the last clock step. `by` is subtracted from the minimum delays before the step, and the epochs
    /// before and after the step become one epoch again.
    pub(super) fn take_back(&mut self, by: Span) {
        let before = self.epoch.wrapping_sub(1);
        for window in &mut self.kept {
            if window.epoch == self.epoch {
                window.epoch = before;
            } else {
                window.shown = window.shown - by;
            }
        }
        self.epoch = before;
    }

    /// Adjusts all windows after a step of the sender's clock. Adds `by`, the size of the step, to the times of the
    /// windows. Adds the rise of a line with slope `slope` over the time `by` to their minimum delays.
    pub(super) fn move_times(&mut self, by: Span, slope: Slope) {
        self.kept.iter_mut().for_each(|window| window.move_along(by, slope));
    }
}
