//! Authentication and encryption of sessions: opening, keys, SRTP.
//!
//! [`opening`] and [`door`] are the two ends of the exchange before a session has keys, and [`message`] is its wire
//! format. An `association` is the DTLS handshake within this exchange, and [`protection`] applies the keys. None of
//! them has a socket.

pub(crate) mod association;
mod cookie;
pub(crate) mod door;
mod identity;
mod key;
mod keys;
pub(crate) mod message;
pub(crate) mod opening;
pub(crate) mod protection;
pub(crate) mod record;
#[cfg(test)]
pub(crate) mod tests;
mod wanted;

use ring::rand::{SecureRandom as _, SystemRandom};

pub use identity::{Fingerprint, FingerprintError, Identity, IdentityError};
pub use key::{Key, KeyError};
pub use keys::Profile;
pub(crate) use keys::{Keys, Role};
pub use message::Refusal;
pub use wanted::{Wanted, WantedError};

/// A random number that is used once.
pub(crate) type Nonce = [u8; 16];

/// Random bytes that cannot be predicted.
///
/// # Panics
/// If the system has no random numbers, without which nothing is secure.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("Linux always has random numbers");
    bytes
}
