use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

use equipoise::units::Size;
use nix::sys::socket::{SetSockOpt as _, setsockopt, sockopt};
use nix::{libc, setsockopt_impl, sockopt_impl};

use super::socket::failed;
use crate::{NetError, TestBed, TestHost};

sockopt_impl!(
    /// The largest window that a socket offers, in bytes (`man 7 tcp`). Neither the standard library nor nix nor
    /// socket2 offers this option.
    WindowClamp,
    SetOnly,
    libc::IPPROTO_TCP,
    libc::TCP_WINDOW_CLAMP,
    libc::c_int
);

/// The largest window that a receiver offers; `None` for the host's default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceiveWindow(pub(crate) Option<Size>);

impl ReceiveWindow {
    /// Limits the window of a connection again: the kernel recomputes its limit when it sees packets of another size,
    /// and with full segments that limit is a quarter larger.
    pub(crate) fn hold(self, connection: &impl AsFd) {
        if let Some(bytes) = self.bytes() {
            // The same option could be set on the listener, so it can be set here.
            let _ = WindowClamp.set(connection, &bytes);
        }
    }

    /// For a listening socket: the buffer of its connections has room for this window and does not grow.
    fn limit(self, listener: &TcpListener) -> Result<(), NetError> {
        let Some(bytes) = self.bytes() else { return Ok(()) };
        setsockopt(listener, sockopt::RcvBufForce, &(bytes as usize))
            .and_then(|()| WindowClamp.set(listener, &bytes))
            .map_err(|errno| failed("limit the window of")(errno.into()))
    }

    fn bytes(self) -> Option<libc::c_int> {
        self.0.map(|size| libc::c_int::try_from(size.as_bytes()).unwrap_or(libc::c_int::MAX))
    }
}

/// A listening socket at a host of a test bed; port 0 means any free port. Its connections start with this window.
pub(crate) fn listen(bed: &TestBed, host: TestHost, port: u16, window: ReceiveWindow) -> Result<TcpListener, NetError> {
    bed.inside(host.place(), || {
        let listener = TcpListener::bind((host.address(), port)).map_err(failed("listen"))?;
        listener.set_nonblocking(true).map_err(failed("listen"))?;
        window.limit(&listener)?;
        Ok(listener)
    })
}

/// The next waiting connection, in non-blocking mode; `None` if there is none yet.
pub(crate) fn accept(listener: &TcpListener) -> Result<Option<TcpStream>, NetError> {
    match listener.accept() {
        Ok((stream, _)) => {
            stream.set_nonblocking(true).map_err(failed("accept"))?;
            Ok(Some(stream))
        }
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
        Err(source) => Err(failed("accept")(source)),
    }
}
