use alloc::vec::Vec;
use std::vec;

use equipoise::units::{Instant, ReceiverClock, Span};
use proptest::prelude::*;

use super::marks::TICK_NS;
use super::*;
use crate::wire::rtcp::parse_compound;

type At = Instant<ReceiverClock>;

const AMPLE: usize = 262_144;

/// Returns the time `ticks` units of 250 µs after the clock's zero.
fn ticks(ticks: u64) -> At {
    Instant::from_nanos(ticks * TICK_NS)
}

fn status(sequence: u16, at: Option<At>) -> PacketStatus {
    let arrival = at.map(|at| PacketArrival { time: ArrivalTime::At(at), ecn: Ecn::NotCapable });
    PacketStatus { sequence, arrival }
}

/// Returns the statuses of consecutive packets from number `base` on.
fn statuses(base: u16, arrivals: &[Option<At>]) -> Vec<PacketStatus> {
    arrivals.iter().enumerate().map(|(offset, at)| status(base.wrapping_add(offset as u16), *at)).collect()
}

const HEAD: TransportHead = TransportHead { ssrc: 1, media_ssrc: 2, number: 7, at: Instant::ZERO };

/// Encodes the statuses into feedback packets of at most `limit` bytes each.
fn encoded(packets: &[PacketStatus], limit: usize) -> Vec<Vec<u8>> {
    let (mut rest, mut all) = (packets.iter().copied(), Vec::new());
    while rest.len() > 0 {
        let mut out = Vec::new();
        let before = rest.len();
        let taken = encode_transport_feedback(&HEAD, &mut rest, limit, &mut out);
        assert_eq!(taken, Ok(before - rest.len()));
        assert!(out.len() <= limit && before > rest.len());
        all.push(out);
    }
    all
}

/// Parses a datagram that contains exactly one packet.
fn parsed(datagram: &[u8]) -> Result<TransportFeedback<'_>, WireError> {
    let packets: Vec<_> = parse_compound(datagram)?.collect();
    let [packet] = packets[..] else { panic!("{packets:?}") };
    match ArrivalFeedback::of(&packet).expect("feedback by packet")? {
        ArrivalFeedback::Transport(feedback) => Ok(feedback),
        other @ ArrivalFeedback::Congestion(_) => panic!("{other:?}"),
    }
}

fn found(datagrams: &[Vec<u8>], near: At) -> Vec<PacketStatus> {
    datagrams.iter().flat_map(|datagram| parsed(datagram).expect("well formed").report(near).packets).collect()
}

#[test]
fn the_fields_of_the_draft() {
    // Packet a arrives at 4.5 units of 64 ms, b 63.75 ms later, c 250 µs before b, and d 64 ms after c.
    let times = [1024 + 128, 1024 + 128 + 255, 1024 + 128 + 254, 1024 + 128 + 254 + 256];
    let [a, b, c, d] = times.map(|time| Some(ticks(time)));
    let packets = statuses(0xFFFF, &[a, None, b, c, d]);
    let bytes = &encoded(&packets, AMPLE)[0];
    let expected = [
        &[0x8F, 205, 0, 7, 0, 0, 0, 1, 0, 0, 0, 2][..],
        &[0xFF, 0xFF, 0, 5],
        &[0, 0, 4, 7],
        // The chunk has two bits per symbol: small, missing, small, large, large.
        &[0b1101_0001, 0b1010_0000],
        &[128, 255, 0xFF, 0xFF, 1, 0],
    ];
    let mut expected = expected.concat();
    expected.resize(expected.len().next_multiple_of(4), 0);
    expected[3] = (expected.len() / 4 - 1) as u8;
    assert_eq!(*bytes, expected);
    let feedback = parsed(bytes).expect("well formed");
    let head = (feedback.ssrc, feedback.media_ssrc, feedback.base, feedback.count, feedback.reference, feedback.number);
    assert_eq!(head, (1, 2, 0xFFFF, 5, 4, 7));
    let report = feedback.report(ticks(1024));
    assert_eq!((report.ssrc, report.made), (2, None));
    assert_eq!(report.packets.collect::<Vec<_>>(), packets);
}

/// As in packets of libwebrtc, the padding is a single byte, and the padding bit is set. The packet is parsed alone and
/// in front of another packet.
#[test]
fn padding_to_the_word_is_taken_off_wherever_the_packet_stands() {
    let mut bytes = encoded(&statuses(1, &[Some(ticks(0))]), AMPLE).remove(0);
    assert_eq!(bytes.len(), 24);
    bytes[0] |= 0x20;
    bytes[23] = 1;
    let two = [&bytes[..], &bytes].concat();
    assert_eq!(parse_compound(&two).map(Iterator::count), Ok(2));
    assert_eq!(parsed(&bytes).map(|feedback| feedback.count), Ok(1));
    bytes[23] = 21;
    assert_eq!(parsed(&bytes), Err(WireError::Padding { found: 21, have: 20 }));
}

#[test]
fn the_reference_time_wraps_and_has_a_sign() {
    let mut bytes = encoded(&statuses(1, &[Some(ticks(256 * 0x00FF_FFFF + 9))]), AMPLE).remove(0);
    assert_eq!(parsed(&bytes).map(|feedback| feedback.reference), Ok(-1));
    let near = |units: u64| found(std::slice::from_ref(&bytes), ticks(256 * units))[0];
    assert_eq!(near(0x00FF_FFFF), near(0x0100_0005));
    assert_eq!(near(0x0100_0005), status(1, Some(ticks(256 * 0x00FF_FFFF + 9))));
    assert_eq!(near(0x0200_0005), status(1, Some(ticks(256 * 0x01FF_FFFF + 9))));
    // Times before the clock's zero become zero.
    bytes[16..19].copy_from_slice(&[0xFF, 0xFF, 0xF0]);
    assert_eq!(found(&[bytes], Instant::ZERO), [status(1, Some(Instant::ZERO))]);
}

#[test]
fn a_delta_that_has_no_form_begins_another_packet() {
    let (long, longest) = (0x8000u64, 0x7FFFu64);
    let times = [100_000, 100_000 + longest, 100_000 + longest + long, 100_000 + longest, 100_000 + longest - long - 1];
    let packets = statuses(5, &times.map(|time| Some(ticks(time))));
    let datagrams = encoded(&packets, AMPLE);
    let counts: Vec<_> = datagrams.iter().map(|datagram| parsed(datagram).expect("well formed").count).collect();
    assert_eq!(counts, [2, 2, 1]);
    assert_eq!(found(&datagrams, ticks(100_000)), packets);
}

#[test]
fn a_packet_that_arrived_at_an_unknown_time_has_a_symbol_of_its_own() {
    let untimed = Some(PacketArrival { time: ArrivalTime::Unknown, ecn: Ecn::NotCapable });
    let packets = [status(0, Some(ticks(512))), PacketStatus { sequence: 1, arrival: untimed }, status(2, None)];
    assert_eq!(found(&encoded(&packets, AMPLE), ticks(0)), packets);
}

#[test]
fn what_is_wrong_is_named() {
    let truncated = |field, offset, need, have| Some(WireError::Truncated { field, offset, need, have });
    let parse = |count: u8, behind: &[u8]| {
        let body = [&[0; 10][..], &[0, count, 0, 0, 0, 0], behind].concat();
        TransportFeedback::parse(&body).err()
    };
    assert_eq!(TransportFeedback::parse(&[0; 7]).err(), truncated("media SSRC", 8, 4, 3));
    assert_eq!(TransportFeedback::parse(&[0; 12]).err(), truncated("reference time", 16, 4, 0));
    assert_eq!(parse(0, &[]), None);
    assert_eq!(parse(1, &[]), truncated("packet status chunk", 20, 2, 0));
    // The next two inputs have a run of two packets with small deltas. In the first of these inputs, one delta is
    // missing. The third input has only empty runs.
    assert_eq!(parse(2, &[0x20, 2, 9]), truncated("receive deltas", 22, 2, 1));
    assert_eq!(parse(2, &[0x20, 2, 9, 9]), None);
    assert_eq!(parse(2, &[0; 100]), truncated("packet status chunk", 120, 2, 0));
    // If a run length chunk covers more packets than the packet status count, only the deltas of the counted packets
    // must be present.
    assert_eq!(parse(2, &[0x3F, 0xFF, 9, 9]), None);
}

#[test]
fn a_gap_or_no_room_is_refused_and_leaves_nothing_behind() {
    let mut out = vec![1];
    let mut packets = [status(1, None), status(3, None)].into_iter();
    let gap = Err(FeedbackError::Gap { before: 1, found: 3 });
    assert_eq!(encode_transport_feedback(&HEAD, &mut packets, AMPLE, &mut out), gap);
    let mut packets = [status(1, Some(ticks(3)))].into_iter();
    let no_room = Err(FeedbackError::NoRoom { need: 24, have: 20 });
    assert_eq!(encode_transport_feedback(&HEAD, &mut packets, 23, &mut out), no_room);
    assert_eq!((packets.len(), &out[..]), (1, &[1][..]));
    assert_eq!(encode_transport_feedback(&HEAD, &mut core::iter::empty(), AMPLE, &mut out), Ok(0));
    assert_eq!(out.len(), 1);
}

/// If 1000 packets arrive at 1000 per second without losses, the feedback needs one run length chunk, and one byte per
/// packet for the delta. With one loss in a hundred, the feedback is only slightly longer.
#[test]
fn ordinary_feedback_is_short() {
    let all: Vec<_> = (0..1000).map(|number| Some(ticks(1000 + 4 * number))).collect();
    assert_eq!(encoded(&statuses(0, &all), AMPLE)[0].len(), (20 + 2 + 1000usize).next_multiple_of(4));
    let some: Vec<_> = (0..1000).map(|number| all[number].filter(|_| number % 100 != 50)).collect();
    assert!(encoded(&statuses(0, &some), AMPLE)[0].len() < 1100);
}

/// Generates the time between two arrivals in units of 250 µs; `None` is a lost packet.
fn step() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![
        6 => (0i64..256).prop_map(Some),
        2 => (-400i64..2000).prop_map(Some),
        1 => (-40_000i64..40_000).prop_map(Some),
        3 => Just(None),
    ]
}

fn arrivals() -> impl Strategy<Value = Vec<Option<At>>> {
    let piece = prop_oneof![8 => (step(), 1usize..6), 1 => (step(), 1usize..3000), 1 => Just((None, 9000usize))];
    (1u64 << 33..1 << 42, proptest::collection::vec(piece, 1..30)).prop_map(|(start, pieces)| {
        let mut time = start;
        let steps = pieces.into_iter().flat_map(|(step, times)| core::iter::repeat_n(step, times));
        let mut arrive = |step: i64| {
            time = time.saturating_add_signed(step);
            ticks(time)
        };
        steps.take(16_384).map(|step| step.map(&mut arrive)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn reports_come_back_in_packets_that_fit(base: u16, arrivals in arrivals(), limit in prop_oneof![Just(AMPLE), 24usize..1500], apart_s in -400_000i64..400_000) {
        let packets = statuses(base, &arrivals);
        let near = arrivals.iter().flatten().next().copied().unwrap_or(ticks(1 << 35)) + Span::from_secs(apart_s);
        let datagrams = encoded(&packets, limit);
        // `near` is up to 4.6 days from the first arrival. The times must still be correct, because this is less than
        // half of the 12 days after which the reference time wraps.
        prop_assert_eq!(found(&datagrams, near), packets);
    }

    #[test]
    fn an_arrival_comes_back_to_half_a_unit(nanos in 1u64 << 50..1 << 60, between in 0i64..8_000_000_000) {
        let first: At = Instant::from_nanos(nanos);
        let second = first + Span::from_nanos(between);
        let datagrams = encoded(&statuses(3, &[Some(first), Some(second)]), AMPLE);
        for (status, at) in found(&datagrams, first).iter().zip([first, second]) {
            let found = status.arrival.expect("arrived").time.measured().expect("with its time");
            prop_assert!((found - at).abs() <= Span::from_nanos(125_000), "{}", found - at);
        }
    }

    #[test]
    fn a_packet_cut_by_a_word_is_refused(arrivals in arrivals(), words in 1usize..2000) {
        let datagram = &encoded(&statuses(1, &arrivals), AMPLE)[0];
        let cut = (4 * words).min(datagram.len() - 4);
        let found = TransportFeedback::parse(&datagram[4..datagram.len() - cut]);
        prop_assert!(matches!(found, Err(WireError::Truncated { .. })), "{:?}", found);
    }
}
