use std::net::{IpAddr, SocketAddr};

use sdp_types::{Media, ParserError, Session};
use thiserror::Error;

use super::{Fingerprint, FingerprintError};

/// Which end says the first word (RFC 4145, Sec. 4; RFC 8842, Sec. 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setup {
    /// This one: it is DTLS's client.
    Active,
    /// The other one.
    Passive,
}

/// Whom an association is with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerConfig {
    /// Where it receives. It may send from another port of this address, as some do; others are not heard. With port 0 answers go where it
    /// sends from.
    pub address: SocketAddr,
    /// Of its certificate: who has another one is somebody else.
    pub fingerprint: Fingerprint,
    /// Which role this end takes.
    pub setup: Setup,
}

/// A description gives no peer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PeerError {
    /// It does not parse.
    #[error("this is no session description: {reason}")]
    Sdp {
        /// What the parser says.
        reason: String,
    },
    /// It has no media over DTLS-SRTP.
    #[error("the description has no media over UDP/TLS/RTP/SAVP or SAVPF; it has {found}")]
    NoMedia {
        /// The protocols of its media.
        found: String,
    },
    /// It has no fingerprint.
    #[error("the description has no `a=fingerprint` line; without one nobody knows whom he speaks with")]
    NoFingerprint,
    /// None that can be used.
    #[error("the description's fingerprint is of no use")]
    Fingerprint {
        /// Of the last one.
        #[from]
        source: FingerprintError,
    },
    /// It has no address, or a name in its place.
    #[error("the description's address is {found:?}; give the one that its peer receives at, as ICE finds it")]
    Address {
        /// Its text.
        found: String,
    },
    /// The roles do not fit.
    #[error("the description says `a=setup:{found}`; it has to be active, passive or actpass")]
    Setup {
        /// What it says.
        found: String,
    },
    /// Who says the first word has to know where to.
    #[error("port 0 of the peer is for who waits for the first word; give its port to be active")]
    NoPort,
}

impl PeerConfig {
    /// What an SDP (RFC 8866) says of its first media over DTLS-SRTP. Where the roles are left to this end, it is active, which is sooner
    /// (RFC 8842, Sec. 5.3).
    ///
    /// # Errors
    /// [`PeerError`], which names what it lacks.
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

    /// Refuses a peer that nobody can speak with.
    pub(super) const fn check(&self) -> Result<(), PeerError> {
        match self.setup {
            Setup::Active if self.address.port() == 0 => Err(PeerError::NoPort),
            _ => Ok(()),
        }
    }

    /// Whether a datagram from there may be the peer's.
    pub(super) fn expects(&self, from: SocketAddr) -> bool {
        from.ip().to_canonical() == self.address.ip().to_canonical()
    }

    /// Where one who was heard from there is answered.
    pub(super) const fn answer_to(&self, from: SocketAddr) -> SocketAddr {
        if self.address.port() == 0 { from } else { self.address }
    }
}

/// All values of an attribute: those of the media, or those of the session where it has none (RFC 8866, Sec. 6).
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
        // Of several, made by several functions, one by ours will do (RFC 8122, Sec. 5).
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
        // Who says nothing is active (RFC 4145, Sec. 4).
        Some("active") | None => Ok(Setup::Passive),
        Some(other) => Err(PeerError::Setup { found: other.to_owned() }),
    }
}
