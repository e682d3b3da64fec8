use equipoise::units::{Instant, SenderClock, Span};

/// Whether the application uses its rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Application {
    /// From when on the pacer waits for the application; may lie ahead.
    waits_since: Option<Instant<SenderClock>>,
    /// How long it has waited in this interval.
    waited: Span,
}

impl Application {
    /// A pacer that waits for a larger part of an interval than one in so many is one that the application does not fill.
    /// Ours: encoders keep to a rate within some percent.
    const LIMITED: i64 = 10;

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

    /// Whether the interval of this length, which ends at `now`, was limited by the application.
    pub(crate) fn ends(&mut self, now: Instant<SenderClock>, interval: Span) -> bool {
        if let Some(since) = self.waits_since {
            self.goes_on(now);
            self.waits(since.max(now));
        }
        let waited = core::mem::take(&mut self.waited);
        waited * Self::LIMITED > interval
    }
}
