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
        /// How long its payload was queued, since its frame was captured or since the application passed it in.
        waited: Span,
        /// The part of a live media frame that the packet carries; `None` for other payload.
        fragment: Option<Fragment>,
    },
    /// A frame of live media was captured.
    FrameCaptured {
        /// Audio or video.
        medium: Medium,
        /// The frame's number, from 0.
        number: u64,
        /// Encoded size; `None` if the frame was skipped.
        size: Option<Size>,
    },
    /// Packets of another program were queued for too long and dropped ([`SenderConfig::patience`]).
    ///
    /// [`SenderConfig::patience`]: crate::rtp::SenderConfig::patience
    PayloadExpired {
        /// Number of packets.
        packets: u64,
    },
    /// A media packet arrived for the first time.
    MediaReceived {
        /// Sequence number, extended beyond 16 bits.
        sequence: u64,
        /// The time at which the packet was sent.
        sent: Instant<SenderClock>,
        /// One-way delay.
        delay: Span,
        /// Size of the IP packet.
        size: Size,
        /// ECN field of its IP header.
        ecn: Ecn,
    },
    /// The sender knows how many packets it has to send in total, not counting repetitions of lost ones.
    ContentKnown {
        /// Number of packets.
        packets: u64,
    },
    /// A media packet was put into the playout buffer.
    Buffered {
        /// Sequence number, extended beyond 16 bits.
        sequence: u64,
        /// The packet's time in the buffer, until its playout is complete.
        wait: Span,
    },
    /// A media packet arrived while the playout buffer was full, and was dropped.
    Discarded {
        /// Sequence number, extended beyond 16 bits.
        sequence: u64,
    },
    /// A sender report requested the statistics of the interval that it ends.
    ReportRequested {
        /// Number of the request, from 0.
        number: u64,
    },
    /// The receiver sent a report with these statistics; `None` for too few samples.
    ReportSent {
        /// The interval's one-way delay.
        delay: Option<DelaySummary>,
    },
    /// The sender has applied a report.
    ReportApplied {
        /// Number of the request that the report answers.
        number: u64,
        /// The interval's one-way delay; `None` for too few samples.
        delay: Option<DelaySummary>,
        /// Time from sending the request to receiving the report, minus the time for which the receiver held the report
        /// (RFC 3550, Sec. 6.4.1).
        round_trip: Span,
        /// Share of the interval's packets that were lost, 0 to 1.
        fraction_lost: f64,
        /// Share of ECN-capable packets with a congestion mark since the last report; `None` if no packet is
        /// ECN-capable.
        fraction_marked: Option<f64>,
        /// Packets sent since the start that have not arrived.
        lost: u64,
    },
    /// The sender has applied a per-packet report.
    PacketsReported {
        /// Packets newly known to have arrived.
        arrived: u64,
        /// Packets newly assumed lost.
        lost: u64,
        /// Packets whose report was lost; whether they arrived stays unknown unless a later report covers them.
        unknown: u64,
        /// Round-trip time of the newest packet that arrived, minus the receiver's known delay.
        round_trip: Option<Span>,
    },
    /// ECN fails on the path: of `packets` ECN-capable packets, none arrived with its ECN field intact. From now on,
    /// media on this path is sent as Not-ECT (RFC 6679, Sec. 7.4.1).
    EcnFailed {
        /// Number of packets.
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
        /// Number of packets.
        packets: u64,
    },
    /// A missing media packet arrived as a retransmission.
    MediaRepaired {
        /// The packet's sequence number.
        sequence: u64,
    },
    /// The receiver's application needs a key frame: the sender received a request for it.
    KeyFrameWanted(KeyFrameRequest),
    /// The receiver sent a request for a key frame.
    KeyFrameAsked(KeyFrameRequest),
    /// None of the last three reports arrived, so the controller was notified and a request was skipped.
    ReportsMissing,
    /// The controller decided on a rate, which may be the same as before.
    RateDecided {
        /// The rate from now on.
        rate: Rate,
        /// The controller's explanation.
        snapshot: Snapshot,
    },
    /// The controller's estimates of the path after a decision, if it has any.
    Believed(Beliefs),
    /// A clock was set: the receiver's clock forward, or the sender's clock back, or the reverse.
    ClockStepped {
        /// The change of the measured one-way delays.
        by: Span,
    },
    /// The relation of the clocks, estimated from all reports so far.
    ClocksCompared {
        /// Delay of the empty path, as the difference of the two clocks.
        base: Span,
        /// The receiver's clock minus the sender's clock.
        offset: Option<Offset>,
        /// Rate of change of the offset.
        drift: Option<Drift>,
    },
    /// The congestion breaker reduced the rate to a tenth; if it trips again, media stops (RFC 8083, Sec. 4.3).
    CircuitStrained,
    /// A circuit breaker stopped the media, on one path or on all; report requests continue (RFC 8083, Sec. 4).
    CircuitBroken(Breaker),
    /// Three consecutive reports arrived and the pause is over, so media restarts, on all paths at the lowest rate.
    CircuitClosed,
    /// The sender was late by more than a packet interval, and started a new schedule instead of sending a burst.
    PacingReset {
        /// How late the sender was.
        late: Span,
    },
    /// Rate of a flow pair's TCP over an interval of its probing period, in IP packets.
    Probed {
        /// The rate.
        rate: Rate,
    },
    /// A flow pair continues over another transport.
    Switched {
        /// The transport of the following data.
        to: Transport,
        /// The first application data unit (ADU) that it carries.
        adu: u64,
        /// The rate at which RTP starts, or the rate that RTP had at its end.
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
    /// A datagram was counted and dropped.
    Ignored(DropReason),
    /// The session is over.
    Ended {
        /// Whether the peer ended it with a BYE; otherwise this end did.
        by_peer: bool,
    },
}

/// The two roles of an end in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Half {
    /// The end sends media.
    Sending,
    /// The end receives media.
    Receiving,
}

impl Event {
    /// The event's name in traces: lower-case words such as `media-sent`.
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

    /// The role to which this event belongs at an end that sends and receives. At such an end, an ignored datagram is
    /// an event of the receiver, and the session's end is an event of the sender.
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
    /// Audio or video.
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
    /// The medium in lower-case letters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Audio => "audio",
            Self::Video => "video",
        }
    }
}

/// The transport of a part of a flow pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// RTP over UDP.
    Rtp,
}

impl Transport {
    /// The transport in lower-case letters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Rtp => "rtp",
        }
    }
}

/// Why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// The datagram does not parse.
    Malformed,
    /// The datagram comes from, or refers to, a source outside of this session.
    Foreign,
    /// A packet or report that was already processed.
    Duplicate,
    /// A report or request older than one already processed.
    Late,
    /// A report on a request that was never sent.
    Stray,
    /// A sequence number or time that a correct sender would not have reached.
    Implausible,
    /// The buffer was full.
    Full,
    /// The datagram failed authentication.
    Forged,
}

impl DropReason {
    /// All reasons, in report order.
    pub const ALL: [Self; 8] = [
        Self::Malformed,
        Self::Foreign,
        Self::Duplicate,
        Self::Late,
        Self::Stray,
        Self::Implausible,
        Self::Full,
        Self::Forged,
    ];

    /// The reason in one lower-case word.
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
