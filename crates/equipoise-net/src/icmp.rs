//! Reads ICMP errors about datagrams that a socket has sent.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;

use crate::socket::{PASSED_OVER, address_of};

/// Records ICMP errors about datagrams that were sent to one peer.
#[derive(Debug)]
pub(crate) struct Word {
    peer: SocketAddr,
    is_unreachable: bool,
    control: Vec<u8>,
}

impl Word {
    /// Makes a socket report ICMP errors. The result records the errors about datagrams to `peer`.
    pub(crate) fn about(peer: SocketAddr, socket: &UdpSocket) -> Self {
        // If an option cannot be set, the sender notices an unreachable peer later, from missing reports. An IPv6
        // socket needs both options, because it may also send by IPv4.
        let _ = setsockopt(socket, sockopt::Ipv4RecvErr, &true);
        if socket.local_addr().is_ok_and(|address| address.is_ipv6()) {
            let _ = setsockopt(socket, sockopt::Ipv6RecvErr, &true);
        }
        Self { peer, is_unreachable: false, control: error_buffer() }
    }

    /// Returns whether the peer's port, host or network was reported unreachable since the last call.
    pub(crate) const fn take(&mut self) -> bool {
        std::mem::replace(&mut self.is_unreachable, false)
    }

    /// Reads the errors in the socket's error queue.
    pub(crate) fn read(&mut self, socket: &UdpSocket) {
        let Self { peer, is_unreachable, control } = self;
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        for _ in 0..PASSED_OVER {
            // The kernel also returns the datagram that caused the error; this datagram is not needed.
            let read = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut [], Some(control), flags);
            let Ok(message) = read else { return };
            let to = message.address.as_ref().and_then(address_of);
            if to.is_some_and(|to| (to.ip(), to.port()) == (peer.ip(), peer.port())) {
                *is_unreachable |= message.cmsgs().is_ok_and(|mut all| all.any(|control| is_unreachability(&control)));
            }
        }
    }
}

/// Returns a buffer for the control messages that the kernel returns with an error. These are the error, the address of
/// the host that reported the error, and the control messages that come with every datagram.
fn error_buffer() -> Vec<u8> {
    cmsg_space!(TimeSpec, u32, libc::c_int, libc::sock_extended_err, libc::sockaddr_in6, libc::sockaddr_in6)
}

/// Whether a control message reports the ICMP error "destination unreachable" (RFC 792; RFC 4443, Sec. 3.1). "Packet
/// too big" and "fragmentation needed" do not count.
const fn is_unreachability(control: &ControlMessageOwned) -> bool {
    const UNREACHABLE: (u8, u8) = (libc::SO_EE_ORIGIN_ICMP, 3);
    const UNREACHABLE_6: (u8, u8) = (libc::SO_EE_ORIGIN_ICMP6, 1);
    const FRAGMENTATION_NEEDED: u8 = 4;
    let (ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _)) = control else {
        return false;
    };
    match (error.ee_origin, error.ee_type) {
        UNREACHABLE => error.ee_code != FRAGMENTATION_NEEDED,
        UNREACHABLE_6 => true,
        _ => false,
    }
}

/// Whether an error of a system call is caused by an ICMP error about an earlier datagram (RFC 1122, Sec. 4.1.3.3).
/// For such an ICMP error, Linux returns one of several error numbers.
pub(crate) fn is_word_from_the_path(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::ECONNREFUSED
            | Errno::EHOSTUNREACH
            | Errno::ENETUNREACH
            | Errno::EHOSTDOWN
            | Errno::ENETDOWN
            | Errno::ENONET
            | Errno::ENOPROTOOPT
            | Errno::EOPNOTSUPP
            | Errno::EPROTO
            | Errno::EACCES
            | Errno::EMSGSIZE
    )
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use equipoise::units::Span;
    use equipoise_session::Transmit;

    use super::*;
    use crate::socket::{Sent, wait_any};
    use crate::{Clock, Socket};

    /// If this test fails, a sender is not told that its receiver is unreachable, or uses a whole processor by reading
    /// the same error repeatedly, or does not send a datagram because of an error about an earlier datagram.
    #[test]
    fn an_unreachable_peer_is_told_once_and_leaves_nothing_to_wake_for() {
        let clock = Clock::new();
        for ip in [Ipv4Addr::LOCALHOST.into(), IpAddr::from(Ipv6Addr::LOCALHOST)] {
            // If the host has no IPv6, IPv6 is not tested.
            let Ok(mut socket) = Socket::bind((ip, 0).into(), &clock) else { continue };
            let [gone, other] = [(); 2].map(|()| Socket::bind((ip, 0).into(), &clock).unwrap()).map(|it| it.address());
            socket.listen_for_errors(gone);
            let mut told_of = |peer| {
                for _ in 0..3 {
                    assert_eq!(socket.send_to(peer, &Transmit::datagram(b"nobody takes it")).unwrap(), Sent::Taken);
                }
                let soon = clock.now() + Span::from_secs(10);
                assert_eq!(wait_any(std::iter::once(socket.as_fd()), &clock, soon).unwrap(), 1, "there is an error");
                assert!(socket.recv(&mut [0; 100]).unwrap().is_none());
                let told = [socket.take_unreachable(), socket.take_unreachable()];
                let until = clock.now() + Span::from_millis(20);
                assert_eq!(wait_any(std::iter::once(socket.as_fd()), &clock, until).unwrap(), 0, "it was read");
                told
            };
            assert_eq!(told_of(gone), [true, false], "{ip}");
            assert_eq!(told_of(other), [false; 2], "{ip}: this is not the peer");
        }
    }

    #[test]
    fn that_a_packet_is_too_big_does_not_make_a_host_unreachable() {
        let error = |ee_origin, ee_type, ee_code| {
            let error =
                libc::sock_extended_err { ee_errno: 0, ee_origin, ee_type, ee_code, ee_pad: 0, ee_info: 0, ee_data: 0 };
            is_unreachability(&ControlMessageOwned::Ipv4RecvErr(error, None))
        };
        // Errors of ICMP. The first three mean unreachable: network, host and port unreachable. The others do not:
        // fragmentation needed, time exceeded.
        assert_eq!([error(2, 3, 0), error(2, 3, 1), error(2, 3, 3)], [true; 3]);
        assert_eq!([error(2, 3, 4), error(2, 11, 0)], [false; 2]);
        // Errors of ICMPv6. "No route" and "port unreachable" show that the peer is unreachable. "Packet too big" does
        // not show this, and an error of the local host is no ICMP error.
        assert_eq!([error(3, 1, 0), error(3, 1, 4)], [true; 2]);
        assert_eq!([error(3, 2, 0), error(1, 3, 3)], [false; 2]);
    }
}
