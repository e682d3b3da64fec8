use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::session::Ignored;
use crate::wire::NtpTime;
use crate::wire::relay;

/// What a session carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Payload {
    /// Zeros, as many as the rate allows: a load to measure with.
    #[default]
    Generated,
    /// A stream of bytes, cut into packets as the rate allows. The receiver gives them out in order.
    Stream,
    /// Another program's RTP packets, each as it is but for its sending time.
    Rtp,
}

/// Payload that waits to be sent, oldest first.
#[derive(Debug, Default)]
pub(super) struct PayloadQueue {
    bytes: VecDeque<u8>,
    /// Lengths of the packets, where it holds packets.
    packets: VecDeque<usize>,
    /// Where a packet is stamped for a trial.
    scratch: Vec<u8>,
}

impl PayloadQueue {
    /// Bytes that may wait. Ours: a tenth of a second at 20 Mbit/s; what waits longer is no longer live.
    pub(super) const MOST: usize = 256 << 10;
    /// Packets that may wait.
    const MOST_PACKETS: usize = 1024;

    /// Bytes that it would take now.
    pub(super) fn room(&self) -> usize {
        if self.packets.len() >= Self::MOST_PACKETS { 0 } else { Self::MOST.saturating_sub(self.bytes.len()) }
    }

    pub(super) fn waiting(&self) -> usize {
        self.bytes.len()
    }

    /// Sequence number and timestamp of the packet that is next.
    pub(super) fn next_header(&self) -> Option<(u16, u32)> {
        self.packets.front()?;
        let byte = |at: usize| self.bytes.get(at).copied().map(u32::from);
        let word = |at: usize| Some(byte(at)? << 24 | byte(at + 1)? << 16 | byte(at + 2)? << 8 | byte(at + 3)?);
        Some(((word(0)? & 0xFFFF) as u16, word(4)?))
    }

    /// Puts payload behind what waits.
    ///
    /// # Errors
    /// [`Ignored::Full`] where there is no room for all of it.
    pub(super) fn push(&mut self, payload: &[u8]) -> Result<(), Ignored> {
        if payload.len() > self.room() {
            return Err(Ignored::Full);
        }
        self.bytes.extend(payload);
        Ok(())
    }

    /// Puts a packet of the source `ssrc` behind what waits.
    ///
    /// # Errors
    /// [`Ignored::Malformed`] where it is no RTP packet or its header has no room for a sending time; [`Ignored::Foreign`]
    /// for another source; [`Ignored::Full`] where there is no room for it.
    pub(super) fn push_packet(&mut self, packet: &[u8], ssrc: u32) -> Result<(), Ignored> {
        self.scratch.clear();
        relay::stamp(packet, NtpTime::from_bits(0), &mut self.scratch).map_err(|_| Ignored::Malformed)?;
        if packet.get(8..12) != Some(ssrc.to_be_bytes().as_slice()) {
            return Err(Ignored::Foreign);
        }
        self.push(packet)?;
        self.packets.push_back(packet.len());
        Ok(())
    }

    /// Takes the first `length` bytes and appends them to `out`.
    pub(super) fn take(&mut self, length: usize, out: &mut Vec<u8>) {
        out.extend(self.bytes.drain(..length.min(self.bytes.len())));
    }

    /// Takes the packet that is next and appends it to `out` with its sending time.
    pub(super) fn take_packet(&mut self, time: NtpTime, out: &mut Vec<u8>) {
        let Some(length) = self.packets.pop_front() else { return };
        let length = length.min(self.bytes.len());
        let packet = &self.bytes.make_contiguous()[..length];
        // It had room for the time when it came in.
        if relay::stamp(packet, time, out).is_err() {
            out.extend_from_slice(packet);
        }
        self.bytes.drain(..length);
    }
}
