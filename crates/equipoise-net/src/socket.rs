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

/// Requested receive buffer, in bytes; the system may grant less. Our choice: it holds more than 1 s of 30 Mbit/s, in
/// case the reader stalls.
pub(crate) const RECEIVE_BUFFER: usize = 4 << 20;

/// Maximum datagrams and errors that one call skips, so that a flood of them cannot keep the caller from its other
/// work. Our choice: skipping 64 takes less than 0.1 ms.
pub(crate) const PASSED_OVER: u32 = 64;

/// Placeholder for the sender if a datagram has no source address, which does not happen with UDP.
const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// The payload of generated media is zeros.
static ZEROS: [u8; MAX_PAYLOAD] = [0; MAX_PAYLOAD];

/// Source of the arrival times of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampSource {
    /// The kernel records the time when a datagram arrives.
    Kernel,
    /// The system has no kernel timestamps. The time is taken when the datagram is read, so it includes stalls of the
    /// reader.
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

/// Counters of datagrams that a socket lost or dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketStats {
    /// Datagrams that the kernel refused to send, for any reason.
    pub unsent: u64,
    /// Datagrams lost because the receive buffer was full, counted up to the last datagram read. Zero if the system
    /// does not count them.
    pub overflowed: u64,
    /// Datagrams from port 0, to which no answer can be sent (RFC 768). They are dropped before anything else reads
    /// them.
    pub unanswerable: u64,
}

impl SocketStats {
    /// The sum of both sockets' counters.
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
    /// The kernel refused the datagram: it is lost, as any datagram may be, and counted as `unsent`.
    Refused,
    /// As `Refused`, because the interface, its address or the route is gone.
    NoRoute,
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
    /// The class of service of all datagrams it sends.
    dscp: Dscp,
    /// Why the kernel refused the last datagram; `None` if the kernel accepted it.
    refusal: Option<Errno>,
    /// ICMP errors about the peer; `None` before `listen_for_errors`.
    word: Option<Word>,
    /// If set, sending fails with this error, as if the kernel had returned it.
    #[cfg(any(test, feature = "fuzz"))]
    pub(crate) kernel_says: Option<Errno>,
    /// The answers that were sent and their destinations, if a test records them.
    #[cfg(any(test, feature = "fuzz"))]
    pub(crate) overheard: Option<Box<Overheard>>,
}

/// Recorded answers with their destinations.
#[cfg(any(test, feature = "fuzz"))]
#[derive(Debug, Default)]
pub(crate) struct Overheard(pub(crate) Vec<(SocketAddr, Vec<u8>)>);

impl Socket {
    /// A socket at `address`; port 0 means any free port.
    ///
    /// For the first such socket on a host, the kernel takes some milliseconds to turn its timestamps on. A datagram
    /// that arrives before that is stamped when it is read.
    ///
    /// # Errors
    /// [`NetError::PortInUse`] if another socket holds the port, [`NetError::Bind`] for every other failure.
    pub fn bind(address: SocketAddr, clock: &Clock) -> Result<Self, NetError> {
        let failed = |source: io::Error| match source.kind() {
            ErrorKind::AddrInUse => NetError::PortInUse { address },
            _ => NetError::Bind { address, source },
        };
        UdpSocket::bind(address).and_then(|socket| Self::of(socket, clock)).map_err(failed)
    }

    /// A socket at any free port of `address` that sends and receives only through the interface `device`.
    ///
    /// Binding to the address alone is not enough: the kernel then still chooses the interface by the route to the
    /// destination.
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
        // Both are optional: the socket also works on a system without them.
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

    /// The bound address, with the actual port.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The clock that stamps received datagrams.
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Sets the class of service of all further datagrams. If the kernel refuses it or the network ignores it, the
    /// datagrams are sent without it.
    pub const fn set_dscp(&mut self, dscp: Dscp) {
        self.dscp = dscp;
    }

    /// The source of its arrival times.
    pub const fn timestamps(&self) -> TimestampSource {
        self.timestamps
    }

    /// Its counters so far.
    pub const fn stats(&self) -> SocketStats {
        self.stats
    }

    /// Reads one datagram into `buffer`. Returns `None` if no datagram waits, or if the call has skipped as many
    /// datagrams and errors as it may.
    ///
    /// Two things are skipped: errors about an earlier datagram, because the peer may not be up yet or has just gone,
    /// and datagrams from port 0.
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

    /// Starts to record ICMP errors about datagrams to `peer`; see [`take_unreachable`](Self::take_unreachable).
    pub(crate) fn listen_for_errors(&mut self, peer: SocketAddr) {
        self.word.get_or_insert_with(|| Word::about(peer, &self.inner));
    }

    /// Returns whether ICMP has reported since the last call that the peer's port, host or network is unreachable.
    /// Reports are read together with the datagrams.
    pub(crate) fn take_unreachable(&mut self) -> bool {
        self.word.as_mut().is_some_and(Word::take)
    }

    /// Empties the error queue: while it holds an error, `poll` returns at once.
    fn read_errors(&mut self) {
        if let Some(word) = &mut self.word {
            word.read(&self.inner);
        }
    }

    /// Reads the waiting datagrams, as many as fit into `batch`.
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
                // Datagrams that may still wait are read with the next batch.
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

    /// For [`wait_any`].
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }

    /// Sends the head of `transmit`, followed by its media as zeros, to `peer` as one datagram with the ECN field that
    /// `transmit` asks for.
    ///
    /// The socket stays usable whatever the kernel answers: a datagram that the kernel refuses is lost, as any datagram
    /// may be.
    ///
    /// # Errors
    /// [`NetError::Send`] if such a datagram can never be sent: it is longer than UDP allows, goes to port 0, or to an
    /// IPv6 address from an IPv4 socket. It is counted as `unsent`, too.
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

    /// Sends `answer` to the peer that asked for it. A failure to send is ignored: a server has other peers, and an
    /// attacker may have chosen the address to make sending fail.
    pub(crate) fn answer(&mut self, peer: SocketAddr, answer: &Transmit<'_>) {
        #[cfg(any(test, feature = "fuzz"))]
        if let Some(overheard) = &mut self.overheard {
            overheard.0.push((peer, answer.head.to_vec()));
        }
        // `send_to` has already counted a failure.
        let _ = self.send_to(peer, answer);
    }

    /// Why the kernel refused the last datagram; `None` if the kernel accepted it.
    pub(crate) fn refusal(&self) -> Option<io::Error> {
        self.refusal.map(io::Error::from)
    }

    /// The error if no datagram of this length can ever be sent to this peer.
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
        // If the socket records ICMP errors, the kernel returns a pending error about an earlier datagram in place of
        // sending the next one. A second attempt sends it.
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

/// Maximum number of file descriptors that [`wait_any`] waits for: the sockets of a session's paths, interface changes,
/// and a wakeup.
const WAITED: usize = MAX_PATHS + 2;

/// Waits until one of `readers` is readable or until the time `until`, whichever is first; may return early. Returns
/// the readable readers as a bit mask; the lowest bit is the first reader.
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

/// One message read from any kind of socket.
pub(crate) struct Message {
    /// Bytes in the buffer.
    pub(crate) len: usize,
    /// Whether the buffer was too short for the message.
    pub(crate) cut: bool,
    pub(crate) from: Option<SockaddrStorage>,
    /// When it arrived.
    pub(crate) at: Time,
    /// Messages lost so far because the receive buffer was full, if the system counts them.
    pub(crate) overflowed: Option<u64>,
    /// The ECN field of its IP header, if the system reports it.
    pub(crate) ecn: Ecn,
}

/// Buffer for the kernel's control messages: arrival time, loss count, and the byte with the ECN bits.
pub(crate) fn control_buffer() -> Vec<u8> {
    cmsg_space!(TimeSpec, u32, c_int)
}

/// Reads one message with its kernel timestamp. Without a timestamp, the arrival time is now.
pub(crate) fn recv_stamped(fd: RawFd, buffer: &mut [u8], control: &mut [u8], clock: &Clock) -> Result<Message, Errno> {
    let mut parts = [IoSliceMut::new(buffer)];
    let message = recvmsg::<SockaddrStorage>(fd, &mut parts, Some(control), MsgFlags::empty())?;
    let remarks = Remarks::to(&message)?;
    let Remarks { overflowed, ecn, .. } = remarks;
    let cut = message.flags.contains(MsgFlags::MSG_TRUNC);
    Ok(Message { len: message.bytes, cut, from: message.address, at: remarks.at(clock), overflowed, ecn })
}

/// Waits until one of `sockets` has a datagram or until the time `until`, whichever is first; may return early.
pub(crate) fn wait<'a>(sockets: impl Iterator<Item = &'a Socket>, clock: &Clock, until: Time) -> Result<(), NetError> {
    let mut waiting: Vec<_> = sockets.map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN)).collect();
    wait_readable(&mut waiting, clock, until)
}

/// Waits until one of `waiting` is readable or until the time `until`, whichever is first; may return early.
pub(crate) fn wait_readable(waiting: &mut [PollFd<'_>], clock: &Clock, until: Time) -> Result<(), NetError> {
    let nanos = (until - clock.now()).as_nanos().max(0);
    let timeout = TimeSpec::new(nanos / 1_000_000_000, nanos % 1_000_000_000);
    match ppoll(waiting, Some(timeout), None) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(NetError::Wait { sockets: waiting.len(), source: errno.into() }),
    }
}

/// Whether the error means that the interface or its address is gone or down, or that there is no route to the peer.
fn is_lack_of_way(errno: Errno) -> bool {
    matches!(errno, Errno::ENETDOWN | Errno::ENETUNREACH | Errno::EHOSTUNREACH | Errno::ENODEV | Errno::EADDRNOTAVAIL)
}

/// The kernel's control messages about one message.
#[derive(Default)]
struct Remarks {
    /// Arrival time, in ns of the wall clock.
    stamp: Option<u64>,
    /// Messages lost before this one because the buffer was full.
    overflowed: Option<u64>,
    /// The ECN field of its IP header.
    ecn: Ecn,
}

impl Remarks {
    fn to(message: &RecvMsg<'_, '_, SockaddrStorage>) -> Result<Self, Errno> {
        let mut remarks = Self::default();
        for remark in message.cmsgs()? {
            match remark {
                ControlMessageOwned::ScmTimestampns(time) => remarks.stamp = Some(nanos_of(time)),
                // The kernel's counter has 32 bits. No run is long enough for it to wrap in practice.
                ControlMessageOwned::RxqOvfl(count) => remarks.overflowed = Some(u64::from(count)),
                remark => remarks.ecn = ecn_in(&remark).unwrap_or(remarks.ecn),
            }
        }
        Ok(remarks)
    }

    /// The arrival time; now, if the kernel reported none.
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

/// All error numbers that Linux can return.
#[cfg(test)]
pub(crate) fn every_errno() -> impl Iterator<Item = Errno> {
    (1..=133).map(Errno::from_raw).filter(|errno| *errno != Errno::UnknownErrno)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If it fails, a firewall, a null route or a full queue ends the sender.
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
