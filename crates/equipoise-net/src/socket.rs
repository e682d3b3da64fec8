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

/// Receive buffer to ask for, in bytes. Ours: over a second of 30 Mbit/s, to outlast a stalled reader. The system may
/// give less.
pub(crate) const RECEIVE_BUFFER: usize = 4 << 20;

/// How many datagrams and errors are passed over in one call, so that a flood of them does not keep the caller from its
/// other work. Ours: below a tenth of a millisecond.
pub(crate) const PASSED_OVER: u32 = 64;

/// An address that nobody has, for a datagram without one, which no UDP socket returns.
const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

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

/// What a socket lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketStats {
    /// Datagrams that the kernel refused to send, for whatever reason.
    pub unsent: u64,
    /// Datagrams that found the receive buffer full; where the system counts them, up to the last one read.
    pub overflowed: u64,
    /// Datagrams from port 0, which no answer can reach (RFC 768). They are dropped before anybody sees them.
    pub unanswerable: u64,
}

impl SocketStats {
    /// What both sockets lost.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            unsent: self.unsent.saturating_add(other.unsent),
            overflowed: self.overflowed.saturating_add(other.overflowed),
            unanswerable: self.unanswerable.saturating_add(other.unanswerable),
        }
    }
}

/// What became of a datagram that can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The kernel took it.
    Taken,
    /// The kernel refused it this time: it is lost, as any datagram may be, and counted as `unsent`.
    Refused,
    /// Refused as well, because the interface, its address or the route is gone.
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
    /// The class of service of all that it sends.
    dscp: Dscp,
    /// Why the kernel refused the last datagram; `None` after one that it took.
    refusal: Option<Errno>,
    /// What ICMP says; `None` where nobody listens.
    word: Option<Word>,
    /// What takes the place of the kernel's answer to the next datagrams.
    #[cfg(any(test, feature = "fuzz"))]
    pub(crate) kernel_says: Option<Errno>,
    /// What was answered and to whom, where somebody listens.
    #[cfg(any(test, feature = "fuzz"))]
    pub(crate) overheard: Option<Box<Overheard>>,
}

/// Answers, and to whom.
#[cfg(any(test, feature = "fuzz"))]
#[derive(Debug, Default)]
pub(crate) struct Overheard(pub(crate) Vec<(SocketAddr, Vec<u8>)>);

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
        UdpSocket::bind(address).and_then(|socket| Self::of(socket, clock)).map_err(failed)
    }

    /// A socket at any free port of `address` whose datagrams leave and come by the interface `device` alone.
    ///
    /// The address alone would not do: datagrams from it leave by whichever interface the routes name for their
    /// destination.
    ///
    /// # Errors
    /// [`NetError::Bind`] where it cannot be had.
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
        // Both are refinements; a system without them still does.
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

    /// Where it is bound, with the port that was chosen.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The clock that stamps what it receives.
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// All that it sends from now on asks for this class of service; a kernel or network that gives none sends it as anything else.
    pub const fn set_dscp(&mut self, dscp: Dscp) {
        self.dscp = dscp;
    }

    /// Where its arrival times come from.
    pub const fn timestamps(&self) -> TimestampSource {
        self.timestamps
    }

    /// What it lost so far.
    pub const fn stats(&self) -> SocketStats {
        self.stats
    }

    /// Reads one datagram into `buffer`; `None` if none is there, or only datagrams to pass over, and many of those.
    ///
    /// Passed over are errors that an earlier datagram met on its way, as the peer may not be up yet, or just gone, and
    /// datagrams from port 0.
    ///
    /// # Errors
    /// [`NetError::Receive`] where the socket can receive no more.
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

    /// Listens from now on to what ICMP says of datagrams to `peer`; see [`take_unreachable`](Self::take_unreachable).
    pub(crate) fn listen_for_errors(&mut self, peer: SocketAddr) {
        self.word.get_or_insert_with(|| Word::about(peer, &self.inner));
    }

    /// Whether ICMP has said since this was asked last that the peer's port, host or network is unreachable. Whatever is said
    /// is read with the datagrams.
    pub(crate) fn take_unreachable(&mut self) -> bool {
        self.word.as_mut().is_some_and(Word::take)
    }

    /// Empties the queue of errors: as long as there is one, nobody can wait for a datagram.
    fn read_errors(&mut self) {
        if let Some(word) = &mut self.word {
            word.read(&self.inner);
        }
    }

    /// Reads the datagrams that are there, as many as fit into `batch`.
    ///
    /// # Errors
    /// [`NetError::Receive`] where the socket can receive no more.
    pub(crate) fn recv_batch(&mut self, batch: &mut Batch) -> Result<(), NetError> {
        let mut received = std::mem::take(&mut batch.received);
        received.clear();
        let mut headers = Batch::headers();
        let mut slices = batch.slices();
        let failed = |errno: Errno| NetError::Receive { address: self.address, source: errno.into() };
        let found =
            match recvmmsg(self.inner.as_raw_fd(), &mut headers, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None) {
                Ok(found) => Some(found),
                // What may be there will be read with the next batch.
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

    /// Sends the head of `transmit`, and its media as zeros behind it, to `peer` as one datagram whose IP header says of congestion
    /// what it is to say.
    ///
    /// Whatever the kernel answers, the socket goes on: a datagram that it refuses is lost, as any datagram may be.
    ///
    /// # Errors
    /// [`NetError::Send`] if no such datagram can ever be sent: it is longer than UDP allows, goes to port 0, or to an IPv6
    /// address from an IPv4 socket. It is counted as `unsent`, too.
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

    /// Sends `answer` to whoever asked for it. That it cannot be sent is the peer's loss: a server has other peers, and the
    /// address may have been chosen to make it fail.
    pub(crate) fn answer(&mut self, peer: SocketAddr, answer: &Transmit<'_>) {
        #[cfg(any(test, feature = "fuzz"))]
        if let Some(overheard) = &mut self.overheard {
            overheard.0.push((peer, answer.head.to_vec()));
        }
        // Counted already.
        let _ = self.send_to(peer, answer);
    }

    /// Why the kernel refused the last datagram; `None` after one that it took.
    pub(crate) fn refusal(&self) -> Option<io::Error> {
        self.refusal.map(io::Error::from)
    }

    /// Why no datagram of this length can ever be sent to this peer.
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
        // Where errors are listened for, the kernel gives the last one of an earlier datagram as its answer to the next, which
        // it does not send. Asked again, it speaks of this one.
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

/// What [`wait_any`] waits for at the most: the sockets of a session's paths, news of interfaces, and a wakeup.
const WAITED: usize = MAX_PATHS + 2;

/// Waits until one of `readers` has something to read or the time is `until`, whichever is first; may return early. Which
/// have, as bits in their order, the first the lowest.
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
    /// What its IP header said of congestion, where the system says so.
    pub(crate) ecn: Ecn,
}

/// Room for the kernel's remarks to a message: its time of arrival, the count of those lost, and the field with the ECN bits.
pub(crate) fn control_buffer() -> Vec<u8> {
    cmsg_space!(TimeSpec, u32, c_int)
}

/// Reads one message and its kernel timestamp; where that is missing, it arrives now.
pub(crate) fn recv_stamped(fd: RawFd, buffer: &mut [u8], control: &mut [u8], clock: &Clock) -> Result<Message, Errno> {
    let mut parts = [IoSliceMut::new(buffer)];
    let message = recvmsg::<SockaddrStorage>(fd, &mut parts, Some(control), MsgFlags::empty())?;
    let remarks = Remarks::to(&message)?;
    let Remarks { overflowed, ecn, .. } = remarks;
    let cut = message.flags.contains(MsgFlags::MSG_TRUNC);
    Ok(Message { len: message.bytes, cut, from: message.address, at: remarks.at(clock), overflowed, ecn })
}

/// Waits until one of any number of `sockets` has a datagram or the time is `until`, whichever is first; may return early.
pub(crate) fn wait<'a>(sockets: impl Iterator<Item = &'a Socket>, clock: &Clock, until: Time) -> Result<(), NetError> {
    let mut waiting: Vec<_> = sockets.map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN)).collect();
    wait_readable(&mut waiting, clock, until)
}

/// Waits for what is to be read from any of `waiting`, or until then, whichever is first; may return early.
pub(crate) fn wait_readable(waiting: &mut [PollFd<'_>], clock: &Clock, until: Time) -> Result<(), NetError> {
    let nanos = (until - clock.now()).as_nanos().max(0);
    let timeout = TimeSpec::new(nanos / 1_000_000_000, nanos % 1_000_000_000);
    match ppoll(waiting, Some(timeout), None) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(NetError::Wait { sockets: waiting.len(), source: errno.into() }),
    }
}

/// The interface is down or gone, its address is, or no route leads over it.
fn is_lack_of_way(errno: Errno) -> bool {
    matches!(errno, Errno::ENETDOWN | Errno::ENETUNREACH | Errno::EHOSTUNREACH | Errno::ENODEV | Errno::EADDRNOTAVAIL)
}

/// What the kernel says of a message.
#[derive(Default)]
struct Remarks {
    /// When it came, in ns of the wall clock.
    stamp: Option<u64>,
    /// How many were lost before for want of room.
    overflowed: Option<u64>,
    /// What its IP header said of congestion.
    ecn: Ecn,
}

impl Remarks {
    fn to(message: &RecvMsg<'_, '_, SockaddrStorage>) -> Result<Self, Errno> {
        let mut remarks = Self::default();
        for remark in message.cmsgs()? {
            match remark {
                ControlMessageOwned::ScmTimestampns(time) => remarks.stamp = Some(nanos_of(time)),
                // The kernel's counter has 32 bits; a run that wraps it has other worries.
                ControlMessageOwned::RxqOvfl(count) => remarks.overflowed = Some(u64::from(count)),
                remark => remarks.ecn = ecn_in(&remark).unwrap_or(remarks.ecn),
            }
        }
        Ok(remarks)
    }

    /// When it came; now, where the kernel does not say.
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

/// All that Linux can answer.
#[cfg(test)]
pub(crate) fn every_errno() -> impl Iterator<Item = Errno> {
    (1..=133).map(Errno::from_raw).filter(|errno| *errno != Errno::UnknownErrno)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If it fails, a firewall, a null route or a full queue ends whoever sends.
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
