use equipoise::control::{
    AdaptationPoints, Allowance, Controller, Feedback, IntervalSummary, RateLimits, Reason, Snapshot, reduced,
};
use equipoise::units::{Instant, Rate, SenderClock, Span};

/// How a running period reacts to loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunningConfig {
    /// `T_adapt`: time between adaptation points, at which loss reduces the rate. With a longer time, the rate reacts
    /// later, but the loss is measured over more packets.
    pub adapt: Span,
    /// `R_f`: the relative decrease of the rate is the share of lost packets times this factor.
    pub reduction_factor: f64,
    /// Lower limit of the rate.
    pub min_rate: Rate,
}

impl RunningConfig {
    /// The paper's values (Tobe 1999, Table 2 and Sec. 6.1): `T_adapt` = 3 s, `R_f` = 3.0. The minimum rate is our
    /// choice. It is the rate at which another control law, LDA, starts in Tobe 1999, Sec. 6.2.
    pub const PAPER: Self = Self { adapt: Span::from_secs(3), reduction_factor: 3.0, min_rate: Rate::from_bps(10_000) };
}

/// The control law of TPBA's running period: at every adaptation point, loss reduces the rate. The rate never
/// increases.
///
/// Source: Tobe 1999, Sec. 4: `r[i] = r[i-1] (1 - p R_f)` if loss was reported, where `R_f` is
/// [`RunningConfig::reduction_factor`]. Our reading: p is the mean loss in the reports since the last adaptation point;
/// between these points the rate does not change. Three missing reports halve the rate, as for every controller that
/// needs reports.
#[derive(Clone, Debug)]
pub struct Running {
    config: RunningConfig,
    limits: RateLimits,
    rate: Rate,
    losses: AdaptationPoints,
    snapshot: Snapshot,
}

impl Running {
    /// Creates the control law. The initial rate and the maximum rate are both `rate`, which is `r_s` of Tobe 1999
    /// (TCP's measured rate). If the configured `min_rate` is higher, both are `min_rate`.
    pub fn new(config: RunningConfig, rate: Rate) -> Self {
        let limits = RateLimits::within(config.min_rate, rate);
        let rate = limits.max();
        let config = RunningConfig { reduction_factor: config.reduction_factor.max(0.0), ..config };
        Self { config, limits, rate, losses: AdaptationPoints::default(), snapshot: Snapshot::default() }
    }
}

impl Running {
    fn on_interval(&mut self, now: Instant<SenderClock>, interval: &IntervalSummary) {
        self.snapshot = Snapshot { reason: Some(Reason::Fixed), ..Snapshot::default() };
        let Some(lost) = self.losses.push(now, interval.fraction_lost.unwrap_or(0.0), self.config.adapt) else {
            return;
        };
        let bps = self.rate.as_bps_f64();
        let next = reduced(bps, lost, self.config.reduction_factor);
        let (rate, cut) = self.limits.clamp(next);
        self.rate = rate;
        self.snapshot.reason = Some(RateLimits::reason(Reason::Law, cut));
        self.snapshot.law_step_bps = Some(next - bps);
    }

    /// Halves the rate, because no report arrived.
    fn on_silence(&mut self) {
        self.rate = self.limits.halve(self.rate);
        self.snapshot = Snapshot { reason: Some(Reason::ReportsMissing), ..Snapshot::default() };
    }
}

impl Controller for Running {
    fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &Feedback<'_>) {
        match feedback {
            Feedback::Interval(interval) => self.on_interval(now, interval),
            Feedback::Silent { .. } => self.on_silence(),
            _ => {}
        }
    }

    fn allowance(&self) -> Allowance {
        Allowance::rate(self.rate)
    }

    fn lowest_rate(&self) -> Rate {
        self.limits.min()
    }

    fn snapshot(&self) -> Snapshot {
        self.snapshot
    }
}
