use super::loss_intervals::LossIntervals;
use super::{Allowance, Controller, Feedback, IntervalSummary, RateLimits, Reason, Snapshot};
use crate::units::{Instant, Rate, SenderClock, Size, Span};

/// TCP-friendly rate control (TFRC): the rate of TCP's throughput equation at the observed loss event rate.
///
/// Source: RFC 5348, Sec. 3.1 for the equation, Sec. 4.3 for the rate, Sec. 5.2 to 5.4 for loss events and their mean
/// interval, Sec. 6.3.1 for the first interval. An ECN mark counts like a loss (Sec. 5.1).
///
/// What the source leaves open is our choice. The sender finds loss events from reports (RFC 5348, Sec. 7 allows this).
/// A report with loss begins a new event if the last event began more than a round trip ago. An event is assumed to be
/// in the middle of the packets of its report. Reports should arrive about once per round trip. If reports are further
/// apart, several events count as one and the rate is too high. For the maximum receive rate of Sec. 6.3.1, each
/// receive rate is limited to the allowed rate. Otherwise, two reports that arrive together would make the maximum too
/// high. In the equation, the retransmission timeout `t_RTO` is four round trips, and the number of packets per
/// acknowledgement, `b`, is 1. There is no restart after an idle period and no oscillation prevention (Sec. 4.5).
#[derive(Clone, Debug)]
pub struct Tfrc {
    limits: RateLimits,
    packet: Size,
    rate: Rate,
    round_trip_s: Option<f64>,
    /// The maximum receive rate so far, in bit/s.
    most_received_bps: f64,
    intervals: LossIntervals,
    last_event: Option<Instant<SenderClock>>,
    last_report: Option<Instant<SenderClock>>,
    snapshot: Snapshot,
}

/// Weight of the old smoothed round-trip time in the new smoothed round-trip time (RFC 5348, Sec. 4.3).
const OLD_ROUND_TRIP: f64 = 0.9;
/// The first loss interval is computed from the receive rate. This is the minimum of the receive rate in this
/// computation, in packets per round trip (RFC 5348, Sec. 6.3.1).
const LEAST_FIRST: f64 = 0.5;
/// The longest loss interval considered in the search for the first interval, in packets. Our choice.
const LONGEST_INTERVAL: f64 = 1e9;

/// Returns TCP's throughput in bit/s at a loss event rate p, 0 to 1 (RFC 5348, Sec. 3.1).
fn throughput(packet_bits: f64, round_trip_s: f64, p: f64) -> f64 {
    let timeout_s = 4.0 * round_trip_s;
    let fast = round_trip_s * libm::sqrt(2.0 * p / 3.0);
    let slow = timeout_s * (3.0 * libm::sqrt(3.0 * p / 8.0)) * p * (1.0 + 32.0 * p * p);
    packet_bits / (fast + slow)
}

impl Tfrc {
    /// Creates a controller at the start rate, for IP packets of the size `packet`.
    pub const fn new(limits: RateLimits, packet: Size) -> Self {
        Self {
            packet,
            rate: limits.start(),
            limits,
            round_trip_s: None,
            most_received_bps: 0.0,
            intervals: LossIntervals::new(),
            last_event: None,
            last_report: None,
            snapshot: Snapshot { reason: None, law_step_bps: None, response: None },
        }
    }

    /// Returns the loss event rate; `None` before the first loss event (RFC 5348, Sec. 5.4).
    fn loss_event_rate(&self) -> Option<f64> {
        // The packets since the last loss event count as an interval only if this raises the mean interval.
        let interval = self.intervals.mean_longer()?;
        Some((1.0 / interval.max(1.0)).min(1.0))
    }

    /// Counts the packets of a report. `lost` says whether any of these packets was lost or marked.
    fn count(&mut self, now: Instant<SenderClock>, packets: f64, lost: bool) {
        let round_trip_s = self.round_trip_s.unwrap_or(0.0);
        let is_new = self.last_event.is_none_or(|last| (now - last).as_secs_f64() > round_trip_s);
        if !(lost && is_new) {
            self.intervals.grow(packets);
            return;
        }
        self.last_event = Some(now);
        self.intervals.grow(packets / 2.0);
        if self.intervals.closed() == 0 {
            self.intervals.replace_open(self.first_interval());
        }
        self.intervals.close();
        self.intervals.grow(packets / 2.0);
    }

    /// Returns the first loss interval, in packets. For this interval, the equation yields the maximum receive rate so
    /// far (RFC 5348, Sec. 6.3.1). The number of packets until the first loss is not used, because the rate changed
    /// rapidly before the loss. The equation's rate grows with the interval, so bisection finds the interval.
    fn first_interval(&self) -> f64 {
        let (Some(round_trip_s), packet_bits) = (self.round_trip_s, self.packet.as_bits() as f64) else { return 1.0 };
        let bps = self.most_received_bps.max(LEAST_FIRST * packet_bits / round_trip_s);
        let (mut low, mut high) = (1.0, LONGEST_INTERVAL);
        // 60 bisections suffice for the precision of an `f64`.
        for _ in 0..60 {
            let middle = libm::sqrt(low * high);
            let enough = throughput(packet_bits, round_trip_s, 1.0 / middle) >= bps;
            (low, high) = if enough { (low, middle) } else { (middle, high) };
        }
        high
    }
}

impl Tfrc {
    fn on_interval(&mut self, now: Instant<SenderClock>, interval: &IntervalSummary) {
        if let Some(sample) = interval.round_trip.map(Span::as_secs_f64).filter(|sample| *sample > 0.0) {
            let smoothed =
                self.round_trip_s.map_or(sample, |old| OLD_ROUND_TRIP * old + (1.0 - OLD_ROUND_TRIP) * sample);
            self.round_trip_s = Some(smoothed);
        }
        let elapsed_s = self.last_report.replace(now).map(|since| (now - since).as_secs_f64());
        let bps = self.rate.as_bps_f64();
        let (Some(round_trip_s), Some(elapsed_s)) = (self.round_trip_s, elapsed_s.filter(|elapsed| *elapsed > 0.0))
        else {
            self.snapshot = Snapshot { reason: Some(Reason::NoStatistics), ..Snapshot::default() };
            return;
        };
        let packets = interval.packets.unwrap_or(0) as f64;
        let lost = interval.fraction_lost.unwrap_or(0.0).clamp(0.0, 1.0);
        let receive_bps = packets * (1.0 - lost) * self.packet.as_bits() as f64 / elapsed_s;
        let marked = interval.fraction_marked.unwrap_or(0.0);
        self.most_received_bps = self.most_received_bps.max(receive_bps.min(bps));
        self.count(now, packets, lost > 0.0 || marked > 0.0);
        let next = match self.loss_event_rate() {
            // RFC 5348, Sec. 4.3, step 4: the equation's rate, but at most twice the receive rate.
            Some(p) => throughput(self.packet.as_bits() as f64, round_trip_s, p).min(2.0 * receive_bps),
            // Slow start: each report doubles the rate, up to twice the receive rate.
            None => bps.max((2.0 * bps).min(2.0 * receive_bps)),
        };
        let mut reason = Reason::Law;
        if next > bps && interval.app_limited {
            reason = Reason::AppLimited;
        } else {
            let (rate, cut) = self.limits.clamp(next);
            self.rate = rate;
            reason = RateLimits::reason(reason, cut);
        }
        self.snapshot = Snapshot { reason: Some(reason), law_step_bps: Some(next - bps), response: None };
    }

    /// Halves the rate because no report arrives.
    fn on_silence(&mut self) {
        self.rate = self.limits.halve(self.rate);
        self.snapshot = Snapshot { reason: Some(Reason::ReportsMissing), ..Snapshot::default() };
    }
}

impl Controller for Tfrc {
    fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &Feedback<'_>) {
        match feedback {
            Feedback::Interval(interval) => self.on_interval(now, interval),
            Feedback::Silent { .. } => self.on_silence(),
            _ => {}
        }
    }

    fn allowance(&self) -> Allowance {
        Allowance::rate(self.rate)
    }

    fn lowest_rate(&self) -> Rate {
        self.limits.min()
    }

    fn snapshot(&self) -> Snapshot {
        self.snapshot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tfrc() -> Tfrc {
        let limits = RateLimits::new(Rate::from_bps(10_000), Rate::from_bps(100_000_000)).expect("in order");
        Tfrc::new(limits, Size::from_bytes(1000))
    }

    fn report(tfrc: &mut Tfrc, millis: i64, packets: u64, fraction_lost: f64) -> u64 {
        let round_trip = Some(Span::from_millis(100));
        let summary = IntervalSummary {
            fraction_lost: Some(fraction_lost),
            packets: Some(packets),
            round_trip,
            ..IntervalSummary::unmeasured()
        };
        tfrc.on_feedback(Instant::ZERO + Span::from_millis(millis), &Feedback::Interval(summary));
        tfrc.rate.as_bps()
    }

    /// For a small loss event rate p the equation is Mathis' formula, 1/sqrt(2p/3) packets per round trip. At p = 1 %,
    /// retransmission timeouts add 4 * 3 sqrt(3/800) * 0.01 * 1.0032 / sqrt(2/300) = 9.0 % to the time per packet.
    #[test]
    fn the_equation_is_that_of_tcp() {
        let mathis = |p: f64| 8000.0 / (0.1 * (2.0 * p / 3.0).sqrt());
        assert!((throughput(8000.0, 0.1, 1e-8) / mathis(1e-8) - 1.0).abs() < 1e-6);
        assert!((mathis(0.01) / throughput(8000.0, 0.1, 0.01) - 1.090_288).abs() < 1e-4);
    }

    /// If this test fails, the law fills the queue of a router that marks packets instead of dropping them.
    #[test]
    fn a_mark_is_a_loss_event() {
        let mut tfrc = tfrc();
        let summary = |marked| IntervalSummary {
            fraction_lost: Some(0.0),
            fraction_marked: Some(marked),
            packets: Some(100),
            round_trip: Some(Span::from_millis(100)),
            ..IntervalSummary::unmeasured()
        };
        for (second, marked) in [(0, 0.0), (1, 0.0), (2, 0.02)] {
            let now = Instant::ZERO + Span::from_secs(second);
            assert_eq!(tfrc.loss_event_rate(), None);
            tfrc.on_feedback(now, &Feedback::Interval(summary(marked)));
        }
        assert!(tfrc.loss_event_rate().is_some_and(|rate| rate > 0.0));
    }

    /// A loss every hundred packets is a loss event rate of 1 %. Only the last eight intervals count.
    #[test]
    fn equal_intervals_give_their_inverse() {
        let mut tfrc = tfrc();
        let mut now = 0;
        report(&mut tfrc, now, 100, 0.0);
        for _ in 0..20 {
            now += 1000;
            report(&mut tfrc, now, 100, 0.01);
        }
        assert!((tfrc.loss_event_rate().expect("losses") - 0.01).abs() < 1e-9);
        // The interval since the last loss counts as the newest of eight intervals, because this raises the mean.
        (0..5).for_each(|_| {
            now += 100;
            report(&mut tfrc, now, 100, 0.0);
        });
        let mean = (550.0 + 100.0 * 5.0) / 6.0;
        assert!((1.0 / tfrc.loss_event_rate().expect("losses") - mean).abs() < 1e-6);
    }

    /// Returns a controller at 400 kbit/s, which is 5 packets per 100 ms. The controller has received its first report
    /// at time 0.
    fn started() -> Tfrc {
        let limits = RateLimits::new(Rate::from_bps(10_000), Rate::from_bps(100_000_000)).expect("in order");
        let mut tfrc = Tfrc::new(limits.starting_at(Rate::from_bps(400_000)), Size::from_bytes(1000));
        report(&mut tfrc, 0, 0, 0.0);
        tfrc
    }

    /// A link of 1.6 Mbit/s delivers 20 packets of 1000 bytes per 100 ms. Slow start sends 40 packets, and half of them
    /// are lost. By RFC 5348, Sec. 6.3.1, the rate is then within 5 % of the receive rate.
    #[test]
    fn slow_start_doubles_the_rate_until_the_first_loss_sets_it_to_what_came_through() {
        let mut tfrc = started();
        let rates = [(100, 5), (200, 10), (300, 20)].map(|(millis, packets)| report(&mut tfrc, millis, packets, 0.0));
        assert_eq!(rates, [800_000, 1_600_000, 3_200_000]);
        let after = report(&mut tfrc, 400, 40, 0.5);
        assert!(after.abs_diff(1_600_000) <= 80_000, "{after}");
    }

    /// The report with the first loss covers 10 packets, of which 5 arrive. The new rate is the limit of RFC 5348, Sec.
    /// 4.3: twice the receive rate of these 5 packets. With the next reports, the rate rises to the highest receive
    /// rate before the loss, because the first loss interval is computed from that rate (RFC 5348, Sec. 6.3.1).
    ///
    /// If the test fails, a flow keeps a low rate if its first loss occurs when another flow starts.
    #[test]
    fn the_first_interval_is_of_the_maximum_receive_rate() {
        let mut tfrc = started();
        for (millis, packets) in [(100, 5), (200, 10), (300, 20)] {
            report(&mut tfrc, millis, packets, 0.0);
        }
        let rates = [(400, 10, 0.5), (500, 10, 0.0), (600, 20, 0.0)]
            .map(|(millis, packets, lost)| report(&mut tfrc, millis, packets, lost));
        assert_eq!(rates[0], 800_000, "twice the receive rate");
        assert!(rates[1..].iter().all(|bps| bps.abs_diff(1_600_000) <= 80_000), "{rates:?}");
    }

    /// The second report covers only 1 ms, so its receive rate is far above the allowed rate. If this test fails, this
    /// receive rate makes the first loss interval much too long, and the law reacts too little to losses.
    #[test]
    fn what_was_received_faster_than_allowed_does_not_set_the_first_interval() {
        let mut tfrc = started();
        let rates = [(100, 5, 0.0), (101, 5, 0.0), (200, 10, 0.1), (300, 20, 0.0)]
            .map(|(millis, packets, lost)| report(&mut tfrc, millis, packets, lost));
        assert_eq!(rates[..2], [800_000, 1_600_000]);
        assert!(rates[3] <= 840_000, "{rates:?}");
    }

    /// By RFC 5348, Sec. 6.3.1, the first loss interval is at least so long that the equation yields half a packet per
    /// round trip. This is the case at p = 0.2064: the equation's denominator is 0.371 + 1.629 = 2 round trips.
    #[test]
    fn a_first_packet_that_is_lost_is_half_a_packet_per_round_trip() {
        let mut tfrc = started();
        report(&mut tfrc, 100, 1, 1.0);
        let p = tfrc.loss_event_rate().expect("a loss");
        assert!((p - 0.2064).abs() < 1e-4, "{p}");
    }
}
