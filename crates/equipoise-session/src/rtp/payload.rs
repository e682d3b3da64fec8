use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::DropReason;
use crate::wire::relay::Stamp;
use crate::wire::rtp::{MARKER, Subflow};
use crate::wire::{NtpTime, relay};
use equipoise::control::QueuedFrame;
use equipoise::measure::{Novelty, ReplayWindow};
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};

/// The kind of payload that a session carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Payload {
    /// Zeros that the session generates as load for measurements. By default, the session generates as many zeros as
    /// the rate allows.
    #[default]
    Generated,
    /// A byte stream, cut into packets as the rate allows. The receiver delivers it in order.
    Stream,
    /// RTP packets of another program. The session adds the sending time to each packet, and the receiver delivers the
    /// original packet.
    Rtp,
}

/// Queued payload, oldest first.
#[derive(Debug)]
pub(crate) struct PayloadQueue {
    bytes: VecDeque<u8>,
    /// The pieces of `bytes`. An RTP packet of another program is a piece. In a stream, the bytes that were queued
    /// within 1 ms (`GRAIN`) are a piece. The bytes of a piece are either all sent on two paths, or all sent once.
    pieces: VecDeque<Piece>,
    /// Set if packets are sent with a sub-flow number in addition to their sending time.
    subflow: Option<Subflow>,
    /// Maximum queueing time of another program's packets. For a stream, the queue accepts about as many bytes as the
    /// session can send in this time at the current rate.
    patience: Span,
    /// Number of packets that were dropped since the last call of `take_expired`, because they waited too long or the
    /// queue was full.
    expired: u64,
    /// Sequence numbers of the RTP packets of another program that were passed to this queue.
    numbers: ReplayWindow,
    /// Buffer for the check that the header of a packet has room for our extensions.
    scratch: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    /// When the first byte of the piece was queued.
    came: Instant<SenderClock>,
    length: usize,
    /// Whether to send the piece on two paths.
    twice: bool,
}

impl PayloadQueue {
    /// Maximum number of queued bytes, which bounds memory.
    pub(crate) const MOST: usize = 256 << 10;
    /// Maximum number of queued pieces.
    const MOST_PIECES: usize = 1024;
    /// Number of bytes of a stream that may be queued even at the lowest rate.
    const LEAST: usize = 4 << 10;
    /// All bytes of a stream that the application passes during this time form one piece.
    const GRAIN: Span = Span::from_millis(1);

    /// Creates an empty queue. Each packet from the queue will carry its sending time and, if `subflow` is set, a
    /// sub-flow number. RTP packets that have been queued for longer than `patience` are dropped.
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

    /// Returns the number of bytes that the queue would accept now. A stream may queue about as much as `rate` sends in
    /// the time `self.patience`; then the application has to wait. RTP packets are always accepted, because they
    /// replace the oldest packets.
    pub(crate) fn room(&self, payload: Payload, rate: Rate) -> usize {
        if payload == Payload::Rtp {
            return Self::MOST;
        }
        let timely = rate.as_bps_f64() / 8.0 * self.patience.as_secs_f64();
        // There is room for at least one packet, because otherwise nothing would be sent at a low rate.
        let most = Self::MOST.min((timely as usize).max(Self::LEAST));
        if self.pieces.len() >= Self::MOST_PIECES { 0 } else { most.saturating_sub(self.bytes.len()) }
    }

    /// Drops RTP packets that, at `now`, have been queued for longer than the patience.
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

    /// Returns the number of packets dropped since the last call.
    pub(crate) const fn take_expired(&mut self) -> u64 {
        core::mem::replace(&mut self.expired, 0)
    }

    /// Returns how long, at `now`, the next payload has been queued.
    pub(crate) fn waited(&self, now: Instant<SenderClock>) -> Span {
        self.pieces.front().map_or(Span::ZERO, |piece| now - piece.came)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.bytes.len()
    }

    /// Whether to send the next payload on two paths.
    pub(crate) fn is_twice(&self) -> bool {
        self.pieces.front().is_some_and(|piece| piece.twice)
    }

    /// Returns the RTP timestamp of the next packet; `None` if nothing is queued. For a stream, the result has no
    /// meaning.
    pub(crate) fn next_timestamp(&self) -> Option<u32> {
        self.pieces.front()?;
        Some(self.timestamp_at(0))
    }

    /// Returns the RTP timestamp of the packet that begins at byte `start` of the queue.
    fn timestamp_at(&self, start: usize) -> u32 {
        let byte = |at: usize| u32::from(self.bytes.get(start + at).copied().unwrap_or(0));
        (4..8).fold(0, |word, at| word << 8 | byte(at))
    }

    /// Returns the description of the frame that ends with the last queued RTP packet. The frame consists of the
    /// packets at the end of the queue that have the timestamp of this last packet. `further` is the number of bytes in
    /// other queues. These bytes are sent before the frame.
    pub(crate) fn last_frame(&self, now: Instant<SenderClock>, further: usize) -> QueuedFrame {
        let (mut start, mut count, mut timestamp) = (self.bytes.len(), 0, None);
        for piece in self.pieces.iter().rev() {
            let begins = start.saturating_sub(piece.length);
            if *timestamp.get_or_insert(self.timestamp_at(begins)) != self.timestamp_at(begins) {
                break;
            }
            (start, count) = (begins, count + 1);
        }
        let waited = if self.pieces.len() > count { self.waited(now) } else { Span::ZERO };
        let bytes = |count: usize| Size::from_bytes(count as u64);
        QueuedFrame::new(bytes(self.bytes.len() - start), bytes(start.saturating_add(further)), waited)
    }

    /// Queues payload from the application: bytes of the application's stream, or an RTP packet of the source `ssrc`.
    ///
    /// # Errors
    /// [`DropReason::Stray`] if the session generates its own payload; [`DropReason::Malformed`] if the payload is not
    /// an RTP packet or its header cannot take our extensions; [`DropReason::Foreign`] if the packet has another
    /// source; [`DropReason::Duplicate`] if the packet's number was used before; [`DropReason::Full`] if there is no
    /// room for all of the payload.
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

    /// Forgets the sequence numbers used so far, because the next packets come from another program.
    pub(crate) fn forget_numbers(&mut self) {
        self.numbers = ReplayWindow::default();
    }

    /// Returns the sequence number of another program's packet. The number must be new.
    fn number_of(&mut self, packet: &[u8], ssrc: u32) -> Result<u16, DropReason> {
        let &[_, _, high, low, _, _, _, _, s0, s1, s2, s3, ..] = packet else { return Err(DropReason::Malformed) };
        let number = u16::from_be_bytes([high, low]);
        self.scratch.clear();
        // The check uses the case that needs the most room in the header: a retransmission with an SSRC and a sequence
        // number that differ from those in `packet`.
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
            // A number that is far below the highest one shows that the program restarted and chose a new first number
            // (RFC 3550, Sec. 5.1).
            Novelty::Old => self.numbers = ReplayWindow::default(),
            Novelty::New => {}
        }
        Ok(number)
    }

    /// Removes the first packet and appends it to `out`.
    pub(crate) fn take_packet(&mut self, out: &mut Vec<u8>) {
        if let Some(piece) = self.pieces.pop_front() {
            out.extend(self.bytes.drain(..piece.length.min(self.bytes.len())));
        }
    }

    /// Removes up to `most` bytes of a stream and appends them to `out`. The removed bytes are either all sent once, on
    /// one path, or all sent twice, on two paths.
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

/// Whether an RTP packet has the marker bit: for video, whether it is the last packet of a frame (RFC 3551, Sec. 5).
pub(crate) fn ends_frame(packet: &[u8]) -> bool {
    packet.get(1).is_some_and(|second| second & MARKER != 0)
}
