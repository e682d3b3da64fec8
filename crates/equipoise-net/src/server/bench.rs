use std::net::{Ipv4Addr, SocketAddr};

use equipoise::units::{Rate, Span};
use equipoise_session::multipath::MAX_PATHS;
use equipoise_session::rtp::Payload;
use nix::errno::Errno;

use super::caller::Caller;
use super::{ServerConfig, SessionObserver, State};
use crate::secure::Key;
use crate::secure::message::{Message, sign};
use crate::secure::opening::{Asked, Opening};
use crate::secure::protection::source_of;
use crate::{Clock, NetError, Socket, Time, Wanted};

/// A server in virtual time, for tests with arbitrary datagrams. Every attempt to send fails, as if the kernel had
/// refused the datagram, so no answer reaches the network.
pub struct ServerBench {
    state: State<Nobody>,
    now: Time,
    /// The senders that have opened a session or tried to open one, each with its SSRC.
    callers: Vec<(u32, Caller)>,
    /// Number of sessions whose request was valid.
    deserved: u64,
    /// Number of datagrams that the server received.
    heard: u64,
    /// Virtual time since the start.
    elapsed: Span,
}

/// The limit of the total rate of the media that the server sends.
const SENT: Rate = Rate::from_bps(200_000);

/// An observer that ignores all events.
struct Nobody;

impl SessionObserver for Nobody {}

impl ServerBench {
    /// Maximum number of simultaneous sessions.
    pub const MOST: usize = 3;

    /// Creates a server without sessions. It has a key if `is_secure`.
    ///
    /// # Errors
    /// [`NetError::Bind`] if the socket cannot be opened.
    pub fn new(is_secure: bool) -> Result<Self, NetError> {
        let mut socket = Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), &Clock::new())?;
        socket.kernel_says = Some(Errno::EPERM);
        let now = socket.clock().now();
        let key = if is_secure { Key::new(b"what everybody knows").ok() } else { None };
        let config =
            ServerConfig { most_sessions: Self::MOST, reverse_limit: SENT, repairs: true, ..ServerConfig::new(key) };
        let (state, callers) = (State::new(socket, config, Nobody), Vec::new());
        Ok(Self { state, now, callers, deserved: 0, heard: 0, elapsed: Span::ZERO })
    }

    /// The current virtual time.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// From now on, every attempt of the server to send fails with this error number.
    pub fn refuse_with(&mut self, errno: u8) {
        self.state.socket.kernel_says = Some(Errno::from_raw(i32::from(errno)));
    }

    /// Advances the virtual time by `span`, and serves the timers that are due.
    pub fn wait(&mut self, span: Span) {
        self.now = self.now + span.max(Span::ZERO);
        self.elapsed = self.elapsed + span.max(Span::ZERO);
        self.state.ring(self.now);
    }

    /// Passes a datagram to the server.
    ///
    /// # Errors
    /// The error that would end the server and all its sessions.
    pub fn hear(&mut self, from: SocketAddr, datagram: &[u8]) -> Result<(), NetError> {
        self.heard += 1;
        self.deserved += u64::from(self.is_plain_question(from, datagram));
        self.state.hear(self.now, from, datagram)
    }

    /// Whether the server has no key, and the datagram requests a session with a valid cookie for its source address.
    fn is_plain_question(&self, from: SocketAddr, datagram: &[u8]) -> bool {
        let Some(Message::Open(open, _)) = Message::parse(datagram) else { return false };
        self.state.config.key.is_none() && self.state.door.knows(self.now, from, &open)
    }

    /// Lets the sender with this SSRC request a session from the address `from`. A sender that does not exist yet is
    /// created with the server's key, and `variant` selects what it requests. Returns the sender's messages in order.
    pub fn call(&mut self, from: SocketAddr, ssrc: u32, variant: u8) -> Vec<Vec<u8>> {
        let payload = [Payload::Generated, Payload::Stream, Payload::Rtp][usize::from(variant % 3)];
        let asked = Asked {
            key: self.state.config.key.clone(),
            ssrc,
            payload,
            reporting: None,
            several: variant & 4 != 0,
            wanted: if variant & 8 == 0 {
                None
            } else {
                Wanted::new(Rate::from_bps(50_000), Rate::from_bps(100_000)).ok()
            },
        };
        let at = self.callers.iter().position(|(source, _)| *source == ssrc).unwrap_or_else(|| {
            self.callers.push((ssrc, Caller::new(Opening::new(asked), from)));
            self.callers.len() - 1
        });
        let before = self.state.opened;
        let (_, caller) = &mut self.callers[at];
        caller.from = from;
        caller.call(&mut self.state, self.now);
        self.heard += caller.said.len() as u64;
        self.deserved += self.state.opened - before;
        caller.said.clone()
    }

    /// Encrypts a datagram as the sender with the datagram's SSRC would do. `None` if there is no such sender, or if
    /// the datagram is too short or cannot be encrypted.
    pub fn protected(&mut self, plain: &[u8]) -> Option<Vec<u8>> {
        let source = source_of(plain)?;
        let (_, caller) = self.callers.iter_mut().find(|(ssrc, _)| *ssrc == source)?;
        let mut wire = Vec::new();
        caller.protection.protect(plain, &mut wire).then_some(wire)
    }

    /// If the server has a key, replaces a message's authentication code. If `records` is given, the message's records
    /// are replaced, too. Without a key, the message stays as it is.
    pub fn sign(&self, message: &mut Vec<u8>, records: Option<&[u8]>) {
        if let Some(key) = &self.state.config.key {
            sign(message, records, key.handshake());
        }
    }

    /// Checks properties of the server that must always be true. Returns a description of the first violation, if any.
    pub fn flaw(&self) -> Option<String> {
        let State { live, timers, opened, socket, .. } = &self.state;
        if live.len() > Self::MOST || *opened > self.deserved {
            return Some(format!("{} sessions, {opened} in all, of {} that were deserved", live.len(), self.deserved));
        }
        if self.state.door.half_open() > 256 {
            return Some(format!("{} handshakes", self.state.door.half_open()));
        }
        for (ssrc, session) in live {
            if session.wake.is_some_and(|at| !timers.contains(&(at, *ssrc))) {
                return Some(format!("the timer of session {ssrc} never rings"));
            }
            if session.paths.is_empty() || session.paths.len() > MAX_PATHS {
                return Some(format!("session {ssrc} has {} paths", session.paths.len()));
            }
        }
        if timers.len() > live.len() {
            return Some(format!("{} timers of {} sessions", timers.len(), live.len()));
        }
        let granted: u64 = live.values().map(|session| session.half.granted().as_bps()).sum();
        if granted > SENT.as_bps() {
            return Some(format!("{granted} bit/s are promised, of {SENT}"));
        }
        let unsent = socket.stats().unsent;
        // For each received datagram and path, the server may send at most four datagrams: the answer, a report and
        // delayed reports. In addition, it sends media, in packets that are assumed to have at least 100 bytes.
        let media = self.elapsed.as_secs_f64() * SENT.as_bps() as f64 / 800.0;
        let most = 4 * (self.heard + 1) * MAX_PATHS as u64 + media as u64;
        (unsent > most).then(|| format!("{unsent} answers to {} datagrams", self.heard))
    }
}
