use alloc::string::String;

use rand_core::Rng;
use thiserror::Error;

use crate::session::Event;
use crate::session::rtp::outbox::Outbox;
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
    /// Size of every IPv4 packet, headers included.
    pub packet_size: Size,
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
        let min = Size::IPV4_UDP + Size::from_bytes(header.encoded_len() as u64);
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
        outbox.control(|out| {
            info.encode(&[], &[], out);
            rtcp::encode_cname(info.ssrc, &self.config.cname, out);
            if goodbye {
                rtcp::encode_goodbye(info.ssrc, out);
            }
        });
    }

    /// The RTP timestamp of a moment.
    fn timestamp(&self, at: Instant<SenderClock>) -> u32 {
        let (seconds, nanos) = (at.as_nanos() / 1_000_000_000, at.as_nanos() % 1_000_000_000);
        let hz = u64::from(StreamConfig::MEDIA_CLOCK_HZ);
        self.timestamp_offset.wrapping_add((seconds * hz + nanos * hz / 1_000_000_000) as u32)
    }

    /// Puts the next packet, which leaves at `now`, into `outbox`.
    pub(super) fn send(&mut self, now: Instant<SenderClock>, outbox: &mut Outbox) {
        let header = RtpHeader {
            marker: false,
            payload_type: self.config.payload_type,
            sequence: self.next_sequence as u16,
            timestamp: self.timestamp(now),
            ssrc: self.config.ssrc,
            send_time: Some(NtpTime::from_instant(now)),
        };
        outbox.media(header, self.media);
        outbox.event(Event::MediaSent { sequence: self.next_sequence, size: self.config.packet_size });
        self.next_sequence += 1;
        self.packets = self.packets.wrapping_add(1);
        self.octets = self.octets.wrapping_add(self.media as u32);
    }
}

/// Refuses a canonical name that does not fit.
pub(super) fn check_cname(cname: &str) -> Result<(), SessionError> {
    let (found, max) = (cname.len(), StreamConfig::MAX_CNAME);
    if found > max { Err(SessionError::Cname { found, max }) } else { Ok(()) }
}
