use crate::units::{Rate, Size};

/// The equations of NADA.
///
/// Source: RFC 8698, Eq. 1 to 7 and 11 to 14. Delays are in seconds, rates in bit/s, and ratios from 0 to 1. If a delay
/// or a ratio is NaN, the congestion signal has its maximum. If the next rate would not be finite, the rate is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NadaLaw {
    /// PRIO, the weight of the flow relative to other flows. The flow's share of a bottleneck is proportional to PRIO.
    pub priority: f64,
    /// RMAX in bit/s, the highest rate. It is the rate in equilibrium if the congestion signal is PRIO times XREF.
    pub max_bps: f64,
    /// XREF, the reference congestion signal, in s. With a larger value, the flow fills the queue further and takes a
    /// larger share from other flows.
    pub reference_s: f64,
    /// KAPPA, the gain of the gradual update. With a larger value, the rate reacts faster and oscillates more.
    pub kappa: f64,
    /// ETA, weight of the signal's change relative to the signal's offset from equilibrium. With a larger value, the
    /// rate reacts sooner when a queue begins to grow.
    pub eta: f64,
    /// TAU in s, the longest round-trip time for which the gains are designed. With a larger value, the rate reacts
    /// more slowly and varies less.
    pub tau_s: f64,
    /// QBOUND in s: the queueing delay that a ramp-up may cause. With a larger value, the flow finds free capacity
    /// faster, but exceeds the capacity by more.
    pub ramp_bound_s: f64,
    /// QTH in s: a queueing delay above this counts less while packets are lost. With a smaller value, the flow yields
    /// less to flows that react to loss only.
    pub warp_threshold_s: f64,
    /// DLOSS in s, the delay penalty at a loss ratio of PLRREF.
    pub loss_penalty_s: f64,
    /// DMARK in s, the delay penalty at a marking ratio of PMRREF.
    pub mark_penalty_s: f64,
}

/// `GAMMA_MAX`, the largest step up in a ramp-up, as a share of the receiving rate (RFC 8698, Table 2).
const GAMMA_MAX: f64 = 0.5;
/// DELTA, the target interval between updates, in s (RFC 8698, Table 2).
pub(super) const DELTA_S: f64 = 0.1;
/// DFILT, an upper bound on the delay that filtering adds, in s (RFC 8698, Table 2).
const DFILT_S: f64 = 0.12;
/// LAMBDA, how fast the warped delay falls as the queueing delay grows. With a larger value, the flow ignores the queue
/// of loss-based flows sooner (RFC 8698, Table 2).
const LAMBDA: f64 = 0.5;
/// PLRREF and PMRREF, the loss and marking ratios at which the delay penalties are DLOSS and DMARK (RFC 8698, Table 2).
const REFERENCE_RATIO: f64 = 0.01;
/// The largest congestion signal, in s. RFC 8698 has no limit. We chose the limit of the simulator of NADA's authors.
/// Without a limit, a single interval of total loss would dominate `x_diff`, the change of the signal, for many
/// updates.
const LARGEST_SIGNAL_S: f64 = 0.5;
/// `BETA_V` and `BETA_S`, the gains of the corrections of the encoder's rate and of the sending rate. A correction is
/// this share of the rate that would empty the shaping buffer in one frame interval (RFC 8698, Table 2).
const BETA: f64 = 0.1;
/// FPS, video frames per second (RFC 8698, Table 2).
const FRAMES_PER_SECOND: f64 = 30.0;
/// Maximum correction of a rate for the shaping buffer, as a share of the reference rate (RFC 8698, Eq. 11, 12).
const LARGEST_SHAPING: f64 = 0.05;

impl Default for NadaLaw {
    /// Returns the values of RFC 8698, Table 2.
    fn default() -> Self {
        Self {
            priority: 1.0,
            max_bps: 1.5e6,
            reference_s: 0.01,
            kappa: 0.5,
            eta: 2.0,
            tau_s: 0.5,
            ramp_bound_s: 0.05,
            warp_threshold_s: 0.05,
            loss_penalty_s: 0.01,
            mark_penalty_s: 0.002,
        }
    }
}

/// The rates of encoder and sender that follow from a reference rate and from the data in the shaping buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapedRates {
    /// `r_vin`, the target rate of the video encoder.
    pub encoder: Rate,
    /// `r_send`, the rate at which packets leave.
    pub sending: Rate,
}

/// The congestion signal, as input of the gradual update of the rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Signal {
    /// `x_curr`, the aggregate congestion signal, in s.
    pub now_s: f64,
    /// `x_prev`, the signal at the last update, in s.
    pub before_s: f64,
    /// `delta`, the time since the last update, in s.
    pub elapsed_s: f64,
}

impl NadaLaw {
    /// Returns `d_tilde`, the warped queueing delay, which replaces the queueing delay d while packets are lost.
    ///
    /// Source: RFC 8698, Eq. 1: `d` if it is below QTH, otherwise `QTH exp(-LAMBDA (d - QTH) / QTH)`.
    pub fn warped(&self, queueing_s: f64) -> f64 {
        let threshold = self.warp_threshold_s;
        if queueing_s < threshold {
            return queueing_s;
        }
        threshold * libm::exp(-LAMBDA * (queueing_s - threshold) / threshold)
    }

    /// Returns `x_curr`: delay, marks and losses combined into one delay, in s.
    ///
    /// Source: RFC 8698, Eq. 2: `x = d_tilde + DMARK (p_mark/PMRREF)² + DLOSS (p_loss/PLRREF)²`, here at most 500 ms.
    pub fn signal(&self, delay_s: f64, marked: f64, lost: f64) -> f64 {
        let marks = self.mark_penalty_s * square(marked / REFERENCE_RATIO);
        let losses = self.loss_penalty_s * square(lost / REFERENCE_RATIO);
        let signal = delay_s + marks + losses;
        // NaN becomes the largest signal, because NaN must not count as the signal of an empty path.
        if signal.is_nan() { LARGEST_SIGNAL_S } else { signal.clamp(0.0, LARGEST_SIGNAL_S) }
    }

    /// Returns the next rate in accelerated ramp-up, in bit/s, which is never below the current rate.
    ///
    /// Source: RFC 8698, Eq. 3, 4: `gamma = min(GAMMA_MAX, QBOUND / (rtt + DELTA + DFILT))`,
    /// `r = max(r, (1 + gamma) r_recv)`.
    pub fn ramp_up(&self, rate_bps: f64, received_bps: f64, round_trip_s: f64) -> f64 {
        // RFC 8698, Eq. 3.
        let gamma = (self.ramp_bound_s / (round_trip_s.max(0.0) + DELTA_S + DFILT_S)).min(GAMMA_MAX);
        // RFC 8698, Eq. 4.
        let raised = (1.0 + gamma) * received_bps;
        if raised.is_finite() { rate_bps.max(raised) } else { rate_bps }
    }

    /// Returns the next rate in the gradual update, in bit/s, before the limits of Eq. 8 and 9 are applied.
    ///
    /// Source: RFC 8698, Eq. 5 to 7. Our addition: the time since the last update is limited to TAU, so that one report
    /// after a silence does not move the rate as far as many reports would.
    pub fn gradual(&self, rate_bps: f64, signal: Signal) -> f64 {
        // RFC 8698, Eq. 5.
        let offset_s = signal.now_s - self.priority * self.reference_s * self.max_bps / rate_bps;
        // RFC 8698, Eq. 6.
        let change_s = signal.now_s - signal.before_s;
        let elapsed_s = signal.elapsed_s.clamp(0.0, self.tau_s);
        // RFC 8698, Eq. 7.
        let by_offset = self.kappa * (elapsed_s / self.tau_s) * (offset_s / self.tau_s);
        let by_change = self.kappa * self.eta * (change_s / self.tau_s);
        let next = rate_bps - (by_offset + by_change) * rate_bps;
        if next.is_finite() { next } else { rate_bps }
    }

    /// Returns the rates of encoder and sender at a reference rate, with `buffer` bytes in the shaping buffer.
    ///
    /// Source: RFC 8698, Eq. 11 to 14. The correction is `BETA 8 L FPS` for L bytes, at most 5 % of the rate. The
    /// encoder's rate is the reference rate minus the correction, but at least RMIN. The sending rate is the reference
    /// rate plus the correction, but at most RMAX.
    pub fn shaped(&self, reference: Rate, min: Rate, buffer: Size) -> ShapedRates {
        let bps = reference.as_bps_f64();
        // RFC 8698, Eq. 11, 12.
        let difference = (LARGEST_SHAPING * bps).min(BETA * buffer.as_bits() as f64 * FRAMES_PER_SECOND);
        let rate = |bps: f64| Rate::from_bps_f64(bps).unwrap_or(reference);
        ShapedRates {
            // RFC 8698, Eq. 13.
            encoder: rate(bps - difference).max(min),
            // RFC 8698, Eq. 14.
            sending: rate((bps + difference).min(self.max_bps.max(bps))),
        }
    }
}

fn square(number: f64) -> f64 {
    number * number
}
