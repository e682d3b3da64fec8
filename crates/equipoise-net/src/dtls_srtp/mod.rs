//! Media with ends that are not Equipoise's: DTLS-SRTP (RFC 5763, RFC 5764) as WebRTC, GStreamer and OpenSSL speak it.
//!
//! A [`DtlsSrtp`] is one association with one peer, in the caller's time and without a socket: datagrams come in as arguments, packets and
//! datagrams to send go out. Whom it speaks with is told beforehand, by a configuration or an SDP ([`PeerConfig`]): an address, and the
//! fingerprint of a certificate. DTLS 1.2 and 1.3; SRTP and SRTCP on one port (RFC 5761). [`OpenDtlsSrtp`] is one over a socket, with an
//! end of a session on a thread of its own.
//!
//! Bare DTLS has no shared key that signs its first words, so who can send from the peer's address can disturb an opening, which begins
//! anew then; what he cannot is speak for the peer. Between ends of Equipoise use [`send()`](crate::send()) and [`Server`](crate::Server),
//! whose openings nobody disturbs.
//!
//! ```
//! use equipoise_net::Clock;
//! use equipoise_net::dtls_srtp::{DtlsSrtp, Fingerprint, Identity, PeerConfig, Setup};
//!
//! let identity = Identity::generate();
//! println!("a=fingerprint:{}", identity.fingerprint());
//!
//! // What the other end has told of itself.
//! let fingerprint: Fingerprint = "sha-256 4A:AD:B9:B1:3F:82:18:3B:54:02:12:DF:3E:5D:49:6B:19:E5:7C:AB:3E:4B:65:2E:7D:46:3F:54:42:CD:54:F1".parse()?;
//! let peer = PeerConfig { address: "192.0.2.7:5004".parse()?, fingerprint, setup: Setup::Active };
//! let mut session = DtlsSrtp::new(peer, identity, Clock::new().now())?;
//! let (to, hello) = session.poll().expect("who is active says the first word");
//! assert_eq!((to.port(), hello[0]), (5004, 22));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod over_udp;
mod peer;
mod session;
mod srtp;
#[cfg(test)]
mod tests;

pub use crate::secure::{Fingerprint, FingerprintError, Identity, IdentityError, Profile};
pub use over_udp::OpenDtlsSrtp;
pub use peer::{PeerConfig, PeerError, Setup};
pub use session::{Arrival, DtlsSrtp, HandshakeError, Standing};
pub use srtp::{MAX_SOURCES, ProtectError};
