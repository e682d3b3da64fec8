use std::collections::VecDeque;
use std::net::SocketAddr;

use equipoise::units::Span;
use equipoise_session::DropReason;
use equipoise_session::wire::is_rtcp;
use thiserror::Error;

use super::srtp::Srtp;
use super::{Fingerprint, Identity, PeerConfig, PeerError, Profile, ProtectError, Setup};
use crate::Time;
use crate::secure::association::{Association, Failure, Step};
use crate::secure::record::{self, ClientRandom};
use crate::secure::{Keys, Role};

/// A DTLS-SRTP association with one peer, which may be any implementation. It has no socket and no clock.
///
/// The caller must pass each received datagram to [`handle`](Self::handle), and call [`on_timer`](Self::on_timer) at
/// the time that [`wake`](Self::wake) returns. After each of these calls, after [`new`](Self::new) and after
/// [`close`](Self::close), the caller must send all datagrams that [`poll`](Self::poll) returns. As soon as the
/// association is open ([`standing`](Self::standing)), packets can be protected with [`protect`](Self::protect).
///
/// If this endpoint is passive, a peer that was restarted can open the association again, from any port. The new keys
/// replace the previous keys. Packets under the previous keys are accepted for 5 s more, because they may be late.
pub struct DtlsSrtp {
    config: PeerConfig,
    identity: Identity,
    /// Handshakes in progress, the oldest first.
    half: Vec<Half>,
    live: Option<Live>,
    /// The previous keys, and the time until which packets under them are accepted.
    earlier: Option<(Srtp, Time)>,
    /// For the active endpoint: the time of the next handshake attempt, which is always before `give_up`.
    next_try: Option<Time>,
    give_up: Time,
    standing: Standing,
    /// The error of the last failed handshake.
    trouble: Option<HandshakeError>,
    /// The number of the last unauthenticated alert.
    alert: Option<u8>,
    outbox: VecDeque<(SocketAddr, Vec<u8>)>,
}

/// A handshake in progress.
struct Half {
    from: SocketAddr,
    /// The random number in the peer's ClientHello; `None` if this endpoint started the handshake.
    random: Option<ClientRandom>,
    association: Association,
    /// The datagrams with the cookie request. They are sent again if the same ClientHello arrives again.
    request: Vec<Vec<u8>>,
}

/// The keys and the peer's address from the last completed handshake.
struct Live {
    from: SocketAddr,
    random: Option<ClientRandom>,
    /// The DTLS association of the completed handshake, which answers retransmissions of the handshake and receives the
    /// closing alert; `None` if the association failed later.
    association: Option<Association>,
    srtp: Srtp,
}

/// The state of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There are no keys yet.
    Opening,
    /// The peer is authenticated, and packets can be protected with this profile.
    Open(Profile),
    /// The association was closed by this endpoint or by the peer. If this endpoint is passive, the peer may open it
    /// again.
    Closed,
    /// The handshake of the active endpoint failed; [`DtlsSrtp::trouble`] returns the reason.
    Failed,
}

/// Why a handshake failed.
#[derive(Debug, Error)]
pub enum HandshakeError {
    /// The peer's certificate is not the expected one.
    #[error("the peer's certificate has the fingerprint {found}, and {expected} is expected")]
    OtherCertificate {
        /// The fingerprint of the peer's certificate.
        found: Fingerprint,
        /// The expected fingerprint.
        expected: Fingerprint,
    },
    /// The peer did not answer, or stopped answering before the end of the handshake.
    #[error("the peer did not complete the handshake{}", .alert.map_or_else(String::new, |alert| format!("; an unauthenticated alert {alert} was received (RFC 8446, Sec. 6)")))]
    NoAnswer {
        /// The number of an unauthenticated alert, which anybody may have sent.
        alert: Option<u8>,
    },
    /// The peer supports no SRTP profile that this endpoint supports.
    #[error("there is no common SRTP profile; the peer has to offer SRTP_AES128_CM_SHA1_80 or one with AES-GCM")]
    NoKeys,
    /// A message from the peer is invalid, or an attacker interfered.
    #[error("the handshake failed")]
    Protocol {
        /// The error of the DTLS library.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Kind of a received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A protected RTP packet, which was decrypted.
    Rtp,
    /// A protected RTCP packet, which was decrypted.
    Rtcp,
    /// A DTLS record, such as a message of a handshake.
    Handshake,
    /// The datagram was dropped for this reason.
    Ignored(DropReason),
}

/// `MOST_ASKED`: maximum number of handshakes whose peer has not returned the cookie. `MOST_PROVED`: maximum number of
/// handshakes whose peer has returned the cookie. Our choice: a handshake needs 8 kB of memory, so all handshakes
/// together need at most 320 kB.
const MOST_ASKED: usize = 32;
const MOST_PROVED: usize = 8;
/// `PAUSE`: time from a failed handshake to the next attempt. `GIVE_UP`: the active endpoint makes no new attempt when
/// the association is older than this.
const PAUSE: Span = Span::from_millis(500);
const GIVE_UP: Span = Span::from_secs(30);
/// How long packets under the previous keys are accepted after new keys are agreed on.
const OLD_KEYS: Span = Span::from_secs(5);

impl DtlsSrtp {
    /// Creates an association that starts at `now`.
    ///
    /// # Errors
    /// [`PeerError::NoPort`] if this endpoint is active and the peer's port is not known.
    pub fn new(config: PeerConfig, identity: Identity, now: Time) -> Result<Self, PeerError> {
        config.check()?;
        let mut session = Self {
            config,
            identity,
            half: Vec::new(),
            live: None,
            earlier: None,
            next_try: (config.setup == Setup::Active).then_some(now),
            give_up: now + GIVE_UP,
            standing: Standing::Opening,
            trouble: None,
            alert: None,
            outbox: VecDeque::new(),
        };
        session.on_timer(now);
        Ok(session)
    }

    /// The identity of this endpoint: its certificate and private key.
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The state of the association.
    pub const fn standing(&self) -> Standing {
        self.standing
    }

    /// The error of the last failed handshake; `None` if no handshake has failed.
    pub const fn trouble(&self) -> Option<&HandshakeError> {
        self.trouble.as_ref()
    }

    /// Returns the error of the last failed handshake, like [`trouble`](Self::trouble), and consumes the association.
    pub(super) fn into_trouble(self) -> Option<HandshakeError> {
        self.trouble
    }

    /// The address to which packets are sent; `None` if it is not known yet.
    pub fn peer(&self) -> Option<SocketAddr> {
        match &self.live {
            Some(live) => Some(self.config.answer_to(live.from)),
            None => Some(self.config.address).filter(|address| address.port() != 0),
        }
    }

    /// Handles a received datagram. If the datagram is a protected packet, the decrypted packet is written to `plain`.
    pub fn handle(&mut self, now: Time, from: SocketAddr, datagram: &[u8], plain: &mut Vec<u8>) -> Arrival {
        plain.clear();
        if !self.config.expects(from) {
            return Arrival::Ignored(DropReason::Foreign);
        }
        // The first byte distinguishes DTLS records from SRTP packets (RFC 7983, Sec. 7).
        match datagram.first() {
            Some(20..=63) => {
                self.on_records(now, from, datagram);
                Arrival::Handshake
            }
            Some(128..=191) => match self.unprotect(now, datagram, plain) {
                Ok(()) if is_rtcp(plain) => Arrival::Rtcp,
                Ok(()) => Arrival::Rtp,
                Err(reason) => Arrival::Ignored(reason),
            },
            _ => Arrival::Ignored(DropReason::Malformed),
        }
    }

    fn unprotect(&mut self, now: Time, datagram: &[u8], plain: &mut Vec<u8>) -> Result<(), DropReason> {
        let live = self.live.as_mut().ok_or(DropReason::Foreign)?;
        let result = live.srtp.unprotect(datagram, plain);
        self.earlier = self.earlier.take().filter(|(_, until)| now < *until);
        match (&result, &mut self.earlier) {
            (Err(DropReason::Forged), Some((earlier, _))) => earlier.unprotect(datagram, plain),
            _ => result,
        }
    }

    /// Encrypts an RTP or RTCP packet and writes the result to `wire`.
    ///
    /// # Errors
    /// [`ProtectError`] if the packet cannot be protected. Such a packet must not be sent.
    pub fn protect(&mut self, packet: &[u8], wire: &mut Vec<u8>) -> Result<(), ProtectError> {
        wire.clear();
        self.live.as_mut().ok_or(ProtectError::NotOpen)?.srtp.protect(packet, wire)
    }

    /// Closes the association. If it was open, the peer is notified by an alert.
    pub fn close(&mut self, now: Time) {
        if let Some(Live { from, association: Some(mut association), .. }) = self.live.take() {
            association.on_timer(now);
            association.close();
            while let Some(Step::Carry(records)) = association.poll() {
                self.outbox.push_back((self.config.answer_to(from), records.to_vec()));
            }
        }
        (self.earlier, self.next_try, self.standing) = (None, None, Standing::Closed);
        self.half.clear();
    }

    /// Returns the next datagram to send and its destination; `None` if there is nothing to send.
    pub fn poll(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.outbox.pop_front()
    }

    /// When to call [`on_timer`](Self::on_timer); `None` if no timer is set.
    pub fn wake(&self) -> Option<Time> {
        let half = self.half.iter().map(|half| half.association.wake());
        let live = self.live.iter().filter_map(|live| live.association.as_ref().map(Association::wake));
        half.chain(live).chain(self.next_try).min()
    }

    /// Handles all timers that have expired by `now`.
    pub fn on_timer(&mut self, now: Time) {
        if self.next_try.is_some_and(|at| at <= now) {
            self.next_try = None;
            let (from, association) = (self.config.address, Association::foreign(Role::Client, &self.identity, now));
            self.half.push(Half { from, random: None, association, request: Vec::new() });
            self.drive(now, self.half.len() - 1);
        }
        // The loop runs backwards, because `drive` may remove a failed handshake from the list.
        for at in (0..self.half.len()).rev() {
            if let Some(half) = self.half.get_mut(at).filter(|half| half.association.wake() <= now) {
                half.association.on_timer(now);
                self.drive(now, at);
            }
        }
        if let Some(association) = self.live.as_mut().and_then(|live| live.association.as_mut())
            && association.wake() <= now
        {
            association.on_timer(now);
            self.drive_live();
        }
    }

    fn on_records(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) {
        // An unencrypted alert is not authenticated, so it must not end a handshake. If the peer really failed, it
        // sends nothing more, and the handshake times out.
        let (records, alert) = record::without_clear_alerts(datagram);
        self.alert = alert.or(self.alert);
        if records.is_empty() {
            return;
        }
        let place = match record::hello(&records) {
            Some(hello) if self.config.setup == Setup::Passive => match hello.random {
                Some(random) => self.place_of_hello(now, from, random, hello.is_second),
                None => self.half.iter().rposition(|half| half.from == from && half.association.awaits_cookie()),
            },
            _ => self.half.iter().rposition(|half| {
                let is_there = half.from == from || self.config.setup == Setup::Active;
                is_there && !half.association.awaits_cookie()
            }),
        };
        if let Some(at) = place
            && let Some(half) = self.half.get_mut(at)
        {
            half.association.handle(now, &records);
            return self.drive(now, at);
        }
        if let Some(live) = &mut self.live
            && let Some(association) = &mut live.association
            && live.from == from
        {
            association.handle(now, &records);
            self.drive_live();
        }
    }

    /// Returns the index of the handshake to which a ClientHello belongs. If the ClientHello starts a new handshake,
    /// this handshake is added. Returns `None` if the ClientHello must be dropped. If the dropped ClientHello is a copy
    /// of one that was answered with a cookie request, the cookie request is sent again.
    fn place_of_hello(&mut self, now: Time, from: SocketAddr, random: ClientRandom, is_second: bool) -> Option<usize> {
        let is_same = |half: &Half| half.from == from && half.random == Some(random);
        if let Some(at) = self.half.iter().position(is_same) {
            let half = &self.half[at];
            if is_second || half.request.is_empty() {
                return Some(at);
            }
            let to = self.config.answer_to(from);
            self.outbox.extend(half.request.iter().map(|request| (to, request.clone())));
            return None;
        }
        // This ClientHello belongs to a handshake that is complete or was removed, so it is dropped.
        if is_second || self.live.as_ref().is_some_and(|live| live.random == Some(random)) {
            return None;
        }
        self.make_room(MOST_ASKED, |half| half.association.awaits_cookie());
        let association = Association::foreign(Role::Server, &self.identity, now);
        self.half.push(Half { from, random: Some(random), association, request: Vec::new() });
        Some(self.half.len() - 1)
    }

    /// If at least `most` handshakes meet the condition `is_such`, removes the oldest of them.
    fn make_room(&mut self, most: usize, is_such: impl Fn(&Half) -> bool) {
        if self.half.iter().filter(|half| is_such(half)).count() >= most {
            self.half.iter().position(is_such).map(|oldest| self.half.remove(oldest));
        }
    }

    /// Sends the datagrams of the handshake with index `at`. Then checks whether the peer returned the cookie, and
    /// whether the handshake ended.
    fn drive(&mut self, now: Time, at: usize) {
        let Some(half) = self.half.get_mut(at) else { return };
        let (asked, to) = (half.association.awaits_cookie(), self.config.answer_to(half.from));
        let (mut said, mut done) = (Vec::new(), None);
        while let Some(step) = half.association.poll() {
            match step {
                Step::Carry(records) => said.push(records.to_vec()),
                Step::Done(peer, keys) => done = Some((peer, keys)),
            }
        }
        self.outbox.extend(said.iter().map(|records| (to, records.clone())));
        if half.association.awaits_cookie() && !said.is_empty() {
            half.request = said;
        }
        let failure = half.association.take_failure();
        if let Some((peer, keys)) = done {
            let half = self.half.remove(at);
            return self.on_done(now, half, peer, keys);
        }
        if let Some(failure) = failure {
            self.half.remove(at);
            return self.on_failure(now, failure);
        }
        if asked && !half.association.awaits_cookie() {
            // The peer has returned the cookie. This proves that the peer receives datagrams at this address. The
            // peer's handshake replaces the other handshakes from this address for which a cookie was returned.
            let half = self.half.remove(at);
            self.half.retain(|other| other.from != half.from || other.association.awaits_cookie());
            self.make_room(MOST_PROVED, |half| !half.association.awaits_cookie());
            self.half.push(half);
        }
    }

    /// Handles the end of a handshake: `keys` were agreed on with a peer whose certificate has the fingerprint `found`.
    fn on_done(&mut self, now: Time, half: Half, found: Fingerprint, keys: Keys) {
        let expected = self.config.fingerprint;
        if found != expected {
            return self.on_trouble(now, HandshakeError::OtherCertificate { found, expected });
        }
        let role = if self.config.setup == Setup::Active { Role::Client } else { Role::Server };
        self.standing = Standing::Open(keys.profile());
        let Half { from, random, association, .. } = half;
        let live = Live { from, random, association: Some(association), srtp: Srtp::new(keys, role) };
        self.earlier = self.live.replace(live).map(|before| (before.srtp, now + OLD_KEYS));
    }

    fn on_failure(&mut self, now: Time, failure: Failure) {
        let trouble = match failure {
            Failure::Closed | Failure::Patience => HandshakeError::NoAnswer { alert: self.alert },
            Failure::NoKeys => HandshakeError::NoKeys,
            Failure::Protocol(source) => HandshakeError::Protocol { source: Box::new(source) },
        };
        self.on_trouble(now, trouble);
    }

    /// Handles a failed handshake. The active endpoint schedules another attempt, or gives up.
    fn on_trouble(&mut self, now: Time, trouble: HandshakeError) {
        self.trouble = Some(trouble);
        if self.config.setup == Setup::Active && self.live.is_none() {
            self.next_try = Some(now + PAUSE).filter(|next| *next < self.give_up);
            if self.next_try.is_none() {
                self.standing = Standing::Failed;
            }
        }
    }

    /// Sends the datagrams of the open DTLS association, such as answers to retransmissions, and checks whether the
    /// peer has closed it.
    fn drive_live(&mut self) {
        let Some(live) = &mut self.live else { return };
        let Some(association) = &mut live.association else { return };
        while let Some(step) = association.poll() {
            if let Step::Carry(records) = step {
                self.outbox.push_back((self.config.answer_to(live.from), records.to_vec()));
            }
        }
        match association.take_failure() {
            None => {}
            Some(Failure::Closed) => {
                (self.live, self.earlier, self.standing) = (None, None, Standing::Closed);
            }
            // The DTLS part has failed, but media continues with the current keys.
            Some(_) => live.association = None,
        }
    }

    /// Number of handshakes in progress.
    #[cfg(any(test, feature = "fuzz"))]
    pub fn half_open(&self) -> usize {
        self.half.len()
    }

    /// The current keys, which tests compare with the peer's keys.
    #[cfg(test)]
    pub(super) fn keys(&self) -> Option<&Keys> {
        self.live.as_ref().map(|live| live.srtp.keys())
    }
}
