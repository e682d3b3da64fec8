use std::fs;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::LinkAddr;

use crate::NetError;

/// ARP's hardware type for Ethernet (RFC 826; `ARPHRD_ETHER` in Linux).
const ETHERNET: u16 = 1;

/// The assumed MTU of an Ethernet interface in bytes, if the system reports none (RFC 894).
const USUAL_MTU: usize = 1500;

/// A network interface in this network namespace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interface {
    pub(super) address: LinkAddr,
    /// MTU: length of the longest IP packet that the interface can send, in bytes.
    pub(super) mtu: usize,
}

impl Interface {
    /// Finds the Ethernet interface `name`, which must be up.
    pub(super) fn find(name: &str) -> Result<Self, NetError> {
        let name = name.to_owned();
        let all = match getifaddrs() {
            Ok(all) => all,
            Err(errno) => return Err(NetError::PacketSocket { name, source: errno.into() }),
        };
        let mut known = Vec::new();
        for entry in all {
            let Some(address) = entry.address.as_ref().and_then(|address| address.as_link_addr()) else { continue };
            if entry.interface_name != name {
                known.push(entry.interface_name);
            } else if address.hatype() != ETHERNET {
                return Err(NetError::NotEthernet { name });
            } else if !entry.flags.contains(InterfaceFlags::IFF_UP) {
                return Err(NetError::InterfaceDown { name });
            } else {
                return Ok(Self { address: *address, mtu: mtu(&name) });
            }
        }
        Err(NetError::NoInterface { name, known })
    }
}

/// The MTU of the interface `name`. The file in `/proc` always belongs to this network namespace, but exists only if
/// IPv6 is enabled. The file in `/sys` may belong to the network namespace in which `/sys` was mounted.
fn mtu(name: &str) -> usize {
    let files = [format!("/proc/sys/net/ipv6/conf/{name}/mtu"), format!("/sys/class/net/{name}/mtu")];
    let read = |file: &String| fs::read_to_string(file).ok()?.trim().parse().ok();
    files.iter().find_map(read).unwrap_or(USUAL_MTU)
}
