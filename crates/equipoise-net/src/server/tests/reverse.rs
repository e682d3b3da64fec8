//! Tests of sessions in which the server sends media, in virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

use equipoise_session::feedback::{Format, Reporting};
use equipoise_session::rtp::Receiver;
use equipoise_session::wire::is_rtcp;
use nix::errno::Errno;

use super::*;
use crate::Clock;
use crate::secure::Wanted;
use crate::socket::Overheard;

const MEGABIT: u64 = 1_000_000;

fn rate(bps: u64) -> Rate {
    Rate::from_bps(bps)
}

/// The request of a peer that wants to receive media. It includes per-packet feedback if the rate may vary.
fn asked_for(key: Option<Key>, ssrc: u32, wanted: Wanted) -> Asked {
    let interval = Reporting::INTERVAL;
    let reporting = Some(Reporting { format: Format::TransportWide, interval }).filter(|_| !wanted.is_constant());
    Asked { key, ssrc, payload: Payload::Generated, reporting, several: false, wanted: Some(wanted) }
}

/// A request for media at a rate between `min` and `max` Mbit/s, with reports every 200 ms.
fn wanted(min: u64, max: u64) -> Wanted {
    let wanted = Wanted::new(rate(min * MEGABIT), rate(max * MEGABIT)).expect("rates");
    wanted.reported_every(Span::from_millis(200)).expect("an interval")
}

fn key() -> Key {
    Key::new(b"a secret of this test").expect("long enough")
}

/// A server that may send media at `limit` Mbit/s in total. Every attempt to send fails, as if the kernel had refused
/// the datagram. The tests record each refused datagram and deliver it themselves.
fn state(key: Option<Key>, limit: u64) -> State<Nobody> {
    let mut socket = Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), &Clock::new()).expect("a socket");
    socket.kernel_says = Some(Errno::EPERM);
    State::new(socket, ServerConfig { reverse_limit: rate(limit * MEGABIT), ..ServerConfig::new(key) }, Nobody)
}

fn address(host: u8) -> SocketAddr {
    (Ipv4Addr::new(192, 0, 2, host), 5000).into()
}

/// A peer that requests media from the server. A datagram takes 10 ms in each direction.
struct Listener {
    caller: Caller,
    receiver: Receiver,
    from: SocketAddr,
    now: Time,
    /// Number of bytes that the server has sent to each address.
    sent: BTreeMap<SocketAddr, u64>,
    /// Datagrams in flight to the peer, each with arrival time, destination and bytes.
    under_way: VecDeque<(Time, SocketAddr, Vec<u8>)>,
    /// Datagrams in flight to the server, each with arrival time, source and bytes.
    back: VecDeque<(Time, SocketAddr, Vec<u8>)>,
    /// Whether the peer has stopped sending.
    is_silent: bool,
}

const WAY: Span = Span::from_millis(10);

impl Listener {
    /// Opens a session. Returns the peer, or the reason of the refusal.
    fn open(state: &mut State<Nobody>, ssrc: u32, wanted: Wanted) -> Result<Self, Option<Refusal>> {
        let (now, from) = (state.socket.clock().now(), address(1));
        let asked = asked_for(state.config.key.clone(), ssrc, wanted);
        let reporting = asked.reporting;
        let mut caller = Caller::new(Opening::new(asked), from);
        if !caller.call(state, now) {
            return Err(caller.refused);
        }
        let config = ReceiverConfig { reporting, ..state.config.receiver(ssrc, caller.reports) };
        let receiver = Receiver::new(config).expect("a configuration");
        let (sent, under_way, back) = (BTreeMap::new(), VecDeque::new(), VecDeque::new());
        Ok(Self { caller, receiver, from, now, sent, under_way, back, is_silent: false })
    }

    /// Runs the peer and the server for the time `span`, in steps of 1 ms.
    fn run(&mut self, state: &mut State<Nobody>, span: Span) {
        let end = self.now + span;
        while self.now < end {
            self.now = self.now + Span::from_millis(1);
            state.socket.overheard = Some(Box::default());
            state.ring(self.now);
            while let Some((_, from, bytes)) = self.back.pop_front_if(|(at, ..)| *at <= self.now) {
                state.hear(self.now, from, &bytes).expect("the server goes on");
            }
            self.take_up(state);
            self.receiver.handle(self.now.assume_clock(), Input::Timer);
            self.answer();
            while let Some((_, to, bytes)) = self.under_way.pop_front_if(|(at, ..)| *at <= self.now) {
                let mut plain = Vec::new();
                if to == self.from && self.caller.protection.unprotect(&bytes, self.caller.reports, &mut plain) {
                    self.receiver.handle(self.now.assume_clock(), Input::datagram(&plain));
                    self.answer();
                }
            }
        }
    }

    /// Takes the datagrams that the server has just sent, and puts them into flight to the peer.
    fn take_up(&mut self, state: &mut State<Nobody>) {
        let Overheard(said) = *state.socket.overheard.take().unwrap_or_default();
        for (to, bytes) in said {
            *self.sent.entry(to).or_default() += bytes.len() as u64;
            self.under_way.push_back((self.now + WAY, to, bytes));
        }
    }

    /// Puts the waiting reports of the peer into flight to the server.
    fn answer(&mut self) {
        while let Some(output) = self.receiver.poll() {
            let mut wire = Vec::new();
            if let Output::Transmit { transmit, .. } = output
                && self.caller.protection.protect(transmit.head, &mut wire)
                && !self.is_silent
            {
                assert!(is_rtcp(transmit.head), "who is sent to reports, and sends nothing else");
                self.back.push_back((self.now + WAY, self.from, wire));
            }
        }
    }

    /// Returns the number of bytes that the server has sent to an address since the last call.
    fn came_to(&mut self, to: SocketAddr) -> u64 {
        self.sent.remove(&to).unwrap_or_default()
    }
}

/// If this test fails, the server exceeds the rate that the peer requests or the server's rate limit, or the server
/// ignores per-packet feedback.
#[test]
fn a_peer_is_sent_to_at_a_rate_that_its_reports_carry_within_both_limits() {
    for (key, limit, highest) in [(Some(key()), 100, 8.0), (Some(key()), 3, 3.0), (None, 100, 8.0)] {
        let mut state = state(key, limit);
        let mut peer = Listener::open(&mut state, SSRC, wanted(1, 8)).expect("a session");
        peer.run(&mut state, Span::from_secs(1));
        let first = peer.came_to(address(1));
        peer.run(&mut state, Span::from_secs(19));
        peer.came_to(address(1));
        peer.run(&mut state, Span::from_secs(5));
        let mbps = |bytes: u64, seconds: u64| bytes as f64 * 8.0 / 1e6 / seconds as f64;
        let (first, last) = (mbps(first, 1), mbps(peer.came_to(address(1)), 5));
        assert!(first < last && last > 0.6 * highest && last < 1.05 * highest, "{first} {last} {limit}");
    }
}

/// If this test fails, anybody with the key, or with a recorded datagram of a session, can make the server send media
/// to another host.
#[test]
fn media_goes_to_the_address_that_was_proved_and_to_no_other() {
    for key in [Some(key()), None] {
        let is_secure = key.is_some();
        let mut state = state(key, 100);
        let mut peer = Listener::open(&mut state, SSRC, wanted(2, 2)).expect("a session");
        peer.run(&mut state, Span::from_secs(3));
        assert!(peer.came_to(address(1)) > 600_000);
        // Authentic packets arrive from another address: the peer has a new address, or wants to flood another host.
        peer.from = address(2);
        peer.run(&mut state, Span::from_secs(3));
        assert_eq!(peer.came_to(address(2)), 0);
        let to_the_first = peer.came_to(address(1));
        assert!(to_the_first < 700_000, "{to_the_first}: silence counts as silence");
        // With a new handshake, the peer proves that it receives packets at the new address.
        let before = peer.caller.reports;
        peer.caller.from = address(2);
        let now = peer.now;
        let is_open = peer.caller.call(&mut state, now);
        if !is_secure {
            // Without a key, the server cannot know who sends this request, so nobody may take over the session.
            assert_eq!((is_open, peer.caller.refused), (false, Some(Refusal::SourceInUse)));
            continue;
        }
        assert!(is_open && peer.caller.reports == before, "it is the same session");
        peer.run(&mut state, Span::from_secs(5));
        assert!(peer.came_to(address(2)) > 100_000);
        assert_eq!((state.opened, peer.came_to(address(1))), (1, 0));
    }
}

/// If the test fails, the server never stops sending at the full rate to a peer that has disappeared.
#[test]
fn a_peer_that_falls_silent_is_sent_less_and_less_and_then_nothing() {
    let mut state = state(Some(key()), 100);
    let mut peer = Listener::open(&mut state, SSRC, wanted(4, 4)).expect("a session");
    peer.run(&mut state, Span::from_secs(3));
    peer.is_silent = true;
    peer.came_to(address(1));
    peer.run(&mut state, Span::from_secs(5));
    let first = peer.came_to(address(1));
    peer.run(&mut state, Span::from_secs(20));
    let then = peer.came_to(address(1));
    // At the full rate, the server would send 2.5 MB in 5 s.
    assert!(first < 600_000 && then < 100_000, "{first} bytes, then {then}");
    peer.run(&mut state, Span::from_secs(10));
    peer.came_to(address(1));
    assert!(state.live.is_empty(), "it is given up after 30 s");
    peer.run(&mut state, Span::from_secs(2));
    assert_eq!((peer.came_to(address(1)), state.timers.len()), (0, 0));
}

#[test]
fn who_may_not_be_sent_to_is_told_why() {
    let refused = |state: &mut State<Nobody>, ssrc: u32, wanted: Wanted| {
        let opened = Listener::open(state, ssrc, wanted);
        opened.err().expect("no session").expect("a reason")
    };
    for key in [Some(key()), None] {
        let mut none = state(key.clone(), 0);
        assert_eq!(refused(&mut none, 1, wanted(1, 2)), Refusal::SendsNothing);
        let mut some = state(key, 5);
        assert!(Listener::open(&mut some, 1, wanted(1, 3)).is_ok());
        // Only 2 Mbit/s of the server's limit of 5 Mbit/s are unused.
        assert_eq!(refused(&mut some, 2, wanted(3, 3)), Refusal::SendsEnough);
        assert!(Listener::open(&mut some, 3, wanted(1, 100)).is_ok());
        assert_eq!(refused(&mut some, 4, wanted(1, 1)), Refusal::SendsEnough);
        // When a session ends, its rate is available to other sessions.
        some.end(1, End::Goodbye);
        assert!(Listener::open(&mut some, 5, wanted(1, 3)).is_ok());
        some.end(3, End::Goodbye);
        let tiny = wanted(1, 1).in_packets_of(Size::from_bytes(40)).expect("it has its place");
        assert_eq!(refused(&mut some, 6, tiny), Refusal::Impossible);
        assert_eq!(some.live.len(), 1);
    }
}

#[test]
fn a_goodbye_of_either_end_ends_a_session_that_the_server_sends_in() {
    let mut state = state(Some(key()), 100);
    let mut peer = Listener::open(&mut state, SSRC, wanted(1, 2)).expect("a session");
    peer.run(&mut state, Span::from_secs(1));
    let now = peer.now;
    peer.receiver.handle(now.assume_clock(), Input::Stop);
    peer.answer();
    peer.run(&mut state, WAY * 2);
    assert!(state.live.is_empty() && state.timers.is_empty());
    let mut peer = Listener::open(&mut state, SSRC + 1, wanted(1, 2)).expect("a session");
    peer.run(&mut state, Span::from_secs(1));
    state.socket.overheard = Some(Box::default());
    state.step(peer.now, SSRC + 1, Input::Stop);
    peer.take_up(&mut state);
    peer.run(&mut state, WAY * 2);
    assert!(peer.receiver.wake().is_none(), "it has heard the goodbye");
}

/// If this test fails, a sender can turn its session into a session in which the server sends media. The sender's
/// second request has the address, the key and the certificate of the first request. Only the direction differs.
#[test]
fn a_session_keeps_its_direction() {
    for key in [Some(key()), None] {
        let mut state = state(key.clone(), 100);
        let mut peer = Peer::open(&mut state, address(1));
        let now = peer.now;
        assert!(peer.caller.call(&mut state, now), "it may open its session again");
        peer.caller.ask_instead(asked_for(key, SSRC, wanted(1, 2)));
        assert!(!peer.caller.call(&mut state, now));
        assert_eq!((peer.caller.refused, state.live.len()), (Some(Refusal::SourceInUse), 1));
    }
}
