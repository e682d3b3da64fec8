use equipoise::units::Span;
use equipoise_session::Endpoint;

use super::{DtlsSrtp, HandshakeError, Profile, Standing};
use crate::driver::drive;
use crate::transport::{Secured, Transport as _};
use crate::{NetError, Observer, Running, Socket};

/// An open DTLS-SRTP association over a socket, for one endpoint of a session.
///
/// Both directions are protected, so the endpoint may send, receive, or do both
/// ([`Duplex`](equipoise_session::rtp::Duplex)). In the configuration of the endpoint's stream, set the overhead to
/// [`Profile::overhead`] of the [`profile`](Self::profile), plus 20 bytes if IPv6 is used.
pub struct OpenDtlsSrtp {
    transport: Secured,
    profile: Profile,
}

impl OpenDtlsSrtp {
    /// Performs the handshake over `socket`. Waits at most `patience` for the peer.
    ///
    /// # Errors
    /// [`NetError::NotOpened`] if the handshake fails or takes longer than `patience`, and the errors of the socket.
    pub fn open(socket: Socket, association: DtlsSrtp, patience: Span) -> Result<Self, NetError> {
        let clock = socket.clock().clone();
        let give_up = clock.now() + patience;
        let mut transport = Secured::new(socket, association);
        loop {
            let now = clock.now();
            transport.on_timer(now)?;
            while transport.receive()?.is_some() {}
            match transport.association().standing() {
                Standing::Open(profile) => return Ok(Self { transport, profile }),
                Standing::Opening if now < give_up => {}
                Standing::Opening | Standing::Closed | Standing::Failed => {
                    return Err(not_opened(transport.into_association()));
                }
            }
            let until = transport.wake().map_or(give_up, |at| at.min(give_up));
            transport.links_mut().wait(None, until)?;
        }
    }

    /// The SRTP protection profile that the handshake selected.
    pub const fn profile(&self) -> Profile {
        self.profile
    }

    /// Runs `endpoint` on a separate thread, like [`run_endpoint`](crate::run_endpoint). If the endpoint is stopped, it
    /// first tells the peer that the session is over; then the association is closed.
    ///
    /// # Errors
    /// [`NetError::Spawn`] if no thread can be started.
    pub fn run<E, O>(self, name: &str, endpoint: E, observer: O) -> Result<Running<E, O>, NetError>
    where
        E: Endpoint + Send + 'static,
        O: Observer + Send + 'static,
    {
        drive(name, endpoint, self.transport, observer, None)
    }
}

fn not_opened(association: DtlsSrtp) -> NetError {
    association.into_trouble().unwrap_or(HandshakeError::NoAnswer { alert: None }).into()
}
