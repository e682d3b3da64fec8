//! A kernel that refuses to send.

use equipoise::control::Cbr;
use equipoise::session::rtp::{Delays, Sender, SenderConfig, StreamConfig};
use equipoise::session::{Endpoint as _, Input, Output};
use equipoise::units::Rate;

use super::super::*;
use crate::Clock;
use crate::socket::every_errno;

const SSRC: u32 = 7;
const REPORTS: Span = Span::from_millis(100);

/// A sender in virtual time, whose datagrams are handed to a server as if they had come over a network.
struct Peer {
    sender: Sender,
    now: Time,
    address: SocketAddr,
}

impl Peer {
    fn new(now: Time, address: SocketAddr) -> Self {
        let stream = StreamConfig::new(SSRC, 96, Size::from_bytes(1000), "s");
        let config =
            SenderConfig { delays: Delays::Queueing, ..SenderConfig::new(stream, REPORTS, now.assume_clock(), 1) };
        let controller = Box::new(Cbr::new(Rate::from_bps(1_000_000)));
        Self { sender: Sender::new(config, controller).expect("a valid configuration"), now, address }
    }

    /// Sends to `state` for three report intervals.
    fn send<V: Visitor>(&mut self, state: &mut State<V>) {
        let end = self.now + REPORTS * 3;
        while self.now < end {
            self.now = self.sender.wake().map_or(end, |wake| wake.at.assume_clock());
            self.sender.handle(self.now.assume_clock(), Input::Timer);
            while let Some(output) = self.sender.poll() {
                if let Output::Transmit(transmit) = output {
                    let mut whole = transmit.head.to_vec();
                    whole.resize(transmit.len(), 0);
                    state.on_datagram(self.now, self.address, &whole).expect("the server goes on");
                }
            }
        }
    }
}

/// If it fails, whoever can make the kernel refuse an answer (a null route, a firewall, a strange address) ends the server.
#[test]
fn no_error_of_sending_ends_a_server_or_its_session() {
    struct Nobody;
    impl Visitor for Nobody {}

    let clock = Clock::new();
    let socket = Socket::bind((std::net::Ipv4Addr::LOCALHOST, 0).into(), &clock).expect("a socket");
    let from = Socket::bind((std::net::Ipv4Addr::LOCALHOST, 0).into(), &clock).expect("a socket").address();
    let mut state = State::new(socket, ServerConfig::new(None), Nobody);
    let now = clock.now();
    let open = |cookie| Open {
        nonce: [1; 16],
        cookie,
        ssrc: SSRC,
        payload: Payload::Generated,
        secure: false,
        several: false,
    };
    let question = Message::Open(open([0; 16])).encode(None);
    let cookie = state.jar.bake(from, &open([0; 16]), now.as_nanos() / 1_000_000_000);
    let proved = Message::Open(open(cookie)).encode(None);
    state.on_datagram(now, from, &proved).expect("a session");
    let mut peer = Peer::new(now, from);
    for errno in every_errno() {
        let before = state.socket.stats().unsent;
        state.socket.kernel_says = Some(errno);
        // A Retry, an Accept and reports.
        for message in [&question, &proved] {
            state.on_datagram(peer.now, from, message).expect("the server goes on");
        }
        peer.send(&mut state);
        let unsent = state.socket.stats().unsent - before;
        assert!(unsent >= 3, "{errno}: {unsent} answers were tried");
        assert!(state.live.contains_key(&SSRC), "{errno}");
    }
    state.socket.kernel_says = None;
    let before = state.socket.stats().unsent;
    peer.send(&mut state);
    assert_eq!(state.socket.stats().unsent, before, "reports leave again");
}
