use equipoise::units::{Instant, Size, Span};

use super::line::{Line, Waiting};
use super::{Aqm, Drop, Queued, Room, Told, marks};

/// Controlled delay: a queue whose standing delay is kept short by dropping at its head, more and more often.
///
/// Source: RFC 8289; packets whose ends understand marks are marked in place of dropped (RFC 8290, Sec. 4.2). `target` is the delay that may stand, `interval` how long it may be exceeded: the round-trip times
/// for which the control is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codel {
    /// A minimum of the waiting time above this is a standing queue; shorter, and the link idles now and then.
    pub target: Span,
    /// The time over which the minimum counts; about the longest usual round-trip time.
    pub interval: Span,
}

/// 5 ms and 100 ms (RFC 8289, Sec. 4.2, 4.3).
impl Default for Codel {
    fn default() -> Self {
        Self { target: Span::from_millis(5), interval: Span::from_millis(100) }
    }
}

/// The decision whether to drop a packet that is taken from the queue.
///
/// Source: RFC 8289, Sec. 5.4 to 5.6, whose names stand behind the fields.
#[derive(Clone, Debug)]
struct Law<C> {
    codel: Codel,
    /// When the delay will have been above target for an interval (`first_above_time_`); `None` while it is below.
    first_above: Option<Instant<C>>,
    /// When to drop next (`drop_next_`).
    drop_next: Instant<C>,
    /// Drops since entering the dropping state (`count_`), and what it began with (`lastcount_`).
    count: u32,
    last_count: u32,
    dropping: bool,
}

/// If the state is entered again within so many intervals, it goes on with about the frequency it had (RFC 8289,
/// Sec. 5.4).
const MEMORY_INTERVALS: i64 = 16;

impl<C> Law<C> {
    fn new(codel: Codel) -> Self {
        Self { codel, first_above: None, drop_next: Instant::ZERO, count: 0, last_count: 0, dropping: false }
    }

    /// Whether a packet may be dropped that waited for `sojourn`, with `small` where hardly anything waits behind it
    /// (`dodequeue`).
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

    /// Time of the drop after one at `at` (`control_law`).
    fn after(&self, at: Instant<C>) -> Instant<C> {
        let gap = self.codel.interval.as_nanos() as f64 / libm::sqrt(f64::from(self.count.max(1)));
        at + Span::from_nanos(gap as i64)
    }

    /// The dropping state begins.
    fn enter(&mut self, now: Instant<C>) {
        self.dropping = true;
        let delta = self.count.wrapping_sub(self.last_count);
        let recent = now - self.drop_next < self.codel.interval * MEMORY_INTERVALS;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = self.after(now);
        self.last_count = self.count;
    }
}

/// A queue under CoDel.
#[derive(Clone, Debug)]
pub(super) struct CodelLine<C, P> {
    line: Line<C, P>,
    law: Law<C>,
    /// The largest packet so far (`maxpacket_`).
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

    /// The first packet, whatever the law says.
    pub(super) fn pop(&mut self, now: Instant<C>) -> Option<Waiting<C, P>> {
        self.line.pop(now)
    }

    /// The head of the queue, and whether it may be dropped.
    fn head(&mut self, now: Instant<C>) -> (Option<Waiting<C, P>>, bool) {
        let Some(head) = self.line.pop(now) else {
            self.law.first_above = None;
            return (None, false);
        };
        let small = self.line.bytes() <= self.largest;
        let may_drop = self.law.may_drop(now, now - head.arrived, small);
        (Some(head), may_drop)
    }

    /// The head of the queue where the law drops or marks packets, at `now`.
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
        // A packet may be dropped only while more than the largest one's bytes wait behind it, so there is one.
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
