//! One direction of a path, with all impairments.

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

/// One direction of a path: packets enter at one end and leave at the other end, or are lost. Packets may be reordered
/// or duplicated.
///
/// `P` is the packet type. A packet is cloned only to duplicate it. If the configuration, the seed, the packets and
/// their entry times are the same, the results are the same on every machine. The caller must limit the number of
/// packets in flight, see [`held`](Self::held).
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
    /// The latest entry time so far. A packet that enters at an earlier time is treated as if it entered at this time.
    now: Instant<C>,
    /// The next packet leaves no earlier than this time, so that it does not overtake the packets before it. Reordered
    /// packets may leave earlier.
    latest: Instant<C>,
    /// The highest `Parcel::number` of a packet that has left, except packets that bypass the bottleneck.
    newest: u64,
    held: Size,
    discarded: Vec<P>,
    counts: LinkStats,
}

/// Numbers of the streams of random numbers, one per purpose. With other numbers, a seed would have other results.
const LOSS: u64 = 0;
const DUPLICATION: u64 = 1;
const JITTER: u64 = 2;
const REORDERING: u64 = 3;
const QUEUE: u64 = 4;

impl<C, P: Clone + Queued> Pipe<C, P> {
    /// Creates an empty path. The schedules and traces in the configuration start at `origin`.
    ///
    /// # Errors
    /// [`PipeError`] if the configuration is invalid.
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

    /// Sends a packet of `size` IP bytes into the path at `now`.
    ///
    /// Calls must be in the order of `now`. If `now` is earlier than in the previous call, the path treats both packets
    /// as simultaneous. Returns whether the packet was duplicated.
    pub fn enter(&mut self, now: Instant<C>, size: Size, packet: P) -> bool {
        self.advance(now);
        self.count_entry(size);
        // These random numbers are drawn for every packet, so that one impairment does not change the random numbers of
        // another one.
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
            // If the bottleneck is idle, the service of the first copy begins before the second copy is queued.
            self.advance(now);
        }
        self.offer(parcel);
        twice
    }

    /// Sends a packet into the path at `now`. The packet has only the propagation delay: no rate limit, no loss, no
    /// jitter.
    ///
    /// This is for packets that are not part of the measured traffic, such as ARP.
    pub fn bypass(&mut self, now: Instant<C>, size: Size, packet: P) {
        self.advance(now);
        self.count_entry(size);
        let parcel = Parcel { number: u64::MAX, size, jitter: Span::ZERO, held_back: None, packet };
        let at = self.now + self.delay_at(self.now).max(LEAST_DELAY);
        self.under_way.enter(at, parcel);
    }

    /// The time of the next event on the path: a packet leaves the path, or the bottleneck begins to send a packet.
    /// `None` if no packet is queued or in flight.
    pub fn next(&self) -> Option<Instant<C>> {
        match (self.under_way.next(), self.bottleneck.next()) {
            (Some(arrival), Some(service)) => Some(arrival.min(service)),
            (arrival, service) => arrival.or(service),
        }
    }

    /// The earliest time `known` for which [`leave_before(known)`](Self::leave_before) returns a packet or changes the
    /// state; `None` if no packet is queued or in flight.
    pub fn next_known(&self) -> Option<Instant<C>> {
        let tick = Span::from_nanos(1);
        let arrival = self.under_way.next().map(|at| at - (self.least_delay - tick));
        let service = self.bottleneck.next().map(|at| at + tick);
        arrival.into_iter().chain(service).min()
    }

    /// Returns the next packet that leaves no later than `horizon`, and its departure time.
    ///
    /// After this call no packet should enter before `horizon`, because the path has already been computed up to this
    /// time.
    pub fn leave(&mut self, horizon: Instant<C>) -> Option<(Instant<C>, P)> {
        self.serve(horizon);
        self.come_out(horizon)
    }

    /// Returns the next packet that leaves, and its departure time. `None` if there is no packet, or if a packet that
    /// enters at `known` or later could still leave before this packet.
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

    /// Returns a lost or dropped packet, so that the caller can reuse its memory.
    ///
    /// The path stores lost and dropped packets until this call. Call this function after every entry and departure
    /// until it returns `None`, so that the list of stored packets stays short.
    pub fn discarded(&mut self) -> Option<P> {
        self.discarded.pop()
    }

    /// Total IP bytes of the packets in the queue and in flight.
    pub const fn held(&self) -> Size {
        self.held
    }

    /// Number of packets in the queue and in flight.
    pub fn in_flight(&self) -> usize {
        self.under_way.len() + self.bottleneck.len()
    }

    /// The configuration of the path.
    pub const fn config(&self) -> &PipeConfig {
        &self.config
    }

    /// The counters of the path at `now`.
    pub fn stats(&self, now: Instant<C>) -> LinkStats {
        LinkStats { in_flight: self.in_flight() as u64, usage: self.bottleneck.usage(now), ..self.counts }
    }

    fn count_entry(&mut self, size: Size) {
        self.counts.entered += 1;
        self.counts.entered_bytes = self.counts.entered_bytes + size;
        self.held = self.held + size;
    }

    /// Passes a packet to the bottleneck at time `self.now`.
    fn offer(&mut self, parcel: Parcel<P>) {
        let now = self.now;
        let (bottleneck, mut ledger) = self.queue();
        if let Some((end, parcel)) = bottleneck.offer(now, parcel, &mut ledger) {
            self.propagate(end, parcel);
        }
    }

    /// The bottleneck, and a ledger that counts the packets that the bottleneck drops and marks.
    fn queue(&mut self) -> (&mut Bottleneck<C, P>, Ledger<'_, P>) {
        let Self { bottleneck, discarded, counts, held, .. } = self;
        (bottleneck, Ledger { counts, held, discarded })
    }

    /// Advances the time to `now`, and performs all services that begin no later than `now`.
    fn advance(&mut self, now: Instant<C>) {
        self.now = self.now.max(now);
        self.serve(self.now);
    }

    /// Performs all services that begin no later than `horizon`. Without active queue management, it does nothing,
    /// because [`offer`](Self::offer) has already performed the services.
    fn serve(&mut self, horizon: Instant<C>) {
        while let Some((end, parcel)) = self.take(horizon) {
            self.propagate(end, parcel);
        }
    }

    /// Returns the next packet whose service begins no later than `horizon`, and the end of this service.
    fn take(&mut self, horizon: Instant<C>) -> Option<(Instant<C>, Parcel<P>)> {
        loop {
            let (bottleneck, mut ledger) = self.queue();
            if let Some(served) = bottleneck.take(horizon, &mut ledger) {
                return Some(served);
            }
            // If the queue drops packets instead of serving one, `bottleneck.take` returns `None`, even if packets are
            // waiting. Therefore try again if the next packet is due.
            bottleneck.next().filter(|at| *at <= horizon)?;
        }
    }

    /// Computes when a packet that leaves the bottleneck at `end` arrives at the receiving end, and schedules this
    /// arrival.
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

    /// Minimum time between the departures of a packet of `size` and of the following packet.
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

/// Counts the packets that a queue drops or marks, and stores the dropped packets.
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
