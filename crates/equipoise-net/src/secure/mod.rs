//! Who may speak in a session, and who may listen: opening it, keys, SRTP.
//!
//! [`opening`] and [`door`] are the two ends of what is said before a session has keys, [`message`] its form; an
//! `association` is DTLS within it, [`protection`] what is done with the keys. None of them has a socket.

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

/// A number drawn by chance.
pub(crate) type Nonce = [u8; 16];

/// Bytes that nobody can guess.
///
/// # Panics
/// Where the system has no random numbers to give, without which there is no security at all.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("Linux always has random numbers");
    bytes
}
