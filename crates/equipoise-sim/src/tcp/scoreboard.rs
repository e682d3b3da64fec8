use std::collections::VecDeque;

use equipoise::units::Size;

use super::SackBlocks;
use super::journal::Journal;
use crate::Time;

/// What has become of each segment under way, and how many of them are still on the path.
///
/// Source: RFC 6675, Sec. 3 and 4, in segments: a segment is lost once three behind it were selectively acknowledged, which
/// is the case for all before the third such from the end; the count of segments on the path (`pipe`) is kept up to date
/// instead of being counted anew. Without SACK, each duplicate acknowledgement stands for some segment that has arrived.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    /// Number of the first segment that is not acknowledged.
    first: u64,
    flight: VecDeque<Sent>,
    sacked: u64,
    lost: u64,
    /// Lost and not sent again since.
    unrepaired: u64,
    /// Sent again and not selectively acknowledged since.
    resent: u64,
    /// The ranges of the last acknowledgement.
    told: SackBlocks,
    /// The last three that were selectively acknowledged, highest first.
    highest_sacked: [Option<u64>; DUP_THRESH],
    /// All before this that can be lost were marked.
    marked: u64,
    /// All before this that could be sent again were (`HighRxt`).
    looked_at: u64,
    /// Of a sender whose controller wants to know of packets.
    journal: Option<Journal>,
}

/// RFC 6675, Sec. 2.
pub(super) const DUP_THRESH: usize = 3;

#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a mark of its own, in any combination")]
struct Sent {
    at: Time,
    sacked: bool,
    lost: bool,
    /// Sent again since the last time that all was given up for lost.
    resent: bool,
    /// Sent more than once: its round trip cannot be told (Karn).
    ambiguous: bool,
}

/// What an acknowledgement covers for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Covered {
    pub(super) segments: u64,
    /// When the last of them was sent, where its acknowledgement measures a round trip.
    pub(super) sent: Option<Time>,
}

impl Scoreboard {
    /// A scoreboard that keeps a journal of packets.
    pub(super) fn with_journal() -> Self {
        Self { journal: Some(Journal::default()), ..Self::default() }
    }

    /// The journal, if it keeps one.
    pub(super) const fn journal(&mut self) -> Option<&mut Journal> {
        self.journal.as_mut()
    }

    /// Segment `number` left just now as a packet of `size`. Returns the packet's number, if there is a journal.
    pub(super) fn note(&mut self, number: u64, at: Time, size: Size) -> Option<u64> {
        let place = (number - self.first) as usize;
        self.journal.as_mut().map(|journal| journal.on_sent(place, at.assume_clock(), size))
    }

    /// Number of the first segment that is not acknowledged.
    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    /// Number of the first segment that was never sent.
    pub(super) fn next(&self) -> u64 {
        self.first + self.flight.len() as u64
    }

    /// Segments sent and not acknowledged in order.
    pub(super) fn in_flight(&self) -> u64 {
        self.flight.len() as u64
    }

    /// Segments taken to be on the path, those selectively acknowledged counted off (`pipe`).
    pub(super) fn pipe(&self) -> u64 {
        (self.in_flight() + self.resent).saturating_sub(self.sacked + self.lost)
    }

    /// Whether the first segment is taken for lost.
    pub(super) fn first_is_lost(&self) -> bool {
        self.flight.front().is_some_and(|sent| sent.lost)
    }

    /// A segment that was never sent leaves.
    pub(super) fn push(&mut self, at: Time) {
        self.flight.push_back(Sent { at, sacked: false, lost: false, resent: false, ambiguous: false });
    }

    /// Segment `number` leaves once more.
    pub(super) fn push_again(&mut self, number: u64, at: Time) {
        let Some(sent) = Self::sent(&mut self.flight, self.first, number) else { return };
        self.resent += u64::from(!sent.resent);
        self.unrepaired -= u64::from(sent.lost && !sent.resent);
        (sent.at, sent.resent, sent.ambiguous) = (at, true, true);
    }

    /// Segment `number` leaves once more by rule 4, which does not count as sent again (RFC 6675, Sec. 4: `HighRxt` is not
    /// updated).
    pub(super) fn push_rescue(&mut self, number: u64, at: Time) {
        if let Some(sent) = Self::sent(&mut self.flight, self.first, number) {
            (sent.at, sent.ambiguous) = (at, true);
        }
    }

    /// A segment that is under way and not selectively acknowledged.
    fn sent(flight: &mut VecDeque<Sent>, first: u64, number: u64) -> Option<&mut Sent> {
        let place = usize::try_from(number.checked_sub(first)?).ok()?;
        flight.get_mut(place).filter(|sent| !sent.sacked)
    }

    /// All before `next` is acknowledged.
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

    /// Segments are selectively acknowledged.
    pub(super) fn mark_sacked(&mut self, blocks: &SackBlocks) {
        let next = self.next();
        let blocks = SackBlocks::new(blocks.iter().map(|(begin, end)| (begin, end.min(next))));
        for (begin, end) in blocks.iter() {
            // A range grows at its end; what it was told to hold before need not be gone through again.
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

    /// All before the third from the end that was selectively acknowledged are lost, unless they were, too.
    fn mark_lost(&mut self) {
        let Some(third) = self.highest_sacked[DUP_THRESH - 1] else { return };
        while self.marked < third {
            self.mark_lost_one(self.marked);
            self.marked += 1;
        }
    }

    /// The first segment is lost, and nothing was sent again yet (RFC 6675, Sec. 5, step 4.3: `HighRxt` begins anew).
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

    /// The first segment is lost.
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

    /// All that was not selectively acknowledged is lost, also what was sent again.
    ///
    /// What was selectively acknowledged stays so, unless the first segment was: then the receiver has gone back on its word,
    /// and none of it counts (RFC 2018, Sec. 8; RFC 6675, Sec. 5.1 on tests for this).
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

    /// The first segment that is lost and was not sent again since (RFC 6675, Sec. 4, `NextSeg`, rule 1).
    pub(super) fn next_lost(&mut self) -> Option<u64> {
        if self.unrepaired == 0 {
            return None;
        }
        self.seek()
    }

    /// The first segment before the highest that was selectively acknowledged that was neither, nor sent again (rule 3).
    pub(super) fn next_below_highest(&mut self) -> Option<u64> {
        let highest = self.highest_sacked[0]?;
        self.seek().filter(|&number| number < highest)
    }

    /// The last segment that was not selectively acknowledged (rule 4).
    ///
    /// Ours: none where that was sent again in this recovery already. The rule would send it twice within a round trip.
    pub(super) fn last_unsacked(&self) -> Option<u64> {
        let place = self.flight.iter().rposition(|sent| !sent.sacked)?;
        self.flight.get(place).filter(|sent| !sent.resent).map(|_| self.first + place as u64)
    }

    /// The first that was neither selectively acknowledged nor sent again.
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
