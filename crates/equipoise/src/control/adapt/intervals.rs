use crate::control::{
    Allowance, Beliefs, Controller, Ecn, Fate, Feedback, IntervalSummary, Needs, PacketFeedback, Probe, QueuedFrame,
    SentPacket, Snapshot,
};
use crate::measure::{ClockMap, DelayMeter, DelaySummary, Notice, PacketPairs, PathClock};
use crate::units::{Instant, Rate, SenderClock, Size, Span};

/// The configuration of [`Intervals`].
#[derive(Clone, Copy, Debug)]
pub struct IntervalConfig {
    /// Length of an interval, at least 1 ms. An interval ends with the first feedback that arrives at least this long
    /// after the start of the interval.
    pub interval: Span,
    /// The reference relative to which delays are measured.
    pub origin: Origin,
    /// Resolution of the arrival times; zero for exact times. Rounding to a resolution q adds q²/12 to the variance of
    /// the delay, so the adapter subtracts q²/12. The resolution is 250 µs in transport-wide feedback, and 1/1024 s in
    /// RFC 8888.
    pub quantum: Span,
}

impl IntervalConfig {
    /// Creates a configuration for queueing delays and exact arrival times.
    pub const fn new(interval: Span) -> Self {
        Self { interval, origin: Origin::Queueing, quantum: Span::ZERO }
    }
}

/// The reference relative to which delays are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Delays are relative to the departure time, so they are one-way delays. The relation between the sender's clock
    /// and the receiver's clock must be known.
    Departure(ClockMap),
    /// Delays are relative to the minimum delay of the path, as estimated by [`PathClock`], so they are queueing
    /// delays. The sender's clock and the receiver's clock need not agree.
    Queueing,
    /// Delays are round-trip times relative to the minimum round-trip time so far, so they are the queueing delays of
    /// both directions. Each feedback with a round-trip time is one sample. This origin is for feedback without arrival
    /// times, such as TCP acknowledgements. If the receiver holds back an acknowledgement, the holding time counts as
    /// delay.
    RoundTrip,
}

/// An adapter that feeds per-packet feedback to a controller of interval summaries.
///
/// The adapter computes the mean and the variance of the delay of the packets sent since the last decision, as the
/// receiver of Waki 2013, Sec. 5.1 (Eq. 13, 14) does. It also computes the share of packets lost, and the rate of the
/// bottleneck if packets leave in pairs. Feedback without arrival times, such as that of TCP, results in summaries
/// without a delay, unless the origin is [`Origin::RoundTrip`]. For a summary without a delay, the AP controller uses
/// the round-trip time instead.
#[derive(Clone, Debug)]
pub struct Intervals<C> {
    controller: C,
    config: IntervalConfig,
    clock: PathClock,
    least_round_trip: Option<Span>,
    meter: DelayMeter,
    pairs: PacketPairs,
    /// The current interval; `None` before the first feedback.
    current: Option<Interval>,
}

/// The packet counts and measurements of one interval.
#[derive(Clone, Copy, Debug)]
struct Interval {
    /// Start of the interval. Packets that left earlier are excluded from the delay statistics, because they were sent
    /// at an earlier rate.
    began: Instant<SenderClock>,
    packets: u64,
    lost: u64,
    /// `capable` is the number of ECN-capable packets that arrived, and `marked` the number of those that were marked.
    capable: u64,
    marked: u64,
    arrived: Size,
    round_trip: Option<Span>,
    app_limited: bool,
}

/// The result of measuring the delay in an interval.
enum Reading {
    /// Delay statistics of the interval; `None` if there were too few samples.
    Delay(Option<DelaySummary>),
    /// The sender's or the receiver's clock was set during the interval, so the delays of this interval say nothing
    /// about the path.
    ClockSet,
}

impl Interval {
    const fn new(began: Instant<SenderClock>) -> Self {
        let (packets, lost, capable, marked) = (0, 0, 0, 0);
        Self { began, packets, lost, capable, marked, arrived: Size::ZERO, round_trip: None, app_limited: false }
    }
}

/// Lower limit of [`IntervalConfig::interval`].
const SHORTEST: Span = Span::from_millis(1);

impl<C: Controller> Intervals<C> {
    /// Creates an adapter for `controller`.
    pub fn new(controller: C, config: IntervalConfig) -> Self {
        let config = IntervalConfig { interval: config.interval.max(SHORTEST), ..config };
        let (clock, meter, pairs) = (PathClock::new(), DelayMeter::new(), PacketPairs::new());
        Self { controller, config, clock, least_round_trip: None, meter, pairs, current: None }
    }

    /// Returns the adapted controller.
    pub const fn controller(&self) -> &C {
        &self.controller
    }

    fn on_packets(&mut self, now: Instant<SenderClock>, feedback: &PacketFeedback<'_>) {
        let first = feedback.packets.first().map_or(now, |packet| packet.departed);
        let mut interval = *self.current.get_or_insert(Interval::new(first));
        for packet in feedback.packets {
            // All packets count for the share of losses. Packets that left before the interval are excluded from the
            // delay only.
            interval.packets += 1;
            match packet.fate {
                Fate::Lost => interval.lost += 1,
                Fate::Arrived { ecn, .. } => {
                    interval.arrived = interval.arrived + packet.size;
                    interval.capable += u64::from(ecn != Ecn::NotEct);
                    interval.marked += u64::from(ecn == Ecn::Ce);
                }
            }
            match packet.fate {
                Fate::Lost | Fate::Arrived { at: None, .. } => {}
                Fate::Arrived { at: Some(arrived), .. } => {
                    let map = match self.config.origin {
                        Origin::Departure(map) => Some(map),
                        Origin::Queueing => Some(ClockMap::SYNCHRONISED),
                        Origin::RoundTrip => None,
                    };
                    if let Some(map) = map {
                        self.meter.push(packet.departed, map.one_way_delay(packet.departed, arrived));
                    }
                    self.pairs.push(packet.number, packet.departed, arrived, packet.size);
                }
            }
        }
        let newest = feedback.packets.iter().rfind(|packet| packet.fate != Fate::Lost);
        if let (Some(round_trip), Some(packet)) = (feedback.round_trip, newest) {
            self.least_round_trip = Some(self.least_round_trip.map_or(round_trip, |least| least.min(round_trip)));
            if self.config.origin == Origin::RoundTrip {
                self.meter.push(packet.departed, round_trip);
            }
        }
        interval.round_trip = feedback.round_trip.or(interval.round_trip);
        interval.app_limited |= feedback.app_limited;
        self.current = Some(interval);
        if now - interval.began >= self.config.interval && interval.packets > 0 {
            self.close(now, &interval);
        }
    }

    /// Closes an interval. Passes its summary to the controller, unless a clock was set during the interval.
    fn close(&mut self, now: Instant<SenderClock>, interval: &Interval) {
        // The meter selects packets that left after `cut`, so `cut` lies just before the interval.
        let cut = interval.began - Span::from_nanos(1);
        let delay = self.delay(now, cut, interval.round_trip);
        self.meter.forget_until(now);
        self.current = Some(Interval::new(now));
        let Reading::Delay(delay) = delay else { return };
        let summary = IntervalSummary {
            delay,
            fraction_lost: Some(interval.lost as f64 / interval.packets.max(1) as f64),
            fraction_marked: (interval.capable > 0).then(|| interval.marked as f64 / interval.capable as f64),
            packets: Some(interval.packets),
            delivered: interval.arrived.over(now - interval.began),
            round_trip: interval.round_trip,
            bottleneck: self.pairs.bottleneck(),
            app_limited: interval.app_limited,
            playout: None,
        };
        self.controller.on_feedback(now, &Feedback::Interval(summary));
    }

    /// Returns the delay statistics of the packets that left after `cut`.
    fn delay(&mut self, now: Instant<SenderClock>, cut: Instant<SenderClock>, round_trip: Option<Span>) -> Reading {
        let zero = match self.config.origin {
            Origin::Departure(_) => Span::ZERO,
            Origin::RoundTrip => self.least_round_trip.unwrap_or(Span::ZERO),
            Origin::Queueing => {
                if let (Some(least), Some(round_trip)) = (self.meter.least_after(cut), round_trip)
                    && let Notice::ClockStepped { .. } = self.clock.observe(now, least, round_trip)
                {
                    return Reading::ClockSet;
                }
                match self.clock.base(now) {
                    Some(base) => base,
                    None => return Reading::Delay(None),
                }
            }
        };
        let quantum_s = self.config.quantum.as_secs_f64();
        let exact = |delay: DelaySummary| DelaySummary {
            mean_s: delay.mean_s - zero.as_secs_f64(),
            variance_s2: (delay.variance_s2 - quantum_s * quantum_s / 12.0).max(0.0),
            ..delay
        };
        Reading::Delay(self.meter.summary_after(cut).map(exact))
    }
}

impl<C: Controller> Controller for Intervals<C> {
    fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &Feedback<'_>) {
        match feedback {
            Feedback::Packets(packets) => self.on_packets(now, packets),
            other => self.controller.on_feedback(now, other),
        }
    }

    fn allowance(&self) -> Allowance {
        self.controller.allowance()
    }

    fn lowest_rate(&self) -> Rate {
        self.controller.lowest_rate()
    }

    fn is_held_to_proof(&self) -> bool {
        self.controller.is_held_to_proof()
    }

    fn needs(&self) -> Needs {
        self.controller.needs().without(Needs::INTERVALS).and(Needs::PACKETS)
    }

    fn on_sent(&mut self, now: Instant<SenderClock>, packet: &SentPacket) {
        self.controller.on_sent(now, packet);
    }

    fn on_frame(&mut self, now: Instant<SenderClock>, frame: &QueuedFrame) {
        self.controller.on_frame(now, frame);
    }

    fn on_timer(&mut self, now: Instant<SenderClock>) {
        self.controller.on_timer(now);
    }

    fn next_timer(&self) -> Option<Instant<SenderClock>> {
        self.controller.next_timer()
    }

    fn wanted_probe(&self) -> Option<Probe> {
        self.controller.wanted_probe()
    }

    fn snapshot(&self) -> Snapshot {
        self.controller.snapshot()
    }

    fn beliefs(&self) -> Option<Beliefs> {
        self.controller.beliefs()
    }

    fn target_delay(&self) -> Option<Span> {
        self.controller.target_delay()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::control::PacketReport;

    /// A controller that records all summaries.
    #[derive(Debug, Default)]
    struct Log(Vec<IntervalSummary>);

    impl Controller for Log {
        fn on_feedback(&mut self, _now: Instant<SenderClock>, feedback: &Feedback<'_>) {
            if let Feedback::Interval(interval) = feedback {
                self.0.push(*interval);
            }
        }

        fn allowance(&self) -> Allowance {
            Allowance::rate(Rate::from_bps(1))
        }
    }

    fn at(millis: u64) -> Instant<SenderClock> {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// Sends a packet every 10 ms. Each packet has the given delay in ms, or is lost if the delay is `None`. The
    /// feedback on a packet arrives 20 ms after its departure. Returns the interval summaries.
    fn told(config: IntervalConfig, delays_ms: &[Option<u64>]) -> Vec<IntervalSummary> {
        let mut adapter = Intervals::new(Log::default(), config);
        for (number, delay) in (0u64..).zip(delays_ms) {
            let departed = at(1000 + 10 * number);
            let arrived = delay.map(|delay| at(1000 + 10 * number + delay).assume_clock());
            let fate = arrived.map_or(Fate::Lost, |at| Fate::Arrived { at: Some(at), ecn: Ecn::NotEct });
            let packets = [PacketReport::new(number, Size::from_bytes(1000), departed, fate)];
            let mut feedback = PacketFeedback::new(&packets, Size::from_bytes(1000));
            feedback.round_trip = Some(Span::from_millis(20));
            adapter.on_feedback(departed + Span::from_millis(20), &Feedback::Packets(&feedback));
        }
        adapter.controller.0
    }

    #[test]
    fn an_interval_has_the_mean_the_variance_and_the_losses_of_its_packets() {
        let origin = Origin::Departure(ClockMap::SYNCHRONISED);
        let config = IntervalConfig { origin, ..IntervalConfig::new(Span::from_millis(100)) };
        let delays = [5, 6, 7, 5, 6, 7, 5, 6, 7].map(Some);
        let intervals = told(config, &[&delays[..], &[None], &delays[..]].concat());
        let [first, ..] = intervals.as_slice() else { panic!("no interval") };
        let delay = first.delay.expect("many packets");
        assert!((delay.mean_s - 5.9e-3).abs() < 2e-4 && delay.samples >= 8, "{delay:?}");
        assert!((delay.variance_s2 - 0.75e-6).abs() < 0.1e-6, "{delay:?}");
        let lost: f64 = intervals.iter().filter_map(|it| Some(it.fraction_lost? * it.packets? as f64)).sum();
        assert!((lost - 1.0).abs() < 1e-9, "{intervals:?}");
    }

    /// If this test fails, the adapter computes a wrong share of ECN marks from per-packet feedback.
    #[test]
    fn marks_are_a_share_of_those_that_might_be_marked() {
        let mut adapter = Intervals::new(Log::default(), IntervalConfig::new(Span::from_millis(100)));
        let marks = [Ecn::NotEct, Ecn::Ect0, Ecn::Ce, Ecn::Ect1, Ecn::Ce];
        let reports = marks.map(|ecn| {
            let fate = Fate::Arrived { at: Some(at(1010).assume_clock()), ecn };
            PacketReport::new(1, Size::from_bytes(1000), at(1000), fate)
        });
        let feedback = PacketFeedback::new(&reports, Size::from_bytes(5000));
        adapter.on_feedback(at(1200), &Feedback::Packets(&feedback));
        assert_eq!(adapter.controller.0[0].fraction_marked, Some(0.5));
    }

    /// The two clocks differ by an hour, and the empty path takes 5 ms. The delay above the minimum is the queueing
    /// delay.
    #[test]
    fn a_queueing_delay_needs_no_clocks_that_agree() {
        let delays: Vec<_> = (0..60).map(|number| Some(3_600_000 + 5 + if number % 3 == 0 { 0 } else { 6 })).collect();
        let intervals = told(IntervalConfig::new(Span::from_millis(100)), &delays);
        let last = intervals.last().and_then(|interval| interval.delay).expect("many packets");
        assert!((last.mean_s - 4e-3).abs() < 1e-3, "{last:?}");
    }

    /// The acknowledgements have no arrival times, and the round-trip times are 20 ms and 26 ms. Only
    /// [`Origin::RoundTrip`] yields a delay.
    #[test]
    fn round_trips_stand_for_delays_that_were_not_measured() {
        let last = |origin| {
            let config = IntervalConfig { origin, ..IntervalConfig::new(Span::from_millis(100)) };
            let mut adapter = Intervals::new(Log::default(), config);
            for number in 0..60 {
                let departed = at(1000 + 10 * number);
                let fate = Fate::Arrived { at: None, ecn: Ecn::NotEct };
                let packets = [PacketReport::new(number, Size::from_bytes(1000), departed, fate)];
                let mut feedback = PacketFeedback::new(&packets, Size::from_bytes(1000));
                let round_trip = Span::from_millis(if number % 3 == 0 { 20 } else { 26 });
                feedback.round_trip = Some(round_trip);
                adapter.on_feedback(departed + round_trip, &Feedback::Packets(&feedback));
            }
            adapter.controller.0.last().and_then(|interval| interval.delay)
        };
        let delay = last(Origin::RoundTrip).expect("many packets");
        assert!((delay.mean_s - 4e-3).abs() < 1e-3, "{delay:?}");
        assert_eq!(last(Origin::Queueing), None);
    }

    #[test]
    fn the_variance_of_rounded_times_is_taken_off() {
        let origin = Origin::Departure(ClockMap::SYNCHRONISED);
        let exact = IntervalConfig { origin, ..IntervalConfig::new(Span::from_millis(200)) };
        let rounded = IntervalConfig { quantum: Span::from_millis(1), ..exact };
        let delays: Vec<_> = (0..40).map(|number| Some(5 + number % 2)).collect();
        let variance = |config| told(config, &delays)[0].delay.expect("many packets").variance_s2;
        assert!((variance(exact) - variance(rounded) - 1e-6 / 12.0).abs() < 1e-12);
    }

    #[test]
    fn an_adapter_needs_packets_in_place_of_intervals() {
        let adapter = Intervals::new(Log::default(), IntervalConfig::new(Span::from_secs(1)));
        assert_eq!(adapter.needs(), Needs::PACKETS);
    }
}
