use super::path::Path;
use crate::control::{Probe, QueuedFrame, RateLimits, SentPacket};
use crate::measure::packets::Capacity;
use crate::units::{Rate, Size};

/// Probes at the start. A probe is a packet train so short that it causes no significant queue. Each probe is three
/// times as fast as the rate that the previous probe has proved.
///
/// The packet train of a frame cannot measure more than the pace at which it is sent. So growth alone takes seconds to
/// reach the rate of a wide path. A short probe shows within one round trip whether the path carries a multiple of the
/// rate. Probing ends if a probe arrives slower than it was sent, or if it loses too many packets. Probing also ends if
/// there is a queue, or if the maximum rate is reached. The probes of libwebrtc follow the same idea. The numbers are
/// ours.
///
/// After the start, the first packets of a frame are sent from time to time as a **gauge**: at three times the
/// capacity, so that their spread on arrival measures the capacity ([`Capacity`]). A gauge does not raise the rate. It
/// consists of packets that are sent anyway, and includes padding only if a frame has too few packets.
#[derive(Clone, Debug)]
pub(super) struct Probing {
    wanted: Option<Probe>,
    under_way: Option<UnderWay>,
    max_bps: f64,
    count: u64,
    /// The highest rate at which a probe at the start was both sent and received, in bit/s.
    proved_bps: f64,
    /// A gauge is a probe that measures the capacity. `gauged_s` is the time of the last gauge, in s. `is_gauge` says
    /// whether the probe that is wanted or in flight is a gauge.
    gauged_s: f64,
    is_gauge: bool,
    capacity: Capacity,
}

/// A probe that is being sent or in flight: the numbers of its first and last packet, the number and the total size of
/// the packets sent so far, and the time when the first one left, in s.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    first: u64,
    last: u64,
    packets: u32,
    size: Size,
    began_s: f64,
}

/// A probe is sent at `FURTHER` times the rate at which the previous probe arrived. The first probe is sent at
/// `FURTHER` times the start rate. A gauge, which is a burst that measures the capacity, is sent at `FURTHER` times the
/// capacity known so far.
const FURTHER: f64 = 3.0;
/// Minimum number of packets of a probe, and its minimum length, in s. Both are enough for timestamps with a
/// granularity of 0.25 ms.
const PACKETS: u32 = 5;
const LENGTH_S: f64 = 0.008;
/// A probe that arrives at more than this share of its sending rate was not slowed down by the path.
const WHOLE: f64 = 0.85;
/// A probe proves a rate that the path can carry. The flow uses only this share of the proved rate, because cross
/// traffic uses a part of it.
const USED: f64 = 0.9;
/// A probe gives a result only if at least this share of its packets has arrived.
const ENOUGH: f64 = 0.9;
/// The longest time to wait for a probe's packets, in s.
const PATIENCE_S: f64 = 1.0;
/// Minimum time from the flow's first packet to its first gauge, in s. A gauge is a burst that measures the capacity.
/// The link may be slow, and an earlier gauge would add to its queue. Until then, probes measure the path.
const FIRST_GAUGE_S: f64 = 3.0;
/// Interval between two gauges (measurements of the capacity), in s. The interval is `GAUGE_EVERY_S` until the capacity
/// is known well, and `KNOWN_EVERY_S` from then on. If the known capacity is at most `ALONE` times the flow's rate, the
/// flow has nearly all of the capacity, and the interval is `ALONE_EVERY_S`.
const GAUGE_EVERY_S: f64 = 0.3;
const KNOWN_EVERY_S: f64 = 1.0;
const ALONE_EVERY_S: f64 = 10.0;
const ALONE: f64 = 1.3;
/// A gauge is a packet train that measures the capacity. It consists of the first packets of a media frame. Its size is
/// what the bottleneck serves within `GAUGE_S`, in s, which is enough for timestamps with a granularity of 1 ms. A
/// gauge from a small frame is shorter, but has at least two packets of `PACKET_BITS`. If the frame is too small for
/// two packets, it is padded. If the bottleneck takes longer than `LONGEST_PAIR_S`, in s, for two packets, such a frame
/// is not padded and carries no gauge.
const GAUGE_S: f64 = 0.006;
const PACKET_BITS: f64 = 9600.0;
const HALF_PACKET_BITS: f64 = PACKET_BITS / 2.0;
const LEAST_GAUGE_BITS: f64 = 2.0 * PACKET_BITS;
const LONGEST_PAIR_S: f64 = 0.02;
/// A media frame may be too small for a gauge (a packet train that measures the capacity), and is then padded. The
/// padding is at most this share of the data that the flow could send at its rate since the last gauge.
const PADDING: f64 = 0.03;
/// The minimum size of a gauge, as a share of the size of its packets if all are full. A gauge is a burst that measures
/// the capacity. The share is below 1, so that slightly smaller packets do not lengthen the gauge.
const SMALLER: f64 = 0.95;

impl Probing {
    /// Starts with a request for the first probe.
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

    /// Records a packet that leaves.
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

    /// Notes that the bottleneck may have become slower, so that the next measurement checks the known capacity.
    pub(super) fn doubt(&mut self) {
        self.capacity.doubt();
    }

    /// The capacity of the bottleneck in bit/s, if gauges have measured it. Gauges are short bursts of packets that are
    /// sent faster than the capacity.
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

    /// Requests a gauge, a burst that measures the capacity, if a gauge is due and the frame can carry it. `own_bps` is
    /// the flow's rate.
    pub(super) fn on_frame(&mut self, now_s: f64, frame: &QueuedFrame, own_bps: f64) {
        let frame_bits = frame.size.as_bits() as f64;
        let since_s = now_s - self.gauged_s;
        let is_due = now_s >= FIRST_GAUGE_S && since_s >= self.gauge_every_s(own_bps);
        if !is_due || self.wanted.is_some() || self.under_way.is_some() {
            return;
        }
        let capacity_bps = self.capacity.bps().unwrap_or(self.proved_bps).max(own_bps);
        let bits = (GAUGE_S * capacity_bps).min(frame_bits - HALF_PACKET_BITS).max(LEAST_GAUGE_BITS);
        let padding_bits = (bits + HALF_PACKET_BITS - frame_bits).max(0.0);
        let is_long = self.capacity.bps().is_some_and(|bps| LEAST_GAUGE_BITS > LONGEST_PAIR_S * bps);
        let can_pad = frame.can_pad && !is_long && padding_bits <= PADDING * own_bps * since_s;
        if padding_bits > 0.0 && !can_pad {
            return;
        }
        let packets = (bits / PACKET_BITS) as u32;
        let Some(rate) = Rate::from_bps_f64(FURTHER * capacity_bps) else { return };
        (self.gauged_s, self.is_gauge) = (now_s, true);
        self.count += 1;
        // A gauge (a burst that measures the capacity) ends when it has enough packets and enough bytes. The minimum
        // size is a little less than that of `packets` full packets, so that slightly smaller packets do not lengthen
        // the gauge.
        let size = Size::from_bytes((f64::from(packets) * SMALLER * PACKET_BITS / 8.0) as u64);
        self.wanted = Some(Probe::new(self.count, rate, packets, size));
    }

    /// Applies a report. `own_bps` is the flow's rate. If the report ends a probe that was sent to raise the rate at
    /// the flow's start, returns the rate, in bit/s, that the flow may now use.
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
    use crate::units::Span;

    /// The state after the probes of the start, in a flow of 1 Mbit/s.
    fn started() -> Probing {
        let mbps = |rate: u64| Rate::from_bps(rate * 1_000_000);
        let mut probing = Probing::new(RateLimits::within(mbps(1), mbps(10)));
        probing.wanted = None;
        probing
    }

    /// A frame of this many bytes, without data queued before it.
    fn frame(bytes: u64) -> QueuedFrame {
        QueuedFrame::new(Size::from_bytes(bytes), Size::ZERO, Span::ZERO)
    }

    /// If this test fails, every frame is sent as a burst, or bursts that measure the capacity (gauges) are sent too
    /// early.
    #[test]
    fn a_gauge_is_due_after_the_start_and_not_with_every_frame() {
        let mut probing = started();
        probing.on_frame(FIRST_GAUGE_S - 0.1, &frame(5000), 1e6);
        assert_eq!(probing.wanted(), None);
        probing.on_frame(FIRST_GAUGE_S, &frame(5000), 1e6);
        let gauge = probing.wanted().expect("a gauge");
        assert_eq!((gauge.rate, gauge.packets), (Rate::from_bps(3_000_000), 2));
        probing.wanted = None;
        probing.on_frame(FIRST_GAUGE_S + 0.9 * GAUGE_EVERY_S, &frame(5000), 1e6);
        assert_eq!(probing.wanted(), None);
    }

    /// If this test fails, a flow of small frames sends too much padding.
    #[test]
    fn a_frame_that_is_too_small_becomes_a_gauge_when_its_padding_is_a_small_share() {
        let mut probing = started();
        probing.gauged_s = FIRST_GAUGE_S;
        // The gauge needs padding of 14 kbit: two and a half packets of 9.6 kbit, minus the frame of 10 kbit. Padding
        // is limited to 3 % of the data since the last gauge. At 1 Mbit/s, 14 kbit are allowed after 0.47 s.
        for (after_s, is_sent) in [(0.4, false), (0.5, true)] {
            probing.on_frame(FIRST_GAUGE_S + after_s, &frame(1250), 1e6);
            assert_eq!(probing.wanted(), None, "a sender without padding, {after_s}");
            probing.on_frame(FIRST_GAUGE_S + after_s, &frame(1250).with_padding(), 1e6);
            assert_eq!(probing.wanted().is_some(), is_sent, "{after_s}");
        }
    }

    /// If this test fails, a receiver that reports impossible times can make the burst that measures the capacity (the
    /// gauge) longer than a frame.
    #[test]
    fn a_gauge_is_no_longer_than_the_frame_whatever_the_reports_say() {
        let mut probing = started();
        for train in 0..8 {
            probing.capacity.push(f64::from(train), 1e9, (1e-6, 0.0), 1e6);
        }
        assert!(probing.capacity_bps().expect("eight trains") > 1e12);
        probing.on_frame(100.0, &frame(6000), 1e6);
        assert!(probing.wanted().is_some_and(|gauge| gauge.packets <= 5 && gauge.size.as_bits() <= 48_000));
    }
}
