use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::libc;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket};

use super::via::Via;
use crate::NetError;
use crate::socket::address_of;

/// The network interface and the local address that a path uses now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) device: String,
    pub(super) address: IpAddr,
    /// Whether the interface is up and has a carrier.
    pub(super) is_usable: bool,
}

/// The network interfaces of this network namespace and their addresses, at one time.
#[derive(Debug)]
pub(super) struct Interfaces {
    /// An interface has one entry without an address, and one entry for each of its addresses.
    entries: Vec<(String, InterfaceFlags, Option<IpAddr>)>,
}

impl Interfaces {
    pub(super) fn read() -> Result<Self, NetError> {
        let all = getifaddrs().map_err(|errno| NetError::Interfaces { source: errno.into() })?;
        let entries = all.map(|entry| {
            let address = entry.address.as_ref().and_then(address_of).map(|address| address.ip());
            (entry.interface_name, entry.flags, address)
        });
        Ok(Self { entries: entries.collect() })
    }

    /// Returns a place (interface and local address) that matches `via`, for datagrams to `peer`. If the path's present
    /// place `now` matches, returns this place. Otherwise, returns the first place that matches.
    pub(super) fn place(&self, via: &Via, peer: SocketAddr, now: Option<&Place>) -> Result<Place, NetError> {
        let fits = |address: IpAddr| match via {
            Via::Device(_) => address.is_ipv4() == peer.is_ipv4() && is_link_local(address) == is_link_local(peer.ip()),
            Via::Address(wanted) => address == *wanted && address.is_ipv4() == peer.is_ipv4(),
        };
        let mut places = self.entries.iter().filter_map(|(device, flags, address)| {
            let is_there = matches!(via, Via::Device(name) if name == device) || matches!(via, Via::Address(_));
            let address = address.filter(|address| is_there && fits(*address))?;
            let is_usable = flags.contains(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING);
            Some(Place { device: device.clone(), address, is_usable })
        });
        let first = places.next().ok_or_else(|| self.nowhere(via, peer))?;
        let is_now =
            |place: &Place| now.is_some_and(|now| (&now.device, now.address) == (&place.device, place.address));
        if is_now(&first) {
            return Ok(first);
        }
        Ok(places.find(is_now).unwrap_or(first))
    }

    fn nowhere(&self, via: &Via, peer: SocketAddr) -> NetError {
        let family = if peer.is_ipv4() { "IPv4" } else { "IPv6" };
        match via {
            Via::Device(name) if self.entries.iter().any(|(device, ..)| device == name) => {
                NetError::NoAddress { name: name.clone(), family }
            }
            Via::Device(name) => {
                let mut known: Vec<String> = self.entries.iter().map(|(device, ..)| device.clone()).collect();
                known.sort_unstable();
                known.dedup();
                NetError::NoInterface { name: name.clone(), known }
            }
            Via::Address(address) => {
                let known = self.entries.iter().filter_map(|(.., known)| *known);
                let known = known.filter(|known| known.is_ipv4() == peer.is_ipv4()).map(|known| known.to_string());
                NetError::NotOurAddress { address: *address, family, known: known.collect() }
            }
        }
    }
}

/// Whether this is an IPv6 link-local address, which is valid only on one link (RFC 4291, Sec. 2.5.6).
fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

/// A socket that becomes readable when a network interface or an address changes (rtnetlink(7)).
#[derive(Debug)]
pub(super) struct InterfaceNews {
    socket: OwnedFd,
}

impl InterfaceNews {
    pub(super) fn open() -> Result<Self, NetError> {
        let open = || {
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
            let groups = libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR;
            bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups as u32))?;
            Ok(Self { socket })
        };
        open().map_err(|errno: Errno| NetError::Interfaces { source: errno.into() })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Reads all waiting notifications. Returns whether there were any. Their content is ignored, because the caller
    /// then reads the state of all interfaces.
    pub(super) fn take(&self) -> bool {
        let (mut buffer, mut found) = ([0; 4096], false);
        // If the socket's buffer has overflowed (ENOBUFS), there were notifications, so this error counts as a
        // notification.
        while !matches!(recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty()), Err(Errno::EAGAIN)) {
            found = true;
        }
        found
    }
}
