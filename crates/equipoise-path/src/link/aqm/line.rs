use alloc::collections::VecDeque;

use equipoise::units::{Instant, Size, Span};

/// A queued packet.
#[derive(Clone, Debug)]
pub(super) struct Waiting<C, P> {
    pub(super) arrived: Instant<C>,
    pub(super) size: Size,
    pub(super) packet: P,
}

/// A first-in, first-out queue of packets.
#[derive(Clone, Debug)]
pub(super) struct Line<C, P> {
    waiting: VecDeque<Waiting<C, P>>,
    bytes: Size,
    /// Total waiting time of the packets that have left the queue, in nanoseconds.
    waited_ns: u64,
}

impl<C, P> Default for Line<C, P> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), bytes: Size::ZERO, waited_ns: 0 }
    }
}

impl<C, P> Line<C, P> {
    pub(super) fn push(&mut self, packet: Waiting<C, P>) {
        self.bytes = self.bytes + packet.size;
        self.waiting.push_back(packet);
    }

    pub(super) fn pop(&mut self, now: Instant<C>) -> Option<Waiting<C, P>> {
        let head = self.waiting.pop_front()?;
        self.bytes = self.bytes - head.size;
        self.waited_ns = self.waited_ns.saturating_add((now - head.arrived).as_nanos().unsigned_abs());
        Some(head)
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) const fn bytes(&self) -> Size {
        self.bytes
    }

    /// How long the first packet has waited at `now`; zero if the queue is empty.
    pub(super) fn delay(&self, now: Instant<C>) -> Span {
        self.waiting.front().map_or(Span::ZERO, |head| (now - head.arrived).max(Span::ZERO))
    }

    /// Total waiting time until `now` of the packets that have left and of the packets in the queue, in nanoseconds.
    pub(super) fn waited_ns(&self, now: Instant<C>) -> u64 {
        let still = |packet: &Waiting<C, P>| now.as_nanos().saturating_sub(packet.arrived.as_nanos());
        self.waiting.iter().fold(self.waited_ns, |sum, packet| sum.saturating_add(still(packet)))
    }
}
