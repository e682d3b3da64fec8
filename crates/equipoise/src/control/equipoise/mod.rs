//! Our own law. It holds the queueing delay at a small target, and grows towards the rate that packet trains measure.
//! While it competes with TCP, it uses the rate of a virtual TCP flow.

mod coupling;
mod delay;
mod losses;
mod media;
mod path;
mod probing;
mod rival;
mod sharing;
mod standing;
mod target;
#[cfg(test)]
mod tests;

use delay::{DelayMode, Situation};
use losses::Losses;
use media::MediaRate;
use path::{Path, Seen};
use probing::Probing;
use rival::{RivalMode, Verdict};
use standing::{Recently, Standing, StandingQueue};
use target::DelayTarget;

use super::{
    Allowance, Beliefs, Controller, Feedback, Mode, Needs, PacketFeedback, Probe, QueuedFrame, RateLimits, Reason,
    SentPacket, Snapshot,
};
use crate::measure::packets::Service;
use crate::units::{Instant, Rate, SenderClock, Size, Span};

/// Our own law: one controller that combines ideas from four papers.
///
/// Source: ours. **Attractor perturbation** (Waki 2013): a small delay is held, and the fluctuation of the delay raises
/// the target. **Symbiosis** (Kodama 2009): the rate grows logistically towards a capacity that is measured inline, on
/// packet trains that are sent anyway; an occasional dip of the rate lets all flows measure the empty path. **TQ**
/// (Subramanya 2003): the rate follows the *measured service rate*, with a correction that moves the *predicted* queue
/// to its target. **TPBA** (Tobe 1999): in competition with loss-based flows, a virtual TCP window sets the rate, and
/// tests check whether such flows are still present.
///
/// ```text
/// T = max(2 ms, k min(45 ms, 5 ms · 1 Mbit/s / r)) + min(12 ms, 3 (n - 1.5 ms)+)        target of the queue
/// x = clamp(ln(p C/r), 0, 1.8)                                              ln(number of flows), by the rate
/// s = 1.8 ms + 0.2 jp + 0.6 (t - 7.5 ms)+                            addition to T per unit of x
/// z follows clamp((dp - T)/s, -1, 2.8) within 3 s                           ln(number of flows), by the queue
/// h = ln(R/B), moved towards 0 by min(0.3, 12 n/L)                          distance from B to R beyond R's error
/// q = clamp(inflight / R - rtt_min, 0, dq + 0.1 s), dq while R is unknown   predicted queue
/// e = T - q - T max(0, 2 m - 1)
/// f = e + s x
/// B ← B exp(dt 0.6 min(1, x/ln 2) (x - clamp(z, 0, 1.8)))   if C is known
/// B ← B exp(dt (f/(0.9 D²) + w (e+/T)² G (1 - r/A)))      if f > 0, and the granted rate is used
///   ← B exp(dt max(f, -T)/(0.9 D²))                        otherwise
///   ← B exp(h dt/0.12 s)                                    if R is known
/// r = B min(1.1, exp(1.4 min(f, T)/D))
///   ≤ R (1 - (q - T)/0.7 s)                             overshoot: dl > T + 40 ms and (dq > T or dl rises fast)
/// ```
///
/// | symbol | name | unit |
/// | --- | --- | --- |
/// | `dq` | smallest delay in a report, less the base delay and `j`, at least 0 | s |
/// | `dl` | delay of the last packet in a report, less the base delay | s |
/// | `j` | jitter: idle delay ([`IdleDelay`](crate::measure::packets::IdleDelay)) less the base, on fast links | s |
/// | `dp` | delay by pairs of packets ([`PairedDelay`](crate::measure::packets::PairedDelay)) less `jp`, at least 0 | s |
/// | `jp` | jitter by pairs: their idle delay less the base, on fast links | s |
/// | `D` | time from a decision to the report on it: sum of round trip, report interval and 30 ms | s |
/// | `R` | service rate of a busy bottleneck ([`Recent::service`](crate::measure::packets::Recent::service)) | bit/s |
/// | `L` | time over which `R` was measured | s |
/// | `G` | growth: 5, or 10 while the rate returns to a known rate; at most 0.6/D without gauges | 1/s |
/// | `C` | capacity of the bottleneck ([`Capacity`](crate::measure::packets::Capacity)), or 1200 bytes/t | bit/s |
/// | `t` | time that the bottleneck takes for a packet of 1200 bytes; if `t` is above 10 ms, `C` follows from `t` | s |
/// | `A` | rate of packet trains ([`Trains`](crate::measure::packets::Trains)) | bit/s |
/// | `n` | roughness of delays ([`Roughness`](crate::measure::packets::Roughness)) | s |
/// | `m` | smoothed share of ECN marks | |
/// | `B`, `r` | base rate, and rate | bit/s |
/// | `p` | priority | |
/// | `k`, `w` | `k`: factor of the priority, larger for a new flow; `w`: 1.2 before the first queue, 1 after it | |
///
/// **Why flows are equal**: all flows of a bottleneck share one queue, and between its limits the target strictly
/// decreases with a flow's own rate. In equilibrium all flows therefore have one rate, whatever their round trips, and
/// N flows hold a queue of 5 ms · N / C\[Mbit/s\]. This pull to equal rates is slow on long paths. So each flow also
/// measures the capacity, by gauges: short bursts of packets at three times the capacity. The flow's share of the
/// capacity and the length of the queue each indicate a number of flows, and a second pull moves the flow's rate until
/// the two numbers agree. The speed of this second pull does not depend on the round trip.
///
/// **Losses without a queue** come from a lossy link or a policer; a test at nine tenths of the arrival rate tells
/// which. **A standing queue** that persists although the flow's own rate fell belongs to a rival, or the path became
/// longer. A constant delay means a longer path, because a rival's queue varies. **Silence**: without reports on sent
/// packets, the rate falls with a time constant of 0.3 s. **Media** get the rate less the part that drains the backlog
/// at the sender. The media rate usually changes in steps so small that an encoder can follow without a large frame.
///
/// Degenerate cases: if feedback has no arrival times, the time at which the feedback arrived is used instead, so that
/// the round trip takes the place of the delay. Without a measured round trip, 100 ms are assumed. If the receiver's
/// clock is set back, the smaller delay becomes the base at once. If that clock is set forward, the constant additional
/// delay counts as a longer path, or becomes the base when the earlier minima expire after 12 s.
///
/// **Marks** on packets that hardly waited limit the rate so that about two packets per round trip are marked. **At the
/// start**, probes look for a wide link. The rate of each probe is three times the rate that the previous probe has
/// proved.
///
/// Limits: a flow that starts while a queue stands takes the delay of that queue for the delay of the empty path, until
/// the queue empties once. On slow links, such a flow lowers its rate three times, so that the queue empties; on other
/// links it does not. On paths with rough delays, and on slow links where a packet takes long, flows may not reach
/// equal shares within half a minute. In competition with short TCP flows, a seventh of the capacity that they leave is
/// not used, because the rate needs time to recover from their bursts.
#[derive(Clone, Debug)]
pub struct Equipoise {
    limits: RateLimits,
    target: DelayTarget,
    competes: bool,
    path: Path,
    delay: DelayMode,
    losses: Losses,
    probing: Probing,
    standing: StandingQueue,
    rival: Option<RivalMode>,
    /// The time when the last competing loss-based flow left, in s, and the state of the mode that competed with it.
    left: Option<(f64, RivalMode)>,
    media: MediaRate,
    rate_bps: f64,
    media_bps: f64,
    pace_bps: f64,
    window: Option<Size>,
    /// The time since which the flow counts as a newcomer, in s.
    new_s: f64,
    silent: bool,
    /// The departure times of the first and the last packet sent after the last report.
    unreported: Option<(Instant<SenderClock>, Instant<SenderClock>)>,
    timer: Option<Instant<SenderClock>>,
    snapshot: Snapshot,
    beliefs: Option<Beliefs>,
}

/// The configuration of our own law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EquipoiseConfig {
    /// The lowest, the highest and the start rate.
    pub limits: RateLimits,
    /// A flow of twice the priority has twice the rate.
    pub priority: f64,
    /// The upper limit of `T`, the queueing delay target of a flow that is alone. If flows share a bottleneck, the
    /// target is longer by `s x` (the symbols are those of [`Equipoise`]).
    pub most_queue: Span,
    /// Whether the law competes with loss-based flows for the rate that TCP would get. Otherwise the law only uses the
    /// capacity that loss-based flows leave.
    pub competes: bool,
}

/// The ratio of pace to rate is `PACE` while the queue is long. After the queue has been short for a while (a clear
/// path), the ratio rises to `CLEAR_PACE`. While the law limits the rate because of a policer, or tests whether there
/// is a policer, the ratio only rises to `POLICED_PACE`.
const PACE: f64 = 1.02;
const CLEAR_PACE: f64 = 1.35;
const POLICED_PACE: f64 = 1.1;
/// The highest ratio of pace to rate while the rate recovers to an earlier rate that the path carried.
const MOST_PACE: f64 = 2.5;
/// The ratio of pace to rate starts to rise when the queueing delay has been at most 0.7 times the target for
/// `CLEAR_S`. It reaches its maximum `CLEAR_WIDTH_S` later. Both are in s.
const CLEAR_S: f64 = 0.15;
const CLEAR_WIDTH_S: f64 = 0.3;
/// Without a competing loss-based flow (rival), the window is the larger of rate and base rate, multiplied by the sum
/// of four durations: the smallest round trip, the target delay, 1.5 feedback intervals and `WINDOW_S`, in s. The
/// window is never below `LEAST_WINDOW_BITS`, in bits.
const WINDOW_S: f64 = 0.060;
const LEAST_WINDOW_BITS: f64 = 36_000.0;
/// While reports are missing, the rate falls with the time constant `SILENCE_S`, in s, and is updated once per `TICK`.
/// The rate never falls below `SILENT_SHARE` of the lowest rate. As soon as reports are missing, the base rate is
/// multiplied by `AFTER_SILENCE` once.
const SILENCE_S: f64 = 0.3;
const TICK: Span = Span::from_millis(20);
const SILENT_SHARE: f64 = 0.2;
const AFTER_SILENCE: f64 = 0.7;
/// A flow counts as a newcomer again after this time without a report, in s.
const NEW_AFTER_S: f64 = 2.0;
/// If the share of marked packets among the packets that did not wait in a queue is above `LEAST_MARKED`, the rate is
/// limited. At the limit, `MARKS_A_ROUND_TRIP` segments of `MARKED_SEGMENT_BITS` are marked per round trip. A
/// round-trip time below `LEAST_ROUND_TRIP_S`, in s, counts as `LEAST_ROUND_TRIP_S` (RFC 9331, App. A.1.6).
const LEAST_MARKED: f64 = 0.02;
const MARKS_A_ROUND_TRIP: f64 = 2.0;
const MARKED_SEGMENT_BITS: f64 = 12_000.0;
const LEAST_ROUND_TRIP_S: f64 = 0.025;
/// A bottleneck counts as busy if the newest packets all waited longer than a threshold. The threshold in s is
/// `max(target / 2, LEAST_QUEUE_S) + BUSY_ABOVE j`, with the jitter `j`. A delay shorter than `LEAST_QUEUE_S` may be a
/// packet's own transmission time instead of a queue.
const LEAST_QUEUE_S: f64 = 0.006;
const BUSY_ABOVE: f64 = 2.0;
/// Gauges (short bursts that measure the capacity) are sent while the queueing delay is below this, in s.
const MOST_GAUGED_S: f64 = 0.020;
/// After a competing loss-based flow (rival) has left, our flow is not pulled to an equal share of the measured
/// capacity for this time, in s. The pull estimates the number of flows from the length of the queue. This estimate may
/// be wrong, because the base delay may still contain a part of the rival's queue.
const AFTER_RIVAL_S: f64 = 3.0;
/// While a long queue or a competing loss-based flow is present, the stored minima of the base delay do not age. This
/// lasts at most this time, in s, after the queueing delay was last below twice its target.
const HELD_S: f64 = 20.0;

impl Equipoise {
    /// Starts at the start rate.
    pub fn new(config: EquipoiseConfig) -> Self {
        let start_bps = config.limits.start().as_bps_f64();
        Self {
            limits: config.limits,
            target: DelayTarget { priority: config.priority, most_s: config.most_queue.as_secs_f64() },
            competes: config.competes,
            path: Path::new(),
            delay: DelayMode::new(start_bps),
            losses: Losses::new(),
            probing: Probing::new(config.limits),
            standing: StandingQueue::default(),
            rival: None,
            left: None,
            media: MediaRate::new(),
            rate_bps: start_bps,
            media_bps: start_bps,
            pace_bps: start_bps * CLEAR_PACE,
            window: None,
            new_s: 0.0,
            silent: false,
            unreported: None,
            timer: None,
            snapshot: Snapshot::default(),
            beliefs: None,
        }
    }

    fn on_packets(&mut self, now: Instant<SenderClock>, feedback: &PacketFeedback<'_>) {
        let held = {
            let now_s = self.path.seconds(now).unwrap_or(0.0);
            (self.rival.is_some() || self.delay.is_queued()) && now_s - self.delay.calm_s <= HELD_S
        };
        let after_silence = core::mem::take(&mut self.silent);
        let last_s = self.path.reported_s();
        let Some(mut seen) = self.path.observe(now, feedback, held, self.probing.capacity_bps()) else { return };
        seen.after_gap |= after_silence;
        if last_s.is_none_or(|last| seen.now_s - last > NEW_AFTER_S) {
            self.new_s = seen.now_s;
        }
        let target_s = self.target.queue_s(self.rate_bps, seen.now_s - self.new_s, seen.roughness_s);
        self.standing.push(&seen, target_s);
        self.look_for_rival(&seen);
        let (rate_bps, reason) = self.decide(&seen, target_s);
        let (rate, cut) = self.limits.clamp(rate_bps);
        let step_bps = rate_bps - self.rate_bps;
        self.rate_bps = rate.as_bps_f64();
        self.path.grant(seen.now_s, self.rate_bps);
        self.allow(&seen, target_s);
        let reason = Some(RateLimits::reason(reason, cut));
        self.snapshot = Snapshot { reason, law_step_bps: Some(step_bps), response: None };
        self.beliefs = Some(self.believe(&seen, target_s));
        (self.unreported, self.timer) = (None, None);
    }

    /// Detects a standing queue that this flow did not cause.
    fn look_for_rival(&mut self, seen: &Seen) {
        if self.rival.is_some() || seen.now_s - self.new_s < 1.0 {
            return;
        }
        let since_s = self.since_rival_s(seen.now_s);
        let (has_slowed, packet_s, is_slow) = (self.delay.has_slowed(), self.path.packet_s(), self.path.is_slow());
        let recently = Recently { since_rival_s: since_s, has_slowed, packet_s, is_slow };
        match self.standing.judge(seen, &self.path, recently) {
            Standing::Nothing => {}
            Standing::LongerPath(by_s) => {
                self.path.shift(by_s);
                self.delay.base_bps = self.delay.base_bps.max(self.delay.calm_bps);
                self.standing.clear();
            }
            Standing::Rival(_) | Standing::Unsure if !self.competes => {}
            Standing::Unsure => self.delay.clear(seen.now_s, seen.loop_s()),
            Standing::Rival(queue_s) => {
                let left = self.left.as_ref().filter(|_| since_s < standing::AGAIN_S).map(|(_, mode)| mode);
                // The rival's queue lowered the rate before the rival was detected, so the earlier rate counts.
                let rate_bps = self.rate_bps.max(self.delay.calm_bps);
                self.rival = Some(RivalMode::new(seen, rate_bps, queue_s, left));
            }
        }
    }

    fn decide(&mut self, seen: &Seen, target_s: f64) -> (f64, Reason) {
        if self.delay.has_slowed() {
            self.probing.doubt();
        }
        let gauged_bps = self.gauged_bps(seen.now_s);
        let capacity_bps = gauged_bps.or(self.path.slow_capacity_bps()).filter(|_| self.losses.cap_bps().is_none());
        let situation = Situation {
            target_s,
            loop_s: seen.loop_s(),
            service: self.service(seen, target_s),
            weighted_bps: capacity_bps.map(|capacity| self.target.priority * capacity),
            is_gauged: gauged_bps.is_some() && capacity_bps.is_some(),
            rate_bps: self.rate_bps,
            min_bps: self.limits.min().as_bps_f64(),
            max_bps: self.limits.max().as_bps_f64(),
            has_rival: self.rival.is_some(),
            age_s: seen.now_s - self.path.began_s,
            packet_s: self.path.packet_s(),
        };
        if let Some((before_bps, now_bps)) = self.delay.take_slower(seen.now_s)
            && self.rival.is_none()
        {
            self.path.slowed(before_bps, now_bps);
        }
        let had_queued = self.delay.has_queued();
        let (mut rate_bps, mut reason) = self.delay.step(seen, &situation);
        if let Some(proved_bps) = self.probing.on_report(seen.now_s, &self.path, had_queued, self.rate_bps)
            && proved_bps > rate_bps
        {
            self.delay.base_bps = proved_bps.min(situation.max_bps);
            (rate_bps, reason) = (self.delay.base_bps, Reason::Other("probe"));
        }
        if let Some(rival) = &mut self.rival {
            let limits = (target_s, situation.max_bps);
            match rival.step(seen, (&self.path, &self.standing), limits) {
                Verdict::Stays(tcp_bps) => (rate_bps, reason) = (tcp_bps, Reason::Other("rival")),
                Verdict::Leaves(before_bps) => {
                    self.left = self.rival.take().map(|mode| (seen.now_s, mode));
                    self.standing.clear();
                    // The base delay may contain a part of the rival's queue, so the queue is cleared once.
                    self.delay.clear(seen.now_s, situation.loop_s);
                    (rate_bps, reason) = (before_bps, Reason::Other("rival-left"));
                }
            }
            self.delay.base_bps = rate_bps.clamp(situation.min_bps, situation.max_bps);
            return (rate_bps, reason);
        }
        let received_bps = self.path.recent.bits(1.0) / (seen.now_s - self.new_s + 0.05).clamp(0.1, 1.0);
        self.losses.push(seen, target_s, received_bps);
        if let Some(cap_bps) = self.losses.cap_bps() {
            if rate_bps > cap_bps {
                (rate_bps, reason) = (cap_bps, Reason::Other("policer"));
            }
            self.delay.base_bps = self.delay.base_bps.min((1.02 * cap_bps).max(situation.min_bps));
        }
        if let Some(cap_bps) = marks_bps(seen).filter(|cap| rate_bps > *cap) {
            self.delay.base_bps = cap_bps.max(situation.min_bps);
            (rate_bps, reason) = (cap_bps, Reason::Other("marks"));
        }
        if let Some(cap_bps) = self.losses.overload_bps(seen, target_s).filter(|cap| rate_bps > *cap) {
            (rate_bps, reason) = (cap_bps, Reason::Overload);
        }
        (rate_bps, reason)
    }

    /// The capacity in bit/s, as measured by packet trains that are faster than the capacity (gauges). It is not used
    /// while the bottleneck may have become slower, while a competing flow (rival) fills the queue, and for
    /// `AFTER_RIVAL_S` after the rival has left.
    fn gauged_bps(&self, now_s: f64) -> Option<f64> {
        let has_rival = self.rival.is_some() || self.since_rival_s(now_s) < AFTER_RIVAL_S;
        self.probing.capacity_bps().filter(|_| !has_rival && !self.delay.has_slowed())
    }

    /// The time since the last competing loss-based flow (rival) left, in s; infinite if none has left.
    fn since_rival_s(&self, now_s: f64) -> f64 {
        self.left.as_ref().map_or(f64::INFINITY, |(left_s, _)| now_s - left_s)
    }

    /// The law's estimates, for session events and monitors; the law itself does not use them.
    fn believe(&self, seen: &Seen, target_s: f64) -> Beliefs {
        let mode = match (&self.rival, self.losses.cap_bps()) {
            (Some(_), _) => Mode::Rival,
            (None, Some(_)) => Mode::Policed,
            (None, None) => Mode::Delay,
        };
        Beliefs {
            mode,
            capacity_bps: self.service(seen, target_s).map(|service| service.served_bps as f32),
            available_bps: seen.trains.map(|trains| trains.arrived_bps as f32),
            base_s: seen.least_round_trip_s as f32,
            noise_s: seen.roughness_s as f32,
            queue_s: seen.last_s as f32,
            target_s: target_s as f32,
        }
    }

    /// The bottleneck's rate of service. Only a busy bottleneck shows this rate. So the result is `None` if any of the
    /// newest packets waited less than a threshold. The threshold is the sum of two terms. The first term is half the
    /// target, but at least `LEAST_QUEUE_S`. The second term is `BUSY_ABOVE` times the jitter.
    fn service(&self, seen: &Seen, target_s: f64) -> Option<Service> {
        let busy_s = (target_s / 2.0).max(LEAST_QUEUE_S) + BUSY_ABOVE * seen.jitter_s;
        self.path.recent.service(busy_s, target_s)
    }

    /// Sets the pace, the window and the media rate after a decision.
    fn allow(&mut self, seen: &Seen, target_s: f64) {
        let most = if self.losses.cap_bps().is_some() { POLICED_PACE } else { CLEAR_PACE };
        let clear = ((self.delay.clear_s(seen.now_s) - CLEAR_S) / CLEAR_WIDTH_S).clamp(0.0, 1.0);
        self.pace_bps = self.rate_bps * (PACE + (most - PACE) * clear);
        if seen.last_s < target_s && self.rival.is_none() && self.losses.cap_bps().is_none() {
            self.pace_bps = self.pace_bps.max(self.delay.return_bps().min(MOST_PACE * self.rate_bps));
        }
        let margin_s = 1.5 * seen.feedback_s + WINDOW_S;
        let window_bits = match &self.rival {
            Some(rival) => 1.5 * rival.window_bits(),
            None => self.rate_bps.max(self.delay.base_bps) * (seen.least_round_trip_s + target_s + margin_s),
        };
        // The window always permits the lowest rate, however long the queue of a rival is.
        let window_bits = window_bits.max(self.limits.min().as_bps_f64() * (seen.round_trip_s + margin_s));
        let probe = self.probing.wanted().map_or(Size::ZERO, |probe| probe.size);
        self.window = Some(Size::from_bytes((window_bits.max(LEAST_WINDOW_BITS) / 8.0) as u64) + probe);
        self.ask_media(seen.now_s);
    }

    /// Sets the media rate, which is never below the lowest rate. The media rate may jump to any value in three cases:
    /// there was no queue yet, a competing loss-based flow (rival) is present, or the rival has just left.
    fn ask_media(&mut self, now_s: f64) {
        let has_left = self.left.as_ref().is_some_and(|(left_s, _)| now_s <= *left_s);
        let is_free = self.rival.is_some() || has_left || !self.delay.has_queued();
        self.media_bps = self.media.ask(now_s, self.rate_bps, is_free).max(self.limits.min().as_bps_f64());
    }

    /// Silence is assumed if a packet was sent and no report arrived for this time.
    fn patience(&self) -> Span {
        Span::from_secs_f64(self.path.silence_s()).unwrap_or(Span::ZERO)
    }

    /// Lowers the rate by one step because reports are missing, and schedules the next step after `TICK`.
    fn on_silence(&mut self, now: Instant<SenderClock>) {
        if !self.silent {
            self.silent = true;
            self.delay.base_bps = (AFTER_SILENCE * self.delay.base_bps).max(self.limits.min().as_bps_f64());
        }
        let fall = libm::exp(-TICK.as_secs_f64() / SILENCE_S);
        let least_bps = SILENT_SHARE * self.limits.min().as_bps_f64();
        self.rate_bps = (self.rate_bps * fall).max(least_bps);
        (self.media_bps, self.pace_bps) = (self.rate_bps, self.rate_bps);
        self.window = None;
        self.snapshot = Snapshot { reason: Some(Reason::ReportsMissing), ..Snapshot::default() };
        self.timer = Some(now + TICK);
    }
}

/// Returns the upper limit of the rate, in bit/s. `m0` is the share of marked packets among the packets that did not
/// wait. Returns `None` if `m0` is at most `LEAST_MARKED`.
///
/// An L4S queue also marks packets because of the queue of the classic flows next to it. With this share of marks, a
/// scalable flow has about the rate of a classic flow (RFC 9332, Sec. 2.1: the coupling). A scalable flow has two marks
/// per round trip (RFC 9331, Sec. 4.3), so it sends `2/m0` segments per round trip. This is the limit.
fn marks_bps(seen: &Seen) -> Option<f64> {
    (seen.marked_free > LEAST_MARKED).then(|| {
        MARKS_A_ROUND_TRIP / seen.marked_free * MARKED_SEGMENT_BITS / seen.round_trip_s.max(LEAST_ROUND_TRIP_S)
    })
}

impl Controller for Equipoise {
    fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &Feedback<'_>) {
        match feedback {
            Feedback::Packets(packets) => self.on_packets(now, packets),
            Feedback::Silent { .. } | Feedback::TimedOut { .. } => self.on_silence(now),
            Feedback::Interval(_) => {}
        }
    }

    fn on_sent(&mut self, now: Instant<SenderClock>, packet: &SentPacket) {
        let probe_bps = self.probing.wanted().map_or(0.0, |probe| probe.rate.as_bps_f64());
        self.path.on_sent(now, packet, self.pace_bps.max(probe_bps));
        if let Some(now_s) = self.path.seconds(now) {
            self.probing.on_sent(now_s, packet);
            let first = self.unreported.map_or(now, |(first, _)| first);
            self.unreported = Some((first, now));
            // Before the first report, it is not known how long a report takes, so silence cannot be detected.
            if self.path.reported_s().is_some() {
                self.timer = self.timer.or(Some(first + self.patience()));
            }
        }
    }

    fn on_frame(&mut self, now: Instant<SenderClock>, frame: &QueuedFrame) {
        let Some(now_s) = self.path.seconds(now) else { return };
        self.media.on_frame(now_s, frame, self.pace_bps);
        if !self.silent {
            // In a long queue, the burst that measures the capacity would lengthen the queue further.
            if self.path.last_over_s() < MOST_GAUGED_S {
                self.probing.on_frame(now_s, frame, self.rate_bps);
            }
            self.ask_media(now_s);
        }
    }

    fn on_timer(&mut self, now: Instant<SenderClock>) {
        match self.unreported {
            Some((_, last)) if now - last <= self.patience() => self.on_silence(now),
            // Without packets there are no reports: silence is measured from the next packet on.
            _ => (self.unreported, self.timer) = (None, None),
        }
    }

    fn next_timer(&self) -> Option<Instant<SenderClock>> {
        self.timer
    }

    fn allowance(&self) -> Allowance {
        let rate = |bps: f64| Rate::from_bps_f64(bps).unwrap_or(self.limits.min());
        let allowance = match self.window {
            Some(window) => Allowance::paced_window(rate(self.media_bps), window),
            None => Allowance::rate(rate(self.media_bps)),
        };
        allowance.with_pace(rate(self.pace_bps))
    }

    fn wanted_probe(&self) -> Option<Probe> {
        self.probing.wanted().filter(|_| !self.silent)
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

    fn beliefs(&self) -> Option<Beliefs> {
        self.beliefs
    }

    fn calculated_rate(&self) -> Option<Rate> {
        Some(self.limits.clamp(self.rate_bps).0)
    }

    fn set_calculated_rate(&mut self, now: Instant<SenderClock>, rate: Rate) {
        self.go_on_from(now, rate);
    }
}
