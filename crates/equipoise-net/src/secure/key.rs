use std::fmt;

use base64ct::{Base64, Base64Unpadded, Encoding as _};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use ring::hmac;
use thiserror::Error;
use zeroize::Zeroizing;

use super::random;

/// A random secret that both hosts share.
///
/// The key authenticates the messages that open sessions, and encrypts nothing. Every session has its own keys. An
/// attacker who learns the shared key, even later, cannot derive the keys of a session from it. The bytes of the shared
/// key are overwritten on drop.
#[derive(Clone)]
pub struct Key {
    secret: Zeroizing<Vec<u8>>,
    handshake: hmac::Key,
}

/// Why a text or a byte string is not a valid key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The key is so short that it could be guessed.
    #[error("the key has {found} bytes; it needs at least {min} random bytes")]
    TooShort {
        /// The length of the key in bytes.
        found: usize,
        /// The minimum length in bytes.
        min: usize,
    },
    /// The text is not in base64. It may be a word or a sentence, which could be guessed, or binary data.
    #[error(
        "the key is not in base64 (RFC 4648, Sec. 4), in which 22 characters or more stand for bytes drawn by chance"
    )]
    NotBase64,
}

impl Key {
    /// The minimum length of a key in bytes: 128 random bits.
    pub const SHORTEST: usize = 16;
    /// The length in bytes of a key that [`Key::generate`] creates.
    const GENERATED: usize = 32;

    /// Creates a new random key.
    pub fn generate() -> Self {
        let drawn = Zeroizing::new(random::<{ Self::GENERATED }>());
        Self::of(Zeroizing::new(drawn.to_vec()))
    }

    /// Creates a key from random bytes. Do not use a word or a sentence.
    ///
    /// # Errors
    /// [`KeyError::TooShort`] if there are fewer than [`Key::SHORTEST`] bytes.
    pub fn new(secret: &[u8]) -> Result<Self, KeyError> {
        if secret.len() < Self::SHORTEST {
            return Err(KeyError::TooShort { found: secret.len(), min: Self::SHORTEST });
        }
        Ok(Self::of(Zeroizing::new(secret.to_vec())))
    }

    /// Parses a key from the text that [`Key::to_base64`] returns: base64, with or without `=` at the end. White space
    /// at the start and the end, such as a line break, is ignored.
    ///
    /// # Errors
    /// [`KeyError::NotBase64`] if the text is not in base64; [`KeyError::TooShort`] if the key has fewer than
    /// [`Key::SHORTEST`] bytes.
    pub fn from_base64(text: &str) -> Result<Self, KeyError> {
        let secret = Base64Unpadded::decode_vec(text.trim().trim_end_matches('=')).map_err(|_| KeyError::NotBase64)?;
        Self::new(&Zeroizing::new(secret))
    }

    /// The key as text in base64 (RFC 4648, Sec. 4). It should be stored in a file or a variable that other users
    /// cannot read.
    pub fn to_base64(&self) -> Zeroizing<String> {
        Zeroizing::new(Base64::encode_string(&self.secret))
    }

    fn of(secret: Zeroizing<Vec<u8>>) -> Self {
        let mut handshake = Zeroizing::new([0; 32]);
        expand(&Salt::new(HKDF_SHA256, b"equipoise 2").extract(&secret), &[b"handshake"], &mut handshake[..]);
        let handshake = hmac::Key::new(hmac::HMAC_SHA256, &handshake[..]);
        Self { secret, handshake }
    }

    /// The key that authenticates handshake messages.
    pub(crate) const fn handshake(&self) -> &hmac::Key {
        &self.handshake
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

pub(super) fn expand(secret: &Prk, info: &[&[u8]], out: &mut [u8]) {
    // HKDF can return up to 255 times the length of a hash (RFC 5869, Sec. 2.3); all keys here are shorter.
    let filled = secret.expand(info, Length(out.len())).and_then(|okm| okm.fill(out));
    debug_assert!(filled.is_ok());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_guessed_is_no_key() {
        assert_eq!(Key::new(b"guess me").err(), Some(KeyError::TooShort { found: 8, min: 16 }));
        for sentence in
            ["what only these two hosts know", "correct horse battery staple", "0123456789abcdef!!!!!!!!", ""]
        {
            assert!(Key::from_base64(sentence).is_err(), "{sentence}");
        }
        assert_eq!(Key::from_base64("MDEyMzQ1Njc4OWFi").err(), Some(KeyError::TooShort { found: 12, min: 16 }));
    }

    #[test]
    fn a_key_comes_back_from_its_text() {
        let key = Key::generate();
        let text = key.to_base64();
        assert_eq!(text.len(), 44);
        let back = Key::from_base64(&format!("  {}\n", text.trim_end_matches('='))).expect("a key");
        assert_eq!(back.secret, key.secret);
        assert_ne!(Key::generate().secret, key.secret);
        assert_eq!(format!("{key:?}"), "Key(..)");
    }

    /// The expected value was computed with an independent implementation of RFC 5869, which uses Python's hmac and
    /// hashlib.
    #[test]
    fn the_derivation_is_that_of_rfc_5869() {
        let mut out = [0; 32];
        expand(&Salt::new(HKDF_SHA256, b"equipoise 2").extract(b"0123456789abcdef"), &[b"handshake"], &mut out);
        assert_eq!(hex(&out), "136a6c96432bb6e0215ea17c249a753befaf3f070803d0662d64148463239254");
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
