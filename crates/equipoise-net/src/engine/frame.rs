//! Finds the IP packet in an Ethernet frame. Frames are not trusted.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::RangeInclusive;

use super::offload::{TCP, UDP};

/// Total length of the destination and source addresses before the type field, in bytes (RFC 894).
const ADDRESSES: usize = 12;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// Values of the type field for a frame with a VLAN tag of four bytes (IEEE 802.1Q, 802.1ad).
const VLANS: [u16; 2] = [0x8100, 0x88a8];

/// Lengths of IPv4 and IPv6 headers without options, in bytes.
const IPV4_HEADER: usize = 20;
pub(crate) const IPV6_HEADER: usize = 40;

/// The IPv4 flag "more fragments" and the fragment offset. If any of these bits is set, the packet is a fragment (RFC
/// 791, Sec. 3.1).
const FRAGMENT: u16 = 0x3fff;

const ICMP: u8 = 1;
/// The types of ICMP errors: destination unreachable, redirect, time exceeded, parameter problem (RFC 792),
/// without the deprecated source quench.
const ICMP_ERRORS: [u8; 4] = [3, 5, 11, 12];

const ICMPV6: u8 = 58;
/// The largest type number of an `ICMPv6` error (RFC 4443, Sec. 2.1).
const LAST_ICMPV6_ERROR: u8 = 127;
/// Length of the header of an ICMP or `ICMPv6` error, in bytes. The quoted packet follows this header.
const ICMP_HEADER: usize = 8;
/// The `ICMPv6` types of neighbour discovery: router and neighbour solicitations and advertisements, and redirects (RFC
/// 4861, Sec. 4).
const NEIGHBOUR_DISCOVERY: RangeInclusive<u8> = 133..=137;

/// The position of an IP packet in a frame, and data from the packet's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ip {
    /// Offset of the packet's first byte in the frame.
    pub(crate) start: usize,
    /// The packet's length as stated in its header. If the frame is shorter, or if the header states no length, this
    /// field is the length up to the end of the frame.
    pub(crate) len: usize,
    /// Length of the packet's IP header.
    pub(crate) header: usize,
    /// Whether the IP version is 6; otherwise it is 4.
    pub(crate) v6: bool,
    /// Number of the protocol above IP, or of the first extension header if an IPv6 packet has extension headers.
    /// `None` for IPv4 fragments.
    pub(crate) protocol: Option<u8>,
}

/// Finds the IP packet in `frame`; `None` if the frame has no valid IP packet.
pub(crate) fn ip_in(frame: &[u8]) -> Option<Ip> {
    let mut at = ADDRESSES;
    let mut kind = u16_at(frame, at)?;
    while VLANS.contains(&kind) {
        at += 4;
        kind = u16_at(frame, at)?;
    }
    let ip = ip_at(frame, at + 2)?;
    (kind == if ip.v6 { IPV6 } else { IPV4 }).then_some(ip)
}

/// Reads the header of the IP packet at offset `start` of `bytes`; `None` if there is no valid IP packet.
pub(crate) fn ip_at(bytes: &[u8], start: usize) -> Option<Ip> {
    let packet = bytes.get(start..)?;
    let version = packet.first()? >> 4;
    let (len, header, protocol) = match version {
        4 => {
            let header = usize::from(packet.first()? & 0xf) * 4;
            let whole = u16_at(packet, 6)? & FRAGMENT == 0;
            (u16_at(packet, 2)?.into(), header, whole.then_some(*packet.get(9)?))
        }
        6 => {
            let payload = usize::from(u16_at(packet, 4)?);
            let len = if payload == 0 { 0 } else { payload + IPV6_HEADER };
            (len, IPV6_HEADER, Some(*packet.get(6)?))
        }
        _ => return None,
    };
    if header < IPV4_HEADER || packet.len() < header {
        return None;
    }
    // A length of zero means that the length does not fit into the header's field.
    let len = if len == 0 { packet.len() } else { len.min(packet.len()) };
    (len >= header).then_some(Ip { start, len, header, v6: version == 6, protocol })
}

/// Whether an IP packet belongs to neighbour discovery, which is IPv6's counterpart of ARP.
pub(crate) fn is_neighbour_discovery(frame: &[u8], ip: Ip) -> bool {
    let kind = frame.get(ip.start + ip.header..).and_then(<[u8]>::first);
    ip.v6 && ip.protocol == Some(ICMPV6) && kind.is_some_and(|kind| NEIGHBOUR_DISCOVERY.contains(kind))
}

/// The packet that an ICMP error quotes, possibly truncated; `None` if `ip` is not an ICMP error, or quotes no valid
/// packet.
pub(crate) fn quoted_in(frame: &[u8], ip: Ip) -> Option<Ip> {
    let at = ip.start + ip.header;
    let kind = *frame.get(at)?;
    let is_error = match ip.protocol? {
        ICMP => ICMP_ERRORS.contains(&kind),
        ICMPV6 => kind <= LAST_ICMPV6_ERROR,
        _ => false,
    };
    if is_error { ip_at(frame, at + ICMP_HEADER) } else { None }
}

/// The ECN field of the IP packet at offset `start`; 0 if there is no packet (RFC 3168, Sec. 5).
pub(crate) fn ecn_of(bytes: &[u8], start: usize) -> u8 {
    match ip_at(bytes, start) {
        Some(Ip { v6: false, .. }) => bytes.get(start + 1).map_or(0, |byte| byte & 3),
        Some(Ip { v6: true, .. }) => bytes.get(start + 1).map_or(0, |byte| byte >> 4 & 3),
        None => 0,
    }
}

/// Sets the ECN field in the IP header at offset `start` to Congestion Experienced.
pub(crate) fn mark_congestion(bytes: &mut [u8], start: usize) {
    let Some(ip) = ip_at(bytes, start) else { return };
    let (Some(before), bits) = (u16_at(bytes, start), if ip.v6 { 0x30 } else { 3 }) else { return };
    if let Some(byte) = bytes.get_mut(start + 1) {
        *byte |= bits;
    }
    let after = u16_at(bytes, start).unwrap_or(before);
    let checksum = start + 10;
    if let (false, Some(old)) = (ip.v6, u16_at(bytes, checksum)) {
        // Updates the IPv4 checksum for the changed word (RFC 1624, Eq. 3).
        let mut sum = u32::from(!old) + u32::from(!before) + u32::from(after);
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        if let Some(place) = bytes.get_mut(checksum..checksum + 2) {
            place.copy_from_slice(&(!(sum as u16)).to_be_bytes());
        }
    }
}

/// A hash of an IP packet's addresses, protocol and ports, which identifies the packet's flow (RFC 8290, Sec. 4.1).
pub(crate) fn flow_of(bytes: &[u8], start: usize) -> u64 {
    let Some(ip) = ip_at(bytes, start) else { return 0 };
    let addresses = if ip.v6 { start + 8..start + 40 } else { start + 12..start + 20 };
    let has_ports = ip.protocol.is_some_and(|protocol| [TCP, UDP].contains(&protocol));
    let header = start + ip.header;
    let ports = bytes.get(header..header + 4).filter(|_| has_ports);
    let mut hasher = DefaultHasher::new();
    (bytes.get(addresses), ip.protocol, ports).hash(&mut hasher);
    hasher.finish()
}

/// The 16-bit number at offset `at`, in network byte order.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|pair| u16::from_be_bytes(*pair))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ethernet(kind: u16, packet: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; ADDRESSES];
        frame.extend(kind.to_be_bytes());
        frame.extend(packet);
        frame
    }

    fn v4(len: u16, protocol: u8) -> Vec<u8> {
        let mut packet = vec![0; usize::from(len)];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&len.to_be_bytes());
        packet[9] = protocol;
        packet
    }

    #[test]
    fn the_length_is_that_of_the_ip_packet_and_not_of_the_padded_frame() {
        let mut frame = ethernet(IPV4, &v4(30, 17));
        frame.resize(60, 0);
        let expected = Ip { start: 14, len: 30, header: 20, v6: false, protocol: Some(17) };
        assert_eq!(ip_in(&frame), Some(expected));
        let mut six = vec![0; 50];
        six[0] = 0x60;
        six[4..6].copy_from_slice(&10u16.to_be_bytes());
        six[6] = 6;
        let expected = Ip { start: 14, len: 50, header: 40, v6: true, protocol: Some(6) };
        assert_eq!(ip_in(&ethernet(IPV6, &six)), Some(expected));
        assert_eq!(ip_at(&six, 0), Some(Ip { start: 0, ..expected }));
    }

    #[test]
    fn tags_are_passed_over_and_fragments_have_no_protocol() {
        let mut tagged = vec![0, 7];
        tagged.extend(IPV4.to_be_bytes());
        tagged.extend(v4(40, 6));
        assert_eq!(ip_in(&ethernet(0x8100, &tagged)).map(|ip| (ip.start, ip.protocol)), Some((18, Some(6))));
        let mut fragment = v4(40, 6);
        fragment[6] = 0x20;
        assert_eq!(ip_in(&ethernet(IPV4, &fragment)).and_then(|ip| ip.protocol), None);
    }

    #[test]
    fn neighbour_discovery_is_told_from_other_icmp() {
        let icmp = |kind| {
            let mut packet = vec![0; 48];
            packet[0] = 0x60;
            packet[5] = 8;
            packet[6] = ICMPV6;
            packet[40] = kind;
            let frame = ethernet(IPV6, &packet);
            is_neighbour_discovery(&frame, ip_in(&frame).unwrap())
        };
        assert_eq!([128, 132, 133, 135, 137, 138].map(icmp), [false, false, true, true, true, false]);
    }

    #[test]
    fn an_error_quotes_a_packet_and_an_echo_does_not() {
        let icmp = |protocol, kind| {
            let mut packet = v4(56, protocol);
            packet[20] = kind;
            packet[28..].copy_from_slice(&v4(28, 17));
            let frame = ethernet(IPV4, &packet);
            quoted_in(&frame, ip_in(&frame).unwrap())
        };
        let quoted = Ip { start: 42, len: 28, header: 20, v6: false, protocol: Some(17) };
        assert_eq!([3, 11, 0, 8].map(|kind| icmp(ICMP, kind)), [Some(quoted), Some(quoted), None, None]);
        assert_eq!([1, 128].map(|kind| icmp(ICMPV6, kind)), [Some(quoted), None]);
        assert_eq!(icmp(17, 3), None);
        let whole = ethernet(IPV4, &v4(20, ICMP));
        assert_eq!(quoted_in(&whole, ip_in(&whole).unwrap()), None, "an error without a quotation");
    }

    /// RFC 1071: if a header's checksum is correct, the ones' complement sum of the
    /// header's 16-bit words is 0xffff.
    fn is_summed(header: &[u8]) -> bool {
        let words = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum = words.sum::<u32>();
        (sum & 0xffff) + (sum >> 16) == 0xffff
    }

    #[test]
    fn a_mark_is_set_in_either_version_and_the_checksum_stays_right() {
        for tos in 0..=255u8 {
            let mut packet = v4(28, 17);
            (packet[1], packet[8]) = (tos, 64);
            let sum = packet[..20].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum::<u32>();
            packet[10..12].copy_from_slice(&(!(((sum & 0xffff) + (sum >> 16)) as u16)).to_be_bytes());
            let mut frame = ethernet(IPV4, &packet);
            assert_eq!((ecn_of(&frame, 14), is_summed(&frame[14..34])), (tos & 3, true));
            mark_congestion(&mut frame, 14);
            assert_eq!((ecn_of(&frame, 14), frame[15], is_summed(&frame[14..34])), (3, tos | 3, true), "{tos}");
        }
        let mut six = vec![0; 48];
        (six[0], six[1], six[5], six[6]) = (0x6a, 0x5c, 8, 17);
        let mut frame = ethernet(IPV6, &six);
        assert_eq!(ecn_of(&frame, 14), 1);
        mark_congestion(&mut frame, 14);
        assert_eq!((ecn_of(&frame, 14), frame[14], frame[15]), (3, 0x6a, 0x7c), "the class and the label stay");
        // If a frame has no complete packet, it must stay unchanged.
        for len in 0..34 {
            let mut cut = ethernet(IPV4, &v4(30, 17));
            cut.truncate(len);
            let before = cut.clone();
            mark_congestion(&mut cut, 14);
            assert_eq!((cut, ecn_of(&before, 14), flow_of(&before, 14)), (before.clone(), 0, 0));
        }
    }

    #[test]
    fn a_flow_is_told_by_addresses_protocol_and_ports() {
        let packet = |last: u8, protocol: u8, port: u8, payload: u8| {
            let mut packet = v4(40, protocol);
            (packet[19], packet[23], packet[39]) = (last, port, payload);
            flow_of(&ethernet(IPV4, &packet), 14)
        };
        assert_eq!(packet(1, 17, 5, 0), packet(1, 17, 5, 9));
        for other in [packet(2, 17, 5, 0), packet(1, 6, 5, 0), packet(1, 17, 6, 0)] {
            assert_ne!(packet(1, 17, 5, 0), other);
        }
        assert_eq!(packet(1, 50, 5, 0), packet(1, 50, 6, 0), "no ports in ESP");
    }

    #[test]
    fn what_is_no_ip_packet_is_none() {
        assert_eq!(ip_in(&ethernet(0x0806, &[0; 46])), None, "ARP");
        assert_eq!(ip_in(&ethernet(IPV6, &v4(30, 17))), None, "a type that does not match");
        assert_eq!(ip_in(&ethernet(IPV4, &[0x4f; 30])), None, "a header longer than the packet");
        let whole = ethernet(IPV4, &v4(30, 17));
        for len in 0..34 {
            assert_eq!(ip_in(&whole[..len]), None, "cut at {len}");
        }
    }
}
