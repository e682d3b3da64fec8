//! Tests of a kernel that refuses to send, and of a server that refuses a session.

use std::net::Ipv4Addr;

use equipoise_session::feedback::{Format, Reporting};

use super::*;
use crate::Clock;
use crate::socket::every_errno;

/// If this test fails, anybody who can make the server's kernel refuse an answer (by a null route, a firewall or a
/// special address) can end the server.
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
        // A sender that receives no reports requests them less often, but at least once in eight report intervals.
        // Therefore the server sends at least three answers in nine report intervals: a Retry message, an Accept
        // message and a report.
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

/// If this test fails, another host with the shared key can take over a session. The host starts a handshake for the
/// same SSRC before the session is opened, and continues this handshake afterwards.
#[test]
fn of_two_who_open_a_session_of_one_source_the_first_to_have_keys_has_it() {
    let clock = Clock::new();
    let any = (Ipv4Addr::LOCALHOST, 0).into();
    let addresses = [(); 2].map(|()| Socket::bind(any, &clock).expect("a socket").address());
    let key = Key::new(b"0123456789abcdef").expect("long enough");
    let socket = Socket::bind(any, &clock).expect("a socket");
    let mut state = State::new(socket, ServerConfig::new(Some(key.clone())), Nobody);
    let mut thief = Caller::new(Opening::new(asked(Some(key))), addresses[1]);
    let now = state.socket.clock().now();
    thief.begin(now);
    assert!(!thief.talk(&mut state, now, 2), "its handshake has begun");
    let mut peer = Peer::open(&mut state, addresses[0]);
    assert!(!thief.talk(&mut state, now, 16));
    assert_eq!(thief.refused, Some(Refusal::SourceInUse));
    peer.send(&mut state, REPORTS);
    let live = state.live.get(&SSRC).expect("it lives");
    assert!(live.next.is_none() && live.session.peer == addresses[0], "the session is whose it was");
}

/// If this test fails, anybody can end the server by requesting an impossible session.
#[test]
fn a_session_that_cannot_be_reported_on_is_refused_and_the_server_goes_on() {
    let any = (Ipv4Addr::LOCALHOST, 0).into();
    for key in [Some(Key::new(b"0123456789abcdef").expect("long enough")), None] {
        let socket = Socket::bind(any, &Clock::new()).expect("a socket");
        let from = Socket::bind(any, &Clock::new()).expect("a socket").address();
        let mut state = State::new(socket, ServerConfig::new(key.clone()), Nobody);
        let now = state.socket.clock().now();
        for (format, is_open) in [(Format::TransportWide, false), (Format::CongestionFeedback, true)] {
            let reporting = Some(Reporting { format, interval: Reporting::INTERVAL });
            let asked = Asked { reporting, several: true, ..asked(key.clone()) };
            let mut caller = Caller::new(Opening::new(asked), from);
            assert_eq!(caller.call(&mut state, now), is_open, "{format:?}");
            assert_eq!(caller.refused, (!is_open).then_some(Refusal::Impossible));
        }
    }
}
