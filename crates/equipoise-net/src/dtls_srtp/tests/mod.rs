//! Tests of two endpoints in virtual time, over a network that the test controls, and tests with other implementations.

mod description;
mod interop;
mod openings;
mod packets;
mod traps;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;

use equipoise::units::Span;

use super::*;
use crate::Time;

const START: Time = Time::from_nanos(1_700_000_000_000_000_000);
const WAY: Span = Span::from_millis(10);

fn place(end: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, end as u8 + 1], 5000))
}

/// An RTP packet with a payload.
fn media(ssrc: u32, sequence: u16) -> Vec<u8> {
    let mut packet = vec![0x80, 96];
    packet.extend_from_slice(&sequence.to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0, 1]);
    packet.extend_from_slice(&ssrc.to_be_bytes());
    packet.extend_from_slice(b"secret media");
    packet
}

/// A receiver report without report blocks.
fn report(ssrc: u32) -> Vec<u8> {
    [&[0x80, 201, 0, 1][..], &ssrc.to_be_bytes()].concat()
}

/// A datagram in flight: its arrival time, its number, the index of the receiving endpoint, its source address, its
/// bytes.
type UnderWay = (Time, u64, usize, SocketAddr, Vec<u8>);
/// The copies of a datagram that the network delivers. Each copy has a delay, which is added to the minimum delay.
type Copies = Vec<(Span, Vec<u8>)>;

/// The active endpoint, the passive endpoint, and a function that decides what the network does with each datagram.
struct Ends<F> {
    now: Time,
    both: [DtlsSrtp; 2],
    network: F,
    under_way: BinaryHeap<Reverse<UnderWay>>,
    count: u64,
    /// Number of bytes that each endpoint has sent.
    sent: [usize; 2],
}

fn straight(_: usize, bytes: &[u8]) -> Copies {
    vec![(Span::ZERO, bytes.to_vec())]
}

impl<F: FnMut(usize, &[u8]) -> Copies> Ends<F> {
    fn new(network: F) -> Self {
        let identities = [Identity::generate(), Identity::generate()];
        let peer = |end: usize, setup| PeerConfig {
            address: place(1 - end),
            fingerprint: *identities[1 - end].fingerprint(),
            setup,
        };
        let end = |end: usize, setup| {
            DtlsSrtp::new(peer(end, setup), identities[end].clone(), START).expect("a configuration")
        };
        let both = [end(0, Setup::Active), end(1, Setup::Passive)];
        Self { now: START, both, network, under_way: BinaryHeap::new(), count: 0, sent: [0; 2] }
    }

    fn flush(&mut self) {
        for at in 0..2 {
            while let Some((to, bytes)) = self.both[at].poll() {
                self.sent[at] += bytes.len();
                assert_eq!(to, place(1 - at), "nothing goes elsewhere");
                for (late, bytes) in (self.network)(1 - at, &bytes) {
                    self.count += 1;
                    self.under_way.push(Reverse((self.now + WAY + late, self.count, 1 - at, place(at), bytes)));
                }
            }
        }
    }

    fn run(&mut self, span: Span) {
        let end = self.now + span;
        let mut plain = Vec::new();
        loop {
            self.both.iter_mut().for_each(|it| it.on_timer(self.now));
            self.flush();
            let datagram = self.under_way.peek().map(|Reverse((at, ..))| *at);
            let timers = self.both.iter().filter_map(DtlsSrtp::wake).map(|at| at.max(self.now + Span::from_micros(1)));
            let Some(next) = timers.chain(datagram).min().filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            if datagram.is_some_and(|at| at <= self.now)
                && let Some(Reverse((_, _, at, from, bytes))) = self.under_way.pop()
            {
                self.both[at].handle(self.now, from, &bytes, &mut plain);
                self.flush();
            }
        }
        self.now = end;
    }

    /// Runs both endpoints until they are open, for at most `most`. Returns the time since [`START`]; `None` if they
    /// did not open.
    fn open(&mut self, most: Span) -> Option<Span> {
        let end = self.now + most;
        while self.now < end && !self.are_open() {
            self.run(Span::from_millis(1));
        }
        self.are_open().then(|| self.now - START)
    }

    fn are_open(&self) -> bool {
        let keys = self.both.each_ref().map(|end| end.keys().map(|keys| keys.material().to_vec()));
        keys[0].is_some() && keys[0] == keys[1]
    }

    /// Whether a packet that the endpoint number `end` protects arrives unchanged at the other endpoint.
    fn passes(&mut self, end: usize, packet: &[u8]) -> bool {
        let (mut wire, mut plain) = (Vec::new(), Vec::new());
        self.both[end].protect(packet, &mut wire).expect("it is open");
        let arrival = self.both[1 - end].handle(self.now, place(end), &wire, &mut plain);
        matches!(arrival, Arrival::Rtp | Arrival::Rtcp) && plain == packet
    }
}
