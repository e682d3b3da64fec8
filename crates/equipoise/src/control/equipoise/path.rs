use alloc::collections::VecDeque;

use crate::control::{Ecn, Fate, PacketFeedback, PacketReport, SentPacket};
use crate::measure::packets::{BaseDelay, Recent, Roughness, Sample, SizeClass, TrainRates, Trains};
use crate::units::{Instant, ReceiverClock, SenderClock};

/// The path's properties, measured from feedback on its packets.
#[derive(Clone, Debug)]
pub(super) struct Path {
    /// The times from which the seconds of both clocks are counted.
    origins: Option<(Instant<SenderClock>, Instant<ReceiverClock>)>,
    base: BaseDelay,
    /// The smallest round trip, over the same window as the base.
    least_round_trip: BaseDelay,
    pub(super) recent: Recent,
    trains: Trains,
    roughness: Roughness,
    /// `rtt` and `fb`, smoothed, in s.
    round_trip_s: Option<f64>,
    feedback_s: f64,
    began_s: f64,
    reported_s: Option<f64>,
    /// `m`, the smoothed share of marks, and `m0`, that of packets that did not wait.
    marked: f64,
    marked_free: f64,
    last_over_s: f64,
    granted: VecDeque<(f64, f64)>,
    /// The numbers of the first and the last packet of the last probe.
    probed: Option<(u64, u64)>,
}

/// The contents of a report, and the path's properties after it. Times in s, rates in bit/s.
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
    /// `dq` and `dl`: the smallest delay above the base in this report, and that of its last packet.
    pub(super) least_s: f64,
    pub(super) last_s: f64,
    /// Whether the delay rises by more than 0.3 s per second.
    pub(super) rises: bool,
    /// Whether the last packet waited for less than the last one of the report before.
    pub(super) falls: bool,
    /// `R_del`, the recent arrival rate.
    pub(super) received_bps: f64,
    /// `A`, the rate of packet trains.
    pub(super) trains: Option<TrainRates>,
    /// `n`, the roughness of delays.
    pub(super) roughness_s: f64,
    /// `m`, the smoothed share of marks, and `m0`, that of packets that did not wait.
    pub(super) marked: f64,
    pub(super) marked_free: f64,
    pub(super) arrived: f64,
    pub(super) lost: f64,
    pub(super) arrived_bits: f64,
    /// Data in flight that this report does not cover.
    pub(super) in_flight_bits: f64,
    /// `u`, 1 if the granted rate is used, 0 if a good part of it is not.
    pub(super) usage: f64,
}

impl Seen {
    /// `D`, from a decision to the report on it, in s. A standing queue lengthens it by a limited amount only.
    pub(super) fn loop_s(&self) -> f64 {
        (self.round_trip_s.min(self.least_round_trip_s + 0.1) + self.feedback_s + 0.03).max(0.1)
    }
}

/// Weights of a report in `rtt` and `fb`, and time constant of `m`, in s.
const ROUND_TRIP_GAIN: f64 = 0.2;
const FEEDBACK_GAIN: f64 = 0.1;
const MARKED_S: f64 = 0.1;
/// A packet with less delay than the first value, in s, hardly waited, so that its mark is not from a queue that it
/// stood in. The value is half the transmission time of another flow's large packet at 2 Mbit/s. The second one is the
/// time constant of `m0`, in s.
const FREE_S: f64 = 0.003;
const MARKED_FREE_S: f64 = 0.3;
/// The time over which `R_del` is measured, in s.
const RECEIVED_S: f64 = 0.3;
/// The granted rate starts to count as used from the first share of it on, and counts in full after the second one
/// more.
const LEAST_USE: f64 = 0.72;
const USE_WIDTH: f64 = 0.15;
/// A delay that rises faster than this will not stay where it is, in s/s.
const STEEP: f64 = 0.3;
/// The base is held while the queue is longer than this, in s.
const HELD_ABOVE_S: f64 = 0.050;
/// Missing reports are a gap after the first number of usual intervals, and after at least the second value, in s.
const GAPS: f64 = 2.5;
const GAP_S: f64 = 0.3;
const MOST_GRANTED: usize = 512;
/// Size of a large packet, in bits.
const LARGE_BITS: f64 = 9600.0;

/// The contents of one report.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    least_s: f64,
    last_s: f64,
    arrived: f64,
    marked: f64,
    /// Packets that did not wait, and those of them with marks.
    free: f64,
    free_marked: f64,
    arrived_bits: f64,
    /// Bits of all packets, including lost ones.
    covered_bits: f64,
}

/// The arrival time of a packet and its mark; `None` if it did not arrive. Without an arrival time, that of the
/// feedback.
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
            round_trip_s: None,
            feedback_s: 0.05,
            began_s: 0.0,
            reported_s: None,
            marked: 0.0,
            marked_free: 0.0,
            last_over_s: 0.0,
            granted: VecDeque::new(),
            probed: None,
        }
    }

    /// Converts a time of the sender's clock to s since the first reported packet.
    pub(super) fn seconds(&self, now: Instant<SenderClock>) -> Option<f64> {
        self.origins.map(|(origin, _)| (now - origin).as_secs_f64())
    }

    /// The time of the last report, in s.
    pub(super) const fn reported_s(&self) -> Option<f64> {
        self.reported_s
    }

    /// The time without reports that counts as silence, in s.
    pub(super) fn silence_s(&self) -> f64 {
        (0.25 + self.round_trip_s.unwrap_or(0.25) + 3.0 * self.feedback_s).max(0.4)
    }

    /// Records the rate from `now_s` on, with which `usage` compares the arrival rate.
    pub(super) fn grant(&mut self, now_s: f64, rate_bps: f64) {
        self.granted.push_back((now_s, rate_bps));
        let oldest = now_s - self.round_trip_s.unwrap_or(1.0) - self.feedback_s - RECEIVED_S;
        while self.granted.len() > MOST_GRANTED || self.granted.len() > 1 && self.granted[1].0 < oldest {
            self.granted.pop_front();
        }
    }

    /// Records a departure; packets follow each other at `pace_bps` at most.
    pub(super) fn on_sent(&mut self, now: Instant<SenderClock>, packet: &SentPacket, pace_bps: f64) {
        let (origin, _) = *self.origins.get_or_insert((now, Instant::ZERO));
        if packet.probe.is_some() {
            let first = self.probed.filter(|(_, last)| last + 1 == packet.number).map_or(packet.number, |it| it.0);
            self.probed = Some((first, packet.number));
        }
        // A probe is faster than the pace, and not a train of frames.
        let pace_bps = if packet.probe.is_some() { f64::INFINITY } else { pace_bps };
        self.trains.on_sent(packet.number, (now - origin).as_secs_f64(), packet.size.as_bits() as f64, pace_bps);
    }

    /// Applies a report of packets; `None` if none of them arrived. `held` is whether a queue is known not to empty.
    pub(super) fn observe(
        &mut self,
        now: Instant<SenderClock>,
        feedback: &PacketFeedback<'_>,
        held: bool,
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
        let news = self.take(now, feedback, origins);
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
        let before_s = core::mem::replace(&mut self.last_over_s, news.last_s);
        Some(Seen {
            now_s,
            elapsed_s,
            after_gap,
            feedback_s: self.feedback_s,
            round_trip_s,
            latest_round_trip_s: latest_round_trip_s.unwrap_or(round_trip_s),
            least_round_trip_s: self.least_round_trip_s(),
            least_s: news.least_s,
            last_s: news.last_s,
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

    /// Applies the packets of a report. All delays go into the base first, as this report may contain the smallest one.
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
            news.least_s = news.least_s.min(sample.over_s);
            // The short queue that a probe causes is not the path's state.
            if self.probed.is_none_or(|(first, last)| !(first..=last).contains(&sample.number)) {
                news.last_s = sample.over_s;
            }
            (news.arrived, news.arrived_bits) = (news.arrived + 1.0, news.arrived_bits + sample.bits);
            let (mark, free) = (f64::from(ecn == Ecn::Ce), f64::from(sample.over_s < FREE_S));
            (news.marked, news.free, news.free_marked) =
                (news.marked + mark, news.free + free, news.free_marked + free * mark);
        }
        news
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

    /// Whether a report with this queueing delay requires that the base be held.
    pub(super) fn holds_base(least_s: f64) -> bool {
        least_s >= HELD_ABOVE_S
    }

    /// The queueing delay of the last packet that was reported, in s.
    pub(super) const fn last_over_s(&self) -> f64 {
        self.last_over_s
    }

    /// The time that the bottleneck takes for a large packet, in s. Without packets of several sizes, the bottleneck is
    /// assumed to be as slow as the own rate.
    pub(super) fn packet_s(&self, rate_bps: f64) -> f64 {
        self.base.packet_s().unwrap_or(LARGE_BITS / rate_bps.max(1.0))
    }

    /// The path became longer by `by_s`.
    pub(super) fn shift(&mut self, by_s: f64) {
        self.base.shift(by_s);
        self.least_round_trip.shift(by_s);
        self.recent.clear();
    }

    /// The bottleneck became slower.
    pub(super) fn slowed(&mut self, before_bps: f64, now_bps: f64) {
        self.base.slowed(before_bps, now_bps);
    }
}
