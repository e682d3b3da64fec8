//! Our own law: a delay held at a small target, grown towards what trains of packets show, with TCP's rate beside TCP.

mod delay;
mod losses;
mod media;
mod path;
mod rival;
mod target;

use delay::{DelayMode, Situation};
use losses::Losses;
use media::MediaRate;
use path::{Path, Seen};
use rival::{RivalMode, Standing, StandingQueue, Verdict};
use target::DelayTarget;

use super::{
    Allowance, Controller, Feedback, Needs, PacketFeedback, QueuedFrame, RateLimits, Reason, Snapshot,
};
use crate::units::{Instant, Rate, SenderClock, Size, Span};

/// Our own law.
#[derive(Clone, Debug)]
pub struct Equipoise {
    limits: RateLimits,
    target: DelayTarget,
    path: Path,
    delay: DelayMode,
    losses: Losses,
    standing: StandingQueue,
    rival: Option<RivalMode>,
    /// When a rival was last there, in s, and the mode beside it.
    left: Option<(f64, RivalMode)>,
    media: MediaRate,
    rate_bps: f64,
    media_bps: f64,
    pace_bps: f64,
    window: Option<Size>,
    /// Since when the flow counts as a newcomer, in s.
    new_s: f64,
    silent: bool,
    timer: Option<Instant<SenderClock>>,
    snapshot: Snapshot,
}

/// How our own law is set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EquipoiseConfig {
    /// The lowest and the highest rate, and the one to start with.
    pub limits: RateLimits,
    /// A flow of twice the priority has twice the rate.
    pub priority: f64,
}

/// How much faster than the rate packets leave where the path is not clear, where it has been, and below a policer.
const PACE: f64 = 1.02;
const CLEAR_PACE: f64 = 1.35;
const POLICED_PACE: f64 = 1.1;
/// The path counts as clear after so long, in full after so long more, in s.
const CLEAR_S: f64 = 0.15;
const CLEAR_WIDTH_S: f64 = 0.3;
/// What may be under way beyond round trip, feedback and target, in s; and at the least, in bits.
const WINDOW_S: f64 = 0.060;
const LEAST_WINDOW_BITS: f64 = 36_000.0;
/// Time constant of the rate's fall in silence, in s; how often it is looked at; what is left of it, and of the base rate.
const SILENCE_S: f64 = 0.3;
const TICK: Span = Span::from_millis(20);
const SILENT_SHARE: f64 = 0.2;
const AFTER_SILENCE: f64 = 0.7;
/// A flow counts as new after so long without a report, in s.
const NEW_AFTER_S: f64 = 2.0;
/// The base is held for at most so long, in s.
const HELD_S: f64 = 20.0;

impl Equipoise {
    /// Begins at the rate to start with.
    pub fn new(config: EquipoiseConfig) -> Self {
        let start_bps = config.limits.start().as_bps_f64();
        Self {
            limits: config.limits,
            target: DelayTarget { priority: config.priority },
            path: Path::new(),
            delay: DelayMode::new(start_bps),
            losses: Losses::new(),
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
            timer: None,
            snapshot: Snapshot::default(),
        }
    }

    fn on_packets(&mut self, now: Instant<SenderClock>, feedback: &PacketFeedback<'_>) {
        let held = {
            let now_s = self.path.seconds(now).unwrap_or(0.0);
            (self.rival.is_some() || self.delay.is_queued()) && now_s - self.delay.calm_s <= HELD_S
        };
        let after_silence = core::mem::take(&mut self.silent);
        let last_s = self.path.reported_s();
        let Some(mut seen) = self.path.observe(now, feedback, self.pace_bps, held) else { return };
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
        self.timer = Span::from_secs_f64(self.path.silence_s()).map(|span| now + span);
    }

    /// Whether a queue stands that is not the own.
    fn look_for_rival(&mut self, seen: &Seen) {
        if self.rival.is_some() || seen.now_s - self.new_s < 1.0 {
            return;
        }
        let since_s = self.left.as_ref().map_or(f64::INFINITY, |(at_s, _)| seen.now_s - at_s);
        match self.standing.judge(seen, &self.path, since_s) {
            Standing::Nothing => {}
            Standing::LongerPath(by_s) => {
                self.path.shift(by_s);
                self.delay.base_bps = self.delay.base_bps.max(self.delay.calm_bps);
                self.standing.clear();
            }
            Standing::Rival(queue_s) => {
                let left = self.left.as_ref().filter(|_| since_s < rival::AGAIN_S).map(|(_, mode)| mode);
                self.rival = Some(RivalMode::new(seen, self.rate_bps, queue_s, left));
            }
        }
    }

    fn decide(&mut self, seen: &Seen, target_s: f64) -> (f64, Reason) {
        let situation = Situation {
            target_s,
            loop_s: self.loop_s(seen),
            service: self.path.recent.service((target_s / 2.0).max(0.006), target_s),
            rate_bps: self.rate_bps,
            min_bps: self.limits.min().as_bps_f64(),
            max_bps: self.limits.max().as_bps_f64(),
            has_rival: self.rival.is_some(),
        };
        if let Some((before_bps, now_bps)) = self.delay.take_slower(seen.now_s)
            && self.rival.is_none()
        {
            self.path.slowed(before_bps, now_bps);
        }
        let (mut rate_bps, mut reason) = self.delay.step(seen, &situation);
        if let Some(rival) = &mut self.rival {
            let limits = (target_s, situation.max_bps);
            match rival.step(seen, (&self.path, &self.standing), limits) {
                Verdict::Stays(tcp_bps) => (rate_bps, reason) = (tcp_bps, Reason::Other("rival")),
                Verdict::Leaves(before_bps) => {
                    self.left = self.rival.take().map(|mode| (seen.now_s, mode));
                    self.standing.clear();
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
        if let Some(cap_bps) = self.losses.overload_bps(seen, target_s).filter(|cap| rate_bps > *cap) {
            (rate_bps, reason) = (cap_bps, Reason::Overload);
        }
        (rate_bps, reason)
    }

    /// `D`, from a decision to the report on it, in s: a queue that stands does not make it longer without end.
    fn loop_s(&self, seen: &Seen) -> f64 {
        (seen.round_trip_s.min(seen.least_round_trip_s + 0.1) + seen.feedback_s + 0.03).max(0.1)
    }

    /// Pace, window and the media's rate after a decision.
    fn allow(&mut self, seen: &Seen, target_s: f64) {
        let most = if self.losses.cap_bps().is_some() { POLICED_PACE } else { CLEAR_PACE };
        let clear = ((self.delay.clear_s(seen.now_s) - CLEAR_S) / CLEAR_WIDTH_S).clamp(0.0, 1.0);
        self.pace_bps = self.rate_bps * (PACE + (most - PACE) * clear);
        let window_bits = match &self.rival {
            Some(rival) => 1.5 * rival.window_bits(),
            None => {
                let span_s = seen.least_round_trip_s + 1.5 * seen.feedback_s + target_s + WINDOW_S;
                self.rate_bps.max(self.delay.base_bps) * span_s
            }
        };
        self.window = Some(Size::from_bytes((window_bits.max(LEAST_WINDOW_BITS) / 8.0) as u64));
        self.media_bps = self.media.ask(seen.now_s, self.rate_bps, !self.delay.has_queued());
    }

    /// No report has come for long.
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

impl Controller for Equipoise {
    fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &Feedback<'_>) {
        match feedback {
            Feedback::Packets(packets) => self.on_packets(now, packets),
            Feedback::Silent { .. } | Feedback::TimedOut { .. } => self.on_silence(now),
            Feedback::Interval(_) => {}
        }
    }

    fn on_frame(&mut self, now: Instant<SenderClock>, frame: &QueuedFrame) {
        let Some(now_s) = self.path.seconds(now) else { return };
        self.media.on_frame(now_s, frame, self.pace_bps);
        if !self.silent {
            self.media_bps = self.media.ask(now_s, self.rate_bps, !self.delay.has_queued());
        }
    }

    fn on_timer(&mut self, now: Instant<SenderClock>) {
        self.on_silence(now);
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

    fn needs(&self) -> Needs {
        Needs::PACKETS
    }

    fn lowest_rate(&self) -> Rate {
        self.limits.min()
    }

    fn snapshot(&self) -> Snapshot {
        self.snapshot
    }
}
