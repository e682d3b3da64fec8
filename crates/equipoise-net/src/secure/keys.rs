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

/// The DTLS role of an endpoint. Between two hosts with Equipoise, the host that opens the session is the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The endpoint that starts the handshake.
    Client,
    /// The endpoint that answers the handshake.
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

/// An SRTP protection profile, which both endpoints agree on (RFC 5764, Sec. 4.1.2; RFC 7714, Sec. 14.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// `SRTP_AES128_CM_HMAC_SHA1_80`, which all implementations of WebRTC support.
    Aes128CmSha1,
    /// `SRTP_AEAD_AES_128_GCM`: AES-GCM with keys of 128 bits.
    Aes128Gcm,
    /// `SRTP_AEAD_AES_256_GCM`: AES-GCM with keys of 256 bits.
    Aes256Gcm,
}

impl Profile {
    /// The name of the profile as OpenSSL spells it. The name of [`Aes128CmSha1`](Self::Aes128CmSha1) lacks the `HMAC_`
    /// of RFC 5764.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes128CmSha1 => "SRTP_AES128_CM_SHA1_80",
            Self::Aes128Gcm => "SRTP_AEAD_AES_128_GCM",
            Self::Aes256Gcm => "SRTP_AEAD_AES_256_GCM",
        }
    }

    /// Number of bytes that the profile adds to an RTP packet: the authentication tag (RFC 3711, Sec. 4.2; RFC 7714,
    /// Sec. 13.2).
    pub const fn overhead(self) -> Size {
        match self {
            Self::Aes128CmSha1 => Size::from_bytes(10),
            Self::Aes128Gcm | Self::Aes256Gcm => Size::from_bytes(16),
        }
    }

    /// Converts the DTLS library's profile; `None` for a profile that a later version of the library adds.
    const fn of(agreed: SrtpProfile) -> Option<Self> {
        match agreed {
            SrtpProfile::AES128_CM_SHA1_80 => Some(Self::Aes128CmSha1),
            SrtpProfile::AEAD_AES_128_GCM => Some(Self::Aes128Gcm),
            SrtpProfile::AEAD_AES_256_GCM => Some(Self::Aes256Gcm),
            _ => None,
        }
    }

    /// The corresponding profile in the SRTP library.
    const fn protection(self) -> ProtectionProfile {
        match self {
            Self::Aes128CmSha1 => ProtectionProfile::Aes128CmHmacSha1_80,
            Self::Aes128Gcm => ProtectionProfile::AeadAes128Gcm,
            Self::Aes256Gcm => ProtectionProfile::AeadAes256Gcm,
        }
    }
}

/// The keying material from a DTLS handshake: keys and salts for both directions (RFC 5764, Sec. 4.2; RFC 7714, Sec.
/// 12).
#[derive(Clone)]
pub(crate) struct Keys {
    /// In this order: the client's key, the server's key, the client's salt, the server's salt.
    material: Zeroizing<Vec<u8>>,
    profile: Profile,
}

impl Keys {
    /// Creates the value from the bytes that the DTLS library exports for SRTP. `None` if the length does not match the
    /// profile, or if the profile is unknown.
    pub(super) fn new(material: &[u8], agreed: SrtpProfile) -> Option<Self> {
        let keys = Self { material: Zeroizing::new(material.to_vec()), profile: Profile::of(agreed)? };
        (material.len() == agreed.keying_material_len()).then_some(keys)
    }

    /// For tests: keys that are derived from a number.
    #[cfg(test)]
    pub(crate) fn of(secret: u8) -> Self {
        let material = Zeroizing::new((0..88).map(|at| secret ^ at).collect());
        Self { material, profile: Profile::Aes256Gcm }
    }

    pub(crate) const fn profile(&self) -> Profile {
        self.profile
    }

    /// All keying material, which tests compare with that of the peer.
    #[cfg(test)]
    pub(crate) fn material(&self) -> &[u8] {
        &self.material
    }

    /// The key and the salt for packets that the endpoint with this role sends.
    pub(super) fn of_role(&self, role: Role) -> (&[u8], &[u8]) {
        let profile = self.profile.protection();
        let (at, key, salt) = (usize::from(role == Role::Server), profile.key_len(), profile.salt_len());
        let (keys, salts) = self.material.split_at(2 * key);
        (&keys[at * key..(at + 1) * key], &salts[at * salt..(at + 1) * salt])
    }

    /// The SRTP context for packets that the endpoint with this role sends. The context checks SRTCP packets for
    /// replays; the caller has to check media packets.
    pub(crate) fn context(&self, role: Role) -> Context {
        let ((key, salt), profile) = (self.of_role(role), self.profile.protection());
        let replay = (srtp_no_replay_protection(), reports_come_once());
        let context = Context::new(key, salt, profile, Some(replay.0), Some(replay.1), &RingCrypto);
        // Creation can only fail if the keys or salts have a wrong length, or if the crypto library does not support
        // the profile's cipher.
        context.unwrap_or_else(|error| unreachable!("{profile:?} with its own lengths: {error}"))
    }

    /// The key with which a further path proves that it belongs to the session.
    pub(crate) fn join(&self) -> hmac::Key {
        let mut key = Zeroizing::new([0; 32]);
        expand(&Salt::new(HKDF_SHA256, b"equipoise 2").extract(&self.material), &[b"join"], &mut key[..]);
        hmac::Key::new(hmac::HMAC_SHA256, &key[..])
    }
}

/// Returns a replay window for SRTCP reports. The window starts at 0, like the numbers of the reports. The window that
/// `rtc-srtp` provides starts at the first packet, even if this packet is forged.
fn reports_come_once() -> ContextOption {
    let window = || SlidingWindowDetector::new(ReplayWindow::LENGTH.into(), MOST_REPORTS.into());
    Box::new(move || -> Box<dyn ReplayDetector> { Box::new(window()) })
}
