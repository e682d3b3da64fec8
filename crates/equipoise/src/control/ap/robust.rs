use super::curve_step_mbps;
use super::learn::{Learner, Learning};
use super::md1;
use super::signs::Signs;
use crate::control::{Allowance, Ceiling, Controller, Feedback, IntervalSummary, RateLimits, Reason, Snapshot};
use crate::measure::DelaySummary;
use crate::units::{Instant, Rate, SenderClock, Size, Span};

/// The configuration of an [`Ap`] controller.
#[derive(Clone, Copy, Debug)]
pub struct ApConfig {
    /// The target one-way delay.
    pub target: Span,
    /// Lowest rate, highest rate and start rate.
    pub limits: RateLimits,
    /// Coefficient of response b, in 1/(s·Mbit/s). If b is learned, this is the initial estimate.
    pub response: f64,
    /// How b is determined.
    pub learning: Learning,
    /// The noise of the reports changes the rate. The root mean square of these changes may be this share of the
    /// headroom (the free capacity). Must be positive. With a smaller value, the rate is steadier, but free capacity is
    /// found later.
    pub unrest: f64,
    /// Size of an IP packet, which converts between packets/s and Mbit/s.
    pub packet: Size,
}

/// Robust attractor-perturbation (AP) control: the law of Waki 2013 with two extensions. The reports are filtered, and
/// steps follow the delay curve instead of its tangent.
#[derive(Clone, Debug)]
pub struct Ap {
    config: ApConfig,
    /// The rate that the law decided. The allowed rate is this rate plus a small random change, from which the
    /// coefficient of response b is learned.
    rate: Rate,
    path: Option<Path>,
    learner: Learner,
    signs: Signs,
    ceiling: Ceiling,
    /// `raised` is the time when the rate was last raised, and `cut` the time when it was last reduced because the path
    /// was full.
    raised: Option<Instant<SenderClock>>,
    cut: Option<Instant<SenderClock>>,
    snapshot: Snapshot,
}

/// The model of the path, estimated from the reports.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// Mean delay of the last report, in seconds.
    last_s: f64,
    /// Mean delay expected at the current rate, in seconds.
    mean_s: f64,
    /// `variance_s2` is the variance of the delay around its trend, in s². `samples` is the number of samples from
    /// which this variance is computed.
    variance_s2: f64,
    samples: f64,
    /// A deviation is the mean delay in a report minus the expected mean delay. `bias_s` is the mean of the deviations,
    /// in s, and `surprise_s2` is their variance, in s². A mean far from zero is not noise: it shows that the path does
    /// not follow the delay curve.
    bias_s: f64,
    surprise_s2: f64,
}

/// If the mean delay is above this multiple of the target, a queue must be drained, and the delay curve does not apply.
const FAR_ABOVE: f64 = 2.0;
/// If the mean delay in a report deviates from the expected mean delay by more than this many standard deviations, the
/// path has changed.
const SURPRISING: f64 = 4.0;
/// Initial variance of the reports' deviations from the expected mean delay, as a share of the delay's variance.
const FIRST_SURPRISE: f64 = 0.1;
/// Weight of a report in the mean and variance of the deviations from the expected mean delay. It is low because the
/// deviations have long tails.
const SURPRISE_WEIGHT: f64 = 1.0 / 16.0;
/// Minimum weight of a report in the variance estimate while the estimate falls. As long as there are few samples, the
/// weight is higher, so that all samples count equally.
const VARIANCE_WEIGHT: f64 = 1.0 / 4.0;
/// A step up takes at most this share of the headroom (the free capacity).
const HEADROOM_SHARE: f64 = 0.5;
/// After losses that show that the path is full, the rate is set to this share of the delivery rate.
const BELOW_DELIVERED: f64 = 0.85;
/// If the delivery rate is below this share of the sending rate, the queue grows, so the path is full.
const GROWING: f64 = 0.95;
/// A standard deviation of the delay below this, in seconds, is no sign of cross traffic, because timers and clocks of
/// common hosts alone cause a deviation of this size.
const NOISE_S: f64 = 250e-6;
/// Without a sign of cross traffic, a report may double the rate if reports are at most this far apart, in seconds. If
/// reports are further apart, the factor is smaller, because the rate may exceed the capacity until the next report.
const DOUBLING_S: f64 = 0.5;
/// If a report covers at most this number of packets and has no delay statistics, the rate may double, however far
/// apart the reports are.
const FEW: u64 = 4;
/// A queue counts as draining if the delay will reach the target within this number of reports. This assumes that the
/// delay falls as fast as between the last two reports.
const DRAINED_WITHIN: f64 = 2.0;

impl Ap {
    /// Creates a controller at its start rate.
    pub fn new(config: ApConfig) -> Self {
        Self {
            rate: config.limits.start(),
            path: None,
            learner: Learner::new(config.learning, config.response),
            signs: Signs::default(),
            ceiling: Ceiling::default(),
            raised: None,
            cut: None,
            snapshot: Snapshot::default(),
            config,
        }
    }

    fn target_s(&self) -> f64 {
        self.config.target.as_secs_f64()
    }

    fn on_interval(&mut self, now: Instant<SenderClock>, interval: &IntervalSummary) {
        self.signs.observe(now, interval);
        if self.signs.are_of_a_full_path() {
            return self.on_losses(now, interval);
        }
        let Some(delay) = interval.delay.filter(|d| d.mean_s.is_finite() && d.variance_s2.is_finite()) else {
            return self.on_no_statistics(now, interval);
        };
        if delay.mean_s > FAR_ABOVE * self.target_s() {
            return self.on_far_above(now, interval, &delay);
        }
        let delay = self.without_push(delay);
        let (path, changed) = self.filtered(&delay);
        if let (Some(before), false) = (self.path, changed) {
            self.learner.observe(delay.mean_s - before.mean_s, path.variance_s2, path.surprise_s2);
        }
        self.path = Some(path);
        let headroom = self.headroom_mbps(&path);
        let step = curve_step_mbps(self.target_s(), path.mean_s, headroom, self.config.packet);
        let decided = self.bounded_mbps(step, headroom, path.mean_s, changed);
        let before = self.rate;
        if interval.app_limited && decided.0 > before.as_mbps_f64() {
            // The application or the session kept the sending rate low, so the report does not show whether the path
            // carries a higher rate.
            self.learner.rest();
            return self.decide(before.as_mbps_f64(), Reason::AppLimited, step);
        }
        let (next, reason) = self.raised_with_care(now, decided, path.variance_s2 < NOISE_S * NOISE_S);
        let overflows = interval.delivered.is_some_and(|rate| rate.as_bps_f64() < GROWING * before.as_bps_f64());
        if next < before.as_mbps_f64() && overflows {
            self.ceiling.on_full(interval.delivered, before.as_bps_f64());
        }
        self.decide(next, reason, step);
        self.expect(before, headroom);
        self.learner.toss(headroom, self.config.unrest, delay.mean_s);
        self.push_within_limits();
    }

    /// Returns the headroom (the free capacity) of the bottleneck, in Mbit/s, computed from the delay variance of
    /// `path`.
    fn headroom_mbps(&self, path: &Path) -> f64 {
        md1::headroom_mbps(self.learner.response(), path.variance_s2, self.config.packet)
    }

    /// Returns the delay statistics as they would have been without the push, the small random change of the rate.
    fn without_push(&self, mut delay: DelaySummary) -> DelaySummary {
        let push = self.learner.push_mbps();
        if let Some(headroom) = self.path.map(|path| self.headroom_mbps(&path)).filter(|_| push != 0.0)
            && let Some(shift_s) = md1::shift_s(headroom, push, self.config.packet)
        {
            delay.mean_s -= shift_s;
            // The standard deviation of the delay is inversely proportional to the headroom.
            let narrower = 1.0 - push / headroom;
            delay.variance_s2 *= narrower * narrower;
        }
        delay
    }

    /// Sets the push (a small random change of the rate) to zero if a rate limit would cut the push. The learner could
    /// learn nothing from a push that is cut.
    fn push_within_limits(&mut self) {
        let pushed = (self.rate.as_mbps_f64() + self.learner.push_mbps()) * 1e6;
        if self.config.limits.clamp(pushed).1 {
            self.learner.rest();
        }
    }

    /// Returns the path model updated by this report, and whether the path has changed.
    fn filtered(&self, delay: &DelaySummary) -> (Path, bool) {
        let mean_s = delay.mean_s;
        let samples = delay.samples as f64;
        let fresh = |variance_s2: f64, surprise_s2: f64| Path {
            last_s: mean_s,
            mean_s,
            variance_s2,
            samples,
            bias_s: 0.0,
            surprise_s2,
        };
        let Some(path) = self.path else {
            return (fresh(delay.variance_s2, delay.variance_s2 * FIRST_SURPRISE), false);
        };
        // If the delay rose or fell steadily from the last mean to this mean, this ramp adds a variance that is not
        // noise of the queue.
        let ramp_s2 = (mean_s - path.last_s) * (mean_s - path.last_s) / 12.0;
        // The variance of the ramp is subtracted from the variance of the delay. If the delay jumped between the two
        // intervals, there was no ramp, and the subtraction would give too small a variance. Therefore the subtraction
        // does not lower the variance below the variance in the path model.
        let variance_s2 = (delay.variance_s2 - ramp_s2).max(delay.variance_s2.min(path.variance_s2));
        let surprise = mean_s - path.mean_s;
        if surprise.abs() > SURPRISING * libm::sqrt(path.surprise_s2) {
            return (fresh(variance_s2, path.surprise_s2), true);
        }
        let weight = self.weight(&path);
        let falling = (samples / (samples + path.samples)).max(VARIANCE_WEIGHT);
        let filtered = Path {
            last_s: mean_s,
            mean_s: path.mean_s + weight * surprise,
            // If the estimated variance is too high, the next rate step is only too small. If the estimated variance is
            // too low, the next rate step is far too large. Therefore the estimate rises at once and falls slowly.
            variance_s2: variance_s2.max(path.variance_s2 + falling * (variance_s2 - path.variance_s2)),
            samples: samples / falling,
            bias_s: path.bias_s + SURPRISE_WEIGHT * (surprise - path.bias_s),
            surprise_s2: path.surprise_s2
                + SURPRISE_WEIGHT * ((surprise - path.bias_s) * (surprise - path.bias_s) - path.surprise_s2),
        };
        (filtered, false)
    }

    /// Returns the weight of a report in the filtered mean, from 0 to 1. With this weight, the noise of the reports
    /// moves the rate by the configured `unrest`, which is a share of the headroom.
    ///
    /// A mean filtered with weight w has w / (2 - w) of the variance of a single report. If the headroom is h
    /// packets/s, a small error of E seconds in the mean delay moves the rate by the share 2hE of the headroom.
    fn weight(&self, path: &Path) -> f64 {
        let headroom = self.headroom_mbps(path);
        let noise = 2.0 * headroom * md1::packets_per_s_per_mbps(self.config.packet) * libm::sqrt(path.surprise_s2);
        let share = (self.config.unrest / noise) * (self.config.unrest / noise);
        if share.is_finite() { (2.0 * share / (1.0 + share)).min(1.0) } else { 1.0 }
    }

    /// Returns the next rate in Mbit/s, and the reason for this rate. The next rate is between half and twice the
    /// current rate.
    fn bounded_mbps(&self, step: Option<f64>, headroom: f64, mean_s: f64, changed: bool) -> (f64, Reason) {
        let now = self.rate.as_mbps_f64();
        let (least, most) = (now / 2.0, now * 2.0);
        let Some(step) = step else {
            // There is no step in two cases. Either the variance is zero, so the headroom is infinite. Or no headroom,
            // however large, would bring the delay to the target.
            let reason = if headroom.is_finite() { Reason::StepGuard } else { Reason::NoVariance };
            return (if mean_s < self.target_s() { most } else { least }, reason);
        };
        let share = headroom * HEADROOM_SHARE;
        let (step, reason) = match (step > share, changed) {
            (true, _) => (share, Reason::HeadroomGuard),
            (false, true) => (step, Reason::Change),
            (false, false) => (step, Reason::Law),
        };
        let next = now + step;
        let reason = if (least..=most).contains(&next) { reason } else { Reason::StepGuard };
        (next.clamp(least, most), reason)
    }

    /// Limits an increase of the rate. An increase at most doubles the rate. If `blind` is set and reports are more
    /// than [`DOUBLING_S`] apart, the largest increase is smaller. Near the ceiling, which is the rate at which the
    /// path was last found full, increases are small. For a round trip after an increase, no further increase is
    /// allowed, because feedback cannot show the effect of the increase yet.
    ///
    /// `blind` means that the delay shows no cross traffic, or that delay statistics are missing although more than
    /// [`FEW`] packets were sent.
    fn raised_with_care(
        &mut self,
        now: Instant<SenderClock>,
        (next, reason): (f64, Reason),
        blind: bool,
    ) -> (f64, Reason) {
        let before = self.rate.as_mbps_f64();
        if next <= before {
            return (next, reason);
        }
        if self.is_too_soon(now, self.raised) {
            return (before, Reason::TooSoon);
        }
        self.raised = Some(now);
        let most = self.ceiling.most_bps(before * 1e6) / 1e6;
        let elapsed_s = self.signs.elapsed_s().max(DOUBLING_S);
        let stride = if blind { before * libm::exp2(DOUBLING_S / elapsed_s) } else { 2.0 * before };
        let (next, reason) = match next.min(stride) {
            stride if stride > most => (most, Reason::Ceiling),
            stride if stride < next => (stride, Reason::StepGuard),
            next => (next, reason),
        };
        self.ceiling.on_raised(next * 1e6);
        (next, reason)
    }

    /// Whether less than a round trip has passed since the change of the rate at `change`. If so, a report that arrives
    /// now cannot show the effect of the change.
    fn is_too_soon(&self, now: Instant<SenderClock>, change: Option<Instant<SenderClock>>) -> bool {
        let round_trip = self.signs.round_trip().unwrap_or(Span::ZERO);
        change.is_some_and(|change| now - change < round_trip)
    }

    /// Reacts to a full path: sets the rate to `next`, in Mbit/s. If the rate was already reduced for a full path
    /// within the last round trip, keeps the rate.
    fn on_full(&mut self, now: Instant<SenderClock>, interval: &IntervalSummary, next: f64, reason: Reason) {
        self.learner.rest();
        if self.is_too_soon(now, self.cut) {
            return self.decide(self.rate.as_mbps_f64(), Reason::Draining, None);
        }
        self.cut = Some(now);
        self.ceiling.on_full(interval.delivered, self.rate.as_bps_f64());
        self.decide(next, reason, None);
    }

    /// Reacts to more loss than chance explains. Sets the rate below the delivery rate, because the path loses the data
    /// that exceeds the delivery rate.
    fn on_losses(&mut self, now: Instant<SenderClock>, interval: &IntervalSummary) {
        let rate = self.rate.as_mbps_f64();
        let delivered = interval.delivered.map_or(rate / 2.0, Rate::as_mbps_f64);
        let is_far = interval.delay.is_some_and(|delay| delay.mean_s > FAR_ABOVE * self.target_s());
        let next = (delivered * BELOW_DELIVERED).min(if is_far { rate / 2.0 } else { rate });
        self.path = None;
        self.on_full(now, interval, next, Reason::Overload);
        self.signs.forget_losses();
    }

    /// Reacts to a standing queue: halves the rate, unless the queue is already draining.
    fn on_far_above(&mut self, now: Instant<SenderClock>, interval: &IntervalSummary, delay: &DelaySummary) {
        let fallen_s = self.path.map_or(0.0, |path| path.last_s - delay.mean_s);
        let draining = delay.mean_s - self.target_s() <= DRAINED_WITHIN * fallen_s;
        if let Some(path) = &mut self.path {
            (path.last_s, path.mean_s) = (delay.mean_s, delay.mean_s);
        }
        let rate = self.rate.as_mbps_f64();
        if draining {
            self.learner.rest();
            self.decide(rate, Reason::Draining, None);
        } else {
            self.on_full(now, interval, rate / 2.0, Reason::FarAboveTarget);
        }
    }

    /// Reacts to an interval without delay statistics: the round-trip time minus its minimum shows the queue. If the
    /// path's delay exceeds the interval, all packets that arrive were sent before the interval began, and the
    /// statistics exclude such packets (Waki 2013, Eq. 13). The law alone would never detect the queue in this case.
    fn on_no_statistics(&mut self, now: Instant<SenderClock>, interval: &IntervalSummary) {
        // After an interval without statistics, the path model is out of date.
        self.path = None;
        self.learner.rest();
        let rate = self.rate.as_mbps_f64();
        let (Some(round_trip), Some(least)) = (interval.round_trip, self.signs.least_round_trip()) else {
            return self.decide(rate, Reason::NoStatistics, None);
        };
        // If the target is longer than the propagation delay, it counts as a target of the one-way delay, and the
        // propagation delay is subtracted. Otherwise the target is that of the queueing delay.
        let way_s = least.as_secs_f64() / 2.0;
        let target_s = if self.target_s() > way_s { self.target_s() - way_s } else { self.target_s() };
        let queue_s = (round_trip - least).as_secs_f64();
        let sent = interval.packets.unwrap_or(0);
        if queue_s > FAR_ABOVE * target_s {
            self.on_full(now, interval, rate / 2.0, Reason::FarAboveTarget);
        } else if interval.app_limited {
            self.decide(rate, Reason::AppLimited, None);
        } else if queue_s > target_s || interval.lost() > sent as f64 / 2.0 {
            self.decide(rate, Reason::NoStatistics, None);
        } else {
            // The queue is within the target, so the rate may rise. After few packets, the rate may double, because so
            // few packets do no harm. After more packets, a longer report interval allows a smaller increase.
            let (next, reason) = self.raised_with_care(now, (2.0 * rate, Reason::NoStatistics), sent > FEW);
            self.decide(next, reason, None);
        }
    }

    fn decide(&mut self, next_mbps: f64, reason: Reason, step: Option<f64>) {
        let (rate, cut) = self.config.limits.clamp(next_mbps * 1e6);
        self.rate = rate;
        self.snapshot = Snapshot {
            reason: Some(RateLimits::reason(reason, cut)),
            law_step_bps: step.map(|mbps| mbps * 1e6),
            response: Some(self.learner.response()),
        };
    }

    /// Updates the expected mean delay after a step from the rate `before` to the current rate. The change of the mean
    /// delay is that of an M/D/1 queue.
    fn expect(&mut self, before: Rate, headroom: f64) {
        let step = self.rate.as_mbps_f64() - before.as_mbps_f64();
        let shift_s = md1::shift_s(headroom, step, self.config.packet);
        if let (Some(path), Some(shift_s)) = (&mut self.path, shift_s) {
            path.mean_s += shift_s;
        }
    }
}

impl Ap {
    /// Halves the rate because no report arrives.
    fn on_silence(&mut self) {
        self.path = None;
        self.learner.rest();
        self.rate = self.config.limits.halve(self.rate);
        self.snapshot = Snapshot { reason: Some(Reason::ReportsMissing), ..Snapshot::default() };
    }
}

impl Controller for Ap {
    fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &Feedback<'_>) {
        match feedback {
            Feedback::Interval(interval) => self.on_interval(now, interval),
            Feedback::Silent { .. } => self.on_silence(),
            _ => {}
        }
    }

    fn allowance(&self) -> Allowance {
        let (rate, _) = self.config.limits.clamp((self.rate.as_mbps_f64() + self.learner.push_mbps()) * 1e6);
        Allowance::rate(rate)
    }

    fn lowest_rate(&self) -> Rate {
        self.config.limits.min()
    }

    fn snapshot(&self) -> Snapshot {
        self.snapshot
    }

    fn target_delay(&self) -> Option<Span> {
        Some(self.config.target)
    }
}

#[cfg(test)]
mod tests;
