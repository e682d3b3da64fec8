use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use equipoise::units::{Size, Span};
use equipoise_pair::wire::PairHello;
use socket2::{Domain, Protocol, SockRef, Socket as TcpSocket, TcpKeepalive, Type};

use super::{PairConfig, WindowControl};
use crate::tcp::{failed, set_congestion_control, set_packet_size};
use crate::{Clock, NetError, Socket};

/// `KEEP_ALIVE`: how long a connection is idle before TCP probes it. `KEEP_ALIVE_PAUSE`: time between two probes. Our
/// choice.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const KEEP_ALIVE_PAUSE: Duration = Duration::from_secs(5);

/// Settings for opening the TCP and UDP flows to a receiver.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// The congestion control, as in [`PairConfig`].
    pub(super) congestion_control: Option<String>,
    pub(super) window_control: Option<WindowControl>,
    pub(super) local: Option<SocketAddr>,
    pub(super) patience: Span,
    /// Size of the IP packet of a full TCP segment; `None` for the size that fits the path.
    pub(super) packet: Option<Size>,
}

impl From<&PairConfig> for Link {
    fn from(config: &PairConfig) -> Self {
        Self {
            congestion_control: config.congestion_control.clone(),
            window_control: config.window_control.clone(),
            local: config.local,
            patience: config.patience,
            packet: None,
        }
    }
}

/// The TCP connection and the UDP socket to a receiver that has sent its first message (hello).
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) stream: TcpStream,
    pub(super) socket: Socket,
    pub(super) receiver: PairHello,
}

/// Connects to a receiver, announces the SSRC of the sender's packets, and reads the receiver's first message (hello).
///
/// # Errors
/// [`NetError::NoPair`] if no receiver answers, [`NetError::NoCongestionControl`] if the kernel does not have the
/// requested congestion control, and the system's errors.
pub(super) fn open(peer: SocketAddr, link: &Link, clock: &Clock, ssrc: u32) -> Result<Opened, NetError> {
    let any: IpAddr = if peer.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let socket = Socket::bind(link.local.unwrap_or((any, 0).into()), clock)?;
    let patience = Duration::from_nanos(link.patience.max(Span::from_millis(1)).as_nanos().unsigned_abs());
    let tcp = TcpSocket::new(Domain::for_address(peer), Type::STREAM, Some(Protocol::TCP)).map_err(failed("open"))?;
    if let Some(local) = link.local {
        tcp.set_reuse_address(true).map_err(failed("bind"))?;
        tcp.bind(&local.into()).map_err(failed("bind"))?;
    }
    let window_control = link.window_control.as_ref().map(WindowControl::congestion_control);
    if let Some(name) = window_control.or(link.congestion_control.as_deref()) {
        set_congestion_control(&tcp, name)?;
    }
    if let Some(packet) = link.packet {
        set_packet_size(&tcp, packet)?;
    }
    let no_pair = |said: String| NetError::NoPair { peer, said };
    tcp.connect_timeout(&peer.into(), patience).map_err(|error| no_pair(error.to_string()))?;
    let mut stream = TcpStream::from(tcp);
    keep_alive(&stream);
    let port = socket.address().port();
    stream.set_read_timeout(Some(patience)).map_err(failed("open"))?;
    stream.write_all(&PairHello { port, ssrc }.to_bytes()).map_err(|error| no_pair(error.to_string()))?;
    let mut answer = [0; PairHello::LEN];
    stream.read_exact(&mut answer).map_err(|error| no_pair(error.to_string()))?;
    let receiver = PairHello::parse(answer).map_err(|error| no_pair(error.to_string()))?;
    stream.set_nonblocking(true).map_err(failed("open"))?;
    Ok(Opened { stream, socket, receiver })
}

/// Enables TCP keep-alive, so that the kernel detects a lost peer even if nothing is sent.
pub(super) fn keep_alive(stream: &TcpStream) {
    let how = TcpKeepalive::new().with_time(KEEP_ALIVE).with_interval(KEEP_ALIVE_PAUSE).with_retries(3);
    // If the option cannot be set, the loss of a peer is not detected while nothing is sent.
    let _ = SockRef::from(stream).set_tcp_keepalive(&how);
}

/// Returns the size of the IP header of a datagram to `peer`, minus the size of an IPv4 header, in bytes: 20 for IPv6
/// (RFC 8200, Sec. 3), 0 for IPv4.
pub(super) const fn overhead(peer: SocketAddr) -> u64 {
    if peer.ip().to_canonical().is_ipv6() { 20 } else { 0 }
}
