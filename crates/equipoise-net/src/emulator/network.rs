use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use equipoise::units::{Size, Span};
use equipoise_path::link::{Agenda, Ecn, LinkStats, Pipe, Queued};

use super::watcher::{Passed, Watcher};
use crate::engine::{Arrival, BACK, Departure, Manner, Medium, Packet};
use crate::lateness::LatenessMeter;
use crate::{HostClock, Time};

/// Maximum number of bytes in flight, including [`OVERHEAD`] for each packet. Our choice: about ten times the
/// bandwidth-delay product of 1 Gbit/s and 100 ms.
const MEMORY: usize = 128 << 20;

/// Upper bound of the memory per packet in addition to the packet's bytes.
const OVERHEAD: usize = 128;

/// Value of [`Hop::passed`] for packets with [`Manner::Beside`], which pass no links; larger than any number of links.
const BESIDE: usize = usize::MAX;

/// The links and the packets on them, in virtual time, without sockets.
///
/// Each packet passes the links of its route, whose number is [`Packet::client`]. Packets with [`Manner::Beside`] pass
/// no links. Packets are processed in time order.
#[derive(Debug)]
pub(super) struct Network {
    links: Vec<Pipe<HostClock, Hop>>,
    /// For each route, the numbers of its forward links and of its backward links.
    ways: Vec<[Vec<usize>; 2]>,
    /// For each link, the bytes that have arrived at it so far.
    offered: Arc<[AtomicU64]>,
    /// Packets that are not on a link: before their first link, between two links, or after their last link.
    between: Agenda<HostClock, Hop>,
    /// Number of bytes in flight, including [`OVERHEAD`] for each packet.
    held: usize,
    refused: u64,
    /// Packet buffers for reuse.
    spare: Vec<Vec<u8>>,
    lateness: LatenessMeter,
    sampling: Option<Sampling>,
    watcher: Option<Watcher>,
}

/// The counters of all links at one time.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSample {
    /// When the sample was taken.
    pub at: Time,
    /// The counters of each link, in the order of the links.
    pub links: Vec<LinkStats>,
}

/// Periodic samples of the links' counters.
#[derive(Debug)]
struct Sampling {
    interval: Span,
    next: Time,
    samples: Vec<LinkSample>,
}

/// A packet in flight.
#[derive(Clone, Debug)]
pub(super) struct Hop {
    direction: usize,
    /// Number of links that the packet has passed; [`BESIDE`] for packets with [`Manner::Beside`], which pass no links.
    passed: usize,
    /// Size of the IP packet.
    size: Size,
    /// Total waiting time in the queues of the links that the packet has passed.
    waited: Span,
    packet: Packet,
}

impl Queued for Hop {
    fn ecn(&self) -> Ecn {
        self.packet.ecn()
    }

    fn mark(&mut self) {
        self.packet.mark();
    }

    fn flow(&self) -> u64 {
        self.packet.flow()
    }

    fn on_waited(&mut self, wait: Span) {
        self.waited = self.waited + wait;
    }
}

impl Network {
    /// A network of idle `links`. All link numbers in `ways` must exist, and `offered` must have a counter for each
    /// link.
    pub(super) fn new(links: Vec<Pipe<HostClock, Hop>>, ways: Vec<[Vec<usize>; 2]>, offered: Arc<[AtomicU64]>) -> Self {
        Self {
            links,
            ways,
            offered,
            between: Agenda::default(),
            held: 0,
            refused: 0,
            spare: Vec::new(),
            lateness: LatenessMeter::new(),
            sampling: None,
            watcher: None,
        }
    }

    /// Starts to sample the links' counters every `interval`; the first sample is at `origin + interval`.
    pub(super) fn sample(&mut self, origin: Time, interval: Span) {
        self.sampling = Some(Sampling { interval, next: origin + interval, samples: Vec::new() });
    }

    /// Makes the network call `watcher` for each packet that has passed all links of its route.
    pub(super) fn watch(&mut self, watcher: Watcher) {
        self.watcher = Some(watcher);
    }

    /// The counters of each link at `now`.
    pub(super) fn stats(&self, now: Time) -> Vec<LinkStats> {
        self.links.iter().map(|link| link.stats(now)).collect()
    }

    /// Returns the samples, and stops sampling.
    pub(super) fn take_samples(&mut self) -> Vec<LinkSample> {
        self.sampling.take().map(|sampling| sampling.samples).unwrap_or_default()
    }

    /// How late packets left, compared with their computed departure times.
    pub(super) const fn lateness(&self) -> &LatenessMeter {
        &self.lateness
    }

    /// Number of packets dropped for lack of memory.
    pub(super) const fn refused(&self) -> u64 {
        self.refused
    }

    /// Number of packets in flight.
    pub(super) fn in_flight(&self) -> u64 {
        self.links.iter().fold(self.between.len(), |sum, link| sum + link.in_flight()) as u64
    }

    /// Takes all samples that are due before `until`.
    fn sample_until(&mut self, until: Time) {
        while let Some(sampling) = self.sampling.as_mut().filter(|sampling| sampling.next < until) {
            let at = sampling.next;
            sampling.next = at + sampling.interval;
            let links = self.links.iter().map(|link| link.stats(at)).collect();
            sampling.samples.push(LinkSample { at, links });
        }
    }

    fn pass(&mut self, at: Time, link: usize, hop: Hop) {
        if let Some(offered) = self.offered.get(link) {
            offered.fetch_add(hop.size.as_bytes(), Relaxed);
        }
        let Some(pipe) = self.links.get_mut(link) else { return self.recycle(hop.packet) };
        let bytes = hop.packet.bytes.len() + OVERHEAD;
        if pipe.enter(at, hop.size, hop) {
            self.held += bytes;
        }
        self.reclaim(link);
    }

    /// The time of the next event on the links, and the number of the link.
    fn next_on_links(&self) -> Option<(Time, usize)> {
        self.links.iter().zip(0..).filter_map(|(link, number)| Some((link.next()?, number))).min()
    }

    /// Handles an event of a link at the time `at`: a packet may leave the link.
    fn come_out(&mut self, at: Time, link: usize) {
        let left = self.links.get_mut(link).and_then(|link| link.leave(at));
        if let Some((at, hop)) = left {
            self.between.enter(at, Hop { passed: hop.passed + 1, ..hop });
        }
        self.reclaim(link);
    }

    /// Calls the watcher for a packet that leaves at the time `at`. Has no effect for packets that do not count as IP
    /// traffic ([`Manner::Beside`]).
    fn tell(&self, at: Time, hop: &Hop) {
        let (Some(watcher), true, Ok(route)) =
            (&self.watcher, hop.passed != BESIDE, usize::try_from(hop.packet.client))
        else {
            return;
        };
        let Hop { size, waited, .. } = *hop;
        watcher.tell(&Passed {
            at,
            route,
            is_back: hop.direction == BACK,
            size,
            waited,
            datagram: hop.packet.payload(),
        });
    }

    /// Stores the buffers of the packets that a link has lost or dropped. Later packets reuse these buffers.
    fn reclaim(&mut self, link: usize) {
        while let Some(lost) = self.links.get_mut(link).and_then(Pipe::discarded) {
            self.recycle(lost.packet);
        }
    }

    /// Stores the buffer of a packet for reuse.
    fn recycle(&mut self, packet: Packet) {
        self.held -= packet.bytes.len() + OVERHEAD;
        self.spare.push(packet.bytes);
    }
}

impl Medium for Network {
    fn stage(&mut self, direction: usize, Arrival { at, manner, client, header }: Arrival, bytes: &[u8]) {
        if self.held + bytes.len() + OVERHEAD > MEMORY {
            self.refused += 1;
            return;
        }
        self.held += bytes.len() + OVERHEAD;
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        let (passed, size) = match manner {
            Manner::Ip(size) => (0, size),
            Manner::Beside => (BESIDE, Size::ZERO),
        };
        let packet = Packet { bytes: buffer, client, header };
        self.between.enter(at, Hop { direction, passed, size, waited: Span::ZERO, packet });
    }

    /// Does nothing: `stage` has already put the packets into `between`, which orders them by time.
    fn enter(&mut self, _: Time) {}

    fn next(&self) -> Option<Time> {
        self.between.next().into_iter().chain(self.next_on_links().map(|(at, _)| at)).min()
    }

    fn leave(&mut self, horizon: Time) -> Option<Departure> {
        while let Some(at) = self.next().filter(|at| *at <= horizon) {
            self.sample_until(at);
            if let Some((out, link)) = self.next_on_links().filter(|(out, _)| *out == at) {
                self.come_out(out, link);
                continue;
            }
            let (_, hop) = self.between.take(at)?;
            let way =
                usize::try_from(hop.packet.client).ok().and_then(|route| self.ways.get(route)?.get(hop.direction));
            let Some(&link) = way.and_then(|way| way.get(hop.passed)) else {
                self.tell(at, &hop);
                return Some(Departure { due: at, direction: hop.direction, packet: hop.packet });
            };
            self.pass(at, link, hop);
        }
        self.sample_until(horizon);
        None
    }

    fn left(&mut self, Departure { due, packet, .. }: Departure, at: Time) {
        self.lateness.record(at - due);
        self.recycle(packet);
    }

    fn least_delay(&self) -> Span {
        let along = |way: &Vec<usize>| {
            let links = way.iter().filter_map(|&link| self.links.get(link));
            links.fold(Span::ZERO, |sum, link| sum + link.config().least_delay())
        };
        self.ways.iter().flatten().map(along).min().unwrap_or(Span::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use equipoise::units::{Rate, Schedule};
    use equipoise_path::link::{LinkConfig, QueueLimit};

    use super::*;
    use crate::engine::{BACK, FORWARD, Header};

    /// An IP packet of 1000 bytes; its transmission takes 1 ms at 8 Mbit/s.
    const PACKET: [u8; 1000] = [0; 1000];

    const HEADER: Header = Header::Apart(Ecn::NotCapable);

    fn micros(micros: i64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    /// A network of links with 8 Mbit/s, a propagation delay of 5 ms and a queue of two packets. Routes have no
    /// backward links.
    fn network(links: usize, ways: Vec<Vec<usize>>) -> Network {
        let config = LinkConfig {
            rate: Schedule::constant(Rate::from_bps(8_000_000)),
            propagation_delay: Span::from_millis(5),
            queue: QueueLimit::Packets(2),
        };
        let links: Vec<_> = (0..links).map(|_| Pipe::new(config.clone().into(), Time::ZERO, 1).unwrap()).collect();
        let offered = links.iter().map(|_| AtomicU64::new(0)).collect();
        Network::new(links, ways.into_iter().map(|way| [way, Vec::new()]).collect(), offered)
    }

    fn enter(network: &mut Network, at: Time, route: u64, bytes: &[u8]) {
        let manner = Manner::Ip(Size::from_bytes(bytes.len() as u64));
        network.stage(FORWARD, Arrival { at, manner, client: route, header: HEADER }, bytes);
    }

    /// The route and the departure time of each packet that leaves.
    fn drain(network: &mut Network) -> Vec<(u64, Time)> {
        let mut left = Vec::new();
        while let Some(departure) = network.leave(Time::MAX) {
            left.push((departure.packet.client, departure.due));
            let due = departure.due;
            network.left(departure, due);
        }
        left
    }

    #[test]
    fn a_chain_of_links_adds_their_services_and_delays() {
        let mut network = network(2, vec![vec![0, 1]]);
        enter(&mut network, micros(0), 0, &PACKET);
        assert_eq!(drain(&mut network), [(0, micros(12_000))]);
    }

    #[test]
    fn nothing_leaves_beyond_the_horizon() {
        let mut network = network(1, vec![vec![0]]);
        enter(&mut network, micros(0), 0, &PACKET);
        assert!(network.leave(micros(5_999)).is_none());
        assert_eq!(network.next(), Some(micros(6_000)));
        assert!(network.leave(micros(6_000)).is_some());
    }

    /// If this test fails, packets pass a link in the order in which the sockets are read, and not in the order of
    /// their arrival.
    #[test]
    fn ways_that_share_a_link_are_served_in_the_order_of_arrival_and_not_of_reading() {
        let mut network = network(1, vec![vec![0], vec![0]]);
        enter(&mut network, micros(300), 0, &PACKET);
        enter(&mut network, micros(100), 1, &PACKET);
        assert_eq!(drain(&mut network), [(1, micros(6_100)), (0, micros(7_100))]);
    }

    #[test]
    fn a_full_queue_drops_and_its_buffers_come_back() {
        let mut network = network(1, vec![vec![0]]);
        for _ in 0..5 {
            enter(&mut network, micros(0), 0, &PACKET);
        }
        assert_eq!(drain(&mut network).len(), 3, "one in service and two waiting");
        assert_eq!((network.held, network.spare.len(), network.in_flight()), (0, 5, 0));
        assert_eq!(network.offered[0].load(Relaxed), 5000, "dropped packets were offered, too");
    }

    /// If this test fails, the hosts' address resolution waits in the queue behind the traffic.
    #[test]
    fn what_goes_beside_the_traffic_takes_no_link() {
        let mut network = network(1, vec![vec![0]]);
        for (direction, at) in [(BACK, micros(3)), (FORWARD, micros(7))] {
            network.stage(direction, Arrival { at, manner: Manner::Beside, client: 0, header: HEADER }, &PACKET);
        }
        assert_eq!(drain(&mut network), [(0, micros(3)), (0, micros(7))]);
        assert_eq!(network.offered[0].load(Relaxed), 0);
    }

    /// If this test fails, a sample that is taken after its due time counts packets from after the due time.
    #[test]
    fn samples_are_of_their_moment_and_not_of_the_look() {
        let mut network = network(1, vec![vec![0]]);
        network.sample(micros(0), Span::from_micros(1500));
        for _ in 0..5 {
            enter(&mut network, micros(1000), 0, &PACKET);
        }
        assert!(network.leave(micros(4600)).is_none());
        let samples = network.take_samples();
        let busy = |sample: &LinkSample| sample.links[0].usage.utilisation.map(|share| (share * 1000.0).round());
        let found: Vec<_> = samples.iter().map(|sample| (sample.at, busy(sample), sample.links[0].dropped())).collect();
        let expected = [(1500, 333.0, 2), (3000, 667.0, 2), (4500, 667.0, 2)];
        assert_eq!(found, expected.map(|(at, share, dropped)| (micros(at), Some(share), dropped)));
    }

    /// If this test fails, live results have wrong waiting times, or waiting times of another packet.
    #[test]
    fn a_watcher_is_told_what_each_packet_waited_before_it_leaves() {
        let mut network = network(2, vec![vec![0, 1]]);
        let (told, heard) = std::sync::mpsc::channel();
        network.watch(Watcher::new(move |passed| {
            let number = passed.datagram.and_then(<[u8]>::first).copied();
            told.send((passed.at, passed.route, passed.is_back, passed.size, passed.waited, number)).expect("heard");
        }));
        for number in [1, 2, 3] {
            let mut packet = PACKET;
            packet[0] = number;
            enter(&mut network, micros(0), 0, &packet);
        }
        let beside = Arrival { at: micros(1), manner: Manner::Beside, client: 0, header: HEADER };
        network.stage(FORWARD, beside, &PACKET);
        assert_eq!(drain(&mut network).len(), 4);
        // At the first link, the packets wait for 0, 1 and 2 ms. They arrive at the second link 1 ms apart. Their
        // transmission there also takes 1 ms, so they do not wait again.
        let found: Vec<_> = heard.try_iter().collect();
        let expected = [(12_000, 0, 1), (13_000, 1000, 2), (14_000, 2000, 3)];
        let size = Size::from_bytes(1000);
        assert_eq!(
            found,
            expected.map(|(at, waited, number)| (micros(at), 0, false, size, Span::from_micros(waited), Some(number)))
        );
    }

    #[test]
    fn a_way_without_links_delivers_at_once() {
        let mut network = network(0, vec![vec![]]);
        enter(&mut network, micros(7), 0, &[]);
        assert_eq!(drain(&mut network), [(0, micros(7))]);
    }

    #[test]
    fn memory_is_bounded_whatever_comes_in() {
        let mut network = network(0, vec![vec![]]);
        let payload = vec![0; 65_000];
        let room = (MEMORY / (payload.len() + OVERHEAD)) as u64;
        for _ in 0..room + 3 {
            enter(&mut network, micros(0), 0, &payload);
        }
        assert_eq!((network.in_flight(), network.refused()), (room, 3));
    }
}
