//! Authentication and encryption of sessions: the keys, the exchange that opens a session, and SRTP.
//!
//! [`opening`] and [`door`] are the sender's and the receiver's part of the exchange that opens a session. [`message`]
//! is the format of its messages. An `association` is the DTLS handshake within the exchange, and [`protection`] uses
//! the keys. None of these has a socket.

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

/// A random number that is used only once, or a cookie.
pub(crate) type Nonce = [u8; 16];

/// Returns random bytes that cannot be predicted.
///
/// # Panics
/// If the system cannot provide random numbers, because then nothing would be secure.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("Linux always has random numbers");
    bytes
}
