use equipoise_session::wire::relay::Stamp;
use equipoise_session::wire::rtp::{RtpPacket, Subflow};
use equipoise_session::wire::{NtpTime, relay};

/// Parses any bytes as an RTP packet. In addition, treats the bytes as a packet of another program: adds a stamp
/// ([`relay::stamp`]), and removes it again.
///
/// # Panics
/// If a stamped packet differs from the original after the stamp is removed, if the payload is not inside the datagram
/// after the fixed header, or if a packet is different after it was encoded and parsed again.
pub fn rtp(datagram: &[u8]) {
    for (subflow, is_repetition) in [(None, false), (None, true), (Some(Subflow { id: 1, sequence: 2 }), false)] {
        let (mut stamped, mut back) = (Vec::new(), Vec::new());
        let stamp = Stamp { ssrc: 7, number: 7, time: NtpTime::from_bits(7), subflow, is_repetition };
        if relay::stamp(datagram, stamp, &mut stamped).is_ok() {
            assert!(relay::is_repetition(&stamped) == is_repetition || RtpPacket::parse(datagram).is_err());
            relay::unstamp(&stamped, &mut back).expect("it was stamped");
            assert_eq!(back, datagram);
        }
    }
    let Ok(packet) = RtpPacket::parse(datagram) else { return };
    let behind = &datagram[12..];
    assert!(behind.as_ptr_range().start <= packet.payload.as_ptr(), "the payload begins in the header");
    assert!(packet.payload.as_ptr_range().end <= behind.as_ptr_range().end, "the payload ends behind the datagram");
    let mut again = Vec::new();
    packet.header.encode(&mut again);
    assert_eq!(again.len(), packet.header.encoded_len());
    again.extend_from_slice(packet.payload);
    assert_eq!(RtpPacket::parse(&again), Ok(packet));
}
