//! The seam between a session and a control law: what a law is told, what it answers, and what it needs.
//!
//! Two methods are required of a [`Controller`]: it takes [`Feedback`] and says its [`Allowance`]. The feedback is joined
//! with what was sent before it gets here, so that receiver reports, transport-wide feedback and acknowledgements look alike.

use alloc::boxed::Box;
use core::fmt;

use crate::measure::{DelaySummary, PlayoutSummary};
use crate::units::{Instant, Rate, ReceiverClock, SenderClock, Size, Span};

/// A congestion control algorithm: feedback in, allowance out.
///
/// It never parses, queues, paces or logs. The session that holds it has the last word: it sends no more than twice what was
/// proved to arrive, halves that while no report comes, and breaks the circuit (RFC 8083, Sec. 4), whatever the algorithm
/// allows. An algorithm need not know of this; of an interval in which the session held it back it is told
/// [`IntervalSummary::app_limited`].
pub trait Controller: Send + Sync + fmt::Debug {
    /// Takes what the far end has told, or that it is silent.
    fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &Feedback<'_>);

    /// How fast, and how much at once, the session may send from now on.
    fn allowance(&self) -> Allowance;

    /// What the algorithm cannot do without. A session that does not provide it refuses the algorithm when it is built.
    fn needs(&self) -> Needs {
        Needs::INTERVALS
    }

    /// A packet has left.
    fn on_sent(&mut self, _now: Instant<SenderClock>, _packet: &SentPacket) {}

    /// A frame of live media joins what waits at the sender.
    fn on_frame(&mut self, _now: Instant<SenderClock>, _frame: &QueuedFrame) {}

    /// The time of [`next_timer`](Self::next_timer) has come.
    fn on_timer(&mut self, _now: Instant<SenderClock>) {}

    /// When the algorithm wants [`on_timer`](Self::on_timer) to be called; `None` for never.
    fn next_timer(&self) -> Option<Instant<SenderClock>> {
        None
    }

    /// Packets that the algorithm wants to be sent faster than it allows, to find out whether the path takes as much.
    ///
    /// A session need not send any; it tells of those that it sends by [`SentPacket::probe`]. The probe is wanted until as many
    /// packets and bytes of it have left as it asks for, or until the algorithm has given it up.
    fn wanted_probe(&self) -> Option<Probe> {
        None
    }

    /// The lowest rate that the algorithm decides on. What the session does to it goes no lower, except that it may stop.
    fn lowest_rate(&self) -> Rate {
        Rate::from_bps(1_000)
    }

    /// Whether the session holds it to twice what was proved to arrive. A fixed rate, and a law that is to be seen as it was
    /// printed, say no: only the circuit breakers act on them.
    fn is_held_to_proof(&self) -> bool {
        true
    }

    /// What a report may show of its last decision. Nothing else may depend on it.
    fn snapshot(&self) -> Snapshot {
        Snapshot::default()
    }

    /// What it believes of the path, for people and reports; `None` if it does not say. Nothing else may depend on it.
    fn beliefs(&self) -> Option<Beliefs> {
        None
    }

    /// The one-way delay that the algorithm tries to hold, if it has one.
    fn target_delay(&self) -> Option<Span> {
        None
    }

    /// The rate that the congestion control found for the path, before it is shaped for what waits at the sender: `CC_R` of
    /// RFC 8699, Sec. 5.3. `None` for an algorithm that cannot go on from a rate which somebody else calculated, so that it cannot
    /// be [coupled](super::coupled).
    fn calculated_rate(&self) -> Option<Rate> {
        None
    }

    /// The rate is this from `now` on, within the algorithm's limits, as if it had found it itself (RFC 8699, Sec. 5.3.1, step 3 d).
    /// Ignored where [`calculated_rate`](Self::calculated_rate) is `None`.
    fn set_calculated_rate(&mut self, _now: Instant<SenderClock>, _rate: Rate) {}
}

/// A controller on the heap, as a session holds it.
pub type BoxedController = Box<dyn Controller>;

impl<C: Controller + ?Sized> Controller for Box<C> {
    fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &Feedback<'_>) {
        (**self).on_feedback(now, feedback);
    }

    fn allowance(&self) -> Allowance {
        (**self).allowance()
    }

    fn needs(&self) -> Needs {
        (**self).needs()
    }

    fn on_sent(&mut self, now: Instant<SenderClock>, packet: &SentPacket) {
        (**self).on_sent(now, packet);
    }

    fn on_frame(&mut self, now: Instant<SenderClock>, frame: &QueuedFrame) {
        (**self).on_frame(now, frame);
    }

    fn on_timer(&mut self, now: Instant<SenderClock>) {
        (**self).on_timer(now);
    }

    fn next_timer(&self) -> Option<Instant<SenderClock>> {
        (**self).next_timer()
    }

    fn wanted_probe(&self) -> Option<Probe> {
        (**self).wanted_probe()
    }

    fn lowest_rate(&self) -> Rate {
        (**self).lowest_rate()
    }

    fn is_held_to_proof(&self) -> bool {
        (**self).is_held_to_proof()
    }

    fn snapshot(&self) -> Snapshot {
        (**self).snapshot()
    }

    fn beliefs(&self) -> Option<Beliefs> {
        (**self).beliefs()
    }

    fn target_delay(&self) -> Option<Span> {
        (**self).target_delay()
    }

    fn calculated_rate(&self) -> Option<Rate> {
        (**self).calculated_rate()
    }

    fn set_calculated_rate(&mut self, now: Instant<SenderClock>, rate: Rate) {
        (**self).set_calculated_rate(now, rate);
    }
}

/// A controller that can be copied, as some transports ask for; every controller that is `Clone` is one.
pub trait CloneController: Controller {
    /// A copy of it, in its present state.
    fn clone_box(&self) -> Box<dyn CloneController>;
}

impl<C: Controller + Clone + 'static> CloneController for C {
    fn clone_box(&self) -> Box<dyn CloneController> {
        Box::new(self.clone())
    }
}

/// What is known of packets that were sent.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Feedback<'a> {
    /// The summary of a whole report interval, as a receiver measured it.
    Interval(IntervalSummary),
    /// What became of single packets, as acknowledgements or transport-wide feedback tell it.
    Packets(&'a PacketFeedback<'a>),
    /// No report came for so many report intervals, three at least.
    Silent {
        /// Reports that are missing in a row.
        reports: u64,
    },
    /// A transport's retransmission timer ran out.
    TimedOut {
        /// Data under way then.
        in_flight: Size,
    },
}

/// What happened to the packets of one report interval. A field that was not measured is `None`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct IntervalSummary {
    /// One-way delay; `None` also for too few samples.
    pub delay: Option<DelaySummary>,
    /// Share of the packets that were lost, 0 to 1.
    pub fraction_lost: Option<f64>,
    /// Share of the packets that came with a mark of congestion among those that may be marked (RFC 3168), 0 to 1; `None` where none may.
    pub fraction_marked: Option<f64>,
    /// How many packets were sent in what the report speaks of, whether they arrived or not.
    pub packets: Option<u64>,
    /// Rate at which packets came out of the network: what of the sent ones arrived, over the time in which it did.
    pub delivered: Option<Rate>,
    /// From a request to its report.
    pub round_trip: Option<Span>,
    /// Rate of the bottleneck, from packet pairs; `None` also if too few came.
    pub bottleneck: Option<Rate>,
    /// The application gave less than the rate allowed, or the session let less pass, so that a short delay says nothing of a
    /// higher rate.
    pub app_limited: bool,
    /// What went into the network and what came out of the receiver's playout buffer.
    pub playout: Option<PlayoutSummary>,
}

impl IntervalSummary {
    /// A summary in which nothing was measured.
    pub const fn unmeasured() -> Self {
        Self {
            delay: None,
            fraction_lost: None,
            fraction_marked: None,
            packets: None,
            delivered: None,
            round_trip: None,
            bottleneck: None,
            app_limited: false,
            playout: None,
        }
    }

    /// How many packets were lost.
    pub fn lost(&self) -> f64 {
        self.fraction_lost.unwrap_or(0.0) * self.packets.unwrap_or(0) as f64
    }

    /// Whether packets are known to be lost.
    pub fn has_losses(&self) -> bool {
        self.fraction_lost.is_some_and(|lost| lost > 0.0)
    }
}

/// What became of packets, in the order in which they were sent.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PacketFeedback<'a> {
    /// Those that something is newly known of.
    pub packets: &'a [PacketReport],
    /// Round-trip time of the newest of them, without what the receiver is known to have waited; `None` if it was not
    /// measured.
    pub round_trip: Option<Span>,
    /// Data under way before this feedback came, with the packets that it tells of.
    pub in_flight: Size,
    /// The application, and not the allowance, held the sender back.
    pub app_limited: bool,
}

impl<'a> PacketFeedback<'a> {
    /// Feedback on `packets`, without a round-trip time, of a sender that is not limited by its application.
    pub const fn new(packets: &'a [PacketReport], in_flight: Size) -> Self {
        Self { packets, round_trip: None, in_flight, app_limited: false }
    }
}

/// What became of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacketReport {
    /// Its number, counted up by one for each packet of the path.
    pub number: u64,
    /// Size of the IP packet.
    pub size: Size,
    /// When it left.
    pub departed: Instant<SenderClock>,
    /// Its fate.
    pub fate: Fate,
}

impl PacketReport {
    /// A report on a packet.
    pub const fn new(number: u64, size: Size, departed: Instant<SenderClock>, fate: Fate) -> Self {
        Self { number, size, departed, fate }
    }
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fate {
    /// It arrived.
    Arrived {
        /// When, by the receiver's clock; `None` if the feedback does not tell, as TCP's acknowledgements do not.
        at: Option<Instant<ReceiverClock>>,
        /// The mark that it carried at its arrival.
        ecn: Ecn,
    },
    /// It is taken to be lost. If it was only late, a later feedback may report that it arrived.
    Lost,
}

/// The mark of explicit congestion notification (RFC 3168, Sec. 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct,
    /// ECN-capable, codepoint 10.
    Ect0,
    /// ECN-capable, codepoint 01, which L4S uses.
    Ect1,
    /// Congestion experienced.
    Ce,
}

/// A packet that has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SentPacket {
    /// Its number, counted up by one for each packet of the path.
    pub number: u64,
    /// Size of the IP packet.
    pub size: Size,
    /// Data under way, with this packet; zero if the session does not know.
    pub in_flight: Size,
    /// The number of the [`Probe`] that it is a part of.
    pub probe: Option<u64>,
}

impl SentPacket {
    /// A packet that has left.
    pub const fn new(number: u64, size: Size, in_flight: Size) -> Self {
        Self { number, size, in_flight, probe: None }
    }

    /// The same packet as a part of the probe of this number.
    #[must_use]
    pub const fn of_probe(self, probe: u64) -> Self {
        Self { probe: Some(probe), ..self }
    }
}

/// A frame of live media, and what waits to be sent before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueuedFrame {
    /// Its size, without headers of packets.
    pub size: Size,
    /// What of earlier frames has not been sent yet.
    pub waiting: Size,
    /// How long the oldest of that has waited; zero if nothing waits.
    pub waited: Span,
}

impl QueuedFrame {
    /// A frame before which `waiting` waits, the oldest of it for `waited`.
    pub const fn new(size: Size, waiting: Size, waited: Span) -> Self {
        Self { size, waiting, waited }
    }
}

/// A burst of packets at a rate above the one that is allowed, by which an algorithm learns whether the path takes as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Probe {
    /// Counted up by the algorithm for each of its probes.
    pub number: u64,
    /// The rate of the packets, which follow on one another without a gap.
    pub rate: Rate,
    /// How many packets there are to be, at least.
    pub packets: u32,
    /// How much data there is to be in all, at least.
    pub size: Size,
}

impl Probe {
    /// A probe at a rate, of so many packets and so much data at least.
    pub const fn new(number: u64, rate: Rate, packets: u32, size: Size) -> Self {
        Self { number, rate, packets, size }
    }
}

/// How fast a session may send, and how much may be under way. What is `None` is left open by the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Allowance {
    /// Rate of IP packets.
    pub rate: Option<Rate>,
    /// Data that may be under way.
    pub window: Option<Size>,
    /// Rate at which single packets may follow each other, where what `rate` allows comes in bursts, as frames do.
    pub pace: Option<Rate>,
}

impl Allowance {
    /// A rate, with any amount under way.
    pub const fn rate(rate: Rate) -> Self {
        Self { rate: Some(rate), window: None, pace: None }
    }

    /// A window, with no other pace than that of its feedback.
    pub const fn window(window: Size) -> Self {
        Self { rate: None, window: Some(window), pace: None }
    }

    /// Both.
    pub const fn paced_window(rate: Rate, window: Size) -> Self {
        Self { rate: Some(rate), window: Some(window), pace: None }
    }

    /// The same, with packets that may follow each other at this rate.
    #[must_use]
    pub const fn with_pace(self, pace: Rate) -> Self {
        Self { pace: Some(pace), ..self }
    }
}

/// What an algorithm needs of a session, or what a session provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Needs(u8);

impl Needs {
    /// Nothing: the rate is fixed.
    pub const NOTHING: Self = Self(0);
    /// [`Feedback::Interval`], with delay, loss, packet count and round-trip time.
    pub const INTERVALS: Self = Self(1);
    /// [`Feedback::Packets`], and the call of [`Controller::on_sent`].
    pub const PACKETS: Self = Self(1 << 1);
    /// Packets sent in pairs, so that intervals tell the bottleneck's rate.
    pub const PACKET_PAIRS: Self = Self(1 << 2);
    /// Intervals that tell of the receiver's playout buffer.
    pub const PLAYOUT: Self = Self(1 << 3);
    /// Packets that are ECN-capable, and feedback that tells their marks.
    pub const ECN: Self = Self(1 << 4);

    const NAMES: [(Self, &'static str); 5] = [
        (Self::INTERVALS, "interval summaries"),
        (Self::PACKETS, "feedback on single packets"),
        (Self::PACKET_PAIRS, "packet pairs"),
        (Self::PLAYOUT, "reports on the receiver's playout buffer"),
        (Self::ECN, "ECN marks"),
    ];

    /// These and those.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These and not those.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether all of `other` are among these.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Checks that a session which provides `provided` can hold an algorithm that needs these.
    ///
    /// # Errors
    /// [`UnmetNeeds`] with what is missing.
    pub const fn met_by(self, provided: Self) -> Result<(), UnmetNeeds> {
        let missing = Self(self.0 & !provided.0);
        if missing.0 == 0 { Ok(()) } else { Err(UnmetNeeds { missing, provided }) }
    }
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_first = true;
        for (need, name) in Self::NAMES {
            if self.contains(need) {
                f.write_str(if is_first { "" } else { ", " })?;
                f.write_str(name)?;
                is_first = false;
            }
        }
        f.write_str(if is_first { "nothing" } else { "" })
    }
}

/// An algorithm needs what its session does not provide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the controller needs {missing}; this session provides {provided}")]
pub struct UnmetNeeds {
    /// What is missing.
    pub missing: Needs,
    /// What there is.
    pub provided: Needs,
}

/// A controller's own account of its last decision, for people and reports.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Why the rate is what it is; `None` before the first decision.
    pub reason: Option<Reason>,
    /// The change of rate that the bare law asked for, in bit/s; `None` if it was not computed.
    pub law_step_bps: Option<f64>,
    /// AP's coefficient of response b, in 1/(s·Mbit/s); `None` for other laws.
    pub response: Option<f64>,
}

/// What a law believes of its path at a decision, for people and reports: in single precision, as every event of a session has room for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beliefs {
    /// How it goes by them.
    pub mode: Mode,
    /// The rate at which the bottleneck serves while it is busy, in bit/s; `None` if it was not busy lately.
    pub capacity_bps: Option<f32>,
    /// The rate at which trains of packets come through, in bit/s; `None` without trains.
    pub available_bps: Option<f32>,
    /// Round trip of the empty path, in s.
    pub base_s: f32,
    /// How rough delays are that are no queue, in s.
    pub noise_s: f32,
    /// The queueing delay of the last packet reported, in s.
    pub queue_s: f32,
    /// The queueing delay aimed at, in s.
    pub target_s: f32,
}

/// How a law goes by what it believes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The queueing delay is held at its target.
    Delay,
    /// Another flow holds the queue and goes by losses: the rate is TCP's.
    Rival,
    /// A policer drops what is above a rate, which is kept below.
    Policed,
}

impl Mode {
    /// The mode in a lower-case word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delay => "delay",
            Self::Rival => "rival",
            Self::Policed => "policed",
        }
    }
}

/// Why a rate is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The law's own step was taken.
    Law,
    /// A step up was cut to a share of the headroom that the variance implies.
    HeadroomGuard,
    /// The step was cut to doubling or halving the rate.
    StepGuard,
    /// The delay rose beyond what chance explains: the law's step was taken at once.
    Change,
    /// The delay was far above the target: the rate was halved instead of stepped.
    FarAboveTarget,
    /// The delay was far above the target and falling fast enough: the rate was kept.
    Draining,
    /// More packets were lost than chance loses: the rate was cut to below what arrived.
    Overload,
    /// The step up was cut near the rate at which the path was last found full.
    Ceiling,
    /// The rate was kept: what its last change did cannot have been seen yet.
    TooSoon,
    /// The session held the rate to twice what was proved to arrive.
    Unproved,
    /// A circuit breaker holds the rate down (RFC 8083, Sec. 4).
    CircuitBreaker,
    /// The step was cut by the lower or upper limit of the rate.
    RateLimit,
    /// The rate was not raised: the application does not use what it has.
    AppLimited,
    /// The rate was kept: too few samples, or samples without sense.
    NoStatistics,
    /// The delay did not vary at all, so that the law has no step.
    NoVariance,
    /// Three reports in a row did not come: the rate was halved.
    ReportsMissing,
    /// The algorithm does not react.
    Fixed,
    /// Another algorithm's own reason, in lower-case words joined by hyphens.
    Other(&'static str),
}

impl Reason {
    /// The reason in lower-case words joined by hyphens.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Law => "law",
            Self::HeadroomGuard => "headroom-guard",
            Self::StepGuard => "step-guard",
            Self::Change => "change",
            Self::FarAboveTarget => "far-above-target",
            Self::Draining => "draining",
            Self::Overload => "overload",
            Self::Ceiling => "ceiling",
            Self::TooSoon => "too-soon",
            Self::Unproved => "unproved",
            Self::CircuitBreaker => "circuit-breaker",
            Self::RateLimit => "rate-limit",
            Self::AppLimited => "app-limited",
            Self::NoStatistics => "no-statistics",
            Self::NoVariance => "no-variance",
            Self::ReportsMissing => "reports-missing",
            Self::Fixed => "fixed",
            Self::Other(name) => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn what_is_missing_is_named_and_what_is_there_too() {
        let needs = Needs::INTERVALS.and(Needs::PACKET_PAIRS);
        assert_eq!(needs.met_by(Needs::INTERVALS.and(Needs::PACKET_PAIRS).and(Needs::ECN)), Ok(()));
        let unmet = needs.met_by(Needs::INTERVALS.and(Needs::PLAYOUT)).expect_err("pairs are missing");
        assert_eq!(
            unmet.to_string(),
            "the controller needs packet pairs; this session provides interval summaries, reports on the receiver's playout buffer"
        );
        assert_eq!(Needs::NOTHING.to_string(), "nothing");
    }
}
