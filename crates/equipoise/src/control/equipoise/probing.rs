use super::path::Path;
use crate::control::{Probe, RateLimits, SentPacket};
use crate::measure::packets::Capacity;
use crate::units::{Rate, Size};

/// Probes at the start: packet trains so short that they cause no significant queue, each three times as fast as the
/// rate that the previous one has proved.
///
/// A train of frames cannot measure more than the pace at which it is sent, so that growth alone takes seconds to reach
/// a wide path's rate. A probe of about 10 ms shows within one round trip whether the path carries a multiple of the
/// rate. Probing ends with the first probe that arrives slower than it was sent, or with the first queue. The probes of
/// libwebrtc follow the same idea. The numbers are ours.
///
/// After the start, the first packets of a frame are sent as a **gauge** from time to time: at three times the
/// capacity, so that their spread on arrival measures the capacity ([`Capacity`]). A gauge raises no rate. It
/// consists of packets that are sent anyway, and of padding only if a frame has too few.
#[derive(Clone, Debug)]
pub(super) struct Probing {
    wanted: Option<Probe>,
    under_way: Option<UnderWay>,
    max_bps: f64,
    count: u64,
    /// The highest rate that a probe proved at the start, in bit/s.
    proved_bps: f64,
    /// The time of the last gauge, in s, and whether the probe that is wanted or in flight is a gauge.
    gauged_s: f64,
    is_gauge: bool,
    capacity: Capacity,
}

/// A probe in flight or being sent: the numbers of its first and last packet, what was sent, and when it began.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    first: u64,
    last: u64,
    packets: u32,
    size: Size,
    began_s: f64,
}

/// Ratio of a probe's rate to the proved rate.
const FURTHER: f64 = 3.0;
/// Minimum number of packets, and length in s: enough for timestamps with a granularity of 0.25 ms.
const PACKETS: u32 = 5;
const LENGTH_S: f64 = 0.008;
/// A probe that arrives at more than this share of its sending rate was not slowed.
const WHOLE: f64 = 0.85;
/// The share of the proved rate that is used, because that rate includes a part that cross traffic uses.
const USED: f64 = 0.9;
/// The share of its packets that must arrive.
const ENOUGH: f64 = 0.9;
/// The longest time to wait for a probe's packets, in s.
const PATIENCE_S: f64 = 1.0;
/// No gauge is sent before this time, in s: at the start, probes measure, and the link may be slow.
const FIRST_GAUGE_S: f64 = 3.0;
/// The interval of gauges, in s: until there are enough readings; after that; and if the flow has nearly all of the
/// capacity, which then is less than `ALONE` times its rate.
const GAUGE_EVERY_S: f64 = 0.3;
const KNOWN_EVERY_S: f64 = 1.0;
const ALONE_EVERY_S: f64 = 10.0;
const ALONE: f64 = 1.3;
/// A gauge takes the bottleneck this time, in s, so that timestamps of 1 ms show it, and has at least two packets, of
/// the given size in bits. If these take longer than `LONGEST_PAIR_S`, no padding is sent for them.
const GAUGE_S: f64 = 0.006;
const PACKET_BITS: f64 = 9600.0;
const HALF_PACKET_BITS: f64 = PACKET_BITS / 2.0;
const LEAST_GAUGE_BITS: f64 = 2.0 * PACKET_BITS;
const LONGEST_PAIR_S: f64 = 0.02;
/// The highest share of padding in what is sent, if frames are smaller than a gauge.
const PADDING: f64 = 0.03;
/// The packets of a frame may be this much smaller than the largest.
const SMALLER: f64 = 0.95;

impl Probing {
    /// Requests the first probe at once.
    pub(super) fn new(limits: RateLimits) -> Self {
        let mut probing = Self {
            wanted: None,
            under_way: None,
            max_bps: limits.max().as_bps_f64(),
            count: 0,
            proved_bps: 0.0,
            gauged_s: 0.0,
            is_gauge: false,
            capacity: Capacity::new(),
        };
        probing.want(limits.start().as_bps_f64());
        probing
    }

    /// The probe to send now.
    pub(super) const fn wanted(&self) -> Option<Probe> {
        self.wanted
    }

    /// Records a departure.
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

    /// Discards the measured capacity, as the bottleneck became slower.
    pub(super) fn forget(&mut self) {
        self.capacity = Capacity::new();
    }

    /// The capacity of the bottleneck in bit/s, if gauges have measured it.
    pub(super) fn capacity_bps(&self) -> Option<f64> {
        self.capacity.bps()
    }

    /// The interval between gauges, in s.
    fn gauge_every_s(&self, own_bps: f64) -> f64 {
        match self.capacity.bps().filter(|_| self.capacity.is_known_well()) {
            None => GAUGE_EVERY_S,
            Some(bps) if bps > ALONE * own_bps => KNOWN_EVERY_S,
            Some(_) => ALONE_EVERY_S,
        }
    }

    /// A frame of `frame_bits` waits to be sent, in a flow of the rate `own_bps`: requests a gauge if one is due.
    pub(super) fn on_frame(&mut self, now_s: f64, frame_bits: f64, own_bps: f64) {
        let since_s = now_s - self.gauged_s;
        let is_due = now_s >= FIRST_GAUGE_S && since_s >= self.gauge_every_s(own_bps);
        if !is_due || self.wanted.is_some() || self.under_way.is_some() {
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
        let Some(rate) = Rate::from_bps_f64(FURTHER * capacity_bps) else { return };
        (self.gauged_s, self.is_gauge) = (now_s, true);
        self.count += 1;
        // The packets of a frame have nearly one size, so that their number ends the gauge.
        let size = Size::from_bytes((f64::from(packets) * SMALLER * PACKET_BITS / 8.0) as u64);
        self.wanted = Some(Probe::new(self.count, rate, packets, size));
    }

    /// Applies a report, in a flow of the rate `own_bps`: returns the rate in bit/s that a finished probe has proved.
    pub(super) fn on_report(&mut self, now_s: f64, path: &Path, has_queued: bool, own_bps: f64) -> Option<f64> {
        let under_way = self.under_way.filter(|_| self.wanted.is_none())?;
        let newest = path.recent.newest_first().next()?.number;
        if newest < under_way.last && now_s - under_way.began_s < PATIENCE_S {
            return None;
        }
        self.under_way = None;
        let is_gauge = core::mem::take(&mut self.is_gauge);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Probing whose start is over, in a flow of 1 Mbit/s.
    fn started() -> Probing {
        let mbps = |rate: u64| Rate::from_bps(rate * 1_000_000);
        let mut probing = Probing::new(RateLimits::within(mbps(1), mbps(10)));
        probing.wanted = None;
        probing
    }

    /// If it fails, every frame is sent as a burst, or the start of a flow is.
    #[test]
    fn a_gauge_is_due_after_the_start_and_not_with_every_frame() {
        let mut probing = started();
        probing.on_frame(FIRST_GAUGE_S - 0.1, 40_000.0, 1e6);
        assert_eq!(probing.wanted(), None);
        probing.on_frame(FIRST_GAUGE_S, 40_000.0, 1e6);
        let gauge = probing.wanted().expect("a gauge");
        assert_eq!((gauge.rate, gauge.packets), (Rate::from_bps(3_000_000), 2));
        probing.wanted = None;
        probing.on_frame(FIRST_GAUGE_S + 0.9 * GAUGE_EVERY_S, 40_000.0, 1e6);
        assert_eq!(probing.wanted(), None);
    }

    /// If it fails, a flow of small frames sends mostly padding.
    #[test]
    fn a_frame_that_is_too_small_becomes_a_gauge_when_its_padding_is_a_small_share() {
        let mut probing = started();
        probing.gauged_s = FIRST_GAUGE_S;
        // The gauge's two packets and half a one, less the frame, are 14 kbit: 3 % of 1 Mbit/s within 0.47 s.
        for (after_s, is_sent) in [(0.4, false), (0.5, true)] {
            probing.on_frame(FIRST_GAUGE_S + after_s, 10_000.0, 1e6);
            assert_eq!(probing.wanted().is_some(), is_sent, "{after_s}");
        }
    }

    /// If it fails, a receiver that reports impossible times makes a gauge of more than a frame.
    #[test]
    fn a_gauge_is_no_longer_than_the_frame_whatever_the_reports_say() {
        let mut probing = started();
        for train in 0..8 {
            probing.capacity.push(f64::from(train), 1e9, (1e-6, 0.0), 1e6);
        }
        assert!(probing.capacity_bps().expect("eight trains") > 1e12);
        probing.on_frame(100.0, 48_000.0, 1e6);
        assert!(probing.wanted().is_some_and(|gauge| gauge.packets <= 5 && gauge.size.as_bits() <= 48_000));
    }
}
