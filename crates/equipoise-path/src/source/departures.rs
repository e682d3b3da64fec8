use equipoise::random::{Generator, generator};
use equipoise::units::{Instant, Rate, Schedule, Size, Span};

use super::BoxedTraffic;

/// The departure times of the packets of a background stream, drawn from the stream's own seeded random numbers.
///
/// The same seed and stream number yield the same departures in the simulator and in the emulator, and on every
/// machine.
#[derive(Debug)]
pub struct Source<C> {
    traffic: BoxedTraffic,
    /// The value of `has_silences` of the model, stored because a query for every packet would double the computing
    /// time.
    has_silences: bool,
    /// Gaps drawn in advance, in bits as in `TrafficModel::gap`. The first `used` gaps are already used.
    gaps: [f64; DRAWN_AT_ONCE],
    used: usize,
    rate: Schedule<Rate>,
    segment: Segment,
    packet: Size,
    origin: Instant<C>,
    random: Generator,
    /// Exact time of the next departure, in nanoseconds since the origin.
    next_ns: f64,
    /// Time of the next departure, rounded to nanoseconds; `None` if no more packets will leave.
    next: Option<Instant<C>>,
}

/// Number of gaps drawn at once. A dynamic call of the model for every packet would double the computing time per
/// packet.
const DRAWN_AT_ONCE: usize = 16;

/// A period in which the rate is constant.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Time per bit at the rate of this segment of the schedule, in nanoseconds; infinite if the rate is zero.
    ns_per_bit: f64,
    until_ns: f64,
}

impl<C> Source<C> {
    /// A source of packets of size `packet`. The source and its schedule of rates start at `origin`.
    ///
    /// `seed` is the seed of the run; `stream` is the number of this source's own stream of random numbers.
    pub fn new(
        traffic: impl Into<BoxedTraffic>,
        rate: Schedule<Rate>,
        packet: Size,
        origin: Instant<C>,
        (seed, stream): (u64, u64),
    ) -> Self {
        let random = generator(seed, stream.wrapping_mul(2));
        let segment = Segment::at(&rate, 0.0);
        let traffic = traffic.into();
        let mut source = Self {
            has_silences: traffic.has_silences(),
            traffic,
            gaps: [0.0; DRAWN_AT_ONCE],
            used: DRAWN_AT_ONCE,
            rate,
            segment,
            packet,
            origin,
            random,
            next_ns: 0.0,
            next: None,
        };
        source.advance();
        source
    }

    /// When the next packet leaves; `None` if no more packets will leave.
    pub const fn next_departure(&self) -> Option<Instant<C>> {
        self.next
    }

    /// Sends all packets that are due before `until`: calls `leave` with the departure time of each packet.
    #[inline]
    pub fn leave_before(&mut self, until: Instant<C>, mut leave: impl FnMut(Instant<C>)) {
        while let Some(at) = self.next.filter(|at| *at < until) {
            leave(at);
            self.advance();
            self.leave_drawn(until, &mut leave);
        }
    }

    /// The fast path of [`leave_before`](Self::leave_before), for gaps that are already drawn and end before the rate
    /// changes. Each packet needs only a few operations, and values stay in processor registers.
    #[inline]
    fn leave_drawn(&mut self, until: Instant<C>, mut leave: impl FnMut(Instant<C>)) {
        let Some(mut next) = self.next.filter(|_| !self.has_silences) else { return };
        let (origin, segment, mut next_ns, used) = (self.origin, self.segment, self.next_ns, self.used);
        let mut drawn = self.gaps[used..].iter();
        while next < until
            && let Some(gap) = drawn.as_slice().first()
            && let Some(due_ns) = segment.due(next_ns, *gap)
        {
            leave(next);
            drawn.next();
            next_ns = due_ns;
            next = rounded(origin, due_ns);
        }
        self.used = DRAWN_AT_ONCE - drawn.len();
        (self.next_ns, self.next) = (next_ns, Some(next));
    }

    /// Records that the next packet has left, and draws the departure time of the packet after it.
    #[inline]
    pub fn advance(&mut self) {
        self.draw_next();
        self.round_next();
    }

    /// Records that the host stalled: the next packet is postponed to the time `at`, and all later packets are
    /// postponed by the same duration.
    ///
    /// The packets that were missed during the stall are not sent in a burst. The times at which the rate changes do
    /// not move.
    pub fn postpone(&mut self, at: Instant<C>) {
        let late_ns = (at - self.origin).as_nanos() as f64 - self.next_ns;
        if late_ns > 0.0 {
            self.next_ns += late_ns;
            self.traffic.on_stall(late_ns);
            self.round_next();
        }
    }

    /// The size of every packet, including its IP header.
    pub const fn packet_size(&self) -> Size {
        self.packet
    }

    #[inline]
    fn round_next(&mut self) {
        self.next = (self.next_ns < f64::INFINITY).then(|| rounded(self.origin, self.next_ns));
    }

    #[inline]
    fn draw_next(&mut self) {
        let work = self.next_gap();
        let due_ns = self.segment.due(self.next_ns, work).unwrap_or_else(|| self.due_through_steps(work));
        self.next_ns = due_ns;
        if self.has_silences && due_ns < f64::INFINITY {
            // The later of the due time and the model's departure time; `max` ignores a `NaN` from the model.
            self.next_ns = due_ns.max(self.traffic.departure_ns(due_ns, &mut self.random));
        }
    }

    /// Returns the end of a gap that begins at `next_ns`, in ns since the origin. The gap lasts for the time that the
    /// source takes to send `work` bits. The rate may change during the gap. The result is infinite if the gap never
    /// ends.
    #[cold]
    fn due_through_steps(&mut self, mut work: f64) -> f64 {
        let mut due_ns = self.next_ns;
        loop {
            if due_ns >= self.segment.until_ns {
                self.segment = Segment::at(&self.rate, due_ns);
            }
            let Segment { ns_per_bit, until_ns } = self.segment;
            let next_ns = due_ns + work * ns_per_bit;
            if next_ns <= until_ns && next_ns.is_finite() {
                return next_ns;
            }
            if until_ns.is_infinite() {
                return f64::INFINITY;
            }
            work -= (until_ns - due_ns) / ns_per_bit;
            due_ns = until_ns;
        }
    }

    #[inline]
    fn next_gap(&mut self) -> f64 {
        if self.used == DRAWN_AT_ONCE {
            self.draw_gaps();
        }
        let gap = self.gaps[self.used];
        self.used += 1;
        gap
    }

    fn draw_gaps(&mut self) {
        self.traffic.gaps(self.packet, &mut self.random, &mut self.gaps);
        let even = self.packet.as_bits() as f64;
        for gap in &mut self.gaps {
            *gap = if *gap > 0.0 { *gap } else { even };
        }
        self.used = 0;
    }
}

/// Returns the time that is `elapsed_ns` after the origin, rounded to the nearest nanosecond. `elapsed_ns` must not be
/// negative.
#[inline]
fn rounded<C>(origin: Instant<C>, elapsed_ns: f64) -> Instant<C> {
    Instant::from_nanos(origin.as_nanos().saturating_add(((elapsed_ns + 0.5) as i64).cast_unsigned()))
}

impl Segment {
    /// Returns the end of a gap between two departures, in ns since the origin. The gap begins at `from_ns`. Its length
    /// is the time in which the source sends `work` bits at its rate. Returns `None` if the rate changes before the end
    /// of the gap, or if the gap never ends.
    #[inline]
    fn due(&self, from_ns: f64, work: f64) -> Option<f64> {
        let due_ns = from_ns + work * self.ns_per_bit;
        (from_ns < self.until_ns && due_ns <= self.until_ns && due_ns < f64::INFINITY).then_some(due_ns)
    }

    fn at(rate: &Schedule<Rate>, elapsed_ns: f64) -> Self {
        let elapsed = Span::from_nanos(elapsed_ns as i64);
        Self {
            ns_per_bit: 1e9 / rate.at(elapsed).as_bps_f64(),
            until_ns: rate.next_step(elapsed).map_or(f64::INFINITY, |step| step.as_nanos() as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::super::Traffic;
    use super::*;
    use equipoise::measure::Moments;
    use equipoise::units::SenderClock;

    const PACKET: Size = Size::from_bytes(1000);

    fn source(traffic: Traffic, rate: Schedule<Rate>, stream: u64) -> Source<SenderClock> {
        Source::new(traffic, rate, PACKET, Instant::ZERO, (1, stream))
    }

    fn departures(source: &mut Source<SenderClock>, until: Span) -> Vec<u64> {
        let mut times = Vec::new();
        while let Some(at) = source.next_departure().filter(|at| *at < Instant::ZERO + until) {
            times.push(at.as_nanos());
            source.advance();
        }
        times
    }

    /// A traffic model whose gaps grow: each gap is longer than the previous gap by the transmission time of one
    /// packet.
    #[derive(Debug)]
    struct Slowing(u64);

    impl super::super::TrafficModel for Slowing {
        fn gap(&mut self, packet: Size, _: &mut Generator) -> f64 {
            self.0 += 1;
            (self.0 * packet.as_bits()) as f64
        }
    }

    /// If this test fails, gaps drawn in advance are lost, used twice or reordered.
    #[test]
    fn each_gap_of_a_model_is_used_once_in_its_order() {
        let model: BoxedTraffic = alloc::boxed::Box::new(Slowing(0));
        let rate = Schedule::constant(Rate::from_bps(8_000_000));
        let mut source = Source::<SenderClock>::new(model, rate, PACKET, Instant::ZERO, (1, 1));
        // The expected departures: 1 ms, 1 + 2 ms, 1 + 2 + 3 ms and so on.
        let triangles: Vec<_> = (1..=40u64).map(|n| n * (n + 1) / 2 * 1_000_000).collect();
        assert_eq!(departures(&mut source, Span::from_millis(821)), triangles);
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_spread_of_an_exponential() {
        let times = departures(
            &mut source(Traffic::Poisson, Schedule::constant(Rate::from_bps(9_000_000)), 1),
            Span::from_secs(200),
        );
        let gaps: Moments = times.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e9).collect();
        let mean = gaps.mean().unwrap();
        assert!((mean * 1125.0 - 1.0).abs() < 0.01, "225 000 gaps: one per cent is five standard errors");
        assert!((gaps.standard_deviation().unwrap() / mean - 1.0).abs() < 0.02);
    }

    #[test]
    fn constant_gaps_are_even_and_follow_a_step_in_mid_gap() {
        let rate = Schedule::new(Rate::from_bps(8_000_000), vec![(Span::from_micros(2500), Rate::from_bps(4_000_000))]);
        let times = departures(&mut source(Traffic::Constant, rate, 1), Span::from_millis(8));
        assert_eq!(times, [1_000_000, 2_000_000, 3_500_000, 5_500_000, 7_500_000]);
    }

    #[test]
    fn on_off_reaches_its_mean_rate() {
        let traffic = Traffic::OnOff { on: Span::from_millis(50), off: Span::from_millis(150) };
        let times =
            departures(&mut source(traffic, Schedule::constant(Rate::from_bps(8_000_000)), 3), Span::from_secs(400));
        let rate = times.len() as f64 / 400.0;
        assert!((rate / 250.0 - 1.0).abs() < 0.06, "a quarter of 1000 packets/s, found {rate}");
    }

    proptest! {
        /// If this test fails, `leave_before` yields other departure times than `advance`.
        #[test]
        fn packets_leave_together_when_they_leave_one_by_one(
            kind in 0usize..3,
            step_us in 0u64..40_000,
            windows_us in proptest::collection::vec(0u64..6_000, 1..30),
        ) {
            let on_off = Traffic::OnOff { on: Span::from_millis(3), off: Span::from_millis(2) };
            let traffic = [Traffic::Poisson, Traffic::Constant, on_off][kind];
            let steps = vec![
                (Span::from_micros(step_us as i64), Rate::from_bps(40_000_000)),
                (Span::from_micros(2 * step_us as i64 + 1), Rate::ZERO),
                (Span::from_micros(3 * step_us as i64 + 2), Rate::from_bps(8_000_000)),
            ];
            let rate = Schedule::new(Rate::from_bps(16_000_000), steps);
            let (mut together, mut apart) = (source(traffic, rate.clone(), 1), source(traffic, rate, 1));
            let mut until = Span::ZERO;
            for window_us in windows_us {
                until = until + Span::from_micros(window_us as i64);
                let mut times = Vec::new();
                together.leave_before(Instant::ZERO + until, |at| times.push(at.as_nanos()));
                prop_assert_eq!(times, departures(&mut apart, until));
                prop_assert_eq!(together.next_departure(), apart.next_departure());
            }
        }
    }

    #[test]
    fn a_postponed_source_catches_nothing_up_and_keeps_the_times_of_its_steps() {
        let rate = Schedule::new(Rate::from_bps(8_000_000), vec![(Span::from_millis(10), Rate::from_bps(4_000_000))]);
        let mut source = source(Traffic::Constant, rate, 1);
        source.postpone(Instant::from_nanos(8_500_000));
        assert_eq!(departures(&mut source, Span::from_millis(14)), [8_500_000, 9_500_000, 11_000_000, 13_000_000]);
    }

    #[test]
    fn a_source_whose_rate_falls_to_zero_ends() {
        let rate = Schedule::new(Rate::from_bps(8_000_000), vec![(Span::from_millis(10), Rate::ZERO)]);
        let mut source = source(Traffic::Constant, rate, 1);
        assert_eq!(departures(&mut source, Span::from_secs(1)).len(), 10);
        assert_eq!(source.next_departure(), None);
    }

    #[test]
    fn seeds_and_streams_give_the_same_or_unrelated_departures() {
        let draw = |stream| {
            departures(
                &mut source(Traffic::Poisson, Schedule::constant(Rate::from_bps(1_000_000)), stream),
                Span::from_secs(1),
            )
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert_eq!(draw(1).first(), Some(&GOLDEN_FIRST_DEPARTURE), "other numbers would change every published result");
    }

    const GOLDEN_FIRST_DEPARTURE: u64 = 1_996_598;
}
