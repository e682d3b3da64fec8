use std::net::{IpAddr, SocketAddr};

use etherparse::{EtherType, LaxPacketHeaders, NetHeaders, TcpHeader, TcpOptionElement, TransportHeader};
use pcap_parser::Linktype;

use super::frames::Frame;

/// A captured TCP segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) at_ns: i64,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) sequence: u32,
    /// The acknowledgement number, if the ACK flag is set.
    pub(super) acknowledges: Option<u32>,
    pub(super) syn: bool,
    pub(super) fin: bool,
    /// Number of bytes of data, computed from the length in the IP header, because the capture may contain fewer bytes.
    pub(super) data: u32,
    /// The value of the MSS option in a SYN.
    pub(super) mss: Option<u16>,
    /// Length of the TCP options in bytes. Options reduce the space for data in a segment.
    pub(super) options: u32,
    /// The remaining hop limit of the IP packet (IPv4: TTL).
    pub(super) hop_limit: u8,
}

/// Lengths of the Linux cooked headers SLL and SLL2, and the offsets of the `EtherType` in them, in bytes.
const SLL_HEADER: usize = 16;
const SLL_ETHER_TYPE: usize = 14;
const SLL2: Linktype = Linktype(276);
const SLL2_HEADER: usize = 20;
const SLL2_ETHER_TYPE: usize = 0;
const RAW: [Linktype; 4] = [Linktype(12), Linktype(101), Linktype::IPV4, Linktype::IPV6];
const LOOPBACK: [Linktype; 2] = [Linktype::NULL, Linktype::LOOP];
const LOOPBACK_HEADER: usize = 4;

/// Parses the TCP segment in a frame. If the frame contains no TCP segment, returns the reason.
pub(super) fn parse(frame: &Frame<'_>) -> Result<Segment, &'static str> {
    let headers = headers(frame)?;
    let (net, transport) = (headers.net.ok_or("not IP")?, headers.transport);
    let (from, to, length, hop_limit) = match &net {
        NetHeaders::Ipv4(header, extensions) => {
            if header.is_fragmenting_payload() {
                return Err("fragment");
            }
            let header_length = header.header_len() + extensions.header_len();
            // The length is zero if hardware offload will split the segment. Only the number of captured bytes is then
            // known.
            let length = match usize::from(header.total_len) {
                0 => frame.data.len().checked_sub(offset(frame)),
                total => Some(total),
            };
            let length = length.and_then(|length| length.checked_sub(header_length));
            (IpAddr::from(header.source), IpAddr::from(header.destination), length, header.time_to_live)
        }
        NetHeaders::Ipv6(header, extensions) => {
            if extensions.is_fragmenting_payload() {
                return Err("fragment");
            }
            let length = usize::from(header.payload_length).checked_sub(extensions.header_len());
            (IpAddr::from(header.source), IpAddr::from(header.destination), length, header.hop_limit)
        }
        NetHeaders::Arp(_) => return Err("not IP"),
    };
    let tcp = match transport {
        Some(TransportHeader::Tcp(tcp)) => tcp,
        Some(_) => return Err("not TCP"),
        None => return Err("TCP header not captured, or not TCP"),
    };
    let data = length.and_then(|length| length.checked_sub(tcp.header_len())).ok_or("lengths that cannot be")?;
    Ok(segment(frame.at_ns, (from, to), &tcp, data as u32, hop_limit))
}

fn segment(at_ns: i64, (from, to): (IpAddr, IpAddr), tcp: &TcpHeader, data: u32, hop_limit: u8) -> Segment {
    let mss = tcp.options_iterator().flatten().find_map(|option| match option {
        TcpOptionElement::MaximumSegmentSize(size) => Some(size),
        _ => None,
    });
    Segment {
        at_ns,
        from: SocketAddr::new(from, tcp.source_port),
        to: SocketAddr::new(to, tcp.destination_port),
        sequence: tcp.sequence_number,
        acknowledges: tcp.ack.then_some(tcp.acknowledgment_number),
        syn: tcp.syn,
        fin: tcp.fin,
        data,
        mss: mss.filter(|_| tcp.syn),
        options: tcp.header_len().saturating_sub(TcpHeader::MIN_LEN) as u32,
        hop_limit,
    }
}

/// Returns the number of bytes before the IP header in a frame without VLAN tags. Returns 0 if the link type has no
/// header or is not known.
fn offset(frame: &Frame<'_>) -> usize {
    match frame.link {
        Linktype::ETHERNET => 14,
        Linktype::LINUX_SLL => SLL_HEADER,
        SLL2 => SLL2_HEADER,
        link if LOOPBACK.contains(&link) => LOOPBACK_HEADER,
        _ => 0,
    }
}

pub(super) fn headers<'a>(frame: &Frame<'a>) -> Result<LaxPacketHeaders<'a>, &'static str> {
    const SHORT: &str = "headers not captured";
    let data = frame.data;
    match frame.link {
        Linktype::ETHERNET => LaxPacketHeaders::from_ethernet(data).map_err(|_| SHORT),
        // etherparse's parser of Linux cooked headers is not used, because it rejects frames of a loopback device
        // (ARPHRD type 772).
        Linktype::LINUX_SLL => cooked(data, SLL_HEADER, SLL_ETHER_TYPE).ok_or(SHORT),
        SLL2 => cooked(data, SLL2_HEADER, SLL2_ETHER_TYPE).ok_or(SHORT),
        link if RAW.contains(&link) => LaxPacketHeaders::from_ip(data).map_err(|_| SHORT),
        link if LOOPBACK.contains(&link) => {
            let (_, rest) = data.split_at_checked(LOOPBACK_HEADER).ok_or(SHORT)?;
            LaxPacketHeaders::from_ip(rest).map_err(|_| SHORT)
        }
        _ => Err("a link type that is not known here"),
    }
}

/// Parses the packet that follows a Linux cooked header of `header` bytes. The `EtherType` is at offset `ether_type` in
/// this header.
fn cooked(data: &[u8], header: usize, ether_type: usize) -> Option<LaxPacketHeaders<'_>> {
    let (header, rest) = data.split_at_checked(header)?;
    let kind = header.get(ether_type..)?.first_chunk()?;
    Some(LaxPacketHeaders::from_ether_type(EtherType(u16::from_be_bytes(*kind)), rest))
}
