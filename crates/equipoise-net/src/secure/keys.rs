use dimpl::SrtpProfile;
use equipoise::measure::ReplayWindow;
use equipoise::units::Size;
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::hmac;
use rtc_crypto::providers::RingCrypto;
use rtc_shared::replay_detector::{ReplayDetector, SlidingWindowDetector};
use rtc_srtp::context::Context;
use rtc_srtp::option::{ContextOption, srtp_no_replay_protection};
use rtc_srtp::protection_profile::ProtectionProfile;
use zeroize::Zeroizing;

use super::key::expand;
use super::protection::MOST_REPORTS;

/// The DTLS role of an end. Between two ends of Equipoise, the client is the end that opens the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Starts the handshake.
    Client,
    /// Answers the handshake.
    Server,
}

impl Role {
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// SRTP protection profile agreed by both ends (RFC 5764, Sec. 4.1.2; RFC 7714, Sec. 14.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// `SRTP_AES128_CM_SHA1_80`, supported by all implementations.
    Aes128CmSha1,
    /// `SRTP_AEAD_AES_128_GCM`.
    Aes128Gcm,
    /// `SRTP_AEAD_AES_256_GCM`.
    Aes256Gcm,
}

impl Profile {
    /// The registered name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes128CmSha1 => "SRTP_AES128_CM_SHA1_80",
            Self::Aes128Gcm => "SRTP_AEAD_AES_128_GCM",
            Self::Aes256Gcm => "SRTP_AEAD_AES_256_GCM",
        }
    }

    /// Bytes it adds to an RTP packet: the authentication tag (RFC 3711, Sec. 4.2; RFC 7714, Sec. 13.2).
    pub const fn overhead(self) -> Size {
        match self {
            Self::Aes128CmSha1 => Size::from_bytes(10),
            Self::Aes128Gcm | Self::Aes256Gcm => Size::from_bytes(16),
        }
    }

    /// `None` for a profile that a later version of the DTLS library may support.
    const fn of(agreed: SrtpProfile) -> Option<Self> {
        match agreed {
            SrtpProfile::AES128_CM_SHA1_80 => Some(Self::Aes128CmSha1),
            SrtpProfile::AEAD_AES_128_GCM => Some(Self::Aes128Gcm),
            SrtpProfile::AEAD_AES_256_GCM => Some(Self::Aes256Gcm),
            _ => None,
        }
    }

    /// The name of the profile in the SRTP library.
    const fn protection(self) -> ProtectionProfile {
        match self {
            Self::Aes128CmSha1 => ProtectionProfile::Aes128CmHmacSha1_80,
            Self::Aes128Gcm => ProtectionProfile::AeadAes128Gcm,
            Self::Aes256Gcm => ProtectionProfile::AeadAes256Gcm,
        }
    }
}

/// Keying material from a DTLS handshake (RFC 5764, Sec. 4.2; RFC 7714, Sec. 12): keys and salts of both directions.
#[derive(Clone)]
pub(crate) struct Keys {
    /// The client's key, the server's key, the client's salt, the server's salt.
    material: Zeroizing<Vec<u8>>,
    profile: Profile,
}

impl Keys {
    /// `None` if the length does not match the profile.
    pub(super) fn new(material: &[u8], agreed: SrtpProfile) -> Option<Self> {
        let keys = Self { material: Zeroizing::new(material.to_vec()), profile: Profile::of(agreed)? };
        (material.len() == agreed.keying_material_len()).then_some(keys)
    }

    /// Keys derived from a number, to test their use.
    #[cfg(test)]
    pub(crate) fn of(secret: u8) -> Self {
        let material = Zeroizing::new((0..88).map(|at| secret ^ at).collect());
        Self { material, profile: Profile::Aes256Gcm }
    }

    pub(crate) const fn profile(&self) -> Profile {
        self.profile
    }

    /// All keying material, to compare with another end's.
    #[cfg(test)]
    pub(crate) fn material(&self) -> &[u8] {
        &self.material
    }

    /// Key and salt for the packets sent by an end.
    pub(super) fn of_role(&self, role: Role) -> (&[u8], &[u8]) {
        let profile = self.profile.protection();
        let (at, key, salt) = (usize::from(role == Role::Server), profile.key_len(), profile.salt_len());
        let (keys, salts) = self.material.split_at(2 * key);
        (&keys[at * key..(at + 1) * key], &salts[at * salt..(at + 1) * salt])
    }

    /// The SRTP context for the packets sent by an end. It checks SRTCP for replays; the caller has to check media
    /// packets.
    pub(crate) fn context(&self, role: Role) -> Context {
        let ((key, salt), profile) = (self.of_role(role), self.profile.protection());
        let replay = (srtp_no_replay_protection(), reports_come_once());
        let context = Context::new(key, salt, profile, Some(replay.0), Some(replay.1), &RingCrypto);
        // Creation fails only for keys and salts of another length, or if the provider lacks these ciphers.
        context.unwrap_or_else(|error| unreachable!("{profile:?} with its own lengths: {error}"))
    }

    /// The key with which another path proves that it belongs to the session.
    pub(crate) fn join(&self) -> hmac::Key {
        let mut key = Zeroizing::new([0; 32]);
        expand(&Salt::new(HKDF_SHA256, b"equipoise 2").extract(&self.material), &[b"join"], &mut key[..]);
        hmac::Key::new(hmac::HMAC_SHA256, &key[..])
    }
}

/// A replay window for reports that starts at 0, as report numbers do. The default window of `rtc-srtp` starts at the
/// first packet, even a forged one.
fn reports_come_once() -> ContextOption {
    let window = || SlidingWindowDetector::new(ReplayWindow::LENGTH.into(), MOST_REPORTS.into());
    Box::new(move || -> Box<dyn ReplayDetector> { Box::new(window()) })
}
