use crate::control::IntervalSummary;
use crate::units::{Instant, SenderClock, Span};

/// Detects a full path from lost packets, and from the amount by which the round-trip time exceeds its minimum. This
/// structure does not use the one-way delay.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signs {
    last_report: Option<Instant<SenderClock>>,
    /// Time between the last two reports, in seconds.
    elapsed_s: f64,
    /// `sent` and `lost` are the numbers of packets sent and lost, with weights that decay over time.
    sent: f64,
    lost: f64,
    round_trip: Option<Span>,
    /// The minimum round-trip time of the current window, and the minimum round-trip time of the previous window.
    least: (Option<Span>, Option<Span>),
    /// Start of the current window.
    window_began: Option<Instant<SenderClock>>,
}

/// Half-life of the weight of sent and lost packets, in seconds. The value is our choice: long enough to distinguish a
/// loss rate from a single loss.
const HALF_LIFE_S: f64 = 1.0;
/// The path is considered full if the loss ratio is at least `LOSSY` and the round-trip time shows a queue, or if the
/// loss ratio is at least `LOSSY_ALONE`. The values are our choice.
const LOSSY: f64 = 0.02;
const LOSSY_ALONE: f64 = 0.1;
/// A round-trip time that exceeds the minimum by more than this shows a queue.
const QUEUE: Span = Span::from_millis(5);
/// If fewer packets than this were lost, the path is not considered full, even if the loss ratio is high. When few
/// packets were sent, one random loss is already a high loss ratio.
const LOSSES: f64 = 3.0;
/// A minimum round-trip time is forgotten after one to two times this duration.
const WINDOW: Span = Span::from_secs(30);

impl Signs {
    /// Records a report.
    pub(super) fn observe(&mut self, now: Instant<SenderClock>, interval: &IntervalSummary) {
        self.elapsed_s = self.last_report.replace(now).map_or(0.0, |last| (now - last).max(Span::ZERO).as_secs_f64());
        let kept = libm::exp2(-self.elapsed_s / HALF_LIFE_S);
        self.sent = self.sent * kept + interval.packets.unwrap_or(0) as f64;
        self.lost = self.lost * kept + interval.lost();
        self.round_trip = interval.round_trip.or(self.round_trip);
        if now - *self.window_began.get_or_insert(now) > WINDOW {
            self.window_began = Some(now);
            self.least = (None, self.least.0);
        }
        let least = self.least.0.into_iter().chain(interval.round_trip).min();
        self.least.0 = least;
    }

    /// Whether more packets were lost than chance explains. If so, the path is full.
    pub(super) fn are_of_a_full_path(&self) -> bool {
        let queue = self.round_trip.zip(self.least_round_trip()).map_or(Span::ZERO, |(now, least)| now - least);
        let share = if queue > QUEUE { LOSSY } else { LOSSY_ALONE };
        self.lost >= LOSSES && self.lost >= share * self.sent
    }

    /// Clears the counts of sent and lost packets, after a reaction to the losses.
    pub(super) const fn forget_losses(&mut self) {
        (self.sent, self.lost) = (0.0, 0.0);
    }

    /// Time between the last two reports, in seconds; 0 before the second report.
    pub(super) const fn elapsed_s(&self) -> f64 {
        self.elapsed_s
    }

    /// Returns the round-trip time of the last report that included one.
    pub(super) const fn round_trip(&self) -> Option<Span> {
        self.round_trip
    }

    /// Returns the minimum round-trip time in a window that ends now and is 30 s to 60 s long.
    pub(super) fn least_round_trip(&self) -> Option<Span> {
        self.least.0.into_iter().chain(self.least.1).min()
    }
}
