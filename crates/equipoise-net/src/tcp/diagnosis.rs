//! Reads the state of a kernel TCP connection through the socket monitoring interface (`man 7 sock_diag`).
//!
//! Newer kernel versions return more fields. An optional field of `TcpState` is `None` if an older kernel does not
//! return it.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd as _, OwnedFd};

use equipoise::units::{Size, Span};
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};

use super::state::TcpState;
use crate::NetError;

/// Linux's constants `SOCK_DIAG_BY_FAMILY`, `NLM_F_REQUEST` and `INET_DIAG_INFO`.
const BY_FAMILY: u16 = 20;
const REQUEST: u16 = 1;
const INFO: u16 = 2;
/// Linux's constants `AF_INET`, `AF_INET6` and `IPPROTO_TCP`.
const IPV4: u8 = 2;
const IPV6: u8 = 10;
const TCP: u8 = 6;
/// Lengths of the structures `nlmsghdr`, `inet_diag_req_v2`, `inet_diag_msg` and `nlattr`, in bytes.
const HEADER: usize = 16;
const QUESTION: usize = 56;
const ANSWER: usize = 72;
const ATTRIBUTE: usize = 4;
/// Length of the buffer for an answer, in bytes; every answer is shorter.
const LONGEST: usize = 4096;

/// Offsets of fields in `struct tcp_info`, in bytes.
const CONGESTION_STATE: usize = 1;
const OPTIONS: usize = 5;
const SEGMENT: usize = 16;
const UNACKED: usize = 24;
const ROUND_TRIP_US: usize = 68;
const THRESHOLD: usize = 76;
const WINDOW: usize = 80;
const RETRANSMISSIONS: usize = 100;
const ACKNOWLEDGED_BYTES: usize = 120;
const UNSENT_BYTES: usize = 144;
const MIN_ROUND_TRIP_US: usize = 148;
const SENT: usize = 156;
const TIMEOUTS: usize = 240;

/// The bit `TCPI_OPT_TIMESTAMPS` in the options field: the connection uses TCP timestamps.
const TIMESTAMPS: u8 = 1;
/// In this congestion state (`TCP_CA_CWR`) and in states with higher numbers, the congestion window is being reduced.
const REDUCING: u8 = 2;

/// The slow start threshold that the kernel reports if it has not set a threshold (`TCP_INFINITE_SSTHRESH`). Larger
/// values have the same meaning.
const NO_THRESHOLD: u32 = 0x7fff_ffff;
/// The value that the kernel reports as the minimum round-trip time before the first measurement.
const NO_ROUND_TRIP: u32 = u32::MAX;

/// The values that an application needs to derive its rate from a TCP connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Number of bytes acknowledged so far; `unsent` is the number of bytes that TCP has not sent yet.
    pub(crate) acknowledged: u64,
    pub(crate) unsent: u32,
    /// Congestion window in segments; `threshold` is the slow start threshold in segments, and `segment` is the number
    /// of data bytes in a full segment.
    pub(crate) window: u32,
    pub(crate) threshold: u32,
    pub(crate) segment: u32,
    /// Whether segments carry TCP timestamps.
    pub(crate) has_timestamps: bool,
    /// Whether the connection is reducing its window after a loss or an ECN mark.
    pub(crate) is_reducing: bool,
    /// Number of segments retransmitted so far.
    pub(crate) retransmissions: u32,
    /// Smoothed round-trip time; zero before the first measurement.
    pub(crate) round_trip: Span,
}

/// A monitoring socket for one TCP connection, in the network namespace of the connection.
#[derive(Debug)]
pub(crate) struct Diagnosis {
    fd: OwnedFd,
    question: Vec<u8>,
    answer: Vec<u8>,
}

impl Diagnosis {
    /// Opens a monitor of the connection from `local` to `peer` in this thread's network namespace.
    pub(crate) fn open(local: SocketAddr, peer: SocketAddr) -> Result<Self, NetError> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let fd = socket(AddressFamily::Netlink, SockType::Datagram, flags, SockProtocol::NetlinkSockDiag);
        Ok(Self { fd: fd.map_err(refused)?, question: question(local, peer), answer: vec![0; LONGEST] })
    }

    /// The state of the connection; `None` if the kernel does not have this connection.
    pub(crate) fn look(&mut self) -> Result<Option<TcpState>, NetError> {
        Ok(self.ask()?.map(|info| {
            let field = |at| u32_at(info, at).unwrap_or(0);
            let micros = |micros: u32| Span::from_micros(i64::from(micros));
            TcpState {
                window: field(WINDOW),
                slow_start_threshold: Some(field(THRESHOLD)).filter(|threshold| *threshold < NO_THRESHOLD),
                in_flight: field(UNACKED),
                smoothed_round_trip: Some(field(ROUND_TRIP_US)).filter(|found| *found > 0).map(micros),
                min_round_trip: u32_at(info, MIN_ROUND_TRIP_US).filter(|found| *found != NO_ROUND_TRIP).map(micros),
                sent: field(SENT).into(),
                retransmissions: field(RETRANSMISSIONS).into(),
                timeouts: u16_at(info, TIMEOUTS).map(u64::from),
                delivered: Size::ZERO,
                finished: None,
            }
        }))
    }

    /// The values of the connection from which a rate can be derived; `None` if the kernel does not have this
    /// connection, or does not return all values.
    pub(crate) fn progress(&mut self) -> Result<Option<Progress>, NetError> {
        Ok(self.ask()?.and_then(|info| {
            Some(Progress {
                acknowledged: u64_at(info, ACKNOWLEDGED_BYTES)?,
                unsent: u32_at(info, UNSENT_BYTES)?,
                window: u32_at(info, WINDOW)?,
                threshold: u32_at(info, THRESHOLD)?,
                segment: u32_at(info, SEGMENT)?,
                has_timestamps: info.get(OPTIONS)? & TIMESTAMPS != 0,
                is_reducing: *info.get(CONGESTION_STATE)? >= REDUCING,
                retransmissions: u32_at(info, RETRANSMISSIONS)?,
                round_trip: Span::from_micros(u32_at(info, ROUND_TRIP_US)?.into()),
            })
        }))
    }

    /// Whether all data of the connection was sent and acknowledged.
    pub(crate) fn is_all_acknowledged(&mut self) -> Result<bool, NetError> {
        let pending = |info| Some(u32_at(info, UNACKED)? > 0 || u32_at(info, UNSENT_BYTES)? > 0);
        Ok(self.ask()?.and_then(pending) == Some(false))
    }

    /// Requests the connection's `struct tcp_info` from the kernel.
    fn ask(&mut self) -> Result<Option<&[u8]>, NetError> {
        send(self.fd.as_raw_fd(), &self.question, MsgFlags::empty()).map_err(refused)?;
        let length = loop {
            match recv(self.fd.as_raw_fd(), &mut self.answer, MsgFlags::empty()) {
                Err(Errno::EINTR) => {}
                received => break received.map_err(refused)?,
            }
        };
        Ok(self.answer.get(..length).and_then(info_in))
    }
}

fn refused(errno: Errno) -> NetError {
    NetError::Tcp { what: "look at", source: errno.into() }
}

/// Encodes a request for the state of a connection: `struct nlmsghdr` and `struct inet_diag_req_v2`.
fn question(local: SocketAddr, peer: SocketAddr) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + QUESTION);
    bytes.extend(((HEADER + QUESTION) as u32).to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(REQUEST.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([if local.is_ipv4() { IPV4 } else { IPV6 }, TCP, 1 << (INFO - 1), 0]);
    // A bit mask of connection states: any state.
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend(local.port().to_be_bytes());
    bytes.extend(peer.port().to_be_bytes());
    for address in [local, peer] {
        let mut field = [0; 16];
        match (address.ip(), field.first_chunk_mut()) {
            (IpAddr::V4(address), Some(place)) => *place = address.octets(),
            (IpAddr::V6(address), _) => field = address.octets(),
            (IpAddr::V4(_), None) => {}
        }
        bytes.extend(field);
    }
    bytes.extend(0u32.to_ne_bytes());
    // This value means no cookie, so that any socket matches.
    bytes.extend([u8::MAX; 8]);
    bytes
}

/// Finds the `struct tcp_info` in an answer; `None` if the answer has none, for example because the connection does not
/// exist.
fn info_in(answer: &[u8]) -> Option<&[u8]> {
    let length = usize::try_from(u32_at(answer, 0)?).ok()?;
    if u16_at(answer, 4)? != BY_FAMILY {
        return None;
    }
    let mut attributes = answer.get(..length)?.get(HEADER + ANSWER..)?;
    loop {
        let length = usize::from(u16_at(attributes, 0)?);
        let value = attributes.get(ATTRIBUTE..length)?;
        if u16_at(attributes, 2)? == INFO {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|pair| u16::from_ne_bytes(*pair))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|four| u32::from_ne_bytes(*four))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|eight| u64::from_ne_bytes(*eight))
}
