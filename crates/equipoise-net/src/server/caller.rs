use std::net::SocketAddr;

use equipoise_session::{Ecn, PathId};

use super::{SessionObserver, State};
use crate::secure::Refusal;
use crate::secure::Role;
use crate::secure::opening::{Opening, Told};
use crate::secure::protection::Protection;
use crate::{NetError, Received, Time};

impl<V: SessionObserver> State<V> {
    /// Passes a datagram from the address `from` to the server. The datagram is not ECN-capable.
    pub(super) fn hear(&mut self, at: Time, from: SocketAddr, datagram: &[u8]) -> Result<(), NetError> {
        self.on_datagram(Received { len: datagram.len(), from, at, ecn: Ecn::NotCapable }, datagram)
    }
}

/// A sender in the same process as the server. It reads the answers that the server's socket records.
pub(super) struct Caller {
    opening: Opening,
    pub(super) from: SocketAddr,
    pub(super) protection: Protection,
    /// SSRC of the packets that the server sends in this session.
    pub(super) reports: u32,
    pub(super) refused: Option<Refusal>,
    is_open: bool,
    /// The messages that the sender has sent since it last requested a session.
    pub(super) said: Vec<Vec<u8>>,
}

impl Caller {
    pub(super) fn new(opening: Opening, from: SocketAddr) -> Self {
        Self {
            opening,
            from,
            protection: Protection::None,
            reports: 0,
            refused: None,
            is_open: false,
            said: Vec::new(),
        }
    }

    /// Makes the next request ask for `asked`. The certificate does not change.
    #[cfg(test)]
    pub(super) fn ask_instead(&mut self, asked: crate::secure::opening::Asked) {
        self.opening.ask_instead(asked);
    }

    /// Requests a session, possibly not for the first time. Returns whether the session is open.
    pub(super) fn call<V: SessionObserver>(&mut self, state: &mut State<V>, now: Time) -> bool {
        self.begin(now);
        // A complete exchange takes fewer than 16 rounds. The remaining rounds do nothing.
        self.talk(state, now, 16)
    }

    /// Prepares the first message of a new request for a session.
    pub(super) fn begin(&mut self, now: Time) {
        self.is_open = false;
        self.said.clear();
        self.opening.ask_for_session(now, std::iter::once(PathId(0)));
        self.opening.on_timer(now);
    }

    /// Exchanges messages with the server for `times` rounds: sends all waiting messages and handles the answers.
    /// Returns whether the session is open.
    pub(super) fn talk<V: SessionObserver>(&mut self, state: &mut State<V>, now: Time, times: u32) -> bool {
        state.socket.overheard = Some(Box::default());
        for _ in 0..times {
            while let Some((_, message)) = self.opening.poll() {
                // No message may cause an error that would end the server.
                assert!(state.hear(now, self.from, &message).is_ok());
                self.said.push(message);
            }
            let heard = state.socket.overheard.replace(Box::default()).unwrap_or_default();
            for (_, answer) in heard.0 {
                match self.opening.handle(now, PathId(0), true, &answer) {
                    Told::Opened { ssrc, keys, .. } => {
                        (self.reports, self.is_open) = (ssrc, true);
                        self.protection = keys.map_or(Protection::None, |keys| Protection::new(&keys, Role::Client));
                    }
                    Told::Refused(reason) => self.refused = Some(reason),
                    Told::Nothing | Told::Joined(_) => {}
                }
            }
        }
        state.socket.overheard = None;
        self.is_open
    }
}
