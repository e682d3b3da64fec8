use std::net::{IpAddr, SocketAddr};

use sdp_types::{Media, ParserError, Session};
use thiserror::Error;

use super::{Fingerprint, FingerprintError};

/// Which endpoint starts the handshake (RFC 4145, Sec. 4; RFC 8842, Sec. 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setup {
    /// This endpoint starts the handshake: it is the DTLS client.
    Active,
    /// The peer starts the handshake: this endpoint is the DTLS server.
    Passive,
}

/// The configuration of an association's peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerConfig {
    /// The address at which the peer receives. The peer may send from another port of the same IP address, as some
    /// implementations do; datagrams from other IP addresses are dropped. If the port is 0, answers are sent to the
    /// port from which the peer sends.
    pub address: SocketAddr,
    /// The fingerprint of the peer's certificate. A peer with another certificate is refused.
    pub fingerprint: Fingerprint,
    /// The role of this endpoint in the handshake.
    pub setup: Setup,
}

/// Why a session description does not describe a usable peer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PeerError {
    /// The text is not a valid SDP.
    #[error("this is not a session description: {reason}")]
    Sdp {
        /// The error of the SDP parser.
        reason: String,
    },
    /// The description has no media over DTLS-SRTP.
    #[error("the description has no media over UDP/TLS/RTP/SAVP or SAVPF; it has {found}")]
    NoMedia {
        /// The protocols of the media in the description.
        found: String,
    },
    /// The description has no fingerprint of a certificate.
    #[error("the description has no `a=fingerprint` line, without which the peer cannot be authenticated")]
    NoFingerprint,
    /// The description has no fingerprint that can be used.
    #[error("the description's fingerprint cannot be used")]
    Fingerprint {
        /// The error of the last fingerprint.
        #[from]
        source: FingerprintError,
    },
    /// The address in the description is missing, or is a host name, an unspecified address or a multicast address.
    #[error("the description's address is {found:?}; use the address at which the peer receives, as found by ICE")]
    Address {
        /// The address in the description; empty if there is none.
        found: String,
    },
    /// The description has no `a=setup` attribute, which offers and answers must have (RFC 5763, Sec. 5). No default is
    /// possible: RFC 4145, Sec. 4 has different defaults for offers and answers, and the description does not say
    /// whether it is an offer or an answer.
    #[error(
        "the description has no `a=setup` line, without which nobody knows which end starts the handshake; it has to \
         be active, passive or actpass"
    )]
    NoSetup,
    /// The description's `a=setup` attribute has a value that cannot be used.
    #[error("the description says `a=setup:{found}`; it has to be active, passive or actpass")]
    Setup {
        /// The value of the attribute.
        found: String,
    },
    /// The peer's port is 0, but this endpoint is active and needs a port to send to.
    #[error("port 0 of the peer is only for the passive end; the active end needs the peer's port")]
    NoPort,
}

impl PeerConfig {
    /// Parses the first media description with DTLS-SRTP in an SDP (RFC 8866). If the SDP allows both roles, this
    /// endpoint is active, because that is faster (RFC 8842, Sec. 5.3).
    ///
    /// # Errors
    /// [`PeerError`] with the missing or invalid part.
    pub fn from_sdp(description: &str) -> Result<Self, PeerError> {
        let session = Session::parse(description.as_bytes());
        let session = session.map_err(|error: ParserError| PeerError::Sdp { reason: error.to_string() })?;
        let is_ours = |media: &&Media| matches!(media.proto.as_str(), "UDP/TLS/RTP/SAVP" | "UDP/TLS/RTP/SAVPF");
        let Some(media) = session.medias.iter().find(is_ours) else {
            let found: Vec<_> = session.medias.iter().map(|media| media.proto.as_str()).collect();
            let found = if found.is_empty() { "none at all".to_owned() } else { found.join(", ") };
            return Err(PeerError::NoMedia { found });
        };
        let config = Self {
            address: address(&session, media)?,
            fingerprint: fingerprint(&session, media)?,
            setup: setup(&session, media)?,
        };
        config.check().map(|()| config)
    }

    /// Rejects a configuration with which the peer cannot be reached.
    pub(super) const fn check(&self) -> Result<(), PeerError> {
        match self.setup {
            Setup::Active if self.address.port() == 0 => Err(PeerError::NoPort),
            _ => Ok(()),
        }
    }

    /// Whether a datagram from the address `from` may come from the peer.
    pub(super) fn expects(&self, from: SocketAddr) -> bool {
        from.ip().to_canonical() == self.address.ip().to_canonical()
    }

    /// The address to which answers to a datagram from `from` are sent.
    pub(super) const fn answer_to(&self, from: SocketAddr) -> SocketAddr {
        if self.address.port() == 0 { from } else { self.address }
    }
}

/// All values of an attribute of a media description. If the media description lacks the attribute, the values of the
/// whole session are returned (RFC 8866, Sec. 5).
fn values<'a>(session: &'a Session, media: &'a Media, name: &'a str) -> Vec<&'a str> {
    let own: Vec<_> = media.get_attribute_values(name).flatten().collect();
    if own.is_empty() { session.get_attribute_values(name).flatten().collect() } else { own }
}

fn address(session: &Session, media: &Media) -> Result<SocketAddr, PeerError> {
    let connection = media.connections.first().or(session.connection.as_ref());
    let found = connection.map_or_else(String::new, |connection| connection.connection_address.clone());
    let ip: Option<IpAddr> = found.parse().ok().filter(|ip: &IpAddr| !ip.is_unspecified() && !ip.is_multicast());
    ip.map(|ip| SocketAddr::new(ip, media.port)).ok_or(PeerError::Address { found })
}

fn fingerprint(session: &Session, media: &Media) -> Result<Fingerprint, PeerError> {
    let mut result = Err(PeerError::NoFingerprint);
    for text in values(session, media, "fingerprint") {
        // The SDP may contain several fingerprints with different hash functions. It is enough if one of them is
        // supported (RFC 8122, Sec. 5).
        match text.parse() {
            Ok(fingerprint) => return Ok(fingerprint),
            Err(error) => result = Err(PeerError::from(error)),
        }
    }
    result
}

fn setup(session: &Session, media: &Media) -> Result<Setup, PeerError> {
    match values(session, media, "setup").first().copied() {
        Some("passive" | "actpass") => Ok(Setup::Active),
        Some("active") => Ok(Setup::Passive),
        Some(other) => Err(PeerError::Setup { found: other.to_owned() }),
        None => Err(PeerError::NoSetup),
    }
}
