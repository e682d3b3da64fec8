use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use equipoise_path::link::Ecn;
use equipoise_session::Transmit;
use equipoise_session::multipath::MAX_PATHS;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc::c_int;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, RecvMsg, SockaddrStorage, recvmmsg, recvmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;
use socket2::{MsgHdr, SockAddr, SockRef};

use crate::batch::Batch;
use crate::datagram::{MAX_PAYLOAD, Received};
use crate::ecn::{ServiceControl, ecn_in, listen_for_ecn};
use crate::icmp::{Word, is_word_from_the_path};
use crate::{Clock, Dscp, NetError, Time};

/// Size of the receive buffer that is requested, in bytes; the system may grant less. Our choice: if the reader stalls,
/// the buffer holds the datagrams that arrive in 1 s at 30 Mbit/s.
pub(crate) const RECEIVE_BUFFER: usize = 4 << 20;

/// Maximum number of datagrams and errors that one call skips, so that a flood of them cannot block the caller. Our
/// choice: skipping 64 takes less than 0.1 ms.
pub(crate) const PASSED_OVER: u32 = 64;

/// The source address that is used if a datagram has none, which does not happen with UDP.
const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// The payload of generated media, which is all zeros.
static ZEROS: [u8; MAX_PAYLOAD] = [0; MAX_PAYLOAD];

/// The source of the arrival times of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampSource {
    /// The kernel records when a datagram arrives.
    Kernel,
    /// The system has no kernel timestamps. The arrival time is the time at which the datagram is read, so it includes
    /// stalls of the reader.
    UserSpace,
}

impl TimestampSource {
    /// The name of the source, as used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel receive timestamps",
            Self::UserSpace => "user-space receive times",
        }
    }
}

/// Counters of the datagrams that a socket has lost or dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketStats {
    /// Number of datagrams that could not be sent, for any reason.
    pub unsent: u64,
    /// Number of datagrams lost because the receive buffer was full, as reported with the last datagram that was read.
    /// Zero if the system does not count them.
    pub overflowed: u64,
    /// Number of datagrams from source port 0, which cannot be answered (RFC 768). They are dropped before any other
    /// processing.
    pub unanswerable: u64,
}

impl SocketStats {
    /// The sum of the counters of two sockets.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            unsent: self.unsent.saturating_add(other.unsent),
            overflowed: self.overflowed.saturating_add(other.overflowed),
            unanswerable: self.unanswerable.saturating_add(other.unanswerable),
        }
    }
}

/// The result of sending a datagram of valid length and destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The kernel accepted the datagram.
    Taken,
    /// The kernel refused the datagram. The datagram is lost and counted as `unsent`.
    Refused,
    /// The kernel refused the datagram, because the interface, its address or the route no longer exists.
    NoRoute,
}

/// A bound UDP socket that never blocks and records when datagrams arrive.
#[derive(Debug)]
pub struct Socket {
    inner: UdpSocket,
    address: SocketAddr,
    clock: Clock,
    timestamps: TimestampSource,
    control: Vec<u8>,
    stats: SocketStats,
    /// The class of service of all datagrams that the socket sends.
    dscp: Dscp,
    /// Why the kernel refused the last datagram; `None` if the kernel accepted it.
    refusal: Option<Errno>,
    /// Records ICMP errors about datagrams to the peer; `None` before `listen_for_errors`.
    word: Option<Word>,
    /// If set, each attempt to send fails with this error, as if the kernel had returned it.
    #[cfg(any(test, feature = "fuzz"))]
    pub(crate) kernel_says: Option<Errno>,
    /// All messages passed to `answer`, sent or refused by the kernel, with their destinations; `None` unless a test
    /// records them.
    #[cfg(any(test, feature = "fuzz"))]
    pub(crate) overheard: Option<Box<Overheard>>,
}

/// Recorded answers, each with its destination.
#[cfg(any(test, feature = "fuzz"))]
#[derive(Debug, Default)]
pub(crate) struct Overheard(pub(crate) Vec<(SocketAddr, Vec<u8>)>);

impl Socket {
    /// Opens a socket at `address`; port 0 means any free port.
    ///
    /// If no other socket on the host uses kernel timestamps, the kernel takes some milliseconds to turn them on. If a
    /// datagram arrives before that, its timestamp is the time at which it is read.
    ///
    /// # Errors
    /// [`NetError::PortInUse`] if another socket uses the port, [`NetError::Bind`] for all other errors.
    pub fn bind(address: SocketAddr, clock: &Clock) -> Result<Self, NetError> {
        let failed = |source: io::Error| match source.kind() {
            ErrorKind::AddrInUse => NetError::PortInUse { address },
            _ => NetError::Bind { address, source },
        };
        UdpSocket::bind(address).and_then(|socket| Self::of(socket, clock)).map_err(failed)
    }

    /// Opens a socket at any free port of `address` that sends and receives only over the network interface `device`.
    ///
    /// If a socket is bound only to an address, the kernel still chooses the interface by the route to the destination.
    ///
    /// # Errors
    /// [`NetError::Bind`] if the socket cannot be opened.
    pub fn bind_to_device(address: IpAddr, device: &str, clock: &Clock) -> Result<Self, NetError> {
        let address = SocketAddr::new(address, 0);
        let open = || {
            let socket = socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::DGRAM, None)?;
            socket.bind_device(Some(device.as_bytes()))?;
            socket.bind(&address.into())?;
            Self::of(socket.into(), clock)
        };
        open().map_err(|source| NetError::Bind { address, source })
    }

    fn of(socket: UdpSocket, clock: &Clock) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        let timestamps = match setsockopt(&socket, sockopt::ReceiveTimestampns, &true) {
            Ok(()) => TimestampSource::Kernel,
            Err(_) => TimestampSource::UserSpace,
        };
        // The following two options are not required: if they fail, the socket still works.
        let _ = setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER);
        let _ = setsockopt(&socket, sockopt::RxqOvfl, &1);
        listen_for_ecn(&socket, address);
        let control = control_buffer();
        Ok(Self {
            inner: socket,
            address,
            clock: clock.clone(),
            timestamps,
            control,
            stats: SocketStats::default(),
            dscp: Dscp::DEFAULT,
            refusal: None,
            word: None,
            #[cfg(any(test, feature = "fuzz"))]
            kernel_says: None,
            #[cfg(any(test, feature = "fuzz"))]
            overheard: None,
        })
    }

    /// The address to which the socket is bound, with the actual port.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The clock of the arrival times of datagrams.
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Sets the class of service of the datagrams that are sent from now on. The network may ignore or clear the class.
    /// If the kernel refuses the class, the datagrams are not sent.
    pub const fn set_dscp(&mut self, dscp: Dscp) {
        self.dscp = dscp;
    }

    /// The source of the arrival times of this socket's datagrams.
    pub const fn timestamps(&self) -> TimestampSource {
        self.timestamps
    }

    /// The counters of the socket since it was opened.
    pub const fn stats(&self) -> SocketStats {
        self.stats
    }

    /// Reads one datagram into `buffer`. Returns `None` if no datagram is waiting, or if the call has skipped the
    /// maximum number of datagrams and errors.
    ///
    /// The call skips datagrams from source port 0. It also skips ICMP errors about datagrams that this socket sent,
    /// because the peer may not be running yet, or may have ended.
    ///
    /// # Errors
    /// [`NetError::Receive`] if the socket can no longer receive.
    pub fn recv(&mut self, buffer: &mut [u8]) -> Result<Option<Received>, NetError> {
        for _ in 0..PASSED_OVER {
            match self.recv_once(buffer) {
                Ok(received) if received.from.port() != 0 => return Ok(Some(received)),
                Ok(_) => self.stats.unanswerable += 1,
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => {
                    self.read_errors();
                    return Ok(None);
                }
                Err(errno) if is_word_from_the_path(errno) => {}
                Err(errno) => return Err(NetError::Receive { address: self.address, source: errno.into() }),
            }
        }
        Ok(None)
    }

    /// Starts to record ICMP errors about datagrams to `peer`, for [`take_unreachable`](Self::take_unreachable).
    pub(crate) fn listen_for_errors(&mut self, peer: SocketAddr) {
        self.word.get_or_insert_with(|| Word::about(peer, &self.inner));
    }

    /// Returns whether an ICMP error since the last call says that the peer's port, host or network is unreachable.
    /// Errors are read when [`recv`](Self::recv) finds no waiting datagram.
    pub(crate) fn take_unreachable(&mut self) -> bool {
        self.word.as_mut().is_some_and(Word::take)
    }

    /// Reads errors in the socket's error queue, at most [`PASSED_OVER`]. They must be read, because `poll`
    /// returns at once as long as there is an error.
    fn read_errors(&mut self) {
        if let Some(word) = &mut self.word {
            word.read(&self.inner);
        }
    }

    /// Reads the datagrams that are waiting, as many as fit into `batch`.
    ///
    /// # Errors
    /// [`NetError::Receive`] if the socket can no longer receive.
    pub(crate) fn recv_batch(&mut self, batch: &mut Batch) -> Result<(), NetError> {
        let mut received = std::mem::take(&mut batch.received);
        received.clear();
        let mut headers = Batch::headers();
        let mut slices = batch.slices();
        let failed = |errno: Errno| NetError::Receive { address: self.address, source: errno.into() };
        let found =
            match recvmmsg(self.inner.as_raw_fd(), &mut headers, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None) {
                Ok(found) => Some(found),
                // There is no batch if no datagram waits, if a signal interrupted the call, or if an ICMP error was
                // reported. After a signal or an ICMP error, the waiting datagrams are read with the next batch.
                Err(errno) if matches!(errno, Errno::EAGAIN | Errno::EINTR) || is_word_from_the_path(errno) => None,
                Err(errno) => return Err(failed(errno)),
            };
        for message in found.into_iter().flatten() {
            let remarks = Remarks::to(&message)
                .map_err(|errno| NetError::Receive { address: self.address, source: errno.into() })?;
            self.stats.overflowed = remarks.overflowed.unwrap_or(self.stats.overflowed);
            let from = message.address.as_ref().and_then(address_of).unwrap_or(NOBODY);
            self.stats.unanswerable += u64::from(from.port() == 0);
            received.push(Received { len: message.bytes, from, at: remarks.at(&self.clock), ecn: remarks.ecn });
        }
        batch.received = received;
        Ok(())
    }

    fn recv_once(&mut self, buffer: &mut [u8]) -> Result<Received, Errno> {
        let message = recv_stamped(self.inner.as_raw_fd(), buffer, &mut self.control, &self.clock)?;
        self.stats.overflowed = message.overflowed.unwrap_or(self.stats.overflowed);
        let from = message.from.as_ref().and_then(address_of).unwrap_or(NOBODY);
        Ok(Received { len: message.len, from, at: message.at, ecn: message.ecn })
    }

    /// The socket's descriptor, for [`wait_any`].
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }

    /// Sends one datagram to `peer`: the head of `transmit`, followed by its media as zeros, with the ECN field in
    /// `transmit`.
    ///
    /// Whatever error the kernel returns, the socket stays usable. A datagram that the kernel refuses is lost, as any
    /// datagram may be.
    ///
    /// # Errors
    /// [`NetError::Send`] if this datagram can never be sent: it is longer than UDP permits, or its destination is port
    /// 0, or its destination is an IPv6 address and the socket uses IPv4. The datagram is also counted as `unsent`.
    pub fn send_to(&mut self, peer: SocketAddr, transmit: &Transmit<'_>) -> Result<Sent, NetError> {
        let length = transmit.len();
        if let Some(errno) = self.impossible(peer, length) {
            self.stats.unsent += 1;
            return Err(NetError::Send { peer, length, source: errno.into() });
        }
        self.refusal = self.hand_over(peer, transmit).err();
        let Some(errno) = self.refusal else { return Ok(Sent::Taken) };
        self.stats.unsent += 1;
        Ok(if is_lack_of_way(errno) { Sent::NoRoute } else { Sent::Refused })
    }

    /// Sends `answer` to a peer and ignores errors. An attacker may choose an address to which sending fails. Such an
    /// error must not stop the server, because the server has other peers.
    pub(crate) fn answer(&mut self, peer: SocketAddr, answer: &Transmit<'_>) {
        #[cfg(any(test, feature = "fuzz"))]
        if let Some(overheard) = &mut self.overheard {
            overheard.0.push((peer, answer.head.to_vec()));
        }
        // The counters are not updated here, because `send_to` has already counted a failure.
        let _ = self.send_to(peer, answer);
    }

    /// The error with which the kernel refused the last datagram; `None` if the kernel accepted it.
    pub(crate) fn refusal(&self) -> Option<io::Error> {
        self.refusal.map(io::Error::from)
    }

    /// The error if a datagram of this length to this peer can never be sent; `None` otherwise.
    fn impossible(&self, peer: SocketAddr, length: usize) -> Option<Errno> {
        if length > MAX_PAYLOAD {
            Some(Errno::EMSGSIZE)
        } else if peer.port() == 0 {
            Some(Errno::EDESTADDRREQ)
        } else if self.address.is_ipv4() && peer.is_ipv6() {
            Some(Errno::EAFNOSUPPORT)
        } else {
            None
        }
    }

    fn hand_over(&self, peer: SocketAddr, transmit: &Transmit<'_>) -> Result<(), Errno> {
        #[cfg(any(test, feature = "fuzz"))]
        if let Some(errno) = self.kernel_says {
            return Err(errno);
        }
        let parts = [IoSlice::new(transmit.head), IoSlice::new(&ZEROS[..transmit.media])];
        let (to, control) = (SockAddr::from(peer), ServiceControl::new(peer, self.dscp, transmit.ecn));
        let message = MsgHdr::new().with_addr(&to).with_buffers(&parts).with_control(control.as_bytes());
        // If the socket records ICMP errors, the kernel may return a waiting error about an earlier datagram instead of
        // sending this datagram. Therefore sending is attempted up to two more times.
        let mut again = if self.word.is_some() { 2 } else { 0 };
        loop {
            let Err(error) = SockRef::from(&self.inner).sendmsg(&message, 0) else { return Ok(()) };
            match Errno::from_raw(error.raw_os_error().unwrap_or(0)) {
                Errno::EINTR => {}
                errno if again > 0 && is_word_from_the_path(errno) => again -= 1,
                errno => return Err(errno),
            }
        }
    }
}

/// Maximum number of file descriptors for [`wait_any`]: the sockets of a session's paths, one for interface changes,
/// and one for wake-ups.
const WAITED: usize = MAX_PATHS + 2;

/// Waits until one of `readers` is readable, or until the time `until`. May return early. Returns the readable readers
/// as a bit mask, in which the lowest bit is the first reader.
pub(crate) fn wait_any<'a>(
    readers: impl Iterator<Item = BorrowedFd<'a>>,
    clock: &Clock,
    until: Time,
) -> Result<u32, NetError> {
    let (mut readers, mut count) = (readers.peekable(), 0);
    let Some(first) = readers.peek().copied() else {
        clock.sleep_until(until);
        return Ok(0);
    };
    let mut waiting: [PollFd<'_>; WAITED] = std::array::from_fn(|_| {
        let next = readers.next();
        count += usize::from(next.is_some());
        PollFd::new(next.unwrap_or(first), PollFlags::POLLIN)
    });
    wait_readable(&mut waiting[..count], clock, until)?;
    let readable = waiting[..count].iter().enumerate().filter(|(_, reader)| reader.any().unwrap_or(true));
    Ok(readable.fold(0, |bits, (at, _)| bits | 1 << at))
}

/// A message that was read from a socket of any kind.
pub(crate) struct Message {
    /// Number of bytes of the message in the buffer.
    pub(crate) len: usize,
    /// Whether the message was longer than the buffer, so that its end is lost.
    pub(crate) cut: bool,
    pub(crate) from: Option<SockaddrStorage>,
    /// When the message arrived.
    pub(crate) at: Time,
    /// Number of messages lost so far because the receive buffer was full; `None` if the system reports no losses.
    pub(crate) overflowed: Option<u64>,
    /// The ECN field of the message's IP header, if the system reports it.
    pub(crate) ecn: Ecn,
}

/// Returns a buffer for the control data that the kernel adds to a received message: the message's arrival time, the
/// number of lost messages, and the byte with the ECN field.
pub(crate) fn control_buffer() -> Vec<u8> {
    cmsg_space!(TimeSpec, u32, c_int)
}

/// Reads one message and its kernel timestamp. If there is no timestamp, the current time is used.
pub(crate) fn recv_stamped(fd: RawFd, buffer: &mut [u8], control: &mut [u8], clock: &Clock) -> Result<Message, Errno> {
    let mut parts = [IoSliceMut::new(buffer)];
    let message = recvmsg::<SockaddrStorage>(fd, &mut parts, Some(control), MsgFlags::empty())?;
    let remarks = Remarks::to(&message)?;
    let Remarks { overflowed, ecn, .. } = remarks;
    let cut = message.flags.contains(MsgFlags::MSG_TRUNC);
    Ok(Message { len: message.bytes, cut, from: message.address, at: remarks.at(clock), overflowed, ecn })
}

/// Waits until one of `sockets` has a datagram, or until the time `until`. May return early.
pub(crate) fn wait<'a>(sockets: impl Iterator<Item = &'a Socket>, clock: &Clock, until: Time) -> Result<(), NetError> {
    let mut waiting: Vec<_> = sockets.map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN)).collect();
    wait_readable(&mut waiting, clock, until)
}

/// Waits until one of `waiting` is readable, or until the time `until`. May return early.
pub(crate) fn wait_readable(waiting: &mut [PollFd<'_>], clock: &Clock, until: Time) -> Result<(), NetError> {
    let nanos = (until - clock.now()).as_nanos().max(0);
    let timeout = TimeSpec::new(nanos / 1_000_000_000, nanos % 1_000_000_000);
    match ppoll(waiting, Some(timeout), None) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(NetError::Wait { sockets: waiting.len(), source: errno.into() }),
    }
}

/// Whether an error means that the interface or its address is down or no longer exists, or that there is no route to
/// the peer.
fn is_lack_of_way(errno: Errno) -> bool {
    matches!(errno, Errno::ENETDOWN | Errno::ENETUNREACH | Errno::EHOSTUNREACH | Errno::ENODEV | Errno::EADDRNOTAVAIL)
}

/// The content of the kernel's control messages about a received message.
#[derive(Default)]
struct Remarks {
    /// The arrival time of the message by the wall clock, in ns since the Unix epoch.
    stamp: Option<u64>,
    /// Number of messages lost so far because the receive buffer was full; `None` if the system reports no losses.
    overflowed: Option<u64>,
    /// The ECN field of the message's IP header.
    ecn: Ecn,
}

impl Remarks {
    fn to(message: &RecvMsg<'_, '_, SockaddrStorage>) -> Result<Self, Errno> {
        let mut remarks = Self::default();
        for remark in message.cmsgs()? {
            match remark {
                ControlMessageOwned::ScmTimestampns(time) => remarks.stamp = Some(nanos_of(time)),
                // The kernel's counter of lost messages has 32 bits. In practice, no run loses 2^32 messages.
                ControlMessageOwned::RxqOvfl(count) => remarks.overflowed = Some(u64::from(count)),
                remark => remarks.ecn = ecn_in(&remark).unwrap_or(remarks.ecn),
            }
        }
        Ok(remarks)
    }

    /// The arrival time of the message; the current time if the kernel has reported none.
    fn at(&self, clock: &Clock) -> Time {
        self.stamp.map_or_else(|| clock.now(), |nanos| clock.from_realtime(nanos))
    }
}

fn nanos_of(time: TimeSpec) -> u64 {
    let nanos = time.tv_sec().saturating_mul(1_000_000_000).saturating_add(time.tv_nsec());
    u64::try_from(nanos).unwrap_or(0)
}

pub(crate) fn address_of(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|&address| SocketAddr::from(address));
    v4.or_else(|| address.as_sockaddr_in6().map(|&address| SocketAddr::from(address)))
}

/// For tests: all error numbers that Linux can return.
#[cfg(test)]
pub(crate) fn every_errno() -> impl Iterator<Item = Errno> {
    (1..=133).map(Errno::from_raw).filter(|errno| *errno != Errno::UnknownErrno)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this test fails, a firewall, a null route or a full queue ends the sender.
    #[test]
    fn whatever_the_kernel_answers_a_datagram_is_lost_and_counted_and_the_next_one_leaves() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut socket = Socket::bind(any, &Clock::new()).unwrap();
        let peer = socket.address();
        for (count, errno) in (1..).zip(every_errno()) {
            socket.kernel_says = Some(errno);
            let sent = socket.send_to(peer, &Transmit { media: 10, ..Transmit::datagram(b"head") }).unwrap();
            assert_ne!(sent, Sent::Taken);
            assert_eq!(socket.refusal().and_then(|error| error.raw_os_error()), Some(errno as i32));
            assert_eq!(socket.stats().unsent, count);
        }
        socket.kernel_says = None;
        assert_eq!(socket.send_to(peer, &Transmit { media: 10, ..Transmit::datagram(b"head") }).unwrap(), Sent::Taken);
        assert!(socket.refusal().is_none());
    }

    #[test]
    fn a_route_that_is_gone_is_told_from_other_refusals() {
        let mut socket = Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), &Clock::new()).unwrap();
        let peer = socket.address();
        let mut says = |errno| {
            socket.kernel_says = Some(errno);
            socket.send_to(peer, &Transmit::datagram(b"head")).unwrap()
        };
        assert_eq!(says(Errno::ENODEV), Sent::NoRoute);
        assert_eq!(says(Errno::EPERM), Sent::Refused);
    }
}
