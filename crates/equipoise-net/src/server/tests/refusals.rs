//! A kernel that refuses to send.

use std::net::Ipv4Addr;

use super::*;
use crate::Clock;
use crate::socket::every_errno;

/// If it fails, whoever can make the kernel refuse an answer (a null route, a firewall, a strange address) ends the server.
#[test]
fn no_error_of_sending_ends_a_server_or_its_session() {
    let clock = Clock::new();
    let any = (Ipv4Addr::LOCALHOST, 0).into();
    let from = Socket::bind(any, &clock).expect("a socket").address();
    let socket = Socket::bind(any, &clock).expect("a socket");
    let mut state = State::new(socket, ServerConfig::new(None), Nobody);
    let mut peer = Peer::open(&mut state, from);
    for errno in every_errno() {
        let before = state.socket.stats().unsent;
        state.socket.kernel_says = Some(errno);
        // A Retry, an Accept and a report, for which a sender that hears none asks the more rarely, up to eight intervals apart.
        let now = peer.now;
        assert!(peer.caller.call(&mut state, now), "it hears them all the same");
        peer.send(&mut state, REPORTS * 9);
        let unsent = state.socket.stats().unsent - before;
        assert!(unsent >= 3, "{errno}: {unsent} answers were tried");
        assert!(state.live.contains_key(&SSRC), "{errno}");
    }
    state.socket.kernel_says = None;
    let before = state.socket.stats().unsent;
    peer.send(&mut state, REPORTS * 9);
    assert_eq!(state.socket.stats().unsent, before, "reports leave again");
}
