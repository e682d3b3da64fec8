use std::fmt;

use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use ring::hmac;
use thiserror::Error;

/// A number drawn by chance.
pub(crate) type Nonce = [u8; 16];

/// A secret that both hosts know.
///
/// It is not used itself: every session has keys of its own, derived from it and from what both ends drew by chance. Who
/// learns it later can decrypt sessions that were recorded.
#[derive(Clone)]
pub struct Key {
    /// Pseudo-random key of the secret (RFC 5869, Sec. 2.2).
    secret: Vec<u8>,
    handshake: hmac::Key,
}

/// Why a secret is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// It could be guessed.
    #[error("the key has {found} bytes; it needs {min} or more, such as `head -c 32 /dev/urandom | base64` gives")]
    TooShort {
        /// Its length in bytes.
        found: usize,
        /// The shortest key.
        min: usize,
    },
}

/// Keys and salts of a session's two directions (RFC 7714, Sec. 12: 128 and 96 bits).
pub(super) struct SessionKeys {
    pub(super) to_receiver: ([u8; 16], [u8; 12]),
    pub(super) to_sender: ([u8; 16], [u8; 12]),
}

impl Key {
    /// The shortest key in bytes: 128 bits, if they are chance.
    pub const SHORTEST: usize = 16;

    /// A key from the bytes of a secret; white space around it, such as a file's last line break, does not count.
    ///
    /// # Errors
    /// [`KeyError::TooShort`] below [`Key::SHORTEST`] bytes.
    pub fn new(secret: &[u8]) -> Result<Self, KeyError> {
        let secret = secret.trim_ascii();
        if secret.len() < Self::SHORTEST {
            return Err(KeyError::TooShort { found: secret.len(), min: Self::SHORTEST });
        }
        let mut handshake = [0; 32];
        expand(&Salt::new(HKDF_SHA256, b"equipoise 1").extract(secret), &[b"handshake"], &mut handshake);
        let handshake = hmac::Key::new(hmac::HMAC_SHA256, &handshake);
        Ok(Self { secret: secret.to_vec(), handshake })
    }

    /// The key that handshake messages are authenticated with.
    pub(super) const fn handshake(&self) -> &hmac::Key {
        &self.handshake
    }

    /// The keys of the session between a sender and a receiver who drew these numbers.
    pub(super) fn session(&self, sender: &Nonce, receiver: &Nonce) -> SessionKeys {
        let salt = [b"equipoise 1".as_slice(), sender, receiver].concat();
        let secret = Salt::new(HKDF_SHA256, &salt).extract(&self.secret);
        let direction = |label: &[u8]| {
            let (mut key, mut salt) = ([0; 16], [0; 12]);
            expand(&secret, &[label, b" key"], &mut key);
            expand(&secret, &[label, b" salt"], &mut salt);
            (key, salt)
        };
        SessionKeys { to_receiver: direction(b"to receiver"), to_sender: direction(b"to sender") }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn expand(secret: &Prk, info: &[&[u8]], out: &mut [u8]) {
    // HKDF gives up to 255 hashes; these are shorter.
    let filled = secret.expand(info, Length(out.len())).and_then(|okm| okm.fill(out));
    debug_assert!(filled.is_ok());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_secret_is_refused_and_white_space_does_not_make_it_longer() {
        assert_eq!(Key::new(b"  guess me  \n\n\n\n\n\n").err(), Some(KeyError::TooShort { found: 8, min: 16 }));
        assert!(Key::new(b"0123456789abcdef\n").is_ok());
    }

    #[test]
    fn sessions_and_directions_have_different_keys() {
        let key = Key::new(b"0123456789abcdef").expect("long enough");
        let keys = key.session(&[1; 16], &[2; 16]);
        assert_ne!(keys.to_receiver, keys.to_sender);
        assert_ne!(keys.to_receiver, key.session(&[1; 16], &[3; 16]).to_receiver);
        assert_ne!(keys.to_receiver, key.session(&[2; 16], &[1; 16]).to_receiver);
    }

    /// RFC 5869 by another implementation: Python's hmac and hashlib.
    #[test]
    fn the_derivation_is_that_of_rfc_5869() {
        let key = Key::new(b"0123456789abcdef").expect("long enough");
        let (to_receiver, salt) = key.session(&[1; 16], &[2; 16]).to_receiver;
        assert_eq!(hex(&to_receiver), "3beb3778c8888f8d8768d347bceb61a3");
        assert_eq!(hex(&salt), "a523311ee2ee17edfa3fe38e");
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
