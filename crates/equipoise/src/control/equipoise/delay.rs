use super::path::{Path, SLOW_PACKET_S, Seen};
use super::sharing::Sharing;
use crate::control::Reason;
use crate::measure::packets::Service;

/// The mode that holds the queueing delay at its target.
#[derive(Clone, Debug)]
pub(super) struct DelayMode {
    /// `B`, the base rate, in bit/s.
    pub(super) base_bps: f64,
    /// The highest recent base rate (`base_bps`) at which the queue was short, in bit/s. It decays with time.
    known_bps: f64,
    /// `calm_s` is the time when the queue was last shorter than twice the target, in s, and `calm_bps` is the base
    /// rate `B` at that time, in bit/s.
    pub(super) calm_bps: f64,
    pub(super) calm_s: f64,
    /// Whether a queue has been seen since the start.
    has_queued: bool,
    /// Whether the last report showed a queue so long that old minima must stay in the time window of the base delay.
    is_queued: bool,
    /// `busy_s` is the time when the queue was last longer than 0.7 times the target. `empty_s` is the time when the
    /// queue was last empty or the last dip (`dips_until_s`) ended, whichever is later. Both are in s.
    busy_s: f64,
    empty_s: f64,
    /// Latest end of the current dip, in s; `None` outside of dips. In a dip, the rate is lowered so that all flows
    /// measure the empty path.
    dips_until_s: Option<f64>,
    /// `cleared` counts the scheduled clearings of the queue that have become due, including those that the flow
    /// skipped. `clears_until_s` is the end of the current clearing, in s.
    cleared: u32,
    clears_until_s: f64,
    slower: Option<Slower>,
    sharing: Sharing,
}

/// A fall of the bottleneck's rate: the time when it was noticed, in s, and the rates before and after it, in bit/s.
#[derive(Clone, Copy, Debug)]
struct Slower {
    at_s: f64,
    before_bps: f64,
    now_bps: f64,
}

/// The inputs of [`DelayMode`] in addition to a report.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Situation {
    /// `T`, in s.
    pub(super) target_s: f64,
    /// `D`, the time from a decision to the report on it, in s.
    pub(super) loop_s: f64,
    pub(super) service: Option<Service>,
    /// `weighted_bps` is `p C`, the capacity of the bottleneck times the priority, in bit/s. `is_gauged` tells whether
    /// the capacity was measured by gauges (short bursts at three times the capacity). Otherwise it follows from the
    /// time that a packet takes on a slow link.
    pub(super) weighted_bps: Option<f64>,
    pub(super) is_gauged: bool,
    /// The current rate, and the limits of the rate, in bit/s.
    pub(super) rate_bps: f64,
    pub(super) min_bps: f64,
    pub(super) max_bps: f64,
    /// Whether a competing flow fills the queue. If so, this flow does not lower its rate to empty the queue, and its
    /// rate is not pulled towards an equal share.
    pub(super) has_rival: bool,
    /// The time since the first report, and the time that the bottleneck takes to transmit a large packet, both in s.
    pub(super) age_s: f64,
    pub(super) packet_s: f64,
}

/// The integrator's gain is `INTEGRAL / D²`, where `D` is the loop delay. The law predicts the queueing delay from the
/// data in flight. The value is our choice: with this value and the proportional part, the loop is stable if less than
/// 0.70 `D` of the loop delay is outside this prediction.
const INTEGRAL: f64 = 1.0 / 0.9;
/// The proportional part multiplies the base rate by `exp(PROPORTIONAL min(f, T)/D)`, but by no more than
/// `MOST_PROPORTIONAL`. `f` is the error of the queueing delay (target minus delay), `T` the target delay, and `D` the
/// time from a decision to the report on it.
const PROPORTIONAL: f64 = 1.4;
const MOST_PROPORTIONAL: f64 = 1.1;
/// Growth rates of the base rate, in 1/s. `GROWTH` is for the logistic growth towards the arrival rate of packet
/// trains. `BLIND_GROWTH` is used while no trains are measured. Until a queue is measured for the first time, both are
/// multiplied by `STARTING`.
const GROWTH: f64 = 5.0;
const BLIND_GROWTH: f64 = 0.6;
const STARTING: f64 = 1.2;
/// The base rate is in recovery if it is below `RETURNS_BELOW` times the known rate, which is the highest recent base
/// rate with a short queue. In recovery, `RETURN_GROWTH`, in 1/s, replaces `GROWTH`, and packets are paced at
/// `RETURN_PACE` times the known rate.
const RETURN_GROWTH: f64 = 10.0;
const RETURN_PACE: f64 = 1.0;
const RETURNS_BELOW: f64 = 0.8;
/// Until gauges (short bursts at three times the capacity) have measured the capacity, `GROWTH` and `RETURN_GROWTH` are
/// limited to `GROWTH_BY_FEW / D`. `D` is the time from a decision to the report on it. Without gauges, trains are
/// short. Cross traffic hardly spreads a short train, so the train may arrive faster than the available bandwidth.
const GROWTH_BY_FEW: f64 = 0.6;
/// `known_bps`, the highest recent base rate at which the queue was short, decays with the time constant `KNOWN_S`, in
/// s. If packet trains arrive at less than `SPREAD` times their sending rate, the path spread them out.
const KNOWN_S: f64 = 10.0;
const SPREAD: f64 = 0.85;
/// Upper limit of the headroom. The headroom is `1 - r / a`, where `r` is the flow's rate and `a` is the arrival rate
/// of packet trains.
const MOST_HEADROOM: f64 = 0.5;
/// Time constant with which the base rate follows the rate of service, in s.
const ANCHOR_S: f64 = 0.12;
/// The measured service rate of the bottleneck has a relative error of about `UNCERTAIN` times the roughness of the
/// delays (their variation without queueing), divided by the duration of the measurement. The error counts as at most
/// `MOST_UNCERTAIN`. The base rate follows the service rate only by the part of their difference that exceeds this
/// error. If it followed smaller differences, the rates of flows would drift apart by chance.
const UNCERTAIN: f64 = 12.0;
const MOST_UNCERTAIN: f64 = 0.3;
/// A queue that exceeds the target by more than `OVERSHOOT_S`, in s, is an overshoot. To drain it, the rate is lowered
/// below the rate of service in proportion to the excess, but not below `LEAST_SHARE` of the rate of service.
const OVERSHOOT_S: f64 = 0.040;
const LEAST_SHARE: f64 = 0.3;
/// A queue above its target drains within this time, in s, unless `LEAST_SHARE` limits the reduction of the rate.
const DRAINED_S: f64 = 0.7;
/// If the queue was not seen empty for `EMPTY_EVERY_S`, in s, the flow dips: for a short time its rate is multiplied by
/// `DIP`. A queueing delay of at most `EMPTY_S`, in s, counts as empty.
const EMPTY_EVERY_S: f64 = 4.0;
const EMPTY_S: f64 = 0.003;
const DIP: f64 = 0.7;
/// To clear the queue, a flow multiplies its rate by `CLEARED`, and can then measure the delay of the empty path. The
/// lower rate lasts for the time from a decision to the report on it (at least `LEAST_DIP_S`) plus `CLEARS_FOR_S`. All
/// times are in s.
///
/// A new flow may count the present queue as a part of the path's delay. Other flows would then treat the new flow as a
/// loss-based flow. Therefore a new flow on a slow link with a queue clears the queue `CLEARS` times, at intervals of
/// `CLEARS_EVERY_S`. A link is slow if a large packet takes longer than `SLOW_PACKET_S`.
///
/// A flow also clears the queue when a rival has left and, on a slow link, before it decides that a rival causes the
/// queue. The values were chosen by two criteria: few flows with unequal rates on random paths, and the requirements
/// (bars) of `docs/src/equipoise.md`.
const CLEARS: u32 = 3;
const CLEARS_EVERY_S: f64 = 2.0;
const CLEARS_FOR_S: f64 = 0.3;
const CLEARED: f64 = 0.3;
/// In a dip, a flow lowers its rate so that all flows measure the empty path. A dip lasts for the time from a decision
/// to the report on this decision, but at least for `LEAST_DIP_S`, in s.
const LEAST_DIP_S: f64 = 0.2;
/// A smoothed share of ECN-marked packets above this lowers the target of the queueing delay.
const MARKED: f64 = 0.5;
/// `calm_bps` is the base rate that the flow had when the queue was last short. The bottleneck has become slower if its
/// rate of service during an overshoot is below `SLOWER` times `calm_bps`. [`DelayMode::take_slower`] reports the
/// slower rate only `SLOWER_SETTLES_S` seconds after its detection. Then the queue that the slower rate caused has
/// usually drained.
const SLOWER_SETTLES_S: f64 = 3.0;
const SLOWER: f64 = 0.75;

/// How long the rate is lowered to empty the queue, in s. `loop_s` is the time from a decision to the report on it, in
/// s.
pub(super) fn clearing_s(loop_s: f64) -> f64 {
    loop_s.max(LEAST_DIP_S) + CLEARS_FOR_S
}

impl DelayMode {
    pub(super) const fn new(start_bps: f64) -> Self {
        Self {
            base_bps: start_bps,
            known_bps: start_bps,
            calm_bps: start_bps,
            calm_s: 0.0,
            has_queued: false,
            is_queued: false,
            busy_s: -1.0,
            empty_s: 0.0,
            dips_until_s: None,
            cleared: 0,
            clears_until_s: f64::NEG_INFINITY,
            slower: None,
            sharing: Sharing::new(),
        }
    }

    /// Multiplies the rates in the state by `scale`, after a decision outside of this mode changed the rate.
    pub(super) fn scale(&mut self, scale: f64) {
        self.base_bps *= scale;
        self.known_bps *= scale;
        self.calm_bps *= scale;
    }

    /// Whether the last report showed a queue so long that the minima of the base delay must not age.
    pub(super) const fn is_queued(&self) -> bool {
        self.is_queued
    }

    /// Whether a queue has been seen since the start.
    pub(super) const fn has_queued(&self) -> bool {
        self.has_queued
    }

    /// `q`, the queueing delay predicted from all data in flight (a Smith predictor), in s. While the rate of service
    /// is unknown, `q` is the smallest queueing delay in the report (`dq`).
    fn predicted_s(seen: &Seen, service: Option<Service>) -> f64 {
        service.map_or(seen.least_s, |service| {
            (seen.in_flight_bits / service.served_bps - seen.least_round_trip_s).clamp(0.0, seen.least_s.max(0.0) + 0.1)
        })
    }

    /// How long the path has been clear, in s: the time since the queue was last longer than 0.7 times the target.
    pub(super) fn clear_s(&self, now_s: f64) -> f64 {
        now_s - self.busy_s
    }

    /// Lets `known_bps` decay. `known_bps` is the highest recent base rate at which the queue was short. If packet
    /// trains arrive spread out, `known_bps` falls at once to the arrival rate of the trains. `known_bps` never falls
    /// below the base rate at the time when the queue was last short.
    fn recall(&mut self, seen: &Seen) {
        self.known_bps *= libm::exp(-seen.elapsed_s / KNOWN_S);
        if let Some(trains) = seen.trains
            && trains.arrived_bps < SPREAD * trains.left_bps
        {
            self.known_bps = self.known_bps.min(trains.arrived_bps);
        }
        self.known_bps = self.known_bps.max(self.calm_bps);
    }

    /// Whether the base rate is below `RETURNS_BELOW` times `known_bps`, the highest recent base rate at which the
    /// queue was short. This is the case after a burst of cross traffic, for example. If so, the rate is in recovery.
    fn returns(&self) -> bool {
        self.base_bps < RETURNS_BELOW * self.known_bps
    }

    /// The pace of packets during recovery, in bit/s; zero outside of recovery. Packet trains at this pace show whether
    /// the path carries `known_bps` again, the highest recent base rate with a short queue.
    pub(super) fn return_bps(&self) -> f64 {
        if self.returns() { RETURN_PACE * self.known_bps } else { 0.0 }
    }

    /// Whether the rate of service fell a short time ago and [`Self::take_slower`] has not returned the fall yet.
    pub(super) const fn has_slowed(&self) -> bool {
        self.slower.is_some()
    }

    /// Returns the bottleneck's rates before and after a fall, in bit/s. Each fall is returned once, 3 s after it was
    /// noticed. By then the queue that it caused has usually drained.
    pub(super) fn take_slower(&mut self, now_s: f64) -> Option<(f64, f64)> {
        let slower = self.slower.take_if(|it| now_s - it.at_s > SLOWER_SETTLES_S)?;
        Some((slower.before_bps, slower.now_bps))
    }

    /// Applies a report: returns the new rate, in bit/s, and the reason for it.
    pub(super) fn step(&mut self, seen: &Seen, situation: &Situation) -> (f64, Reason) {
        let Situation { target_s, loop_s, service, min_bps, max_bps, .. } = *situation;
        self.is_queued = Path::holds_base(seen.least_s);
        if seen.last_s > target_s.max(0.010) {
            self.has_queued = true;
        }
        if seen.last_s > 0.7 * target_s {
            self.busy_s = seen.now_s;
        }
        if seen.least_s <= EMPTY_S {
            self.empty_s = seen.now_s;
            self.dips_until_s = None;
        }
        if seen.least_s < 2.0 * target_s {
            (self.calm_bps, self.calm_s) = (self.base_bps, seen.now_s);
        }
        self.recall(seen);
        let error_s =
            target_s - Self::predicted_s(seen, service) - target_s * ((seen.marked - MARKED) / (1.0 - MARKED)).max(0.0);
        let share = self.sharing.step(seen, situation);
        let shared_error_s = error_s + share.longer_s;
        if !situation.has_rival {
            self.base_bps *= libm::exp(share.pull);
        }
        let mut reason = self.integrate(seen, situation, (error_s, shared_error_s));
        if let Some(service) = service {
            self.follow(seen, service);
        }
        self.base_bps = self.base_bps.clamp(min_bps, 1.02 * max_bps);
        let proportional = libm::exp(PROPORTIONAL * shared_error_s.min(target_s) / loop_s).min(MOST_PROPORTIONAL);
        let mut rate_bps = self.base_bps * proportional;
        if let Some(service) = service
            && seen.last_s > target_s + OVERSHOOT_S
            && (seen.least_s > target_s || seen.rises)
        {
            let cap_bps = self.overshot(seen, service, target_s);
            rate_bps = rate_bps.min(cap_bps);
            self.base_bps = self.base_bps.min(service.served_bps.max(min_bps));
            reason = Reason::Other("overshoot");
        }
        let (dips, clears) = (self.dips(seen.now_s, loop_s), self.clears(seen.now_s, situation));
        if situation.has_rival {
            return (rate_bps, reason);
        }
        if clears {
            return (rate_bps * CLEARED, Reason::Other("clearing"));
        }
        if dips { (rate_bps * DIP, Reason::Other("dip")) } else { (rate_bps, reason) }
    }

    /// Changes the base rate by the error of the queue: target minus queueing delay, in s. In `error_s`, the target
    /// includes the addition for sharing with other flows. In `own_error_s`, it does not. The growth towards the
    /// arrival rate of packet trains depends on `own_error_s`, which shows whether the path is clear.
    fn integrate(&mut self, seen: &Seen, situation: &Situation, (own_error_s, error_s): (f64, f64)) -> Reason {
        let Situation { target_s, loop_s, rate_bps, .. } = *situation;
        let gain = INTEGRAL / (loop_s * loop_s);
        if error_s <= 0.0 {
            self.base_bps *= libm::exp(gain * error_s.max(-target_s) * seen.elapsed_s);
            return Reason::Law;
        }
        let clear = own_error_s.max(0.0) / target_s;
        let starting = if self.has_queued { 1.0 } else { STARTING };
        let most_s = if situation.is_gauged { f64::INFINITY } else { GROWTH_BY_FEW / loop_s };
        let growth_s = if self.returns() { RETURN_GROWTH } else { GROWTH }.min(most_s);
        let logistic = seen
            .trains
            .map_or(BLIND_GROWTH, |trains| growth_s * (1.0 - rate_bps / trains.arrived_bps).clamp(0.0, MOST_HEADROOM));
        let growth = gain * error_s + clear * clear * starting * logistic;
        let is_used = rate_bps <= 1.5 * seen.received_bps + 20e3;
        if !is_used || seen.usage <= 0.0 {
            return Reason::AppLimited;
        }
        self.base_bps *= libm::exp(growth * seen.usage * seen.elapsed_s);
        Reason::Law
    }

    /// Moves the base rate (the rate without the proportional part) towards the rate at which the bottleneck serves the
    /// flow.
    fn follow(&mut self, seen: &Seen, service: Service) {
        let mut distance = libm::log(service.served_bps / self.base_bps);
        if distance < 0.0 && service.sent_bps < self.base_bps {
            let by_own = distance.max(libm::log(service.served_bps / service.sent_bps)).min(0.0);
            distance = f64::midpoint(distance, by_own);
        }
        let uncertain = (UNCERTAIN * seen.roughness_s / service.lasted_s).min(MOST_UNCERTAIN);
        distance = distance.signum() * (distance.abs() - uncertain).max(0.0);
        self.base_bps *= libm::exp((seen.elapsed_s / ANCHOR_S).min(0.5) * distance.clamp(-1.0, 0.3));
        // When the burst that filled the queue is over, the base rate returns to nearly its value before the burst.
        let is_back = self.base_bps < 0.9 * self.calm_bps
            && service.served_bps > 0.8 * self.calm_bps
            && seen.trains.is_some_and(|trains| trains.arrived_bps > 0.9 * self.calm_bps)
            && seen.falls
            && seen.now_s - self.calm_s < 5.0;
        if is_back {
            self.base_bps = self.base_bps.max(0.9 * self.calm_bps.min(service.served_bps));
        }
    }

    /// Returns the rate that drains a queue far above its target, in bit/s, and notes whether the bottleneck has become
    /// slower.
    fn overshot(&mut self, seen: &Seen, service: Service, target_s: f64) -> f64 {
        match &mut self.slower {
            None if service.served_bps < SLOWER * self.calm_bps => {
                let (at_s, before_bps, now_bps) = (seen.now_s, self.calm_bps, service.served_bps);
                self.slower = Some(Slower { at_s, before_bps, now_bps });
            }
            Some(slower) if seen.now_s - slower.at_s < 1.0 => slower.now_bps = slower.now_bps.max(service.served_bps),
            _ => {}
        }
        let ahead_s = (seen.in_flight_bits / service.served_bps - seen.least_round_trip_s).max(if seen.rises {
            seen.last_s
        } else {
            0.0
        });
        service.served_bps * (1.0 - (ahead_s - target_s).max(0.0) / DRAINED_S).clamp(LEAST_SHARE, 1.0)
    }

    /// Whether the flow now lowers its rate so that the queue empties. A new flow on a slow link with a queue does this
    /// up to `CLEARS` times. [`clear`](Self::clear) is also called for other reasons.
    fn clears(&mut self, now_s: f64, situation: &Situation) -> bool {
        let due = ((situation.age_s / CLEARS_EVERY_S) as u32).min(CLEARS);
        if due != self.cleared {
            self.cleared = due;
            if due > 0 && self.has_queued && situation.packet_s > SLOW_PACKET_S {
                self.clear(now_s, situation.loop_s);
            }
        }
        now_s < self.clears_until_s
    }

    /// Lowers the rate for a short time, so that the queue empties and the base delay is measured.
    pub(super) fn clear(&mut self, now_s: f64, loop_s: f64) {
        self.clears_until_s = now_s + clearing_s(loop_s);
    }

    /// Whether the rate is lowered so that the queue empties once and the base delay is measured.
    fn dips(&mut self, now_s: f64, loop_s: f64) -> bool {
        if let Some(until_s) = self.dips_until_s {
            if now_s > until_s {
                self.dips_until_s = None;
                self.empty_s = now_s;
            }
        } else if now_s - self.empty_s > EMPTY_EVERY_S {
            self.dips_until_s = Some(now_s + loop_s.max(LEAST_DIP_S));
        }
        self.dips_until_s.is_some()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::measure::packets::TrainRates;

    /// Simulates the control loop, linearised around its equilibrium, with time in units of the loop delay `D`: `b' =
    /// -INTEGRAL q(t - θ)`, `q' = b - PROPORTIONAL q(t - θ)`. `b` and `q` are the deviations of the base rate and the
    /// queue from the equilibrium. θ is `unseen`, the part of the loop delay that is not predicted. Returns the largest
    /// absolute value of `q` in the time from 50 to 60 `D`, divided by the largest one from 0 to 50 `D`.
    fn swing_left(unseen: f64) -> f64 {
        let step = 1e-3;
        let late = (unseen / step) as usize;
        let (mut base, mut queues) = (0.0, vec![1.0; late + 1]);
        let mut swings = [0.0_f64; 2];
        for at in 0..60_000 {
            let seen = queues[queues.len() - 1 - late];
            let queue = queues[queues.len() - 1];
            base -= step * INTEGRAL * seen;
            queues.push(queue + step * (base - PROPORTIONAL * seen));
            let swing = &mut swings[usize::from(at >= 50_000)];
            *swing = swing.max(queue.abs());
        }
        swings[1] / swings[0]
    }

    fn situation() -> Situation {
        Situation {
            target_s: 0.02,
            loop_s: 0.2,
            service: None,
            weighted_bps: None,
            is_gauged: false,
            rate_bps: 2e5,
            min_bps: 1e5,
            max_bps: 1e7,
            has_rival: false,
            age_s: 1e3,
            packet_s: 0.0,
        }
    }

    /// If this test fails, a new flow on a slow link counts the queueing delay of the other flows as base delay, and so
    /// gets a part of the other flows' rate. Or flows on fast links lower their rate without need.
    #[test]
    fn a_new_flow_on_a_slow_link_clears_the_queue_three_times() {
        let cleared_s = |packet_s: f64, has_queued: bool| {
            let mut mode = DelayMode::new(2e5);
            mode.has_queued = has_queued;
            let lowered = |report: &u32| {
                let seen = Seen { now_s: 0.1 * f64::from(*report), elapsed_s: 0.1, ..Seen::default() };
                let situation = Situation { age_s: seen.now_s, packet_s, ..situation() };
                let (_, reason) = mode.step(&seen, &situation);
                reason == Reason::Other("clearing")
            };
            0.1 * (0..300).filter(lowered).count() as f64
        };
        assert!((cleared_s(0.020, true) - 1.5).abs() < 0.35, "three times 0.5 s: {}", cleared_s(0.020, true));
        assert!(cleared_s(0.005, true) < 1e-12 && cleared_s(0.020, false) < 1e-12);
    }

    /// If this test fails, jitter changes the base rate of each flow at random, or the base rate does not fall when a
    /// link with strong jitter becomes slower.
    #[test]
    fn a_rate_of_service_is_followed_as_far_as_it_is_certain() {
        let base_after = |roughness_s: f64, served_bps: f64| {
            let mut mode = DelayMode::new(1e6);
            let seen = Seen { elapsed_s: 0.05, roughness_s, ..Seen::default() };
            mode.follow(&seen, Service { served_bps, sent_bps: 1e6, lasted_s: 0.2 });
            mode.base_bps
        };
        assert!(base_after(0.0001, 0.9e6) < 0.97e6);
        assert!((base_after(0.003, 0.9e6) - 1e6).abs() < 1.0, "within the noise");
        assert!(base_after(0.003, 0.5e6) < 0.85e6 && base_after(1.0, 0.5e6) < 0.9e6, "half of the rate is no noise");
    }

    /// If this test fails, the rate grows too fast while the capacity is not known. In this phase, trains have few
    /// packets, and their rate may be too high.
    #[test]
    fn growth_by_trains_is_slower_while_the_capacity_is_not_known() {
        let base_after = |is_gauged| {
            let mut mode = DelayMode::new(1e6);
            let trains = Some(TrainRates { arrived_bps: 9e6, left_bps: 9e6 });
            let seen = Seen { elapsed_s: 0.1, received_bps: 1e6, usage: 1.0, trains, ..Seen::default() };
            let (target_s, loop_s, rate_bps) = (0.005, 0.5, 1e6);
            let situation = Situation { target_s, loop_s, is_gauged, rate_bps, ..situation() };
            mode.integrate(&seen, &situation, (target_s, target_s));
            mode.base_bps
        };
        let [unknown, known] = [false, true].map(base_after);
        assert!(unknown < 1.1e6 && known > 1.2e6, "{unknown} {known}");
    }

    /// The unit of time is the loop's delay. The loop's gain is 1 at the frequency ω with
    /// `ω⁴ = PROPORTIONAL² ω² + INTEGRAL²`. The phase margin at ω is `atan(PROPORTIONAL ω / INTEGRAL)`. The loop is
    /// stable if the part of the delay that is not predicted is below the phase margin divided by ω.
    #[test]
    fn the_loop_is_stable_as_long_as_seven_tenths_of_it_are_unseen_at_the_most() {
        let (square, constant) = (PROPORTIONAL * PROPORTIONAL, INTEGRAL * INTEGRAL);
        let crossing = libm::sqrt(f64::midpoint(square, libm::sqrt(square * square + 4.0 * constant)));
        let most = libm::atan(PROPORTIONAL * crossing / INTEGRAL) / crossing;
        assert!((most - 0.703).abs() < 1e-3, "{most}");
        for unseen in [0.0, 0.25, 0.5, 0.65] {
            assert!(swing_left(unseen) < 0.05, "{unseen}: {}", swing_left(unseen));
        }
        assert!(swing_left(0.75) > 1.0, "{}", swing_left(0.75));
    }
}
