use equipoise::units::{Instant, Rate, SenderClock, Size, Span};

/// Limits how much probe data is sent per second.
///
/// A probe is sent faster than the rate at which packets provably arrived, so a session limits the probes of its
/// controller. Our choice: per second, probes may use an initial window plus half of the data that the session's rate
/// allows. An initial window may be sent even on an unknown path (RFC 6928, Sec. 2).
#[derive(Debug, Default)]
pub(super) struct ProbeBudget {
    began: Option<Instant<SenderClock>>,
    sent: Size,
}

/// Size of an initial window: ten segments of maximum size (RFC 6928, Sec. 2).
const INITIAL_WINDOW: Size = Size::from_bytes(14_600);
const SECOND: Span = Span::from_secs(1);

impl ProbeBudget {
    /// Records that a probe's packet, which has the size `size`, was sent at `now`.
    pub(super) fn take(&mut self, now: Instant<SenderClock>, size: Size) {
        self.come_to(now);
        self.began.get_or_insert(now);
        self.sent = self.sent + size;
    }

    /// Resets the budget when a second has passed. The next second begins with the next packet of a probe.
    pub(super) fn come_to(&mut self, now: Instant<SenderClock>) {
        if self.began.is_some_and(|began| now - began >= SECOND) {
            *self = Self::default();
        }
    }

    /// Whether another packet may be sent as part of a probe, if the session's rate is `rate`.
    pub(super) fn allows(&self, rate: Rate) -> bool {
        self.sent.as_bytes() < INITIAL_WINDOW.as_bytes() + rate.as_bps() / 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_an_initial_window_and_half_of_the_rate() {
        let (rate, packet) = (Rate::from_bps(160_000), Size::from_bytes(1200));
        let mut budget = ProbeBudget::default();
        let mut sent_by = |millis: i64| {
            let now = Instant::ZERO + Span::from_millis(millis);
            budget.come_to(now);
            let mut packets = 0;
            while budget.allows(rate) {
                budget.take(now, packet);
                packets += 1;
            }
            packets
        };
        // The budget per second is the initial window of 14 600 bytes, plus 10 000 bytes, which are half of the data
        // that the rate of 160 kbit/s allows per second. A probe may exceed the budget by a part of its last packet.
        assert_eq!([0, 500, 999, 1000].map(&mut sent_by), [21, 0, 0, 21]);
    }
}
