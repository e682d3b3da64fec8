//! The interface between a session and a control law: the feedback to the law, the law's output, and what the law needs
//! from the session.
//!
//! A [`Controller`] has two required methods: one processes [`Feedback`], the other returns the [`Allowance`]. The
//! session first matches the feedback with the packets sent, so that a law can process receiver reports, transport-wide
//! feedback and acknowledgements in the same way.

use alloc::boxed::Box;
use core::fmt;

use crate::measure::{DelaySummary, PlayoutSummary};
use crate::units::{Instant, Rate, ReceiverClock, SenderClock, Size, Span};

/// A congestion control algorithm, which computes an allowance from feedback.
///
/// A controller never parses, queues, paces or logs. Whatever rate the controller allows, the session's circuit
/// breakers can lower it (RFC 8083, Sec. 4). If [`is_held_to_proof`](Self::is_held_to_proof) is true, the session also
/// sends at no more than twice the rate that provably arrived, and halves this limit repeatedly while no report
/// arrives. The controller need not consider these limits. If they lowered the rate by more than a tenth in a report
/// interval, the session sets [`IntervalSummary::app_limited`].
pub trait Controller: Send + Sync + fmt::Debug {
    /// Processes feedback from the receiver, or the absence of feedback.
    fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &Feedback<'_>);

    /// Returns the rate at which the session may send from now on, and how much data may be in flight.
    fn allowance(&self) -> Allowance;

    /// Returns the feedback that the algorithm requires. A session that does not provide this feedback cannot be built
    /// with the algorithm.
    fn needs(&self) -> Needs {
        Needs::INTERVALS
    }

    /// Called when a packet was sent.
    fn on_sent(&mut self, _now: Instant<SenderClock>, _packet: &SentPacket) {}

    /// Called when a frame of live media is queued at the sender.
    fn on_frame(&mut self, _now: Instant<SenderClock>, _frame: &QueuedFrame) {}

    /// Called at the time that [`next_timer`](Self::next_timer) returned.
    fn on_timer(&mut self, _now: Instant<SenderClock>) {}

    /// Returns the time at which [`on_timer`](Self::on_timer) must be called; `None` for never.
    fn next_timer(&self) -> Option<Instant<SenderClock>> {
        None
    }

    /// Returns the probe that the algorithm requests, if any: a burst of packets above the allowed rate, which shows
    /// whether the path can carry the rate of the burst.
    ///
    /// A session need not send probes. If it does, [`SentPacket::probe`] marks the packets of a probe. The request
    /// remains until the requested number of packets and bytes was sent, or until the algorithm withdraws it.
    fn wanted_probe(&self) -> Option<Probe> {
        None
    }

    /// Returns the lowest rate that the algorithm sets while reports arrive. The session's own limits never lower the
    /// rate below this lowest rate, but the session may stop sending.
    fn lowest_rate(&self) -> Rate {
        Rate::from_bps(1_000)
    }

    /// Whether the session limits the rate to twice the rate that provably arrived. A controller with a fixed rate, or
    /// with a law that must run as printed in its paper, returns `false`. Then the session lowers the rate only in two
    /// ways: a circuit breaker cuts it, and missing reports halve it if the law needs feedback.
    fn is_held_to_proof(&self) -> bool {
        true
    }

    /// Returns the algorithm's last decision, for logs and displays. No other code may depend on it.
    fn snapshot(&self) -> Snapshot {
        Snapshot::default()
    }

    /// Returns the algorithm's estimates of the path, for logs and displays; `None` if there are none. No other code
    /// may depend on these estimates.
    fn beliefs(&self) -> Option<Beliefs> {
        None
    }

    /// Returns the one-way delay that the algorithm aims at; `None` if it has no such target.
    fn target_delay(&self) -> Option<Span> {
        None
    }

    /// Returns `CC_R` of RFC 8699, Sec. 5.3: the rate that the congestion control calculated for the path, before it is
    /// adjusted for data queued at the sender. An algorithm that cannot continue from a rate set from outside returns
    /// `None` and cannot be [coupled](super::coupled).
    fn calculated_rate(&self) -> Option<Rate> {
        None
    }

    /// Sets the rate from `now` on, within the algorithm's limits, as if the algorithm had calculated this rate (RFC
    /// 8699, Sec. 5.3.1, step 3 d). If [`calculated_rate`](Self::calculated_rate) returns `None`, the call has no
    /// effect.
    fn set_calculated_rate(&mut self, _now: Instant<SenderClock>, _rate: Rate) {}
}

/// A controller on the heap, as a session owns it.
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

/// A controller that can be copied, as some transports require. Implemented for every controller that is `Clone`.
pub trait CloneController: Controller {
    /// A copy of the controller in its current state.
    fn clone_box(&self) -> Box<dyn CloneController>;
}

impl<C: Controller + Clone + 'static> CloneController for C {
    fn clone_box(&self) -> Box<dyn CloneController> {
        Box::new(self.clone())
    }
}

/// Information about the packets sent, as the session passes it to a controller.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Feedback<'a> {
    /// The summary of a whole report interval, as a receiver measured it.
    Interval(IntervalSummary),
    /// The fates of single packets, from acknowledgements or per-packet feedback.
    Packets(&'a PacketFeedback<'a>),
    /// No report arrived for at least three report intervals.
    Silent {
        /// Number of consecutive missing reports.
        reports: u64,
    },
    /// A retransmission timer of a transport expired.
    TimedOut {
        /// Data in flight when the timer expired.
        in_flight: Size,
    },
}

/// What happened to the packets of one report interval. A field that was not measured is `None`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct IntervalSummary {
    /// Statistics of the one-way delay; `None` if it was not measured or if there were too few samples.
    pub delay: Option<DelaySummary>,
    /// Share of the packets that were lost, 0 to 1.
    pub fraction_lost: Option<f64>,
    /// Share of packets with a congestion mark (RFC 3168) among the ECN-capable packets that arrived, 0 to 1; `None` if
    /// no ECN-capable packet arrived.
    pub fraction_marked: Option<f64>,
    /// Number of packets sent in the interval that the report covers, whether they arrived or not.
    pub packets: Option<u64>,
    /// Delivery rate: the size of the interval's packets that arrived, divided by the time within which they arrived.
    pub delivered: Option<Rate>,
    /// Round-trip time, for example from a report request to the report.
    pub round_trip: Option<Span>,
    /// Rate of the bottleneck, from packet pairs; `None` if it was not measured or if there were too few pairs.
    pub bottleneck: Option<Rate>,
    /// Whether the application sent less than the allowed rate, or the session's own limits lowered the rate by more
    /// than a tenth. If so, a short delay does not show that the path carries a higher rate.
    pub app_limited: bool,
    /// Packet rates at the sender and the receiver, and the number of packets in the receiver's playout buffer.
    pub playout: Option<PlayoutSummary>,
}

impl IntervalSummary {
    /// Returns a summary without any measurement.
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

    /// Returns the number of packets lost; zero if it was not measured.
    pub fn lost(&self) -> f64 {
        self.fraction_lost.unwrap_or(0.0) * self.packets.unwrap_or(0) as f64
    }

    /// Whether the receiver reported lost packets.
    pub fn has_losses(&self) -> bool {
        self.fraction_lost.is_some_and(|lost| lost > 0.0)
    }
}

/// Feedback on single packets, in sending order.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PacketFeedback<'a> {
    /// The packets about which this feedback has new information.
    pub packets: &'a [PacketReport],
    /// Round-trip time of the newest packet in `packets` that arrived, minus the time for which the receiver is known
    /// to have delayed the feedback; `None` if it was not measured.
    pub round_trip: Option<Span>,
    /// Data in flight before this feedback arrived, including the packets in `packets`.
    pub in_flight: Size,
    /// Whether the application sent less than the allowance.
    pub app_limited: bool,
}

impl<'a> PacketFeedback<'a> {
    /// Creates feedback on `packets`, without a round-trip time, from a sender that is not app-limited.
    pub const fn new(packets: &'a [PacketReport], in_flight: Size) -> Self {
        Self { packets, round_trip: None, in_flight, app_limited: false }
    }
}

/// What happened to one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacketReport {
    /// Packet number. It increases with each packet on the path, by one unless the session skips numbers on purpose.
    pub number: u64,
    /// Size of the IP packet.
    pub size: Size,
    /// Departure time of the packet.
    pub departed: Instant<SenderClock>,
    /// Whether the packet arrived.
    pub fate: Fate,
}

impl PacketReport {
    /// Creates a report on a packet.
    pub const fn new(number: u64, size: Size, departed: Instant<SenderClock>, fate: Fate) -> Self {
        Self { number, size, departed, fate }
    }
}

/// Whether a packet arrived or was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fate {
    /// The packet arrived.
    Arrived {
        /// Arrival time on the receiver's clock; `None` if the feedback has none, as in TCP acknowledgements.
        at: Option<Instant<ReceiverClock>>,
        /// ECN mark of the packet on arrival.
        ecn: Ecn,
    },
    /// The packet is assumed lost. If it was only late, later feedback may report its arrival.
    Lost,
}

/// The codepoint of explicit congestion notification (ECN) in a packet's IP header (RFC 3168, Sec. 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// The packet is not ECN-capable.
    #[default]
    NotEct,
    /// The packet is ECN-capable, with the codepoint 10.
    Ect0,
    /// The packet is ECN-capable, with the codepoint 01, which L4S uses.
    Ect1,
    /// Congestion experienced: a router on the path marked the packet.
    Ce,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SentPacket {
    /// Packet number. The number increases by one with each packet on the path, unless the session skips numbers on
    /// purpose.
    pub number: u64,
    /// Size of the IP packet.
    pub size: Size,
    /// Data in flight, including this packet; zero if the amount is unknown.
    pub in_flight: Size,
    /// Number of the [`Probe`] that the packet belongs to; `None` if it belongs to no probe.
    pub probe: Option<u64>,
}

impl SentPacket {
    /// Creates the record of a packet that was sent and belongs to no probe.
    pub const fn new(number: u64, size: Size, in_flight: Size) -> Self {
        Self { number, size, in_flight, probe: None }
    }

    /// Returns the packet as a part of the probe with number `probe`.
    #[must_use]
    pub const fn of_probe(self, probe: u64) -> Self {
        Self { probe: Some(probe), ..self }
    }
}

/// A frame of live media, and the data that was queued at the sender before this frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueuedFrame {
    /// Size of the frame, without packet headers.
    pub size: Size,
    /// Data of earlier frames that was not sent yet.
    pub waiting: Size,
    /// How long the oldest queued data has waited; zero if nothing is queued.
    pub waited: Span,
    /// Whether the sender sends padding if a [`Probe`] needs more data than is queued.
    pub can_pad: bool,
}

impl QueuedFrame {
    /// Creates the record of a frame. `waiting` bytes were queued before the frame, and the oldest of these bytes have
    /// waited for `waited`. The sender sends no padding.
    pub const fn new(size: Size, waiting: Size, waited: Span) -> Self {
        Self { size, waiting, waited, can_pad: false }
    }

    /// Returns this record with [`can_pad`](Self::can_pad) set: the sender sends padding if a [`Probe`] needs more data
    /// than is queued.
    #[must_use]
    pub const fn with_padding(self) -> Self {
        Self { can_pad: true, ..self }
    }
}

/// A burst of packets above the allowed rate, which shows whether the path can carry the rate of the burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Probe {
    /// Probe number, which the algorithm increases by one for each of its probes.
    pub number: u64,
    /// The rate of the packets within the burst.
    pub rate: Rate,
    /// Minimum number of packets in the probe.
    pub packets: u32,
    /// Minimum amount of data in the probe.
    pub size: Size,
}

impl Probe {
    /// Creates a probe at `rate`, with at least `packets` packets and `size` of data.
    pub const fn new(number: u64, rate: Rate, packets: u32, size: Size) -> Self {
        Self { number, rate, packets, size }
    }
}

/// How fast a session may send, and how much data may be in flight. A field that is `None` sets no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Allowance {
    /// The rate at which IP packets may be sent.
    pub rate: Option<Rate>,
    /// Amount of data that may be in flight.
    pub window: Option<Size>,
    /// Rate of packets within a burst, for data that is sent in bursts, such as frames. The mean rate is still limited
    /// to `rate`.
    pub pace: Option<Rate>,
}

impl Allowance {
    /// Returns an allowance of a rate, without a limit on the data in flight.
    pub const fn rate(rate: Rate) -> Self {
        Self { rate: Some(rate), window: None, pace: None }
    }

    /// Returns an allowance of a window without a rate: only acknowledgements pace the sender.
    pub const fn window(window: Size) -> Self {
        Self { rate: None, window: Some(window), pace: None }
    }

    /// Returns an allowance of a rate and a window.
    pub const fn paced_window(rate: Rate, window: Size) -> Self {
        Self { rate: Some(rate), window: Some(window), pace: None }
    }

    /// Returns the allowance with the pacing rate `pace`, at which the packets of a burst may be sent.
    #[must_use]
    pub const fn with_pace(self, pace: Rate) -> Self {
        Self { pace: Some(pace), ..self }
    }
}

/// A set of feedback and features that an algorithm needs from a session, or that a session provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Needs(u8);

impl Needs {
    /// The empty set, for a fixed rate.
    pub const NOTHING: Self = Self(0);
    /// [`Feedback::Interval`], with delay, loss, packet count and round-trip time.
    pub const INTERVALS: Self = Self(1);
    /// [`Feedback::Packets`], and calls of [`Controller::on_sent`].
    pub const PACKETS: Self = Self(1 << 1);
    /// Packets sent in pairs, so that interval summaries include the bottleneck's rate.
    pub const PACKET_PAIRS: Self = Self(1 << 2);
    /// Interval summaries that include the state of the receiver's playout buffer.
    pub const PLAYOUT: Self = Self(1 << 3);
    /// ECN-capable packets, and feedback that includes their marks.
    pub const ECN: Self = Self(1 << 4);

    const NAMES: [(Self, &'static str); 5] = [
        (Self::INTERVALS, "interval summaries"),
        (Self::PACKETS, "feedback on single packets"),
        (Self::PACKET_PAIRS, "packet pairs"),
        (Self::PLAYOUT, "reports on the receiver's playout buffer"),
        (Self::ECN, "ECN marks"),
    ];

    /// Returns the union of `self` and `other`.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the needs in `self` that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether `self` contains all of `other`.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Checks that a session that provides `provided` meets all needs in `self`.
    ///
    /// # Errors
    /// [`UnmetNeeds`] with the missing needs.
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

/// The session does not meet all needs of the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the controller needs {missing}; this session provides {provided}")]
pub struct UnmetNeeds {
    /// The needs that the session does not meet.
    pub missing: Needs,
    /// Everything that the session provides.
    pub provided: Needs,
}

/// A controller's explanation of its last decision, for logs and displays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The reason for the current rate; `None` before the first decision.
    pub reason: Option<Reason>,
    /// The rate change computed by the law before any limit, in bit/s; `None` if it was not computed.
    pub law_step_bps: Option<f64>,
    /// In attractor-perturbation (AP) control, the coefficient of response, called b, in 1/(s·Mbit/s); `None` for other
    /// laws.
    pub response: Option<f64>,
}

/// A law's estimates of the path at a decision, for logs and displays. The numbers have single precision to save
/// memory: each session event, whatever its kind, has room for them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beliefs {
    /// How the law uses the estimates to set the rate.
    pub mode: Mode,
    /// Service rate of the bottleneck while it is busy, in bit/s; `None` if it was not busy recently.
    pub capacity_bps: Option<f32>,
    /// Delivery rate of packet trains, in bit/s; `None` if no trains were measured.
    pub available_bps: Option<f32>,
    /// Round-trip time of the empty path, in s.
    pub base_s: f32,
    /// Delay variation that is not caused by queueing, in s.
    pub noise_s: f32,
    /// The queueing delay of the last reported packet, in s.
    pub queue_s: f32,
    /// The target queueing delay, in s.
    pub target_s: f32,
}

/// How a law uses its estimates to set the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The rate is set so that the queueing delay stays at its target.
    Delay,
    /// Another flow fills the queue and reacts to loss only: the rate is that of a TCP connection on the same path.
    Rival,
    /// A policer drops packets above a certain rate, and the law keeps its rate below the policer's rate. The law also
    /// has this mode while it lowers its rate to test whether there is a policer.
    Policed,
}

impl Mode {
    /// Returns the mode as a lower-case word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delay => "delay",
            Self::Rival => "rival",
            Self::Policed => "policed",
        }
    }
}

/// The reason for a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The step that the law computed was applied.
    Law,
    /// A step up was limited to half of the free capacity, which is estimated from the variance of the delay.
    HeadroomGuard,
    /// The step was limited, usually to doubling or halving the rate.
    StepGuard,
    /// The delay changed more than chance explains: the law's step follows from the last mean delay, not from a
    /// filtered delay.
    Change,
    /// The delay was far above the target: the rate was halved instead of applying the law's step.
    FarAboveTarget,
    /// The queue is draining, or the rate was already reduced within the last round trip: the rate was kept.
    Draining,
    /// More packets were lost than chance explains: the rate was reduced below the delivery rate.
    Overload,
    /// The rate was raised by a smaller step, because it is near the rate at which the path was last full.
    Ceiling,
    /// The rate was kept, because the effect of the last change cannot show in feedback yet.
    TooSoon,
    /// The session limited the rate to what reports prove about delivery: usually twice the delivery rate, and less
    /// after heavy losses or missing reports.
    Unproved,
    /// A circuit breaker limits the rate (RFC 8083, Sec. 4).
    CircuitBreaker,
    /// The step was limited by the lower or upper rate limit.
    RateLimit,
    /// The rate was not raised, because the application does not use the current rate.
    AppLimited,
    /// There were too few samples, or they were invalid, so the law computed no step. Most laws keep the rate in this
    /// case.
    NoStatistics,
    /// The delay did not vary, so the law yields no step.
    NoVariance,
    /// No report arrived for several report intervals: the rate was reduced.
    ReportsMissing,
    /// The algorithm did not react to the feedback, because its rate is fixed or changes only at certain times.
    Fixed,
    /// A reason that is specific to one algorithm, in lower-case words joined by hyphens.
    Other(&'static str),
}

impl Reason {
    /// Returns the reason in lower-case words joined by hyphens.
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
