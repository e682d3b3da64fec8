mod addresses;
mod refusals;
mod thousand;

use equipoise::control::Cbr;
use equipoise::units::Rate;
use equipoise_session::rtp::{Delays, Sender, SenderConfig, StreamConfig};
use equipoise_session::{Endpoint as _, Input, Output};

use super::*;

const SSRC: u32 = 7;
const REPORTS: Span = Span::from_millis(100);
const OPEN: Open =
    Open { nonce: [1; 16], cookie: [0; 16], ssrc: SSRC, payload: Payload::Generated, secure: false, several: false };

/// Sees nothing.
struct Nobody;

impl SessionObserver for Nobody {}

/// A sender in virtual time, whose datagrams are handed to a server as if they had come over a network.
struct Peer {
    sender: Sender,
    protection: Protection,
    now: Time,
    address: SocketAddr,
    /// What it sent last.
    last: Vec<u8>,
}

impl Peer {
    /// One whose session, from `address`, is open.
    fn open<V: SessionObserver>(state: &mut State<V>, address: SocketAddr) -> Self {
        let (now, key) = (state.socket.clock().now(), state.config.key.clone());
        let question = Open { secure: key.is_some(), ..OPEN };
        let cookie = state.jar.bake(address, &question, now.as_nanos() / 1_000_000_000);
        let proved = Message::Open(Open { cookie, ..question }).encode(key.as_ref());
        state.on_datagram(now, address, &proved).expect("the server goes on");
        let Some(Message::Accept { nonce, answer, .. }) = Message::parse(&state.live[&SSRC].accept) else {
            panic!("no session");
        };
        let protection = key.map(|key| Protection::new(&key, Role::Sender, &nonce, &answer));
        let stream = StreamConfig::new(SSRC, 96, Size::from_bytes(1000), "s");
        let config =
            SenderConfig { delays: Delays::Queueing, ..SenderConfig::new(stream, REPORTS, now.assume_clock(), 1) };
        let sender = Sender::new(config, Box::new(Cbr::new(Rate::from_bps(1_000_000)))).expect("a configuration");
        Self { sender, protection: protection.unwrap_or(Protection::None), now, address, last: Vec::new() }
    }

    /// Sends to `state` for so long.
    fn send<V: SessionObserver>(&mut self, state: &mut State<V>, span: Span) {
        let end = self.now + span;
        while self.now < end {
            self.now = self.sender.wake().map_or(end, |wake| wake.at.assume_clock());
            self.sender.handle(self.now.assume_clock(), Input::Timer);
            while let Some(output) = self.sender.poll() {
                if let Output::Transmit { transmit, .. } = output {
                    let mut whole = transmit.head.to_vec();
                    whole.resize(transmit.len(), 0);
                    assert!(self.protection.protect(&whole, &mut self.last));
                    state.on_datagram(self.now, self.address, &self.last).expect("the server goes on");
                }
            }
        }
    }
}
