use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use equipoise::units::{Instant, Span};

/// Determines when the next full RTCP compound packet is due.
///
/// Source: RFC 3550, Sec. 6.2 and 6.3.1, for a session with two members. The interval is the minimum interval, 5 s,
/// multiplied by a random factor from 0.5 to 1.5 and divided by e − 3/2. Our reading: the minimum interval always
/// applies. The limit of 5 % of the session's bandwidth would need a longer interval only if that bandwidth were below
/// about 10 kbit/s.
#[derive(Clone, Debug)]
pub(crate) struct CompoundTimer<C> {
    due: Option<Instant<C>>,
    random: Pcg64Mcg,
}

impl<C> CompoundTimer<C> {
    /// Minimum interval (RFC 3550, Sec. 6.2).
    const MINIMUM_S: f64 = 5.0;
    /// e − 3/2: the interval is divided by this number, because timer reconsideration lengthens it (RFC 3550, Sec.
    /// 6.3.1).
    const COMPENSATION: f64 = core::f64::consts::E - 1.5;

    /// Creates a timer that is not running yet.
    pub(crate) fn new(seed: u64) -> Self {
        Self { due: None, random: Pcg64Mcg::seed_from_u64(seed) }
    }

    /// Starts the timer at `now`, with a new random interval.
    pub(crate) fn restart(&mut self, now: Instant<C>) {
        let spread = 0.5 + f64::from(self.random.next_u32()) / f64::from(u32::MAX);
        let interval = Self::MINIMUM_S * spread / Self::COMPENSATION;
        self.due = Some(now + Span::from_secs_f64(interval).unwrap_or(Span::from_secs(5)));
    }

    /// Stops the timer until it is restarted.
    pub(crate) const fn stop(&mut self) {
        self.due = None;
    }

    /// When the next compound RTCP packet is due; `None` while the timer is not running.
    pub(crate) const fn due(&self) -> Option<Instant<C>> {
        self.due
    }

    /// Returns whether a compound is due at `now`. If so, restarts the timer.
    pub(crate) fn fires(&mut self, now: Instant<C>) -> bool {
        let fires = self.due.is_some_and(|due| due <= now);
        if fires {
            self.restart(now);
        }
        fires
    }

    /// Returns the timer's random number generator, for other uses in a session.
    pub(crate) const fn random(&mut self) -> &mut Pcg64Mcg {
        &mut self.random
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use equipoise::units::SenderClock;

    #[test]
    fn intervals_lie_in_the_spread_of_rfc_3550() {
        let mut timer = CompoundTimer::<SenderClock>::new(7);
        assert!(!timer.fires(Instant::MAX), "not running yet");
        for _ in 0..1000 {
            timer.restart(Instant::ZERO);
            let interval = timer.due().expect("running") - Instant::ZERO;
            assert!((2.05..=6.16).contains(&interval.as_secs_f64()), "{interval}");
        }
    }
}
