mod addresses;
mod refusals;
mod reverse;
mod thousand;

use equipoise::control::Cbr;
use equipoise::units::Rate;
use equipoise_session::rtp::{Delays, Sender, SenderConfig, StreamConfig};
use equipoise_session::{Endpoint as _, Input, Output};

use super::caller::Caller;
use super::*;
use crate::secure::opening::{Asked, Opening};

const SSRC: u32 = 7;
const REPORTS: Span = Span::from_millis(100);
/// An observer that ignores all events.
struct Nobody;

impl SessionObserver for Nobody {}

/// The sender's request for a session without special options.
fn asked(key: Option<Key>) -> Asked {
    Asked { key, ssrc: SSRC, payload: Payload::Generated, reporting: None, several: false, wanted: None }
}

/// A sender in virtual time. Its datagrams are passed to a server as if they had arrived over a network.
struct Peer {
    sender: Sender,
    caller: Caller,
    now: Time,
    address: SocketAddr,
    /// The last datagram that the sender sent.
    last: Vec<u8>,
}

impl Peer {
    /// Opens a session from `address` with the server `state`.
    fn open<V: SessionObserver>(state: &mut State<V>, address: SocketAddr) -> Self {
        let now = state.socket.clock().now();
        let mut caller = Caller::new(Opening::new(asked(state.config.key.clone())), address);
        assert!(caller.call(state, now), "no session");
        let stream = StreamConfig::new(SSRC, 96, Size::from_bytes(1000), "s");
        let config =
            SenderConfig { delays: Delays::Queueing, ..SenderConfig::new(stream, REPORTS, now.assume_clock(), 1) };
        let sender = Sender::new(config, Box::new(Cbr::new(Rate::from_bps(1_000_000)))).expect("a configuration");
        Self { sender, caller, now, address, last: Vec::new() }
    }

    /// Lets the sender send to the server `state` for the time `span`.
    fn send<V: SessionObserver>(&mut self, state: &mut State<V>, span: Span) {
        let end = self.now + span;
        while self.now < end {
            self.now = self.sender.wake().map_or(end, |wake| wake.at.assume_clock());
            self.sender.handle(self.now.assume_clock(), Input::Timer);
            while let Some(output) = self.sender.poll() {
                if let Output::Transmit { transmit, .. } = output {
                    let mut whole = transmit.head.to_vec();
                    whole.resize(transmit.len(), 0);
                    assert!(self.caller.protection.protect(&whole, &mut self.last));
                    state.hear(self.now, self.address, &self.last).expect("the server goes on");
                }
            }
        }
    }
}
