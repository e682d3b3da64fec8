//! Tests of writing and parsing RTCP packets, and of malformed input.

use alloc::vec;

use proptest::prelude::*;

use super::*;
use crate::wire::{DelayReport, ReportRequest};
use equipoise::units::Size;

fn info() -> SenderInfo {
    SenderInfo {
        ssrc: 0x0E5F_0001,
        ntp: NtpTime::from_bits(0xEE9A_3C01_4000_0000),
        rtp_timestamp: 0x0003_0D40,
        packet_count: 125,
        octet_count: 118_000,
    }
}

fn block() -> ReportBlock {
    ReportBlock {
        ssrc: 0x0E5F_0001,
        fraction_lost: 3,
        cumulative_lost: -2,
        extended_highest: 0x0001_0203,
        jitter: 45,
        last_sr: 0x3C01_4000,
        delay_since_last_sr: 0,
    }
}

#[test]
fn a_request_has_64_and_its_answer_72_bytes_of_ip_packet() {
    let mut request = Vec::new();
    let extension =
        ReportRequest { interval_start: NtpTime::from_bits(0xEE9A_3C00_4000_0000).middle(), receipt: None }.to_bytes();
    info().encode(&[], &extension, &mut request);
    assert_eq!(Size::from_bytes(request.len() as u64) + Size::IPV4_UDP, Size::from_bytes(64));
    assert_eq!(
        request,
        [
            0x80, 200, 0, 8, 0x0E, 0x5F, 0x00, 0x01, 0xEE, 0x9A, 0x3C, 0x01, 0x40, 0, 0, 0, 0x00, 0x03, 0x0D, 0x40, 0,
            0, 0, 125, 0x00, 0x01, 0xCC, 0xF0, 0x80, 0x01, 0x00, 0x08, 0x3C, 0x00, 0x40, 0
        ]
    );
    let mut answer = Vec::new();
    let extension = DelayReport::agreed(None).to_bytes();
    encode_receiver_report(0x0E5F_0002, &[block()], &extension, &mut answer);
    assert_eq!(Size::from_bytes(answer.len() as u64) + Size::IPV4_UDP, Size::from_bytes(72));
    assert_eq!(answer.get(..4), Some(&[0x81, 201, 0, 10][..]));
    let Some(RtcpPacket::ReceiverReport(report)) = parse_compound(&answer).expect("well formed").next() else {
        panic!("a receiver report")
    };
    assert_eq!((report.blocks().collect::<Vec<_>>(), report.extension), (vec![block()], &extension[..]));
}

#[test]
fn a_compound_with_name_and_goodbye_comes_back() {
    let mut out = Vec::new();
    info().encode(&[block()], &[], &mut out);
    encode_cname(1, "équipe@host", &mut out);
    encode_goodbye(1, &mut out);
    let packets: Vec<_> = parse_compound(&out).expect("well formed").collect();
    let [RtcpPacket::SenderReport(sr), RtcpPacket::SourceDescription(sdes), RtcpPacket::Goodbye(bye)] =
        packets.as_slice()
    else {
        panic!("{packets:?}")
    };
    assert_eq!((sr.ntp, sr.octet_count, sr.extension), (info().ntp, 118_000, &[][..]));
    assert_eq!(sdes.cnames().collect::<Vec<_>>(), [(1, "équipe@host".as_bytes())]);
    assert_eq!((bye.ssrcs().collect::<Vec<_>>(), bye.reason), (vec![1], &[][..]));
}

#[test]
fn reports_on_a_sub_flow_come_back_with_its_number() {
    let mut out = Vec::new();
    encode_subflow(7, 9, 0x0102, &mut out, |out| encode_receiver_report(7, &[block()], &[1, 2, 3, 4], out));
    // The packet has a header, two sources, the head of the block, and the contained report of 8 + 24 + 4 bytes.
    assert_eq!(out[..16], [0x80, 211, 0, 12, 0, 0, 0, 7, 0, 0, 0, 9, 0, 9, 1, 2]);
    assert_eq!(out.len(), 16 + 36);
    let packets: Vec<_> = parse_compound(&out).expect("well formed").collect();
    let [RtcpPacket::Subflows(reports)] = packets[..] else { panic!("{packets:?}") };
    assert_eq!((reports.ssrc, reports.media_ssrc), (7, 9));
    let inner: Vec<_> = reports.packets().collect();
    let [(0x0102, RtcpPacket::ReceiverReport(report))] = inner[..] else { panic!("{inner:?}") };
    assert!(report.blocks().eq([block()]) && report.extension == [1, 2, 3, 4]);
    // A block of another type is skipped. A truncated report makes the whole datagram invalid.
    out[12] = 3;
    let packets: Vec<_> = parse_compound(&out).expect("well formed").collect();
    assert!(matches!(packets[..], [RtcpPacket::Subflows(reports)] if reports.packets().count() == 0));
    (out[12], out[19]) = (0, 20);
    assert!(parse_compound(&out).is_err());
}

/// If this test fails, MPRTCP packets may be nested. One datagram has room for more than 60 levels, and the parser
/// would call itself at each level.
#[test]
fn reports_on_sub_flows_do_not_nest() {
    let mut inner = Vec::new();
    encode_subflow(7, 9, 2, &mut inner, |out| encode_goodbye(9, out));
    let mut out = Vec::new();
    encode_subflow(7, 9, 1, &mut out, |out| out.extend_from_slice(&inner));
    let packets: Vec<_> = parse_compound(&out).expect("well formed").collect();
    assert!(matches!(packets[..], [RtcpPacket::Subflows(reports)] if reports.packets().count() == 0));
}

#[test]
fn blocks_are_counted_by_the_count_and_not_by_the_length() {
    // An extension that is exactly as long as a report block must not be taken for a report block.
    let mut out = Vec::new();
    encode_receiver_report(5, &[block()], &[0xEE; BLOCK_LEN], &mut out);
    let Some(RtcpPacket::ReceiverReport(report)) = parse_compound(&out).expect("well formed").next() else {
        panic!("a receiver report")
    };
    assert_eq!((report.blocks().count(), report.extension.len()), (1, BLOCK_LEN));
    // The count field now states more report blocks than the packet has bytes for.
    if let Some(first) = out.first_mut() {
        *first = VERSION | 4;
    }
    assert!(matches!(parse_compound(&out), Err(WireError::Truncated { field: "RR report blocks", .. })));
}

#[test]
fn padding_is_for_the_last_packet_and_in_whole_words() {
    let padded = [0xA0, 203, 0, 1, 0, 0, 0, 4];
    assert!(parse_compound(&padded).is_ok());
    let twice = [padded, padded].concat();
    assert!(matches!(parse_compound(&twice), Err(WireError::Padding { .. })));
    assert!(matches!(parse_compound(&[0xA0, 203, 0, 1, 0, 0, 0, 3]), Err(WireError::Padding { .. })));
    assert!(matches!(parse_compound(&[0xA0, 203, 0, 0]), Err(WireError::Padding { .. })));
}

#[test]
fn half_a_datagram_is_none() {
    let mut out = Vec::new();
    info().encode(&[block()], &[1; 8], &mut out);
    encode_cname(1, "name", &mut out);
    for end in 0..out.len() {
        // The datagram has two packets. A truncated datagram is valid only if it ends after the first packet.
        assert_eq!(parse_compound(&out[..end]).is_ok(), end == 60, "{end}");
    }
}

proptest! {
    #[test]
    fn blocks_come_back_with_losses_kept_to_24_bits(fraction_lost: u8, cumulative_lost: i32, words: [u32; 5]) {
        let [ssrc, extended_highest, jitter, last_sr, delay_since_last_sr] = words;
        let sent = ReportBlock { ssrc, fraction_lost, cumulative_lost, extended_highest, jitter, last_sr, delay_since_last_sr };
        let mut out = Vec::new();
        info().encode(&[sent], &[], &mut out);
        let Some(RtcpPacket::SenderReport(report)) = parse_compound(&out).unwrap().next() else { panic!("an SR") };
        let kept = ReportBlock { cumulative_lost: cumulative_lost.clamp(-0x80_0000, 0x7F_FFFF), ..sent };
        prop_assert_eq!(report.blocks().collect::<Vec<_>>(), vec![kept]);
    }

    #[test]
    fn any_bytes_parse_or_do_not_and_every_packet_can_be_walked(mut bytes: Vec<u8>, words in 0u8..8, kind in prop_oneof![199u8..205, Just(211u8)], count in 0u8..32) {
        // A plausible header is put first, so that more than the version is parsed.
        bytes.splice(0..0, [VERSION | count, kind, 0, words]);
        if let Ok(compound) = parse_compound(&bytes) {
            for packet in compound {
                match packet {
                    RtcpPacket::SenderReport(report) => prop_assert!(report.blocks().count() <= MAX_COUNT),
                    RtcpPacket::ReceiverReport(report) => prop_assert!(report.blocks().count() <= MAX_COUNT),
                    RtcpPacket::SourceDescription(sdes) => prop_assert!(sdes.cnames().count() <= MAX_COUNT),
                    RtcpPacket::Goodbye(bye) => prop_assert!(bye.ssrcs().count() <= MAX_COUNT),
                    RtcpPacket::Subflows(reports) => prop_assert!(reports.packets().count() < bytes.len()),
                    RtcpPacket::Other { body, .. } => prop_assert!(body.len() < bytes.len()),
                }
            }
        }
    }
}
