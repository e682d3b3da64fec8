use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant as StdInstant};

use dimpl::{Config, Dtls, Output, SrtpProfile};
use equipoise::units::Span;
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::hmac;
use zeroize::Zeroizing;

use super::identity::{Fingerprint, Identity, fingerprint};
use super::key::expand;
use super::protection::Role;
use crate::Time;

/// What both ends have at the end of a DTLS handshake (RFC 5764, Sec. 4.2; RFC 7714, Sec. 12): keys and salts of the two directions.
#[derive(Clone)]
pub(crate) struct Keys {
    /// The client's key, the server's key, the client's salt, the server's salt.
    material: Zeroizing<Vec<u8>>,
    /// Length of a key.
    key: usize,
}

/// Length of a salt (RFC 7714, Sec. 12).
const SALT: usize = 12;

impl Keys {
    fn new(material: &[u8], profile: SrtpProfile) -> Option<Self> {
        let key = match profile {
            SrtpProfile::AEAD_AES_128_GCM => 16,
            SrtpProfile::AEAD_AES_256_GCM => 32,
            _ => return None,
        };
        let keys = Self { material: Zeroizing::new(material.to_vec()), key };
        (material.len() == 2 * (key + SALT)).then_some(keys)
    }

    /// Keys that follow from a secret, for a test of what is done with keys.
    #[cfg(test)]
    pub(crate) fn of(secret: u8) -> Self {
        Self { material: Zeroizing::new((0..88).map(|at| secret ^ at).collect()), key: 32 }
    }

    /// Key and salt of what the sender sends, who is the client, or of what the receiver does.
    pub(super) fn of_role(&self, role: Role) -> (&[u8], &[u8]) {
        let at = usize::from(role == Role::Receiver);
        let (keys, salts) = self.material.split_at(2 * self.key);
        (&keys[at * self.key..(at + 1) * self.key], &salts[at * SALT..(at + 1) * SALT])
    }

    /// The key by which another path shows that it belongs to the session.
    pub(crate) fn join(&self) -> hmac::Key {
        let mut key = Zeroizing::new([0; 32]);
        expand(&Salt::new(HKDF_SHA256, b"equipoise 2").extract(&self.material), &[b"join"], &mut key[..]);
        hmac::Key::new(hmac::HMAC_SHA256, &key[..])
    }
}

/// One end of a DTLS 1.3 handshake (RFC 9147), in the caller's time. It is over with its keys: packets are SRTP's.
pub(crate) struct Association {
    dtls: Dtls,
    began: Time,
    /// The last time that was told, and what the library took it for.
    clock: (Time, StdInstant),
    /// When the library wants to be called, in its time, and when it is.
    alarm: StdInstant,
    wake: Time,
    buffer: Vec<u8>,
    peer: Option<Fingerprint>,
    is_connected: bool,
    /// It has failed, or nothing it could do would help.
    has_failed: bool,
}

/// What an association wants done.
pub(crate) enum Step<'a> {
    /// This record is to be carried to the peer.
    Carry(&'a [u8]),
    /// The handshake is over: the peer has shown that this certificate is its own.
    Done(Fingerprint, Keys),
}

/// Bytes of a record at the most: with what carries it and headers of IPv6 below 1280.
const LARGEST: usize = 1120;
/// A flight is sent again after so long, and then after twice as long each time, but never longer than this. Ours: a third of all
/// packets may be lost, and somebody waits to be heard. A flight is one datagram, so no path suffers.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Span = Span::from_millis(400);
const RETRIES: usize = 30;
/// After so long a handshake has failed.
const PATIENCE: Span = Span::from_secs(10);
/// Patience of the library, whose pauses grow without our bound: by them it would be over long before.
const WITHOUT_END: Duration = Duration::from_hours(24);

/// The library tests its ciphers whenever a configuration is made, which takes milliseconds: once in a process.
fn config() -> Arc<Config> {
    static CONFIG: OnceLock<Arc<Config>> = OnceLock::new();
    let made = || {
        let builder = Config::builder().mtu(LARGEST).require_client_certificate(true);
        // Addresses are proved before an association is made.
        let builder = builder.use_server_cookie(false).flight_start_rto(FIRST_PAUSE).flight_retries(RETRIES);
        let config = builder.handshake_timeout(WITHOUT_END).build();
        Arc::new(config.unwrap_or_else(|error| unreachable!("a configuration without a wish: {error}")))
    };
    CONFIG.get_or_init(made).clone()
}

impl Association {
    /// One end, which begins at `now`: the sender's is the client.
    pub(crate) fn new(role: Role, identity: &Identity, now: Time) -> Self {
        let std = StdInstant::now();
        let mut dtls = Dtls::new_13(config(), identity.certificate(), std);
        dtls.set_active(role == Role::Sender);
        let mut association = Self {
            dtls,
            began: now,
            clock: (now, std),
            alarm: std,
            wake: now,
            buffer: vec![0; 2 * LARGEST],
            peer: None,
            is_connected: false,
            has_failed: false,
        };
        association.on_timer(now);
        association
    }

    /// A record has come.
    pub(crate) fn handle(&mut self, now: Time, record: &[u8]) {
        self.on_timer(now);
        self.has_failed = self.has_failed || self.dtls.handle_packet(record).is_err();
    }

    /// Does what is due; to be called before anything else at a new time.
    pub(crate) fn on_timer(&mut self, now: Time) {
        let passed = u64::try_from((now - self.clock.0).as_nanos()).unwrap_or(0);
        let mut std = self.clock.1 + Duration::from_nanos(passed);
        if now >= self.wake {
            // The library's time leaps over what is left of a pause that is too long.
            std = std.max(self.alarm);
        }
        self.clock = (now, std);
        let is_over = now - self.began >= PATIENCE;
        self.has_failed = self.has_failed || is_over || self.dtls.handle_timeout(std).is_err();
    }

    /// The next thing to do, until there is none.
    pub(crate) fn poll(&mut self) -> Option<Step<'_>> {
        loop {
            if self.has_failed {
                return None;
            }
            // Decided before the record is lent, as the borrow would last as long as the loop.
            let (carried, keys) = match self.dtls.poll_output(&mut self.buffer) {
                Output::Packet(record) => (Some(record.len()), None),
                Output::BufferTooSmall { needed } => {
                    // Nothing that is sent here is larger than a datagram.
                    self.has_failed = needed > usize::from(u16::MAX);
                    self.buffer.resize(needed.min(usize::from(u16::MAX)), 0);
                    continue;
                }
                Output::Timeout(at) => {
                    self.set_alarm(at);
                    return None;
                }
                Output::PeerCert(certificate) => {
                    self.peer = Some(fingerprint(certificate));
                    continue;
                }
                Output::Connected => {
                    self.is_connected = true;
                    continue;
                }
                Output::KeyingMaterial(material, profile) => (None, Keys::new(&material, profile)),
                Output::CloseNotify => {
                    self.has_failed = true;
                    continue;
                }
                _ => continue,
            };
            if let Some(length) = carried {
                return Some(Step::Carry(&self.buffer[..length]));
            }
            // Only who is connected has proved that the certificate is its own.
            match (self.peer.filter(|_| self.is_connected), keys) {
                (Some(peer), Some(keys)) => return Some(Step::Done(peer, keys)),
                _ => self.has_failed = true,
            }
        }
    }

    fn set_alarm(&mut self, at: StdInstant) {
        // What comes in between makes no pause longer.
        if at != self.alarm {
            let (now, std) = self.clock;
            let pause = i64::try_from(at.saturating_duration_since(std).as_nanos()).unwrap_or(i64::MAX);
            self.alarm = at;
            self.wake = (now + Span::from_nanos(pause).min(LONGEST_PAUSE)).min(self.began + PATIENCE);
        }
    }

    /// When [`on_timer`](Self::on_timer) wants to be called.
    pub(crate) const fn wake(&self) -> Time {
        self.wake
    }

    /// Whether it is of no use any more.
    pub(crate) const fn has_failed(&self) -> bool {
        self.has_failed
    }
}
