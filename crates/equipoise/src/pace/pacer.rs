use crate::units::{Instant, Rate, Size, Span};

/// Spaces packets evenly at a rate.
///
/// The gap after a packet of size `size` is `size / rate`. The gap starts when this packet was due, not when it left,
/// so that a small delay does not slow the stream. If a packet is late by more than [`Pacer::TOLERANCE`] and by more
/// than the gap after it, a new schedule starts at its departure. The lost time is not recovered by a burst, because a
/// delay-based controller would measure the burst as delay variance. Instead, gaps are an eighth shorter until the lost
/// time, at most [`Pacer::DEBT`], is recovered. A packet that leaves early also starts a new schedule.
///
/// A higher rate can move the due time of the next packet into the past, although no time was lost. Therefore, at the
/// first departure after a change of the rate, the tolerance is zero, and lateness does not count as lost time.
#[derive(Clone, Debug)]
pub struct Pacer<C> {
    rate: Rate,
    last: Option<Departure<C>>,
    /// Time when the next packet is due, and its [`Departure::carry`]; `None` before the first packet and while the
    /// rate is zero.
    next: Option<(Instant<C>, u64)>,
    /// The lost time that is still to be recovered by shorter gaps, at most [`Pacer::DEBT`].
    debt: Span,
    /// The part of the lost time by which the gap after the last packet is shortened. `debt` no longer includes this
    /// part.
    repaid: Span,
    /// Time until which there was nothing to send after the last packet. The next packet is not due earlier.
    rested: Option<Instant<C>>,
    /// Whether the rate has changed since the last departure. Such a change moves the due time.
    rate_is_new: bool,
}

#[derive(Clone, Debug)]
struct Departure<C> {
    /// Time when the packet was due.
    due: Instant<C>,
    size: Size,
    /// Fraction of a nanosecond by which the exact due time is later than `due`, multiplied by the rate, in bit·ns/s.
    carry: u64,
}

/// Whether a packet may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness<C> {
    /// A packet may leave.
    Now,
    /// A packet may leave from this time on. This time is later than the `now` of the query.
    At(Instant<C>),
    /// No packet may leave while the rate is zero.
    Never,
}

impl<C> Pacer<C> {
    /// A packet that is late by at most this time does not restart the schedule, even if it is more than one gap late.
    /// Our choice: a host may wake only every 200 µs, and then send all packets that are due. A thread wakes about 50
    /// µs too late, or even more on a busy machine. At 300 Mbit/s, a lateness of 400 µs causes a burst of up to
    /// thirteen packets of 1200 bytes.
    pub const TOLERANCE: Span = Span::from_micros(400);
    /// Maximum lost time that the pacer recovers, by shorter gaps between packets. Our choice: a virtual machine is
    /// typically preempted for some milliseconds. After a longer outage, the rate from before the outage no longer
    /// applies.
    pub const DEBT: Span = Span::from_millis(10);
    /// While lost time is recovered, each gap is shortened by 1/`REPAID` of its length. Our choice: this hardly builds
    /// a queue.
    const REPAID: i64 = 8;

    /// Creates a pacer whose first packet may leave at once, if the rate is above zero.
    pub const fn new(rate: Rate) -> Self {
        Self { rate, last: None, next: None, debt: Span::ZERO, repaid: Span::ZERO, rested: None, rate_is_new: false }
    }

    /// Returns the current rate.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Sets the rate. The new rate already applies to the gap after the last packet. The gap is shorter than the rate
    /// demands if lost time must be recovered. The gap ends no earlier than [`rested_until`](Self::rested_until).
    pub fn set_rate(&mut self, rate: Rate) {
        if rate != self.rate {
            (self.rate, self.rate_is_new) = (rate, true);
            if let Some(last) = &mut self.last {
                last.carry = 0;
            }
            self.debt = self.debt + core::mem::take(&mut self.repaid);
            self.schedule();
        }
    }

    /// Whether a packet may leave at `now`.
    pub fn poll(&self, now: Instant<C>) -> Readiness<C> {
        match self.next {
            Some((due, _)) if due > now => Readiness::At(due),
            Some(_) => Readiness::Now,
            None if self.last.is_none() && self.rate > Rate::ZERO => Readiness::Now,
            None => Readiness::Never,
        }
    }

    /// Records a packet of `size` that left at `now`. If the packet was so late that the schedule restarts, returns the
    /// lateness.
    pub fn on_departure(&mut self, now: Instant<C>, size: Size) -> Option<Span> {
        let (due, carry) = self.next.unwrap_or((now, 0));
        let late = now - due;
        let rate_is_new = core::mem::take(&mut self.rate_is_new);
        let tolerance = if rate_is_new { Span::ZERO } else { Self::TOLERANCE };
        let anew = late > tolerance && late > self.rate.time_to_send(size).unwrap_or(Span::MAX);
        self.last = Some(if anew || late < Span::ZERO {
            Departure { due: now, size, carry: 0 }
        } else {
            Departure { due, size, carry }
        });
        if anew && !rate_is_new {
            self.debt = (self.debt + late).min(Self::DEBT);
        }
        (self.repaid, self.rested) = (Span::ZERO, None);
        self.schedule();
        anew.then_some(late)
    }

    /// Records that there was nothing to send until `now`: a packet that was due earlier is due at `now`, and is not
    /// late.
    pub fn rested_until(&mut self, now: Instant<C>) {
        self.rested = Some(now);
        self.rest();
    }

    /// Computes when the next packet is due.
    fn schedule(&mut self) {
        self.next = self.next_due();
        self.repay();
        self.rest();
    }

    /// If the next packet is due before `rested`, postpones it to `rested`. Then no lost time is recovered, because
    /// there was nothing to send until `rested`.
    fn rest(&mut self) {
        if let (Some(rested), Some(next)) = (self.rested, &mut self.next)
            && next.0 < rested
        {
            *next = (rested, 0);
            (self.debt, self.repaid) = (Span::ZERO, Span::ZERO);
        }
    }

    /// Shortens the gap after the last packet, if there is lost time to recover.
    fn repay(&mut self) {
        let (Some(last), Some((due, _))) = (&self.last, &mut self.next) else { return };
        let share = ((*due - last.due) / Span::from_nanos(Self::REPAID)).map_or(Span::ZERO, Span::from_nanos);
        self.repaid = share.min(self.debt);
        *due = *due - self.repaid;
        self.debt = self.debt - self.repaid;
    }

    fn next_due(&self) -> Option<(Instant<C>, u64)> {
        let last = self.last.as_ref()?;
        let (work, rate) =
            (last.size.as_bits().saturating_mul(1_000_000_000).saturating_add(last.carry), self.rate.as_bps());
        let gap = i64::try_from(work.checked_div(rate)?).unwrap_or(i64::MAX);
        Some((last.due + Span::from_nanos(gap), work % rate))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::SenderClock;

    type At = Instant<SenderClock>;
    const PACKET: Size = Size::from_bytes(1000);

    /// Sends `count` packets, each exactly when the pacer allows. Returns the time of the last departure.
    fn run(pacer: &mut Pacer<SenderClock>, mut now: At, count: usize) -> At {
        for _ in 0..count {
            if let Readiness::At(due) = pacer.poll(now) {
                now = due;
            }
            pacer.on_departure(now, PACKET);
        }
        now
    }

    #[test]
    fn forty_seconds_at_a_rate_that_does_not_divide_end_on_the_nanosecond() {
        let mut pacer = Pacer::new(Rate::from_bps(15_000_000));
        assert_eq!(run(&mut pacer, At::ZERO, 75_001), At::ZERO + Span::from_secs(40));
    }

    #[test]
    fn a_late_sender_starts_anew_and_does_not_burst() {
        let mut pacer = Pacer::new(Rate::from_bps(8_000_000));
        run(&mut pacer, At::ZERO, 2);
        let stalled = At::ZERO + Span::from_millis(70);
        assert_eq!(pacer.poll(stalled), Readiness::Now);
        assert_eq!(pacer.on_departure(stalled, PACKET), Some(Span::from_millis(68)));
        assert_eq!(pacer.poll(stalled), Readiness::At(stalled + Span::from_micros(875)));
    }

    /// 68 ms are lost. The pacer recovers 10 ms of this time, because it shortens each of 80 gaps by 1/8 ms.
    #[test]
    fn lost_time_is_made_up_for_within_bounds_and_without_a_burst() {
        let mut pacer = Pacer::new(Rate::from_bps(8_000_000));
        run(&mut pacer, At::ZERO, 2);
        let stalled = At::ZERO + Span::from_millis(70);
        pacer.on_departure(stalled, PACKET);
        assert_eq!(run(&mut pacer, stalled, 80), stalled + Span::from_millis(70));
        assert_eq!(run(&mut pacer, stalled + Span::from_millis(70), 100), stalled + Span::from_millis(170));
    }

    /// If this test fails, a host with stalls sends less than its rate allows.
    #[test]
    fn the_mean_rate_holds_over_stalls_of_milliseconds() {
        let mut pacer = Pacer::new(Rate::from_bps(300_000_000));
        let mut now = At::ZERO;
        let mut count = 0u64;
        while now < At::ZERO + Span::from_secs(1) {
            // The host stalls for 2 ms in every 48 ms.
            now = run(&mut pacer, now, 1800) + Span::from_millis(2);
            count += 1800;
        }
        let bps = count as f64 * 8000.0 / (now - At::ZERO).as_secs_f64();
        assert!((bps - 300e6).abs() < 3e6, "{bps}");
    }

    #[test]
    fn a_little_lateness_does_not_slow_the_stream() {
        let mut pacer = Pacer::new(Rate::from_bps(8_000_000));
        pacer.on_departure(At::ZERO, PACKET);
        assert_eq!(pacer.on_departure(At::from_nanos(1_050_000), PACKET), None);
        assert_eq!(pacer.poll(At::from_nanos(1_050_000)), Readiness::At(At::from_nanos(2_000_000)));
    }

    #[test]
    fn a_new_rate_holds_for_the_gap_that_is_running() {
        let mut pacer = Pacer::new(Rate::from_bps(100_000));
        pacer.on_departure(At::ZERO, PACKET);
        pacer.set_rate(Rate::from_bps(8_000_000));
        assert_eq!(pacer.poll(At::ZERO), Readiness::At(At::from_nanos(1_000_000)));
        pacer.set_rate(Rate::ZERO);
        assert_eq!(pacer.poll(At::ZERO), Readiness::Never);
    }

    /// At the first rate, a gap is 80 ms. The rate rises, and gaps are 1 ms. The next packet leaves 20 ms after the
    /// first packet. If the test fails, the pacer sends too fast after each rise of the rate, to make up for the long
    /// gap.
    #[test]
    fn a_rate_that_rises_is_no_stall_to_make_up_for() {
        let mut pacer = Pacer::new(Rate::from_bps(100_000));
        pacer.on_departure(At::ZERO, PACKET);
        pacer.set_rate(Rate::from_bps(8_000_000));
        let raised = At::ZERO + Span::from_millis(20);
        assert_eq!(pacer.on_departure(raised, PACKET), Some(Span::from_millis(19)));
        assert_eq!(run(&mut pacer, raised, 5), raised + Span::from_millis(5));
        // The packet is 300 µs late, which is three gaps at 80 Mbit/s. After a change of the rate, the tolerance of 400
        // µs does not apply. Therefore a new schedule starts with this packet.
        pacer.set_rate(Rate::from_bps(80_000_000));
        let raised = raised + Span::from_micros(5400);
        assert_eq!(pacer.on_departure(raised, PACKET), Some(Span::from_micros(300)));
        assert_eq!(run(&mut pacer, raised, 5), raised + Span::from_micros(500));
    }

    /// After a stall, 80 gaps of 1 ms are each an eighth shorter, to recover 10 ms of lost time. If the test fails, a
    /// session whose rate changes often recovers less than the lost time.
    #[test]
    fn a_new_rate_does_not_forget_the_lost_time() {
        let mut pacer = Pacer::new(Rate::from_bps(8_000_000));
        run(&mut pacer, At::ZERO, 2);
        let stalled = At::ZERO + Span::from_millis(70);
        pacer.on_departure(stalled, PACKET);
        let mut now = stalled;
        for _ in 0..80 {
            for bps in [4_000_000, 0, 8_000_000] {
                pacer.set_rate(Rate::from_bps(bps));
            }
            now = run(&mut pacer, now, 1);
        }
        assert_eq!(now, stalled + Span::from_millis(70));
        assert_eq!(run(&mut pacer, now, 100), now + Span::from_millis(100));
    }

    /// A rest is a time in which there is nothing to send. In this test, the rest ends 1.9 ms after the last packet. At
    /// the last rate, the gap between two packets is 0.8 ms. If the test fails, two packets leave nearly together after
    /// a rest, or a packet after a rest counts as late.
    #[test]
    fn a_new_rate_does_not_forget_a_rest() {
        for rates in [[10_000_000, 10_000_000], [0, 10_000_000]] {
            let mut pacer = Pacer::new(Rate::from_bps(8_000_000));
            pacer.on_departure(At::ZERO, PACKET);
            let rested = At::ZERO + Span::from_micros(1900);
            pacer.set_rate(Rate::from_bps(rates[0]));
            pacer.rested_until(rested);
            pacer.set_rate(Rate::from_bps(8_000_000));
            pacer.set_rate(Rate::from_bps(rates[1]));
            assert_eq!(pacer.poll(rested), Readiness::Now);
            assert_eq!(pacer.on_departure(rested, PACKET), None);
            assert_eq!(pacer.poll(rested), Readiness::At(rested + Span::from_micros(800)));
        }
    }

    proptest! {
        /// At 1 to 19 Mbit/s, the gap between two packets is 8 to 0.4 ms. After each packet there is nothing to send
        /// for up to 20 ms (a rest). The next packet leaves one gap at the current rate after the previous packet, or
        /// at the end of the rest if that is later. The order in which the rest and a new rate are recorded does not
        /// change this time.
        #[test]
        fn packets_leave_by_the_current_rate_and_by_the_rest(
            moves in proptest::collection::vec((1u64..20, 1u64..20, 0u64..20_000_000, any::<bool>()), 1..200),
        ) {
            let mut pacer = Pacer::new(Rate::from_bps(1_000_000));
            let mut last = At::ZERO;
            pacer.on_departure(last, PACKET);
            for (before, mbps, rest, is_rest_first) in moves {
                let (rate, rested) = (Rate::from_bps(mbps * 1_000_000), last + Span::from_nanos(rest as i64));
                pacer.set_rate(Rate::from_bps(before * 1_000_000));
                if is_rest_first {
                    pacer.rested_until(rested);
                    pacer.set_rate(rate);
                } else {
                    pacer.set_rate(rate);
                    pacer.rested_until(rested);
                }
                let due = (last + rate.time_to_send(PACKET).unwrap()).max(rested);
                let left = run(&mut pacer, rested, 1);
                let error = (left - due).as_nanos();
                prop_assert!((-1..=0).contains(&error), "{error} ns");
                last = left;
            }
        }

        /// For rates of 1 to 19 Mbit/s and any lateness below 5 ms: after a packet leaves, the next packet is due
        /// within one gap. If a packet is so late that the schedule restarts, the packet after it is due at least seven
        /// eighths of a gap later.
        #[test]
        fn no_window_ever_sees_a_burst(
            moves in proptest::collection::vec((1u64..20, 0u64..5_000_000), 1..200),
        ) {
            let mut pacer = Pacer::new(Rate::from_bps(1_000_000));
            let mut now = At::ZERO;
            let mut previous: Option<At> = None;
            for (mbps, late) in moves {
                pacer.set_rate(Rate::from_bps(mbps * 1_000_000));
                let due = match pacer.poll(now) { Readiness::At(due) => due, _ => now };
                let scheduled = pacer.next.map_or(due, |(at, _)| at);
                now = due + Span::from_nanos(late as i64);
                let gap = Rate::from_bps(mbps * 1_000_000).time_to_send(PACKET).unwrap();
                let eighth = Span::from_nanos(gap.as_nanos() / 8);
                if let Some(previous) = previous {
                    // The gap after a late packet can be shorter than `gap`, because the schedule is kept. The gap is
                    // never negative.
                    prop_assert!(now - previous >= Span::ZERO);
                }
                let anew = pacer.on_departure(now, PACKET);
                match pacer.poll(now) {
                    Readiness::At(next) => {
                        prop_assert!(next > now);
                        prop_assert!(next - now <= gap);
                        prop_assert!(anew.is_none() || next - now >= gap - eighth - Span::from_nanos(1));
                    }
                    // The next packet is due at once only if this packet was late by at least seven eighths of a gap.
                    Readiness::Now => {
                        prop_assert!(now - scheduled >= gap - eighth - Span::from_nanos(1));
                    }
                    Readiness::Never => prop_assert!(false, "the rate is above zero"),
                }
                previous = Some(now);
            }
        }
    }
}
