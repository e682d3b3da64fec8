//! A sender's store of recent packets, for retransmission.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use equipoise::units::{Instant, SenderClock, Span};

/// How a sender answers requests for missing packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repeating {
    /// Maximum number of bytes of recent packets that are stored.
    pub most: usize,
    /// How long a packet is stored.
    pub age: Span,
    /// Maximum amount of retransmitted data, as a share of the data sent for the first time: 0 to 1. In addition to
    /// this share, each session may retransmit 20 kB in total.
    pub share: f64,
}

impl Default for Repeating {
    /// Stores at most 256 KiB, for 500 ms. Our choice: 500 ms is longer than a receiver waits, and 256 KiB are about
    /// 500 ms of media at 4 Mbit/s. Retransmits at most an eighth of the data sent for the first time. A loss above an
    /// eighth is a sign of congestion, and more retransmissions would increase the congestion.
    fn default() -> Self {
        Self { most: 256 << 10, age: Span::from_millis(500), share: 0.125 }
    }
}

/// Maximum number of retransmissions of the same packet.
const TIMES: u8 = 3;
/// Minimum time between two transmissions of the same packet. Our choice: a request that the network duplicated should
/// not cause a second retransmission.
const APART: Span = Span::from_millis(10);
/// Initial and maximum value of `credit`, the number of bytes that may be retransmitted now. Our choice: enough for a
/// burst of about 20 lost packets of 1000 bytes.
const SAVED: f64 = 20_000.0;
/// The recent packets of a sender, and which of them must be retransmitted.
#[derive(Debug)]
pub(crate) struct RepeatQueue {
    config: Repeating,
    /// The stored packets, by increasing sequence number.
    kept: VecDeque<Kept>,
    bytes: usize,
    wanted: VecDeque<u64>,
    /// Number of bytes that may be retransmitted now.
    credit: f64,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Kept {
    sequence: u64,
    /// `sent` is the time when the packet was first sent, `last` the time when it was last sent.
    sent: Instant<SenderClock>,
    last: Instant<SenderClock>,
    times: u8,
    is_wanted: bool,
    bytes: Vec<u8>,
}

impl RepeatQueue {
    /// Maximum number of stored packets, however short they are.
    pub(crate) const MOST_PACKETS: usize = 4096;
    /// Maximum number of buffers kept for reuse.
    const SPARE: usize = 64;

    pub(crate) fn new(config: Repeating) -> Self {
        // The share `NaN` counts as 0, and a share above 1 counts as 1.
        let share = if config.share.is_nan() { 0.0 } else { config.share.clamp(0.0, 1.0) };
        let config = Repeating { share, ..config };
        Self { config, kept: VecDeque::new(), bytes: 0, wanted: VecDeque::new(), credit: SAVED, spare: Vec::new() }
    }

    /// Stores a packet that is sent for the first time; `plain` is the packet without our extensions.
    pub(crate) fn keep(&mut self, now: Instant<SenderClock>, sequence: u64, plain: &[u8]) {
        self.credit = (self.credit + plain.len() as f64 * self.config.share).min(SAVED);
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(plain);
        self.bytes += bytes.len();
        self.kept.push_back(Kept { sequence, sent: now, last: now, times: 0, is_wanted: false, bytes });
        let is_over = |queue: &Self| queue.bytes > queue.config.most || queue.kept.len() > Self::MOST_PACKETS;
        while is_over(self) || self.kept.front().is_some_and(|oldest| now - oldest.sent > self.config.age) {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.bytes -= oldest.bytes.len();
            if self.spare.len() < Self::SPARE {
                self.spare.push(oldest.bytes);
            }
        }
    }

    /// Records a request for the packet whose sequence number has the lower 16 bits `number`.
    pub(crate) fn want(&mut self, now: Instant<SenderClock>, number: u16) {
        let Some(last) = self.kept.back() else { return };
        let back = (last.sequence as u16).wrapping_sub(number);
        let Some(sequence) = last.sequence.checked_sub(u64::from(back)) else { return };
        let Some(kept) = self.find(sequence) else { return };
        if !kept.is_wanted && kept.times < TIMES && now - kept.last >= APART {
            kept.is_wanted = true;
            self.wanted.push_back(sequence);
        }
    }

    /// Removes requests, the oldest first. Stops at the first request for a packet that is still stored and is not too
    /// old at `now`.
    pub(crate) fn expire(&mut self, now: Instant<SenderClock>) {
        while let Some(sequence) = self.wanted.front().copied() {
            let age = self.config.age;
            if self.find(sequence).is_some_and(|kept| now - kept.sent <= age) {
                break;
            }
            self.wanted.pop_front();
        }
    }

    /// Whether a packet must be retransmitted and `credit` allows it.
    pub(crate) fn is_ready(&self) -> bool {
        !self.wanted.is_empty() && self.credit > 0.0
    }

    /// Writes the next packet to be retransmitted to `plain`, and returns its sequence number.
    pub(crate) fn take(&mut self, now: Instant<SenderClock>, plain: &mut Vec<u8>) -> Option<u64> {
        if !self.is_ready() {
            return None;
        }
        let sequence = self.wanted.pop_front()?;
        let kept = self.find(sequence)?;
        (kept.last, kept.times, kept.is_wanted) = (now, kept.times + 1, false);
        plain.clear();
        plain.extend_from_slice(&kept.bytes);
        self.credit -= plain.len() as f64;
        Some(sequence)
    }

    fn find(&mut self, sequence: u64) -> Option<&mut Kept> {
        let at = self.kept.partition_point(|kept| kept.sequence < sequence);
        self.kept.get_mut(at).filter(|kept| kept.sequence == sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Instant<SenderClock> {
        Instant::ZERO + Span::from_millis(millis)
    }

    fn queue(packets: u64) -> RepeatQueue {
        let mut queue = RepeatQueue::new(Repeating { most: 10_000, ..Repeating::default() });
        (0..packets).for_each(|sequence| queue.keep(at(sequence as i64), 65_530 + sequence, &[sequence as u8; 1000]));
        queue
    }

    fn taken(queue: &mut RepeatQueue, millis: i64) -> Option<(u64, u8)> {
        let mut plain = Vec::new();
        queue.take(at(millis), &mut plain).map(|sequence| (sequence, plain[0]))
    }

    #[test]
    fn what_is_wanted_is_sent_again_whole_over_the_wrap_of_the_numbers() {
        let mut queue = queue(10);
        queue.want(at(20), 65_531u64 as u16);
        queue.want(at(20), 65_537u64 as u16);
        queue.want(at(20), 65_537u64 as u16);
        assert_eq!([taken(&mut queue, 20), taken(&mut queue, 20)], [Some((65_531, 1)), Some((65_537, 7))]);
        assert_eq!(taken(&mut queue, 20), None, "it was asked for twice and is wanted once");
    }

    #[test]
    fn what_is_unknown_too_old_or_was_sent_often_enough_is_not_sent_again() {
        let mut queue = queue(20);
        queue.want(at(20), 65_530u64 as u16);
        queue.want(at(20), 30_000);
        assert_eq!(taken(&mut queue, 20), None, "10 kB hold ten packets");
        for millis in [30, 35, 40, 50, 60] {
            queue.want(at(millis), 65_545u64 as u16);
            taken(&mut queue, millis);
        }
        assert_eq!(queue.find(65_545).map(|kept| (kept.times, kept.is_wanted)), Some((3, false)));
        queue.want(at(700), 65_544u64 as u16);
        queue.expire(at(700));
        assert!(!queue.is_ready());
    }

    /// The receiver requests every packet again. If this test fails, retransmissions exceed their share of the data
    /// sent for the first time.
    #[test]
    fn no_more_than_its_share_is_sent_again() {
        let mut queue = RepeatQueue::new(Repeating::default());
        let (mut first, mut again) = (0, 0);
        for sequence in 0..4000u64 {
            let now = sequence as i64;
            queue.keep(at(now), sequence, &[0; 1000]);
            first += 1;
            if sequence > 10 {
                queue.want(at(now), (sequence - 10) as u16);
            }
            queue.expire(at(now));
            again += usize::from(taken(&mut queue, now).is_some());
        }
        let saved = (SAVED / 1000.0) as usize;
        assert!((first / 8 - 1..=first / 8 + saved + 1).contains(&again), "{again} of {first}");
    }
}
