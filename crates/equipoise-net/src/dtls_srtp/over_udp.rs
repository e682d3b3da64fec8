use equipoise::units::Span;
use equipoise_session::Endpoint;

use super::{DtlsSrtp, HandshakeError, Profile, Standing};
use crate::driver::drive;
use crate::transport::{Secured, Transport as _};
use crate::{NetError, Observer, Running, Socket};

/// An open association over a socket, through which one end of a session may speak.
///
/// Keys protect both directions, so that the end may send, receive, or do both
/// ([`Duplex`](equipoise_session::rtp::Duplex)). Its stream's overhead is the [`overhead`](Profile::overhead) of the
/// [`profile`](Self::profile), and for IPv6 20 bytes more.
pub struct OpenDtlsSrtp {
    transport: Secured,
    profile: Profile,
}

impl OpenDtlsSrtp {
    /// Lets the association open itself over `socket`; waits for the peer as long as `patience` says.
    ///
    /// # Errors
    /// [`NetError::NotOpened`] if there are no keys by then, or the peer was not to be had; what the socket says.
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

    /// How packets are protected.
    pub const fn profile(&self) -> Profile {
        self.profile
    }

    /// Runs `endpoint` on a thread of its own, as [`run_endpoint`](crate::run_endpoint) does. The association is closed behind its goodbye
    /// if it is stopped.
    ///
    /// # Errors
    /// [`NetError::Spawn`] if there is no thread to be had.
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
