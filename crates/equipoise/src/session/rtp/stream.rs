use alloc::string::String;

use rand_core::Rng;
use thiserror::Error;

use crate::session::Event;
use crate::session::rtp::outbox::Outbox;
use crate::session::rtp::payload::PayloadQueue;
use crate::units::{Instant, SenderClock, Size, Span};
use crate::wire::NtpTime;
use crate::wire::rtcp::{self, SenderInfo};
use crate::wire::rtp::RtpHeader;

/// What an RTP stream is called and made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamConfig {
    /// Synchronisation source.
    pub ssrc: u32,
    /// RTP payload type, 0 to 63 or 96 to 127: the others collide with RTCP on one port (RFC 5761, Sec. 4).
    pub payload_type: u8,
    /// Size of every IPv4 packet, headers included; of the largest, where an application gives the payload.
    pub packet_size: Size,
    /// What the layers below add to each datagram beside headers of IPv4 and UDP, and is part of that size: 16 bytes for
    /// AES-GCM (RFC 7714, Sec. 13), 20 more for IPv6.
    pub overhead: Size,
    /// Canonical name for SDES (RFC 3550, Sec. 6.5.1); at most [`StreamConfig::MAX_CNAME`] bytes.
    pub cname: String,
}

/// Why a session cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SessionError {
    /// The packets would not hold their own headers, or not fit into an IPv4 packet.
    #[error("a packet of {found} cannot carry this session; it must have {min} to {max}")]
    PacketSize {
        /// What was asked for.
        found: Size,
        /// The smallest packet: headers alone.
        min: Size,
        /// The largest IPv4 packet.
        max: Size,
    },
    /// The payload type cannot be told from RTCP, or does not fit its seven bits.
    #[error("payload type {found} cannot share a port with RTCP; use 0 to 63 or 96 to 127")]
    PayloadType {
        /// What was asked for.
        found: u8,
    },
    /// The canonical name would not fit beside the reports.
    #[error("the canonical name has {found} bytes; at most {max} fit")]
    Cname {
        /// Length of what was asked for, in bytes.
        found: usize,
        /// The most that fit.
        max: usize,
    },
    /// Reports would never come, or all at once.
    #[error("the report interval is {found}; it must be {min} or more")]
    ReportInterval {
        /// What was asked for.
        found: Span,
        /// The shortest interval.
        min: Span,
    },
}

impl StreamConfig {
    /// A stream over bare UDP and IPv4.
    pub fn new(ssrc: u32, payload_type: u8, packet_size: Size, cname: impl Into<String>) -> Self {
        Self { ssrc, payload_type, packet_size, overhead: Size::ZERO, cname: cname.into() }
    }

    /// The longest canonical name, in bytes, that leaves a compound with SR, SDES and BYE within
    /// [`Transmit::MAX_HEAD`](crate::session::Transmit::MAX_HEAD).
    pub const MAX_CNAME: usize = 48;
    /// Ticks of the RTP timestamp per second, as is usual for video (RFC 3551, Sec. 5).
    pub const MEDIA_CLOCK_HZ: u32 = 90_000;
}

/// Makes the packets of one RTP stream: numbers, timestamps, counts.
#[derive(Clone, Debug)]
pub(super) struct Packetiser {
    config: StreamConfig,
    media: usize,
    next_sequence: u64,
    timestamp_offset: u32,
    packets: u32,
    octets: u32,
}

impl Packetiser {
    const LARGEST: Size = Size::from_bytes(65_535);

    /// A stream whose first sequence number and timestamp are drawn from `random` (RFC 3550, Sec. 5.1).
    pub(super) fn new(config: StreamConfig, random: &mut impl Rng) -> Result<Self, SessionError> {
        let header = RtpHeader { send_time: Some(NtpTime::from_bits(0)), ..RtpHeader::default() };
        let min = Size::IPV4_UDP + config.overhead + Size::from_bytes(header.encoded_len() as u64);
        let found = config.packet_size;
        if found < min || found > Self::LARGEST {
            return Err(SessionError::PacketSize { found, min, max: Self::LARGEST });
        }
        if !matches!(config.payload_type, 0..=63 | 96..=127) {
            return Err(SessionError::PayloadType { found: config.payload_type });
        }
        check_cname(&config.cname)?;
        // The upper half of the numbers stays free at first, so that a trace shows no wrap in its first seconds.
        let next_sequence = u64::from(random.next_u32() & 0x7FFF);
        let media = (found - min).as_bytes() as usize;
        Ok(Self { config, media, next_sequence, timestamp_offset: random.next_u32(), packets: 0, octets: 0 })
    }

    pub(super) const fn config(&self) -> &StreamConfig {
        &self.config
    }

    /// What a sender report says at `now`.
    pub(super) fn sender_info(&self, now: Instant<SenderClock>) -> SenderInfo {
        SenderInfo {
            ssrc: self.config.ssrc,
            ntp: NtpTime::from_instant(now),
            rtp_timestamp: self.timestamp(now),
            packet_count: self.packets,
            octet_count: self.octets,
        }
    }

    /// Puts a compound that any RTP tool understands into `outbox`: SR, SDES with CNAME, and BYE at the end.
    pub(super) fn send_compound(&self, now: Instant<SenderClock>, goodbye: bool, outbox: &mut Outbox) {
        let info = self.sender_info(now);
        outbox.whole(|out| {
            info.encode(&[], &[], out);
            rtcp::encode_cname(info.ssrc, &self.config.cname, out);
            if goodbye {
                rtcp::encode_goodbye(info.ssrc, out);
            }
        });
    }

    /// Size of the IP packet around a datagram.
    fn size_around(&self, datagram: usize) -> Size {
        Size::IPV4_UDP + self.config.overhead + Size::from_bytes(datagram as u64)
    }

    /// The RTP timestamp of a moment.
    fn timestamp(&self, at: Instant<SenderClock>) -> u32 {
        self.timestamp_offset.wrapping_add(Self::ticks(at))
    }

    /// Ticks of the media clock from its zero to a moment.
    fn ticks(at: Instant<SenderClock>) -> u32 {
        let (seconds, nanos) = (at.as_nanos() / 1_000_000_000, at.as_nanos() % 1_000_000_000);
        let hz = u64::from(StreamConfig::MEDIA_CLOCK_HZ);
        (seconds * hz + nanos * hz / 1_000_000_000) as u32
    }

    fn header(&self, now: Instant<SenderClock>) -> RtpHeader {
        RtpHeader {
            marker: false,
            payload_type: self.config.payload_type,
            sequence: self.next_sequence as u16,
            timestamp: self.timestamp(now),
            ssrc: self.config.ssrc,
            send_time: Some(NtpTime::from_instant(now)),
        }
    }

    /// Puts the next packet of generated media, which leaves at `now`, into `outbox`. Gives its size.
    pub(super) fn send(&mut self, now: Instant<SenderClock>, outbox: &mut Outbox) -> Size {
        outbox.media(self.header(now), self.media);
        self.on_sent(self.config.packet_size, self.media, outbox)
    }

    /// The same with what waits in `queue`, as much as fits; `None` where nothing does.
    pub(super) fn send_stream(
        &mut self,
        now: Instant<SenderClock>,
        queue: &mut PayloadQueue,
        outbox: &mut Outbox,
    ) -> Option<Size> {
        let length = queue.waiting().min(self.media);
        if length == 0 {
            return None;
        }
        let header = self.header(now);
        outbox.whole(|out| {
            header.encode(out);
            queue.take(length, out);
        });
        Some(self.on_sent(self.size_around(header.encoded_len() + length), length, outbox))
    }

    /// The same with the next packet of another program.
    pub(super) fn send_packet(
        &mut self,
        now: Instant<SenderClock>,
        queue: &mut PayloadQueue,
        outbox: &mut Outbox,
    ) -> Option<Size> {
        let (sequence, timestamp) = queue.next_header()?;
        // Counted on over the wraps, from wherever the other program began.
        let ahead = sequence.wrapping_sub(self.next_sequence as u16) as i16;
        self.next_sequence = self.next_sequence.saturating_add_signed(i64::from(ahead));
        self.timestamp_offset = timestamp.wrapping_sub(Self::ticks(now));
        let mut length = 0;
        outbox.whole(|out| {
            queue.take_packet(NtpTime::from_instant(now), out);
            length = out.len();
        });
        Some(self.on_sent(self.size_around(length), length, outbox))
    }

    fn on_sent(&mut self, size: Size, octets: usize, outbox: &mut Outbox) -> Size {
        outbox.event(Event::MediaSent { sequence: self.next_sequence, size });
        self.next_sequence += 1;
        self.packets = self.packets.wrapping_add(1);
        self.octets = self.octets.wrapping_add(octets as u32);
        size
    }
}

/// Refuses a canonical name that does not fit.
pub(super) fn check_cname(cname: &str) -> Result<(), SessionError> {
    let (found, max) = (cname.len(), StreamConfig::MAX_CNAME);
    if found > max { Err(SessionError::Cname { found, max }) } else { Ok(()) }
}
