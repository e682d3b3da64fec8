//! Tests of a sender whose address changes during a session, in virtual time.

use std::net::{Ipv4Addr, UdpSocket};

use super::*;
use crate::Clock;

/// Whether datagrams have arrived at `socket` since the last call.
fn came(socket: &UdpSocket) -> bool {
    std::iter::from_fn(|| socket.recv(&mut [0; 2000]).ok()).count() > 0
}

/// In this test, the address of a sender changes, as it may after a restart of a home router. If the test fails, a
/// change of address ends a session, or anybody who recorded a datagram can redirect the session.
#[test]
fn a_session_follows_its_sender_and_nobody_who_repeats_him() {
    let places = [0; 4].map(|_| {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        socket.set_nonblocking(true).expect("a socket can");
        socket
    });
    let [home @ .., stranger] = &places;
    let address = |socket: &UdpSocket| socket.local_addr().expect("bound");
    for seed in 0..20u64 {
        let socket = Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), &Clock::new()).expect("a socket");
        let key = Key::new(b"a secret of this test").expect("long enough");
        let mut state = State::new(socket, ServerConfig::new(Some(key)), Nobody);
        let mut peer = Peer::open(&mut state, address(&home[0]));
        for (change, place) in home.iter().cycle().enumerate().take(12) {
            peer.address = address(place);
            // Each change of the address is at a different time within a report interval.
            peer.send(&mut state, REPORTS + Span::from_millis((seed * 37 + change as u64 * 61).rem_euclid(200) as i64));
            assert_eq!(state.live[&SSRC].session.peer, peer.address, "seed {seed}, change {change}");
            let last = peer.last.clone();
            state.hear(peer.now, address(stranger), &last).expect("the server goes on");
            assert_eq!(state.live[&SSRC].session.peer, peer.address, "seed {seed}, change {change}");
            peer.send(&mut state, REPORTS * 2);
            assert!(came(place), "seed {seed}, change {change}: reports reach the sender where it is");
        }
        assert_eq!((state.live.len(), state.opened), (1, 1), "it is the same session");
        assert!(!came(stranger));
    }
}
