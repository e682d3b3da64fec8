//! The receiver's part of the exchange that opens sessions, without socket or clock. The sender's part is in
//! [`opening`](super::opening).
//!
//! ```text
//!   sender                                    receiver
//!     Open(number) ──────────────────────────▶          stores nothing
//!                    ◀──────────── Retry(cookie)        not longer than the Open message
//!     Open(number, cookie) + ClientHello ────▶          address and shared key are verified: the handshake begins
//!                    ◀── Down + ServerHello ... Finished
//!     Up + Certificate ... Finished ─────────▶          now both have the session's keys
//!                    ◀── Accept                         authenticated by these keys, so the sender may send media
//! ```

use std::collections::VecDeque;
use std::net::SocketAddr;

use equipoise::units::Span;
use ring::hmac;

use super::association::{Association, Step};
use super::cookie::CookieJar;
use super::identity::{Fingerprint, Identity};
use super::message::{LENGTH, Message, Open, Refusal, is_authentic, other_version};
use super::{Key, Keys, Nonce, Role, random};
use crate::Time;

/// The receiver's part of the exchange that opens sessions.
pub(crate) struct Door {
    key: Option<Key>,
    identity: Identity,
    jar: CookieJar,
    /// Handshakes in progress or recently completed, the oldest first.
    half: Vec<Half>,
    outbox: VecDeque<(SocketAddr, Vec<u8>)>,
}

/// A handshake with a sender.
struct Half {
    open: Open,
    from: SocketAddr,
    association: Association,
    began: Time,
    /// The Accept message; `None` until the session is open. It is sent again for each further message of the sender.
    accept: Option<Vec<u8>>,
}

/// Data of the server about the session with a given SSRC.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    /// The number in the Open message that last opened the session.
    pub(crate) number: Nonce,
    /// The fingerprint of the sender's certificate.
    pub(crate) owner: Fingerprint,
    pub(crate) several: bool,
    /// Whether the peer that opened the session has requested to receive media.
    pub(crate) is_sent_to: bool,
    /// The key that authenticates requests for further paths; `None` without encryption.
    pub(crate) join: Option<&'a hmac::Key>,
}

/// The result of handling a message.
pub(crate) enum Visit {
    /// The caller has nothing to do. The handshake may continue.
    Nobody,
    /// The datagram is not a valid message.
    Malformed,
    /// A request for a session without encryption, or for a further path of such a session.
    Plain(Open),
    /// A path has proved that it belongs to the session with this SSRC.
    Joins(u32),
    /// A handshake is complete, and there are keys for a session. The caller must call [`Door::accept`] or
    /// [`Door::refuse`].
    Opened { open: Open, from: SocketAddr, keys: Keys },
}

/// Maximum number of handshakes at the same time. Our choice: an attacker who replays recorded Open messages rarely
/// reaches this limit, because the cookies in the messages soon expire.
const MOST: usize = 256;
/// Maximum number of handshakes at the same time for one SSRC. Our choice, as for `MOST`.
const MOST_OF_SOURCE: usize = 8;
/// How long a handshake is stored.
const PATIENCE: Span = Span::from_secs(10);

impl Door {
    /// Creates the receiver's part of the exchange that opens sessions. `key` is the shared key; with `None`, sessions
    /// are not encrypted.
    pub(crate) fn new(key: Option<Key>) -> Self {
        Self {
            key,
            identity: Identity::generate(),
            jar: CookieJar::new(&random()),
            half: Vec::new(),
            outbox: VecDeque::new(),
        }
    }

    /// Handles a message. `known` returns the server's data about the session with an SSRC. `room` is the number of
    /// further sessions that may be opened.
    pub(crate) fn handle<'a>(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &[u8],
        known: impl FnOnce(u32) -> Option<Known<'a>>,
        room: usize,
    ) -> Visit {
        match Message::parse(datagram) {
            Some(Message::Open(open, records)) => {
                let known = known(open.ssrc);
                self.on_open(now, from, (datagram, open, records), known, room)
            }
            Some(Message::Up { number, records }) => {
                let is_right = self.key.as_ref().is_some_and(|key| is_authentic(datagram, key.handshake()));
                // Records from an address that has not returned the cookie are ignored: an attacker may have copied
                // them.
                match self.half.iter().position(|half| half.open.number == number && half.from == from) {
                    Some(at) if is_right => self.on_records(now, at, records),
                    _ => Visit::Nobody,
                }
            }
            Some(_) => Visit::Malformed,
            None => self.on_other_version(from, datagram),
        }
    }

    /// Answers a message of another protocol version with a Retry message, from which the peer learns the version of
    /// this endpoint.
    fn on_other_version(&mut self, from: SocketAddr, datagram: &[u8]) -> Visit {
        let number = datagram.get(8..24).and_then(|bytes| Nonce::try_from(bytes).ok());
        match (other_version(datagram), number) {
            (Some(_), Some(number)) if datagram.len() >= LENGTH => {
                self.say(from, &Message::Retry { number, cookie: [0; 16] }, None);
                Visit::Nobody
            }
            _ => Visit::Malformed,
        }
    }

    fn on_open(
        &mut self,
        now: Time,
        from: SocketAddr,
        (datagram, open, records): (&[u8], Open, &[u8]),
        known: Option<Known<'_>>,
        room: usize,
    ) -> Visit {
        let at_s = now.as_nanos() / 1_000_000_000;
        if !self.jar.knows(from, &open, at_s) {
            // No state is stored for an address that has not returned a cookie.
            let cookie = self.jar.bake(from, &open, at_s);
            self.say(from, &Message::Retry { number: open.number, cookie }, None);
            return Visit::Nobody;
        }
        if open.joins {
            let joins = known.filter(|known| known.number == open.number && known.several);
            let joins = joins.is_some_and(|known| known.join.is_some_and(|join| is_authentic(datagram, join)));
            return if joins { Visit::Joins(open.ssrc) } else { Visit::Nobody };
        }
        let is_right = self.key.as_ref().is_some_and(|key| is_authentic(datagram, key.handshake()));
        if let Some(reason) = self.refusal(&open, is_right, known, room) {
            // Only an authentic request gets an authenticated refusal. Otherwise an attacker could alter a sender's
            // request, and the sender would accept the refusal and give up.
            let code = self.key.as_ref().filter(|_| is_right).map(|key| key.handshake().clone());
            self.say(from, &Message::Refuse { number: open.number, reason }, code.as_ref());
            return Visit::Nobody;
        }
        if self.key.is_none() {
            return Visit::Plain(open);
        }
        let at = match self.half.iter().position(|half| half.open.number == open.number) {
            Some(at) => at,
            // The handshake with this number is already complete.
            None if known.is_some_and(|known| known.number == open.number) => return Visit::Nobody,
            None => self.admit(now, from, open),
        };
        if let Some(half) = self.half.get_mut(at) {
            half.from = from;
        }
        self.on_records(now, at, records)
    }

    fn refusal(&self, open: &Open, is_right: bool, known: Option<Known<'_>>, room: usize) -> Option<Refusal> {
        match (&self.key, open.secure) {
            (Some(_), false) => return Some(Refusal::NeedsKey),
            (None, true) => return Some(Refusal::HasNoKey),
            (Some(_), true) if !is_right => return Some(Refusal::OtherKey),
            _ => {}
        }
        match known {
            None => {
                let others = |half: &&Half| half.accept.is_none() && half.open.number != open.number;
                (self.half.iter().filter(others).count() >= room).then_some(Refusal::Full)
            }
            // The same sender may open its session again, for example after it has received nothing for some time.
            // A sender with another certificate is a different sender, even if it has the same key.
            Some(known) => {
                let is_same = known.several == open.several && known.is_sent_to == open.wanted.is_some();
                (!is_same || known.owner != open.fingerprint).then_some(Refusal::SourceInUse)
            }
        }
    }

    /// Starts a handshake. Returns its index. If the SSRC has too many handshakes, the oldest handshake of this SSRC is
    /// removed. If there are too many handshakes in total, the oldest of all is removed.
    fn admit(&mut self, now: Time, from: SocketAddr, open: Open) -> usize {
        self.expire(now);
        let is_same = |half: &Half| half.open.ssrc == open.ssrc;
        if self.half.iter().filter(|half| is_same(half)).count() >= MOST_OF_SOURCE {
            self.half.iter().position(is_same).map(|oldest| self.half.remove(oldest));
        } else if self.half.len() >= MOST {
            self.half.remove(0);
        }
        let association = Association::new(Role::Server, &self.identity, now);
        self.half.push(Half { open, from, association, began: now, accept: None });
        self.half.len() - 1
    }

    fn on_records(&mut self, now: Time, at: usize, records: &[u8]) -> Visit {
        let Some(half) = self.half.get_mut(at) else { return Visit::Nobody };
        if !records.is_empty() {
            half.association.handle(now, records);
        }
        if let Some(accept) = &half.accept {
            // The Accept message that was sent before may have been lost, so it is sent again.
            self.outbox.push_back((half.from, accept.clone()));
        }
        self.drive(at)
    }

    /// Performs the outputs of the handshake with the index `at`.
    fn drive(&mut self, at: usize) -> Visit {
        let Self { key, identity, half, outbox, .. } = self;
        let Some(half) = half.get_mut(at) else { return Visit::Nobody };
        let mut visit = Visit::Nobody;
        let mut is_wrong = false;
        while let Some(step) = half.association.poll() {
            match step {
                Step::Carry(records) => {
                    let fingerprint = *identity.fingerprint();
                    let down = Message::Down { number: half.open.number, fingerprint, records };
                    outbox.push_back((half.from, down.encode(key.as_ref().map(Key::handshake))));
                }
                Step::Done(peer, keys) if peer == half.open.fingerprint => {
                    visit = Visit::Opened { open: half.open, from: half.from, keys };
                }
                Step::Done(..) => is_wrong = true,
            }
        }
        if is_wrong || half.association.has_failed() {
            self.half.remove(at);
        }
        visit
    }

    /// Removes the handshake with this number, because the sender has proved that it has the keys, or because the
    /// session was refused.
    pub(crate) fn on_proved(&mut self, number: &Nonce) {
        self.half.retain(|half| half.open.number != *number);
    }

    /// Sends an Accept message for an open session or a joined path. `ssrc` is the SSRC of the receiver's packets. If
    /// the session has a key, this key authenticates the message.
    pub(crate) fn accept(&mut self, to: SocketAddr, number: Nonce, ssrc: u32, join: Option<&hmac::Key>) {
        let accept = Message::Accept { number, ssrc }.encode(join);
        if let Some(half) = self.half.iter_mut().find(|half| half.open.number == number) {
            half.accept = Some(accept.clone());
        }
        self.outbox.push_back((to, accept));
    }

    /// Refuses a session whose request was valid and, if there is a key, authentic.
    pub(crate) fn refuse(&mut self, to: SocketAddr, number: Nonce, reason: Refusal) {
        self.on_proved(&number);
        let code = self.key.as_ref().map(|key| key.handshake().clone());
        self.say(to, &Message::Refuse { number, reason }, code.as_ref());
    }

    fn say(&mut self, to: SocketAddr, message: &Message<'_>, code: Option<&hmac::Key>) {
        self.outbox.push_back((to, message.encode(code)));
    }

    /// Handles all expired timers.
    pub(crate) fn on_timer(&mut self, now: Time) {
        self.expire(now);
        // The loop runs backwards, because failed handshakes are removed from the list.
        for at in (0..self.half.len()).rev() {
            if let Some(half) = self.half.get_mut(at).filter(|half| half.association.wake() <= now) {
                half.association.on_timer(now);
                // A timer can end a handshake only by a failure, so the result is not needed.
                self.drive(at);
            }
        }
    }

    fn expire(&mut self, now: Time) {
        self.half.retain(|half| now - half.began < PATIENCE);
    }

    /// When to call [`on_timer`](Self::on_timer); `None` if there is no handshake.
    pub(crate) fn wake(&self) -> Option<Time> {
        self.half.iter().map(|half| half.association.wake().min(half.began + PATIENCE)).min()
    }

    /// Returns the next message to send, and its destination.
    pub(crate) fn poll(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.outbox.pop_front()
    }

    /// Whether an Open message has a valid cookie for its address.
    #[cfg(feature = "fuzz")]
    pub(crate) fn knows(&self, now: Time, from: SocketAddr, open: &Open) -> bool {
        self.jar.knows(from, open, now.as_nanos() / 1_000_000_000)
    }

    /// Number of stored handshakes.
    #[cfg(any(test, feature = "fuzz"))]
    pub(crate) const fn half_open(&self) -> usize {
        self.half.len()
    }
}
