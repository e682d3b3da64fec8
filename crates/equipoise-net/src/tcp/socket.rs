use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;

use equipoise::units::Size;
use socket2::{Domain, Protocol, Socket, Type};

use super::TcpHosts;
use crate::NetError;

/// Length of the headers of IPv4 (RFC 791, Sec. 3.1) and TCP (RFC 9293, Sec. 3.1) without options. The size of a
/// segment does not include these headers.
pub(super) const HEADERS: Size = Size::from_bytes(40);

/// The file with the names of the available congestion controls.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Opens the sender's socket, which is bound but not connected. Returns the socket and its address.
pub(super) fn near_socket(hosts: &TcpHosts) -> Result<(Socket, SocketAddr), NetError> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), Some(Protocol::TCP)).map_err(failed("open"))?;
    set_congestion_control(&socket, &hosts.congestion_control)?;
    set_packet_size(&socket, hosts.packet)?;
    // Data that is supplied at a rate must not wait for further data before it is sent (RFC 9293, Sec. 3.7.4).
    socket.set_tcp_nodelay(true).map_err(failed("open"))?;
    let any_port = SocketAddr::from((hosts.sender.address(), 0));
    socket.bind(&any_port.into()).map_err(failed("bind"))?;
    let address = socket.local_addr().map_err(failed("bind"))?;
    let address = address.as_socket().unwrap_or(any_port);
    Ok((socket, address))
}

/// Sets the maximum size of a socket's IP packets.
pub(crate) fn set_packet_size(socket: &Socket, packet: Size) -> Result<(), NetError> {
    let segment = u32::try_from((packet - HEADERS).as_bytes()).unwrap_or(u32::MAX);
    socket.set_tcp_mss(segment).map_err(failed("set the segment size of"))
}

/// Checks that sockets in this thread's network namespace can use this congestion control.
///
/// # Errors
/// The errors of [`set_congestion_control`].
pub(crate) fn check_congestion_control(name: &str) -> Result<(), NetError> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).map_err(failed("open"))?;
    set_congestion_control(&socket, name)
}

/// Sets the congestion control of a socket.
///
/// # Errors
/// [`NetError::NoCongestionControl`] if the kernel does not have this congestion control, or does not permit its use.
pub(crate) fn set_congestion_control(socket: &Socket, name: &str) -> Result<(), NetError> {
    socket.set_tcp_congestion(name.as_bytes()).map_err(|source| {
        let known = fs::read_to_string(AVAILABLE).unwrap_or_default();
        let known = known.split_whitespace().map(str::to_owned).collect();
        NetError::NoCongestionControl { name: name.to_owned(), known, source }
    })
}

/// Returns a function that wraps the error of an operation on a TCP socket.
pub(crate) fn failed(what: &'static str) -> impl Fn(std::io::Error) -> NetError {
    move |source| NetError::Tcp { what, source }
}

/// Whether an error means that the connection is lost or was closed by the peer.
pub(crate) const fn is_gone(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::TimedOut
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
    )
}
