//! One direction of a path, with all that may happen on it.

mod bottleneck;
mod capacity;
mod config;
mod parcel;
mod service;
#[cfg(test)]
mod tests;

pub use capacity::Capacity;
pub use config::{Discipline, PipeConfig, PipeError};

use alloc::vec::Vec;

use super::aqm::{Drop, Queued, Told};
use super::bucket::Bucket;
use super::impairment::{Chance, LossProcess};
use super::stats::LinkStats;
use super::{Agenda, Jitter};
use bottleneck::Bottleneck;
use config::LEAST_DELAY;
use equipoise::units::{Instant, Size, Span};
use parcel::Parcel;

/// One direction of a path: packets go in at one end, and come out at the other later, changed in order or number, or not
/// at all.
///
/// `P` stands for the packet; a copy of it is made for a duplicate only. The same configuration, seed and entries give the
/// same result everywhere. What is under way is bounded by the caller: see [`held`](Self::held).
#[derive(Clone, Debug)]
pub struct Pipe<C, P> {
    config: PipeConfig,
    origin: Instant<C>,
    least_delay: Span,
    policer: Option<Bucket<C>>,
    loss: LossProcess,
    duplication: Chance,
    jitter: Chance,
    reordering: Chance,
    bottleneck: Bottleneck<C, P>,
    under_way: Agenda<C, Parcel<P>>,
    /// The latest entry: time does not run backwards.
    now: Instant<C>,
    /// No packet that keeps the order comes out before: the latest of them has just come out.
    latest: Instant<C>,
    /// The number of the last-sent packet that has left.
    newest: u64,
    held: Size,
    discarded: Vec<P>,
    counts: LinkStats,
}

/// Streams of random numbers; the order is part of what a seed means.
const LOSS: u64 = 0;
const DUPLICATION: u64 = 1;
const JITTER: u64 = 2;
const REORDERING: u64 = 3;
const QUEUE: u64 = 4;

impl<C, P: Clone + Queued> Pipe<C, P> {
    /// An empty path. Steps, and traces of its capacity, count from `origin`.
    ///
    /// # Errors
    /// [`PipeError`] where the configuration is none of a path.
    pub fn new(config: PipeConfig, origin: Instant<C>, seed: u64) -> Result<Self, PipeError> {
        config.check()?;
        Ok(Self {
            origin,
            least_delay: config.least_delay(),
            policer: config.policer.map(|bucket| Bucket::new(bucket, origin)),
            loss: LossProcess::new(config.loss.clone(), Chance::new(seed, LOSS)),
            duplication: Chance::new(seed, DUPLICATION),
            jitter: Chance::new(seed, JITTER),
            reordering: Chance::new(seed, REORDERING),
            bottleneck: Bottleneck::new(&config, origin, Chance::new(seed, QUEUE))?,
            config,
            under_way: Agenda::default(),
            now: origin,
            latest: origin,
            newest: 0,
            held: Size::ZERO,
            discarded: Vec::new(),
            counts: LinkStats::default(),
        })
    }

    /// A packet of `size` IP bytes comes in at `now`.
    ///
    /// Entries are to come in the order of their times; one that lies before the previous is taken to be at the same
    /// moment. Gives whether a copy was made.
    pub fn enter(&mut self, now: Instant<C>, size: Size, packet: P) -> bool {
        self.advance(now);
        self.count_entry(size);
        // All are drawn for every packet: what happens to one does not depend on what happened to others.
        let lost = self.loss.next(self.now - self.origin);
        let twice = self.duplication.happens(self.config.duplication);
        let jitter = self.jitter.jitter(self.config.jitter);
        let held_back =
            self.config.reordering.filter(|reordering| self.reordering.happens(reordering.share)).map(|r| r.by);
        let parcel = Parcel { number: self.counts.entered, size, jitter, held_back, packet };
        if lost {
            self.counts.lost += 1;
            self.discard(parcel);
            return false;
        }
        let now = self.now;
        if self.policer.as_mut().is_some_and(|bucket| !bucket.take(now, size)) {
            self.counts.policed += 1;
            self.discard(parcel);
            return false;
        }
        if twice {
            self.counts.duplicated += 1;
            self.held = self.held + size;
            self.offer(parcel.clone());
            // Without a queue in between the second is at the very moment of the first.
            self.advance(now);
        }
        self.offer(parcel);
        twice
    }

    /// A packet comes in at `now` that takes the propagation delay and nothing else: no rate, no loss, no jitter.
    ///
    /// For what is no traffic, such as the resolution of addresses.
    pub fn bypass(&mut self, now: Instant<C>, size: Size, packet: P) {
        self.advance(now);
        self.count_entry(size);
        let parcel = Parcel { number: u64::MAX, size, jitter: Span::ZERO, held_back: None, packet };
        let at = self.now + self.delay_at(self.now);
        self.under_way.enter(at, parcel);
    }

    /// When something happens next; `None` while nothing is under way.
    pub fn next(&self) -> Option<Instant<C>> {
        match (self.under_way.next(), self.bottleneck.next()) {
            (Some(arrival), Some(service)) => Some(arrival.min(service)),
            (arrival, service) => arrival.or(service),
        }
    }

    /// The least `known` for which [`leave_before`](Self::leave_before) gives or does something; `None` while nothing is under way.
    pub fn next_known(&self) -> Option<Instant<C>> {
        let tick = Span::from_nanos(1);
        let arrival = self.under_way.next().map(|at| at - (self.least_delay - tick));
        let service = self.bottleneck.next().map(|at| at + tick);
        arrival.into_iter().chain(service).min()
    }

    /// The next packet to come out no later than `horizon`, and when.
    ///
    /// Nothing should enter before `horizon` any more: what does comes too late for what was decided without it.
    pub fn leave(&mut self, horizon: Instant<C>) -> Option<(Instant<C>, P)> {
        self.serve(horizon);
        self.come_out(horizon)
    }

    /// The next packet to come out that nothing which enters at `known` or later can precede, and when.
    pub fn leave_before(&mut self, known: Instant<C>) -> Option<(Instant<C>, P)> {
        let before = known.as_nanos().checked_sub(1).map(Instant::from_nanos)?;
        self.serve(before);
        self.come_out(before + self.least_delay)
    }

    fn come_out(&mut self, until: Instant<C>) -> Option<(Instant<C>, P)> {
        let (at, parcel) = self.under_way.take(until)?;
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
    pub fn stats(&self, now: Instant<C>) -> LinkStats {
        LinkStats { in_flight: self.in_flight() as u64, usage: self.bottleneck.usage(now), ..self.counts }
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
        let usual = end + (self.delay_at(end) + parcel.jitter).max(LEAST_DELAY);
        let at = if let Some(by) = parcel.held_back {
            (usual + by).max(end + LEAST_DELAY)
        } else {
            let at = self.latest.max(usual);
            self.latest = at + self.behind(end, parcel.size);
            at
        };
        self.under_way.enter(at, parcel);
    }

    fn delay_at(&self, now: Instant<C>) -> Span {
        self.config.delay.at(now - self.origin)
    }

    /// How long after a packet of `size` the next one can come out at the soonest.
    fn behind(&self, now: Instant<C>, size: Size) -> Span {
        match self.config.jitter {
            Jitter::HalfNormal(_) => self.config.capacity.serialisation(now - self.origin, size),
            Jitter::None | Jitter::Uniform(_) | Jitter::Normal(_) => Span::ZERO,
        }
    }

    fn discard(&mut self, parcel: Parcel<P>) {
        self.held = self.held - parcel.size;
        self.discarded.push(parcel.packet);
    }
}

/// Counts what a queue does to packets, and keeps those that it dropped.
struct Ledger<'a, P> {
    counts: &'a mut LinkStats,
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
