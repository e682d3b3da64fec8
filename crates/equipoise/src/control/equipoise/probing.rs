use super::path::Path;
use crate::control::{Probe, RateLimits, SentPacket};
use crate::measure::packets::Capacity;
use crate::units::{Rate, Size};

/// Probes at the start: trains so short that they make no queue worth the name, each a good deal faster than what the one before has proved.
///
/// What a train of frames shows is bounded by the pace at which it leaves, so that growth alone takes seconds to a wide path. A probe of some
/// 10 ms answers within a round trip whether the path takes several times the rate. Probing is over with the first probe that comes slower than it
/// left, or with the first queue; libwebrtc's probes follow the same idea. Numbers are ours.
///
/// Behind the start the first packets of a frame leave as a **gauge** now and then: at three times the capacity, so that what they are spread to tells the
/// capacity ([`Capacity`]), and with it the own share. Nothing is sent for it that would not be, but where a frame has not packets enough.
#[derive(Clone, Debug)]
pub(super) struct Probing {
    wanted: Option<Probe>,
    under_way: Option<UnderWay>,
    max_bps: f64,
    count: u64,
    /// The most that a probe proved at the start, in bit/s.
    proved_bps: f64,
    /// When the last gauge left, in s, and whether it is one that is under way.
    gauged_s: f64,
    gauges: bool,
    capacity: Capacity,
}

/// A probe that has left, or is leaving: numbers of its first and last packet, what left, and since when.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    first: u64,
    last: u64,
    packets: u32,
    size: Size,
    began_s: f64,
}

/// The rate of a probe over what is proved.
const FURTHER: f64 = 3.0;
/// Its packets, and its length in s: enough for stamps of a quarter of a millisecond.
const PACKETS: u32 = 5;
const LENGTH_S: f64 = 0.008;
/// From this share of the rate at which it left on it came through as it was.
const WHOLE: f64 = 0.85;
/// The share of what a probe proved that is used: what others send meanwhile is in it.
const USED: f64 = 0.9;
/// The share of its packets that have to arrive.
const ENOUGH: f64 = 0.9;
/// For how long a probe's packets are waited for, in s.
const PATIENCE_S: f64 = 1.0;
/// Gauges are so far apart, in s: until the capacity is known well, then, and where the flow has nearly all of it, so that `C` is below so many times its rate.
const GAUGE_EVERY_S: f64 = 0.5;
const KNOWN_EVERY_S: f64 = 1.5;
const ALONE_EVERY_S: f64 = 3.0;
const ALONE: f64 = 1.3;
/// How long a gauge takes at the bottleneck, in s, so that stamps of 1 ms show it; no less than two packets, where these take no longer than so long.
const GAUGE_S: f64 = 0.006;
const PACKET_BITS: f64 = 9600.0;
const HALF_PACKET_BITS: f64 = PACKET_BITS / 2.0;
const LEAST_GAUGE_BITS: f64 = 2.0 * PACKET_BITS;
const LONGEST_PAIR_S: f64 = 0.02;
/// Where a frame is smaller than a gauge, padding is no more than this share of what is sent.
const PADDING: f64 = 0.03;
/// Packets that a frame is cut into may be so much smaller than the largest.
const SMALLER: f64 = 0.95;

impl Probing {
    /// Wants the first probe at once.
    pub(super) fn new(limits: RateLimits) -> Self {
        let mut probing = Self {
            wanted: None,
            under_way: None,
            max_bps: limits.max().as_bps_f64(),
            count: 0,
            proved_bps: 0.0,
            gauged_s: 0.0,
            gauges: false,
            capacity: Capacity::new(),
        };
        probing.want(limits.start().as_bps_f64());
        probing
    }

    /// The probe to send now.
    pub(super) const fn wanted(&self) -> Option<Probe> {
        self.wanted
    }

    /// A packet leaves.
    pub(super) fn on_sent(&mut self, now_s: f64, packet: &SentPacket) {
        let Some(wanted) = self.wanted.filter(|wanted| packet.probe == Some(wanted.number)) else { return };
        let (first, began_s) = (packet.number, now_s);
        let under_way =
            self.under_way.get_or_insert(UnderWay { first, last: first, packets: 0, size: Size::ZERO, began_s });
        under_way.last = packet.number;
        under_way.packets += 1;
        under_way.size = under_way.size + packet.size;
        if under_way.packets >= wanted.packets && under_way.size >= wanted.size {
            self.wanted = None;
        }
    }

    /// What gauges showed is over: the bottleneck became slower.
    pub(super) fn forget(&mut self) {
        self.capacity = Capacity::new();
    }

    /// The capacity of the bottleneck in bit/s, where gauges have shown it.
    pub(super) fn capacity_bps(&self) -> Option<f64> {
        self.capacity.bps()
    }

    fn gauge_every_s(&self, own_bps: f64) -> f64 {
        match self.capacity.bps().filter(|_| self.capacity.is_known_well()) {
            None => GAUGE_EVERY_S,
            Some(bps) if bps > ALONE * own_bps => KNOWN_EVERY_S,
            Some(_) => ALONE_EVERY_S,
        }
    }

    /// A frame of so many bits joins what waits, in a flow that sends `own_bps`: a gauge may leave with it.
    pub(super) fn on_frame(&mut self, now_s: f64, frame_bits: f64, own_bps: f64) {
        let since_s = now_s - self.gauged_s;
        if self.wanted.is_some() || self.under_way.is_some() || since_s < self.gauge_every_s(own_bps) {
            return;
        }
        let capacity_bps = self.capacity.bps().unwrap_or(self.proved_bps).max(own_bps);
        let bits = (GAUGE_S * capacity_bps).min(frame_bits - HALF_PACKET_BITS).max(LEAST_GAUGE_BITS);
        let padding_bits = (bits + HALF_PACKET_BITS - frame_bits).max(0.0);
        let is_long = self.capacity.bps().is_some_and(|bps| LEAST_GAUGE_BITS > LONGEST_PAIR_S * bps);
        if padding_bits > 0.0 && (is_long || padding_bits > PADDING * own_bps * since_s) {
            return;
        }
        let packets = (bits / PACKET_BITS) as u32;
        self.gauged_s = now_s;
        self.gauges = true;
        self.count += 1;
        // Packets of a frame are alike and no larger than the largest: their count is what ends the gauge.
        let size = Size::from_bytes((f64::from(packets) * SMALLER * PACKET_BITS / 8.0) as u64);
        self.wanted =
            Rate::from_bps_f64(FURTHER * capacity_bps).map(|rate| Probe::new(self.count, rate, packets, size));
    }

    /// A report came, in a flow that sends `own_bps`: the rate in bit/s that a probe has proved by now, if it has.
    pub(super) fn on_report(&mut self, now_s: f64, path: &Path, has_queued: bool, own_bps: f64) -> Option<f64> {
        let under_way = self.under_way.filter(|_| self.wanted.is_none())?;
        let newest = path.recent.newest_first().next()?.number;
        if newest < under_way.last && now_s - under_way.began_s < PATIENCE_S {
            return None;
        }
        self.under_way = None;
        let is_gauge = core::mem::take(&mut self.gauges);
        let mut packets =
            path.recent.newest_first().filter(|it| (under_way.first..=under_way.last).contains(&it.number));
        let last = packets.next()?;
        let (mut bits, mut first, mut arrived) = (last.bits, last, 1.0);
        for packet in packets {
            (bits, first, arrived) = (bits + packet.bits, packet, arrived + 1.0);
        }
        if arrived < ENOUGH * f64::from(under_way.packets) {
            return None;
        }
        bits -= first.bits;
        let spans_s = (last.departed_s - first.departed_s, last.arrived_s - first.arrived_s);
        if is_gauge {
            self.capacity.push(now_s, bits, spans_s, own_bps);
            return None;
        }
        let left_bps = bits / spans_s.0.max(1e-6);
        let proved_bps = left_bps.min(bits / spans_s.1.max(1e-6));
        self.proved_bps = self.proved_bps.max(proved_bps);
        if proved_bps > WHOLE * left_bps && !has_queued {
            self.want(proved_bps);
        }
        Some(USED * proved_bps)
    }

    fn want(&mut self, proved_bps: f64) {
        let bps = (FURTHER * proved_bps).min(self.max_bps / USED);
        if proved_bps >= self.max_bps {
            return;
        }
        self.count += 1;
        let size = Size::from_bytes((bps * LENGTH_S / 8.0) as u64);
        self.wanted = Rate::from_bps_f64(bps).map(|rate| Probe::new(self.count, rate, PACKETS, size));
    }
}
