use crate::units::Span;

/// How the segments of a measurement stream are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan {
    /// Number of segments at the start of the stream that leave back to back.
    pub(super) burst: usize,
    /// Number of all segments of the stream, including the burst.
    pub(super) total: usize,
    /// First and last interval between segments after the burst.
    pub(super) intervals: (Span, Span),
}

/// Maximum number of segments in a measurement stream (our choice). Longer streams average out more noise of the cross
/// traffic, but more segments must be held back for them.
pub(super) const MOST_SEGMENTS: usize = 40;
/// Minimum number of segments in a measurement stream (our choice): a burst of four, and after it four segments, which
/// yield at least two acknowledgements.
const LEAST_SEGMENTS: usize = 8;
/// Part of the window that a measurement stream takes. Our choice: with a larger part, the measurement is more precise,
/// but the connection is delayed more.
const WINDOW_SHARE: (u64, u64) = (2, 5);
/// A stream of at most sixteen segments may take this part of the window (our choice). Otherwise a connection with a
/// small window could not measure at all.
const SMALL_SHARE: (u64, u64) = (3, 4);
const SMALL_SEGMENTS: u64 = 16;
/// Minimum and maximum number of segments in the burst (our choice). If each acknowledgement covers two segments,
/// four segments yield two acknowledgements, so one interval between acknowledgements can be measured. A burst of eight
/// segments is smaller than the burst of a new connection, which may send ten segments at once.
const LEAST_BURST: usize = 4;
const MOST_BURST: usize = 8;
/// The burst has 1/`BURST_SHARE` of the stream's segments, but at least `LEAST_BURST` and at most `MOST_BURST` (our
/// choice).
const BURST_SHARE: usize = 5;
/// While segments are held back before a measurement stream, acknowledgements of earlier segments arrive. Their rate
/// counts as known only if they acknowledge at least this number of segments (our choice).
const LEAST_ARRIVED: u64 = 4;

impl Plan {
    /// Returns a burst, which measures the capacity; `None` if the window is too small.
    pub(super) fn burst(window: u64) -> Option<Self> {
        let total = segments(window).min(MOST_BURST);
        (total >= LEAST_BURST).then_some(Self { burst: total, total, intervals: (Span::ZERO, Span::ZERO) })
    }

    /// Returns a stream that covers the rates from `low` to `high`, in segments per nanosecond; `None` if the window is
    /// too small.
    pub(super) fn spaced(window: u64, (low, high): (f64, f64)) -> Option<Self> {
        let total = segments(window);
        if total < LEAST_SEGMENTS {
            return None;
        }
        let burst = (total / BURST_SHARE).clamp(LEAST_BURST, MOST_BURST);
        // The burst takes no time. Longer intervals after the burst compensate for this, so that the mean rate of the
        // stream is as planned.
        let stretch = (total - 1) as f64 / (total - burst) as f64;
        let interval = |rate: f64| Span::from_nanos((stretch / rate) as i64);
        Some(Self { burst, total, intervals: (interval(low), interval(high)) })
    }

    /// Whether segments follow the burst.
    pub(super) const fn is_spaced(&self) -> bool {
        self.total > self.burst
    }

    /// Returns the time from segment `index - 1` to segment `index`.
    pub(super) fn interval_before(&self, index: usize) -> Span {
        let Some(step) = index.checked_sub(self.burst) else { return Span::ZERO };
        let (from, to) = (self.intervals.0.as_nanos(), self.intervals.1.as_nanos());
        let steps = self.total.saturating_sub(self.burst + 1).max(1);
        Span::from_nanos(from - (from - to) / steps as i64 * step.min(steps) as i64)
    }

    /// Whether all segments of the stream can be sent as planned. The window has room for `room` segments now.
    /// Acknowledgements must make room for the other segments while the stream is sent. The assumed rate of
    /// acknowledgements is `arrived` segments in the time `held`, as measured while sending was on hold.
    pub(super) fn suffices(&self, room: u64, arrived: u64, held: Span) -> bool {
        let lack = (self.total as u64).saturating_sub(room);
        if lack == 0 {
            return true;
        }
        if room < self.burst as u64 || arrived < LEAST_ARRIVED {
            return false;
        }
        let takes = self.intervals.1.as_nanos() as f64 * (self.total - self.burst) as f64;
        lack as f64 * held.as_nanos() as f64 <= arrived as f64 * takes
    }
}

/// Returns the number of segments of a measurement stream if the window has `window` segments.
fn segments(window: u64) -> usize {
    let share = |(part, whole): (u64, u64)| window.saturating_mul(part) / whole;
    let small = share(SMALL_SHARE).min(SMALL_SEGMENTS);
    share(WINDOW_SHARE).max(small).min(MOST_SEGMENTS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_as_a_whole_has_the_middle_of_its_rates() {
        let plan = Plan::spaced(100, (0.9e-5, 1.1e-5)).unwrap();
        let takes: i64 = (1..plan.total).map(|index| plan.interval_before(index).as_nanos()).sum();
        let rate = (plan.total - 1) as f64 / takes as f64;
        assert!((rate / 1e-5 - 1.0).abs() < 0.02, "{rate}");
        assert_eq!(plan.interval_before(plan.burst - 1), Span::ZERO, "the burst leaves at once");
        assert!(plan.interval_before(plan.burst) > plan.interval_before(plan.total - 1), "the rate rises");
    }

    #[test]
    fn a_small_window_has_no_stream_and_a_large_one_is_not_taken_whole() {
        assert_eq!(Plan::spaced(10, (1e-5, 1e-5)), None);
        assert_eq!(Plan::spaced(11, (1e-5, 1e-5)).map(|plan| plan.total), Some(8));
        assert_eq!(Plan::spaced(u64::MAX, (1e-5, 1e-5)).map(|plan| plan.total), Some(MOST_SEGMENTS));
        assert_eq!(Plan::burst(5), None);
    }

    #[test]
    fn a_stream_begins_when_what_lacks_comes_in_while_it_is_sent() {
        // The stream has a burst of 8 segments, and then 32 segments at intervals of 1 ms. Before the stream, ten
        // segments were acknowledged in 10 ms. If acknowledgements continue at this rate, they allow 32 new segments
        // during the 32 ms after the burst.
        let plan = Plan { burst: 8, total: 40, intervals: (Span::from_millis(1), Span::from_millis(1)) };
        let held = Span::from_millis(10);
        assert!(plan.suffices(8, 10, held));
        assert!(!plan.suffices(8, 5, held), "half as fast: sixteen come, 32 lack");
        assert!(plan.suffices(24, 5, held));
        assert!(!plan.suffices(7, 100, held), "the burst has to be there");
    }
}
