use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use equipoise::units::Size;
use equipoise_pair::tpba::Period;
use equipoise_pair::wire::PairHello;

use super::PairState;
use super::connection::{Connection, idle_window};
use super::hello::{self, Link, Opened};
use crate::{Clock, NetError, Socket};

/// The open TCP and UDP flows of a sender.
pub(super) struct Open {
    pub(super) socket: Socket,
    pub(super) tcp: Connection,
    /// The peer's TCP address; `local` is the local TCP address.
    pub(super) peer: SocketAddr,
    pub(super) local: SocketAddr,
    /// The first message (hello) of the receiver.
    pub(super) receiver: PairHello,
    pub(super) state: Arc<Mutex<PairState>>,
}

/// Opens the TCP and UDP flows to the receiver at `peer`. The RTP packets will have this SSRC.
pub(super) fn open(peer: SocketAddr, link: &Link, clock: &Clock, ssrc: u32) -> Result<Open, NetError> {
    let Opened { stream, socket, receiver } = hello::open(peer, link, clock, ssrc)?;
    let local = stream.local_addr().unwrap_or(socket.address());
    let tcp = Connection::new(stream, link.window_control.clone())?;
    let state = PairState {
        period: Period::Probing,
        rate: None,
        window: Size::ZERO,
        running_periods: 0,
        window_preset: tcp.preset(),
        idle_window: idle_window(),
        congestion_control: tcp.congestion_control(),
        ended_by_peer: false,
    };
    Ok(Open { socket, tcp, peer, local, receiver, state: Arc::new(Mutex::new(state)) })
}

/// Returns a copy of the current state.
pub(super) fn last(state: &Mutex<PairState>) -> PairState {
    state.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
