use std::net::{IpAddr, SocketAddr};

use etherparse::{LaxPayloadSlice, NetHeaders, TransportHeader};

use super::frames::Frame;
use super::segment::headers;

/// A captured UDP datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Datagram<'a> {
    pub(super) at_ns: i64,
    /// Number of the network interface that captured the datagram.
    pub(super) interface: u32,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    /// Full size of the IP packet in bytes, even if the capture contains fewer bytes.
    pub(super) size: u32,
    /// The captured part of the payload.
    pub(super) payload: &'a [u8],
}

/// Parses the UDP datagram in a frame. If the frame contains no UDP datagram, returns the reason.
pub(super) fn parse<'a>(frame: &Frame<'a>) -> Result<Datagram<'a>, &'static str> {
    let headers = headers(frame)?;
    let (from, to, size) = match headers.net.ok_or("not IP")? {
        NetHeaders::Ipv4(header, _) if header.is_fragmenting_payload() => return Err("fragment"),
        NetHeaders::Ipv4(header, _) => {
            (IpAddr::from(header.source), IpAddr::from(header.destination), u32::from(header.total_len))
        }
        NetHeaders::Ipv6(_, extensions) if extensions.is_fragmenting_payload() => return Err("fragment"),
        NetHeaders::Ipv6(header, _) => {
            let size = u32::from(header.payload_length) + IPV6_HEADER;
            (IpAddr::from(header.source), IpAddr::from(header.destination), size)
        }
        NetHeaders::Arp(_) => return Err("not IP"),
    };
    match (headers.transport, headers.payload) {
        (Some(TransportHeader::Udp(udp)), LaxPayloadSlice::Udp { payload, .. }) => Ok(Datagram {
            at_ns: frame.at_ns,
            interface: frame.interface,
            from: SocketAddr::new(from, udp.source_port),
            to: SocketAddr::new(to, udp.destination_port),
            size,
            payload,
        }),
        _ => Err("not UDP"),
    }
}

const IPV6_HEADER: u32 = 40;
