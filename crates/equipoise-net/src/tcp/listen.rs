use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

use equipoise::units::Size;
use nix::sys::socket::{SetSockOpt as _, setsockopt, sockopt};
use nix::{libc, setsockopt_impl, sockopt_impl};

use super::socket::failed;
use crate::{NetError, TestBed, TestHost};

sockopt_impl!(
    /// The largest window that a socket offers, in bytes (`man 7 tcp`); neither the standard library nor nix nor socket2 has it.
    WindowClamp,
    SetOnly,
    libc::IPPROTO_TCP,
    libc::TCP_WINDOW_CLAMP,
    libc::c_int
);

/// The largest window that a receiver offers; `None` for what its host gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceiveWindow(pub(crate) Option<Size>);

impl ReceiveWindow {
    /// Limits the window of a connection once more: the kernel reckons its limit anew when it sees packets of another size, and
    /// with full segments comes to a quarter more.
    pub(crate) fn hold(self, connection: &impl AsFd) {
        if let Some(bytes) = self.bytes() {
            // What could be set on the listener can be set again.
            let _ = WindowClamp.set(connection, &bytes);
        }
    }

    /// For a socket that listens: the buffer of its connections has room for such a window and does not grow.
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

/// A socket that listens at a host of a test bed; port 0 takes any free one. Its connections begin with this window.
pub(crate) fn listen(bed: &TestBed, host: TestHost, port: u16, window: ReceiveWindow) -> Result<TcpListener, NetError> {
    bed.inside(host.place(), || {
        let listener = TcpListener::bind((host.address(), port)).map_err(failed("listen"))?;
        listener.set_nonblocking(true).map_err(failed("listen"))?;
        window.limit(&listener)?;
        Ok(listener)
    })
}

/// The connection that waits, which does not block; `None` if there is none yet.
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
