//! NADA: combines delay, marks and losses into one congestion signal that controls the rate.

mod law;
mod receiver;
#[cfg(test)]
mod tests;
mod window;

pub use law::{NadaLaw, ShapedRates, Signal};

use law::DELTA_S;
use receiver::{Receiver, Report};

use super::{Allowance, Controller, Feedback, Needs, PacketFeedback, QueuedFrame, RateLimits, Reason, Snapshot};
use crate::units::{Instant, Rate, SenderClock, Size, Span};

/// Network-assisted dynamic adaptation (NADA): controls the rate by a single congestion signal.
///
/// The signal is a delay: the sum of the queueing delay and of penalties for ECN marks and losses. On an underused path
/// the rate rises in steps. The size of a step is limited by the queue that the step may cause. Otherwise the rate
/// converges to `PRIO XREF RMAX / x_curr`, where `x_curr` is the signal. Flows that share a bottleneck have about the
/// same signal. Therefore their rates are proportional to PRIO (priority) and to RMAX (maximum rate).
///
/// Source: RFC 8698. The receiver's part (Sec. 4.2, 5.1) is computed at the sender, which Sec. 5.3 and 6.4 allow.
///
/// ```text
/// d_tilde = d                                        d < QTH, or no loss within loss_exp     (1)
///         = QTH exp(-LAMBDA (d - QTH) / QTH)         otherwise
/// x_curr = d_tilde + DMARK (p_mark/PMRREF)² + DLOSS (p_loss/PLRREF)²                         (2)
///
/// neither loss nor mark nor d ≥ QEPS within LOGWIN: accelerated ramp-up
///   gamma = min(GAMMA_MAX, QBOUND / (rtt + DELTA + DFILT))                                   (3)
///   r_ref ← max(r_ref, (1 + gamma) r_recv)                                                   (4)
/// otherwise: gradual update
///   x_offset = x_curr - PRIO XREF RMAX / r_ref                                               (5)
///   x_diff = x_curr - x_prev                                                                 (6)
///   r_ref ← r_ref - KAPPA (delta/TAU) (x_offset/TAU) r_ref - KAPPA ETA (x_diff/TAU) r_ref    (7)
/// r_ref ← max(RMIN, min(RMAX, r_ref))                                                        (8, 9)
///
/// p ← ALPHA p_inst + (1 - ALPHA) p                   for losses and marks                    (10)
/// r_vin = max(RMIN, r_ref - min(0.05 r_ref, BETA_V 8 L FPS))                                 (11, 13)
/// r_send = min(RMAX, r_ref + min(0.05 r_ref, BETA_S 8 L FPS))                                (12, 14)
/// ```
///
/// | symbol | name | unit |
/// | --- | --- | --- |
/// | `d` | queueing delay: minimum of 15 samples minus the base delay (the minimum over ten minutes) | s |
/// | `d_tilde` | queueing delay after warping | s |
/// | `p_mark`, `p_loss` | smoothed shares of packets marked and lost | |
/// | `p`, `p_inst` | `p_mark` or `p_loss`; the share within LOGWIN, before smoothing | |
/// | `x_curr`, `x_prev` | congestion signal now and at the last update | s |
/// | `delta` | time since the last update | s |
/// | `rtt` | round-trip time | s |
/// | `r_ref`, `r_recv` | reference rate, receiving rate | bit/s |
/// | `r_vin`, `r_send` | rates of encoder and sender if the shaping buffer holds `L` bytes | bit/s |
/// | `loss_int`, `loss_exp` | mean interval between loss events; MULTILOSS times this interval | packets |
///
/// Names in capitals are constants of RFC 8698, Table 2.
///
/// Our interpretation of the source:
/// - An update takes place at the feedback nearest to DELTA after the last update: up to half a feedback interval
///   early. `delta` is measured, but limited to TAU. The first feedback only sets the start time.
/// - For losses, marks and the ramp-up's delays, the window LOGWIN is measured in departure times. A window without
///   packets leaves the ratios unchanged.
/// - `r_recv` is the smaller of two rates: the rate of the packets that arrived within LOGWIN by the receiver's clock,
///   and the rate of the packets that left within LOGWIN and arrived. Therefore even forged arrival times cannot
///   raise the rate above 1 + gamma times the sending rate.
/// - The ramp-up uses raw samples of the delay, as in Sec. 4.2; Table 1 calls them filtered.
/// - Unlike in RFC 8698, a mark within LOGWIN also ends the ramp-up. Otherwise the marks of a virtual queue (App. A.3),
///   which occur without a delay, would never have an effect.
/// - The base delay is that of RFC 6817, over ten minutes. `rtt` is the last sample.
/// - The round-trip time serves as the delay (Sec. 6.1) until the first feedback with an arrival time.
/// - Warping ends gradually, as Sec. 4.2 recommends: it lasts for `loss_exp` packets after a loss event. Over the next
///   `loss_int` packets, `d_tilde` returns linearly to `d`.
/// - `loss_int` is the mean of closed intervals. RFC 5348, Sec. 5.4 also includes the open interval since the last
///   loss. With the open interval, `loss_exp` would grow faster than the number of packets since the last loss, so no
///   loss would ever expire.
/// - Before the second loss event there is no mean interval and no warping. A packet that arrives after it was assumed
///   lost still counts as lost (Sec. 5.1.2).
/// - `x_curr` is at most 500 ms, as in the simulator of NADA's authors.
/// - The session's rate is `r_vin`, and its packets are paced at `r_send`. Both equal `r_ref` if the shaping buffer is
///   empty. The buffer length is measured when the encoder delivers a frame, before the frame is added.
/// - RMIN and RMAX are the configured limits; the rate starts at RMIN or at the configured start rate.
///
/// Special cases: before a delay or a loss is known, the rate is kept. Silence and timeouts, which RFC 8698 does not
/// cover, halve the rate, down to RMIN (our choice). If the receiver's clock is set forward, the queue seems long for
/// ten minutes; if the clock is set back, the base delay follows at once.
#[derive(Clone, Debug)]
pub struct Nada {
    law: NadaLaw,
    limits: RateLimits,
    rate: Rate,
    receiver: Receiver,
    /// `x_prev`, the congestion signal at the last update, in s.
    signal_s: f64,
    /// `t_last`, the time of the last update.
    updated: Option<Instant<SenderClock>>,
    last_feedback: Option<Instant<SenderClock>>,
    /// `buffer_len`, the data in the shaping buffer.
    buffer: Size,
    snapshot: Snapshot,
}

/// DELTA, the target interval between updates of the rate (RFC 8698, Table 2).
const DELTA: Span = Span::from_millis((DELTA_S * 1000.0) as i64);

impl Nada {
    /// Creates a controller at the start rate. The highest rate of the limits replaces the law's RMAX.
    pub fn new(law: NadaLaw, limits: RateLimits) -> Self {
        Self {
            law: NadaLaw { max_bps: limits.max().as_bps_f64(), ..law },
            rate: limits.start(),
            limits,
            receiver: Receiver::new(),
            signal_s: 0.0,
            updated: None,
            last_feedback: None,
            buffer: Size::ZERO,
            snapshot: Snapshot::default(),
        }
    }

    /// Returns the aggregate congestion signal of the last update, as a delay.
    pub fn congestion(&self) -> Span {
        Span::from_secs_f64(self.signal_s).unwrap_or(Span::ZERO)
    }

    /// Returns `r_ref`, the rate before it is adjusted for the shaping buffer.
    pub const fn reference_rate(&self) -> Rate {
        self.rate
    }

    fn on_packets(&mut self, now: Instant<SenderClock>, feedback: &PacketFeedback<'_>) {
        if feedback.packets.is_empty() {
            return;
        }
        self.receiver.push(now, feedback);
        let gap = self.last_feedback.replace(now).map_or(Span::ZERO, |last| now - last);
        let elapsed = now - *self.updated.get_or_insert(now);
        if elapsed < Span::ZERO {
            // The sender's clock was set back.
            self.updated = Some(now);
        } else if elapsed > Span::ZERO && elapsed + Span::from_nanos(gap.as_nanos() / 2) >= DELTA {
            self.updated = Some(now);
            self.update(elapsed.as_secs_f64());
        }
    }

    /// Updates the rate from the receiver's report (RFC 8698, Sec. 4.3).
    fn update(&mut self, elapsed_s: f64) {
        let Some(report) = self.receiver.report(&self.law) else {
            self.snapshot = Snapshot { reason: Some(Reason::NoStatistics), ..Snapshot::default() };
            return;
        };
        let Report { signal_s, is_underused, received_bps, round_trip_s } = report;
        let bps = self.rate.as_bps_f64();
        let (next, reason) = if is_underused {
            (self.law.ramp_up(bps, received_bps, round_trip_s), Reason::Other("ramp-up"))
        } else {
            let signal = Signal { now_s: signal_s, before_s: self.signal_s, elapsed_s };
            (self.law.gradual(bps, signal), Reason::Law)
        };
        self.signal_s = signal_s;
        // RFC 8698, Eq. 8, 9.
        let (rate, cut) = self.limits.clamp(next);
        self.rate = rate;
        let reason = Some(RateLimits::reason(reason, cut));
        self.snapshot = Snapshot { reason, law_step_bps: Some(next - bps), response: None };
    }

    fn on_silence(&mut self) {
        self.rate = self.limits.halve(self.rate);
        self.snapshot = Snapshot { reason: Some(Reason::ReportsMissing), ..Snapshot::default() };
    }
}

impl Controller for Nada {
    fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &Feedback<'_>) {
        match feedback {
            Feedback::Packets(packets) => self.on_packets(now, packets),
            Feedback::Silent { .. } | Feedback::TimedOut { .. } => self.on_silence(),
            Feedback::Interval(_) => {}
        }
    }

    fn on_frame(&mut self, _now: Instant<SenderClock>, frame: &QueuedFrame) {
        self.buffer = frame.waiting;
    }

    fn allowance(&self) -> Allowance {
        let ShapedRates { encoder, sending } = self.law.shaped(self.rate, self.limits.min(), self.buffer);
        Allowance::rate(encoder).with_pace(sending)
    }

    fn needs(&self) -> Needs {
        Needs::PACKETS
    }

    fn lowest_rate(&self) -> Rate {
        self.limits.min()
    }

    fn snapshot(&self) -> Snapshot {
        self.snapshot
    }

    /// Returns `r_ref`, the reference rate (RFC 8699, Sec. 6.1).
    fn calculated_rate(&self) -> Option<Rate> {
        Some(self.rate)
    }

    fn set_calculated_rate(&mut self, _now: Instant<SenderClock>, rate: Rate) {
        (self.rate, _) = self.limits.clamp(rate.as_bps_f64());
    }
}
