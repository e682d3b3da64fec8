//! Sets and reads the ECN field of IP headers on a socket: for IPv4, for IPv6, and for IPv4 on an IPv6 socket. Also
//! sets the class of service (DSCP), which is in the same byte.

use std::net::{SocketAddr, UdpSocket};

use equipoise_path::link::Ecn;
use nix::libc::{self, c_int};
use nix::sys::socket::{ControlMessageOwned, setsockopt, sockopt};

use crate::Dscp;

/// Makes the kernel report the byte with the ECN field for each received datagram.
pub(crate) fn listen_for_ecn(socket: &UdpSocket, address: SocketAddr) {
    // The IPv4 option is also set on an IPv6 socket, because such a socket may receive IPv4 datagrams. An error is
    // ignored: the socket then does not report ECN marks.
    let _ = setsockopt(socket, sockopt::IpRecvTos, &true);
    if address.is_ipv6() {
        let _ = setsockopt(socket, sockopt::Ipv6RecvTClass, &true);
    }
}

/// The ECN field in a control message; `None` if the message is of another kind.
pub(crate) const fn ecn_in(remark: &ControlMessageOwned) -> Option<Ecn> {
    match remark {
        ControlMessageOwned::Ipv4Tos(field) => Some(Ecn::from_bits(*field)),
        ControlMessageOwned::Ipv6TClass(field) => Some(Ecn::from_bits(*field as u8)),
        _ => None,
    }
}

/// `HEAD`: length of a control message's header. `SPACE`: length of a control message with a `c_int`, including
/// padding (cmsg(3)). Both are in bytes.
const HEAD: usize = size_of::<libc::cmsghdr>();
const SPACE: usize = (HEAD + size_of::<c_int>()).next_multiple_of(size_of::<usize>());

/// The control message that makes the kernel send a datagram with a given class of service and a given ECN field.
#[derive(Debug)]
pub(crate) struct ServiceControl {
    bytes: [u8; SPACE],
    len: usize,
}

impl ServiceControl {
    /// The control message for a datagram to `peer`. For the default class without ECN, the message is empty, because
    /// the kernel uses these values by default.
    pub(crate) fn new(peer: SocketAddr, dscp: Dscp, ecn: Ecn) -> Self {
        let mut bytes = [0; SPACE];
        // One byte of the IP header contains the DSCP and the ECN field (RFC 3168, Sec. 5).
        let service = dscp.number() << 2 | ecn.bits();
        if service == 0 {
            return Self { bytes, len: 0 };
        }
        // A datagram to an IPv4 address is sent by IPv4, even from an IPv6 socket.
        let (level, kind) = match peer {
            SocketAddr::V6(peer) if peer.ip().to_ipv4_mapped().is_none() => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
            _ => (libc::IPPROTO_IP, libc::IP_TOS),
        };
        let (length, rest) = bytes.split_at_mut(size_of::<usize>());
        length.copy_from_slice(&(HEAD + size_of::<c_int>()).to_ne_bytes());
        let fields = [level, kind, c_int::from(service)];
        for (place, field) in rest.as_chunks_mut().0.iter_mut().zip(fields) {
            *place = field.to_ne_bytes();
        }
        Self { bytes, len: SPACE }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use equipoise::units::Span;
    use equipoise_session::Transmit;

    use super::*;
    use crate::batch::Batch;
    use crate::socket::wait_any;
    use crate::{Clock, Socket};

    const ALL: [Ecn; 4] = [Ecn::NotCapable, Ecn::Ect1, Ecn::Ect0, Ecn::Marked];

    /// Sends datagrams from a socket bound to `from` to a socket bound to `to`. Their destination address is `name`.
    /// Datagram `n` contains the byte `n` and has the ECN field `ALL[n]`. Returns `n` and the ECN field of each
    /// received datagram.
    fn through(from: IpAddr, to: IpAddr, name: IpAddr, is_batch: bool) -> Vec<(u8, Ecn)> {
        let clock = Clock::new();
        let [mut from, mut to] = [from, to].map(|ip| Socket::bind((ip, 0).into(), &clock).expect("a socket"));
        let peer = SocketAddr::new(name, to.address().port());
        for (ecn, number) in ALL.into_iter().zip(0..) {
            from.send_to(peer, &Transmit { media: 3, ecn, ..Transmit::datagram(&[number]) }).expect("sent");
        }
        let (mut found, mut batch, mut buffer) = (Vec::new(), Batch::new(), [0; 10]);
        let until = clock.now() + Span::from_secs(5);
        while found.len() < ALL.len() && clock.now() < until {
            wait_any(std::iter::once(to.as_fd()), &clock, until).expect("it waits");
            if is_batch {
                to.recv_batch(&mut batch).expect("it receives");
                found.extend(batch.datagrams().map(|(received, bytes)| (bytes[0], received.ecn)));
            } else if let Some(received) = to.recv(&mut buffer).expect("it receives") {
                found.push((buffer[0], received.ecn));
            }
        }
        found
    }

    /// If this test fails, a session receives no ECN marks, or sets an ECN field that it must not set.
    #[test]
    fn all_four_codepoints_pass_over_ipv4_ipv6_and_ipv4_on_an_ipv6_socket() {
        let (v4, v6) = (IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST));
        let mapped = IpAddr::from(Ipv4Addr::LOCALHOST.to_ipv6_mapped());
        let (any4, any6) = (Ipv4Addr::UNSPECIFIED.into(), IpAddr::from(Ipv6Addr::UNSPECIFIED));
        let sent: Vec<_> = (0..).zip(ALL).collect();
        for (from, to, name) in
            [(any4, v4, v4), (v4, any6, v4), (any6, v4, mapped), (any6, any6, mapped), (any6, v6, v6), (v6, any6, v6)]
        {
            for is_batch in [false, true] {
                assert_eq!(through(from, to, name, is_batch), sent, "{from} to {to}, called {name}, {is_batch}");
            }
        }
    }

    /// If this test fails, a network does not recognise the class of service of media packets, or a queue cannot mark
    /// packets that have a class of service. The test checks the whole byte with the DSCP and the ECN field.
    #[test]
    fn a_class_of_service_stands_beside_the_field_over_ipv4_ipv6_and_ipv4_on_an_ipv6_socket() {
        let clock = Clock::new();
        let (any4, any6) = (IpAddr::from(Ipv4Addr::UNSPECIFIED), IpAddr::from(Ipv6Addr::UNSPECIFIED));
        let mapped = IpAddr::from(Ipv4Addr::LOCALHOST.to_ipv6_mapped());
        for (from, to, name) in [
            (any4, any4, IpAddr::from(Ipv4Addr::LOCALHOST)),
            (any6, any6, mapped),
            (any6, any6, IpAddr::from(Ipv6Addr::LOCALHOST)),
        ] {
            let mut sender = Socket::bind((from, 0).into(), &clock).expect("a socket");
            sender.set_dscp(Dscp::EF);
            let receiver = UdpSocket::bind((to, 0)).expect("a socket");
            receiver.set_read_timeout(Some(std::time::Duration::from_secs(5))).expect("a timeout");
            listen_for_ecn(&receiver, receiver.local_addr().expect("bound"));
            let peer = SocketAddr::new(name, receiver.local_addr().expect("bound").port());
            for ecn in [Ecn::NotCapable, Ecn::Ect1] {
                sender.send_to(peer, &Transmit { ecn, ..Transmit::datagram(b"media") }).expect("sent");
                assert_eq!(service_of_next(&receiver), Some(46 << 2 | ecn.bits()), "{from} to {name}");
            }
        }
    }

    /// The byte with the DSCP and the ECN field in the IP header of the next received datagram.
    fn service_of_next(socket: &UdpSocket) -> Option<u8> {
        let (mut control, mut buffer) = (crate::socket::control_buffer(), [0; 10]);
        let mut parts = [std::io::IoSliceMut::new(&mut buffer)];
        let message = nix::sys::socket::recvmsg::<nix::sys::socket::SockaddrStorage>(
            std::os::fd::AsRawFd::as_raw_fd(socket),
            &mut parts,
            Some(&mut control),
            nix::sys::socket::MsgFlags::empty(),
        );
        message.expect("it receives").cmsgs().expect("whole").find_map(|remark| match remark {
            ControlMessageOwned::Ipv4Tos(byte) => Some(byte),
            ControlMessageOwned::Ipv6TClass(byte) => u8::try_from(byte).ok(),
            _ => None,
        })
    }

    #[test]
    fn a_datagram_that_asks_for_nothing_needs_no_control_message() {
        let peer = (Ipv4Addr::LOCALHOST, 1).into();
        let length = |dscp, ecn| ServiceControl::new(peer, dscp, ecn).as_bytes().len();
        assert_eq!(length(Dscp::DEFAULT, Ecn::NotCapable), 0);
        assert_eq!([length(Dscp::DEFAULT, Ecn::Ect0), length(Dscp::EF, Ecn::NotCapable)], [SPACE, SPACE]);
    }
}
