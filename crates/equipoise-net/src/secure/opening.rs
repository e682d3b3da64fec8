//! How a sender opens a session, in the caller's time; its other side is the [`door`](super::door).

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

/// What a sender asks its receiver for.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// `None` for a session that anybody may read and forge.
    pub(crate) key: Option<Key>,
    pub(crate) ssrc: u32,
    pub(crate) payload: Payload,
    pub(crate) reporting: Option<Reporting>,
    /// It has several paths, each of which joins the session.
    pub(crate) several: bool,
    /// It is the other end that shall send, and this one reports.
    pub(crate) wanted: Option<Wanted>,
}

/// The sender's side of opening a session, over one path or several.
///
/// Each path asks for the session until it has a cookie. The first that has one carries the handshake; the others join then, each
/// by a message that only who has the session's keys can write. So no path is used before an answer has come over it, and the
/// receiver knows its address for the sender's.
pub(crate) struct Opening {
    asked: Asked,
    identity: Identity,
    /// The attempt's number.
    number: Nonce,
    asking: Vec<(PathId, Asking)>,
    /// The handshake, until the peer has shown that it has the keys, and the path that carries it.
    handshake: Option<(Association, PathId)>,
    /// Of the receiver's certificate, once it has answered a record.
    receiver: Option<Fingerprint>,
    state: State,
    outbox: VecDeque<(PathId, Vec<u8>)>,
    /// Why there is no session, by words that anybody may have said.
    hints: Hints,
}

/// What nobody has signed. It is told where nothing else comes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hints {
    pub(crate) refusal: Option<Refusal>,
    /// The peer speaks this version of the messages.
    pub(crate) version: Option<u8>,
}

enum State {
    Asking,
    /// There are keys; whether the receiver has them, too, is not known yet.
    Agreed(Agreed),
    /// Open, with the key by which further paths join, where there are keys.
    Open(Option<hmac::Key>),
}

/// Keys that the receiver has not been heard by.
struct Agreed {
    keys: Keys,
    join: hmac::Key,
    path: PathId,
    /// When it is asked for a word by them once more, and until when.
    next: Time,
    pause: Span,
    until: Time,
}

/// Where a path stands.
struct Asking {
    cookie: Option<Nonce>,
    next: Time,
    pause: Span,
    /// A cookie was sent back as soon as it came.
    was_prompt: bool,
}

/// What a message has told.
pub(crate) enum Told {
    Nothing,
    /// The session is open, over this path, to a receiver whose reports have this source.
    Opened {
        path: PathId,
        ssrc: u32,
        /// `None` for a session without.
        keys: Option<Keys>,
    },
    /// A further path belongs to it.
    Joined(PathId),
    /// There will be no session, says who has the key.
    Refused(Refusal),
}

/// The first pause between two tries; each is twice as long as the one before.
const FIRST_PAUSE: Span = Span::from_millis(100);
/// The longest.
const LONGEST_PAUSE: Span = Span::from_millis(500);
/// How long a word by the new keys is waited for.
const AGREED_FOR: Span = Span::from_secs(5);

impl Asking {
    const fn new(next: Time) -> Self {
        Self { cookie: None, next, pause: FIRST_PAUSE, was_prompt: false }
    }
}

impl Opening {
    /// One that asks on no path so far.
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

    /// Asks for a session anew, on these paths. Keys that there are stay good until there are others.
    pub(crate) fn ask_for_session(&mut self, now: Time, paths: impl Iterator<Item = PathId>) {
        (self.number, self.state, self.handshake, self.receiver) = (random(), State::Asking, None, None);
        self.asking = paths.map(|path| (path, Asking::new(now))).collect();
    }

    /// Asks on one path more, or once more.
    pub(crate) fn ask_on(&mut self, now: Time, path: PathId) {
        self.forget(path);
        self.asking.push((path, Asking::new(now)));
    }

    /// Nothing is asked on a path any more, nor carried over it.
    fn forget(&mut self, path: PathId) {
        self.asking.retain(|(asking, _)| *asking != path);
        if self.handshake.as_ref().is_some_and(|(_, carries)| *carries == path) {
            self.handshake = None;
        }
    }

    pub(crate) const fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// Whether a path still asks.
    pub(crate) fn is_asking(&self, path: PathId) -> bool {
        self.asking.iter().any(|(asking, _)| *asking == path)
    }

    /// What nobody has signed.
    pub(crate) const fn hints(&self) -> Hints {
        self.hints
    }

    /// The peer has shown that it has the keys: the handshake has served.
    pub(crate) fn on_proved(&mut self) {
        if self.is_open() {
            self.handshake = None;
        }
    }

    /// A message came on a path; `is_peer` says whether from the receiver's address.
    pub(crate) fn handle(&mut self, now: Time, path: PathId, is_peer: bool, datagram: &[u8]) -> Told {
        let Some(message) = Message::parse(datagram) else {
            self.hints.version = other_version(datagram).filter(|_| is_peer).or(self.hints.version);
            return Told::Nothing;
        };
        let key = self.asked.key.as_ref();
        let has_code = key.is_some_and(|key| is_authentic(datagram, key.handshake()));
        match message {
            // Only who has seen the question knows its number.
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
        // At once for each number. A path that changes its address with every datagram makes every cookie a wrong one, and two ends
        // that answer each other at once never stop.
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

    /// Asks on path number `at`, by what it needs next.
    fn ask(&mut self, now: Time, at: usize) {
        let Some((path, asking)) = self.asking.get(at) else { return };
        let (path, has_cookie) = (*path, asking.cookie.is_some());
        match (&self.state, &self.handshake) {
            (State::Asking, None) if has_cookie && self.asked.key.is_some() => {
                let association = Association::new(Role::Client, &self.identity, now);
                self.handshake = Some((association, path));
                self.drive(now);
            }
            // Records leave by the handshake's own timers, and the others wait for its end.
            (State::Asking | State::Agreed(_), Some(_)) if has_cookie => {}
            _ => self.say_open(path, &[]),
        }
    }

    /// Sends Open on a path, with these records.
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
            // Without keys the number is all that a path can show.
            joins: joins && key.is_some(),
            wanted: *wanted,
            fingerprint: if key.is_some() { *self.identity.fingerprint() } else { Fingerprint::NONE },
        };
        let code = join.or(key.as_ref().map(Key::handshake));
        self.outbox.push_back((path, Message::Open(open, records).encode(code)));
    }

    /// Lets the handshake do what it wants.
    fn drive(&mut self, now: Time) {
        let Some((mut association, path)) = self.handshake.take() else { return };
        while let Some(step) = association.poll() {
            match step {
                // Until the receiver has answered one, they have to open its door.
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
                    // Whoever has the shared key has not said that this certificate is its own.
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

    /// The attempt has failed; another one follows after a pause.
    fn begin_anew(&mut self, now: Time) {
        (self.number, self.receiver, self.state, self.handshake) = (random(), None, State::Asking, None);
        for (_, asking) in &mut self.asking {
            *asking = Asking::new(now + LONGEST_PAUSE);
        }
    }

    /// Does what is due.
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

    /// Asks for a word by the new keys, where that is due: it may have been lost.
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

    /// When [`on_timer`](Self::on_timer) wants to be called.
    pub(crate) fn wake(&self) -> Option<Time> {
        let handshake = self.handshake.iter().map(|(association, _)| association.wake());
        let word = if let State::Agreed(agreed) = &self.state { Some(agreed.next.min(agreed.until)) } else { None };
        self.asking.iter().map(|(_, asking)| asking.next).chain(handshake).chain(word).min()
    }

    /// The next message to send, and on which path.
    pub(crate) fn poll(&mut self) -> Option<(PathId, Vec<u8>)> {
        self.outbox.pop_front()
    }
}
