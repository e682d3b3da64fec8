use alloc::string::String;
use alloc::vec::Vec;

use rand_core::Rng;
use thiserror::Error;

use crate::feedback::Reporting;
use crate::rtp::outbox::Outbox;
use crate::rtp::payload::{Payload, PayloadQueue};
use crate::wire::relay::Stamp;
use crate::wire::rtcp::{self, SenderInfo};
use crate::wire::rtp::{RtpHeader, Subflow};
use crate::wire::{NtpTime, relay};
use crate::{Event, Fragment, Medium};
use equipoise::control::UnmetNeeds;
use equipoise::units::{Instant, SenderClock, Size, Span};

/// The configuration of an RTP stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamConfig {
    /// Synchronisation source.
    pub ssrc: u32,
    /// RTP payload type, 0 to 63 or 96 to 127: all other types collide with RTCP on the same port (RFC 5761, Sec. 4).
    pub payload_type: u8,
    /// Size of every IPv4 packet with media, including headers. If an application provides the payload, or if the media
    /// consists of frames, this is the maximum size.
    pub packet_size: Size,
    /// Overhead per datagram in addition to the IPv4 and UDP headers: the overhead of encryption, and 20 bytes if the
    /// session uses IPv6. An IPv6 header is 20 bytes longer than an IPv4 header. `packet_size` includes the overhead.
    pub overhead: Size,
    /// Canonical name for SDES (RFC 3550, Sec. 6.5.1); at most [`StreamConfig::MAX_CNAME`] bytes.
    pub cname: String,
}

/// Why a session cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The packet size has no room for the headers, or exceeds the maximum size of an IPv4 packet.
    #[error("a packet of {found} cannot carry this session; it must have {min} to {max}")]
    PacketSize {
        /// The configured packet size.
        found: Size,
        /// The minimum packet size, which is the size of the headers.
        min: Size,
        /// The maximum size of an IPv4 packet.
        max: Size,
    },
    /// The payload type collides with RTCP, or does not fit into seven bits.
    #[error("payload type {found} cannot share a port with RTCP; use 0 to 63 or 96 to 127")]
    PayloadType {
        /// The configured payload type.
        found: u8,
    },
    /// The canonical name does not fit into a datagram together with the reports.
    #[error("the canonical name has {found} bytes; at most {max} fit")]
    Cname {
        /// Length of the configured name, in bytes.
        found: usize,
        /// The maximum length of a name, in bytes.
        max: usize,
    },
    /// The report interval is too short, zero or negative.
    #[error("the report interval is {found}; it must be {min} or more")]
    ReportInterval {
        /// The configured report interval.
        found: Span,
        /// The shortest report interval that is accepted.
        min: Span,
    },
    /// Both endpoints of a duplex session have the same synchronisation source.
    #[error("both ends have the source number {found:#010x}; each needs one of its own")]
    Source {
        /// The synchronisation source of both endpoints.
        found: u32,
    },
    /// The interval of per-packet feedback is too long for a control law, or so short that it causes too much traffic.
    #[error("the interval of feedback by packet is {found}; it must be {min} to {max}")]
    FeedbackInterval {
        /// The configured interval.
        found: Span,
        /// The shortest interval that is accepted.
        min: Span,
        /// The longest interval that is accepted.
        max: Span,
    },
    /// Per-packet feedback was configured for a session that supports only interval reports: a duplex session, or a
    /// session over several paths with one controller for the total rate.
    #[error(
        "feedback by packet is for media one way, over one path or over several with a law for each; this session has interval reports"
    )]
    ByPacket,
    /// Transport-wide feedback was chosen, but packets with an application's payload, and packets in a session over
    /// several paths, have no transport-wide number.
    #[error("transport-wide numbers are for generated payload over one path; feedback of RFC 8888 works with any")]
    TransportWide,
    /// The controller needs feedback that the session does not provide.
    #[error(transparent)]
    Needs(#[from] UnmetNeeds),
    /// There is no controller for a path.
    #[error("there is no controller for a path")]
    NoController,
    /// The controller decides on a window only, but a session needs a rate for its pacer.
    #[error("the controller has a window and no rate; a session paces by a rate")]
    NoRate,
    /// The total rate would be divided among the paths more often than reports arrive.
    #[error("the time between two divisions of the rate is {found}; it must be a report interval, {min}, or more")]
    Period {
        /// The configured time between two divisions.
        found: Span,
        /// The configured report interval.
        min: Span,
    },
}

impl StreamConfig {
    /// Creates the configuration of a stream over UDP and IPv4 without further overhead.
    pub fn new(ssrc: u32, payload_type: u8, packet_size: Size, cname: impl Into<String>) -> Self {
        Self { ssrc, payload_type, packet_size, overhead: Size::ZERO, cname: cname.into() }
    }

    /// Maximum length of the canonical name in bytes. With such a name, a compound with SR, SDES and BYE fits into
    /// [`Transmit::MAX_HEAD`](crate::Transmit::MAX_HEAD).
    pub const MAX_CNAME: usize = 48;
    /// Number of RTP timestamp ticks per second, as is usual for video (RFC 3551, Sec. 5).
    pub const MEDIA_CLOCK_HZ: u32 = 90_000;
}

/// Makes the packets of one RTP stream, with their numbers and timestamps, and counts them.
#[derive(Clone, Debug)]
pub(crate) struct Packetiser {
    config: StreamConfig,
    media: usize,
    next_sequence: u64,
    timestamp_offset: u32,
    counts: Counts,
}

/// The counters in a sender report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) packets: u32,
    pub(crate) octets: u32,
}

/// The numbers that a packet carries in addition to its sequence number in the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// The packet's sub-flow (the part of the stream that one path carries), and the packet's number in this sub-flow.
    /// `None` in a session over one path.
    pub(crate) subflow: Option<Subflow>,
    /// Transport-wide sequence number.
    pub(crate) transport: Option<u16>,
}

/// A packet that has its number in the session, but not yet its sending time and its sub-flow number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain<'a> {
    pub(crate) sequence: u64,
    /// The packet without our extensions.
    pub(crate) bytes: &'a [u8],
    /// How long the packet's payload has been queued.
    pub(crate) waited: Span,
}

/// The content of a packet of generated media.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Generated {
    /// Number of bytes of media, at most those of a full packet.
    pub(crate) media: usize,
    /// When the media was captured.
    pub(crate) captured: Instant<SenderClock>,
    /// The part of a live media frame that the packet carries; `None` for other media.
    pub(crate) fragment: Option<Fragment>,
}

/// A packet that was put into the outbox.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// Size of the IP packet.
    pub(crate) size: Size,
    octets: usize,
    /// How long the packet's payload had been queued.
    waited: Span,
    fragment: Option<Fragment>,
}

impl Counts {
    pub(crate) const fn add(&mut self, sent: Sent) {
        self.packets = self.packets.wrapping_add(1);
        self.octets = self.octets.wrapping_add(sent.octets as u32);
    }
}

impl Packetiser {
    const LARGEST: Size = Size::from_bytes(65_535);

    /// Creates a stream. Its first sequence number and timestamp are chosen with `random` (RFC 3550, Sec. 5.1). `like`
    /// only tells which optional numbers (sub-flow, transport-wide sequence number) the packets carry. The values in
    /// `like` have no effect.
    pub(crate) fn new(config: StreamConfig, like: Numbers, random: &mut impl Rng) -> Result<Self, SessionError> {
        let Numbers { subflow, transport } = like;
        let send_time = Some(NtpTime::from_bits(0));
        let header = RtpHeader { send_time, subflow, transport_sequence: transport, ..RtpHeader::default() };
        let min = Size::IPV4_UDP + config.overhead + Size::from_bytes(header.encoded_len() as u64);
        let found = config.packet_size;
        if found < min || found > Self::LARGEST {
            return Err(SessionError::PacketSize { found, min, max: Self::LARGEST });
        }
        if !matches!(config.payload_type, 0..=63 | 96..=127) {
            return Err(SessionError::PayloadType { found: config.payload_type });
        }
        check_cname(&config.cname)?;
        // The first number is in the lower half of the range, so that a trace shows no wrap in its first seconds.
        let next_sequence = u64::from(random.next_u32() & 0x7FFF);
        let media = (found - min).as_bytes() as usize;
        Ok(Self { config, media, next_sequence, timestamp_offset: random.next_u32(), counts: Counts::default() })
    }

    /// Returns the size of the media in a full packet.
    pub(super) const fn media(&self) -> Size {
        Size::from_bytes(self.media as u64)
    }

    /// Returns the sequence number of the next packet, extended beyond 16 bits.
    pub(super) const fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    pub(crate) const fn config(&self) -> &StreamConfig {
        &self.config
    }

    /// Returns the sender information for a report at `now`.
    pub(crate) fn sender_info(&self, now: Instant<SenderClock>) -> SenderInfo {
        SenderInfo {
            ssrc: self.config.ssrc,
            ntp: NtpTime::from_instant(now),
            rtp_timestamp: self.timestamp(now),
            packet_count: self.counts.packets,
            octet_count: self.counts.octets,
        }
    }

    /// Adds an RTCP compound to `outbox`: SR, SDES with CNAME and, if `goodbye` is true, BYE. Any RTP tool understands
    /// this compound.
    pub(crate) fn send_compound(&self, now: Instant<SenderClock>, goodbye: bool, outbox: &mut Outbox) {
        let info = self.sender_info(now);
        outbox.whole(|out| {
            info.encode(&[], &[], out);
            rtcp::encode_cname(info.ssrc, &self.config.cname, out);
            if goodbye {
                rtcp::encode_goodbye(info.ssrc, out);
            }
        });
    }

    /// Returns the size of the IP packet that carries a datagram of this length.
    fn size_around(&self, datagram: usize) -> Size {
        Size::IPV4_UDP + self.config.overhead + Size::from_bytes(datagram as u64)
    }

    /// Returns the RTP timestamp for the time `at`.
    fn timestamp(&self, at: Instant<SenderClock>) -> u32 {
        self.timestamp_offset.wrapping_add(Self::ticks(at))
    }

    /// Returns the number of ticks of the media clock from time zero to `at`, modulo 2^32.
    fn ticks(at: Instant<SenderClock>) -> u32 {
        let (seconds, nanos) = (at.as_nanos() / 1_000_000_000, at.as_nanos() % 1_000_000_000);
        let hz = u64::from(StreamConfig::MEDIA_CLOCK_HZ);
        (seconds * hz + nanos * hz / 1_000_000_000) as u32
    }

    /// Returns the header of the next packet, whose media was captured at `captured`.
    fn header(&self, captured: Instant<SenderClock>) -> RtpHeader {
        RtpHeader {
            marker: false,
            payload_type: self.config.payload_type,
            sequence: self.next_sequence as u16,
            timestamp: self.timestamp(captured),
            ssrc: self.config.ssrc,
            send_time: None,
            subflow: None,
            transport_sequence: None,
        }
    }

    /// Returns the content of a full packet of generated media. The media is captured at `now`, when it is sent.
    pub(crate) const fn full(&self, now: Instant<SenderClock>) -> Generated {
        Generated { media: self.media, captured: now, fragment: None }
    }

    /// Adds the next packet of generated media, sent at `now`, to `outbox`.
    pub(crate) fn send(
        &mut self,
        now: Instant<SenderClock>,
        content: Generated,
        numbers: Numbers,
        outbox: &mut Outbox,
    ) -> Sent {
        let Generated { media, captured, fragment } = content;
        let octets = media.min(self.media);
        let is_audio = fragment.is_some_and(|it| it.medium == Medium::Audio);
        let header = RtpHeader {
            marker: fragment.is_some_and(|it| it.is_last),
            // For audio, the lowest bit of the payload type is inverted. The types 64 to 95 collide with RTCP. An
            // inverted lowest bit moves no type into this range or out of it. `payload_type` is outside the range, so
            // the result is outside, too.
            payload_type: self.config.payload_type ^ u8::from(is_audio),
            send_time: Some(NtpTime::from_instant(now)),
            subflow: numbers.subflow,
            transport_sequence: numbers.transport,
            ..self.header(captured)
        };
        outbox.media(header, octets);
        self.next_sequence += 1;
        let size = self.config.packet_size - Size::from_bytes((self.media - octets) as u64);
        let sent = Sent { size, octets, waited: (now - captured).max(Span::ZERO), fragment };
        self.on_sent(self.next_sequence - 1, sent, outbox)
    }

    /// Takes the next packet from `queue`: as much of a stream as fits into a packet, or another program's packet.
    /// Writes the packet to `plain`, without our extensions. In `plain`, another program's packet keeps the sequence
    /// number that the program gave it. Returns the packet's sequence number in this session; `None` if nothing is
    /// queued.
    pub(crate) fn number(
        &mut self,
        now: Instant<SenderClock>,
        payload: Payload,
        queue: &mut PayloadQueue,
        plain: &mut Vec<u8>,
    ) -> Option<u64> {
        plain.clear();
        let timestamp = queue.next_timestamp()?;
        if payload == Payload::Rtp {
            queue.take_packet(plain);
            // Each source has its own media clock. Therefore packets of a further source do not change this stream's
            // timestamps.
            if plain.get(8..12) == Some(&self.config.ssrc.to_be_bytes()) {
                self.timestamp_offset = timestamp.wrapping_sub(Self::ticks(now));
            }
        } else {
            self.header(now).encode(plain);
            queue.take(self.media, plain);
        }
        self.next_sequence += 1;
        Some(self.next_sequence - 1)
    }

    /// Adds a packet that already has a number, and is sent at `now`, to `outbox`.
    pub(crate) fn stamp(
        &mut self,
        now: Instant<SenderClock>,
        plain: Plain<'_>,
        subflow: Option<Subflow>,
        outbox: &mut Outbox,
    ) -> Sent {
        let (Plain { sequence, bytes: plain, waited }, mut length) = (plain, 0);
        outbox.whole(|out| {
            self.stamp_into(now, (sequence, plain), (subflow, false), out);
            length = out.len();
        });
        let octets = plain.len().saturating_sub(RtpHeader::default().encoded_len());
        self.on_sent(sequence, Sent { size: self.size_around(length), octets, waited, fragment: None }, outbox)
    }

    /// Adds a retransmission with the packet's original number to `outbox`, and returns the size of the IP packet. The
    /// packet counters do not count retransmissions.
    pub(super) fn repeat(&self, now: Instant<SenderClock>, sequence: u64, plain: &[u8], outbox: &mut Outbox) -> Size {
        let mut length = 0;
        outbox.whole(|out| {
            self.stamp_into(now, (sequence, plain), (None, true), out);
            length = out.len();
        });
        let size = self.size_around(length);
        outbox.event(Event::MediaRepeated { sequence, size });
        size
    }

    /// Appends to `out` a packet that is sent at `now` with the number `sequence`.
    fn stamp_into(
        &self,
        now: Instant<SenderClock>,
        (sequence, plain): (u64, &[u8]),
        (subflow, is_repetition): (Option<Subflow>, bool),
        out: &mut Vec<u8>,
    ) {
        let (ssrc, number, time) = (self.config.ssrc, sequence as u16, NtpTime::from_instant(now));
        // This does not fail: another program's packet is queued only if its header has room for our extensions.
        if relay::stamp(plain, Stamp { ssrc, number, time, subflow, is_repetition }, out).is_err() {
            out.extend_from_slice(plain);
        }
    }

    fn on_sent(&mut self, sequence: u64, sent: Sent, outbox: &mut Outbox) -> Sent {
        let Sent { size, waited, fragment, .. } = sent;
        outbox.event(Event::MediaSent { sequence, size, waited, fragment });
        self.counts.add(sent);
        sent
    }
}

/// Rejects a canonical name that is too long.
pub(crate) fn check_cname(cname: &str) -> Result<(), SessionError> {
    let (found, max) = (cname.len(), StreamConfig::MAX_CNAME);
    if found > max { Err(SessionError::Cname { found, max }) } else { Ok(()) }
}

/// Rejects an interval of per-packet feedback that is too short or too long.
pub(crate) fn check_reporting(reporting: Option<Reporting>) -> Result<(), SessionError> {
    let (min, max) = (Reporting::SHORTEST, Reporting::LONGEST);
    match reporting {
        Some(Reporting { interval: found, .. }) if found < min || found > max => {
            Err(SessionError::FeedbackInterval { found, min, max })
        }
        _ => Ok(()),
    }
}
