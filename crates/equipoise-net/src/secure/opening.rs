//! The sender's part of the exchange that opens a session. The receiver's part is in [`door`](super::door). This module
//! uses neither a socket nor a clock.

use std::collections::VecDeque;

use equipoise::units::Span;
use equipoise_session::PathId;
use equipoise_session::feedback::Reporting;
use equipoise_session::rtp::Payload;
use ring::hmac;

use super::association::{Association, Step};
use super::identity::{Fingerprint, Identity};
use super::message::{Message, Open, Refusal, is_authentic, other_version};
use super::{Key, Keys, Nonce, Role, Wanted, random};
use crate::Time;

/// What the sender requests from its receiver.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The shared key; with `None`, anybody can read and forge the packets of the session.
    pub(crate) key: Option<Key>,
    pub(crate) ssrc: u32,
    pub(crate) payload: Payload,
    pub(crate) reporting: Option<Reporting>,
    /// Whether the session may have several paths. One path opens the session, and the others must join it.
    pub(crate) several: bool,
    /// The media that the peer is requested to send. If it is set, this host sends only reports.
    pub(crate) wanted: Option<Wanted>,
}

/// The sender's part of the exchange that opens a session, over one path or several paths.
///
/// Each path requests the session until the path has a cookie. The first path with a cookie carries the handshake. Then
/// the other paths join, each with a message that is authenticated by the session's keys. Therefore no path is used
/// before an answer has arrived over it, and the receiver knows that the address of each path is the sender's.
pub(crate) struct Opening {
    asked: Asked,
    identity: Identity,
    /// The random number of this attempt.
    number: Nonce,
    asking: Vec<(PathId, Asking)>,
    /// The handshake and the path that carries it; `None` before the handshake, and after the peer has proved that it
    /// has the keys.
    handshake: Option<(Association, PathId)>,
    /// The fingerprint of the receiver's certificate; `None` until the first [`Message::Down`] arrives.
    receiver: Option<Fingerprint>,
    state: State,
    outbox: VecDeque<(PathId, Vec<u8>)>,
    /// Reasons for a failure from unauthenticated messages.
    hints: Hints,
}

/// Unauthenticated information from the peer. It is reported only if no authenticated answer arrives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hints {
    pub(crate) refusal: Option<Refusal>,
    /// The protocol version of the peer's messages, if it differs from this host's version.
    pub(crate) version: Option<u8>,
}

enum State {
    Asking,
    /// This host has keys, but does not know yet whether the receiver has them, too.
    Agreed(Agreed),
    /// The session is open. The key authenticates the requests with which further paths join the session; `None`
    /// without encryption.
    Open(Option<hmac::Key>),
}

/// New keys. The receiver has not yet sent an Accept message that is authenticated with them.
struct Agreed {
    keys: Keys,
    join: hmac::Key,
    path: PathId,
    /// `next` is when to request the Accept message again. `pause` is the time from the request at `next` to the
    /// following request. `until` is when to stop the requests.
    next: Time,
    pause: Span,
    until: Time,
}

/// The state of a path that waits to open or join the session.
struct Asking {
    cookie: Option<Nonce>,
    next: Time,
    pause: Span,
    /// Whether a Retry message on this path was already answered without a pause.
    was_prompt: bool,
}

/// The result of handling a message.
pub(crate) enum Told {
    Nothing,
    /// The session is open over this path. The receiver's packets have this SSRC.
    Opened {
        path: PathId,
        ssrc: u32,
        /// The keys of the session; `None` without encryption.
        keys: Option<Keys>,
    },
    /// A further path has joined the session.
    Joined(PathId),
    /// A peer that has the shared key has refused the session. Without a key, any peer can do this.
    Refused(Refusal),
}

/// Time from the first attempt to the second. Each further pause between attempts is twice as long as the previous one,
/// up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Span = Span::from_millis(100);
/// Maximum time between two attempts.
const LONGEST_PAUSE: Span = Span::from_millis(500);
/// How long to wait for an answer that uses the new keys.
const AGREED_FOR: Span = Span::from_secs(5);

impl Asking {
    const fn new(next: Time) -> Self {
        Self { cookie: None, next, pause: FIRST_PAUSE, was_prompt: false }
    }
}

impl Opening {
    /// An exchange that has no paths yet.
    pub(crate) fn new(asked: Asked) -> Self {
        Self {
            asked,
            identity: Identity::generate(),
            number: random(),
            asking: Vec::new(),
            handshake: None,
            receiver: None,
            state: State::Asking,
            outbox: VecDeque::new(),
            hints: Hints::default(),
        }
    }

    /// Requests a new session on these paths. Existing keys are used until there are new keys.
    pub(crate) fn ask_for_session(&mut self, now: Time, paths: impl Iterator<Item = PathId>) {
        (self.number, self.state, self.handshake, self.receiver) = (random(), State::Asking, None, None);
        self.asking = paths.map(|path| (path, Asking::new(now))).collect();
    }

    /// For tests: changes what the next request asks for. The certificate stays the same.
    #[cfg(test)]
    pub(crate) fn ask_instead(&mut self, asked: Asked) {
        self.asked = asked;
    }

    /// Requests the session on a further path, or again on an existing path.
    pub(crate) fn ask_on(&mut self, now: Time, path: PathId) {
        self.forget(path);
        self.asking.push((path, Asking::new(now)));
    }

    /// Stops the requests and the handshake on a path.
    fn forget(&mut self, path: PathId) {
        self.asking.retain(|(asking, _)| *asking != path);
        if self.handshake.as_ref().is_some_and(|(_, carries)| *carries == path) {
            self.handshake = None;
        }
    }

    pub(crate) const fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// Whether a path still waits to open or join the session.
    pub(crate) fn is_asking(&self, path: PathId) -> bool {
        self.asking.iter().any(|(asking, _)| *asking == path)
    }

    /// Unauthenticated information from the peer, which may explain a failure.
    pub(crate) const fn hints(&self) -> Hints {
        self.hints
    }

    /// Must be called when the peer has proved that it has the keys. Then the handshake is no longer needed.
    pub(crate) fn on_proved(&mut self) {
        if self.is_open() {
            self.handshake = None;
        }
    }

    /// Handles a message received on a path. `is_peer` says whether the message came from the receiver's address.
    pub(crate) fn handle(&mut self, now: Time, path: PathId, is_peer: bool, datagram: &[u8]) -> Told {
        let Some(message) = Message::parse(datagram) else {
            self.hints.version = other_version(datagram).filter(|_| is_peer).or(self.hints.version);
            return Told::Nothing;
        };
        let key = self.asked.key.as_ref();
        let has_code = key.is_some_and(|key| is_authentic(datagram, key.handshake()));
        match message {
            // Only the receiver, and attackers on the path, can know the random number of the request.
            Message::Retry { number, cookie } if number == self.number && is_peer => self.on_retry(now, path, cookie),
            Message::Accept { number, ssrc } if number == self.number => {
                return self.on_accept(now, path, is_peer, ssrc, datagram);
            }
            Message::Refuse { number, reason } if number == self.number => {
                if has_code || (key.is_none() && is_peer) {
                    return Told::Refused(reason);
                }
                self.hints.refusal = Some(reason).filter(|_| is_peer).or(self.hints.refusal);
            }
            Message::Down { number, fingerprint, records } if number == self.number && has_code => {
                let Some((association, carries)) = &mut self.handshake else { return Told::Nothing };
                *carries = path;
                self.receiver = Some(fingerprint);
                association.handle(now, records);
                self.drive(now);
            }
            _ => {}
        }
        Told::Nothing
    }

    fn on_retry(&mut self, now: Time, path: PathId, cookie: Nonce) {
        let Some(at) = self.asking.iter().position(|(asking, _)| *asking == path) else { return };
        let (_, asking) = &mut self.asking[at];
        asking.cookie = Some(cookie);
        // On each path, only the first cookie of an attempt is returned at once. Some paths change the sender's address
        // with every datagram. On such a path, every cookie is invalid, and two hosts that always answer at once would
        // never stop.
        if !std::mem::replace(&mut asking.was_prompt, true) {
            asking.next = now + asking.pause;
            self.ask(now, at);
        }
    }

    fn on_accept(&mut self, now: Time, path: PathId, is_peer: bool, ssrc: u32, datagram: &[u8]) -> Told {
        let is_right = match &self.state {
            State::Open(Some(join)) | State::Agreed(Agreed { join, .. }) => is_authentic(datagram, join),
            State::Open(None) | State::Asking => self.asked.key.is_none() && is_peer,
        };
        if !is_right {
            return Told::Nothing;
        }
        if let State::Agreed(Agreed { keys, join, path, .. }) = &self.state {
            let (path, told) = (*path, Told::Opened { path: *path, ssrc, keys: Some(keys.clone()) });
            self.state = State::Open(Some(join.clone()));
            self.asking.retain(|(asking, _)| *asking != path);
            self.asking.iter_mut().for_each(|(_, asking)| asking.next = now);
            return told;
        }
        if !self.is_asking(path) {
            return Told::Nothing;
        }
        self.asking.retain(|(asking, _)| *asking != path);
        if self.is_open() {
            return Told::Joined(path);
        }
        self.state = State::Open(None);
        Told::Opened { path, ssrc, keys: None }
    }

    /// Sends the next request on the path with the index `at`.
    fn ask(&mut self, now: Time, at: usize) {
        let Some((path, asking)) = self.asking.get(at) else { return };
        let (path, has_cookie) = (*path, asking.cookie.is_some());
        match (&self.state, &self.handshake) {
            (State::Asking, None) if has_cookie && self.asked.key.is_some() => {
                let association = Association::new(Role::Client, &self.identity, now);
                self.handshake = Some((association, path));
                self.drive(now);
            }
            // Nothing is sent here. On the path of the handshake, the timers of the association repeat the records. The
            // other paths wait for the end of the handshake.
            (State::Asking | State::Agreed(_), Some(_)) if has_cookie => {}
            _ => self.say_open(path, &[]),
        }
    }

    /// Sends an Open message with these records on a path.
    fn say_open(&mut self, path: PathId, records: &[u8]) {
        let asking = self.asking.iter().find(|(asking, _)| *asking == path);
        let cookie = asking.and_then(|(_, asking)| asking.cookie).unwrap_or_default();
        let Asked { key, ssrc, payload, reporting, several, wanted } = &self.asked;
        let (join, joins) = match &self.state {
            State::Open(join) => (join.as_ref(), true),
            State::Asking | State::Agreed(_) => (None, false),
        };
        let open = Open {
            number: self.number,
            cookie,
            ssrc: *ssrc,
            payload: *payload,
            reporting: *reporting,
            secure: key.is_some(),
            several: *several,
            // Without encryption, no key can authenticate a join. The receiver knows a further path by `number` alone.
            joins: joins && key.is_some(),
            wanted: *wanted,
            fingerprint: if key.is_some() { *self.identity.fingerprint() } else { Fingerprint::NONE },
        };
        let code = join.or(key.as_ref().map(Key::handshake));
        self.outbox.push_back((path, Message::Open(open, records).encode(code)));
    }

    /// Performs the outputs of the handshake.
    fn drive(&mut self, now: Time) {
        let Some((mut association, path)) = self.handshake.take() else { return };
        while let Some(step) = association.poll() {
            match step {
                // Until the receiver has answered a record, records must be sent within an Open message.
                Step::Carry(records) if self.receiver.is_none() => {
                    let records = records.to_vec();
                    self.say_open(path, &records);
                }
                Step::Carry(records) => {
                    let up = Message::Up { number: self.number, records };
                    self.outbox.push_back((path, up.encode(self.asked.key.as_ref().map(Key::handshake))));
                }
                Step::Done(peer, keys) => match self.receiver {
                    Some(fingerprint) if fingerprint == peer => {
                        let (join, next, until) = (keys.join(), now + FIRST_PAUSE, now + AGREED_FOR);
                        self.state = State::Agreed(Agreed { keys, join, path, next, pause: FIRST_PAUSE, until });
                    }
                    // The fingerprint in the peer's messages does not match the certificate in the handshake.
                    _ => return self.begin_anew(now),
                },
            }
        }
        if !association.has_failed() {
            self.handshake = Some((association, path));
        } else if matches!(self.state, State::Asking) {
            self.begin_anew(now);
        }
    }

    /// Starts a new attempt after a pause.
    fn begin_anew(&mut self, now: Time) {
        (self.number, self.receiver, self.state, self.handshake) = (random(), None, State::Asking, None);
        for (_, asking) in &mut self.asking {
            *asking = Asking::new(now + LONGEST_PAUSE);
        }
    }

    /// Handles all expired timers.
    pub(crate) fn on_timer(&mut self, now: Time) {
        for at in 0..self.asking.len() {
            let (_, asking) = &mut self.asking[at];
            if asking.next <= now {
                asking.next = now + asking.pause;
                asking.pause = (asking.pause * 2).min(LONGEST_PAUSE);
                self.ask(now, at);
            }
        }
        if let Some((association, _)) = self.handshake.as_mut().filter(|(association, _)| association.wake() <= now) {
            association.on_timer(now);
            self.drive(now);
        }
        self.ask_for_word(now);
    }

    /// The Accept message may have been lost. Therefore this method requests the message again when the next request is
    /// due. After the time limit for the message, the opening starts again from the beginning.
    fn ask_for_word(&mut self, now: Time) {
        let State::Agreed(agreed) = &mut self.state else { return };
        if now >= agreed.until {
            return self.begin_anew(now);
        }
        if now >= agreed.next {
            agreed.next = now + agreed.pause;
            agreed.pause = (agreed.pause * 2).min(LONGEST_PAUSE);
            let up = Message::Up { number: self.number, records: &[] };
            let code = self.asked.key.as_ref().map(Key::handshake);
            self.outbox.push_back((agreed.path, up.encode(code)));
        }
    }

    /// When to call [`on_timer`](Self::on_timer); `None` if no timer is set.
    pub(crate) fn wake(&self) -> Option<Time> {
        let handshake = self.handshake.iter().map(|(association, _)| association.wake());
        let word = if let State::Agreed(agreed) = &self.state { Some(agreed.next.min(agreed.until)) } else { None };
        self.asking.iter().map(|(_, asking)| asking.next).chain(handshake).chain(word).min()
    }

    /// Returns the next message to send, and the path on which it must be sent.
    pub(crate) fn poll(&mut self) -> Option<(PathId, Vec<u8>)> {
        self.outbox.pop_front()
    }
}
