//! `SCReAM` v2: a reference window that grows by a segment per round trip, and backs off on marks, delay and losses.

mod law;
mod path;
#[cfg(test)]
mod tests;

pub use law::{Growth, MediaQueue, ScreamLaw};

use law::{CAREFUL_ROUND_TRIPS, VIRTUAL_ROUND_TRIP_S};
use path::{LOSSY, Path, is_due};

use super::{
    Allowance, Controller, Feedback, Needs, PacketFeedback, QueuedFrame, RateLimits, Reason, SentPacket, Snapshot,
};
use crate::units::{Instant, Rate, SenderClock, Size, Span};

/// Self-clocked rate adaptation for multimedia (`SCReAM`), version 2: a window, and the target bitrate that it allows.
///
/// A reference window grows by about a segment per round trip. It grows faster if it is far from its value when
/// congestion last began. L4S marks reduce the window in proportion to the fraction of marked packets, and queueing
/// delay counts like a fraction of marks. A loss or a classic ECN mark reduces the window by a factor. The bytes in
/// flight are limited to about the window. The media's target bitrate is the window per round trip, less a margin.
///
/// Source: draft-ietf-ccwg-rfc8298bis-screamv2-01, which will replace RFC 8298.
///
/// ```text
/// alpha ← alpha + (marked - alpha)/8, or 127/128 alpha if marked < alpha, every min(10 ms, s_rtt)  Sec. 4.2.1.3
/// q_avg ← q if lower, else q/4 + 3 q_avg/4, every min(VIRTUAL_RTT, s_rtt)                       Sec. 4.2.1.4
/// scl = clamp((8 (w - w_i) / w_i)², 0.1, 1)                                                     Sec. 4.2.2.1
/// w ← BETA_LOSS w                                  upon a loss
///   ← BETA_ECN w                                   upon a mark, classic ECN
///   ← (1 - alpha/2 / max(1, s_rtt/VIRTUAL_RTT)) w  upon a mark, L4S; less while q < q_target/4
///   ← (1 - v/2 / max(1, s_rtt/VIRTUAL_RTT)) w      v = clamp((q_avg - q_target/2) / (q_target/2), 0, 1)
/// w ← w + unmarked MSS/w min(1, s_rtt/VIRTUAL_RTT) max(0.25, scl) (1 + MUL w/MSS post scl)      Sec. 4.2.2.2
/// in flight ≤ overhead w                                                                        Sec. 4.3.1
/// target = 8 w/s_rtt (1 - clamp(MSS/w - 0.1, 0, 0.2)) MSS/(MSS + 20) / (1.2 + a + d)            Sec. 4.4
/// ```
///
/// | symbol | name | unit |
/// | --- | --- | --- |
/// | `w`, `w_i` | reference window, and its value when congestion last began | bytes |
/// | `BETA_LOSS`, `BETA_ECN` | factors for the window after a loss and after a classic ECN mark | |
/// | `MSS` | largest IP packet | bytes |
/// | `marked`, `alpha` | fraction of marked packets, and its smoothed value | |
/// | `q`, `q_avg` | queueing delay: delay above the minimum of the last ten minutes, and its average | s |
/// | `q_target` | `QDELAY_TARGET_LO`, the target of the queueing delay | s |
/// | `s_rtt` | smoothed round-trip time | s |
/// | `unmarked` | bytes that arrived without a mark | bytes |
/// | `VIRTUAL_RTT` | 0.025, a lower limit of the round-trip time | s |
/// | `post` | rises from 0 at a loss or mark to 1 after 100 round trips, or 2.5 s if that is longer | |
/// | `MUL`, `overhead` | `MUL_INCREASE_FACTOR`, and `ref_wnd_overhead`, which is 1.5 to 3 | |
/// | `target` | target bitrate | bit/s |
/// | `a`, `d` | reductions of `target` for waiting frames and for oversized frames | |
///
/// Our interpretation of the source:
/// - [`Form::Core`] is the draft without the parts that it calls optional or additional, but with the handling of
///   clock drift (Sec. 4.5.1). [`Form::Full`] adds the reaction to jitter (Sec. 4.2.1.4). It also ignores rare
///   losses while the queue is short, detects policers (Sec. 4.5.2), and backs off less while the target is far below
///   the acknowledged rate (Sec. 4.5.3). Neither form raises the delay target next to other flows (Sec. 4.5.4), because
///   the draft itself doubts this method.
/// - Losses and classic ECN marks count once per round trip, as in the draft's text: if a packet was sent before the
///   last reduction for a loss or a classic mark, its loss or mark is ignored. By the draft's pseudocode, the window
///   could be reduced every 25 ms.
/// - Lost bytes do not count as acknowledged. In the draft, lost bytes count as acknowledged if a packet with a higher
///   number arrived.
/// - With [`Marking::ByCodepoint`], packets that arrive as ECT(1) make all marks L4S marks; the draft leaves this to
///   the configuration.
/// - The rates of this crate are those of IP packets. Nevertheless, the draft's overhead of 20 bytes is subtracted.
/// - The initial window is the window for which the target is the start rate, but at least `MIN_REF_WND`.
/// - The session's rate is the target, its window is the limit of the bytes in flight, and packets are paced at
///   `pace_bitrate`.
/// - The acknowledged rate, and the maximum of the bytes in flight, are measured over a round trip, but at least over
///   40 ms.
/// - Round-trip times serve as delays until the first feedback with an arrival time.
///
/// Special cases: rate and window are kept until a round-trip time is known. Silence and timeouts halve the rate and
/// the window (our choice: RFC 8298, Sec. 8 only has a minimum rate). The minimum queueing delay of each round trip is
/// averaged over round trips. If the average exceeds a quarter of the delay target, the clocks are assumed to drift.
/// Then the target bitrate is halved for five round trips and at least 0.2 s, and the base delay (the minimum of the
/// last ten minutes) is discarded. If the bytes in flight are not known, the window does not grow.
#[derive(Clone, Debug)]
pub struct Scream {
    config: ScreamConfig,
    path: Path,
    /// `window` is `ref_wnd`, the reference window. `inflection` is `ref_wnd_i`, the reference window at the time when
    /// congestion last began. Both are in bytes.
    window: f64,
    inflection: f64,
    /// `ref_wnd_i_update_allowed`: whether the window grew since the last reduction.
    has_grown: bool,
    /// `congested` is `last_congestion_detected_time`, and `reacted` is `last_reaction_to_congestion_time`.
    congested: Option<Instant<SenderClock>>,
    reacted: Option<Instant<SenderClock>>,
    media: MediaQueue,
    /// `policed` is `max_policed_ref_wnd`, the upper limit of the window behind a policer, in bytes. `policed_at` is
    /// the time when this limit last grew.
    policed: f64,
    policed_at: Option<Instant<SenderClock>>,
    /// Until this time, the target rate is halved, so that the queue drains and the base delay can be measured again.
    halved_until: Option<Instant<SenderClock>>,
    target: Rate,
    snapshot: Snapshot,
}

/// The configuration of `SCReAM`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScreamConfig {
    /// The equations of `SCReAM` with their constants.
    pub law: ScreamLaw,
    /// `TARGET_BITRATE_MIN`, `TARGET_BITRATE_MAX`, and the start rate.
    pub limits: RateLimits,
    /// The meaning of ECN marks.
    pub marking: Marking,
    /// Which parts of the draft are used.
    pub form: Form,
}

/// The meaning of ECN marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marking {
    /// The codepoint of arriving packets decides: ECT(1) means that marks are L4S marks (RFC 9331, Sec. 4.1).
    ByCodepoint,
    /// L4S marks: the fraction of marked packets counts.
    L4s,
    /// Classic marks of RFC 3168: a mark counts as a congestion event, at most once per round trip.
    Classic,
}

/// Which parts of the draft are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Only the required parts.
    Core,
    /// The required and the optional parts.
    Full,
}

/// The reason for a reduction of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Loss,
    Marks,
    Queue,
}

/// A loss rate above `POLICED` (`LOSS_RATE_THRESHOLD_POLICER`) with a short queue shows a policer. Then the window is
/// limited to `POLICED_FACTOR` (`BETA_LOSS_POLICER`) times its value. Per round trip, this limit grows by the factor
/// `POLICED_GROWTH` (Sec. 4.5.2).
const POLICED: f64 = 0.1;
const POLICED_FACTOR: f64 = 0.9;
const POLICED_GROWTH: f64 = 1.001;
/// If the target bitrate is below `LOW_TARGET` (`ACKED_BITRATE_MARGIN`) times the acknowledged rate, L4S marks and
/// queueing delay reduce the window by a smaller share: `LOW_TARGET_BACKOFF` (`BACKOFF_SCALE_LOW_TARGET_RATE`) times
/// the usual share (Sec. 4.5.3).
const LOW_TARGET: f64 = 0.8;
const LOW_TARGET_BACKOFF: f64 = 0.25;
/// Gain of the reduction of the target bitrate for waiting frames (`RATE_ADJUST_GAIN`, Sec. 4.4).
const WAITING_GAIN: f64 = 1.0 / 16.0;
/// Gain of the reduction of the target bitrate for oversized frames (`FRAME_SIZE_DEV_ALPHA`, Sec. 4.4).
const EXCESS_GAIN: f64 = 1.0 / 64.0;
/// `frame_period`, in s (Sec. 4.4).
const FRAME_S: f64 = 0.02;
/// Maximum reduction for waiting frames (Sec. 4.4).
const MOST_WAITING: f64 = 0.5;
/// Maximum reduction for oversized frames (Sec. 4.4).
const MOST_EXCESS: f64 = 0.2;
/// How long the target bitrate is halved while the base delay is measured again: in round trips, and the minimum in
/// seconds (Sec. 4.5.1).
const HALVED_ROUND_TRIPS: f64 = 5.0;
const HALVED_S: f64 = 0.2;

impl Scream {
    /// Creates a controller at the start rate.
    pub const fn new(config: ScreamConfig) -> Self {
        Self {
            path: Path::new(config.law.target_s),
            window: config.law.least_window,
            inflection: 1.0,
            has_grown: true,
            congested: None,
            reacted: None,
            media: MediaQueue { waiting: 0.0, excess: 0.0 },
            policed: f64::INFINITY,
            policed_at: None,
            halved_until: None,
            target: config.limits.start(),
            snapshot: Snapshot { reason: None, law_step_bps: None, response: None },
            config,
        }
    }

    /// Returns `ref_wnd`, the reference window.
    pub fn reference_window(&self) -> Size {
        Size::from_bytes(self.window as u64)
    }

    /// Returns `l4s_alpha`, the smoothed fraction of marked packets, 0 to 1.
    pub const fn marked(&self) -> f64 {
        self.path.alpha()
    }

    fn on_packets(&mut self, now: Instant<SenderClock>, feedback: &PacketFeedback<'_>) {
        let was_unknown = self.path.round_trip_s().is_none();
        let drifted = self.path.push(now, feedback, self.window, &self.config.law);
        let Some(round_trip_s) = self.path.round_trip_s() else {
            self.snapshot = Snapshot { reason: Some(Reason::NoStatistics), ..Snapshot::default() };
            return;
        };
        if was_unknown {
            self.window = self.config.law.window_for(self.target.as_bps_f64(), round_trip_s);
        }
        if drifted {
            self.halved_until =
                Span::from_secs_f64((HALVED_ROUND_TRIPS * round_trip_s).max(HALVED_S)).map(|span| now + span);
        }
        let nearness = ScreamLaw::nearness(self.window, self.inflection);
        let cause = self.reduce(now, round_trip_s, nearness);
        let grew = self.grow(now, round_trip_s, nearness);
        let reason = match cause {
            Some(Cause::Loss) => Reason::Other("loss"),
            Some(Cause::Marks) => Reason::Other("marks"),
            Some(Cause::Queue) => Reason::Other("queue"),
            None if grew || self.target >= self.config.limits.max() => Reason::Law,
            None => Reason::AppLimited,
        };
        self.set_target(now, round_trip_s, reason);
    }

    /// Returns the reason why the window must be reduced; `None` if it need not be reduced (Sec. 4.2.2.1, 4.5.2).
    fn cause(&mut self) -> Option<Cause> {
        let news = self.path.news;
        let quiet_s = self.config.law.target_s / 4.0;
        if news.is_lost && self.config.form == Form::Full {
            if self.path.loss_rate() > POLICED && self.path.queue_average_s() < quiet_s {
                self.policed = (self.window * POLICED_FACTOR).max(self.config.law.least_window);
            }
            if self.path.loss_rate() > LOSSY || self.path.queue_average_s() > quiet_s {
                return Some(Cause::Loss);
            }
        } else if news.is_lost {
            return Some(Cause::Loss);
        }
        if news.is_marked_anew || news.is_marked && self.is_l4s() {
            return Some(Cause::Marks);
        }
        (self.path.queue_average_s() > self.config.law.target_s / 2.0).then_some(Cause::Queue)
    }

    const fn is_l4s(&self) -> bool {
        match self.config.marking {
            Marking::ByCodepoint => self.path.saw_ect1(),
            Marking::L4s => true,
            Marking::Classic => false,
        }
    }

    /// Reduces the window if necessary, at most once per min(`VIRTUAL_RTT`, `s_rtt`). Returns the reason; `None` if the
    /// window was not reduced (Sec. 4.2.2.1).
    fn reduce(&mut self, now: Instant<SenderClock>, round_trip_s: f64, nearness: f64) -> Option<Cause> {
        if self.path.news.is_lost || self.path.news.is_marked {
            self.congested = Some(now);
        }
        if !is_due(self.reacted, now, VIRTUAL_ROUND_TRIP_S.min(round_trip_s)) {
            return None;
        }
        let cause = self.cause();
        // With `Form::Full`, `cause` ignores a loss if losses are rare and the queue is short. An ignored loss must not
        // count later.
        self.path.news.is_lost = false;
        let cause = cause?;
        if self.has_grown {
            self.inflection = self.window;
            self.has_grown = false;
        }
        let law = self.config.law;
        let factor = match cause {
            Cause::Loss => law.loss_factor,
            Cause::Marks if !self.is_l4s() => law.mark_factor,
            Cause::Marks => {
                self.restore(now, round_trip_s);
                let (alpha, queue_s) = (self.path.alpha(), self.path.queue_s());
                1.0 - self.guarded(law.mark_backoff(alpha, round_trip_s, queue_s, nearness, self.calm()))
            }
            Cause::Queue => 1.0 - self.guarded(law.delay_backoff(self.path.queue_average_s(), round_trip_s)),
        };
        self.window = (self.window * factor).max(law.least_window);
        self.reacted = Some(now);
        let is_event = cause == Cause::Loss || cause == Cause::Marks && !self.is_l4s();
        self.path.on_reaction(now, is_event);
        Some(cause)
    }

    /// If the last reaction to congestion was long ago, the window may be far larger than the data in flight. The
    /// function then limits the window to the maximum of the bytes in flight in the previous round trip.
    fn restore(&mut self, now: Instant<SenderClock>, round_trip_s: f64) {
        let long_s = CAREFUL_ROUND_TRIPS * round_trip_s.max(VIRTUAL_ROUND_TRIP_S);
        if is_due(self.reacted, now, long_s) && self.path.most_in_flight_before() > 0.0 {
            self.window = self.window.min(self.path.most_in_flight_before());
        }
    }

    /// Returns `backoff`. In the full form, returns only a quarter of `backoff` if the target is already below 80 % of
    /// the acknowledged rate (Sec. 4.5.3).
    fn guarded(&self, backoff: f64) -> f64 {
        let is_low = self.path.acknowledged_bps().is_some_and(|acked| self.target.as_bps_f64() < LOW_TARGET * acked);
        if is_low && self.config.form == Form::Full { LOW_TARGET_BACKOFF * backoff } else { backoff }
    }

    /// Returns `ref_wnd_delay_scale`; 1 in the form that ignores jitter.
    fn calm(&self) -> f64 {
        if self.config.form == Form::Full { self.path.calm() } else { 1.0 }
    }

    /// Lets the window grow (draft-ietf-ccwg-rfc8298bis-screamv2-01, Sec. 4.2.2.2). Returns whether the window grew.
    fn grow(&mut self, now: Instant<SenderClock>, round_trip_s: f64, nearness: f64) -> bool {
        let law = self.config.law;
        let careful_s = CAREFUL_ROUND_TRIPS * round_trip_s.max(VIRTUAL_ROUND_TRIP_S);
        let recovered = self.congested.map_or(1.0, |at| ((now - at).as_secs_f64() / careful_s).clamp(0.0, 1.0));
        let unmarked = core::mem::take(&mut self.path.news.unmarked_bytes);
        let growth = Growth { window: self.window, unmarked, round_trip_s, nearness, calm: self.calm(), recovered };
        let grown = self.window + law.increase(growth);
        let allowed = law.segment + law.head_room * self.path.most_in_flight();
        let grows = grown > self.window && grown <= allowed && self.target < self.config.limits.max();
        if grows {
            self.window = grown;
            self.has_grown = true;
        }
        if is_due(self.policed_at, now, round_trip_s) {
            self.policed *= POLICED_GROWTH;
            self.policed_at = Some(now);
        }
        self.window = self.window.min(self.policed);
        grows
    }

    fn set_target(&mut self, now: Instant<SenderClock>, round_trip_s: f64, reason: Reason) {
        let bps = self.config.law.target_bps(self.window, round_trip_s, self.media);
        let next = if self.halved_until.is_some_and(|until| now < until) { bps / 2.0 } else { bps };
        let before = self.target.as_bps_f64();
        let (target, cut) = self.config.limits.clamp(next);
        self.target = target;
        let reason = Some(RateLimits::reason(reason, cut));
        self.snapshot = Snapshot { reason, law_step_bps: Some(next - before), response: None };
    }

    fn on_silence(&mut self) {
        self.window = (self.window / 2.0).max(self.config.law.least_window);
        self.target = self.config.limits.halve(self.target);
        self.snapshot = Snapshot { reason: Some(Reason::ReportsMissing), ..Snapshot::default() };
    }
}

impl Controller for Scream {
    fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &Feedback<'_>) {
        match feedback {
            Feedback::Packets(packets) if packets.packets.is_empty() => {}
            Feedback::Packets(packets) => self.on_packets(now, packets),
            Feedback::Silent { .. } | Feedback::TimedOut { .. } => self.on_silence(),
            Feedback::Interval(_) => {}
        }
    }

    fn allowance(&self) -> Allowance {
        let window = Size::from_bytes((self.window * ScreamLaw::overhead(self.calm())) as u64);
        let pace = self.config.law.pacing_rate(self.target, self.config.limits.max());
        Allowance::paced_window(self.target, window).with_pace(pace)
    }

    /// Updates two terms, one for waiting frames and one for oversized frames. Both reduce the target bitrate
    /// (draft-ietf-ccwg-rfc8298bis-screamv2-01, Sec. 4.4).
    fn on_frame(&mut self, _now: Instant<SenderClock>, frame: &QueuedFrame) {
        let error = (frame.waited.as_secs_f64() - FRAME_S / 4.0) / FRAME_S;
        self.media.waiting = (self.media.waiting + error * WAITING_GAIN).clamp(0.0, MOST_WAITING);
        let nominal = self.target.as_bps_f64() * FRAME_S;
        let excess = ((frame.size.as_bits() as f64 - nominal) / nominal).max(0.0);
        let average = (1.0 - EXCESS_GAIN) * self.media.excess + EXCESS_GAIN * excess;
        self.media.excess = average.min(MOST_EXCESS);
    }

    fn needs(&self) -> Needs {
        Needs::PACKETS
    }

    fn on_sent(&mut self, _now: Instant<SenderClock>, packet: &SentPacket) {
        self.path.on_flight(packet.in_flight);
    }

    fn lowest_rate(&self) -> Rate {
        self.config.limits.min()
    }

    fn snapshot(&self) -> Snapshot {
        self.snapshot
    }

    fn calculated_rate(&self) -> Option<Rate> {
        Some(self.target)
    }

    /// Sets the rate, and scales the window by the same factor. If no round-trip time is known yet, the first
    /// round-trip time will set the window.
    fn set_calculated_rate(&mut self, _now: Instant<SenderClock>, rate: Rate) {
        let before = self.target.as_bps_f64();
        (self.target, _) = self.config.limits.clamp(rate.as_bps_f64());
        if self.path.round_trip_s().is_some() && before > 0.0 {
            let scaled = self.window * (self.target.as_bps_f64() / before);
            self.window = scaled.max(self.config.law.least_window);
        }
    }
}
