//! How the ECN field of a datagram's IP header goes into a socket and comes out of it, with IPv4, IPv6, and IPv4 on an IPv6 socket.

use std::net::{SocketAddr, UdpSocket};

use equipoise_path::link::Ecn;
use nix::libc::{self, c_int};
use nix::sys::socket::{ControlMessageOwned, setsockopt, sockopt};

/// Has the kernel say with each datagram what its header said.
pub(crate) fn listen_for_ecn(socket: &UdpSocket, address: SocketAddr) {
    // Refinements: without them nothing is known to be marked. An IPv6 socket may receive over IPv4.
    let _ = setsockopt(socket, sockopt::IpRecvTos, &true);
    if address.is_ipv6() {
        let _ = setsockopt(socket, sockopt::Ipv6RecvTClass, &true);
    }
}

/// What a remark of the kernel to a datagram says of its header; `None` for another remark.
pub(crate) const fn ecn_in(remark: &ControlMessageOwned) -> Option<Ecn> {
    match remark {
        ControlMessageOwned::Ipv4Tos(field) => Some(Ecn::from_bits(*field)),
        ControlMessageOwned::Ipv6TClass(field) => Some(Ecn::from_bits(*field as u8)),
        _ => None,
    }
}

/// Bytes of a control message's head, and of the whole with a number in it and the padding behind (cmsg(3)).
const HEAD: usize = size_of::<libc::cmsghdr>();
const SPACE: usize = (HEAD + size_of::<c_int>()).next_multiple_of(size_of::<usize>());

/// The control message that has the kernel send a datagram with this field.
#[derive(Debug)]
pub(crate) struct EcnControl {
    bytes: [u8; SPACE],
    len: usize,
}

impl EcnControl {
    /// For a datagram to `peer`; empty where queues may not mark it, as the kernel says so by itself.
    pub(crate) fn new(peer: SocketAddr, ecn: Ecn) -> Self {
        let mut bytes = [0; SPACE];
        if ecn == Ecn::NotCapable {
            return Self { bytes, len: 0 };
        }
        // What goes to an IPv4 address leaves over IPv4, whatever the socket.
        let (level, kind) = match peer {
            SocketAddr::V6(peer) if peer.ip().to_ipv4_mapped().is_none() => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
            _ => (libc::IPPROTO_IP, libc::IP_TOS),
        };
        let (length, rest) = bytes.split_at_mut(size_of::<usize>());
        length.copy_from_slice(&(HEAD + size_of::<c_int>()).to_ne_bytes());
        let fields = [level, kind, c_int::from(ecn.bits())];
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

    /// Sends a datagram of each kind from a socket at one address to a socket at another one, which is called by `name`. Returns what
    /// came, read one by one or all together.
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

    /// If it fails, a live session is told of no marks, or marks what must not be marked.
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

    #[test]
    fn a_datagram_that_may_not_be_marked_needs_no_control_message() {
        let peer = (Ipv4Addr::LOCALHOST, 1).into();
        assert!(EcnControl::new(peer, Ecn::NotCapable).as_bytes().is_empty());
        assert_eq!(EcnControl::new(peer, Ecn::Ect0).as_bytes().len(), SPACE);
    }
}
