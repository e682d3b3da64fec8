use crate::Ecn;
use crate::rtp::Breaker;
use crate::wire::key_frames::KeyFrameRequest;
use equipoise::control::{Beliefs, Snapshot};
use equipoise::measure::{DelaySummary, Drift, Offset};
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};

/// What an endpoint did or saw; the trace that both worlds record.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A media packet leaves.
    MediaSent {
        /// Sequence number, counted on over the wraps of the 16 bits.
        sequence: u64,
        /// Size of the IP packet.
        size: Size,
        /// How long its payload had waited for its turn: since its frame was captured, or given by the application.
        waited: Span,
        /// What of live media it carries; `None` of everything else.
        fragment: Option<Fragment>,
    },
    /// A frame of live media was captured.
    FrameCaptured {
        /// Of what.
        medium: Medium,
        /// Its number, from 0.
        number: u64,
        /// What it was encoded to; `None` if it was skipped.
        size: Option<Size>,
    },
    /// Another program's packets had waited for too long and were given up ([`SenderConfig::patience`]).
    ///
    /// [`SenderConfig::patience`]: crate::rtp::SenderConfig::patience
    PayloadExpired {
        /// How many.
        packets: u64,
    },
    /// A media packet arrived, for the first time.
    MediaReceived {
        /// Sequence number, counted on over the wraps of the 16 bits.
        sequence: u64,
        /// When it left.
        sent: Instant<SenderClock>,
        /// One-way delay.
        delay: Span,
        /// Size of the IP packet.
        size: Size,
        /// What its IP header said of congestion.
        ecn: Ecn,
    },
    /// The sender has so much to send and no more, but for what is lost.
    ContentKnown {
        /// Packets.
        packets: u64,
    },
    /// A media packet was taken into the playout buffer.
    Buffered {
        /// Sequence number, counted on over the wraps of the 16 bits.
        sequence: u64,
        /// How long it will have been there when it has been served.
        wait: Span,
    },
    /// A media packet found the playout buffer full.
    Discarded {
        /// Sequence number, counted on over the wraps of the 16 bits.
        sequence: u64,
    },
    /// A sender report asks for the statistics of the interval that it ends.
    ReportRequested {
        /// Number of the request, from 0.
        number: u64,
    },
    /// The receiver answered with these statistics; `None` for too few samples.
    ReportSent {
        /// The interval's one-way delay.
        delay: Option<DelaySummary>,
    },
    /// The sender has applied a report.
    ReportApplied {
        /// Number of the request that it answers.
        number: u64,
        /// The interval's one-way delay; `None` for too few samples.
        delay: Option<DelaySummary>,
        /// From the sender report to the receiver report, less the time the receiver held it (RFC 3550, Sec. 6.4.1).
        round_trip: Span,
        /// Share of the interval's packets that were lost, 0 to 1.
        fraction_lost: f64,
        /// Share of those that came with a mark of congestion among those that may be marked, since the last report; `None` where none may.
        fraction_marked: Option<f64>,
        /// Packets that were sent and have not arrived, since the session began.
        lost: u64,
    },
    /// The sender has taken a report by packet.
    PacketsReported {
        /// Packets that are newly known to have arrived.
        arrived: u64,
        /// Packets that are newly taken to be lost.
        lost: u64,
        /// Packets of which nothing will be known, unless a later report tells: the report on them was lost.
        unknown: u64,
        /// Round trip of the newest of those that arrived, without the time that the receiver is known to have waited.
        round_trip: Option<Span>,
    },
    /// ECN fails on the path: of so many packets that queues were allowed to mark none came that still said so. From now on media on
    /// it says that it must not be marked (RFC 6679, Sec. 7.4.1).
    EcnFailed {
        /// How many packets.
        packets: u64,
    },
    /// A media packet that the receiver misses leaves again.
    MediaRepeated {
        /// The number that it has had before.
        sequence: u64,
        /// Size of the IP packet.
        size: Size,
    },
    /// The sender was asked for packets that are missing.
    RepetitionAsked {
        /// How many.
        packets: u64,
    },
    /// A media packet that was missing came at last, as it was sent again.
    MediaRepaired {
        /// Its sequence number.
        sequence: u64,
    },
    /// The receiver wants a key frame of the encoder.
    KeyFrameWanted(KeyFrameRequest),
    /// The sender was asked for a key frame.
    KeyFrameAsked(KeyFrameRequest),
    /// None of the last three reports came: the controller was told, and a request skipped.
    ReportsMissing,
    /// The rate was decided anew, be it the same as before.
    RateDecided {
        /// The rate from now on.
        rate: Rate,
        /// What the controller says of it.
        snapshot: Snapshot,
    },
    /// What the controller believes of the path, behind a decision of one that says it.
    Believed(Beliefs),
    /// One of the two clocks was set: the receiver's on, or the sender's back, by so much, or the other way round.
    ClockStepped {
        /// By how much the shown delays jumped.
        by: Span,
    },
    /// How the clocks compare, by all reports so far.
    ClocksCompared {
        /// Delay of the empty path as the two clocks show it.
        base: Span,
        /// Receiver's clock less sender's.
        offset: Option<Offset>,
        /// How fast that grows.
        drift: Option<Drift>,
    },
    /// The congestion breaker cut the rate to a tenth; should it trip again, media stops (RFC 8083, Sec. 4.3).
    CircuitStrained,
    /// A circuit breaker stopped the media, of the one path that this is about or of all; requests for reports go on (RFC 8083,
    /// Sec. 4).
    CircuitBroken(Breaker),
    /// Three reports in a row came, and the pause is over: media begins again, of all paths at the lowest rate.
    CircuitClosed,
    /// The sender was late by more than a gap and began a new schedule rather than a burst.
    PacingReset {
        /// How late.
        late: Span,
    },
    /// A flow pair's TCP had this rate, in IP packets, over an interval of its probing period.
    Probed {
        /// The rate.
        rate: Rate,
    },
    /// A flow pair goes on over another transport.
    Switched {
        /// Which one carries what follows.
        to: Transport,
        /// The first application data unit (ADU) that it carries.
        adu: u64,
        /// The rate that RTP begins with, or had at its end.
        rate: Rate,
    },
    /// A flow pair's receiver gave out an ADU.
    AduReceived {
        /// Its number.
        number: u64,
        /// ADUs that are missing before it.
        missing: u64,
        /// Which transport brought it.
        over: Transport,
        /// Its size.
        size: Size,
    },
    /// A datagram was counted and dropped.
    Ignored(DropReason),
    /// The session is over.
    Ended {
        /// The peer said goodbye; otherwise this end did.
        by_peer: bool,
    },
}

/// Which of the two things that an end may do in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Half {
    /// It sends media.
    Sending,
    /// It receives them.
    Receiving,
}

impl Event {
    /// What happened in lower-case words, such as `media-sent`, as traces name it.
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

    /// Which half of an end that sends and receives does or sees this. What such an end ignores has come to it, and counts as
    /// received; its end is that of its sending.
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

/// A part of a frame of live media, which makes a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Of what.
    pub medium: Medium,
    /// The frame's number, from 0.
    pub frame: u64,
    /// The frame ends with it.
    pub is_last: bool,
}

/// What live media consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Medium {
    /// Sound.
    Audio,
    /// Pictures.
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

/// What carries a part of a flow pair.
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
    /// It does not parse.
    Malformed,
    /// It comes from, or speaks of, a source that is not this session's.
    Foreign,
    /// A packet or report that was taken before.
    Duplicate,
    /// A report or request that a newer one has overtaken.
    Late,
    /// A report on a request that was never sent.
    Stray,
    /// A sequence number or time that no honest sender would have got to.
    Implausible,
    /// There was no room for it.
    Full,
    /// It is not authentic.
    Forged,
}

impl DropReason {
    /// Every reason, in the order of their report.
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
