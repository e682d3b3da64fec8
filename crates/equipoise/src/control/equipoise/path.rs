use alloc::collections::VecDeque;

use crate::control::{Ecn, Fate, PacketFeedback, PacketReport, SentPacket};
use crate::measure::packets::{
    BaseDelay, IdleDelay, PacketTime, PairedDelay, Recent, Roughness, Sample, SizeClass, TrainRates, Trains,
};
use crate::units::{Instant, ReceiverClock, SenderClock};

/// The path's properties, measured from feedback on its packets.
#[derive(Clone, Debug)]
pub(super) struct Path {
    /// For each clock, the time from which seconds are counted.
    origins: Option<(Instant<SenderClock>, Instant<ReceiverClock>)>,
    base: BaseDelay,
    /// The smallest round trip, over the same window as the base delay.
    least_round_trip: BaseDelay,
    pub(super) recent: Recent,
    trains: Trains,
    roughness: Roughness,
    idle: IdleDelay,
    paired: PairedDelay,
    /// `paired_over_s` is the newest delay measured with pairs of packets ([`PairedDelay`]), in s above the base delay.
    /// `paired_idle` is this delay while the path is empty.
    paired_over_s: f64,
    paired_idle: IdleDelay,
    packet_time: PacketTime,
    /// `t`: the time that the bottleneck takes to transmit a large packet, in s; zero until it is known.
    packet_s: f64,
    /// The round trip `rtt` and the interval of reports `fb`, both smoothed, in s.
    round_trip_s: Option<f64>,
    feedback_s: f64,
    pub(super) began_s: f64,
    reported_s: Option<f64>,
    /// `m`, the smoothed share of packets with an ECN mark, and `m0`, this share among packets that did not wait.
    marked: f64,
    marked_free: f64,
    last_over_s: f64,
    /// The highest arrival rate, in bit/s.
    peak_bps: f64,
    /// The time of each recent decision, in s, and the decided rate, in bit/s.
    granted: VecDeque<(f64, f64)>,
    /// The numbers of the first and the last packet of the newest probe.
    probed: Option<(u64, u64)>,
}

/// The contents of a report, and the path's properties after it. Times are in s, rates in bit/s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Seen {
    pub(super) now_s: f64,
    /// Time since the last report, limited to a plausible range.
    pub(super) elapsed_s: f64,
    /// Whether reports were missing for much longer than the usual interval.
    pub(super) after_gap: bool,
    /// `fb`, the usual interval of reports.
    pub(super) feedback_s: f64,
    pub(super) round_trip_s: f64,
    pub(super) latest_round_trip_s: f64,
    pub(super) least_round_trip_s: f64,
    /// `least_s` is `dq`: the smallest delay in this report, minus the base delay and the jitter `j`, at least 0.
    /// `last_s` is `dl`: the delay of the last reported packet that is not part of a probe, minus the base delay.
    pub(super) least_s: f64,
    pub(super) last_s: f64,
    /// By how much the smallest delay in this report exceeds the base delay, in s; the jitter is not subtracted. If the
    /// queue never stays empty for 0.6 s, the estimated jitter includes a part of the queue. Therefore this value is
    /// used to detect the queue of a competing flow.
    pub(super) least_over_s: f64,
    /// `j`, by how much the smallest delay of a report exceeds the base delay because of jitter.
    pub(super) jitter_s: f64,
    /// `dp`: the queueing delay measured with pairs of packets, minus the jitter `jp`, but at least 0. Flows of
    /// different rates measure the same `dp` and `jp`.
    pub(super) paired_s: f64,
    pub(super) paired_jitter_s: f64,
    /// Whether the delay of the last reported packet that is not part of a probe rises by more than 0.3 s per second.
    pub(super) rises: bool,
    /// Whether `dl` is smaller than in the previous report. `dl` is the delay of the last reported packet that is not
    /// part of a probe, minus the base delay.
    pub(super) falls: bool,
    /// `R_del`, the recent arrival rate.
    pub(super) received_bps: f64,
    /// `A`, the rate of packet trains.
    pub(super) trains: Option<TrainRates>,
    /// `n`, the roughness of delays.
    pub(super) roughness_s: f64,
    /// `m`, the smoothed share of packets with an ECN mark, and `m0`, this share among packets that did not wait.
    pub(super) marked: f64,
    pub(super) marked_free: f64,
    /// `arrived` is the number of packets in this report that arrived. `lost` is the number of packets in this report
    /// that were lost.
    pub(super) arrived: f64,
    pub(super) lost: f64,
    pub(super) arrived_bits: f64,
    /// Data in flight that this report does not cover.
    pub(super) in_flight_bits: f64,
    /// `u`: 1 if the flow uses the granted rate, 0 if it leaves a large part unused.
    pub(super) usage: f64,
}

impl Seen {
    /// `D`, the time from a decision to the report on it, in s. A standing queue lengthens `D` by 0.1 s at most.
    pub(super) fn loop_s(&self) -> f64 {
        (self.round_trip_s.min(self.least_round_trip_s + 0.1) + self.feedback_s + 0.03).max(0.1)
    }
}

/// Weights of a report: `ROUND_TRIP_GAIN` in the smoothed round-trip time, `FEEDBACK_GAIN` in the smoothed interval of
/// reports. `MARKED_S` is the time constant of the smoothed share of packets with an ECN mark, in s.
const ROUND_TRIP_GAIN: f64 = 0.2;
const FEEDBACK_GAIN: f64 = 0.1;
const MARKED_S: f64 = 0.1;
/// A packet with a queueing delay below `FREE_S`, in s, counts as a packet that did not wait. An ECN mark on such a
/// packet was not caused by a queue. At 2 Mbit/s, a packet of 1500 bytes takes 6 ms. A packet that arrives while such a
/// packet of another flow is transmitted waits for 3 ms on average, which is the value of `FREE_S`. `MARKED_FREE_S` is
/// the time constant, in s, of `m0`, the share of marked packets among the packets that did not wait.
const FREE_S: f64 = 0.003;
const MARKED_FREE_S: f64 = 0.3;
/// The time over which the recent arrival rate `R_del` is measured, in s.
const RECEIVED_S: f64 = 0.3;
/// The granted rate counts as not used if at most the share `LEAST_USE` of it arrives. It counts as fully used from the
/// share `LEAST_USE + USE_WIDTH` on, and as partly used between these two shares.
const LEAST_USE: f64 = 0.72;
const USE_WIDTH: f64 = 0.15;
/// A delay that rises faster than this, in s/s, is expected to rise further.
const STEEP: f64 = 0.3;
/// The base delay is held while the queueing delay is at least this, in s.
const HELD_ABOVE_S: f64 = 0.050;
/// A time without reports is a gap if it is longer than `GAPS` usual intervals and longer than `GAP_S`, in s.
const GAPS: f64 = 2.5;
const GAP_S: f64 = 0.3;
const MOST_GRANTED: usize = 512;
/// On an empty path, the mean of the smallest delays in reports exceeds the base delay, which is the minimum over all
/// packets. This excess counts as jitter, up to `MOST_JITTER_S`. The excess counts in full if the bottleneck transmits
/// a large packet in at most `WIDE_S`. It does not count if the transmission takes `NARROW_S` or longer, because then
/// the excess may come from packets of other flows that wait in the queue. All values are in s.
const MOST_JITTER_S: f64 = 0.040;
const WIDE_S: f64 = 0.0015;
const NARROW_S: f64 = 0.003;
/// A bottleneck is slow if it takes longer than this to transmit a large packet, in s. Two results led to this value:
/// how many flows on random paths have unequal rates, and which requirements (bars) of `docs/src/equipoise.md` are met.
pub(super) const SLOW_PACKET_S: f64 = 0.010;

/// The contents of one report.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    least_s: f64,
    last_s: f64,
    arrived: f64,
    marked: f64,
    /// Number of reported packets that arrived without queueing (less than [`FREE_S`] of queueing delay), and number of
    /// those that had an ECN mark.
    free: f64,
    free_marked: f64,
    arrived_bits: f64,
    /// Bits of all reported packets, including lost ones.
    covered_bits: f64,
}

/// The arrival time of a packet and its ECN mark; `None` if the packet did not arrive. If the feedback has no arrival
/// times, the time at which the feedback arrived, `heard`, is used instead.
fn arrival(fate: Fate, heard: Instant<SenderClock>) -> Option<(Instant<ReceiverClock>, Ecn)> {
    match fate {
        Fate::Arrived { at, ecn } => Some((at.unwrap_or(heard.assume_clock()), ecn)),
        Fate::Lost => None,
    }
}

impl Path {
    pub(super) const fn new() -> Self {
        Self {
            origins: None,
            base: BaseDelay::new(),
            least_round_trip: BaseDelay::new(),
            recent: Recent::new(),
            trains: Trains::new(),
            roughness: Roughness::new(),
            idle: IdleDelay::new(),
            paired: PairedDelay::new(),
            paired_over_s: 0.0,
            paired_idle: IdleDelay::new(),
            packet_time: PacketTime::new(),
            packet_s: 0.0,
            round_trip_s: None,
            feedback_s: 0.05,
            began_s: 0.0,
            reported_s: None,
            marked: 0.0,
            marked_free: 0.0,
            last_over_s: 0.0,
            peak_bps: 0.0,
            granted: VecDeque::new(),
            probed: None,
        }
    }

    /// Converts a time of the sender's clock to s since the first packet left; `None` before any packet.
    pub(super) fn seconds(&self, now: Instant<SenderClock>) -> Option<f64> {
        self.origins.map(|(origin, _)| (now - origin).as_secs_f64())
    }

    /// The time of the last report, in s; `None` before the first one.
    pub(super) const fn reported_s(&self) -> Option<f64> {
        self.reported_s
    }

    /// How long reports on sent packets must be missing to count as silence, in s.
    pub(super) fn silence_s(&self) -> f64 {
        (0.25 + self.round_trip_s.unwrap_or(0.25) + 3.0 * self.feedback_s).max(0.4)
    }

    /// Records that `rate_bps` is granted from `now_s` on. `usage` compares the arrival rate with the granted rates.
    pub(super) fn grant(&mut self, now_s: f64, rate_bps: f64) {
        self.granted.push_back((now_s, rate_bps));
        let oldest = now_s - self.round_trip_s.unwrap_or(1.0) - self.feedback_s - RECEIVED_S;
        while self.granted.len() > MOST_GRANTED || self.granted.len() > 1 && self.granted[1].0 < oldest {
            self.granted.pop_front();
        }
    }

    /// Records a packet that leaves; packets follow each other at `pace_bps` at most.
    pub(super) fn on_sent(&mut self, now: Instant<SenderClock>, packet: &SentPacket, pace_bps: f64) {
        let (origin, _) = *self.origins.get_or_insert((now, Instant::ZERO));
        if packet.probe.is_some() {
            let first = self.probed.filter(|(_, last)| last + 1 == packet.number).map_or(packet.number, |it| it.0);
            self.probed = Some((first, packet.number));
        }
        // Packets of a probe or a gauge (a short burst that measures the capacity) leave faster than the pace. They
        // count as a train only if each packet leaves within `Trains::LATE_S` of the previous packet. The infinite
        // pace has this effect.
        let pace_bps = if packet.probe.is_some() { f64::INFINITY } else { pace_bps };
        self.trains.on_sent(packet.number, (now - origin).as_secs_f64(), packet.size.as_bits() as f64, pace_bps);
    }

    /// Applies a report on packets; returns `None` if none of them arrived. If `held`, the queue does not become empty
    /// at present, so the minima in the base delay must not expire. `capacity_bps` is the measured capacity of the
    /// bottleneck.
    pub(super) fn observe(
        &mut self,
        now: Instant<SenderClock>,
        feedback: &PacketFeedback<'_>,
        held: bool,
        capacity_bps: Option<f64>,
    ) -> Option<Seen> {
        let first = feedback.packets.iter().find_map(|it| Some((it.departed, arrival(it.fate, now)?.0)))?;
        let origins = match (self.origins, self.reported_s) {
            (Some(origins), Some(_)) => origins,
            (sent, _) => *self.origins.insert((sent.map_or(first.0, |it| it.0), first.1)),
        };
        let now_s = (now - origins.0).as_secs_f64();
        if self.reported_s.is_none() {
            self.began_s = now_s;
        }
        let gap_s = now_s - self.reported_s.replace(now_s).unwrap_or(now_s - self.feedback_s);
        let elapsed_s = gap_s.clamp(0.001, 0.2);
        let after_gap = gap_s > GAP_S.max(GAPS * self.feedback_s);
        self.feedback_s += FEEDBACK_GAIN * (elapsed_s - self.feedback_s);
        self.base.come_to(now_s, held);
        self.least_round_trip.come_to(now_s, held);
        self.packet_time.come_to(now_s, held);
        let news = self.take(now, feedback, origins);
        self.packet_s = self.packet_time.packet_s().unwrap_or(0.0);
        let paired_s = self.paired.take();
        self.paired_over_s = paired_s.unwrap_or(self.paired_over_s);
        self.idle.push(now_s, held, news.least_s + self.large_base_s());
        self.paired_idle.push(now_s, held, paired_s.unwrap_or(f64::INFINITY) + self.large_base_s());
        let jitter_s = self.jitter_s(&self.idle, capacity_bps);
        let paired_jitter_s = self.jitter_s(&self.paired_idle, capacity_bps);
        self.marked += (elapsed_s / MARKED_S).min(1.0) * (news.marked / news.arrived - self.marked);
        if news.free > 0.0 {
            let gain = (elapsed_s / MARKED_FREE_S).min(1.0);
            self.marked_free += gain * (news.free_marked / news.free - self.marked_free);
        }
        let latest_round_trip_s = feedback.round_trip.map(|it| it.as_secs_f64().max(0.0));
        if let Some(round_trip_s) = latest_round_trip_s {
            self.least_round_trip.push(f64::INFINITY, round_trip_s);
            let smoothed = self.round_trip_s.get_or_insert(round_trip_s);
            *smoothed += ROUND_TRIP_GAIN * (round_trip_s - *smoothed);
        }
        let round_trip_s = self.round_trip_s.unwrap_or(0.1);
        let last_arrival_s = self.recent.newest_first().next().map_or(0.0, |it| it.arrived_s);
        let received_over_s = (now_s - self.began_s + 0.05).clamp(0.1, RECEIVED_S);
        let received_bps = self.recent.bits(received_over_s) / received_over_s;
        self.peak_bps = self.peak_bps.max(received_bps);
        let before_s = core::mem::replace(&mut self.last_over_s, news.last_s);
        Some(Seen {
            now_s,
            elapsed_s,
            after_gap,
            feedback_s: self.feedback_s,
            round_trip_s,
            latest_round_trip_s: latest_round_trip_s.unwrap_or(round_trip_s),
            least_round_trip_s: self.least_round_trip_s(),
            // A report with less jitter than usual shows an empty queue, not a negative one.
            least_s: (news.least_s - jitter_s).max(0.0),
            least_over_s: news.least_s,
            last_s: news.last_s,
            jitter_s,
            paired_s: (self.paired_over_s - paired_jitter_s).max(0.0),
            paired_jitter_s,
            rises: news.last_s - before_s > STEEP * elapsed_s,
            falls: news.last_s < before_s,
            received_bps,
            trains: self.trains.rates(last_arrival_s),
            roughness_s: self.roughness.mean_s(),
            marked: self.marked,
            marked_free: self.marked_free,
            arrived: news.arrived,
            lost: feedback.packets.len() as f64 - news.arrived,
            arrived_bits: news.arrived_bits,
            in_flight_bits: (feedback.in_flight.as_bits() as f64 - news.covered_bits).max(0.0),
            usage: self.usage(now_s, received_bps),
        })
    }

    /// Applies the packets of a report. First, the base delay is updated with all packets, because this report may
    /// contain the smallest delay.
    fn take(
        &mut self,
        now: Instant<SenderClock>,
        feedback: &PacketFeedback<'_>,
        (sent_origin, received_origin): (Instant<SenderClock>, Instant<ReceiverClock>),
    ) -> News {
        let sample = |packet: &PacketReport| {
            let (at, ecn) = arrival(packet.fate, now)?;
            let sample = Sample {
                number: packet.number,
                departed_s: (packet.departed - sent_origin).as_secs_f64(),
                arrived_s: (at - received_origin).as_secs_f64(),
                bits: packet.size.as_bits() as f64,
                over_s: 0.0,
            };
            Some((sample, ecn))
        };
        let mut news = News { least_s: f64::INFINITY, last_s: self.last_over_s, ..News::default() };
        for packet in feedback.packets {
            news.covered_bits += packet.size.as_bits() as f64;
            if let Some((sample, _)) = sample(packet) {
                self.base.push(sample.bits, sample.arrived_s - sample.departed_s);
            }
        }
        let bases = self.base.bases();
        for (sample, ecn) in feedback.packets.iter().filter_map(sample) {
            let base = bases[SizeClass::of(sample.bits) as usize];
            let sample = Sample { over_s: sample.arrived_s - sample.departed_s - base, ..sample };
            let follows = self.trains.push(sample);
            self.roughness.push(&sample, follows);
            self.recent.push(sample);
            self.packet_time.push(&sample);
            news.least_s = news.least_s.min(sample.over_s);
            // A probe causes a short queue of its own, which says nothing about the queue of the path.
            if self.probed.is_none_or(|(first, last)| !(first..=last).contains(&sample.number)) {
                news.last_s = sample.over_s;
                self.paired.push(&sample);
            }
            (news.arrived, news.arrived_bits) = (news.arrived + 1.0, news.arrived_bits + sample.bits);
            let (mark, free) = (f64::from(ecn == Ecn::Ce), f64::from(sample.over_s < FREE_S));
            (news.marked, news.free, news.free_marked) =
                (news.marked + mark, news.free + free, news.free_marked + free * mark);
        }
        news
    }

    /// Returns the jitter (`j` or `jp`), in s: the delay `idle` minus the base delay, at most `MOST_JITTER_S`. On a
    /// slow bottleneck, the result is scaled down. If the bottleneck's capacity `capacity_bps` is unknown, the result
    /// is zero.
    fn jitter_s(&self, idle: &IdleDelay, capacity_bps: Option<f64>) -> f64 {
        let Some((capacity_bps, idle_s)) = capacity_bps.zip(idle.delay_s()) else { return 0.0 };
        let packet_s = SizeClass::Large.usual_bits() / capacity_bps;
        let wide = ((NARROW_S - packet_s) / (NARROW_S - WIDE_S)).clamp(0.0, 1.0);
        wide * (idle_s - self.large_base_s()).clamp(0.0, MOST_JITTER_S)
    }

    fn large_base_s(&self) -> f64 {
        self.base.of(SizeClass::Large.usual_bits())
    }

    fn least_round_trip_s(&self) -> f64 {
        let least = self.least_round_trip.of(f64::INFINITY);
        if least.is_finite() { least } else { 0.1 }
    }

    fn usage(&self, now_s: f64, received_bps: f64) -> f64 {
        let until_s = now_s - self.round_trip_s.unwrap_or(0.1) - self.feedback_s / 2.0;
        let mut sum = (0.0, 0.0);
        for (_, rate_bps) in self.granted.iter().filter(|it| it.0 <= until_s && it.0 > until_s - RECEIVED_S) {
            sum = (sum.0 + rate_bps, sum.1 + 1.0);
        }
        let granted_bps =
            if sum.1 > 0.0 { sum.0 / sum.1 } else { self.granted.front().map_or(received_bps, |it| it.1) };
        ((received_bps / granted_bps.max(1.0) - LEAST_USE) / USE_WIDTH).clamp(0.0, 1.0)
    }

    /// Whether the smallest queueing delay in a report, in s, is so long that the stored minima of the base delay must
    /// not expire.
    pub(super) fn holds_base(least_s: f64) -> bool {
        least_s >= HELD_ABOVE_S
    }

    /// The queueing delay of the last reported packet that is not part of a probe, in s.
    pub(super) const fn last_over_s(&self) -> f64 {
        self.last_over_s
    }

    /// The time that the bottleneck takes to transmit a large packet, in s. The value is zero, as for a fast link,
    /// until packets of several sizes have arrived.
    pub(super) const fn packet_s(&self) -> f64 {
        self.packet_s
    }

    /// Whether the bottleneck is slow, as far as can be known: [`Self::packet_s`] is above `SLOW_PACKET_S`, and data
    /// never arrived faster than a large packet per `SLOW_PACKET_S`. The second condition is necessary because a queue
    /// that never empties can make [`Self::packet_s`] too long.
    pub(super) fn is_slow(&self) -> bool {
        self.packet_s > SLOW_PACKET_S && self.peak_bps * SLOW_PACKET_S < SizeClass::Large.usual_bits()
    }

    /// The capacity of a slow bottleneck, in bit/s, from the time that it takes for a large packet. `None` on a faster
    /// link, where the noise of the delays makes this value uncertain.
    pub(super) fn slow_capacity_bps(&self) -> Option<f64> {
        self.is_slow().then(|| SizeClass::Large.usual_bits() / self.packet_s)
    }

    /// Adjusts the measurements after the path became longer by `by_s`, in s. The packet time is not adjusted, because
    /// it depends only on differences of delays.
    pub(super) fn shift(&mut self, by_s: f64) {
        self.base.shift(by_s);
        self.idle.shift(by_s);
        (self.paired, self.paired_over_s) = (PairedDelay::new(), 0.0);
        self.paired_idle.shift(by_s);
        self.least_round_trip.shift(by_s);
        self.recent.clear();
    }

    /// Adjusts the base delays after the bottleneck became slower, because packets then take longer.
    pub(super) fn slowed(&mut self, before_bps: f64, now_bps: f64) {
        self.base.slowed(before_bps, now_bps);
        self.idle.slowed(before_bps, now_bps);
        self.paired_idle.slowed(before_bps, now_bps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Size;

    /// A path with a base delay of 50 ms, whose reports' smallest delays are 52 and 60 ms by turns.
    fn rough_path() -> Path {
        let mut path = Path::new();
        path.base.push(SizeClass::Large.usual_bits(), 0.050);
        for number in 0..100u32 {
            path.idle.push(0.05 * f64::from(number), false, if number % 2 == 0 { 0.052 } else { 0.060 });
        }
        path
    }

    /// If this test fails, flows on a wide path with jitter take the jitter for a queue, or flows on a slow path take
    /// the packets of other flows for jitter.
    #[test]
    fn the_idle_delay_above_the_base_is_jitter_on_wide_paths_only() {
        let jitter_s = |capacity_bps| {
            let path = rough_path();
            path.jitter_s(&path.idle, capacity_bps)
        };
        let all_s = jitter_s(Some(20e6));
        assert!((all_s - 0.006).abs() < 0.0015, "the mean of 2 and 10 ms: {all_s}");
        assert!((jitter_s(Some(6.5e6)) - all_s).abs() < 1e-12);
        assert!(jitter_s(Some(4.2e6)) < 0.55 * all_s);
        for capacity_bps in [Some(3e6), None] {
            assert!(jitter_s(capacity_bps) < 1e-12, "{capacity_bps:?}");
        }
    }

    /// If this test fails, the law sees a negative queue after a report without jitter, and raises the rate too fast.
    /// Or the law mistakes a part of a competing flow's queue for jitter.
    #[test]
    fn a_report_with_less_jitter_than_usual_shows_an_empty_queue() {
        let mut path = rough_path();
        let fate = Fate::Arrived { at: Some(Instant::ZERO), ecn: Ecn::NotEct };
        let packets = [PacketReport::new(0, Size::from_bytes(1200), Instant::ZERO, fate)];
        let feedback = PacketFeedback::new(&packets, Size::from_bytes(1200));
        path.base = BaseDelay::new();
        path.base.push(SizeClass::Large.usual_bits(), -0.001);
        let seen = path.observe(Instant::ZERO, &feedback, false, Some(20e6)).expect("a packet arrived");
        assert!(seen.jitter_s > 0.003, "{}", seen.jitter_s);
        assert!(seen.least_s.abs() < 1e-12, "{}", seen.least_s);
        assert!((seen.least_over_s - 0.001).abs() < 1e-12, "a rival is looked for without it: {}", seen.least_over_s);
    }
}
