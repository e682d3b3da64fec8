use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, RawFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;

use crate::{Clock, NetError, Time};

/// The longest payload of a UDP datagram over IPv4, in bytes (RFC 768: 65 535 less both headers).
pub(crate) const MAX_PAYLOAD: usize = 65_507;

/// Receive buffer to ask for, in bytes. Ours: over a second of 30 Mbit/s, to outlast a stalled reader. The system may
/// give less.
pub(crate) const RECEIVE_BUFFER: usize = 4 << 20;

/// Media is generated: it is zeros.
static ZEROS: [u8; MAX_PAYLOAD] = [0; MAX_PAYLOAD];

/// Where the arrival times of datagrams come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampSource {
    /// The kernel noted them when the datagram came in.
    Kernel,
    /// The system refused that: they are read when the datagram is read, stalls of the reader included.
    UserSpace,
}

impl TimestampSource {
    /// The source in words, as reports name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel receive timestamps",
            Self::UserSpace => "user-space receive times",
        }
    }
}

/// A datagram that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Length in bytes of what is in the buffer; what did not fit is lost.
    pub len: usize,
    /// Who sent it.
    pub from: SocketAddr,
    /// When it arrived.
    pub at: Time,
}

/// What a socket lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketStats {
    /// Datagrams that the system could not take for sending at that moment.
    pub unsent: u64,
    /// Datagrams that found the receive buffer full; where the system counts them, up to the last one read.
    pub overflowed: u64,
}

/// A bound UDP socket that never blocks and knows when its datagrams arrived.
#[derive(Debug)]
pub struct Socket {
    inner: UdpSocket,
    address: SocketAddr,
    clock: Clock,
    timestamps: TimestampSource,
    control: Vec<u8>,
    stats: SocketStats,
}

impl Socket {
    /// A socket at `address`; port 0 takes any free one.
    ///
    /// With the first such socket of a host, the kernel takes some milliseconds to turn its timestamps on; a datagram
    /// that comes sooner is stamped when it is read.
    ///
    /// # Errors
    /// [`NetError::PortInUse`] where another socket holds the port, [`NetError::Bind`] for all else.
    pub fn bind(address: SocketAddr, clock: &Clock) -> Result<Self, NetError> {
        let failed = |source: io::Error| match source.kind() {
            ErrorKind::AddrInUse => NetError::PortInUse { address },
            _ => NetError::Bind { address, source },
        };
        let socket = UdpSocket::bind(address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let timestamps = match setsockopt(&socket, sockopt::ReceiveTimestampns, &true) {
            Ok(()) => TimestampSource::Kernel,
            Err(_) => TimestampSource::UserSpace,
        };
        // Both are refinements; a system without them still does.
        let _ = setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER);
        let _ = setsockopt(&socket, sockopt::RxqOvfl, &1);
        let control = control_buffer();
        Ok(Self { inner: socket, address, clock: clock.clone(), timestamps, control, stats: SocketStats::default() })
    }

    /// Where it is bound, with the port that was chosen.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The clock that stamps what it receives.
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Where its arrival times come from.
    pub const fn timestamps(&self) -> TimestampSource {
        self.timestamps
    }

    /// What it lost so far.
    pub const fn stats(&self) -> SocketStats {
        self.stats
    }

    /// Reads one datagram into `buffer`; `None` where none is there.
    ///
    /// Word that an earlier datagram met no listener is passed over: the peer may not be up yet, or just gone.
    ///
    /// # Errors
    /// [`NetError::Receive`] where the socket can receive no more.
    pub fn recv(&mut self, buffer: &mut [u8]) -> Result<Option<Received>, NetError> {
        loop {
            match self.recv_once(buffer) {
                Ok(Some(received)) => return Ok(Some(received)),
                Ok(None) | Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(None),
                Err(errno) if is_word_from_the_path(errno) => {}
                Err(errno) => return Err(NetError::Receive { address: self.address, source: errno.into() }),
            }
        }
    }

    /// `None` for a datagram without an IP address, which no UDP socket gives.
    fn recv_once(&mut self, buffer: &mut [u8]) -> Result<Option<Received>, Errno> {
        let message = recv_stamped(self.inner.as_raw_fd(), buffer, &mut self.control, &self.clock)?;
        if let Some(count) = message.overflowed {
            self.stats.overflowed = count;
        }
        let from = message.from.as_ref().and_then(address_of);
        Ok(from.map(|from| Received { len: message.len, from, at: message.at }))
    }

    /// For [`wait_readable`].
    pub(crate) fn poll(&self) -> PollFd<'_> {
        PollFd::new(self.inner.as_fd(), PollFlags::POLLIN)
    }

    /// Sends `head` and `media` bytes of zeros behind it to `peer` as one datagram, or loses it and counts it where the
    /// system has no room or no way at the moment: that is loss like any other.
    ///
    /// # Errors
    /// [`NetError::Send`] where such a datagram can never be sent: too long, or not to such an address.
    pub fn send_to(&mut self, peer: SocketAddr, head: &[u8], media: usize) -> Result<(), NetError> {
        let failed =
            |errno: Errno| NetError::Send { peer, length: head.len().saturating_add(media), source: errno.into() };
        let media = ZEROS.get(..media).ok_or_else(|| failed(Errno::EMSGSIZE))?;
        let parts = [IoSlice::new(head), IoSlice::new(media)];
        let to = SockaddrStorage::from(peer);
        loop {
            match sendmsg(self.inner.as_raw_fd(), &parts, &[], MsgFlags::empty(), Some(&to)) {
                Ok(_) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(errno) if is_word_from_the_path(errno) || is_lack_of_room(errno) => {
                    self.stats.unsent += 1;
                    return Ok(());
                }
                Err(errno) => return Err(failed(errno)),
            }
        }
    }
}

/// What was read from a socket of any kind.
pub(crate) struct Message {
    /// Bytes in the buffer.
    pub(crate) len: usize,
    /// Whether the buffer was too short for it.
    pub(crate) cut: bool,
    pub(crate) from: Option<SockaddrStorage>,
    /// When it arrived.
    pub(crate) at: Time,
    /// How many found the receive buffer full so far, where the system says so.
    pub(crate) overflowed: Option<u64>,
}

/// Room for the kernel's remarks to a message: its time of arrival, and the count of those lost.
pub(crate) fn control_buffer() -> Vec<u8> {
    cmsg_space!(TimeSpec, u32)
}

/// Reads one message and its kernel timestamp; where that is missing, it arrives now.
pub(crate) fn recv_stamped(fd: RawFd, buffer: &mut [u8], control: &mut [u8], clock: &Clock) -> Result<Message, Errno> {
    let mut parts = [IoSliceMut::new(buffer)];
    let message = recvmsg::<SockaddrStorage>(fd, &mut parts, Some(control), MsgFlags::empty())?;
    let (mut stamp, mut overflowed) = (None, None);
    for control in message.cmsgs()? {
        match control {
            ControlMessageOwned::ScmTimestampns(time) => stamp = Some(time),
            // The kernel's counter has 32 bits; a run that wraps it has other worries.
            ControlMessageOwned::RxqOvfl(count) => overflowed = Some(u64::from(count)),
            _ => {}
        }
    }
    let at = stamp.map_or_else(|| clock.now(), |time| clock.from_realtime(nanos_of(time)));
    let cut = message.flags.contains(MsgFlags::MSG_TRUNC);
    Ok(Message { len: message.bytes, cut, from: message.address, at, overflowed })
}

/// Waits until one of `sockets` has a datagram or the time is `until`, whichever is first; may return early.
pub(crate) fn wait<'a>(sockets: impl Iterator<Item = &'a Socket>, clock: &Clock, until: Time) -> Result<(), NetError> {
    let mut waiting: Vec<_> = sockets.map(Socket::poll).collect();
    wait_readable(&mut waiting, clock, until)
}

/// The same for sockets of any kind.
pub(crate) fn wait_readable(waiting: &mut [PollFd<'_>], clock: &Clock, until: Time) -> Result<(), NetError> {
    let nanos = (until - clock.now()).as_nanos().max(0);
    let timeout = TimeSpec::new(nanos / 1_000_000_000, nanos % 1_000_000_000);
    match ppoll(waiting, Some(timeout), None) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(NetError::Wait { sockets: waiting.len(), source: errno.into() }),
    }
}

/// What ICMP had to say of an earlier datagram (RFC 1122, Sec. 4.1.3.3).
fn is_word_from_the_path(errno: Errno) -> bool {
    matches!(errno, Errno::ECONNREFUSED | Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::EHOSTDOWN | Errno::ENETDOWN)
}

pub(crate) fn is_lack_of_room(errno: Errno) -> bool {
    matches!(errno, Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM)
}

fn nanos_of(time: TimeSpec) -> u64 {
    let nanos = time.tv_sec().saturating_mul(1_000_000_000).saturating_add(time.tv_nsec());
    u64::try_from(nanos).unwrap_or(0)
}

fn address_of(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|&address| SocketAddr::from(address));
    v4.or_else(|| address.as_sockaddr_in6().map(|&address| SocketAddr::from(address)))
}
