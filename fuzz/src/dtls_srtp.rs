use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::OnceLock;

use equipoise::units::Span;
use equipoise_net::dtls_srtp::{Arrival, DtlsSrtp, Identity, PeerConfig, Setup};
use equipoise_net::{Clock, Time};

/// Runs two endpoints of DTLS-SRTP, and changes, drops, repeats and inserts datagrams between them.
///
/// The input is a list of operations: a datagram arrives or is lost; arbitrary bytes arrive; time passes; an endpoint
/// is restarted or closed; an endpoint protects and sends a packet with arbitrary header fields. A datagram may arrive
/// damaged, truncated, extended, twice, or from a wrong address.
///
/// # Panics
/// If an endpoint panics, if an endpoint has too many handshakes in progress, or if an endpoint delivers a packet that
/// its peer has not sent.
pub fn dtls_srtp(mut operations: &[u8]) {
    let mut ends = Ends::new();
    while let Some((&operation, after)) = operations.split_first() {
        operations = ends.step(operation, after);
        for end in &ends.both {
            assert!(end.half_open() <= 41, "{} handshakes", end.half_open());
        }
    }
}

/// Returns the certificates of the two endpoints. The certificates are created only once, because their creation takes
/// longer than most runs.
fn identities() -> &'static [Identity; 2] {
    static IDENTITIES: OnceLock<[Identity; 2]> = OnceLock::new();
    IDENTITIES.get_or_init(|| [Identity::generate(), Identity::generate()])
}

fn place(end: usize) -> SocketAddr {
    (Ipv4Addr::new(192, 0, 2, 1 + end as u8), 5000).into()
}

/// Creates an endpoint that starts at `now`: endpoint 0 is active, endpoint 1 is passive.
fn end(end: usize, now: Time) -> DtlsSrtp {
    let [ours, theirs] = [end, 1 - end].map(|at| &identities()[at]);
    let setup = if end == 0 { Setup::Active } else { Setup::Passive };
    let peer = PeerConfig { address: place(1 - end), fingerprint: *theirs.fingerprint(), setup };
    DtlsSrtp::new(peer, ours.clone(), now).expect("a port")
}

struct Ends {
    both: [DtlsSrtp; 2],
    now: Time,
    /// Datagrams in flight to each endpoint.
    under_way: [VecDeque<Vec<u8>>; 2],
    /// Packets that each endpoint has protected and sent.
    said: [Vec<Vec<u8>>; 2],
}

impl Ends {
    fn new() -> Self {
        let now = Clock::new().now();
        let mut ends =
            Self { both: [end(0, now), end(1, now)], now, under_way: Default::default(), said: Default::default() };
        ends.flush();
        ends
    }

    fn flush(&mut self) {
        for at in 0..2 {
            while let Some((to, datagram)) = self.both[at].poll() {
                assert_eq!(to, place(1 - at), "it speaks to somebody else");
                self.under_way[1 - at].push_back(datagram);
            }
            // The newest datagrams are dropped if more than 64 are in flight in one direction.
            self.under_way[1 - at].truncate(64);
        }
    }

    fn arrive(&mut self, at: usize, from: SocketAddr, datagram: &[u8]) {
        let mut plain = Vec::new();
        let arrival = self.both[at].handle(self.now, from, datagram, &mut plain);
        match arrival {
            Arrival::Rtp | Arrival::Rtcp => assert!(self.said[1 - at].contains(&plain), "nobody has said {plain:02X?}"),
            Arrival::Handshake | Arrival::Ignored(_) => assert!(plain.is_empty()),
        }
        self.flush();
    }

    /// Executes one operation, and removes its arguments from the front of the input.
    fn step<'a>(&mut self, operation: u8, rest: &'a [u8]) -> &'a [u8] {
        let at = usize::from(operation & 1);
        let (argument, after) = rest.split_first().map_or((0, rest), |(first, after)| (*first, after));
        let (noise, left) = after.split_at(usize::from(argument).min(after.len()));
        match operation >> 4 {
            // All datagrams in flight arrive, and so do the answers to these datagrams.
            0..=2 => {
                for turn in 0..12 {
                    let at = (turn + at) % 2;
                    for datagram in std::mem::take(&mut self.under_way[at]) {
                        self.arrive(at, place(1 - at), &datagram);
                    }
                }
                return rest;
            }
            // The next datagram arrives unchanged, damaged, truncated, extended, twice or from another address, or it
            // is lost.
            3..=8 => {
                let Some(mut datagram) = self.under_way[at].pop_front() else { return after };
                let mut from = place(1 - at);
                match operation >> 1 & 7 {
                    0 => {}
                    1 => {
                        let length = datagram.len();
                        datagram[usize::from(argument) % length] ^= operation >> 4 | 1;
                    }
                    2 => datagram.truncate(usize::from(argument)),
                    3 => self.arrive(at, from, &datagram),
                    4 => from.set_port(u16::from(argument)),
                    5 => from.set_ip(Ipv4Addr::new(198, 51, 100, argument).into()),
                    6 => datagram.extend_from_slice(noise),
                    _ => return after,
                }
                self.arrive(at, from, &datagram);
            }
            9 | 10 => {
                self.arrive(at, place(1 - at), noise);
                return left;
            }
            11 => {
                self.now = self.now + Span::from_nanos(i64::from(argument) << 25);
                self.both.iter_mut().for_each(|end| end.on_timer(self.now));
                self.flush();
            }
            12 => self.both[at] = end(at, self.now),
            13 => self.both[at].close(self.now),
            _ => {
                // The fields of the header may contradict the content of the packet.
                let head = [0x80 | operation & 0x0F, argument, 0, argument, 0, 0, 0, 1, 0, 0, 0, operation & 3];
                let packet = [&head[..], noise].concat();
                let mut wire = Vec::new();
                if self.both[at].protect(&packet, &mut wire).is_ok() {
                    self.said[at].push(packet);
                    self.under_way[1 - at].push_back(wire);
                }
                return left;
            }
        }
        after
    }
}
