use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use equipoise::link::{FifoLink, LinkStats, Verdict};
use equipoise::units::Size;

use crate::{HostClock, Time};

/// Bytes that may be under way at once, each datagram counted with [`OVERHEAD`]. Ours: ten times the queue and
/// propagation delay of a link of 1 Gbit/s and 100 ms.
const MEMORY: usize = 128 << 20;

/// What a datagram takes up besides its payload, at most.
const OVERHEAD: usize = 128;

/// The links and what is on them, in virtual time: the part of the emulator that knows no socket.
///
/// Datagrams take their ways link by link in the order of their times. A *way* is a list of links.
#[derive(Debug)]
pub(super) struct Network {
    links: Vec<FifoLink<HostClock>>,
    ways: Vec<Vec<usize>>,
    /// Bytes offered to each link so far.
    offered: Arc<[AtomicU64]>,
    under_way: BinaryHeap<Reverse<Hop>>,
    /// Counts hops, so that those of the same moment keep their order.
    order: u64,
    /// Bytes under way, overhead included.
    held: usize,
    refused: u64,
    /// Payload buffers to use again.
    spare: Vec<Vec<u8>>,
}

/// A datagram at the end of its way.
#[derive(Debug)]
pub(super) struct Delivery {
    /// When it leaves the last link.
    pub(super) due: Time,
    /// The way that it took.
    pub(super) way: usize,
    /// The UDP payload.
    pub(super) payload: Vec<u8>,
}

/// A datagram that reaches its way's next link, or its end, at a moment.
#[derive(Debug)]
struct Hop {
    at: Time,
    order: u64,
    way: usize,
    /// How many links lie behind it.
    passed: usize,
    payload: Vec<u8>,
}

impl Network {
    /// Idle `links`; every way must name links that exist, and `offered` have a counter for each.
    pub(super) fn new(links: Vec<FifoLink<HostClock>>, ways: Vec<Vec<usize>>, offered: Arc<[AtomicU64]>) -> Self {
        Self { links, ways, offered, under_way: BinaryHeap::new(), order: 0, held: 0, refused: 0, spare: Vec::new() }
    }

    /// A datagram enters `way` at `at`.
    pub(super) fn enter(&mut self, at: Time, way: usize, payload: &[u8]) {
        if self.held + payload.len() + OVERHEAD > MEMORY {
            self.refused += 1;
            return;
        }
        self.held += payload.len() + OVERHEAD;
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(payload);
        self.push(at, way, 0, buffer);
    }

    /// When something happens next; `None` while nothing is under way.
    pub(super) fn next(&self) -> Option<Time> {
        self.under_way.peek().map(|hop| hop.0.at)
    }

    /// The next datagram to reach its end no later than `horizon`. Nothing may enter before `horizon` any more.
    pub(super) fn deliver(&mut self, horizon: Time) -> Option<Delivery> {
        while self.next().is_some_and(|at| at <= horizon) {
            let Reverse(hop) = self.under_way.pop()?;
            let Some(&link) = self.ways.get(hop.way).and_then(|way| way.get(hop.passed)) else {
                return Some(Delivery { due: hop.at, way: hop.way, payload: hop.payload });
            };
            self.pass(link, hop);
        }
        None
    }

    /// Takes back the buffer of a datagram that is done with.
    pub(super) fn recycle(&mut self, payload: Vec<u8>) {
        self.held -= payload.len() + OVERHEAD;
        self.spare.push(payload);
    }

    /// The links' counters at `now`.
    pub(super) fn stats(&self, now: Time) -> Vec<LinkStats> {
        self.links.iter().map(|link| link.stats(now)).collect()
    }

    /// Datagrams refused for want of memory.
    pub(super) const fn refused(&self) -> u64 {
        self.refused
    }

    /// Datagrams under way.
    pub(super) fn in_flight(&self) -> u64 {
        self.under_way.len() as u64
    }

    fn pass(&mut self, link: usize, hop: Hop) {
        let size = Size::from_bytes(hop.payload.len() as u64) + Size::IPV4_UDP;
        if let Some(offered) = self.offered.get(link) {
            offered.fetch_add(size.as_bytes(), Relaxed);
        }
        match self.links.get_mut(link).map(|link| link.offer(hop.at, size)) {
            Some(Verdict::ArrivesAt(at)) => self.push(at, hop.way, hop.passed + 1, hop.payload),
            Some(Verdict::Dropped) | None => self.recycle(hop.payload),
        }
    }

    fn push(&mut self, at: Time, way: usize, passed: usize, payload: Vec<u8>) {
        self.order += 1;
        self.under_way.push(Reverse(Hop { at, order: self.order, way, passed, payload }));
    }
}

impl Hop {
    fn key(&self) -> (Time, u64) {
        (self.at, self.order)
    }
}

impl PartialEq for Hop {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Hop {}
impl PartialOrd for Hop {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Hop {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use equipoise::link::{LinkConfig, QueueLimit};
    use equipoise::units::{Rate, Schedule, Span};

    use super::*;

    /// 972 bytes of payload are an IP packet of 1000: 1 ms at 8 Mbit/s.
    const PAYLOAD: [u8; 972] = [0; 972];

    fn micros(micros: i64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    /// Links of 8 Mbit/s, 5 ms and a queue of two packets.
    fn network(links: usize, ways: Vec<Vec<usize>>) -> Network {
        let config = LinkConfig {
            rate: Schedule::constant(Rate::from_bps(8_000_000)),
            propagation_delay: Span::from_millis(5),
            queue: QueueLimit::Packets(2),
        };
        let links: Vec<_> = (0..links).map(|_| FifoLink::new(config.clone(), Time::ZERO).unwrap()).collect();
        let offered = links.iter().map(|_| AtomicU64::new(0)).collect();
        Network::new(links, ways, offered)
    }

    /// Way and time of everything that is delivered.
    fn drain(network: &mut Network) -> Vec<(usize, Time)> {
        let mut delivered = Vec::new();
        while let Some(delivery) = network.deliver(Time::MAX) {
            delivered.push((delivery.way, delivery.due));
            network.recycle(delivery.payload);
        }
        delivered
    }

    #[test]
    fn a_chain_of_links_adds_their_services_and_delays() {
        let mut network = network(2, vec![vec![0, 1]]);
        network.enter(micros(0), 0, &PAYLOAD);
        assert_eq!(drain(&mut network), [(0, micros(12_000))]);
    }

    #[test]
    fn nothing_is_delivered_beyond_the_horizon() {
        let mut network = network(1, vec![vec![0]]);
        network.enter(micros(0), 0, &PAYLOAD);
        assert!(network.deliver(micros(5_999)).is_none());
        assert_eq!(network.next(), Some(micros(6_000)));
        assert!(network.deliver(micros(6_000)).is_some());
    }

    /// If it fails, whichever socket is read first gets ahead of the queue.
    #[test]
    fn ways_that_share_a_link_are_served_in_the_order_of_arrival_and_not_of_reading() {
        let mut network = network(1, vec![vec![0], vec![0]]);
        network.enter(micros(300), 0, &PAYLOAD);
        network.enter(micros(100), 1, &PAYLOAD);
        assert_eq!(drain(&mut network), [(1, micros(6_100)), (0, micros(7_100))]);
    }

    #[test]
    fn a_full_queue_drops_and_its_buffers_come_back() {
        let mut network = network(1, vec![vec![0]]);
        for _ in 0..5 {
            network.enter(micros(0), 0, &PAYLOAD);
        }
        assert_eq!(drain(&mut network).len(), 3, "one in service and two waiting");
        assert_eq!((network.held, network.spare.len(), network.in_flight()), (0, 5, 0));
        assert_eq!(network.offered[0].load(Relaxed), 5000, "dropped packets were offered, too");
    }

    #[test]
    fn a_way_without_links_delivers_at_once() {
        let mut network = network(0, vec![vec![]]);
        network.enter(micros(7), 0, &[]);
        assert_eq!(drain(&mut network), [(0, micros(7))]);
    }

    #[test]
    fn memory_is_bounded_whatever_comes_in() {
        let mut network = network(0, vec![vec![]]);
        let payload = vec![0; 65_000];
        let room = (MEMORY / (payload.len() + OVERHEAD)) as u64;
        for _ in 0..room + 3 {
            network.enter(micros(0), 0, &payload);
        }
        assert_eq!((network.in_flight(), network.refused()), (room, 3));
    }
}
