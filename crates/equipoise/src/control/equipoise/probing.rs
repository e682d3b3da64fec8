use super::path::Path;
use crate::control::{Probe, RateLimits, SentPacket};
use crate::units::{Rate, Size};

/// Probes at the start: packet trains so short that they cause no significant queue, each three times as fast as the
/// rate that the previous one has proved.
///
/// A train of frames cannot measure more than the pace at which it is sent, so that growth alone takes seconds to reach
/// a wide path's rate. A probe of about 10 ms shows within one round trip whether the path carries a multiple of the
/// rate. Probing ends with the first probe that arrives slower than it was sent, or with the first queue. The probes of
/// libwebrtc follow the same idea. The numbers are ours.
#[derive(Clone, Debug)]
pub(super) struct Probing {
    wanted: Option<Probe>,
    under_way: Option<UnderWay>,
    max_bps: f64,
    count: u64,
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

impl Probing {
    /// Requests the first probe at once.
    pub(super) fn new(limits: RateLimits) -> Self {
        let mut probing = Self { wanted: None, under_way: None, max_bps: limits.max().as_bps_f64(), count: 0 };
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

    /// Applies a report: returns the rate in bit/s that a finished probe has proved.
    pub(super) fn on_report(&mut self, now_s: f64, path: &Path, has_queued: bool) -> Option<f64> {
        let under_way = self.under_way.filter(|_| self.wanted.is_none())?;
        let newest = path.recent.newest_first().next()?.number;
        if newest < under_way.last && now_s - under_way.began_s < PATIENCE_S {
            return None;
        }
        self.under_way = None;
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
        let left_bps = bits / (last.departed_s - first.departed_s).max(1e-6);
        let proved_bps = left_bps.min(bits / (last.arrived_s - first.arrived_s).max(1e-6));
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
