//! Who may speak in a session, and who may listen: opening it, keys, SRTP.

pub(crate) mod handshake;
mod key;
pub(crate) mod protection;

use ring::rand::{SecureRandom as _, SystemRandom};

pub use handshake::Refusal;
pub(crate) use key::Nonce;
pub use key::{Key, KeyError};

/// Bytes that nobody can guess.
///
/// # Panics
/// Where the system has no random numbers to give, without which there is no security at all.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("Linux always has random numbers");
    bytes
}
