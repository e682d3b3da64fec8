use equipoise_session::wire::is_rtcp;
use equipoise_session::wire::key_frames::{AskedOf, KeyFrameFeedback, encode_key_frame_request};
use equipoise_session::wire::nack::{Nack, encode_nack};
use equipoise_session::wire::rtcp::{
    RtcpPacket, SenderInfo, encode_cname, encode_goodbye, encode_receiver_report, parse_compound,
};

/// Parses any bytes as an RTCP datagram.
///
/// # Panics
/// If a parsed packet has more items than its count field allows, if a packet is different after it was encoded and
/// parsed again, or if a packet that is appended to the datagram changes the packets before it.
pub fn rtcp(datagram: &[u8]) {
    let Ok(compound) = parse_compound(datagram) else { return };
    assert!(datagram.len().is_multiple_of(4), "RTCP comes in words");
    let packets: Vec<_> = compound.collect();
    assert!(!packets.is_empty() && packets.len() <= datagram.len() / 4);
    packets.iter().for_each(check);
    // Only the last packet may have padding, so the longer datagram is refused if the original one ends with padding.
    let mut longer = datagram.to_vec();
    encode_goodbye(7, &mut longer);
    if let Ok(found) = parse_compound(&longer) {
        let found: Vec<_> = found.collect();
        let (last, before) = found.split_last().expect("a datagram has a packet");
        assert_eq!(before, packets);
        assert!(matches!(last, RtcpPacket::Goodbye(goodbye) if goodbye.ssrcs().eq([7])));
    }
}

/// Encodes the parts of a packet that Equipoise can encode, parses them again, and checks that they are unchanged.
fn check(packet: &RtcpPacket<'_>) {
    let mut again = Vec::new();
    match packet {
        RtcpPacket::SenderReport(report) => {
            let blocks: Vec<_> = report.blocks().collect();
            let info = SenderInfo {
                ssrc: report.ssrc,
                ntp: report.ntp,
                rtp_timestamp: report.rtp_timestamp,
                packet_count: report.packet_count,
                octet_count: report.octet_count,
            };
            info.encode(&blocks, report.extension, &mut again);
            assert_eq!(only(&again), *packet);
        }
        RtcpPacket::ReceiverReport(report) => {
            let blocks: Vec<_> = report.blocks().collect();
            encode_receiver_report(report.ssrc, &blocks, report.extension, &mut again);
            assert_eq!(only(&again), *packet);
        }
        RtcpPacket::SourceDescription(description) => {
            assert!(description.cnames().count() <= 31);
            for (ssrc, name) in description.cnames() {
                let Ok(text) = str::from_utf8(name) else { continue };
                again.clear();
                encode_cname(ssrc, text, &mut again);
                let RtcpPacket::SourceDescription(found) = only(&again) else { panic!("an SDES") };
                assert!(found.cnames().eq([(ssrc, name)]));
            }
        }
        RtcpPacket::Goodbye(goodbye) => {
            assert!(goodbye.ssrcs().count() <= 31 && goodbye.reason.len() <= 255);
            goodbye.ssrcs().for_each(|ssrc| encode_goodbye(ssrc, &mut again));
            let found = parse_compound(&again).into_iter().flatten();
            let found = found.filter_map(|packet| match packet {
                RtcpPacket::Goodbye(goodbye) => Some(goodbye.ssrcs().collect::<Vec<_>>()),
                _ => None,
            });
            assert!(found.flatten().eq(goodbye.ssrcs()));
        }
        RtcpPacket::Subflows(reports) => {
            for (_, packet) in reports.packets() {
                assert!(!matches!(packet, RtcpPacket::Subflows(_)), "they do not nest");
                check(&packet);
            }
        }
        RtcpPacket::Other { packet_type, count, .. } => {
            assert!(*count <= 31 && !matches!(packet_type, 200..=203 | 211));
            if let Some(Ok(nack)) = Nack::of(packet) {
                check_nack(&nack);
            }
            if let Some(Ok(feedback)) = KeyFrameFeedback::of(packet) {
                for asked in feedback.asked() {
                    check_asked(feedback.ssrc, asked);
                }
            }
        }
    }
    assert!(again.is_empty() || is_rtcp(&again));
}

/// Checks that a NACK that is encoded and parsed again requests only packets that the original NACK requests.
fn check_nack(nack: &Nack<'_>) {
    let numbers: Vec<_> = nack.numbers().collect();
    let mut again = Vec::new();
    let asked = encode_nack(nack.ssrc, nack.media_ssrc, numbers.iter().copied(), 16, &mut again);
    let found = Nack::of(&only(&again)).expect("a request").expect("well formed");
    assert_eq!((found.ssrc, found.media_ssrc), (nack.ssrc, nack.media_ssrc));
    assert!(asked > 0 && found.numbers().count() <= asked && found.numbers().all(|number| numbers.contains(&number)));
}

/// Checks that a request for a key frame is equal after it was encoded in a packet of its own and parsed again.
fn check_asked(ssrc: u32, asked: AskedOf) {
    let mut again = Vec::new();
    let number = asked.number.unwrap_or(0);
    encode_key_frame_request(ssrc, asked.media_ssrc, (asked.request, number), &mut again);
    let feedback = KeyFrameFeedback::of(&only(&again)).expect("a request").expect("well formed");
    assert!(feedback.ssrc == ssrc && feedback.asked().eq([asked]));
}

/// Returns the only packet of a datagram.
fn only(datagram: &[u8]) -> RtcpPacket<'_> {
    let mut packets = parse_compound(datagram).expect("what we write is well formed");
    let packet = packets.next().expect("a datagram has a packet");
    assert_eq!(packets.next(), None);
    packet
}
