use crate::units::{Instant, Rate, SenderClock, Size, Span};

/// Estimates the rate that an application can use, from the data that it sends while it uses less than the allowed
/// rate.
///
/// Our own method: RFC 8699, Sec. 5.3 needs a desired rate, but a session only knows whether the application left a
/// part of the rate unused. If a part was unused for most of the last half second, the desired rate is 1.25 times the
/// application's sending rate. An application that needs more therefore gets more within the next second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    /// `now` is the data sent in the current second, and `before` the data sent in the previous second.
    now: Size,
    before: Option<Size>,
    since: Option<Instant<SenderClock>>,
    /// `limited` is the smoothed share of time in which the flow is app-limited, 0 to 1. `told` is the time of the last
    /// update of `limited`.
    limited: f64,
    told: Option<Instant<SenderClock>>,
}

const WINDOW: Span = Span::from_secs(1);
const SMOOTHED_S: f64 = 0.5;
const MOST: f64 = 0.5;
const HEADROOM: f64 = 1.25;

impl Demand {
    pub(super) const fn new() -> Self {
        Self { now: Size::ZERO, before: None, since: None, limited: 0.0, told: None }
    }

    /// Records a packet that was sent.
    pub(super) fn on_sent(&mut self, now: Instant<SenderClock>, size: Size) {
        let since = *self.since.get_or_insert(now);
        let elapsed = now - since;
        if elapsed >= WINDOW {
            let is_next = elapsed < WINDOW * 2;
            self.before = is_next.then_some(self.now);
            (self.now, self.since) = (Size::ZERO, Some(if is_next { since + WINDOW } else { now }));
        }
        self.now = self.now + size;
    }

    /// Records whether the flow was app-limited before the feedback at `now`.
    pub(super) fn on_feedback(&mut self, now: Instant<SenderClock>, is_limited: bool) {
        let elapsed_s = self.told.replace(now).map_or(0.0, |before| (now - before).as_secs_f64().max(0.0));
        let kept = libm::exp(-elapsed_s / SMOOTHED_S);
        self.limited = kept * self.limited + (1.0 - kept) * f64::from(u8::from(is_limited));
    }

    /// Returns the rate that the application can use; `None` if the application can use any rate.
    pub(super) fn desired(&self) -> Option<Rate> {
        let sent = self.before.filter(|_| self.limited > MOST)?.max(self.now);
        Rate::from_bps_f64(HEADROOM * sent.over(WINDOW)?.as_bps_f64())
    }
}
