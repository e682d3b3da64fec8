use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::DropReason;
use crate::wire::rtp::Subflow;
use crate::wire::{NtpTime, relay};

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
#[derive(Debug)]
pub(crate) struct PayloadQueue {
    bytes: VecDeque<u8>,
    /// Packets, or runs of a stream that are sent alike.
    pieces: VecDeque<Piece>,
    /// What packets will be stamped with, beside their sending time.
    subflow: Option<Subflow>,
    /// Where a packet is stamped for a trial.
    scratch: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    length: usize,
    /// Wanted on two paths.
    twice: bool,
}

impl PayloadQueue {
    /// Bytes that may wait. Ours: a tenth of a second at 20 Mbit/s; what waits longer is no longer live.
    pub(crate) const MOST: usize = 256 << 10;
    /// Packets that may wait.
    const MOST_PIECES: usize = 1024;

    /// An empty queue, whose packets will be stamped with their sending time and with a `subflow` like this.
    pub(crate) const fn new(subflow: Option<Subflow>) -> Self {
        Self { bytes: VecDeque::new(), pieces: VecDeque::new(), subflow, scratch: Vec::new() }
    }

    /// Bytes that it would take now.
    pub(crate) fn room(&self) -> usize {
        if self.pieces.len() >= Self::MOST_PIECES { 0 } else { Self::MOST.saturating_sub(self.bytes.len()) }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.bytes.len()
    }

    /// Whether what is next is wanted on two paths.
    pub(crate) fn is_twice(&self) -> bool {
        self.pieces.front().is_some_and(|piece| piece.twice)
    }

    /// Sequence number and timestamp of the packet that is next, where it is one; `None` where nothing waits.
    pub(crate) fn next_header(&self) -> Option<(u16, u32)> {
        self.pieces.front()?;
        let byte = |at: usize| u32::from(self.bytes.get(at).copied().unwrap_or(0));
        let word = |at: usize| byte(at) << 24 | byte(at + 1) << 16 | byte(at + 2) << 8 | byte(at + 3);
        Some(((word(0) & 0xFFFF) as u16, word(4)))
    }

    /// Puts what an application gives behind what waits: bytes of its stream, or a packet of the source `ssrc`.
    ///
    /// # Errors
    /// [`DropReason::Stray`] where the session makes its own payload; [`DropReason::Malformed`] where it is no RTP packet or its
    /// header has no room for what it is stamped with; [`DropReason::Foreign`] for another source; [`DropReason::Full`] where
    /// there is no room for all of it.
    pub(crate) fn offer(&mut self, bytes: &[u8], twice: bool, payload: Payload, ssrc: u32) -> Result<(), DropReason> {
        match payload {
            Payload::Generated => return Err(DropReason::Stray),
            Payload::Stream => {}
            Payload::Rtp => {
                self.scratch.clear();
                relay::stamp(bytes, NtpTime::from_bits(0), self.subflow, &mut self.scratch)
                    .map_err(|_| DropReason::Malformed)?;
                if bytes.get(8..12) != Some(ssrc.to_be_bytes().as_slice()) {
                    return Err(DropReason::Foreign);
                }
            }
        }
        if bytes.len() > self.room() {
            return Err(DropReason::Full);
        }
        self.bytes.extend(bytes);
        let length = bytes.len();
        match self.pieces.back_mut() {
            Some(last) if payload == Payload::Stream && last.twice == twice => last.length += length,
            _ => self.pieces.push_back(Piece { length, twice }),
        }
        Ok(())
    }

    /// Takes the first bytes, `most` of them or up to the end of what is sent alike, and appends them to `out`.
    pub(crate) fn take(&mut self, most: usize, out: &mut Vec<u8>) {
        let Some(piece) = self.pieces.front_mut() else { return };
        let length = most.min(piece.length);
        piece.length -= length;
        if piece.length == 0 {
            self.pieces.pop_front();
        }
        out.extend(self.bytes.drain(..length.min(self.bytes.len())));
    }
}
