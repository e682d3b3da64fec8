use equipoise::control::{BoxedController, Feedback, IntervalSummary, Needs, Snapshot};
use equipoise::units::{Instant, Rate, SenderClock};

use super::SessionError;

/// A session's controller, with the session's own answer to silence around it.
///
/// Feedback never raises the rate above what the controller allows; silence lowers it, whatever the controller does
/// (RFC 8083, Sec. 4.3). An algorithm that needs no feedback is not slowed by silence: the circuit breaker ends it.
#[derive(Debug)]
pub(crate) struct Governor {
    controller: BoxedController,
    rate: Rate,
    /// The most that is sent until feedback comes again.
    cap: Option<Rate>,
}

impl Governor {
    /// A governor of `controller` in a session that provides `provided`.
    ///
    /// # Errors
    /// [`SessionError::Needs`] for what the controller needs beyond that, and [`SessionError::NoRate`].
    pub(crate) fn new(controller: BoxedController, provided: Needs) -> Result<Self, SessionError> {
        controller.needs().met_by(provided)?;
        let rate = controller.allowance().rate.ok_or(SessionError::NoRate)?;
        Ok(Self { controller, rate, cap: None })
    }

    /// The rate from now on.
    pub(crate) const fn rate(&self) -> Rate {
        self.rate
    }

    /// Whether packets are to be sent in pairs.
    pub(crate) fn wants_packet_pairs(&self) -> bool {
        self.controller.needs().contains(Needs::PACKET_PAIRS)
    }

    /// What the controller says of its last decision.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.controller.snapshot()
    }

    /// A report came.
    pub(crate) fn on_interval(&mut self, now: Instant<SenderClock>, summary: IntervalSummary) {
        self.cap = None;
        self.controller.on_feedback(now, &Feedback::Interval(summary));
        self.decide();
    }

    /// So many reports are missing in a row.
    pub(crate) fn on_silence(&mut self, now: Instant<SenderClock>, reports: u64) {
        self.controller.on_feedback(now, &Feedback::Silent { reports });
        if self.controller.needs() != Needs::NOTHING {
            self.cap = Some(self.rate.halved().max(self.controller.lowest_rate()));
        }
        self.decide();
    }

    fn decide(&mut self) {
        let allowed = self.controller.allowance().rate.unwrap_or(self.rate);
        self.rate = self.cap.map_or(allowed, |cap| allowed.min(cap));
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;

    use equipoise::control::{Allowance, Cbr, Controller, find};
    use equipoise::units::Size;

    use super::*;

    /// The smallest controller there can be: it does not know of silence.
    #[derive(Debug)]
    struct Deaf;

    impl Controller for Deaf {
        fn on_feedback(&mut self, _now: Instant<SenderClock>, _feedback: &Feedback<'_>) {}

        fn allowance(&self) -> Allowance {
            Allowance::rate(Rate::from_bps(8_000_000))
        }
    }

    /// If it fails, a controller of somebody else's sends on at its rate into a path that is gone.
    #[test]
    fn silence_halves_a_controller_that_does_not_answer_it_until_feedback_comes() {
        let mut governor = Governor::new(Box::new(Deaf), Needs::INTERVALS).expect("its needs are met");
        let rates = [(); 15].map(|()| {
            governor.on_silence(Instant::ZERO, 3);
            governor.rate().as_bps()
        });
        assert_eq!(rates[..3], [4_000_000, 2_000_000, 1_000_000]);
        assert_eq!(rates[14], 1_000, "the lowest rate");
        governor.on_interval(Instant::ZERO, IntervalSummary::unmeasured());
        assert_eq!(governor.rate().as_bps(), 8_000_000);
    }

    #[test]
    fn a_fixed_rate_is_left_to_the_circuit_breaker() {
        let rate = Rate::from_bps(8_000_000);
        let mut governor = Governor::new(Box::new(Cbr::new(rate)), Needs::INTERVALS).expect("it needs nothing");
        governor.on_silence(Instant::ZERO, 3);
        assert_eq!(governor.rate(), rate);
    }

    /// What breaks otherwise: TQ without the occupancy that it goes by sends at its highest rate for ever.
    #[test]
    fn a_controller_whose_needs_are_not_met_is_refused_and_the_lack_is_named() {
        let entry = find("tq").expect("in the catalogue");
        let tq = || entry.build(&entry.parse(&[]).expect("defaults"), Size::from_bytes(1000)).expect("right");
        let refused = Governor::new(tq(), Needs::INTERVALS).expect_err("there is no playout buffer");
        assert!(matches!(refused, SessionError::Needs(unmet) if unmet.missing == Needs::PLAYOUT), "{refused}");
        assert!(Governor::new(tq(), Needs::INTERVALS.and(Needs::PLAYOUT)).is_ok());
    }
}
