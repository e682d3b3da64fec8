use crate::Ecn;
use crate::rtp::Breaker;
use crate::wire::key_frames::KeyFrameRequest;
use equipoise::control::{Beliefs, Snapshot};
use equipoise::measure::{DelaySummary, Drift, Offset};
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};

/// What an endpoint did or observed. Simulated and live runs both record these events as their trace.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A media packet was sent.
    MediaSent {
        /// Sequence number, extended beyond 16 bits.
        sequence: u64,
        /// Size of the IP packet.
        size: Size,
        /// How long the packet's payload was queued. The time starts when the payload's frame was captured, or when the
        /// application passed the payload in.
        waited: Span,
        /// The part of a live media frame that the packet carries; `None` for other payload.
        fragment: Option<Fragment>,
    },
    /// A frame of live media was captured.
    FrameCaptured {
        /// The frame's medium.
        medium: Medium,
        /// The frame's number, from 0.
        number: u64,
        /// The frame's encoded size; `None` if the frame was skipped.
        size: Option<Size>,
    },
    /// RTP packets from another program were dropped from the queue, because they waited for too long
    /// ([`SenderConfig::patience`]) or because the queue was full.
    ///
    /// [`SenderConfig::patience`]: crate::rtp::SenderConfig::patience
    PayloadExpired {
        /// Number of dropped packets.
        packets: u64,
    },
    /// A media packet arrived for the first time.
    MediaReceived {
        /// Sequence number, extended beyond 16 bits.
        sequence: u64,
        /// The time at which the packet was sent.
        sent: Instant<SenderClock>,
        /// The packet's one-way delay, as measured with the receiver's and the sender's clocks.
        delay: Span,
        /// Size of the IP packet.
        size: Size,
        /// ECN field of the packet's IP header.
        ecn: Ecn,
    },
    /// The total number of packets to send has become known.
    ContentKnown {
        /// Total number of packets to send, without retransmissions of lost packets.
        packets: u64,
    },
    /// A media packet was put into the playout buffer.
    Buffered {
        /// Sequence number, extended beyond 16 bits.
        sequence: u64,
        /// Time from the arrival of the packet until its playout is complete.
        wait: Span,
    },
    /// A media packet arrived while the playout buffer was full, and was dropped.
    Discarded {
        /// Sequence number, extended beyond 16 bits.
        sequence: u64,
    },
    /// The sender sent a sender report. This ends a measurement interval, and requests the receiver's statistics of
    /// that interval.
    ReportRequested {
        /// Number of the request, from 0.
        number: u64,
    },
    /// The receiver sent a report with the statistics of an interval.
    ReportSent {
        /// The interval's one-way delay; `None` if the interval has too few samples.
        delay: Option<DelaySummary>,
    },
    /// The sender has applied a report.
    ReportApplied {
        /// Number of the request that the report answers.
        number: u64,
        /// Delay in the interval that ended with the request. `None` if the interval has too few samples, if a clock
        /// was set during the interval, or if the relation of the sender's and the receiver's clocks is not known yet.
        delay: Option<DelaySummary>,
        /// Round-trip time: the time from sending the request to receiving the report, minus the time that the receiver
        /// took from the request's arrival to sending the report (RFC 3550, Sec. 6.4.1).
        round_trip: Span,
        /// Share of lost packets, 0 to 1, among the packets sent between two requests: the request that the previously
        /// applied report answers, and the request that this report answers.
        fraction_lost: f64,
        /// Share of marked packets among the ECN-capable packets that arrived since the previously applied report;
        /// `None` if no such packet arrived.
        fraction_marked: Option<f64>,
        /// Number of packets that have not arrived, among all packets sent before the request that this report answers.
        lost: u64,
    },
    /// The sender has applied a per-packet report.
    PacketsReported {
        /// Number of packets that this report is the first to acknowledge.
        arrived: u64,
        /// Number of packets that this report is the first to state as not received.
        lost: u64,
        /// Number of packets whose fate became unknown, because the report on them is missing. Their fate stays unknown
        /// unless a later report covers them.
        unknown: u64,
        /// Round-trip time of the newest of the `arrived` packets, without the time from the packet's arrival to the
        /// creation of the report. If this time is unknown, it is not subtracted. `None` if `arrived` is 0, or if the
        /// times in the report are impossible.
        round_trip: Option<Span>,
    },
    /// ECN fails on the path: of the last ECN-capable packets, none arrived with ECT or CE. From now on, media on this
    /// path is sent as Not-ECT (RFC 6679, Sec. 7.4.1).
    EcnFailed {
        /// Number of these packets.
        packets: u64,
    },
    /// A media packet that the receiver is missing was retransmitted.
    MediaRepeated {
        /// The packet's original sequence number.
        sequence: u64,
        /// Size of the IP packet.
        size: Size,
    },
    /// The receiver requested retransmission of missing packets.
    RepetitionAsked {
        /// Number of packets whose retransmission was requested.
        packets: u64,
    },
    /// A missing media packet arrived as a retransmission.
    MediaRepaired {
        /// The packet's sequence number.
        sequence: u64,
    },
    /// The sender received a request for a key frame, which the receiver's application needs.
    KeyFrameWanted(KeyFrameRequest),
    /// The receiver sent a request for a key frame.
    KeyFrameAsked(KeyFrameRequest),
    /// A report request was skipped, and the controller was notified that reports are missing. The reason is that at
    /// least three requests are unanswered, or that the network reports the receiver as unreachable and a request is
    /// unanswered.
    ReportsMissing,
    /// The controller decided on a rate, which may be the same as before.
    RateDecided {
        /// The decided rate.
        rate: Rate,
        /// The controller's explanation of its decision.
        snapshot: Snapshot,
    },
    /// The controller's estimates of the path after a decision. This event is recorded only if the controller has
    /// estimates.
    Believed(Beliefs),
    /// The receiver's or the sender's clock was set, so that all measured one-way delays changed by the same amount.
    ClockStepped {
        /// The change of the measured one-way delays: positive if the receiver's clock was set forward or the sender's
        /// clock back.
        by: Span,
    },
    /// The offset and drift between the receiver's and the sender's clocks were estimated from the reports of the last
    /// ten minutes.
    ClocksCompared {
        /// One-way delay of the path without queues, measured as the receiver's clock at arrival minus the sender's
        /// clock at departure.
        base: Span,
        /// The receiver's clock minus the sender's clock; `None` if it is not known.
        offset: Option<Offset>,
        /// Rate of change of the offset between the clocks; `None` until it is known precisely enough.
        drift: Option<Drift>,
    },
    /// The congestion breaker reduced the rate to a tenth. If it trips again before the rate has recovered, media stops
    /// (RFC 8083, Sec. 4.3).
    CircuitStrained,
    /// A circuit breaker stopped the media, on one path or on all; report requests continue (RFC 8083, Sec. 4).
    CircuitBroken(Breaker),
    /// After a stop by a circuit breaker, media restarts at the lowest rate, on one path or on all. Since the stop,
    /// three reports that answer a request have arrived, and the breaker's pause, if any, is over.
    CircuitClosed,
    /// The sender was late by more than a packet interval, and started a new schedule instead of sending a burst.
    PacingReset {
        /// How late the sender was.
        late: Span,
    },
    /// A flow pair measured its TCP rate over one interval of the probing period, in which TCP carries the data.
    Probed {
        /// The TCP rate, counting whole IP packets.
        rate: Rate,
    },
    /// A flow pair, which sends its data over either TCP or RTP, switched to the other transport.
    Switched {
        /// The transport that carries the data from now on.
        to: Transport,
        /// The first application data unit (ADU) that the new transport carries.
        adu: u64,
        /// After a switch to RTP, the rate at which RTP starts. After a switch to TCP, the last rate of RTP.
        rate: Rate,
    },
    /// A flow pair's receiver delivered an ADU.
    AduReceived {
        /// The ADU's number.
        number: u64,
        /// Number of missing ADUs before this ADU.
        missing: u64,
        /// The transport that carried the ADU.
        over: Transport,
        /// The ADU's size.
        size: Size,
    },
    /// A received datagram or an input of the application was dropped and counted, for the given reason.
    Ignored(DropReason),
    /// The session is over.
    Ended {
        /// Whether the peer ended the session with a BYE packet; otherwise this endpoint ended the session.
        by_peer: bool,
    },
}

/// The two roles that an endpoint can have in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Half {
    /// The endpoint sends media.
    Sending,
    /// The endpoint receives media.
    Receiving,
}

impl Event {
    /// Returns the event's name in traces: lower-case words such as `media-sent`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::MediaSent { .. } => "media-sent",
            Self::FrameCaptured { size: Some(_), .. } => "frame-captured",
            Self::FrameCaptured { size: None, .. } => "frame-skipped",
            Self::PayloadExpired { .. } => "payload-expired",
            Self::MediaReceived { .. } => "media-received",
            Self::ContentKnown { .. } => "content-known",
            Self::Buffered { .. } => "buffered",
            Self::Discarded { .. } => "discarded",
            Self::ReportRequested { .. } => "report-requested",
            Self::ReportSent { .. } => "report-sent",
            Self::ReportApplied { .. } => "report-applied",
            Self::PacketsReported { .. } => "packets-reported",
            Self::EcnFailed { .. } => "ecn-failed",
            Self::MediaRepeated { .. } => "media-repeated",
            Self::RepetitionAsked { .. } => "repetition-asked",
            Self::MediaRepaired { .. } => "media-repaired",
            Self::KeyFrameWanted(_) => "key-frame-wanted",
            Self::KeyFrameAsked(_) => "key-frame-asked",
            Self::ReportsMissing => "reports-missing",
            Self::RateDecided { .. } => "rate-decided",
            Self::Believed(_) => "believed",
            Self::ClockStepped { .. } => "clock-stepped",
            Self::ClocksCompared { .. } => "clocks-compared",
            Self::CircuitStrained => "circuit-strained",
            Self::CircuitBroken(_) => "circuit-broken",
            Self::CircuitClosed => "circuit-closed",
            Self::PacingReset { .. } => "pacing-reset",
            Self::Probed { .. } => "rate-probed",
            Self::Switched { .. } => "transport-switched",
            Self::AduReceived { .. } => "adu-received",
            Self::Ignored(_) => "ignored",
            Self::Ended { .. } => "ended",
        }
    }

    /// Returns the role to which this event belongs at an endpoint that both sends and receives. At such an endpoint,
    /// an ignored datagram is an event of the receiver, and the end of the session is an event of the sender.
    pub const fn half(&self) -> Half {
        match self {
            Self::MediaSent { .. }
            | Self::FrameCaptured { .. }
            | Self::PayloadExpired { .. }
            | Self::ContentKnown { .. }
            | Self::ReportRequested { .. }
            | Self::ReportApplied { .. }
            | Self::PacketsReported { .. }
            | Self::EcnFailed { .. }
            | Self::KeyFrameWanted(_)
            | Self::MediaRepeated { .. }
            | Self::ReportsMissing
            | Self::RateDecided { .. }
            | Self::Believed(_)
            | Self::ClockStepped { .. }
            | Self::ClocksCompared { .. }
            | Self::CircuitStrained
            | Self::CircuitBroken(_)
            | Self::CircuitClosed
            | Self::PacingReset { .. }
            | Self::Probed { .. }
            | Self::Switched { .. }
            | Self::Ended { .. } => Half::Sending,
            Self::MediaReceived { .. }
            | Self::Buffered { .. }
            | Self::Discarded { .. }
            | Self::ReportSent { .. }
            | Self::KeyFrameAsked(_)
            | Self::RepetitionAsked { .. }
            | Self::MediaRepaired { .. }
            | Self::AduReceived { .. }
            | Self::Ignored(_) => Half::Receiving,
        }
    }
}

/// A part of a live media frame, sent in one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The frame's medium.
    pub medium: Medium,
    /// The frame's number, from 0.
    pub frame: u64,
    /// Whether the packet carries the last part of the frame.
    pub is_last: bool,
}

/// The kinds of live media.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Medium {
    /// Audio.
    Audio,
    /// Video.
    Video,
}

impl Medium {
    /// Returns the medium in lower-case letters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Audio => "audio",
            Self::Video => "video",
        }
    }
}

/// The transport that carries a part of a flow pair's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// RTP over UDP.
    Rtp,
}

impl Transport {
    /// Returns the transport in lower-case letters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Rtp => "rtp",
        }
    }
}

/// Why a datagram or an input of the application was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// The datagram does not parse.
    Malformed,
    /// The datagram comes from a source that is not part of this session, or refers to such a source.
    Foreign,
    /// The packet, report or request was already processed.
    Duplicate,
    /// The packet, report or request is older than one that was already processed, or the packet is a retransmission of
    /// a packet that is not missing.
    Late,
    /// The report answers a request that was never sent, or acknowledges a packet that was never sent; or the endpoint
    /// does not take messages or inputs of this kind.
    Stray,
    /// The packet or report states a number or a time that a correct peer would not state.
    Implausible,
    /// There was no room: a buffer or a list was full, or requests arrived too fast.
    Full,
    /// The datagram failed authentication.
    Forged,
}

impl DropReason {
    /// Returns the reason in one lower-case word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Foreign => "foreign",
            Self::Duplicate => "duplicate",
            Self::Late => "late",
            Self::Stray => "stray",
            Self::Implausible => "implausible",
            Self::Full => "full",
            Self::Forged => "forged",
        }
    }
}
