use crate::control::{Allowance, Controller, Feedback, RateLimits, Reason, Snapshot};
use crate::units::{Instant, Rate, SenderClock, Span};

/// How a running period answers to loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunningConfig {
    /// `T_adapt`: from one adaptation point to the next; longer answers later, and to a surer number.
    pub adapt: Span,
    /// `R_f`: by how many times the loss the rate falls.
    pub reduction_factor: f64,
    /// Not below this.
    pub min_rate: Rate,
}

impl RunningConfig {
    /// The paper's values (Tobe 1999, Table 2 and Sec. 6.1): 3 s, 3.0. The least rate is ours: what LDA starts with there.
    pub const PAPER: Self = Self { adapt: Span::from_secs(3), reduction_factor: 3.0, min_rate: Rate::from_bps(10_000) };
}

/// The law of TPBA's running period: at every adaptation point loss lowers the rate, and nothing raises it.
///
/// Source: Tobe 1999, Sec. 4: `r[i] = r[i-1] (1 - p R_f)` where a loss was reported.
/// Readings: p is the mean of the reports since the last adaptation point, between which the rate does not change. Three
/// missing reports halve the rate, as they do for every controller here.
#[derive(Clone, Debug)]
pub struct Running {
    config: RunningConfig,
    limits: RateLimits,
    rate: Rate,
    losses: Losses,
    snapshot: Snapshot,
}

/// The losses that were reported since the last adaptation point.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::control) struct Losses {
    since: Option<Instant<SenderClock>>,
    sum: f64,
    reports: u32,
}

impl Losses {
    /// Takes a report. Gives the mean loss where this is an adaptation point: one comes `adapt` after the last, to which a
    /// report may come half of its own interval early.
    pub(in crate::control) fn push(
        &mut self,
        now: Instant<SenderClock>,
        fraction_lost: f64,
        adapt: Span,
    ) -> Option<f64> {
        self.sum += if fraction_lost.is_finite() { fraction_lost.clamp(0.0, 1.0) } else { 0.0 };
        self.reports += 1;
        let since = *self.since.get_or_insert(now);
        let elapsed = now - since;
        // The first report only starts the clock; from then on there is one report an interval.
        let intervals = i64::from(self.reports).saturating_sub(1).max(1);
        let half_interval = Span::from_nanos(elapsed.as_nanos() / intervals / 2);
        if elapsed == Span::ZERO || elapsed + half_interval < adapt {
            return None;
        }
        let mean = self.sum / f64::from(self.reports);
        *self = Self { since: Some(now), ..Self::default() };
        Some(mean)
    }
}

impl Running {
    /// Begins at `rate`, `r_s`.
    pub fn new(config: RunningConfig, rate: Rate) -> Self {
        let min = config.min_rate.max(Rate::from_bps(1));
        let rate = rate.max(min);
        let limits = RateLimits::between(min, rate);
        let config = RunningConfig { reduction_factor: config.reduction_factor.max(0.0), ..config };
        Self { config, limits, rate, losses: Losses::default(), snapshot: Snapshot::default() }
    }
}

/// `r (1 - p R_f)`, in bit/s (Tobe 1999, Sec. 4 and Fig. 2).
pub(in crate::control) fn reduced(bps: f64, fraction_lost: f64, reduction_factor: f64) -> f64 {
    bps * (1.0 - fraction_lost * reduction_factor)
}

impl Controller for Running {
    fn on_feedback(&mut self, now: Instant<SenderClock>, Feedback::Interval(interval): &Feedback) {
        self.snapshot = Snapshot { reason: Some(Reason::Fixed), ..Snapshot::default() };
        let Some(lost) = self.losses.push(now, interval.fraction_lost, self.config.adapt) else { return };
        let bps = self.rate.as_bps_f64();
        let next = reduced(bps, lost, self.config.reduction_factor);
        let (rate, cut) = self.limits.clamp(next);
        self.rate = rate;
        self.snapshot.reason = Some(RateLimits::reason(Reason::Law, cut));
        self.snapshot.law_step_bps = Some(next - bps);
    }

    fn allowance(&self) -> Allowance {
        Allowance { rate: self.rate }
    }

    fn on_timeout(&mut self, _now: Instant<SenderClock>) {
        self.rate = self.limits.halve(self.rate);
        self.snapshot = Snapshot { reason: Some(Reason::ReportsMissing), ..Snapshot::default() };
    }

    fn snapshot(&self) -> Snapshot {
        self.snapshot
    }
}
