use equipoise::units::{Instant, Size, Span};

use super::line::{Line, Waiting};
use super::{Aqm, Drop, Queued, Room, Told, marks};

/// Controlled delay (CoDel): keeps a queue's standing delay short by dropping packets at the head of the queue. While
/// the delay stays too long, packets are dropped more and more often.
///
/// Source: RFC 8289; ECN-capable packets are marked instead of dropped (RFC 8290, Sec. 5.2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codel {
    /// Maximum acceptable standing delay. The standing delay is the minimum waiting time of the packets within
    /// `interval`. If `target` is too small, the link is sometimes idle although the senders have data.
    pub target: Span,
    /// How long the delay may exceed `target` before packets are dropped: about the longest usual round-trip time.
    pub interval: Span,
}

/// Target 5 ms, interval 100 ms (RFC 8289, Sec. 4.2, 4.3).
impl Default for Codel {
    fn default() -> Self {
        Self { target: Span::from_millis(5), interval: Span::from_millis(100) }
    }
}

/// CoDel's decision whether to drop a packet that is taken from the queue.
///
/// Source: RFC 8289, Sec. 5.5 and 5.6; the names of the RFC are in parentheses.
#[derive(Clone, Debug)]
struct Law<C> {
    codel: Codel,
    /// While the delay is above the target, this is the time from which packets may be dropped: one interval after the
    /// delay rose above the target (`first_above_time_`). `None` while the delay is below the target or the queue is
    /// almost empty.
    first_above: Option<Instant<C>>,
    /// When the next packet is due to be dropped, in the dropping state (`drop_next_`).
    drop_next: Instant<C>,
    /// Determines the drop frequency. Increases by one with each drop or mark in the dropping state (`count_`).
    count: u32,
    /// The value of `count` at the start of the last dropping state (`lastcount_`).
    last_count: u32,
    dropping: bool,
}

/// If a dropping state begins less than this number of intervals after `drop_next`, CoDel starts with about the drop
/// frequency of the previous dropping state (RFC 8289, Sec. 5.5). In this case, `count` starts with its increase during
/// the previous dropping state, but at least with 1.
const MEMORY_INTERVALS: i64 = 16;

impl<C> Law<C> {
    fn new(codel: Codel) -> Self {
        Self { codel, first_above: None, drop_next: Instant::ZERO, count: 0, last_count: 0, dropping: false }
    }

    /// Whether a packet that waited for `sojourn` may be dropped (`dodequeue`). `small` is true if the bytes that are
    /// queued behind the packet are at most the size of the largest packet. Then the packet must not be dropped.
    fn may_drop(&mut self, now: Instant<C>, sojourn: Span, small: bool) -> bool {
        if sojourn < self.codel.target || small {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + self.codel.interval);
                false
            }
            Some(at) => now >= at,
        }
    }

    /// Returns when the next drop is due if the previous drop was due at the time `at` (`control_law` in RFC 8289).
    fn after(&self, at: Instant<C>) -> Instant<C> {
        let gap = self.codel.interval.as_nanos() as f64 / libm::sqrt(f64::from(self.count.max(1)));
        at + Span::from_nanos(gap as i64)
    }

    /// Enters the dropping state, in which CoDel drops packets at increasing frequency.
    fn enter(&mut self, now: Instant<C>) {
        self.dropping = true;
        let delta = self.count.wrapping_sub(self.last_count);
        let recent = now - self.drop_next < self.codel.interval * MEMORY_INTERVALS;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = self.after(now);
        self.last_count = self.count;
    }
}

/// A queue that is managed by CoDel.
#[derive(Clone, Debug)]
pub(super) struct CodelLine<C, P> {
    line: Line<C, P>,
    law: Law<C>,
    /// Size of the largest packet that was ever queued (`maxpacket_`).
    largest: Size,
}

impl<C, P: Queued> CodelLine<C, P> {
    pub(super) fn new(codel: Codel) -> Self {
        Self { line: Line::default(), law: Law::new(codel), largest: Size::ZERO }
    }

    pub(super) fn push(&mut self, packet: Waiting<C, P>) {
        self.largest = self.largest.max(packet.size);
        self.line.push(packet);
    }

    pub(super) const fn line(&self) -> &Line<C, P> {
        &self.line
    }

    /// Removes and returns the first packet of the queue, without applying CoDel.
    pub(super) fn pop(&mut self, now: Instant<C>) -> Option<Waiting<C, P>> {
        self.line.pop(now)
    }

    /// Removes the packet at the head of the queue. Returns the packet, and whether CoDel may drop it.
    fn head(&mut self, now: Instant<C>) -> (Option<Waiting<C, P>>, bool) {
        let Some(head) = self.line.pop(now) else {
            self.law.first_above = None;
            return (None, false);
        };
        let small = self.line.bytes() <= self.largest;
        let may_drop = self.law.may_drop(now, now - head.arrived, small);
        (Some(head), may_drop)
    }

    /// Returns the packet to send at `now`, in the dropping state; `first` is the packet at the head of the queue. Each
    /// time a drop is due, the packet at the head is dropped and the next packet is considered. If the packet at the
    /// head is ECN-capable, it is marked and returned instead.
    fn while_dropping(
        &mut self,
        now: Instant<C>,
        (mut first, may_drop): (Option<Waiting<C, P>>, bool),
        told: &mut impl Told<P>,
    ) -> Option<Waiting<C, P>> {
        self.law.dropping = may_drop;
        while self.law.dropping && now >= self.law.drop_next {
            let mut head = first?;
            self.law.count = self.law.count.saturating_add(1);
            if marks(&mut head.packet, told) {
                self.law.drop_next = self.law.after(self.law.drop_next);
                return Some(head);
            }
            told.dropped(head.packet, Drop::Early);
            let may_drop;
            (first, may_drop) = self.head(now);
            if may_drop {
                self.law.drop_next = self.law.after(self.law.drop_next);
            } else {
                self.law.dropping = false;
            }
        }
        first
    }
}

impl<C, P: Queued> Aqm<C, P> for CodelLine<C, P> {
    fn offer(&mut self, packet: Waiting<C, P>, room: Room, told: &mut impl Told<P>) {
        if room.holds(self.line.len(), self.line.bytes(), packet.size) {
            self.push(packet);
        } else {
            told.dropped(packet.packet, Drop::Full);
        }
    }

    fn take(&mut self, now: Instant<C>, told: &mut impl Told<P>) -> Option<Waiting<C, P>> {
        let (first, may_drop) = self.head(now);
        if self.law.dropping {
            return self.while_dropping(now, (first, may_drop), told);
        }
        let mut head = first?;
        if !may_drop {
            return Some(head);
        }
        // `may_drop` is true, so the bytes behind this packet exceed the size of the largest packet. Therefore another
        // packet follows in the queue.
        let next = if marks(&mut head.packet, told) {
            Some(head)
        } else {
            told.dropped(head.packet, Drop::Early);
            self.head(now).0
        };
        self.law.enter(now);
        next
    }

    fn len(&self) -> usize {
        self.line.len()
    }

    fn waited_ns(&self, now: Instant<C>) -> u64 {
        self.line.waited_ns(now)
    }
}
