use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant as StdInstant};

use dimpl::{Config, ConfigBuilder, Dtls, Error, Output};
use equipoise::units::Span;

use super::identity::{Fingerprint, Identity};
use super::keys::Profile;
use super::record;
use super::{Keys, Role};
use crate::Time;

/// One endpoint of a DTLS association, without a socket or clock. DTLS only negotiates keys; SRTP protects the packets.
pub(crate) struct Association {
    dtls: Dtls,
    began: Time,
    /// The time of the latest call: the caller's time, and the DTLS library's time.
    clock: (Time, StdInstant),
    /// When the DTLS library's timer expires, in the library's time; `wake` is this time in the caller's time.
    alarm: Option<StdInstant>,
    wake: Time,
    buffer: Vec<u8>,
    peer: Option<Fingerprint>,
    with: With,
    /// Whether this endpoint still waits until the peer returns a cookie. Until then, the library's time and timers are
    /// stopped.
    awaits_cookie: bool,
    is_connected: bool,
    has_keys: bool,
    failure: Option<Failure>,
}

/// The DTLS implementation that the peer may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum With {
    /// The peer is another host with Equipoise, whose address was already verified. The association uses DTLS 1.3 (RFC
    /// 9147) and AES-GCM.
    Ours,
    /// Any implementation: DTLS 1.2 (RFC 6347) or DTLS 1.3.
    Foreign,
}

/// Why an association ended.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The peer closed the association.
    Closed,
    /// The peer did not answer in time.
    Patience,
    /// The endpoints have no common SRTP profile.
    NoKeys,
    /// An error in the DTLS library: an invalid message of the peer, or an internal error.
    Protocol(Error),
}

/// An output of an association.
pub(crate) enum Step<'a> {
    /// DTLS records that must be sent to the peer.
    Carry(&'a [u8]),
    /// The handshake is complete. The peer has proved that it owns the certificate with this fingerprint.
    Done(Fingerprint, Keys),
}

/// Maximum size of a datagram of DTLS records in bytes. Two Equipoise hosts add Equipoise's header and the headers of
/// UDP and IPv6, and the IP packet is still smaller than 1280 bytes.
const LARGEST: usize = 1120;
/// `FIRST_PAUSE`: time after which unanswered handshake messages are sent again. Each further pause is twice as long,
/// up to `LONGEST_PAUSE`. Our choice: the user waits for the handshake. With short pauses, the handshake is short even
/// if a third of all packets is lost. The messages fill one or two datagrams, so they cannot congest a path.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Span = Span::from_millis(400);
const RETRIES: usize = 30;
/// A handshake that takes longer than this has failed.
const PATIENCE: Span = Span::from_secs(10);
/// The time limit of a handshake in the DTLS library: the longest that the library permits, so that only [`PATIENCE`]
/// ends a handshake. The library doubles its pause before each retransmission. We wait at most `LONGEST_PAUSE`, and
/// then set the library's clock to the end of the pause. Within [`PATIENCE`], this clock can advance by several weeks.
const WITHOUT_END: Duration = Duration::from_hours(24 * 3650);

/// Returns the configuration of the DTLS library. The library tests its ciphers whenever a configuration is created,
/// which takes milliseconds, so each configuration is created only once per process.
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
        // The address of the peer is verified before an association is created, so no cookie is necessary.
        With::Ours => OURS.get_or_init(|| made(|builder| builder.use_server_cookie(false))).clone(),
        With::Foreign => FOREIGN.get_or_init(|| made(|builder| builder.use_server_cookie(true))).clone(),
    }
}

impl Association {
    /// One endpoint of an association that starts at `now`. Both hosts use Equipoise.
    pub(crate) fn new(role: Role, identity: &Identity, now: Time) -> Self {
        Self::with(With::Ours, role, identity, now)
    }

    /// One endpoint of an association that starts at `now`. The peer may use any DTLS implementation.
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

    /// Handles a datagram of DTLS records.
    pub(crate) fn handle(&mut self, now: Time, records: &[u8]) {
        self.on_timer(now);
        // Until a client knows the DTLS version, any record that does not answer its ClientHello would end the
        // association.
        let is_undecided = self.dtls.is_active() && self.dtls.protocol_version().is_none();
        if is_undecided && !record::answers_hello(records) {
            return;
        }
        let handled = self.dtls.handle_packet(records);
        self.note(handled);
    }

    /// Handles expired timers, and passes the current time to the DTLS library. Must be called before
    /// [`close`](Self::close); [`handle`](Self::handle) calls this method itself.
    pub(crate) fn on_timer(&mut self, now: Time) {
        let passed = u64::try_from((now - self.clock.0).as_nanos()).unwrap_or(0);
        let mut std = self.clock.1;
        if !self.awaits_cookie {
            std += Duration::from_nanos(passed);
            if now >= self.wake {
                // We wait at most `LONGEST_PAUSE`, but the library's timer may expire later. In that case, the
                // library's clock is advanced, so that the library's timer expires now.
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

    /// Closes the association. The closing alert is the next output.
    pub(crate) fn close(&mut self) {
        let closed = self.dtls.close();
        self.note(closed);
    }

    /// Returns the next output; `None` if there is no output now.
    pub(crate) fn poll(&mut self) -> Option<Step<'_>> {
        loop {
            if self.failure.is_some() {
                return None;
            }
            // Only the length is stored here: a borrow of the buffer would last until the end of the loop.
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
                        // The library returns the keys together with the end of the handshake. If there are none now,
                        // there will be none later.
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
            // Before the handshake is complete, the peer has not proved that it has the private key of its certificate.
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
        // An unchanged `at` does not set the timer again. If it did, every datagram or call before the expiry could
        // postpone the timer.
        if self.awaits_cookie {
            self.wake = self.began + PATIENCE;
        } else if self.alarm != Some(at) {
            let (now, std) = self.clock;
            let pause = i64::try_from(at.saturating_duration_since(std).as_nanos()).unwrap_or(i64::MAX);
            let (pause, end) = (Span::from_nanos(pause), self.began + PATIENCE);
            self.alarm = Some(at);
            // After `end`, the handshake is complete or has failed, and pauses are no longer shortened.
            self.wake = if now < end { (now + pause.min(LONGEST_PAUSE)).min(end) } else { now + pause };
        }
    }

    /// When to call [`on_timer`](Self::on_timer).
    pub(crate) const fn wake(&self) -> Time {
        self.wake
    }

    /// Whether the association has ended.
    pub(crate) const fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Removes and returns the reason why the association ended; `None` if it has not ended.
    pub(crate) const fn take_failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }

    /// Whether this endpoint still waits until the peer returns a cookie, which verifies the peer's address.
    pub(crate) const fn awaits_cookie(&self) -> bool {
        self.awaits_cookie
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If the test fails, the creation of each association takes some milliseconds, because the library tests its
    /// ciphers again.
    #[test]
    fn trap_5_a_configuration_is_made_once_in_a_process() {
        for with in [With::Ours, With::Foreign] {
            assert!(Arc::ptr_eq(&config(with), &config(with)));
        }
        assert!(!config(With::Ours).use_server_cookie() && config(With::Foreign).use_server_cookie());
        assert!(config(With::Foreign).require_client_certificate());
    }

    /// No datagram arrives. If this test fails, a handshake ends too early during an outage of the path, or never ends
    /// if the peer does not answer.
    #[test]
    fn a_handshake_without_answers_is_repeated_until_the_patience_ends() {
        let identity = Identity::generate();
        let mut association = Association::new(Role::Client, &identity, Time::ZERO);
        let (mut now, mut sent) = (Time::ZERO, 0);
        while !association.has_failed() {
            while association.poll().is_some() {
                sent += 1;
            }
            if !association.has_failed() {
                now = association.wake();
                association.on_timer(now);
            }
        }
        assert_eq!(now, Time::ZERO + PATIENCE);
        assert!(sent >= 24, "{sent} datagrams, at least one every {LONGEST_PAUSE}");
    }
}
