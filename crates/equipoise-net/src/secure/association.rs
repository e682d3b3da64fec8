use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant as StdInstant};

use dimpl::{Config, ConfigBuilder, Dtls, Error, Output};
use equipoise::units::Span;

use super::identity::{Fingerprint, Identity};
use super::keys::Profile;
use super::record;
use super::{Keys, Role};
use crate::Time;

/// One end of DTLS, in the caller's time. What it is for are its keys: packets are SRTP's.
pub(crate) struct Association {
    dtls: Dtls,
    began: Time,
    /// The last time that was told, and what the library took it for.
    clock: (Time, StdInstant),
    /// When the library wants to be called, in its time, and when it is.
    alarm: Option<StdInstant>,
    wake: Time,
    buffer: Vec<u8>,
    peer: Option<Fingerprint>,
    with: With,
    /// It has asked for a cookie, or has heard nothing so far: until it has the cookie, its time stands still, and so do its timers.
    awaits_cookie: bool,
    is_connected: bool,
    has_keys: bool,
    failure: Option<Failure>,
}

/// Whom an association is with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum With {
    /// An end of Equipoise, who has proved its address: DTLS 1.3 (RFC 9147), and AES-GCM.
    Ours,
    /// Anybody: DTLS 1.2 (RFC 6347) or 1.3.
    Foreign,
}

/// Why an association is of no use any more.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It was closed by the peer.
    Closed,
    /// The peer did not answer in time.
    Patience,
    /// What they agreed on is nothing to protect packets with.
    NoKeys,
    /// What the library says, of the peer or of itself.
    Protocol(Error),
}

/// What an association wants done.
pub(crate) enum Step<'a> {
    /// This record is to be carried to the peer.
    Carry(&'a [u8]),
    /// The handshake is over: the peer has shown that this certificate is its own.
    Done(Fingerprint, Keys),
}

/// Bytes of a datagram at the most: between our own ends with what carries it and headers of IPv6 below 1280.
const LARGEST: usize = 1120;
/// A flight is sent again after so long, and then after twice as long each time, but never longer than this. Ours: a third of all
/// packets may be lost, and somebody waits to be heard. A flight is one datagram or two, so no path suffers.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Span = Span::from_millis(400);
const RETRIES: usize = 30;
/// After so long a handshake has failed.
const PATIENCE: Span = Span::from_secs(10);
/// Patience of the library, whose pauses grow without our bound: by them it would be over long before.
const WITHOUT_END: Duration = Duration::from_hours(24);

/// The library tests its ciphers whenever a configuration is made, which takes milliseconds: once in a process.
fn config(with: With) -> Arc<Config> {
    static OURS: OnceLock<Arc<Config>> = OnceLock::new();
    static FOREIGN: OnceLock<Arc<Config>> = OnceLock::new();
    let made = |wishes: fn(ConfigBuilder) -> ConfigBuilder| {
        let builder = Config::builder().mtu(LARGEST).require_client_certificate(true);
        let builder = builder.flight_start_rto(FIRST_PAUSE).flight_retries(RETRIES).handshake_timeout(WITHOUT_END);
        let config = wishes(builder).build();
        Arc::new(config.unwrap_or_else(|error| unreachable!("a configuration of few wishes: {error}")))
    };
    match with {
        // Addresses are proved before an association is made.
        With::Ours => OURS.get_or_init(|| made(|builder| builder.use_server_cookie(false))).clone(),
        With::Foreign => FOREIGN.get_or_init(|| made(|builder| builder.use_server_cookie(true))).clone(),
    }
}

impl Association {
    /// One end of an association between our own, which begins at `now`.
    pub(crate) fn new(role: Role, identity: &Identity, now: Time) -> Self {
        Self::with(With::Ours, role, identity, now)
    }

    /// One end of an association with anybody, which begins at `now`.
    pub(crate) fn foreign(role: Role, identity: &Identity, now: Time) -> Self {
        Self::with(With::Foreign, role, identity, now)
    }

    fn with(with: With, role: Role, identity: &Identity, now: Time) -> Self {
        let std = StdInstant::now();
        let (config, certificate) = (config(with), identity.certificate());
        let mut dtls = match with {
            With::Ours => Dtls::new_13(config, certificate, std),
            With::Foreign => Dtls::new_auto(config, certificate, std),
        };
        dtls.set_active(role == Role::Client);
        let mut association = Self {
            dtls,
            began: now,
            clock: (now, std),
            alarm: None,
            wake: now,
            buffer: vec![0; 2 * LARGEST],
            peer: None,
            with,
            awaits_cookie: with == With::Foreign && role == Role::Server,
            is_connected: false,
            has_keys: false,
            failure: None,
        };
        association.on_timer(now);
        association
    }

    /// A datagram of records has come.
    pub(crate) fn handle(&mut self, now: Time, records: &[u8]) {
        self.on_timer(now);
        // Anything but an answer to its first word ends a client that does not know yet which version it speaks.
        let is_undecided = self.dtls.is_active() && self.dtls.protocol_version().is_none();
        if is_undecided && !record::answers_hello(records) {
            return;
        }
        let handled = self.dtls.handle_packet(records);
        self.note(handled);
    }

    /// Does what is due; to be called before anything else at a new time.
    pub(crate) fn on_timer(&mut self, now: Time) {
        let passed = u64::try_from((now - self.clock.0).as_nanos()).unwrap_or(0);
        let mut std = self.clock.1;
        if !self.awaits_cookie {
            std += Duration::from_nanos(passed);
            if now >= self.wake {
                // The library's time leaps over what is left of a pause that is too long.
                std = self.alarm.map_or(std, |alarm| alarm.max(std));
            }
        }
        self.clock = (now, std);
        if !self.is_connected && now - self.began >= PATIENCE {
            self.failure.get_or_insert(Failure::Patience);
        }
        let handled = self.dtls.handle_timeout(std);
        self.note(handled);
    }

    fn note(&mut self, handled: Result<(), Error>) {
        if let Err(error) = handled {
            let failure = if matches!(error, Error::Timeout(_)) { Failure::Patience } else { Failure::Protocol(error) };
            self.failure.get_or_insert(failure);
        }
    }

    /// Says that it is over, as the next thing to do.
    pub(crate) fn close(&mut self) {
        let closed = self.dtls.close();
        self.note(closed);
    }

    /// The next thing to do, until there is none.
    pub(crate) fn poll(&mut self) -> Option<Step<'_>> {
        loop {
            if self.failure.is_some() {
                return None;
            }
            // Decided before the record is lent, as the borrow would last as long as the loop.
            let (carried, keys) = match self.dtls.poll_output(&mut self.buffer) {
                Output::Packet(records) => {
                    self.awaits_cookie &= record::asks_for_cookie(records);
                    (Some(records.len()), None)
                }
                Output::BufferTooSmall { needed } => {
                    self.buffer.resize(needed, 0);
                    continue;
                }
                Output::Timeout(at) => {
                    self.set_alarm(at);
                    if self.is_connected && !self.has_keys {
                        // They come with the end of the handshake, or never.
                        self.failure = Some(Failure::NoKeys);
                    }
                    return None;
                }
                Output::PeerCert(certificate) => {
                    self.peer = Some(Fingerprint::of(certificate));
                    continue;
                }
                Output::Connected => {
                    self.is_connected = true;
                    continue;
                }
                Output::KeyingMaterial(material, profile) => (None, Keys::new(&material, profile)),
                Output::CloseNotify => {
                    self.failure = Some(Failure::Closed);
                    continue;
                }
                _ => continue,
            };
            if let Some(length) = carried {
                return Some(Step::Carry(&self.buffer[..length]));
            }
            // Only who is connected has proved that the certificate is its own.
            let peer = self.peer.filter(|_| self.is_connected);
            let is_fit = |keys: &Keys| self.with == With::Foreign || keys.profile() != Profile::Aes128CmSha1;
            match (peer, keys.filter(is_fit)) {
                (Some(peer), Some(keys)) => {
                    self.has_keys = true;
                    return Some(Step::Done(peer, keys));
                }
                _ => self.failure = Some(Failure::NoKeys),
            }
        }
    }

    fn set_alarm(&mut self, at: StdInstant) {
        // What comes in between makes no pause longer.
        if self.awaits_cookie {
            self.wake = self.began + PATIENCE;
        } else if self.alarm != Some(at) {
            let (now, std) = self.clock;
            let pause = i64::try_from(at.saturating_duration_since(std).as_nanos()).unwrap_or(i64::MAX);
            let (pause, end) = (Span::from_nanos(pause), self.began + PATIENCE);
            self.alarm = Some(at);
            // Of one that goes on the library has nothing to say for a long time.
            self.wake = if now < end { (now + pause.min(LONGEST_PAUSE)).min(end) } else { now + pause };
        }
    }

    /// When [`on_timer`](Self::on_timer) wants to be called.
    pub(crate) const fn wake(&self) -> Time {
        self.wake
    }

    /// Whether it is of no use any more.
    pub(crate) const fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Why, where it is.
    pub(crate) const fn take_failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }

    /// Whether the peer has still to show that its address is its own.
    pub(crate) const fn awaits_cookie(&self) -> bool {
        self.awaits_cookie
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If it fails, each association costs some milliseconds, in which the library tests its ciphers.
    #[test]
    fn trap_5_a_configuration_is_made_once_in_a_process() {
        for with in [With::Ours, With::Foreign] {
            assert!(Arc::ptr_eq(&config(with), &config(with)));
        }
        assert!(!config(With::Ours).use_server_cookie() && config(With::Foreign).use_server_cookie());
        assert!(config(With::Foreign).require_client_certificate());
    }
}
