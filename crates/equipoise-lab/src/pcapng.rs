//! Writes simulated datagrams as a pcapng capture for other programs. The capture has two interfaces, `near` and `far`,
//! one for each side of the network.
//!
//! Source: draft-ietf-opsawg-pcapng-02, Sec. 4.1, 4.2 and 4.3. Each datagram is written with the IPv4 and UDP headers
//! that it would have on a real network. Times are simulated times, in nanoseconds since the start of the simulation.
//! TCP segments are left out, because other programs cannot read the header format of the simulator's segments.

use std::io::{self, Write};

use equipoise::units::Span;
use equipoise_session::{Carrier, PathId};
use equipoise_sim::{Datagram, Side, Way};

/// Writes a capture while a run is in progress.
#[derive(Debug)]
pub struct Pcapng<W> {
    out: W,
    /// Value of the identification field of the next IPv4 packet (RFC 791, Sec. 3.1).
    identification: u16,
    block: Vec<u8>,
}

/// UDP port of both endpoints of each session, which is the RTP port of RFC 3551, Sec. 8. RTCP uses the same port (RFC
/// 5761).
const PORT: u16 = 5004;
const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// Byte-order magic: from this number, a reader detects the byte order of the file.
const BYTE_ORDER: u32 = 0x1A2B_3C4D;
/// Link type "raw IP": each captured packet begins with its IP header.
const RAW_IP: u16 = 101;
const IPV4_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
const HOP_LIMIT: u8 = 64;
/// Protocol number of UDP in the IPv4 header (RFC 791, Sec. 3.1).
const UDP: u8 = 17;
/// Direction flags of a packet: it arrives at an interface, or it leaves an interface (draft-ietf-opsawg-pcapng-02,
/// Sec. 4.3.1).
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

impl<W: Write> Pcapng<W> {
    /// Begins the capture of a run.
    ///
    /// # Errors
    /// The [`io::Error`] that the writer returned.
    pub fn new(out: W) -> io::Result<Self> {
        let mut capture = Self { out, identification: 0, block: Vec::new() };
        let mut body = Vec::new();
        body.extend(BYTE_ORDER.to_le_bytes());
        // Version 1.0, and a section whose length is unknown.
        body.extend([1, 0, 0, 0]);
        body.extend([0xFF; 8]);
        option(&mut body, 4, format!("equipoise {}", crate::VERSION).as_bytes());
        option(&mut body, 0, &[]);
        capture.block(SECTION_HEADER, &body)?;
        for name in ["near", "far"] {
            let mut body = Vec::new();
            body.extend(RAW_IP.to_le_bytes());
            // A reserved field, and no limit on the length of a packet.
            body.extend([0; 6]);
            option(&mut body, 2, name.as_bytes());
            // Resolution of timestamps: nanoseconds.
            option(&mut body, 9, &[9]);
            option(&mut body, 0, &[]);
            capture.block(INTERFACE_DESCRIPTION, &body)?;
        }
        Ok(capture)
    }

    /// Writes a datagram that left or reached an endpoint; `at` is the time since the run's start. TCP segments are
    /// ignored.
    ///
    /// # Errors
    /// The [`io::Error`] that the writer returned.
    pub fn write(&mut self, at: Span, datagram: &Datagram<'_>) -> io::Result<()> {
        if datagram.carrier == Carrier::Tcp {
            return Ok(());
        }
        let packet = self.packet(datagram);
        let ticks = u64::try_from(at.as_nanos()).unwrap_or(0);
        let length = u32::try_from(packet.len()).unwrap_or(u32::MAX);
        let interface = u32::from(datagram.side == Side::Far);
        let mut body = Vec::with_capacity(packet.len() + 40);
        for word in [interface, (ticks >> 32) as u32, ticks as u32, length, length] {
            body.extend(word.to_le_bytes());
        }
        body.extend(&packet);
        body.resize(body.len().next_multiple_of(4), 0);
        let flags = if datagram.way == Way::Sent { OUTBOUND } else { INBOUND };
        option(&mut body, 2, &flags.to_le_bytes());
        option(&mut body, 0, &[]);
        self.block(ENHANCED_PACKET, &body)
    }

    /// Ends the capture and returns the writer to which it was written.
    ///
    /// # Errors
    /// The [`io::Error`] that the writer returned.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    /// Returns a datagram as an IPv4 packet.
    fn packet(&mut self, datagram: &Datagram<'_>) -> Vec<u8> {
        let datagram_length = UDP_HEADER + datagram.head.len() + datagram.media;
        let length = IPV4_HEADER + datagram_length;
        let mut packet = Vec::with_capacity(length);
        // Version 4, a header without options, DSCP 0, and the ECN field (RFC 3168, Sec. 5).
        packet.extend([0x45, datagram.ecn as u8]);
        packet.extend(clipped(length).to_be_bytes());
        packet.extend(self.identification.to_be_bytes());
        self.identification = self.identification.wrapping_add(1);
        // The flag "don't fragment", the hop limit, the protocol, and a zero in place of the checksum. The checksum is
        // written below.
        packet.extend([0x40, 0, HOP_LIMIT, UDP, 0, 0]);
        let sender_is_near = (datagram.side == Side::Near) == (datagram.way == Way::Sent);
        let PathId(path) = datagram.path;
        let flow = datagram.flow.index();
        let host = |is_near: bool| [10, (flow % 256) as u8, (path % 256) as u8, if is_near { 1 } else { 2 }];
        packet.extend(host(sender_is_near));
        packet.extend(host(!sender_is_near));
        let checksum = checksum(&packet);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet.extend(PORT.to_be_bytes());
        packet.extend(PORT.to_be_bytes());
        packet.extend(clipped(datagram_length).to_be_bytes());
        // A zero checksum field: no UDP checksum (RFC 768).
        packet.extend([0, 0]);
        packet.extend(datagram.head);
        packet.resize(length, 0);
        packet
    }

    fn block(&mut self, kind: u32, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(body.len() + 12).unwrap_or(u32::MAX).to_le_bytes();
        self.block.clear();
        self.block.extend(kind.to_le_bytes());
        self.block.extend(length);
        self.block.extend(body);
        self.block.extend(length);
        self.out.write_all(&self.block)
    }
}

/// Returns a length as a 16-bit header field. No simulated packet is longer than such a field allows.
fn clipped(length: usize) -> u16 {
    u16::try_from(length).unwrap_or(u16::MAX)
}

/// Returns the Internet checksum of a header whose own checksum field is zero (RFC 1071).
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let mut sum: u32 = words.sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

/// Appends an option (draft-ietf-opsawg-pcapng-02, Sec. 3.5). An option with code 0 ends the list of options.
fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend(clipped(value.len()).to_le_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A widely used example for RFC 1071: a header with a known checksum.
    #[test]
    fn the_checksum_of_a_header_makes_its_sum_all_ones() {
        let header = [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xC0, 0xA8, 0, 1, 0xC0, 0xA8, 0, 0xC7];
        assert_eq!(checksum(&header), 0xB861);
    }
}
