//! Two TCP hosts, and a path between them with random loss, delay and duplication.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::tcp::{Receiver, ReceiverConfig};

/// The faults of a path. Probabilities are in parts of 1000.
#[derive(Clone, Copy, Debug)]
pub(super) struct Faults {
    pub(super) data_lost: u64,
    pub(super) acks_lost: u64,
    pub(super) doubled: u64,
    /// Maximum random delay of each segment in addition to `DELAY`, in milliseconds. The random delay causes
    /// reordering.
    pub(super) jitter: u64,
    pub(super) seed: u64,
}

pub(super) const DELAY: Span = Span::from_millis(50);

pub(super) struct Path {
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) now: Time,
    faults: Faults,
    /// Segments in flight, ordered by arrival time and then by order of departure. The flag is true if the segment goes
    /// to the receiver.
    under_way: BTreeMap<(Time, u64), (bool, Segment)>,
    draws: u64,
    sent: u64,
    /// The number and the size of each data segment that arrived.
    pub(super) came: BTreeSet<(u64, u64)>,
    /// The first time at which the sender put more segments on the path than the window allows, with the details.
    pub(super) excess: Option<String>,
    last_timeout: (u64, Time),
    /// Number of segments by which the segments on the path may exceed the window: 1 with SACK, otherwise 0. With SACK,
    /// the sender does not count a retransmission of the last segment (RFC 6675, Sec. 4, `NextSeg`, rule 4).
    beyond: u64,
}

impl Path {
    pub(super) fn new(config: SenderConfig, law: impl Into<Law>, far: ReceiverConfig, faults: Faults) -> Self {
        let beyond = u64::from(config.recovery == LossRecovery::Sack);
        Self {
            sender: Sender::new(config, law).unwrap(),
            receiver: Receiver::new(far).unwrap(),
            now: Time::ZERO,
            faults,
            under_way: BTreeMap::new(),
            draws: faults.seed,
            sent: 0,
            came: BTreeSet::new(),
            excess: None,
            last_timeout: (0, Time::ZERO),
            beyond,
        }
    }

    /// A random number below `bound`, computed by `SplitMix64` (Steele 2014) from the seed of the path.
    fn draw(&mut self, bound: u64) -> u64 {
        self.draws = self.draws.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut drawn = self.draws;
        drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (drawn ^ (drawn >> 31)) % bound
    }

    fn send(&mut self, forward: bool, segment: Segment) {
        let lost = if forward { self.faults.data_lost } else { self.faults.acks_lost };
        let copies = 1 + u64::from(self.draw(1000) < self.faults.doubled);
        for _ in 0..copies {
            if self.draw(1000) < lost {
                continue;
            }
            let jitter = Span::from_micros(self.draw(1000 * self.faults.jitter + 1) as i64);
            self.sent += 1;
            self.under_way.insert((self.now + DELAY + jitter, self.sent), (forward, segment));
        }
    }

    /// Sends all segments that the sender has to send. Checks how many segments are then on the path: at most one
    /// window, or at most one segment more than before the call. This one segment is allowed, because the first lost
    /// segment may be retransmitted although the window is full.
    fn pump(&mut self) {
        let before = self.data_under_way();
        let mut bursts = 0;
        while let Some(segment) = self.sender.poll(self.now) {
            self.send(true, segment);
            bursts += 1;
            assert!(bursts < 100_000, "a sender that does not stop");
        }
        let stats = self.sender.stats();
        if stats.timeouts != self.last_timeout.0 {
            self.last_timeout = (stats.timeouts, self.now);
        }
        // For `2 * DELAY` after a timeout, nothing is checked, because segments that the timeout marked as lost may
        // still be on the path.
        let settled = stats.timeouts == 0 || self.now - self.last_timeout.1 > DELAY + DELAY;
        let after = self.data_under_way();
        if settled && after > (before + 1).max(stats.window as u64 + self.beyond) {
            self.excess.get_or_insert(format!("{before} and then {after} at {:?}: {stats:?}", self.now));
        }
    }

    /// Number of different unacknowledged data segments on the path. Several copies of a segment count once. The sender
    /// does not count the retransmissions of the previous recovery either (RFC 6675, Sec. 5, step 4.3).
    fn data_under_way(&self) -> u64 {
        let first = self.sender.stats().acknowledged;
        let number = |(_, segment): &(bool, Segment)| match segment {
            Segment::Data { number, .. } if *number >= first => Some(*number),
            _ => None,
        };
        self.under_way.values().filter_map(number).collect::<BTreeSet<_>>().len() as u64
    }

    /// Processes the next event. Returns false if there is no event until `until`.
    pub(super) fn step(&mut self, until: Time) -> bool {
        let arrival = self.under_way.first_key_value().map(|((at, _), _)| *at);
        let next = [arrival, self.sender.wake(), self.receiver.wake()].into_iter().flatten().min();
        let Some(next) = next.filter(|next| *next <= until) else { return false };
        self.now = self.now.max(next);
        if arrival == Some(next) {
            self.arrive();
        } else if self.sender.wake() == Some(next) {
            self.sender.on_timer(self.now);
            self.pump();
        } else if let Some(answer) = self.receiver.on_timer(self.now) {
            self.send(false, answer);
        }
        true
    }

    fn arrive(&mut self) {
        let Some((_, (forward, segment))) = self.under_way.pop_first() else { return };
        if !forward {
            self.sender.on_segment(self.now, segment);
            return self.pump();
        }
        if let Segment::Data { number, payload } = segment {
            self.came.insert((number, payload.as_bytes()));
        }
        if let Some(answer) = self.receiver.on_segment(self.now, segment) {
            self.send(false, answer);
        }
    }
}
