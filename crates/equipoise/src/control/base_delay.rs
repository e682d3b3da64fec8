use crate::units::{Instant, SenderClock, Span};

/// The minimum one-way delay of the last ten minutes, as shown by the receiver's clock at arrival minus the sender's
/// clock at departure. The part of a delay above this minimum is queueing delay.
///
/// Source: RFC 6817, Sec. 2.4, 2.5: the minimum of each minute is kept, and the base is the minimum over the last
/// `BASE_HISTORY` minutes. Therefore a longer route, or a clock drift that lengthens the measured delay, raises the
/// base only after `BASE_HISTORY` minutes.
///
/// What the source leaves open is our choice: a minute begins with its first sample. After ten minutes without a sample
/// the base is unknown, and the next sample becomes the base. If the sender's clock is set back, the current minute
/// begins again. The two clocks need not agree.
#[derive(Clone, Copy, Debug)]
pub(super) struct BaseDelay {
    /// The minimum delay of each minute, the current minute first; [`Span::MAX`] for a minute without a sample.
    minutes: [Span; BASE_HISTORY],
    /// Time when the current minute began.
    began: Instant<SenderClock>,
    /// The minimum delay of all these minutes.
    least: Span,
}

/// Number of minutes that are remembered (RFC 6817, Sec. 2.5). With a larger value, a queue may last longer before it
/// is mistaken for the base delay, but a longer route also takes longer to show in the base delay.
const BASE_HISTORY: usize = 10;
const MINUTE: Span = Span::from_secs(60);

impl BaseDelay {
    /// Creates a base delay without samples.
    pub(super) const fn new() -> Self {
        Self { minutes: [Span::MAX; BASE_HISTORY], began: Instant::ZERO, least: Span::MAX }
    }

    /// Records `shown`, the receiver's clock at arrival minus the sender's clock at departure. Returns by how much
    /// `shown` exceeds the base delay, which is zero or more.
    pub(super) fn queueing(&mut self, now: Instant<SenderClock>, shown: Span) -> Span {
        self.turn(now);
        self.minutes[0] = self.minutes[0].min(shown);
        self.least = self.least.min(shown);
        shown - self.least
    }

    /// Starts a new entry of `minutes` for each minute that has passed.
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

    /// If this test fails, the additional delay of a longer route counts as queueing for the rest of the session.
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
