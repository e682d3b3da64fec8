//! DTLS-SRTP (RFC 5763, RFC 5764) to exchange media with other implementations, such as WebRTC, GStreamer and OpenSSL.
//!
//! A [`DtlsSrtp`] is one association with one peer. It has no socket and no clock: the caller passes received datagrams
//! and the time, and sends the datagrams that the association returns. The peer must be known beforehand, from a
//! configuration or an SDP ([`PeerConfig`]): its address, and the fingerprint of its certificate. The association
//! supports DTLS 1.2 and 1.3, with SRTP and SRTCP on one port (RFC 5761). An [`OpenDtlsSrtp`] is an association with a
//! socket. It runs one endpoint of a session on a separate thread.
//!
//! Plain DTLS has no shared key that authenticates the first messages. Therefore, an attacker who can send from the
//! peer's address can force a handshake to start again, but cannot impersonate the peer. Between two hosts that use
//! Equipoise, use [`send()`](crate::send()) and [`Server`](crate::Server): with these, such an attacker cannot disturb
//! a handshake.
//!
//! ```
//! use equipoise_net::Clock;
//! use equipoise_net::dtls_srtp::{DtlsSrtp, Fingerprint, Identity, PeerConfig, Setup};
//!
//! let identity = Identity::generate();
//! println!("a=fingerprint:{}", identity.fingerprint());
//!
//! // From the SDP of the other end.
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
