use std::net::{Ipv4Addr, SocketAddr};

use equipoise::units::Span;
use equipoise_session::rtp::Payload;
use nix::errno::Errno;

use super::{MAX_PATHS, ServerConfig, SessionObserver, State};
use crate::secure::handshake::{Message, Open};
use crate::secure::protection::{Protection, Role, source_of};
use crate::secure::{Key, Nonce};
use crate::{Clock, NetError, Socket, Time};

/// A server in the caller's time, for what must hold of any datagrams: whatever it answers, its kernel refuses to send.
pub struct ServerBench {
    state: State<Nobody>,
    now: Time,
    /// Questions that deserve a session, and whose they are.
    questions: Vec<(SocketAddr, Vec<u8>)>,
    /// How many of them it has heard; one that is asked again after its session's end deserves another.
    asked: u64,
    /// Datagrams that it has heard.
    heard: u64,
}

/// Sees nothing.
struct Nobody;

impl SessionObserver for Nobody {}

impl ServerBench {
    /// Sessions at once.
    pub const MOST: usize = 3;

    /// A server that nobody has asked for anything.
    ///
    /// # Errors
    /// [`NetError::Bind`] where there is no socket to be had.
    pub fn new(is_secure: bool) -> Result<Self, NetError> {
        let mut socket = Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), &Clock::new())?;
        socket.kernel_says = Some(Errno::EPERM);
        let now = socket.clock().now();
        let key = if is_secure { Key::new(b"what everybody knows").ok() } else { None };
        let config = ServerConfig { most_sessions: Self::MOST, ..ServerConfig::new(key) };
        Ok(Self { state: State::new(socket, config, Nobody), now, questions: Vec::new(), asked: 0, heard: 0 })
    }

    /// What time it is there.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// What the kernel says from now on.
    pub fn refuse_with(&mut self, errno: u8) {
        self.state.socket.kernel_says = Some(Errno::from_raw(i32::from(errno)));
    }

    /// So much time goes by.
    pub fn wait(&mut self, span: Span) {
        self.now = self.now + span.max(Span::ZERO);
        self.state.ring(self.now);
    }

    /// A datagram comes.
    ///
    /// # Errors
    /// What would end the server, and with it all sessions.
    pub fn hear(&mut self, from: SocketAddr, datagram: &[u8]) -> Result<(), NetError> {
        self.heard += 1;
        self.asked += u64::from(self.is_question(from, datagram));
        self.state.on_datagram(self.now, from, datagram)
    }

    /// Whether somebody asks as one has to: with the cookie of its address, and with a key only what [`Self::question`] gave.
    fn is_question(&self, from: SocketAddr, datagram: &[u8]) -> bool {
        let Some(Message::Open(open)) = Message::parse(datagram) else { return false };
        let is_given = |(of, question): &(SocketAddr, Vec<u8>)| *of == from && question == datagram;
        let is_right = self.state.config.key.is_none() || self.questions.iter().any(is_given);
        is_right && self.state.jar.knows(from, &open, self.now.as_nanos() / 1_000_000_000)
    }

    /// A question of somebody who has the key and the cookie of that address, in one of a few variants.
    pub fn question(&mut self, from: SocketAddr, ssrc: u32, variant: u8) -> Vec<u8> {
        let payload = [Payload::Generated, Payload::Stream, Payload::Rtp][usize::from(variant % 3)];
        let (nonce, secure): (Nonce, bool) = ([variant; 16], self.state.config.key.is_some());
        let open = Open { nonce, cookie: [0; 16], ssrc, payload, secure, several: variant & 4 != 0 };
        let cookie = self.state.jar.bake(from, &open, self.now.as_nanos() / 1_000_000_000);
        let question = Message::Open(Open { cookie, ..open }).encode(self.state.config.key.as_ref());
        self.questions.push((from, question.into()));
        question.into()
    }

    /// A datagram as the sender of its session would protect it; `None` where there is no such session, or it is no RTP.
    pub fn protected(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let live = self.state.live.get(&source_of(plain)?)?;
        let Some(Message::Accept { nonce, answer, .. }) = Message::parse(&live.accept) else { return None };
        let key = self.state.config.key.as_ref();
        let mut protection = key.map_or(Protection::None, |key| Protection::new(key, Role::Sender, &nonce, &answer));
        let mut wire = Vec::new();
        protection.protect(plain, &mut wire).then_some(wire)
    }

    /// What does not hold of the server that ought to; `None` where all does.
    pub fn flaw(&self) -> Option<String> {
        let State { live, timers, opened, socket, .. } = &self.state;
        if live.len() > Self::MOST || *opened > self.asked {
            return Some(format!("{} sessions, {opened} in all, of {} questions", live.len(), self.asked));
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
        let unsent = socket.stats().unsent;
        // A report may be due beside the answer, and reports that were held back.
        let most = 4 * (self.heard + 1) * MAX_PATHS as u64;
        (unsent > most).then(|| format!("{unsent} answers to {} datagrams", self.heard))
    }
}
