//! Tests with real sockets over the loopback interface. They check the order of events, and limits that are met even if
//! the machine stalls.

mod bridge;
mod clock;
mod driver;
mod dtls_srtp;
mod duplex;
mod emulator;
mod fetch;
mod flow_pair;
mod media;
mod multipath;
mod port_zero;
mod rtp;
mod sessions;
mod socket;

use std::net::{Ipv4Addr, SocketAddr};

use equipoise::units::Span;
use equipoise_net::{Clock, Received, Socket};

/// Time limit for an event; longer than any stall of the machine. An event that has not happened within this time will
/// never happen.
const PATIENCE: Span = Span::from_secs(10);

/// Opens a socket on a free port of 127.0.0.1, and gives the kernel time to turn on its timestamps.
fn socket(clock: &Clock) -> Socket {
    let socket = Socket::bind(any_port(), clock).expect("127.0.0.1 has a free port");
    clock.sleep_until(clock.now() + Span::from_millis(100));
    socket
}

fn any_port() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// Calls `done` every millisecond until it returns true. Returns whether this happened within [`PATIENCE`].
fn eventually(clock: &Clock, mut done: impl FnMut() -> bool) -> bool {
    let give_up = clock.now() + PATIENCE;
    while !done() {
        if clock.now() > give_up {
            return false;
        }
        clock.sleep_until(clock.now() + Span::from_millis(1));
    }
    true
}

/// Waits for `count` datagrams. Returns fewer only if no more datagrams arrive.
fn receive(socket: &mut Socket, count: usize) -> Vec<(Received, Vec<u8>)> {
    let clock = socket.clock().clone();
    let mut buffer = [0; 2048];
    let mut all = Vec::new();
    eventually(&clock, || {
        while let Some(received) = socket.recv(&mut buffer).expect("the socket receives") {
            all.push((received, buffer[..received.len].to_vec()));
        }
        all.len() >= count
    });
    all
}

fn median(mut spans: Vec<Span>) -> Span {
    spans.sort_unstable();
    spans[spans.len() / 2]
}
