use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

use equipoise::units::Size;
use nix::sys::socket::{SetSockOpt as _, setsockopt, sockopt};
use nix::{libc, setsockopt_impl, sockopt_impl};

use super::socket::failed;
use crate::{NetError, TestBed, TestHost};

sockopt_impl!(
    /// The socket option for the maximum receive window that a socket offers, in bytes (`man 7 tcp`). The standard
    /// library, nix and socket2 do not offer this option.
    WindowClamp,
    SetOnly,
    libc::IPPROTO_TCP,
    libc::TCP_WINDOW_CLAMP,
    libc::c_int
);

/// The maximum window that a TCP receiver offers; `None` for the default of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceiveWindow(pub(crate) Option<Size>);

impl ReceiveWindow {
    /// Sets the limit of a connection's receive window. Must be called after each read, because the kernel replaces the
    /// limit when the size of the received packets changes. With full-sized segments, the limit that the kernel sets is
    /// 25 % larger than the limit set here.
    pub(crate) fn hold(self, connection: &impl AsFd) {
        if let Some(bytes) = self.bytes() {
            // This option was set on the listening socket without an error, so no error is expected here.
            let _ = WindowClamp.set(connection, &bytes);
        }
    }

    /// Limits the window of the connections of a listening socket. The receive buffer of each connection has space for
    /// this window, and does not grow.
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

/// Opens a listening socket on a host of a test bed; port 0 means any free port. `window` is the maximum receive window
/// with which each accepted connection starts.
pub(crate) fn listen(bed: &TestBed, host: TestHost, port: u16, window: ReceiveWindow) -> Result<TcpListener, NetError> {
    bed.inside(host.place(), || {
        let listener = TcpListener::bind((host.address(), port)).map_err(failed("listen"))?;
        listener.set_nonblocking(true).map_err(failed("listen"))?;
        window.limit(&listener)?;
        Ok(listener)
    })
}

/// Returns the next waiting connection, in non-blocking mode; `None` if no connection is waiting.
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
