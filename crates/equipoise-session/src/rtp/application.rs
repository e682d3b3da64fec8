use equipoise::units::{Instant, SenderClock, Span};

/// Whether the application uses its rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Application {
    /// From when on the pacer waits for the application; may lie ahead.
    waits_since: Option<Instant<SenderClock>>,
    /// How long it has waited so far, and how long it had at the end of the last interval.
    waited: Span,
    ended: Span,
}

impl Application {
    /// The interval is application-limited if less than this share of the rate was used. Ours: encoders keep to a rate within some
    /// percent.
    const LIMITED: f64 = 0.9;

    /// The pacer has nothing to send from then on.
    pub(crate) fn waits(&mut self, from: Instant<SenderClock>) {
        self.waits_since.get_or_insert(from);
    }

    /// The pacer has something to send from `now` on. Gives whether it had not before.
    pub(crate) fn goes_on(&mut self, now: Instant<SenderClock>) -> bool {
        let since = self.waits_since.take();
        if let Some(since) = since {
            self.waited = self.waited + (now - since).max(Span::ZERO);
        }
        since.is_some()
    }

    /// From `now` to `until` the pacer sends what is none of the application's use of the rate, as no answer proves that it came.
    pub(crate) fn lends(&mut self, now: Instant<SenderClock>, until: Instant<SenderClock>) {
        let waits = self.goes_on(now);
        self.waited = self.waited + (until - now).max(Span::ZERO);
        if waits {
            self.waits(until);
        }
    }

    /// How long the pacer has waited for it by `now`, since the session began.
    pub(crate) fn waited_by(&mut self, now: Instant<SenderClock>) -> Span {
        if let Some(since) = self.waits_since {
            self.goes_on(now);
            self.waits(since.max(now));
        }
        self.waited
    }

    /// Whether the interval of this length, which ends at `now`, was limited by the application. The pacer lets packets go at
    /// `pacing` times the rate that the application may use.
    pub(crate) fn ends(&mut self, now: Instant<SenderClock>, interval: Span, pacing: f64) -> bool {
        let waited = self.waited_by(now);
        let before = core::mem::replace(&mut self.ended, waited);
        Self::limits(interval, waited - before, pacing)
    }

    /// Whether a time was limited by the application in which the pacer waited so long for it.
    pub(crate) fn limits(time: Span, waited: Span, pacing: f64) -> bool {
        (time - waited).as_secs_f64() * pacing < time.as_secs_f64() * Self::LIMITED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Span = Span::from_secs(1);

    /// Whether an interval of a second is limited in which the pacer waits from so many milliseconds on.
    fn is_limited(from: i64, pacing: f64) -> bool {
        let mut application = Application::default();
        application.waits(Instant::ZERO + Span::from_millis(from));
        application.ends(Instant::ZERO + SECOND, SECOND, pacing)
    }

    #[test]
    fn an_application_that_leaves_a_tenth_of_its_rate_limits_the_interval() {
        assert_eq!([950, 850].map(|from| is_limited(from, 1.0)), [false, true]);
    }

    /// If it fails, no session whose frames leave in bursts ever raises its rate.
    #[test]
    fn pauses_between_bursts_are_no_limit() {
        assert_eq!([650, 550].map(|from| is_limited(from, 1.5)), [false, true]);
    }
}
