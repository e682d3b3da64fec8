use crate::units::{Instant, SenderClock, Size};

/// Detects that the application sends much less than the allowed rate, so that the delivery rate says nothing about the
/// path's capacity.
///
/// A send budget grows at 65 % of the estimated rate and shrinks by the data sent. Its maximum is the growth in 0.5 s.
/// If more than 80 % of the maximum is left, the flow becomes app-limited ("application-limited region"). If less than
/// 50 % is left, the flow is no longer app-limited.
///
/// Source: libwebrtc, `alr_detector` and `interval_budget`.
#[derive(Clone, Copy, Debug)]
pub(super) struct AppLimit {
    budget_bps: f64,
    left_bits: f64,
    last: Option<Instant<SenderClock>>,
    since: Option<Instant<SenderClock>>,
}

/// The send budget grows at this share of the estimated rate. A flow that always sends more than this share
/// is not app-limited (libwebrtc, `alr_detector`).
const USED: f64 = 0.65;
/// Time in which the send budget grows from zero to its maximum, in s. The minimum of the budget is the negative of the
/// maximum (libwebrtc, `interval_budget`).
const WINDOW_S: f64 = 0.5;
/// The flow becomes app-limited if the rest of its send budget is above this share of the maximum budget (libwebrtc,
/// `alr_detector`).
const BEGINS: f64 = 0.8;
/// The flow is no longer app-limited if the rest of its send budget is below this share of the maximum budget
/// (libwebrtc, `alr_detector`).
const ENDS: f64 = 0.5;

impl AppLimit {
    pub(super) fn new(bps: f64) -> Self {
        Self { budget_bps: USED * bps, left_bits: 0.0, last: None, since: None }
    }

    /// Returns the time since which the flow is app-limited; `None` if the flow is not app-limited.
    pub(super) const fn since(&self) -> Option<Instant<SenderClock>> {
        self.since
    }

    /// Sets a new estimate of the rate, in bit/s.
    pub(super) fn set_estimate(&mut self, bps: f64) {
        self.budget_bps = USED * bps;
        self.left_bits = self.left_bits.clamp(-self.most(), self.most());
    }

    fn most(&self) -> f64 {
        self.budget_bps * WINDOW_S
    }

    /// Records a packet that was sent. The first packet only sets the start time.
    pub(super) fn on_sent(&mut self, now: Instant<SenderClock>, size: Size) {
        let Some(last) = self.last.replace(now) else { return };
        let most = self.most();
        let left = (self.left_bits - size.as_bits() as f64).max(-most);
        self.left_bits = (left + self.budget_bps * (now - last).as_secs_f64().max(0.0)).min(most);
        let share = if most > 0.0 { self.left_bits / most } else { 0.0 };
        if share > BEGINS {
            self.since.get_or_insert(now);
        } else if share < ENDS {
            self.since = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends a packet every 10 ms from the time `from` to the time `until`, both in ms, at a rate of `share` Mbit/s.
    fn send(limit: &mut AppLimit, from: u64, until: u64, share: f64) {
        let bits = share * 1e6 * 0.01;
        (from..until).step_by(10).for_each(|millis| {
            limit.on_sent(Instant::from_nanos(millis * 1_000_000), Size::from_bytes((bits / 8.0) as u64));
        });
    }

    /// If the application sends at 20 % of the estimated rate, the budget grows at 65 % - 20 % = 45 % of this rate. The
    /// maximum of the budget is 65 % of this rate times 0.5 s. So the budget reaches 80 % of its maximum after 0.4 s ·
    /// 65/45 = 0.58 s. From then on, the flow is app-limited.
    #[test]
    fn an_application_that_sends_little_is_found_when_the_budget_says() {
        let mut limit = AppLimit::new(1e6);
        send(&mut limit, 0, 570, 0.2);
        assert_eq!(limit.since(), None);
        send(&mut limit, 570, 600, 0.2);
        assert!(limit.since().is_some());
        // If the application sends at the full estimated rate, the budget shrinks at 100 % - 65 % = 35 % of this rate.
        // The maximum of the budget is the data of 0.5 s at 65 % of the rate. So the budget falls from 80 % to 50 % of
        // the maximum in 0.3 · 0.5 s · 65/35 = 0.28 s.
        send(&mut limit, 600, 700, 1.0);
        assert!(limit.since().is_some());
        send(&mut limit, 700, 1200, 1.0);
        assert_eq!(limit.since(), None);
    }

    #[test]
    fn an_application_that_uses_70_percent_is_never_limited() {
        let mut limit = AppLimit::new(1e6);
        send(&mut limit, 0, 60_000, 0.7);
        assert_eq!(limit.since(), None);
    }

    #[test]
    fn a_lower_estimate_shrinks_the_budget() {
        let mut limit = AppLimit::new(1e6);
        send(&mut limit, 0, 2000, 0.1);
        assert!(limit.since().is_some());
        limit.set_estimate(100e3);
        assert!(limit.left_bits <= 0.65 * 100e3 * 0.5 + 1e-9);
        send(&mut limit, 2000, 3000, 0.1);
        assert_eq!(limit.since(), None);
    }
}
