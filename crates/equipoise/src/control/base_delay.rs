use crate::units::{Instant, SenderClock, Span};

/// The least delay of the last ten minutes, as the two clocks show it: what is above it is queueing delay.
///
/// Source: RFC 6817, Sec. 2.4, 2.5: the least of each minute is kept, and the base is the least of the last `BASE_HISTORY`
/// minutes, so that a longer route or a drifting clock is followed in the end.
///
/// Readings: a minute begins with its first sample. After ten minutes without a sample the base is unknown, and the next
/// sample becomes the base. The sender's clock set back begins a minute anew. No clock has to agree with another.
#[derive(Clone, Copy, Debug)]
pub(super) struct BaseDelay {
    /// The least of each minute, the present one first; [`Span::MAX`] for a minute without a sample.
    minutes: [Span; BASE_HISTORY],
    /// When the present minute began.
    began: Instant<SenderClock>,
    /// The least of all.
    least: Span,
}

/// Minutes that are remembered; more bears longer queues, and follows a longer route later (RFC 6817, Sec. 2.5).
const BASE_HISTORY: usize = 10;
const MINUTE: Span = Span::from_secs(60);

impl BaseDelay {
    /// Nothing known yet.
    pub(super) const fn new() -> Self {
        Self { minutes: [Span::MAX; BASE_HISTORY], began: Instant::ZERO, least: Span::MAX }
    }

    /// Takes a delay as the clocks show it; returns what of it is above the base, never below zero.
    pub(super) fn queueing(&mut self, now: Instant<SenderClock>, shown: Span) -> Span {
        self.turn(now);
        self.minutes[0] = self.minutes[0].min(shown);
        self.least = self.least.min(shown);
        shown - self.least
    }

    /// Begins as many minutes as have passed.
    fn turn(&mut self, now: Instant<SenderClock>) {
        if self.least == Span::MAX || now < self.began {
            self.began = now;
            return;
        }
        let passed = ((now - self.began) / MINUTE).unwrap_or(0);
        if passed == 0 {
            return;
        }
        let forgotten = usize::try_from(passed).unwrap_or(BASE_HISTORY).min(BASE_HISTORY);
        self.minutes.rotate_right(forgotten);
        self.minutes[..forgotten].fill(Span::MAX);
        self.least = self.minutes.iter().fold(Span::MAX, |least, minute| least.min(*minute));
        self.began = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Instant<SenderClock> {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn what_is_above_the_least_is_queueing_whatever_the_clocks_show() {
        for offset in [-3_600_000, 0, 3_600_000] {
            let mut base = BaseDelay::new();
            let queueing = [20, 35, 15, 40].map(|ms| base.queueing(at(1), Span::from_millis(offset + ms)));
            assert_eq!(queueing, [0, 15, 0, 25].map(Span::from_millis));
        }
    }

    /// What breaks otherwise: after a change to a longer route a sender sees a queue for the rest of the session.
    #[test]
    fn a_longer_route_is_followed_after_ten_minutes_and_no_sooner() {
        let mut base = BaseDelay::new();
        base.queueing(at(0), Span::from_millis(20));
        for second in 1..600 {
            assert_eq!(base.queueing(at(second), Span::from_millis(50)), Span::from_millis(30), "at {second} s");
        }
        assert_eq!(base.queueing(at(660), Span::from_millis(50)), Span::ZERO);
    }

    #[test]
    fn a_silence_of_ten_minutes_forgets_the_base_and_a_clock_set_back_does_not() {
        let mut base = BaseDelay::new();
        base.queueing(at(1000), Span::from_millis(20));
        assert_eq!(base.queueing(at(900), Span::from_millis(25)), Span::from_millis(5));
        assert_eq!(base.queueing(at(1600), Span::from_millis(70)), Span::ZERO);
    }
}
