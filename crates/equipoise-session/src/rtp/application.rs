use equipoise::units::{Instant, SenderClock, Span};

/// Detects whether the application uses the full rate that it is allowed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Application {
    /// When the pacer began, or will begin, to wait for data from the application; `None` while data is queued.
    waits_since: Option<Instant<SenderClock>>,
    /// `waited` is the pacer's total waiting time so far. `ended` is the total waiting time at the end of the last
    /// interval.
    waited: Span,
    ended: Span,
}

impl Application {
    /// An interval is app-limited if the application used less than this share of the allowed rate. Our choice: the
    /// output of encoders follows their target rate to within a few percent, so at a lower share the application lacks
    /// data.
    const LIMITED: f64 = 0.9;

    /// Records that the pacer has nothing to send from `from` on.
    pub(crate) fn waits(&mut self, from: Instant<SenderClock>) {
        self.waits_since.get_or_insert(from);
    }

    /// Records that the pacer has something to send from `now` on. Returns whether it had nothing before.
    pub(crate) fn goes_on(&mut self, now: Instant<SenderClock>) -> bool {
        let since = self.waits_since.take();
        if let Some(since) = since {
            self.waited = self.waited + (now - since).max(Span::ZERO);
        }
        since.is_some()
    }

    /// Records that the pacer sends a retransmission from `now` to `until`. In this time, the pacer counts as waiting
    /// for the application, because reports do not prove that a retransmission arrived.
    pub(crate) fn lends(&mut self, now: Instant<SenderClock>, until: Instant<SenderClock>) {
        let waits = self.goes_on(now);
        self.waited = self.waited + (until - now).max(Span::ZERO);
        if waits {
            self.waits(until);
        }
    }

    /// Returns how long the pacer has waited for the application in total, from the start of the session until `now`.
    pub(crate) fn waited_by(&mut self, now: Instant<SenderClock>) -> Span {
        if let Some(since) = self.waits_since {
            self.goes_on(now);
            self.waits(since.max(now));
        }
        self.waited
    }

    /// Ends an interval of length `interval` at `now`, and returns whether the interval was app-limited. Packets are
    /// paced at `pacing` times the rate that the application may use.
    pub(crate) fn ends(&mut self, now: Instant<SenderClock>, interval: Span, pacing: f64) -> bool {
        let waited = self.waited_by(now);
        let before = core::mem::replace(&mut self.ended, waited);
        Self::limits(interval, waited - before, pacing)
    }

    /// Whether a period of length `time` was app-limited. For the part `waited` of this time, the pacer sent no new
    /// media. In the rest of this time, the pacer sent at `pacing` times the rate that the application may use.
    pub(crate) fn limits(time: Span, waited: Span, pacing: f64) -> bool {
        (time - waited).as_secs_f64() * pacing < time.as_secs_f64() * Self::LIMITED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Span = Span::from_secs(1);

    /// Whether an interval of one second is app-limited if the pacer waits from `from` milliseconds on.
    fn is_limited(from: i64, pacing: f64) -> bool {
        let mut application = Application::default();
        application.waits(Instant::ZERO + Span::from_millis(from));
        application.ends(Instant::ZERO + SECOND, SECOND, pacing)
    }

    #[test]
    fn an_application_that_leaves_a_tenth_of_its_rate_limits_the_interval() {
        assert_eq!([950, 850].map(|from| is_limited(from, 1.0)), [false, true]);
    }

    /// If this test fails, a session that sends its frames in bursts never raises its rate.
    #[test]
    fn pauses_between_bursts_are_no_limit() {
        assert_eq!([650, 550].map(|from| is_limited(from, 1.5)), [false, true]);
    }
}
