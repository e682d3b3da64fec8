//! TCP connections of the kernel between the hosts of a test bed.
//!
//! ```text
//!   near thread ── socket ══ emulator ══ socket ── far thread
//!        │                                             │
//!        └── the kernel's account (sock_diag)          └── bytes that came
//! ```
//!
//! The kernel is TCP; what is here is an application at each end, and a look at the connection from time to time.

pub(crate) mod diagnosis;
mod far;
mod listen;
mod near;

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use equipoise::units::{Rate, Size, Span};
use equipoise_path::source::Content;
use socket2::{Domain, Protocol, Socket, Type};

use crate::thread::Worker;
use crate::{Clock, NetError, Place, TestBed, Time};
use diagnosis::Diagnosis;
use far::Far;
use near::{Near, NearEnd};

pub(crate) use listen::{ReceiveWindow, accept, listen};

/// Headers of IPv4 (RFC 791, Sec. 3.1) and TCP (RFC 9293, Sec. 3.1) without options, which is what a segment size leaves out.
const HEADERS: Size = Size::from_bytes(40);
/// The timestamps that the kernel puts into every segment, padded (RFC 7323, App. A).
const TIMESTAMPS: Size = Size::from_bytes(12);

/// The names of the congestion controls that there are.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Both ends of a connection that is not opened yet.
#[derive(Debug)]
pub struct TcpEnds {
    near: NearEnd,
    listener: TcpListener,
    window: ReceiveWindow,
    sender: SocketAddr,
}

/// The kernel's hosts of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpHosts {
    /// The sender's congestion control, by its name.
    pub congestion_control: String,
    /// Size of the sender's IP packets with full segments.
    pub packet: Size,
    /// Full segments that the receiver's window has room for, at most; `None` for what the host gives.
    pub receive_window: Option<u64>,
}

/// What the application at the sending end does, and how often one looks.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpPlan {
    /// When it opens the connection.
    pub start: Time,
    /// When it sends no more; `None` to go on.
    pub stop: Option<Time>,
    /// What it sends.
    pub supply: TcpSupply,
    /// The first look is this long after [`origin`](Self::origin); above zero.
    pub sample_interval: Span,
    /// Whence looks are counted.
    pub origin: Time,
}

/// What the application gives to a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum TcpSupply {
    /// As much as it takes.
    Unlimited,
    /// So much, and then no more.
    Transfer(Size),
    /// At a rate, from the start on.
    Rate(Rate),
    /// So many full segments and no more, each from its time on.
    Content(Content),
}

/// A connection at a moment, by the kernel's account; counters are since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TcpState {
    /// Congestion window, in segments.
    pub window: u32,
    /// Slow start threshold, in segments; `None` before there is one.
    pub slow_start_threshold: Option<u32>,
    /// Segments sent and not acknowledged in order.
    pub in_flight: u32,
    /// Smoothed round-trip time; `None` before one is measured.
    pub smoothed_round_trip: Option<Span>,
    /// Least round-trip time of the last minutes; `None` before one is measured.
    pub min_round_trip: Option<Span>,
    /// Segments with data sent, retransmissions among them.
    pub sent: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// How often the retransmission timer ran out; `None` where the kernel does not count it (before Linux 6.7).
    pub timeouts: Option<u64>,
    /// Data that the receiving application has read.
    pub delivered: Size,
    /// When the last data of a finite transfer were acknowledged.
    pub finished: Option<Time>,
}

/// A connection with an application at each end. It ends, at the latest, when it is dropped.
#[derive(Debug)]
pub struct RunningTcp {
    near: Worker<Result<(), NetError>>,
    far: Worker<Result<(), NetError>>,
}

impl TcpEnds {
    /// Sockets on free ports of both hosts.
    ///
    /// # Errors
    /// [`NetError::NoCongestionControl`] where the kernel has none of this name, [`NetError::Tcp`] where the system refuses
    /// something else, and as [`TestBed::inside`].
    pub fn open(bed: &TestBed, hosts: &TcpHosts) -> Result<Self, NetError> {
        let listener = listen(bed, 0, hosts.window())?;
        let receiver = listener.local_addr().map_err(failed("listen"))?;
        let (socket, sender, diagnosis) = bed.inside(Place::Near, || {
            let (socket, sender) = near_socket(hosts)?;
            Ok((socket, sender, Diagnosis::open(sender, receiver)?))
        })?;
        let segment = hosts.segment().as_bytes();
        Ok(Self { near: NearEnd { socket, diagnosis, receiver, segment }, listener, window: hosts.window(), sender })
    }

    /// The sender's address.
    pub const fn sender(&self) -> SocketAddr {
        self.sender
    }

    /// The receiver's address.
    pub const fn receiver(&self) -> SocketAddr {
        self.near.receiver
    }

    /// Carries a plan out; `observe` is told what there was to see, on a thread of the connection's own.
    ///
    /// # Errors
    /// [`NetError::Spawn`] where the system has no threads to give.
    pub fn run(
        self,
        clock: &Clock,
        plan: TcpPlan,
        observe: impl FnMut(Time, &TcpState) + Send + 'static,
    ) -> Result<RunningTcp, NetError> {
        let Self { near, listener, window, .. } = self;
        let delivered = Arc::new(AtomicU64::new(0));
        let far = Far { clock: clock.clone(), listener, window, delivered: delivered.clone() };
        let far = Worker::spawn("tcp far", move |stop| far.run(stop))?;
        let near = Near::new(clock.clone(), near, plan, delivered, observe);
        let near = Worker::spawn("tcp near", move |stop| near.run(stop))?;
        Ok(RunningTcp { near, far })
    }
}

impl RunningTcp {
    /// Whether it broke: an application goes on looking when it has sent all.
    pub fn is_finished(&self) -> bool {
        self.near.is_finished() || self.far.is_finished()
    }

    /// Ends it, with a last look where one is due.
    ///
    /// # Errors
    /// What ended it before its time, if something did.
    pub fn stop(self) -> Result<(), NetError> {
        self.near.request_stop();
        self.near.join()??;
        self.far.request_stop();
        self.far.join()?
    }
}

impl TcpHosts {
    /// Data of a full segment.
    fn segment(&self) -> Size {
        self.packet - HEADERS - TIMESTAMPS
    }

    /// The receiver's window in bytes.
    pub(crate) fn window(&self) -> ReceiveWindow {
        let bytes = |segments: u64| Size::from_bytes(self.segment().as_bytes().saturating_mul(segments));
        ReceiveWindow(self.receive_window.map(bytes))
    }
}

fn near_socket(hosts: &TcpHosts) -> Result<(Socket, SocketAddr), NetError> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), Some(Protocol::TCP)).map_err(failed("open"))?;
    set_congestion_control(&socket, &hosts.congestion_control)?;
    set_packet_size(&socket, hosts.packet)?;
    // Data that an application gives at a rate are not kept back to be sent with more (RFC 9293, Sec. 3.7.4).
    socket.set_tcp_nodelay(true).map_err(failed("open"))?;
    socket.bind(&SocketAddr::from((TestBed::NEAR, 0)).into()).map_err(failed("bind"))?;
    let address = socket.local_addr().map_err(failed("bind"))?;
    let address = address.as_socket().unwrap_or(SocketAddr::from((TestBed::NEAR, 0)));
    Ok((socket, address))
}

/// Has a socket send IP packets of this size.
pub(crate) fn set_packet_size(socket: &Socket, packet: Size) -> Result<(), NetError> {
    let segment = u32::try_from((packet - HEADERS).as_bytes()).unwrap_or(u32::MAX);
    socket.set_tcp_mss(segment).map_err(failed("set the segment size of"))
}

/// Checks that a socket of this thread's network namespace can have this congestion control.
///
/// # Errors
/// As [`set_congestion_control`].
pub(crate) fn check_congestion_control(name: &str) -> Result<(), NetError> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).map_err(failed("open"))?;
    set_congestion_control(&socket, name)
}

/// Gives a socket one of the kernel's congestion controls.
///
/// # Errors
/// [`NetError::NoCongestionControl`] where the kernel has none of this name, or does not permit it.
pub(crate) fn set_congestion_control(socket: &Socket, name: &str) -> Result<(), NetError> {
    socket.set_tcp_congestion(name.as_bytes()).map_err(|source| {
        let known = fs::read_to_string(AVAILABLE).unwrap_or_default();
        let known = known.split_whitespace().map(str::to_owned).collect();
        NetError::NoCongestionControl { name: name.to_owned(), known, source }
    })
}

/// What became of a TCP socket that was to do something.
pub(crate) fn failed(what: &'static str) -> impl Fn(std::io::Error) -> NetError {
    move |source| NetError::Tcp { what, source }
}
