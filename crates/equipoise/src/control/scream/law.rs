use crate::units::{Rate, Size};

/// The equations of `SCReAM` v2, one function each.
///
/// Source: draft-ietf-ccwg-rfc8298bis-screamv2-01, Sec. 4.2 to 4.4, with the draft's names. Windows are in bytes, times
/// in seconds, and rates in bit/s. For every input, even NaN, the result is a number in the stated range. The exception
/// is [`alpha`](Self::alpha), which returns an old value of NaN unchanged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScreamLaw {
    /// `MSS`, the largest packet, in bytes.
    pub segment: f64,
    /// `QDELAY_TARGET_LO`, the target of the queueing delay, in s. A larger value fills queues further, and uses more
    /// of a link with a varying rate.
    pub target_s: f64,
    /// `BETA_LOSS`, the factor for the window after a loss. A smaller value yields more to other flows.
    pub loss_factor: f64,
    /// `BETA_ECN`, the factor for the window after a classic ECN mark. A smaller value yields more to other flows.
    pub mark_factor: f64,
    /// `MUL_INCREASE_FACTOR`, the share of the window that is added per round trip far from congestion. A larger value
    /// finds capacity sooner.
    pub growth: f64,
    /// `MIN_REF_WND` in bytes, the minimum window.
    pub least_window: f64,
    /// `BYTES_IN_FLIGHT_HEAD_ROOM`: the window grows at most to this multiple of the recent maximum of the bytes in
    /// flight, plus one segment. A larger value lets a source that sends little reach a larger window.
    pub head_room: f64,
    /// `PACKET_PACING_HEADROOM`, the pacing rate as a multiple of the target bitrate. A larger value causes bursts; a
    /// smaller value causes a queue at the sender.
    pub pacing: f64,
}

/// `VIRTUAL_RTT`, a lower limit of the round-trip time, so that shorter paths do not get a larger share of an L4S link
/// (Sec. 4.2.2).
pub(super) const VIRTUAL_ROUND_TRIP_S: f64 = 0.025;
/// `POST_CONGESTION_DELAY_RTT`, the number of round trips after congestion in which the window grows slowly
/// (Sec. 4.2.2).
pub(super) const CAREFUL_ROUND_TRIPS: f64 = 100.0;
/// `L4S_AVG_G_UP` and `L4S_AVG_G_DOWN`: the speed at which the smoothed fraction of marks rises and falls
/// (Sec. 4.2.1.3).
const ALPHA_UP: f64 = 1.0 / 8.0;
const ALPHA_DOWN: f64 = 1.0 / 128.0;
/// The factors `scl` and `ref_wnd_delay_scale` make a step of the window smaller (Sec. 4.2.2.1, 4.2.2.2). In a step,
/// `scl` counts as at least `LEAST_NEARNESS`. `ref_wnd_delay_scale` counts as at least `LEAST_NEARNESS` if the window
/// is reduced, and as at least `LEAST_JITTER_UP` if the window grows.
const LEAST_NEARNESS: f64 = 0.25;
const LEAST_JITTER_UP: f64 = 0.1;
/// `REF_WND_OVERHEAD_MIN` and `REF_WND_OVERHEAD_MAX`: the lowest and the highest limit of the bytes in flight, as
/// multiples of the window (Sec. 4.3.1).
const OVERHEAD: (f64, f64) = (1.5, 3.0);
/// `PACKET_OVERHEAD` is the size of the headers of a packet, in bytes. `TARGET_DIVISOR` leaves a margin: the window per
/// round trip is divided by at least this value to obtain the target bitrate (Sec. 4.4).
const PACKET_OVERHEAD: f64 = 20.0;
const TARGET_DIVISOR: f64 = 1.2;
/// `RATE_PACE_MIN`, in bit/s: a lower target is paced as if it were this rate (Sec. 4.3.2).
const LEAST_PACE_BPS: f64 = 50_000.0;
/// A high target bitrate multiplies the pacing rate by at most `MAX_RELAXED_PACING_FACTOR`. A target bitrate is high if
/// it exceeds the share `RELAXED_PACING_LIMIT_LOW` of the maximum bitrate (Sec. 4.3.2).
const RELAXED_PACING: f64 = 4.0;
const RELAXED_FROM: f64 = 0.8;

/// The inputs from which the growth of the window is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// `ref_wnd`, the reference window, in bytes.
    pub window: f64,
    /// `bytes_newly_acked_minus_ce`: bytes that arrived unmarked since the last growth step.
    pub unmarked: f64,
    /// `s_rtt`, the smoothed round-trip time, in s.
    pub round_trip_s: f64,
    /// `scl`, the result of [`ScreamLaw::nearness`]: 0.1 if `window` is near the window at which congestion last began,
    /// 1 if it is far from that window.
    pub nearness: f64,
    /// `ref_wnd_delay_scale`, a factor for the growth of the window: 1 without jitter, 0 with much jitter.
    pub calm: f64,
    /// `post_congestion_scale`: 0 at congestion, 1 long after congestion.
    pub recovered: f64,
}

/// How frames queued at the sender, and oversized frames, reduce the target bitrate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MediaQueue {
    /// `rate_adjust_factor`, 0 to 0.5: it rises while the oldest queued frame has waited for more than 5 ms.
    pub waiting: f64,
    /// `frame_size_dev`, 0 to 0.2: it rises if frames are larger than the target bitrate times 20 ms.
    pub excess: f64,
}

impl ScreamLaw {
    /// Returns the law with the draft's values, for packets of at most `packet`.
    pub fn new(packet: Size) -> Self {
        Self {
            segment: packet.as_bytes().max(1) as f64,
            target_s: 0.06,
            loss_factor: 0.7,
            mark_factor: 0.8,
            growth: 0.02,
            least_window: 3000.0,
            head_room: 1.5,
            pacing: 1.5,
        }
    }

    /// Returns the new `l4s_alpha`, 0 to 1, from the old value `alpha` and the fraction `marked` of the packets that
    /// were marked.
    ///
    /// Source: draft-ietf-ccwg-rfc8298bis-screamv2-01, Sec. 4.2.1.3: if `marked` is at least `alpha`, `alpha` rises by
    /// an eighth of the difference; otherwise `alpha` falls by 1/128 of its value.
    pub fn alpha(alpha: f64, marked: f64) -> f64 {
        let next =
            if marked >= alpha { ALPHA_UP * marked + (1.0 - ALPHA_UP) * alpha } else { (1.0 - ALPHA_DOWN) * alpha };
        if next.is_nan() { alpha } else { next.clamp(0.0, 1.0) }
    }

    /// Returns `scl`, 0.1 to 1, which shows how far a window is from the window at which congestion last began.
    ///
    /// Source: Sec. 4.2.2.1: `(8 (w - w_i) / w_i)²`, where w is `window` and `w_i` is `inflection`.
    pub fn nearness(window: f64, inflection: f64) -> f64 {
        let distance = 8.0 * (window - inflection) / inflection;
        let squared = distance * distance;
        // NaN, which only invalid windows give, counts as far from congestion.
        if squared.is_nan() { 1.0 } else { squared.clamp(0.1, 1.0) }
    }

    /// Returns the relative reduction of the window for L4S marks, 0 to 0.5. `nearness` is `scl`, and `calm` is
    /// `ref_wnd_delay_scale`.
    ///
    /// Source: Sec. 4.2.2.1: `alpha/2 / max(1, s_rtt / VIRTUAL_RTT)`. While the queue is below a quarter of its target,
    /// this value is multiplied by `max(0.25, scl) max(0.25, ref_wnd_delay_scale)`.
    pub fn mark_backoff(&self, alpha: f64, round_trip_s: f64, queue_s: f64, nearness: f64, calm: f64) -> f64 {
        let backoff = unit(alpha) / 2.0 / long_round_trip(round_trip_s);
        let scale = LEAST_NEARNESS.max(nearness) * LEAST_NEARNESS.max(calm);
        if queue_s < self.target_s / 4.0 { backoff * unit(scale) } else { backoff }
    }

    /// Returns the relative reduction of the window for queueing delay, 0 to 0.5.
    ///
    /// Source: Sec. 4.2.2.1: `l4s_alpha_v/2 / max(1, s_rtt / VIRTUAL_RTT)`, where `l4s_alpha_v` is
    /// `(qdelay_avg - target/2) / (target/2)`, clamped to 0 to 1.
    pub fn delay_backoff(&self, queue_s: f64, round_trip_s: f64) -> f64 {
        let half = self.target_s / 2.0;
        unit((queue_s - half) / half) / 2.0 / long_round_trip(round_trip_s)
    }

    /// Returns the growth of the window in bytes. The growth is never negative.
    ///
    /// Source: Sec. 4.2.2.2. The usual growth is one segment per round trip. The growth is smaller on short paths,
    /// under jitter, and near the window at which congestion last began. The growth is larger if two conditions hold:
    /// the last congestion was long ago, and the window is far from the window at which this congestion began.
    pub fn increase(&self, growth: Growth) -> f64 {
        let Growth { window, unmarked, round_trip_s, nearness, calm, recovered } = growth;
        let share = (self.segment / window).min(1.0);
        let short = (round_trip_s / VIRTUAL_ROUND_TRIP_S).min(1.0);
        let multiplied = 1.0 + self.growth * window / self.segment * recovered * nearness;
        let scale = LEAST_NEARNESS.max(nearness) * LEAST_JITTER_UP.max(calm);
        let bytes = unmarked * share * short * scale * multiplied;
        if bytes.is_finite() { bytes.max(0.0) } else { 0.0 }
    }

    /// Returns `target_bitrate` in bit/s before its limits are applied; zero without a round-trip time.
    ///
    /// Source: Sec. 4.4: `8 w / s_rtt (1 - clamp(MSS/w - 0.1, 0, 0.2)) MSS / (MSS + 20) / (1.2 + a + d)`, where
    /// w is `window`, a is `media.waiting` and d is `media.excess`.
    pub fn target_bps(&self, window: f64, round_trip_s: f64, media: MediaQueue) -> f64 {
        let small = 1.0 - ((self.segment / window).min(1.0) - 0.1).clamp(0.0, 0.2);
        let bps =
            8.0 * window / round_trip_s * small * self.payload() / (TARGET_DIVISOR + media.waiting + media.excess);
        if bps.is_finite() { bps.max(0.0) } else { 0.0 }
    }

    /// Returns the window in bytes for a target of `bps`. For a window of ten segments or more, this is the inverse of
    /// [`target_bps`](Self::target_bps) with an empty media queue.
    pub(super) fn window_for(&self, bps: f64, round_trip_s: f64) -> f64 {
        (bps * round_trip_s / 8.0 * TARGET_DIVISOR / self.payload()).max(self.least_window)
    }

    fn payload(&self) -> f64 {
        self.segment / (self.segment + PACKET_OVERHEAD)
    }

    /// Returns `ref_wnd_overhead`, 1.5 to 3: the maximum of the bytes in flight as a multiple of the window.
    ///
    /// Source: Sec. 4.3.1.
    pub fn overhead(calm: f64) -> f64 {
        OVERHEAD.0 + (OVERHEAD.1 - OVERHEAD.0) * unit(calm)
    }

    /// Returns `pace_bitrate`, the pacing rate for a target bitrate: `pacing` times the target, or `pacing` times 50
    /// kbit/s if the target is lower. If the target is above 80 % of `max`, the factor grows, up to four times
    /// `pacing`.
    ///
    /// Source: draft-ietf-ccwg-rfc8298bis-screamv2-01, Sec. 4.3.2.
    pub fn pacing_rate(&self, target: Rate, max: Rate) -> Rate {
        let bps = target.as_bps_f64().max(LEAST_PACE_BPS) * self.pacing;
        let nominal = target.as_bps_f64() / max.as_bps_f64();
        let relaxed = ((nominal - RELAXED_FROM) / (1.0 - RELAXED_FROM)).min(1.0);
        let scale = (1.0 - relaxed).clamp(1.0 / RELAXED_PACING, 1.0);
        Rate::from_bps_f64(bps / scale).unwrap_or(target)
    }
}

/// Returns `max(1, s_rtt / VIRTUAL_RTT)`. If the round-trip time is longer than `VIRTUAL_RTT`, there are several
/// backoffs per round trip, one every `VIRTUAL_RTT`. Therefore each backoff is divided by the returned factor.
fn long_round_trip(round_trip_s: f64) -> f64 {
    (round_trip_s / VIRTUAL_ROUND_TRIP_S).max(1.0)
}

/// Returns a share clamped to the range 0 to 1. `NaN` becomes 1. If the share is the fraction of marked packets, 1
/// causes the full backoff.
fn unit(share: f64) -> f64 {
    if share.is_nan() { 1.0 } else { share.clamp(0.0, 1.0) }
}
