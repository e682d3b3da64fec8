use alloc::vec::Vec;
use std::vec;

use equipoise::units::{Instant, ReceiverClock, Span};
use proptest::prelude::*;

use super::congestion::{LONGEST_OFFSET, OVER_RANGE, RECEIVED, UNAVAILABLE, arrival};
use super::*;
use crate::wire::rtcp::parse_compound;

type At = Instant<ReceiverClock>;

/// 23 November 2026, 16:00:00.5 UTC.
const NOW: At = Instant::from_nanos(1_795_449_600_500_000_000);
const AMPLE: usize = 60_000;

fn missing(sequence: u16) -> PacketStatus {
    PacketStatus { sequence, arrival: None }
}

fn arrived(sequence: u16, time: ArrivalTime, ecn: Ecn) -> PacketStatus {
    PacketStatus { sequence, arrival: Some(PacketArrival { time, ecn }) }
}

/// Returns a packet with reports on these streams; asserts that all of them fit.
fn encoded(at: At, streams: &[(u32, Vec<PacketStatus>)]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_congestion_feedback(1, at, AMPLE, &mut out, |writer| {
        for (ssrc, packets) in streams {
            assert_eq!(writer.stream(*ssrc, &mut packets.iter().copied()), Ok(packets.len()));
        }
    });
    out
}

/// Parses a datagram that contains exactly one packet.
fn parsed(datagram: &[u8]) -> Result<CongestionFeedback<'_>, WireError> {
    let packets: Vec<_> = parse_compound(datagram)?.collect();
    let [packet] = packets[..] else { panic!("{packets:?}") };
    match ArrivalFeedback::of(&packet).expect("feedback by packet")? {
        ArrivalFeedback::Congestion(feedback) => Ok(feedback),
        other @ ArrivalFeedback::Transport(_) => panic!("{other:?}"),
    }
}

/// The format is that of RFC 8888, Fig. 1, with the examples of Sec. 3.1. An offset of 512 is half a second. An offset
/// above 8189/1024 s is encoded as 0x1FFE. An arrival after the report is encoded as 0x1FFF.
#[test]
fn the_fields_of_the_rfc() {
    let ago = |nanos: i64| ArrivalTime::At(NOW - Span::from_nanos(nanos));
    let longest = 8189 * 1_000_000_000 / 1024;
    let packets = vec![
        arrived(0xFFFE, ago(500_000_000), Ecn::NotCapable),
        missing(0xFFFF),
        arrived(0, ago(longest), Ecn::Ect1),
        arrived(1, ago(longest + 1), Ecn::Ect0),
        arrived(2, ago(-1), Ecn::Marked),
        arrived(3, ago(0), Ecn::Marked),
        arrived(4, ArrivalTime::Unknown, Ecn::NotCapable),
    ];
    let bytes = encoded(NOW, &[(0x0102_0304, packets), (5, vec![missing(9)])]);
    let timestamp = ((1_795_449_600u64 + 2_208_988_800) as u16).to_be_bytes();
    let expected = [
        &[0x8B, 205, 0, 11, 0, 0, 0, 1][..],
        &[1, 2, 3, 4, 0xFF, 0xFE, 0, 7],
        &[0x82, 0x00, 0x00, 0x00, 0xBF, 0xFD, 0xDF, 0xFE, 0xFF, 0xFF, 0xE0, 0x00, 0x9F, 0xFF, 0, 0],
        &[0, 0, 0, 5, 0, 9, 0, 1, 0, 0, 0, 0],
        &timestamp,
        &[0x80, 0x00],
    ];
    assert_eq!(bytes, expected.concat());
    let feedback = parsed(&bytes).expect("well formed");
    assert_eq!(
        feedback.streams().map(|stream| (stream.ssrc, stream.begin, stream.len())).collect::<Vec<_>>(),
        [(0x0102_0304, 0xFFFE, 7), (5, 9, 1)]
    );
    let report = feedback.streams().next().expect("two streams").report(NOW + Span::from_secs(3600));
    assert_eq!(report.made, Some(NOW));
    let found: Vec<_> = report.packets.collect();
    assert_eq!(found[0], arrived(0xFFFE, ago(500_000_000), Ecn::NotCapable));
    assert_eq!(found[3], arrived(1, ArrivalTime::Before(NOW - Span::from_nanos(longest)), Ecn::Ect0));
    assert_eq!(found[4], arrived(2, ArrivalTime::Unknown, Ecn::Marked));
    assert_eq!(found[5], arrived(3, ago(0), Ecn::Marked));
}

#[test]
fn what_does_not_fit_waits_for_the_next_packet() {
    let packets: Vec<_> = (0..700).map(missing).collect();
    let mut rest = packets.iter().copied();
    let mut out = Vec::new();
    // A packet of whole 32-bit words has at most 1200 of the 1203 bytes. The header takes 4 bytes, the SSRC 4, the head
    // of the report 8 and the timestamp 4, so 1180 bytes are left.
    let taken = encode_congestion_feedback(1, NOW, 1203, &mut out, |writer| writer.stream(2, &mut rest));
    assert_eq!((taken, out.len(), rest.len()), (Ok(590), 1200, 110));
    let mut second = Vec::new();
    encode_congestion_feedback(1, NOW, 1200, &mut second, |writer| {
        assert_eq!(writer.stream(2, &mut rest), Ok(110));
        // 960 bytes are left for the report on stream 3, including its head.
        assert_eq!(writer.stream(3, &mut packets.iter().copied()), Ok(476));
        assert_eq!(writer.stream(4, &mut packets.iter().copied()), Err(FeedbackError::NoRoom { need: 12, have: 0 }));
    });
    assert_eq!(
        parsed(&second).expect("well formed").streams().map(|stream| stream.begin).collect::<Vec<_>>(),
        [590, 0]
    );
}

#[test]
fn a_gap_is_refused_and_leaves_nothing_behind() {
    let mut out = Vec::new();
    encode_congestion_feedback(1, NOW, AMPLE, &mut out, |writer| {
        let mut packets = [missing(7), missing(9)].into_iter();
        assert_eq!(writer.stream(2, &mut packets), Err(FeedbackError::Gap { before: 7, found: 9 }));
        assert_eq!(writer.stream(2, &mut core::iter::empty()), Ok(0));
        assert_eq!(writer.nothing_new(2, 77), Ok(()));
    });
    let feedback = parsed(&out).expect("well formed");
    let stream = feedback.streams().next().expect("one");
    assert_eq!((stream.begin, stream.is_empty(), feedback.streams().count()), (77, true, 1));
}

#[test]
fn what_is_wrong_is_named() {
    let parse = |body: &[u8]| CongestionFeedback::parse(body).err();
    let truncated = |field, offset, need, have| Some(WireError::Truncated { field, offset, need, have });
    assert_eq!(parse(&[0; 3]), truncated("feedback SSRC", 4, 4, 3));
    assert_eq!(parse(&[0; 6]), truncated("report timestamp", 8, 4, 2));
    assert_eq!(parse(&[0; 14]), truncated("num_reports", 14, 2, 0));
    let block = |count: u16, metrics: usize| [&[0; 10][..], &count.to_be_bytes(), &vec![0; metrics], &[0; 4]].concat();
    assert_eq!(parse(&block(4, 6)), truncated("metric blocks", 16, 8, 6));
    assert_eq!(parse(&block(3, 6)), truncated("padding of the metric blocks", 22, 2, 0));
    let found = WireError::Count { field: "num_reports", offset: 14, found: 16_385, most: 16_384 };
    assert_eq!(parse(&block(16_385, 32_772)), Some(found));
    assert_eq!(parse(&block(16_384, 32_768)), None);
}

fn statuses() -> impl Strategy<Value = Vec<PacketStatus>> {
    // Offsets that are multiples of 1/1024 s are encoded exactly.
    let time = prop_oneof![
        8 => (0u16..=LONGEST_OFFSET).prop_map(Some),
        1 => Just(Some(OVER_RANGE)),
        1 => Just(Some(UNAVAILABLE)),
    ];
    let packet = prop_oneof![3 => (time, 0u8..4).prop_map(Some), 1 => Just(None)];
    let length = prop_oneof![8 => 0usize..40, 1 => Just(16_384usize)];
    (any::<u16>(), length.prop_flat_map(move |length| proptest::collection::vec(packet.clone(), length))).prop_map(
        |(begin, packets)| {
            let status = |(offset, packet): (usize, Option<(Option<u16>, u8)>)| {
                let metric = packet.map_or(0, |(time, ecn)| RECEIVED | u16::from(ecn) << 13 | time.unwrap_or(0));
                PacketStatus { sequence: begin.wrapping_add(offset as u16), arrival: arrival(metric, NOW) }
            };
            packets.into_iter().enumerate().map(status).collect()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn reports_on_several_streams_come_back(streams in proptest::collection::vec((any::<u32>(), statuses()), 0..4), apart_s in -30_000i64..30_000) {
        let mut out = Vec::new();
        encode_congestion_feedback(7, NOW, LONGEST, &mut out, |writer| {
            for (ssrc, packets) in &streams {
                assert_eq!(writer.stream(*ssrc, &mut packets.iter().copied()), Ok(packets.len()));
            }
        });
        let feedback = parsed(&out).expect("what we write is well formed");
        prop_assert_eq!(feedback.ssrc, 7);
        let found: Vec<_> = feedback.streams().map(|stream| {
            let report = stream.report(NOW + Span::from_secs(apart_s));
            (report.ssrc, report.packets.collect::<Vec<_>>())
        }).collect();
        // For a stream without packets, nothing is written.
        let sent: Vec<_> = streams.into_iter().filter(|(_, packets)| !packets.is_empty()).collect();
        prop_assert_eq!(found, sent);
    }

    #[test]
    fn an_arrival_comes_back_to_half_a_unit(nanos in (1u64 << 60)..(1 << 61), before in 0i64..7_990_000_000) {
        let made = Instant::from_nanos(nanos);
        let at = made - Span::from_nanos(before);
        let bytes = encoded(made, &[(2, vec![arrived(5, ArrivalTime::At(at), Ecn::Ect0)])]);
        let stream = parsed(&bytes).expect("well formed").streams().next().expect("one");
        let report = stream.report(made);
        let rounded = report.made.expect("stated") - made;
        prop_assert!((0..=15_259).contains(&rounded.as_nanos()), "a report is not earlier than what it reports: {}", rounded);
        let found = report.packets.clone().next().expect("one").arrival.expect("arrived").time.measured();
        let error = (found.expect("measured") - at).abs();
        prop_assert!(error <= Span::from_nanos(488_283), "{}", error);
    }

    #[test]
    fn a_packet_cut_short_is_refused(packets in statuses(), cut in 1usize..2000) {
        let bytes = encoded(NOW, &[(2, packets)]);
        let body = &bytes[4..bytes.len() - cut.min(bytes.len() - 4)];
        // The cut body is valid only if it has 8 bytes, which are read as SSRC and timestamp.
        if let Ok(feedback) = CongestionFeedback::parse(body) {
            prop_assert!(feedback.streams().count() <= 1);
            prop_assert!(body.len() == 8, "{} bytes", body.len());
        }
    }
}
