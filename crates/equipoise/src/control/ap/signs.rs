use crate::control::IntervalSummary;
use crate::units::{Instant, SenderClock, Span};

/// What reports tell of a path beside the delay's statistics: how much is lost, and how long the round trip is beyond the
/// least.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signs {
    last_report: Option<Instant<SenderClock>>,
    /// Time between the last two reports, in seconds.
    elapsed_s: f64,
    /// Packets sent and lost, those of the past counting less and less.
    sent: f64,
    lost: f64,
    round_trip: Option<Span>,
    /// The least round trip of the present window and of the one before, and when the present one began.
    least: (Option<Span>, Option<Span>),
    window_began: Option<Instant<SenderClock>>,
}

/// Losses weigh half as much after so many seconds. Ours: long enough to tell a rate of losses from a single one.
const HALF_LIFE_S: f64 = 1.0;
/// Share of losses from which on they are taken for a full path, where a queue is seen and where none is. Ours.
const LOSSY: f64 = 0.02;
const LOSSY_ALONE: f64 = 0.1;
/// A round trip that is so much longer than the least is seen as a queue.
const QUEUE: Span = Span::from_millis(5);
/// So many packets at least, as one lost of few is a large share, too.
const LOSSES: f64 = 3.0;
/// A path's least round trip is forgotten after one to two of these.
const WINDOW: Span = Span::from_secs(30);

impl Signs {
    /// A report came.
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

    /// Whether more is lost than chance loses.
    pub(super) fn are_of_a_full_path(&self) -> bool {
        let queue = self.round_trip.zip(self.least_round_trip()).map_or(Span::ZERO, |(now, least)| now - least);
        let share = if queue > QUEUE { LOSSY } else { LOSSY_ALONE };
        self.lost >= LOSSES && self.lost >= share * self.sent
    }

    /// The losses are answered.
    pub(super) const fn forget_losses(&mut self) {
        (self.sent, self.lost) = (0.0, 0.0);
    }

    /// Time between the last two reports, in seconds; 0 before there are two.
    pub(super) const fn elapsed_s(&self) -> f64 {
        self.elapsed_s
    }

    /// Of the last report.
    pub(super) const fn round_trip(&self) -> Option<Span> {
        self.round_trip
    }

    /// The least round trip of late.
    pub(super) fn least_round_trip(&self) -> Option<Span> {
        self.least.0.into_iter().chain(self.least.1).min()
    }
}
