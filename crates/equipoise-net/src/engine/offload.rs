//! Software replacement for hardware offload. A packet socket may receive packets whose checksums are incomplete, or
//! whose TCP segments are not split yet. A veth pair neither completes checksums nor splits segments. The sender's end
//! of a pair may be in a namespace of another user, where this program cannot turn offload off.

use super::frame::{IPV6_HEADER, Ip, u16_at};

/// Numbers of protocols above IP.
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

/// Lengths and offsets in the headers of TCP (RFC 9293, Sec. 3.1), UDP (RFC 768), IPv4 (RFC 791, Sec. 3.1) and IPv6
/// (RFC 8200, Sec. 3), in bytes.
const TCP_HEADER: usize = 20;
const TCP_SEQUENCE: usize = 4;
const TCP_OFFSET: usize = 12;
const TCP_FLAGS: usize = 13;
const TCP_CHECKSUM: usize = 16;
const UDP_CHECKSUM: usize = 6;
const IPV4_LENGTH: usize = 2;
const IPV4_ID: usize = 4;
const IPV4_CHECKSUM: usize = 10;
const IPV4_ADDRESSES: usize = 12;
const IPV6_LENGTH: usize = 4;
const IPV6_ADDRESSES: usize = 8;

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// Completes the checksum of a packet from a sender with checksum offload. The checksum field of such a packet contains
/// only the sum of the pseudo-header. Returns whether the field contained this sum.
///
/// A complete checksum can happen to equal this sum. The function then computes the same checksum again.
pub(super) fn complete_checksum(frame: &mut [u8], ip: Ip) -> bool {
    let place = match ip.protocol {
        Some(TCP) => TCP_CHECKSUM,
        Some(UDP) => UDP_CHECKSUM,
        _ => return false,
    };
    let Some(packet) = frame.get_mut(ip.start..ip.start + ip.len) else { return false };
    let pseudo = fold(pseudo_header(packet, ip));
    if u16_at(packet, ip.header + place) != Some(pseudo) {
        return false;
    }
    // This sum includes the pseudo-header, because the checksum field contains the sum of the pseudo-header.
    let sum = packet.get(ip.header..).map_or(0, sum);
    put(packet, ip.header + place, checksum(sum, ip.protocol).to_be_bytes());
    true
}

/// Splits a TCP packet of several segments into frames whose IP packets have at most `mtu` bytes, and calls `each` with
/// each frame in order. Returns whether the packet could be split.
///
/// The packet does not contain the sender's segment size, so the segments are as long as `mtu` permits.
pub(super) fn take_apart(frame: &[u8], ip: Ip, mtu: usize, scratch: &mut Vec<u8>, mut each: impl FnMut(&[u8])) -> bool {
    let Some(headers) = Headers::of(frame, ip) else { return false };
    let Some(room) = mtu.checked_sub(headers.ip_and_tcp).filter(|room| *room > 0) else { return false };
    let payload = frame.get(headers.end..ip.start + ip.len).unwrap_or_default();
    let count = payload.len().div_ceil(room);
    for (number, part) in payload.chunks(room).enumerate() {
        scratch.clear();
        scratch.extend_from_slice(frame.get(..headers.end).unwrap_or_default());
        scratch.extend_from_slice(part);
        headers.adapt(scratch.get_mut(ip.start..).unwrap_or_default(), (number, count), number * room);
        each(scratch);
    }
    count > 0
}

/// The headers of a TCP packet.
struct Headers {
    ip: Ip,
    /// Offset of the payload in the frame.
    end: usize,
    /// Total length of the IP header and the TCP header.
    ip_and_tcp: usize,
    id: u16,
    sequence: u32,
    flags: u8,
}

impl Headers {
    fn of(frame: &[u8], ip: Ip) -> Option<Self> {
        let packet = frame.get(ip.start..ip.start + ip.len)?;
        let tcp = packet.get(ip.header..).filter(|_| ip.protocol == Some(TCP))?;
        let length = usize::from(*tcp.get(TCP_OFFSET)? >> 4) * 4;
        let sequence = u32::from_be_bytes(*tcp.get(TCP_SEQUENCE..)?.first_chunk()?);
        let (id, flags) = (u16_at(packet, IPV4_ID)?, *tcp.get(TCP_FLAGS)?);
        let ip_and_tcp = ip.header + length;
        let whole = length >= TCP_HEADER && packet.len() > ip_and_tcp;
        whole.then_some(Self { ip, end: ip.start + ip_and_tcp, ip_and_tcp, id, sequence, flags })
    }

    /// Changes the headers of `packet` to those of segment `number` of `count` segments. `offset` is the position of
    /// the segment's payload in the whole payload.
    fn adapt(&self, packet: &mut [u8], (number, count): (usize, usize), offset: usize) {
        let Ip { header, v6, protocol, .. } = self.ip;
        let length = packet.len();
        if v6 {
            put(packet, IPV6_LENGTH, ((length - IPV6_HEADER) as u16).to_be_bytes());
        } else {
            put(packet, IPV4_LENGTH, (length as u16).to_be_bytes());
            put(packet, IPV4_ID, self.id.wrapping_add(number as u16).to_be_bytes());
            put(packet, IPV4_CHECKSUM, [0, 0]);
            let sum = packet.get(..header).map_or(0, sum);
            put(packet, IPV4_CHECKSUM, (!fold(sum)).to_be_bytes());
        }
        // The flags FIN and PSH belong only to the last segment, the flag CWR only to the first.
        let mut flags = self.flags;
        if number + 1 < count {
            flags &= !(FIN | PSH);
        }
        if number > 0 {
            flags &= !CWR;
        }
        put(packet, header + TCP_FLAGS, [flags]);
        put(packet, header + TCP_SEQUENCE, self.sequence.wrapping_add(offset as u32).to_be_bytes());
        put(packet, header + TCP_CHECKSUM, [0, 0]);
        let segment = Ip { len: length, ..self.ip };
        let sum = pseudo_header(packet, segment) + packet.get(header..).map_or(0, sum);
        put(packet, header + TCP_CHECKSUM, checksum(sum, protocol).to_be_bytes());
    }
}

/// The sum over the pseudo-header for TCP or UDP (RFC 9293, Sec. 3.1; RFC 8200, Sec. 8.1).
fn pseudo_header(packet: &[u8], ip: Ip) -> u64 {
    let addresses = if ip.v6 { IPV6_ADDRESSES..IPV6_HEADER } else { IPV4_ADDRESSES..IPV4_ADDRESSES + 8 };
    let length = (ip.len - ip.header) as u64;
    packet.get(addresses).map_or(0, sum) + u64::from(ip.protocol.unwrap_or(0)) + length
}

/// The sum of the 16-bit words; if the number of bytes is odd, the last byte is the upper half of a word (RFC 1071,
/// Sec. 1).
fn sum(bytes: &[u8]) -> u64 {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let odd = rest.first().map_or(0, |byte| u64::from(*byte) << 8);
    pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum::<u64>() + odd
}

/// Folds a sum to 16 bits by ones' complement addition.
fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The checksum for a `sum`. In UDP, a checksum of zero is sent as 0xffff, because zero means that there is no checksum
/// (RFC 768).
fn checksum(sum: u64, protocol: Option<u8>) -> u16 {
    match !fold(sum) {
        0 if protocol == Some(UDP) => 0xffff,
        checksum => checksum,
    }
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = value;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::frame::ip_in;
    use super::*;

    /// A frame from a sender with checksum offload: its checksum is incomplete.
    fn packet(v6: bool, protocol: u8, payload: usize) -> Vec<u8> {
        let l4_header = if protocol == TCP { 20 } else { 8 };
        let l4 = l4_header + payload;
        let mut frame = vec![2; 12];
        if v6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend((l4 as u16).to_be_bytes());
            frame.extend([protocol, 64]);
            frame.extend((0..32u8).map(|byte| byte.wrapping_mul(37)));
        } else {
            frame.extend([0x08, 0x00, 0x45, 0]);
            frame.extend(((20 + l4) as u16).to_be_bytes());
            frame.extend([0xff, 0xff, 0x40, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
        }
        let start = frame.len();
        frame.extend([0xc0, 0, 0, 80]);
        if protocol == TCP {
            frame.extend([0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 9, 0x50, CWR | PSH | FIN | 0x10, 1, 0, 0, 0, 0, 0]);
        } else {
            frame.extend((l4 as u16).to_be_bytes());
            frame.extend([0, 0]);
        }
        frame.extend((0..payload).map(|n| (n * 7 % 251) as u8));
        let ip = ip_in(&frame).unwrap();
        let place = start + if protocol == TCP { TCP_CHECKSUM } else { UDP_CHECKSUM };
        let pseudo = fold(pseudo_header(&frame[14..], ip));
        frame[place..place + 2].copy_from_slice(&pseudo.to_be_bytes());
        frame
    }

    /// Checks the IPv4 header's checksum and the checksum of TCP or UDP, as a receiver does. The sum of all words that
    /// a checksum covers, including the checksum, must be 0xffff (RFC 1071, Sec. 1).
    fn is_valid(frame: &[u8]) -> bool {
        let ip = ip_in(frame).unwrap();
        let packet = &frame[ip.start..];
        let header = ip.v6 || fold(sum(&packet[..ip.header])) == 0xffff;
        header && fold(pseudo_header(packet, ip) + sum(&packet[ip.header..ip.len])) == 0xffff
    }

    #[test]
    fn the_sum_is_that_of_the_standard_s_example() {
        // The example in RFC 1071, Sec. 3.
        assert_eq!(fold(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7])), 0xddf2);
    }

    #[test]
    fn an_open_checksum_is_filled_in_and_a_closed_one_left_alone() {
        for (v6, protocol, payload) in [(false, TCP, 0), (false, UDP, 11), (true, TCP, 1200), (true, UDP, 1)] {
            let mut frame = packet(v6, protocol, payload);
            let ip = ip_in(&frame).unwrap();
            assert!(complete_checksum(&mut frame, ip));
            let closed = frame.clone();
            let l4_valid = fold(pseudo_header(&frame[14..], ip) + sum(&frame[14 + ip.header..])) == 0xffff;
            assert!(l4_valid, "{v6} {protocol}");
            assert!(!complete_checksum(&mut frame, ip));
            assert_eq!(frame, closed);
        }
    }

    #[test]
    fn segments_are_what_the_sender_would_have_sent() {
        for v6 in [false, true] {
            let whole = packet(v6, TCP, 4000);
            let ip = ip_in(&whole).unwrap();
            let (mut frames, mut scratch) = (Vec::new(), Vec::new());
            assert!(take_apart(&whole, ip, 1500, &mut scratch, |frame| frames.push(frame.to_vec())));
            let room = 1500 - ip.header - 20;
            assert_eq!(frames.len(), 3);
            let mut payload = Vec::new();
            for (number, frame) in frames.iter().enumerate() {
                let found = ip_in(frame).unwrap();
                assert!(found.len <= 1500 && is_valid(frame), "segment {number}");
                let tcp = &frame[found.start + found.header..];
                let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
                assert_eq!(sequence, 0xffff_fff0u32.wrapping_add((number * room) as u32));
                let flags = [CWR | 0x10, 0x10, PSH | FIN | 0x10][number];
                assert_eq!(tcp[TCP_FLAGS], flags);
                payload.extend_from_slice(&tcp[20..]);
            }
            assert_eq!(payload, whole[whole.len() - 4000..]);
        }
    }

    proptest! {
        /// If this test fails, any host on the network can crash the program.
        #[test]
        fn no_frame_whatever_is_in_it_makes_it_panic_or_lose_bytes(
            v6 in any::<bool>(), payload in 0usize..3000, length in 0usize..3000, mtu in 0usize..1600,
            damage in proptest::collection::vec((0usize..80, any::<u8>()), 0..4),
        ) {
            let mut frame = packet(v6, TCP, payload);
            for (at, byte) in damage {
                if let Some(place) = frame.get_mut(at) {
                    *place = byte;
                }
            }
            frame.truncate(length);
            if let Some(ip) = ip_in(&frame) {
                let (mut scratch, mut bytes, mut segments) = (Vec::new(), 0, 0);
                let done = take_apart(&frame, ip, mtu, &mut scratch, |segment| {
                    assert!(segment.len() - ip.start <= mtu);
                    (bytes, segments) = (bytes + segment.len(), segments + 1);
                });
                if done {
                    let tcp = ip.start + ip.header;
                    let headers = tcp + usize::from(frame[tcp + TCP_OFFSET] >> 4) * 4;
                    prop_assert_eq!(bytes - segments * headers, ip.start + ip.len - headers);
                }
                complete_checksum(&mut frame, ip);
            }
        }
    }

    #[test]
    fn what_is_no_tcp_cannot_be_taken_apart() {
        let whole = packet(false, UDP, 4000);
        let ip = ip_in(&whole).unwrap();
        assert!(!take_apart(&whole, ip, 1500, &mut Vec::new(), |_| panic!("nothing to give")));
        let whole = packet(false, TCP, 4000);
        let ip = ip_in(&whole).unwrap();
        assert!(!take_apart(&whole, ip, 40, &mut Vec::new(), |_| panic!("no room for anything")));
    }
}
