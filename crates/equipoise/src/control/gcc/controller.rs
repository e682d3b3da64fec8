use alloc::vec::Vec;

use super::aimd::Aimd;
use super::alr::AppLimit;
use super::backoff::{self, RoundTripBackoff};
use super::delay::DelayPart;
use super::detector::Usage;
use super::loss::{LossBased, LossState};
use super::loss_rule::LossRule;
use super::probing::{ProbeLimit, Probing};
use super::throughput::{Arrival, Recent, Throughput};
use crate::control::{
    Allowance, Controller, Fate, Feedback, Needs, PacketFeedback, PacketReport, Probe, QueuedFrame, RateLimits, Reason,
    SentPacket, Snapshot,
};
use crate::units::{Instant, Rate, SenderClock, Size, Span};

/// The two forms of Google congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GccForm {
    /// The algorithm of today's libwebrtc.
    #[default]
    Libwebrtc,
    /// The algorithm as printed in draft-ietf-rmcat-gcc-02.
    Draft,
}

/// Which probes the libwebrtc form of the law requests. The draft form requests no probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GccProbing {
    /// No probes.
    Off,
    /// Probes at the start, and after a large drop of the rate of an app-limited flow.
    #[default]
    On,
    /// The probes of `On`, and in addition a probe every 5 s while the flow is app-limited.
    Periodic,
}

/// The configuration of a [`Gcc`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GccConfig {
    /// Lowest rate, highest rate and start rate.
    pub limits: RateLimits,
    /// The form of the law.
    pub form: GccForm,
    /// Which probes the law requests.
    pub probing: GccProbing,
    /// β, the rate after overuse as a share of the delivery rate. Values are clamped to the range 0 to 1; NaN is
    /// replaced by [`GccConfig::DECREASE`].
    pub decrease: f64,
    /// Pacing rate of the libwebrtc form, as a multiple of the allowed rate; at least 1. NaN is replaced by
    /// [`GccConfig::PACING`].
    pub pacing: f64,
}

impl GccConfig {
    /// Default of β, in libwebrtc's form and in the draft's form of the law (draft-ietf-rmcat-gcc-02, Sec. 5.5).
    pub const DECREASE: f64 = 0.85;
    /// Default of the pacing rate, as a multiple of the allowed rate (libwebrtc, `goog_cc_network_control`).
    pub const PACING: f64 = 1.1;

    /// Returns the configuration of libwebrtc's form within these limits, with the default probes.
    pub const fn new(limits: RateLimits) -> Self {
        Self {
            limits,
            form: GccForm::Libwebrtc,
            probing: GccProbing::On,
            decrease: Self::DECREASE,
            pacing: Self::PACING,
        }
    }
}

/// Google congestion control; see the [module](super).
#[derive(Clone, Debug)]
pub struct Gcc {
    limits: RateLimits,
    /// A, the allowed rate, in bit/s.
    bps: f64,
    delay: DelayPart,
    aimd: Aimd,
    backoff: RoundTripBackoff,
    form: Form,
    pacing: f64,
    /// Data of earlier frames that was waiting at the sender when the last frame was queued.
    waiting: Size,
    /// The packets that arrived according to the current feedback, in arrival order.
    arrivals: Vec<Arrival>,
    snapshot: Snapshot,
}

/// The part of the state that differs between the two forms of the law: libwebrtc's form and the draft's form.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one for each controller, which lives on the heap")]
enum Form {
    Libwebrtc { throughput: Throughput, losses: LossBased, app_limit: AppLimit, probing: Option<Probing> },
    Draft { recent: Recent, rule: LossRule, rule_bps: f64 },
}

/// The lowest rate after the round-trip back-off, in bit/s (libwebrtc, `send_side_bandwidth_estimation`).
const BACKOFF_FLOOR: f64 = 5000.0;
/// The pacing rate must be high enough to send all data queued at the sender within this time (libwebrtc,
/// `pacing_controller`).
const LONGEST_QUEUE: Span = Span::from_secs(2);
/// A probe result lowers the rate to no less than this share of the delivery rate (libwebrtc,
/// `goog_cc_network_control`).
const PROBE_DROP: f64 = 0.85;

impl Gcc {
    /// Creates a controller at its start rate.
    pub fn new(config: GccConfig) -> Self {
        let GccConfig { limits, form, probing, decrease, pacing } = config;
        let decrease = if decrease.is_nan() { GccConfig::DECREASE } else { decrease.clamp(0.0, 1.0) };
        let bps = limits.start().as_bps_f64();
        let probing = (probing != GccProbing::Off).then(|| Probing::new(limits, probing == GccProbing::Periodic));
        Self {
            limits,
            bps,
            delay: DelayPart::new(form),
            aimd: Aimd::new(form, limits, decrease),
            backoff: RoundTripBackoff::default(),
            form: match form {
                GccForm::Libwebrtc => Form::Libwebrtc {
                    throughput: Throughput::new(),
                    losses: LossBased::new(limits),
                    app_limit: AppLimit::new(bps),
                    probing,
                },
                GccForm::Draft => {
                    let rule_bps = limits.max().as_bps_f64();
                    Form::Draft { recent: Recent::new(), rule: LossRule::default(), rule_bps }
                }
            },
            pacing: if pacing.is_nan() { GccConfig::PACING } else { pacing.max(1.0) },
            waiting: Size::ZERO,
            arrivals: Vec::new(),
            snapshot: Snapshot::default(),
        }
    }

    fn on_packets(&mut self, now: Instant<SenderClock>, feedback: &PacketFeedback<'_>) {
        if feedback.packets.is_empty() {
            return;
        }
        if let Some(round_trip) = feedback.round_trip {
            self.aimd.set_round_trip(round_trip);
        }
        let mut arrivals = core::mem::take(&mut self.arrivals);
        arrivals.clear();
        arrivals.extend(feedback.packets.iter().filter_map(arrival));
        arrivals.sort_unstable_by_key(|packet| (packet.arrived, packet.departed, packet.number));
        self.backoff.on_feedback(now, &arrivals);
        let has_recovered = self.delay.push(now, &arrivals);
        let told = Told { now, arrivals: &arrivals, usage: self.delay.usage() };
        let (allowed, reason) = match &mut self.form {
            Form::Libwebrtc { throughput, losses, app_limit, probing } => {
                let since = app_limit.since();
                if let Some(probing) = probing {
                    probing.set_app_limit(now, since);
                }
                let acked = told.arrived_at(throughput);
                let proved = probing.as_mut().and_then(|probing| told.proved_by(probing, acked, self.aimd.bps()));
                let reason = told.step(&mut self.aimd, acked, proved);
                if let Some(acked) = acked {
                    losses.set_acked(acked);
                }
                losses.update(feedback.packets, self.aimd.bps(), since.is_some());
                let allowed = losses.bps().unwrap_or(f64::INFINITY);
                if allowed < self.aimd.bps() { (allowed, Reason::Other("losses")) } else { (self.aimd.bps(), reason) }
            }
            Form::Draft { recent, rule, rule_bps } => {
                for packet in &arrivals {
                    recent.push(*packet);
                }
                let reason = told.step(&mut self.aimd, recent.bps(), None);
                if let Some(factor) = rule.update(now, feedback.packets) {
                    *rule_bps = self.bps * factor;
                }
                if *rule_bps < self.aimd.bps() {
                    (*rule_bps, Reason::Other("losses"))
                } else {
                    (self.aimd.bps(), reason)
                }
            }
        };
        // If no packet arrived, nothing proves that the path carries a higher rate.
        let allowed = if arrivals.is_empty() { allowed.min(self.bps) } else { allowed };
        self.arrivals = arrivals;
        if self.backoff.is_too_long() {
            self.set(allowed.min(self.bps), reason);
            self.back_off(now);
        } else {
            self.set(allowed, reason);
        }
        self.tell_probing(now, has_recovered);
    }

    /// Passes the new rate to the app-limit detector and to [`Probing`](super::probing::Probing), which decides when to
    /// probe.
    fn tell_probing(&mut self, now: Instant<SenderClock>, has_recovered: bool) {
        let is_too_long = self.backoff.is_too_long();
        let Form::Libwebrtc { losses, app_limit, probing, .. } = &mut self.form else { return };
        app_limit.set_estimate(self.bps);
        let Some(probing) = probing else { return };
        let limit = match losses.state() {
            _ if is_too_long || self.delay.usage() != Usage::Normal => ProbeLimit::Closed,
            LossState::Decreasing => ProbeLimit::Closed,
            LossState::Increasing => ProbeLimit::Losses,
            LossState::Delay => ProbeLimit::Open,
        };
        probing.on_estimate(now, self.bps, limit);
        if has_recovered {
            probing.on_recovered(now);
        }
    }

    /// Lowers the rate if the round-trip time is too long.
    fn back_off(&mut self, now: Instant<SenderClock>) {
        if self.backoff.is_due(now) && self.bps > BACKOFF_FLOOR {
            self.set((self.bps * backoff::FACTOR).max(BACKOFF_FLOOR), Reason::Other("round-trip"));
        }
    }

    /// Lowers the rate because no feedback arrived for several report intervals, or because a retransmission timer
    /// expired.
    fn on_silence(&mut self, now: Instant<SenderClock>) {
        self.aimd.set(now, self.aimd.bps().min(self.bps) * backoff::FACTOR);
        self.set(self.aimd.bps(), Reason::ReportsMissing);
    }

    fn set(&mut self, bps: f64, reason: Reason) {
        let before = self.bps;
        let (rate, is_cut) = self.limits.clamp(bps);
        // Rounding the rate to whole bit/s would lose small steps. Therefore a rate within the limits is stored with
        // its fraction.
        self.bps = if is_cut { rate.as_bps_f64() } else { bps };
        let reason = Some(RateLimits::reason(reason, is_cut));
        self.snapshot = Snapshot { reason, law_step_bps: Some(bps - before), response: None };
    }
}

/// The current feedback, as input of the delay-based and the probe-based part of the law.
#[derive(Clone, Copy)]
struct Told<'a> {
    now: Instant<SenderClock>,
    arrivals: &'a [Arrival],
    usage: Usage,
}

impl Told<'_> {
    /// Records the arrivals in this feedback, and returns R, the delivery rate, in bit/s.
    fn arrived_at(&self, throughput: &mut Throughput) -> Option<f64> {
        self.arrivals.iter().for_each(|packet| throughput.push(*packet));
        throughput.bps()
    }

    /// Returns the rate that a probe has proved, in bit/s. If the delivery rate is known, the result is at least the
    /// lower of the current rate `bps` and `PROBE_DROP` times the delivery rate.
    fn proved_by(&self, probing: &mut Probing, acked: Option<f64>, bps: f64) -> Option<f64> {
        let proved = self.arrivals.iter().fold(None, |proved, packet| probing.on_arrival(packet).or(proved))?;
        Some(acked.map_or(proved, |acked| proved.max(bps.min(PROBE_DROP * acked))))
    }

    /// Applies one step to the rate that the delay allows, and returns the reason. If no packet arrived, there is no
    /// step.
    fn step(&self, aimd: &mut Aimd, acked: Option<f64>, proved: Option<f64>) -> Reason {
        if self.arrivals.is_empty() {
            return Reason::NoStatistics;
        }
        match (self.usage, proved, acked) {
            (Usage::Over, _, Some(acked)) => {
                if !aimd.may_decrease(self.now, Some(acked)) {
                    return Reason::TooSoon;
                }
                aimd.update(self.now, Usage::Over, Some(acked));
                Reason::Other("overuse")
            }
            (Usage::Over, _, None) => {
                aimd.halve(self.now);
                Reason::Other("overuse")
            }
            (_, Some(proved), _) => {
                aimd.set(self.now, proved);
                Reason::Other("probe")
            }
            (usage, None, acked) => {
                aimd.update(self.now, usage, acked);
                if usage == Usage::Under { Reason::Draining } else { Reason::Law }
            }
        }
    }
}

/// Converts a report on a packet that arrived; `None` if the packet was lost or its arrival time is unknown.
fn arrival(packet: &PacketReport) -> Option<Arrival> {
    let Fate::Arrived { at: Some(arrived), .. } = packet.fate else { return None };
    Some(Arrival { number: packet.number, size: packet.size, departed: packet.departed, arrived })
}

impl Controller for Gcc {
    fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &Feedback<'_>) {
        match feedback {
            Feedback::Packets(packets) => self.on_packets(now, packets),
            Feedback::Silent { .. } | Feedback::TimedOut { .. } => self.on_silence(now),
            Feedback::Interval(_) => {}
        }
    }

    fn on_frame(&mut self, _now: Instant<SenderClock>, frame: &QueuedFrame) {
        self.waiting = frame.waiting;
    }

    fn allowance(&self) -> Allowance {
        let (rate, _) = self.limits.clamp(self.bps);
        let draining = self.waiting.over(LONGEST_QUEUE).unwrap_or(Rate::ZERO);
        let pace = match self.form {
            Form::Libwebrtc { .. } => {
                Rate::from_bps_f64(rate.as_bps_f64() * self.pacing).map(|pace| pace.max(draining))
            }
            Form::Draft { .. } => None,
        };
        Allowance { pace, ..Allowance::rate(rate) }
    }

    fn needs(&self) -> Needs {
        Needs::PACKETS
    }

    fn on_sent(&mut self, now: Instant<SenderClock>, packet: &SentPacket) {
        self.backoff.on_sent(now);
        if let Form::Libwebrtc { app_limit, probing, .. } = &mut self.form {
            app_limit.on_sent(now, packet.size);
            if let Some(probing) = probing {
                probing.set_app_limit(now, app_limit.since());
                probing.on_sent(now, packet);
            }
        }
        self.back_off(now);
    }

    fn on_timer(&mut self, now: Instant<SenderClock>) {
        if let Form::Libwebrtc { probing: Some(probing), .. } = &mut self.form {
            probing.on_timer(now);
        }
    }

    fn next_timer(&self) -> Option<Instant<SenderClock>> {
        match &self.form {
            Form::Libwebrtc { probing: Some(probing), .. } => probing.next_timer(),
            _ => None,
        }
    }

    fn wanted_probe(&self) -> Option<Probe> {
        match &self.form {
            Form::Libwebrtc { probing: Some(probing), .. } => probing.wanted(),
            _ => None,
        }
    }

    fn lowest_rate(&self) -> Rate {
        self.limits.min()
    }

    fn snapshot(&self) -> Snapshot {
        self.snapshot
    }

    /// Returns the allowed rate A, which RFC 8699, App. A calls `A_hat`.
    fn calculated_rate(&self) -> Option<Rate> {
        Some(self.limits.clamp(self.bps).0)
    }

    fn set_calculated_rate(&mut self, _now: Instant<SenderClock>, rate: Rate) {
        let before = self.bps;
        self.bps = self.limits.clamp(rate.as_bps_f64()).0.as_bps_f64();
        self.aimd.go_on_from(self.bps);
        if let Form::Draft { rule_bps, .. } = &mut self.form {
            *rule_bps *= (self.bps / before.max(1.0)).max(1.0);
        }
    }
}
