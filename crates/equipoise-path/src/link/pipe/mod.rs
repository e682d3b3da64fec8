//! One direction of a path, with all that may happen on it.

mod bottleneck;
mod config;
mod service;
#[cfg(test)]
mod tests;
mod under_way;

pub use config::{Capacity, Discipline, PipeConfig, PipeError};

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::aqm::{Drop, Queued, Told};
use super::impairment::{Chance, LossProcess};
use bottleneck::Bottleneck;
use equipoise::units::{Instant, Size, Span};
use under_way::{Parcel, UnderWay};

/// One direction of a path: packets go in at one end, and come out at the other later, changed in order or number, or not
/// at all.
///
/// `P` stands for the packet; a copy of it is made for a duplicate only. The same configuration, seed and entries give the
/// same result everywhere. What is under way is bounded by the caller: see [`held`](Self::held).
#[derive(Clone, Debug)]
pub struct Pipe<C, P> {
    config: PipeConfig,
    loss: LossProcess,
    duplication: Chance,
    jitter: Chance,
    reordering: Chance,
    bottleneck: Bottleneck<C, P>,
    under_way: BinaryHeap<Reverse<UnderWay<C, P>>>,
    /// Counts arrivals, so that those of the same moment keep their order.
    tie: u64,
    /// The latest entry: time does not run backwards.
    now: Instant<C>,
    /// The latest arrival of a packet that keeps the order.
    latest: Instant<C>,
    /// The number of the last-sent packet that has left.
    newest: u64,
    held: Size,
    discarded: Vec<P>,
    counts: PipeStats,
}

/// A path's counters since its origin. `entered + duplicated = left + lost + dropped_full + dropped_early + in_flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PipeStats {
    /// Packets that came in.
    pub entered: u64,
    /// Their IP bytes.
    pub entered_bytes: Size,
    /// Packets that came out, duplicates included.
    pub left: u64,
    /// Their IP bytes.
    pub left_bytes: Size,
    /// Packets lost by chance.
    pub lost: u64,
    /// Packets that found the queue full.
    pub dropped_full: u64,
    /// Packets that a queue dropped to tell of congestion.
    pub dropped_early: u64,
    /// Packets that it marked in place of that.
    pub marked: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets that left after one that had entered later (RFC 4737, Sec. 3.3).
    pub reordered: u64,
    /// Packets in the queue and on the way.
    pub in_flight: u64,
    /// Waiting packets, averaged over time; `None` before any time has passed, and without a bottleneck.
    pub mean_queue: Option<f64>,
    /// The most packets that ever waited at once.
    pub longest_queue: usize,
}

/// Streams of random numbers; the order is part of what a seed means.
const LOSS: u64 = 0;
const DUPLICATION: u64 = 1;
const JITTER: u64 = 2;
const REORDERING: u64 = 3;
const QUEUE: u64 = 4;

impl<C, P: Clone + Queued> Pipe<C, P> {
    /// An empty path. Steps and traces of its capacity count from `origin`.
    ///
    /// # Errors
    /// [`PipeError`] where the configuration is none of a path.
    pub fn new(config: PipeConfig, origin: Instant<C>, seed: u64) -> Result<Self, PipeError> {
        config.check()?;
        Ok(Self {
            loss: LossProcess::new(config.loss, Chance::new(seed, LOSS)),
            duplication: Chance::new(seed, DUPLICATION),
            jitter: Chance::new(seed, JITTER),
            reordering: Chance::new(seed, REORDERING),
            bottleneck: Bottleneck::new(&config, origin, Chance::new(seed, QUEUE))?,
            config,
            under_way: BinaryHeap::new(),
            tie: 0,
            now: origin,
            latest: origin,
            newest: 0,
            held: Size::ZERO,
            discarded: Vec::new(),
            counts: PipeStats::default(),
        })
    }

    /// A packet of `size` IP bytes comes in at `now`.
    ///
    /// Entries are to come in the order of their times; one that lies before the previous is taken to be at the same
    /// moment.
    pub fn enter(&mut self, now: Instant<C>, size: Size, packet: P) {
        self.advance(now);
        self.count_entry(size);
        // All are drawn for every packet: what happens to one does not depend on what happened to others.
        let lost = self.loss.next();
        let twice = self.duplication.happens(self.config.duplication);
        let jitter = self.jitter.jitter(self.config.jitter);
        let held_back =
            self.config.reordering.filter(|reordering| self.reordering.happens(reordering.share)).map(|r| r.by);
        let parcel = Parcel { number: self.counts.entered, size, jitter, held_back, packet };
        if lost {
            self.counts.lost += 1;
            self.discard(parcel);
            return;
        }
        if twice {
            self.counts.duplicated += 1;
            self.held = self.held + size;
            self.offer(parcel.clone());
            // Without a queue in between the second is at the very moment of the first.
            self.advance(now);
        }
        self.offer(parcel);
    }

    /// A packet comes in at `now` that takes the propagation delay and nothing else: no rate, no loss, no jitter.
    ///
    /// For what is no traffic, such as the resolution of addresses.
    pub fn bypass(&mut self, now: Instant<C>, size: Size, packet: P) {
        self.advance(now);
        self.count_entry(size);
        let parcel = Parcel { number: u64::MAX, size, jitter: Span::ZERO, held_back: None, packet };
        self.put_under_way(self.now + self.config.delay, parcel);
    }

    /// When something happens next; `None` while nothing is under way.
    pub fn next(&self) -> Option<Instant<C>> {
        let arrival = self.under_way.peek().map(|under_way| under_way.0.at);
        match (arrival, self.bottleneck.next()) {
            (Some(arrival), Some(service)) => Some(arrival.min(service)),
            (arrival, service) => arrival.or(service),
        }
    }

    /// The next packet to come out no later than `horizon`, and when.
    ///
    /// Nothing should enter before `horizon` any more: what does comes too late for what was decided without it.
    pub fn leave(&mut self, horizon: Instant<C>) -> Option<(Instant<C>, P)> {
        self.serve(horizon);
        if self.under_way.peek().is_none_or(|under_way| under_way.0.at > horizon) {
            return None;
        }
        let Reverse(UnderWay { at, parcel, .. }) = self.under_way.pop()?;
        self.held = self.held - parcel.size;
        self.counts.left += 1;
        self.counts.left_bytes = self.counts.left_bytes + parcel.size;
        if parcel.number < self.newest {
            self.counts.reordered += 1;
        } else if parcel.number != u64::MAX {
            self.newest = parcel.number;
        }
        Some((at, parcel.packet))
    }

    /// A packet that was lost or dropped, so that the caller can use its memory again.
    ///
    /// Asked for until `None` after every entry and departure it stays short; what is not asked for is kept.
    pub fn discarded(&mut self) -> Option<P> {
        self.discarded.pop()
    }

    /// IP bytes in the queue and on the way.
    pub const fn held(&self) -> Size {
        self.held
    }

    /// Packets in the queue and on the way.
    pub fn in_flight(&self) -> usize {
        self.under_way.len() + self.bottleneck.len()
    }

    /// The configuration it was made from.
    pub const fn config(&self) -> &PipeConfig {
        &self.config
    }

    /// The counters at `now`.
    pub fn stats(&self, now: Instant<C>) -> PipeStats {
        let (mean_queue, longest_queue) = self.bottleneck.lengths(now);
        let in_flight = self.in_flight() as u64;
        PipeStats { in_flight, mean_queue, longest_queue, ..self.counts }
    }

    fn count_entry(&mut self, size: Size) {
        self.counts.entered += 1;
        self.counts.entered_bytes = self.counts.entered_bytes + size;
        self.held = self.held + size;
    }

    /// Brings the packet to the bottleneck at `self.now`.
    fn offer(&mut self, parcel: Parcel<P>) {
        let now = self.now;
        let (bottleneck, mut ledger) = self.queue();
        if let Some((end, parcel)) = bottleneck.offer(now, parcel, &mut ledger) {
            self.propagate(end, parcel);
        }
    }

    /// The bottleneck, and who hears what becomes of packets there.
    fn queue(&mut self) -> (&mut Bottleneck<C, P>, Ledger<'_, P>) {
        let Self { bottleneck, discarded, counts, held, .. } = self;
        (bottleneck, Ledger { counts, held, discarded })
    }

    /// All that happens before something enters at `now`.
    fn advance(&mut self, now: Instant<C>) {
        self.now = self.now.max(now);
        self.serve(self.now);
    }

    /// All services that begin until `horizon`, where they are not known beforehand.
    fn serve(&mut self, horizon: Instant<C>) {
        while let Some((end, parcel)) = self.take(horizon) {
            self.propagate(end, parcel);
        }
    }

    /// The next packet whose service begins until `horizon`.
    fn take(&mut self, horizon: Instant<C>) -> Option<(Instant<C>, Parcel<P>)> {
        loop {
            let (bottleneck, mut ledger) = self.queue();
            if let Some(served) = bottleneck.take(horizon, &mut ledger) {
                return Some(served);
            }
            // A queue may drop all that it had, and that was all.
            bottleneck.next().filter(|at| *at <= horizon)?;
        }
    }

    /// The way from the bottleneck, which the packet leaves at `end`, to the far end.
    fn propagate(&mut self, end: Instant<C>, parcel: Parcel<P>) {
        let usual = end + (self.config.delay + parcel.jitter).max(Span::ZERO);
        let at = if let Some(by) = parcel.held_back {
            (usual + by).max(end)
        } else {
            self.latest = self.latest.max(usual);
            self.latest
        };
        self.put_under_way(at, parcel);
    }

    fn put_under_way(&mut self, at: Instant<C>, parcel: Parcel<P>) {
        self.tie += 1;
        self.under_way.push(Reverse(UnderWay { at, tie: self.tie, parcel }));
    }

    fn discard(&mut self, parcel: Parcel<P>) {
        self.held = self.held - parcel.size;
        self.discarded.push(parcel.packet);
    }
}

/// Counts what a queue does to packets, and keeps those that it dropped.
struct Ledger<'a, P> {
    counts: &'a mut PipeStats,
    held: &'a mut Size,
    discarded: &'a mut Vec<P>,
}

impl<P> Told<Parcel<P>> for Ledger<'_, P> {
    fn dropped(&mut self, parcel: Parcel<P>, why: Drop) {
        match why {
            Drop::Full => self.counts.dropped_full += 1,
            Drop::Early => self.counts.dropped_early += 1,
        }
        *self.held = *self.held - parcel.size;
        self.discarded.push(parcel.packet);
    }

    fn marked(&mut self) {
        self.counts.marked += 1;
    }
}
