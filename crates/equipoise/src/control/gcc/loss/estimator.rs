use super::observation::Observations;
use crate::control::{PacketReport, RateLimits};
use crate::units::{Instant, SenderClock, Span};

/// Estimates the rate that losses allow. This rate changes only when an observation is complete.
#[derive(Clone, Debug)]
pub(in crate::control::gcc) struct LossBased {
    min_bps: f64,
    max_bps: f64,
    observations: Observations,
    /// The most likely path model; `None` before the first observation.
    channel: Option<Channel>,
    average: f64,
    acked_bps: Option<f64>,
    /// The rate that the losses allow, in bit/s, after the bounds `lower_bps` and `upper_bps` were applied.
    bounded_bps: f64,
    state: LossState,
    hold: Hold,
    ramp: Option<Ramp>,
}

/// A path model: an inherent loss ratio, which does not depend on the rate, and a bandwidth. What is sent in excess of
/// the bandwidth is lost in addition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Channel {
    /// B, the bandwidth of the path, in bit/s.
    pub bps: f64,
    /// q, the inherent loss ratio, 0 to 1.
    pub inherent: f64,
}

/// What limits the rate: the delay or losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::control::gcc) enum LossState {
    /// The delay limits the rate.
    Delay,
    /// Losses limit the rate, and the rate falls or is held.
    Decreasing,
    /// Losses limit the rate, and the rate rises.
    Increasing,
}

/// A hold after a decrease: until the time `until`, the rate must not rise above `bps`. At first, `bps` is the rate
/// after the decrease. If a later delivery rate is above `bps`, `bps` becomes this delivery rate. Each hold lasts twice
/// as long as the previous hold, up to [`LONGEST_HOLD`]. Once the delay limits the rate, the next hold lasts
/// [`FIRST_HOLD`] again.
#[derive(Clone, Copy, Debug)]
struct Hold {
    until: Option<Instant<SenderClock>>,
    length: Span,
    bps: f64,
}

/// The maximum rate during [`RAMP`] after the time `since`.
#[derive(Clone, Copy, Debug)]
struct Ramp {
    since: Instant<SenderClock>,
    most_bps: f64,
}

// All constants of this file are from libwebrtc, `loss_based_bwe_v2`, in its configuration of 2025.
/// Losses limit the rate only if there are at least this number of observations.
const REQUIRED: usize = 3;
/// Initial value of q, the inherent loss ratio.
const FIRST_INHERENT: f64 = 0.01;
/// The minimum of q, the inherent loss ratio. This loss is always tolerated.
const LEAST_INHERENT: f64 = 1e-3;
/// Loss ratio that is tolerated at high rates. A larger value accepts more loss and keeps more of the rate.
const FORGIVEN: f64 = 0.05;
/// Additional tolerated loss at low rates: this value, in kbit/s, divided by the rate. 100 kbit/s add 10 % at 1 Mbit/s.
const FORGIVEN_BALANCE: f64 = 100.0;
/// Loss ratio above which lower rates are preferred.
const PREFERENCE: f64 = 0.2;
/// Width of the transition from a preference for higher rates to a preference for lower rates, as a loss ratio.
const PREFERENCE_WIDTH: f64 = 0.002;
/// Weight of the bandwidth in the preference for a higher bandwidth, per kbit/s.
const BIAS: f64 = 0.0002;
/// Weight of the logarithm of the bandwidth in the preference for a higher bandwidth.
const LOG_BIAS: f64 = 0.02;
/// Candidates for the bandwidth, as multiples of the last bandwidth.
const CANDIDATES: [f64; 3] = [1.02, 1.0, 0.95];
/// Length of a step of Newton's method, as a share of a full step.
const NEWTON: f64 = 0.75;
/// Minimum value of the probabilities of arrival and of loss. With zero, their logarithms would be infinite.
const LEAST_PROBABILITY: f64 = 1e-6;
/// Maximum growth of a loss-limited rate within [`RAMP`], as a factor.
const RAMP_FACTOR: f64 = 1.3;
/// Time within which a loss-limited rate grows by at most [`RAMP_FACTOR`].
const RAMP: Span = Span::from_millis(300);
/// Upper limit when a loss-limited rate rises, as a multiple of the delivery rate.
const HEADROOM: f64 = 1.5;
/// Replaces [`HEADROOM`] while the delivery rate is below [`NEAR_HOLD`] times the limit set after the last decrease
/// ([`Hold`]).
const HEADROOM_IN_HOLD: f64 = 1.2;
/// After losses have lowered the rate, a hold limits the rate for some time. If the delivery rate is below this
/// multiple of the last hold's limit, the delivery rate counts as near the limit.
const NEAR_HOLD: f64 = 1.3;
/// How long the first decrease of the rate limits later increases.
const FIRST_HOLD: Span = Span::from_millis(300);
/// Maximum duration of a hold after a decrease.
const LONGEST_HOLD: Span = Span::from_secs(60);
/// Minimum rise after a decrease, in bit/s, even if [`HEADROOM`] leaves no room for a rise.
const LEAST_RISE: f64 = 1.0;

const NO_HOLD: Hold = Hold { until: None, length: FIRST_HOLD, bps: f64::INFINITY };

impl Channel {
    /// Returns p(r), the probability that a packet is lost if the sending rate r is `bps`, in bit/s.
    pub(super) fn loss_at(&self, bps: f64) -> f64 {
        let beyond = if bps > self.bps { (1.0 - self.inherent) * (bps - self.bps) / bps } else { 0.0 };
        (self.inherent + beyond).clamp(LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
    }

    /// Returns the path model with the inherent loss clamped to its bounds.
    fn feasible(self) -> Self {
        let most = most_inherent(self.bps);
        Self { inherent: self.inherent.max(LEAST_INHERENT).min(most), ..self }
    }

    /// Returns the path model after one step of Newton's method towards the most likely inherent loss, q.
    fn stepped(self, observations: &Observations) -> Self {
        let (mut first, mut second) = (0.0, 0.0);
        for (weight, one) in observations.weighted() {
            let (p, arrived_kb) = (self.loss_at(one.bps), one.sent_kb - one.lost_kb);
            first += weight * (one.lost_kb / p - arrived_kb / (1.0 - p));
            second -= weight * (one.lost_kb / (p * p) + arrived_kb / ((1.0 - p) * (1.0 - p)));
        }
        // The log likelihood is concave: its second derivative is negative, unless nothing was sent.
        let second = if second < 0.0 { second } else { -LEAST_PROBABILITY };
        Self { inherent: self.inherent - NEWTON * first / second, ..self }.feasible()
    }

    /// Returns the weighted log likelihood of the observations, plus the preference for higher rates (for lower rates,
    /// if the mean loss `average` is above `PREFERENCE`).
    fn score(&self, observations: &Observations, average: f64) -> f64 {
        let bias = bias(self.bps, average);
        observations.weighted().fold(0.0, |sum, (weight, one)| {
            let (p, arrived_kb) = (self.loss_at(one.bps), one.sent_kb - one.lost_kb);
            sum + weight * (one.lost_kb * libm::log(p) + arrived_kb * libm::log(1.0 - p) + bias * one.sent_kb)
        })
    }
}

/// Returns the largest allowed q, the inherent loss ratio, for a bandwidth in bit/s.
pub(super) fn most_inherent(bps: f64) -> f64 {
    if bps > 0.0 { (FORGIVEN + FORGIVEN_BALANCE / (bps / 1e3)).min(1.0) } else { 1.0 }
}

/// Returns the preference for the bandwidth `bps`, in bit/s. If the mean loss ratio `average` is below `PREFERENCE`,
/// the preference rises with the bandwidth. Otherwise the preference falls with the bandwidth.
pub(super) fn bias(bps: f64, average: f64) -> f64 {
    let less = PREFERENCE - average;
    let adjusted = |factor: f64| factor * less / (PREFERENCE_WIDTH + libm::fabs(less));
    adjusted(BIAS) * bps / 1e3 + adjusted(LOG_BIAS) * libm::log(1.0 + bps / 1e3)
}

/// Returns the highest allowed bandwidth, in bit/s, at the mean loss ratio `average`; infinite up to a loss of 5 %.
pub(super) fn upper_bound(average: f64) -> f64 {
    if average > FORGIVEN { 1e3 * FORGIVEN_BALANCE / (average - FORGIVEN) } else { f64::INFINITY }
}

impl LossBased {
    pub(in crate::control::gcc) fn new(limits: RateLimits) -> Self {
        Self {
            min_bps: limits.min().as_bps_f64(),
            max_bps: limits.max().as_bps_f64(),
            observations: Observations::new(),
            channel: None,
            average: 0.0,
            acked_bps: None,
            bounded_bps: f64::INFINITY,
            state: LossState::Delay,
            hold: NO_HOLD,
            ramp: None,
        }
    }

    /// Returns the rate that the losses allow, in bit/s; `None` before three observations.
    pub(in crate::control::gcc) fn bps(&self) -> Option<f64> {
        (self.channel.is_some() && self.observations.count() >= REQUIRED).then_some(self.bounded_bps)
    }

    /// Returns what limits the rate: the delay or losses.
    pub(in crate::control::gcc) fn state(&self) -> LossState {
        if self.bps().is_some() { self.state } else { LossState::Delay }
    }

    /// Sets the delivery rate in bit/s. A rate that is not finite is ignored.
    pub(in crate::control::gcc) fn set_acked(&mut self, bps: f64) {
        self.acked_bps = Some(bps).filter(|bps| bps.is_finite()).or(self.acked_bps);
    }

    /// Processes reports on packets. `delay_bps` is the rate that the delay allows, in bit/s.
    pub(in crate::control::gcc) fn update(&mut self, packets: &[PacketReport], delay_bps: f64, is_app_limited: bool) {
        if !delay_bps.is_finite() || !self.observations.push(packets) {
            return;
        }
        let Some(now) = self.observations.last() else { return };
        self.average = self.observations.average_loss();
        let last = self.channel.unwrap_or_else(|| {
            self.bounded_bps = delay_bps;
            Channel { bps: delay_bps, inherent: FIRST_INHERENT }
        });
        let mut best = self.best_candidate(last, delay_bps, is_app_limited);
        // If more is lost than the inherent loss explains, the rate must not rise.
        if self.average > best.inherent {
            best.bps = best.bps.min(last.bps);
        }
        if self.state != LossState::Delay {
            self.slow_down(&mut best, last, now);
        }
        let bounded = best.bps.min(self.upper_bps()).min(delay_bps).max(self.lower_bps());
        self.channel = Some(if bounded < best.bps {
            Channel { bps: bounded, inherent: 0.0 }
        } else {
            Channel { bps: best.bps.max(self.lower_bps()), ..best }
        });
        self.conclude(now, bounded, delay_bps);
    }

    fn lower_bps(&self) -> f64 {
        self.acked_bps.unwrap_or(0.0).max(self.min_bps)
    }

    fn upper_bps(&self) -> f64 {
        if self.average > FORGIVEN { upper_bound(self.average) } else { self.max_bps }
    }

    /// Returns the candidate with the highest score.
    fn best_candidate(&self, last: Channel, delay_bps: f64, is_app_limited: bool) -> Channel {
        let most = match self.ramp {
            Some(ramp) if self.state != LossState::Delay => ramp.most_bps,
            _ => self.max_bps,
        };
        let factors = CANDIDATES.map(|factor| Some(factor * last.bps));
        let acked = self.acked_bps.filter(|_| !is_app_limited);
        let delay = Some(delay_bps).filter(|delay| *delay > last.bps);
        let candidates = factors.into_iter().chain([acked, delay]).flatten();
        let scored = candidates.map(|bps| {
            let feasible = Channel { bps: bps.min(most.max(last.bps)), ..last }.feasible();
            let channel = feasible.stepped(&self.observations);
            (channel.score(&self.observations, self.average), channel)
        });
        // Of candidates with equal scores, the first is taken.
        let better = |best: (f64, Channel), one: (f64, Channel)| if one.0 > best.0 { one } else { best };
        scored.fold((f64::MIN, last), better).1
    }

    /// Limits the rise of a loss-limited rate. For the time [`RAMP`] after `ramp.since`, the rate is at most
    /// `ramp.most_bps`. A rising rate is also limited to a multiple of the delivery rate.
    fn slow_down(&self, best: &mut Channel, last: Channel, now: Instant<SenderClock>) {
        if let Some(ramp) = self.ramp.filter(|ramp| now < ramp.since + RAMP) {
            best.bps = best.bps.min(ramp.most_bps);
        }
        let Some(acked) = self.acked_bps.filter(|_| self.is_rising(last.bps, best.bps)) else { return };
        let headroom =
            if acked < NEAR_HOLD * self.hold.bps && self.hold.bps.is_finite() { HEADROOM_IN_HOLD } else { HEADROOM };
        best.bps = best.bps.min(headroom * acked).max(last.bps);
        if self.state == LossState::Decreasing && best.bps <= last.bps {
            best.bps = last.bps + LEAST_RISE;
        }
    }

    /// Whether a loss-limited rate rises from `before` to `next`, or stays equal after a rise.
    fn is_rising(&self, before: f64, next: f64) -> bool {
        let goes_on = next >= before && self.state == LossState::Increasing;
        self.state != LossState::Delay && (next > before || goes_on)
    }

    /// Sets the rate that the losses allow, and the state, which tells whether the delay or losses limit the rate.
    fn conclude(&mut self, now: Instant<SenderClock>, bounded: f64, delay_bps: f64) {
        let is_limiting = bounded < delay_bps;
        if self.state == LossState::Decreasing && self.hold.until.is_some_and(|until| until > now) && is_limiting {
            self.hold.bps = self.hold.bps.max(self.lower_bps());
            self.bounded_bps = self.hold.bps.min(bounded);
            return;
        }
        let is_limiting = is_limiting && bounded < self.max_bps;
        if is_limiting && self.is_rising(self.bounded_bps, bounded) {
            self.state = LossState::Increasing;
        } else if is_limiting {
            if self.state != LossState::Decreasing {
                let length = self.hold.length;
                self.hold = Hold { until: Some(now + length), length: (length * 2).min(LONGEST_HOLD), bps: bounded };
            }
            self.state = LossState::Decreasing;
        } else {
            self.hold = NO_HOLD;
            self.state = LossState::Delay;
        }
        self.bounded_bps = bounded;
        let is_due = self.ramp.is_none_or(|ramp| ramp.since + RAMP < now);
        if let Some(channel) = self.channel.filter(|_| is_due && self.state != LossState::Delay) {
            self.ramp = Some(Ramp { since: now, most_bps: (channel.bps * RAMP_FACTOR).max(self.min_bps) });
        }
    }
}
