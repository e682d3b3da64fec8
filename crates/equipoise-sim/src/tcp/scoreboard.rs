use std::collections::VecDeque;

use equipoise::units::Size;

use super::SackBlocks;
use super::journal::Journal;
use crate::Time;

/// The scoreboard of a TCP sender: the state of each segment in flight, and the number of segments on the path.
///
/// Source: RFC 6675, Sec. 3 and 4, in segments instead of bytes. A segment is lost if three later segments were
/// selectively acknowledged, that is, if it is before the third-highest selectively acknowledged segment. The number of
/// segments on the path (`pipe`) is updated at each change instead of being recounted. Without SACK, the sender
/// subtracts one segment from `pipe` for each duplicate acknowledgement.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    /// Number of the first segment that is not cumulatively acknowledged.
    first: u64,
    flight: VecDeque<Sent>,
    sacked: u64,
    lost: u64,
    /// Number of segments that are marked as lost, are not selectively acknowledged, and were not retransmitted since
    /// the last timeout or start of a recovery.
    unrepaired: u64,
    /// Number of segments that were retransmitted since the last timeout or start of a recovery, and are not
    /// selectively acknowledged.
    resent: u64,
    /// The ranges in the last selective acknowledgement.
    told: SackBlocks,
    /// The three highest selectively acknowledged segments, highest first.
    highest_sacked: [Option<u64>; DUP_THRESH],
    /// All segments before this one were already checked for loss and, if lost, marked.
    marked: u64,
    /// All segments before this one are selectively acknowledged or were retransmitted in this recovery (`HighRxt`).
    looked_at: u64,
    /// Records packets for the sender's controller; `None` if a window law is used.
    journal: Option<Journal>,
}

/// A segment counts as lost if at least this number of later segments was selectively acknowledged (`DupThresh`; RFC
/// 6675, Sec. 2).
pub(super) const DUP_THRESH: usize = 3;

#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a mark of its own, in any combination")]
struct Sent {
    at: Time,
    sacked: bool,
    lost: bool,
    /// Whether the segment was retransmitted after the last timeout or start of a recovery.
    resent: bool,
    /// Whether the segment was sent more than once, so that an acknowledgement does not determine its round-trip time
    /// (Karn 1987).
    ambiguous: bool,
}

/// The segments that a cumulative acknowledgement covers for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Covered {
    pub(super) segments: u64,
    /// When the last covered segment was sent, if the acknowledgement is a valid measurement of the round-trip time.
    pub(super) sent: Option<Time>,
}

impl Scoreboard {
    /// A scoreboard with a journal of packets, for a controller.
    pub(super) fn with_journal() -> Self {
        Self { journal: Some(Journal::default()), ..Self::default() }
    }

    /// The journal of packets; `None` if the scoreboard has no journal.
    pub(super) const fn journal(&mut self) -> Option<&mut Journal> {
        self.journal.as_mut()
    }

    /// Records in the journal that segment `number` was sent as a packet of `size`. Returns the number of the packet,
    /// or `None` if the scoreboard has no journal.
    pub(super) fn note(&mut self, number: u64, at: Time, size: Size) -> Option<u64> {
        let place = (number - self.first) as usize;
        self.journal.as_mut().map(|journal| journal.on_sent(place, at.assume_clock(), size))
    }

    /// Number of the first segment that is not cumulatively acknowledged.
    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    /// Number of the first segment that was never sent.
    pub(super) fn next(&self) -> u64 {
        self.first + self.flight.len() as u64
    }

    /// Number of segments that were sent and are not cumulatively acknowledged.
    pub(super) fn in_flight(&self) -> u64 {
        self.flight.len() as u64
    }

    /// `pipe`: the estimated number of segments on the path. Segments that are selectively acknowledged or lost do not
    /// count. Retransmissions count (RFC 6675, Sec. 2).
    pub(super) fn pipe(&self) -> u64 {
        (self.in_flight() + self.resent).saturating_sub(self.sacked + self.lost)
    }

    /// Whether the first unacknowledged segment is assumed to be lost.
    pub(super) fn first_is_lost(&self) -> bool {
        self.flight.front().is_some_and(|sent| sent.lost)
    }

    /// Records the first transmission of a new segment.
    pub(super) fn push(&mut self, at: Time) {
        self.flight.push_back(Sent { at, sacked: false, lost: false, resent: false, ambiguous: false });
    }

    /// Records a retransmission of segment `number`.
    pub(super) fn push_again(&mut self, number: u64, at: Time) {
        let Some(sent) = Self::sent(&mut self.flight, self.first, number) else { return };
        self.resent += u64::from(!sent.resent);
        self.unrepaired -= u64::from(sent.lost && !sent.resent);
        (sent.at, sent.resent, sent.ambiguous) = (at, true, true);
    }

    /// Records the rescue retransmission of segment `number`, the last segment (RFC 6675, Sec. 4, `NextSeg`, rule 4).
    /// It does not update `HighRxt`, so recovery may still retransmit the segment by another rule.
    pub(super) fn push_rescue(&mut self, number: u64, at: Time) {
        if let Some(sent) = Self::sent(&mut self.flight, self.first, number) {
            (sent.at, sent.ambiguous) = (at, true);
        }
    }

    /// The entry of a segment in flight; `None` if the segment is selectively acknowledged or not in flight.
    fn sent(flight: &mut VecDeque<Sent>, first: u64, number: u64) -> Option<&mut Sent> {
        let place = usize::try_from(number.checked_sub(first)?).ok()?;
        flight.get_mut(place).filter(|sent| !sent.sacked)
    }

    /// Records a cumulative acknowledgement of all segments before `next`.
    pub(super) fn advance(&mut self, next: u64) -> Covered {
        let mut covered = Covered { segments: 0, sent: None };
        let mut clear = true;
        while self.first < next {
            let Some(sent) = self.flight.pop_front() else { break };
            if let Some(journal) = &mut self.journal {
                journal.pop_front();
            }
            self.first += 1;
            covered.segments += 1;
            self.sacked -= u64::from(sent.sacked);
            self.lost -= u64::from(sent.lost && !sent.sacked);
            self.unrepaired -= u64::from(sent.lost && !sent.sacked && !sent.resent);
            self.resent -= u64::from(sent.resent && !sent.sacked);
            clear &= !sent.ambiguous;
            covered.sent = (clear && !sent.sacked).then_some(sent.at);
        }
        (self.marked, self.looked_at) = (self.marked.max(self.first), self.looked_at.max(self.first));
        for highest in &mut self.highest_sacked {
            *highest = highest.filter(|&number| number >= self.first);
        }
        covered
    }

    /// Records the ranges of a selective acknowledgement.
    pub(super) fn mark_sacked(&mut self, blocks: &SackBlocks) {
        let next = self.next();
        let blocks = SackBlocks::new(blocks.iter().map(|(begin, end)| (begin, end.min(next))));
        for (begin, end) in blocks.iter() {
            // If the last acknowledgement had a range with the same start, only the segments after that range are
            // visited.
            let known = self.told.iter().find(|(first, _)| *first == begin).map_or(begin, |(_, end)| end.max(begin));
            for number in known.max(self.first)..end {
                let place = (number - self.first) as usize;
                let Some(sent) = self.flight.get_mut(place) else { break };
                if !std::mem::replace(&mut sent.sacked, true) {
                    if let Some(journal) = &mut self.journal {
                        journal.on_arrived(place);
                    }
                    self.sacked += 1;
                    self.lost -= u64::from(sent.lost);
                    self.unrepaired -= u64::from(sent.lost && !sent.resent);
                    self.resent -= u64::from(sent.resent);
                    self.rank(number);
                }
            }
        }
        self.told = blocks;
        self.mark_lost();
    }

    fn rank(&mut self, mut number: u64) {
        for highest in &mut self.highest_sacked {
            match highest {
                Some(higher) if *higher > number => {}
                Some(lower) => number = std::mem::replace(lower, number),
                None => {
                    *highest = Some(number);
                    return;
                }
            }
        }
    }

    /// Marks all segments before the third-highest selectively acknowledged segment as lost, except for those that are
    /// selectively acknowledged.
    fn mark_lost(&mut self) {
        let Some(third) = self.highest_sacked[DUP_THRESH - 1] else { return };
        while self.marked < third {
            self.mark_lost_one(self.marked);
            self.marked += 1;
        }
    }

    /// Starts a recovery: marks the first segment as lost, and all segments as not retransmitted (RFC 6675, Sec. 5,
    /// step 4.3: `HighRxt` restarts).
    pub(super) fn begin_recovery(&mut self) {
        if self.resent > 0 {
            for sent in self.flight.iter_mut().filter(|sent| !sent.sacked) {
                self.unrepaired += u64::from(sent.lost && sent.resent);
                sent.resent = false;
            }
            self.resent = 0;
        }
        self.looked_at = self.first;
        self.mark_first_lost();
    }

    /// Marks the first unacknowledged segment as lost.
    pub(super) fn mark_first_lost(&mut self) {
        self.mark_lost_one(self.first);
    }

    fn mark_lost_one(&mut self, number: u64) {
        let Some(sent) = Self::sent(&mut self.flight, self.first, number) else { return };
        if !std::mem::replace(&mut sent.lost, true) {
            self.lost += 1;
            self.unrepaired += u64::from(!sent.resent);
            if let Some(journal) = &mut self.journal {
                journal.on_lost((number - self.first) as usize);
            }
        }
    }

    /// Marks as lost all segments that are not selectively acknowledged, including retransmitted segments.
    ///
    /// If the first segment in flight is selectively acknowledged, the receiver has reneged, and all selective
    /// acknowledgements are discarded (RFC 2018, Sec. 8; detection by RFC 6675, Sec. 5.1). Otherwise they stay valid.
    pub(super) fn mark_all_lost(&mut self) {
        if self.flight.front().is_some_and(|sent| sent.sacked) {
            self.flight.iter_mut().for_each(|sent| sent.sacked = false);
            (self.sacked, self.told, self.highest_sacked) = (0, SackBlocks::NONE, [None; DUP_THRESH]);
        }
        for (place, sent) in self.flight.iter_mut().enumerate().filter(|(_, sent)| !sent.sacked) {
            (sent.lost, sent.resent) = (true, false);
            if let Some(journal) = &mut self.journal {
                journal.on_lost(place);
            }
        }
        self.lost = self.in_flight() - self.sacked;
        (self.unrepaired, self.resent) = (self.lost, 0);
        self.looked_at = self.first;
    }

    /// Number of the first lost segment that was not retransmitted in this recovery (RFC 6675, Sec. 4, `NextSeg`, rule
    /// 1).
    pub(super) fn next_lost(&mut self) -> Option<u64> {
        if self.unrepaired == 0 {
            return None;
        }
        self.seek()
    }

    /// Number of the first segment that was neither selectively acknowledged nor retransmitted in this recovery, if it
    /// is below the highest selectively acknowledged segment (RFC 6675, Sec. 4, `NextSeg`, rule 3).
    pub(super) fn next_below_highest(&mut self) -> Option<u64> {
        let highest = self.highest_sacked[0]?;
        self.seek().filter(|&number| number < highest)
    }

    /// Number of the last segment that was not selectively acknowledged (RFC 6675, Sec. 4, `NextSeg`, rule 4).
    ///
    /// Our choice: `None` if this segment was already retransmitted in this recovery. Rule 4 would retransmit the
    /// segment a second time within a round-trip time.
    pub(super) fn last_unsacked(&self) -> Option<u64> {
        let place = self.flight.iter().rposition(|sent| !sent.sacked)?;
        self.flight.get(place).filter(|sent| !sent.resent).map(|_| self.first + place as u64)
    }

    /// Number of the first segment that was neither selectively acknowledged nor retransmitted in this recovery.
    fn seek(&mut self) -> Option<u64> {
        loop {
            let sent = self.flight.get((self.looked_at - self.first) as usize)?;
            if !sent.sacked && !sent.resent {
                return Some(self.looked_at);
            }
            self.looked_at += 1;
        }
    }
}
