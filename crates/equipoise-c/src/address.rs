use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use libc::{AF_INET, AF_INET6, sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, socklen_t};

use crate::error::{Fault, eq_error};

/// Reads an IPv4 or IPv6 address from a C socket address. Returns `None` for a null pointer.
///
/// # Safety
/// `address` is null, or points to `length` readable bytes.
pub(crate) unsafe fn read_or_none(address: *const sockaddr, length: socklen_t) -> Result<Option<SocketAddr>, Fault> {
    if address.is_null() {
        return Ok(None);
    }
    let has = |size: usize| usize::try_from(length).is_ok_and(|length| length >= size);
    let wrong = |words: String| Fault::new(eq_error::EQ_E_ARGUMENT, words);
    if !has(size_of::<sa_family_t>()) {
        return Err(wrong(format!("an address of {length} bytes has no family")));
    }
    // SAFETY: `address` has the bytes of a `sa_family_t`, whose values are all valid. `read_unaligned` needs no
    // alignment.
    let family = unsafe { address.cast::<sa_family_t>().read_unaligned() };
    match i32::from(family) {
        AF_INET if has(size_of::<sockaddr_in>()) => {
            // SAFETY: `length` covers a `sockaddr_in`, and any bytes are a valid `sockaddr_in`.
            let found = unsafe { address.cast::<sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(u32::from_be(found.sin_addr.s_addr));
            Ok(Some((ip, u16::from_be(found.sin_port)).into()))
        }
        AF_INET6 if has(size_of::<sockaddr_in6>()) => {
            // SAFETY: `length` covers a `sockaddr_in6`, and any bytes are a valid `sockaddr_in6`.
            let found = unsafe { address.cast::<sockaddr_in6>().read_unaligned() };
            let (ip, port) = (Ipv6Addr::from(found.sin6_addr.s6_addr), u16::from_be(found.sin6_port));
            Ok(Some(SocketAddrV6::new(ip, port, found.sin6_flowinfo, found.sin6_scope_id).into()))
        }
        AF_INET | AF_INET6 => Err(wrong(format!("{length} bytes are too few for an address of family {family}"))),
        _ => Err(wrong(format!("an address of family {family}; flow pairs go over IPv4 (2) and IPv6 (10)"))),
    }
}
