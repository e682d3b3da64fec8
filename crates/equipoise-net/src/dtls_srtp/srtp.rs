use std::collections::HashMap;

use equipoise::measure::{Novelty, ReplayWindow};
use equipoise_session::DropReason;
use equipoise_session::wire::is_rtcp;
use rtc_srtp::context::Context;
use thiserror::Error;

use crate::secure::protection::{MOST_MEDIA, MOST_REPORTS, source_of};
use crate::secure::{Keys, Role};

/// Maximum number of sources (SSRCs) in each direction of an association: enough for several audio and video streams
/// with their repair streams.
pub const MAX_SOURCES: usize = 64;

/// Why a packet cannot be protected. Such a packet must not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ProtectError {
    /// There are no keys yet, or the association was closed.
    #[error("the association has no keys")]
    NotOpen,
    /// The packet is neither an RTP packet nor an RTCP packet.
    #[error("this is not an RTP or RTCP packet")]
    Malformed,
    /// The packet's sequence number was used with these keys, or may have been used. Two packets with the same number
    /// would reveal the XOR of their contents (RFC 3711, Sec. 9.1). With AES-GCM, the two packets would also reveal the
    /// authentication key.
    #[error(
        "packet {sequence} of source {ssrc:#010x} was protected before; a retransmission needs its own source (RFC 4588)"
    )]
    Repeated {
        /// The SSRC of the packet.
        ssrc: u32,
        /// The sequence number of the packet.
        sequence: u16,
    },
    /// The association already has the maximum number of sources, and the packet has a new source.
    #[error("an association has at most {MAX_SOURCES} sources")]
    Sources,
    /// The packet's source has sent the maximum number of packets with these keys (RFC 3711, Sec. 9.2).
    #[error("the keys may not protect more packets; open a new association")]
    Spent,
}

/// SRTP (RFC 3711) with the keys of one handshake.
///
/// Each source has its own context. The SRTP library creates state in a context for the source of every datagram, even
/// of a forged one. Therefore the first datagram of a new source is checked with a temporary context.
pub(super) struct Srtp {
    keys: Keys,
    role: Role,
    outward: HashMap<u32, Outward>,
    inward: HashMap<u32, Inward>,
}

/// The state for the packets that this endpoint sends with one SSRC.
struct Outward {
    context: Context,
    /// The sequence numbers that were already used.
    numbers: ReplayWindow,
    media: u64,
    reports: u32,
}

/// The state for the packets that this endpoint receives with one SSRC.
struct Inward {
    context: Context,
    /// The replay window of received sequence numbers. The replay window of the SRTP library is not used, because it
    /// starts at the first packet, even if this packet is forged.
    window: ReplayWindow,
}

impl Srtp {
    pub(super) fn new(keys: Keys, role: Role) -> Self {
        Self { keys, role, outward: HashMap::new(), inward: HashMap::new() }
    }

    /// The keys, which tests compare with the peer's keys.
    #[cfg(test)]
    pub(super) const fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Number of sources of the peer that have a context.
    #[cfg(test)]
    pub(super) fn sources(&self) -> usize {
        self.inward.len()
    }

    pub(super) fn protect(&mut self, packet: &[u8], out: &mut Vec<u8>) -> Result<(), ProtectError> {
        out.clear();
        let ssrc = source_of(packet).ok_or(ProtectError::Malformed)?;
        let Self { keys, role, outward, .. } = self;
        let is_full = outward.len() >= MAX_SOURCES;
        let source = match outward.get_mut(&ssrc) {
            Some(source) => source,
            None if is_full => return Err(ProtectError::Sources),
            None => outward.entry(ssrc).or_insert_with(|| Outward::new(keys.context(*role))),
        };
        if is_rtcp(packet) { source.report(packet, out) } else { source.media(ssrc, packet, out) }
    }

    pub(super) fn unprotect(&mut self, datagram: &[u8], out: &mut Vec<u8>) -> Result<(), DropReason> {
        out.clear();
        let ssrc = source_of(datagram).ok_or(DropReason::Malformed)?;
        if let Some(source) = self.inward.get_mut(&ssrc) {
            return source.open(datagram, out);
        }
        let mut source = Inward { context: self.keys.context(self.role.other()), window: ReplayWindow::default() };
        source.open(datagram, out)?;
        if self.inward.len() >= MAX_SOURCES {
            out.clear();
            return Err(DropReason::Full);
        }
        self.inward.insert(ssrc, source);
        Ok(())
    }
}

/// The sequence number of an RTP packet (RFC 3550, Sec. 5.1); `None` if the packet is too short.
fn sequence_of(packet: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(packet.get(2..4)?.try_into().ok()?))
}

impl Outward {
    fn new(context: Context) -> Self {
        Self { context, numbers: ReplayWindow::default(), media: 0, reports: 0 }
    }

    fn report(&mut self, report: &[u8], out: &mut Vec<u8>) -> Result<(), ProtectError> {
        if self.reports >= MOST_REPORTS {
            return Err(ProtectError::Spent);
        }
        self.reports += 1;
        out.extend_from_slice(&self.context.encrypt_rtcp(report).map_err(|_| ProtectError::Malformed)?);
        Ok(())
    }

    fn media(&mut self, ssrc: u32, packet: &[u8], out: &mut Vec<u8>) -> Result<(), ProtectError> {
        let sequence = sequence_of(packet).ok_or(ProtectError::Malformed)?;
        if self.numbers.novelty(sequence) != Novelty::New {
            return Err(ProtectError::Repeated { ssrc, sequence });
        }
        if self.media >= MOST_MEDIA {
            return Err(ProtectError::Spent);
        }
        // The sequence number counts as used even if the encryption fails.
        self.media += 1;
        self.numbers.mark(sequence);
        out.extend_from_slice(&self.context.encrypt_rtp(packet).map_err(|_| ProtectError::Malformed)?);
        Ok(())
    }
}

impl Inward {
    fn open(&mut self, datagram: &[u8], out: &mut Vec<u8>) -> Result<(), DropReason> {
        if is_rtcp(datagram) {
            let report = self.context.decrypt_rtcp(datagram).map_err(|_| DropReason::Forged)?;
            out.extend_from_slice(&report);
            return Ok(());
        }
        let sequence = sequence_of(datagram).ok_or(DropReason::Malformed)?;
        match self.window.novelty(sequence) {
            Novelty::New => {}
            Novelty::Repeated => return Err(DropReason::Duplicate),
            Novelty::Old => return Err(DropReason::Late),
        }
        let packet = self.context.decrypt_rtp(datagram).map_err(|_| DropReason::Forged)?;
        self.window.mark(sequence);
        out.extend_from_slice(&packet);
        Ok(())
    }
}
