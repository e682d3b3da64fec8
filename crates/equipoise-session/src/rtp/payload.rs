use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::DropReason;
use crate::wire::relay::Stamp;
use crate::wire::rtp::Subflow;
use crate::wire::{NtpTime, relay};
use equipoise::measure::{Novelty, ReplayWindow};
use equipoise::units::{Instant, Rate, SenderClock, Span};

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
    /// How long another program's packets may wait.
    patience: Span,
    /// Packets that waited for longer, since this was asked last.
    expired: u64,
    /// Numbers that another program has used.
    numbers: ReplayWindow,
    /// Where a packet is stamped for a trial.
    scratch: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    /// When its first byte came.
    came: Instant<SenderClock>,
    length: usize,
    /// Wanted on two paths.
    twice: bool,
}

impl PayloadQueue {
    /// Bytes that may wait in any case, to bound memory.
    pub(crate) const MOST: usize = 256 << 10;
    /// Pieces that may wait.
    const MOST_PIECES: usize = 1024;
    /// Bytes of a stream that may wait however low the rate is.
    const LEAST: usize = 4 << 10;
    /// Bytes of a stream that came within so much time count as one piece.
    const GRAIN: Span = Span::from_millis(1);

    /// An empty queue, whose packets will be stamped with their sending time and with a `subflow` like this, and given up when
    /// they have waited for longer than `patience`.
    pub(crate) fn new(subflow: Option<Subflow>, patience: Span) -> Self {
        Self {
            bytes: VecDeque::new(),
            pieces: VecDeque::new(),
            subflow,
            patience,
            expired: 0,
            numbers: ReplayWindow::default(),
            scratch: Vec::new(),
        }
    }

    /// Bytes that it would take now at `rate`: of a stream no more than what leaves within the patience, which holds the
    /// application back; of packets any, as they push out those that have waited longest.
    pub(crate) fn room(&self, payload: Payload, rate: Rate) -> usize {
        if payload == Payload::Rtp {
            return Self::MOST;
        }
        let timely = rate.as_bps_f64() / 8.0 * self.patience.as_secs_f64();
        // A packet at least, or nothing would ever leave at a low rate.
        let most = Self::MOST.min((timely as usize).max(Self::LEAST));
        if self.pieces.len() >= Self::MOST_PIECES { 0 } else { most.saturating_sub(self.bytes.len()) }
    }

    /// Gives up packets that have waited for longer than the patience at `now`.
    pub(crate) fn expire(&mut self, now: Instant<SenderClock>, payload: Payload) {
        while payload == Payload::Rtp && self.pieces.front().is_some_and(|piece| now - piece.came > self.patience) {
            self.pop_oldest();
        }
    }

    fn pop_oldest(&mut self) {
        if let Some(oldest) = self.pieces.pop_front() {
            self.bytes.drain(..oldest.length.min(self.bytes.len()));
            self.expired += 1;
        }
    }

    /// Packets that were given up since this was asked last.
    pub(crate) const fn take_expired(&mut self) -> u64 {
        core::mem::replace(&mut self.expired, 0)
    }

    /// How long what is next has waited at `now`.
    pub(crate) fn waited(&self, now: Instant<SenderClock>) -> Span {
        self.pieces.front().map_or(Span::ZERO, |piece| now - piece.came)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.bytes.len()
    }

    /// Whether what is next is wanted on two paths.
    pub(crate) fn is_twice(&self) -> bool {
        self.pieces.front().is_some_and(|piece| piece.twice)
    }

    /// Timestamp of the packet that is next, where it is one; `None` where nothing waits.
    pub(crate) fn next_timestamp(&self) -> Option<u32> {
        self.pieces.front()?;
        let byte = |at: usize| u32::from(self.bytes.get(at).copied().unwrap_or(0));
        Some((4..8).fold(0, |word, at| word << 8 | byte(at)))
    }

    /// Puts what an application gives behind what waits: bytes of its stream, or a packet of the source `ssrc`.
    ///
    /// # Errors
    /// [`DropReason::Stray`] where the session makes its own payload; [`DropReason::Malformed`] where it is no RTP packet or its
    /// header has no room for what it is stamped with; [`DropReason::Foreign`] for another source; [`DropReason::Duplicate`] where
    /// a packet of its number came before; [`DropReason::Full`] where
    /// there is no room for all of it.
    pub(crate) fn offer(
        &mut self,
        now: Instant<SenderClock>,
        (bytes, twice): (&[u8], bool),
        payload: Payload,
        (ssrc, rate): (u32, Rate),
    ) -> Result<(), DropReason> {
        let number = match payload {
            Payload::Generated => return Err(DropReason::Stray),
            Payload::Stream => None,
            Payload::Rtp => Some(self.number_of(bytes, ssrc)?),
        };
        let is_full =
            |queue: &Self| queue.bytes.len() + bytes.len() > Self::MOST || queue.pieces.len() >= Self::MOST_PIECES;
        while payload == Payload::Rtp && !self.pieces.is_empty() && is_full(self) {
            self.pop_oldest();
        }
        if is_full(self) || bytes.len() > self.room(payload, rate) {
            return Err(DropReason::Full);
        }
        self.bytes.extend(bytes);
        let length = bytes.len();
        let goes_on = |last: &Piece| payload == Payload::Stream && last.twice == twice && now - last.came < Self::GRAIN;
        match self.pieces.back_mut() {
            Some(last) if goes_on(last) => last.length += length,
            _ => self.pieces.push_back(Piece { came: now, length, twice }),
        }
        if let Some(number) = number {
            self.numbers.mark(number);
        }
        Ok(())
    }

    /// What comes is another program's, whose numbers say nothing of those before.
    pub(crate) fn forget_numbers(&mut self) {
        self.numbers = ReplayWindow::default();
    }

    /// The number of another program's packet, which has not come before.
    fn number_of(&mut self, packet: &[u8], ssrc: u32) -> Result<u16, DropReason> {
        let &[_, _, high, low, _, _, _, _, s0, s1, s2, s3, ..] = packet else { return Err(DropReason::Malformed) };
        let number = u16::from_be_bytes([high, low]);
        self.scratch.clear();
        // When it is sent again, of another source than the session's, it takes the most room.
        let stamp = Stamp {
            ssrc: !ssrc,
            number: !number,
            time: NtpTime::from_bits(0),
            subflow: self.subflow,
            is_repetition: true,
        };
        relay::stamp(packet, stamp, &mut self.scratch).map_err(|_| DropReason::Malformed)?;
        if u32::from_be_bytes([s0, s1, s2, s3]) != ssrc {
            return Err(DropReason::Foreign);
        }
        match self.numbers.novelty(number) {
            Novelty::Repeated => return Err(DropReason::Duplicate),
            // A program that was started again draws another number (RFC 3550, Sec. 5.1).
            Novelty::Old => self.numbers = ReplayWindow::default(),
            Novelty::New => {}
        }
        Ok(number)
    }

    /// Takes the first packet and appends it to `out`.
    pub(crate) fn take_packet(&mut self, out: &mut Vec<u8>) {
        if let Some(piece) = self.pieces.pop_front() {
            out.extend(self.bytes.drain(..piece.length.min(self.bytes.len())));
        }
    }

    /// Takes the first bytes of a stream, `most` of them or up to the end of what is sent alike, and appends them to `out`.
    pub(crate) fn take(&mut self, most: usize, out: &mut Vec<u8>) {
        let twice = self.is_twice();
        let mut left = most;
        while let Some(piece) = self.pieces.front_mut().filter(|piece| left > 0 && piece.twice == twice) {
            let length = left.min(piece.length);
            left -= length;
            piece.length -= length;
            if piece.length == 0 {
                self.pieces.pop_front();
            }
            out.extend(self.bytes.drain(..length.min(self.bytes.len())));
        }
    }
}
