//! Tests per-packet feedback against two other implementations. The packets of pion are stored here. The implementation
//! rtc-rtcp reads our packets, and we read its packets.

use equipoise::units::{Instant, ReceiverClock, Span};
use equipoise_session::Ecn;
use equipoise_session::wire::feedback::{
    ArrivalFeedback, ArrivalTime, PacketArrival, PacketStatus, TransportHead, encode_congestion_feedback,
    encode_transport_feedback,
};
use equipoise_session::wire::rtcp::parse_compound;
use proptest::collection::vec;
use proptest::prelude::*;
use rtc_rtcp::packet::{Packet, marshal, unmarshal};
use rtc_rtcp::transport_feedbacks::cc_feedback_report::{
    CcFeedbackMetricBlock, CcFeedbackReport, CcFeedbackReportBlock, Ecn as TheirEcn,
};
use rtc_rtcp::transport_feedbacks::transport_layer_cc::{
    PacketStatusChunk, RecvDelta, RunLengthChunk, StatusChunkTypeTcc, StatusVectorChunk, SymbolSizeTypeTcc,
    SymbolTypeTcc, TransportLayerCc,
};

type At = Instant<ReceiverClock>;

/// A time that has the report timestamp `0x1C20_8000` in the format of RFC 8888.
const MADE: At = Instant::from_nanos((0xEE9A_1C20 - 2_208_988_800) * 1_000_000_000 + 500_000_000);
const TIMESTAMP: u32 = 0x1C20_8000;
const AMPLE: usize = 100_000;

fn parsed(datagram: &[u8]) -> ArrivalFeedback<'_> {
    let packet = parse_compound(datagram).expect("well formed").next().expect("one packet");
    ArrivalFeedback::of(&packet).expect("feedback by packet").expect("well formed")
}

/// Returns the content of a feedback packet: each reported source with the statuses of its packets.
fn said(datagram: &[u8], near: At) -> Vec<(u32, Vec<PacketStatus>)> {
    match parsed(datagram) {
        ArrivalFeedback::Congestion(feedback) => {
            feedback.streams().map(|stream| (stream.ssrc, stream.report(near).packets.collect())).collect()
        }
        ArrivalFeedback::Transport(feedback) => {
            let report = feedback.report(near);
            vec![(report.ssrc, report.packets.collect())]
        }
    }
}

const fn arrived(time: ArrivalTime, ecn: Ecn) -> PacketArrival {
    PacketArrival { time, ecn }
}

/// Returns the statuses of consecutive packets from number `begin` on.
fn packets(begin: u16, arrivals: &[Option<PacketArrival>]) -> Vec<PacketStatus> {
    let status = |(offset, arrival): (usize, &Option<PacketArrival>)| PacketStatus {
        sequence: begin.wrapping_add(offset as u16),
        arrival: *arrival,
    };
    arrivals.iter().enumerate().map(status).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.chars().map(|digit| digit.to_digit(16).expect("a digit") as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Returns the arrival time for an offset of RFC 8888, in units of 1/1024 s before [`MADE`]. Offset 0x1FFE means more
/// than 8189/1024 s, and 0x1FFF means an unknown time.
fn by_offset(offset: u16) -> ArrivalTime {
    let ago = |offset: u16| MADE - Span::from_nanos(i64::from(offset) * 1_000_000_000 / 1024);
    match offset {
        0x1FFF => ArrivalTime::Unknown,
        0x1FFE => ArrivalTime::Before(ago(0x1FFD)),
        _ => ArrivalTime::At(ago(offset)),
    }
}

/// Returns an arrival at the time of `ticks` units of 250 µs.
fn by_ticks(ticks: u64) -> PacketArrival {
    arrived(ArrivalTime::At(Instant::from_nanos(ticks * 250_000)), Ecn::NotCapable)
}

// The packets below were made with pion/rtcp v1.2.20. A Go program calls `Marshal` on the values that the comments
// state, and prints the result with `%X`. It was run with `go get github.com/pion/rtcp@v1.2.20; go run .`.

/// The packet is a `CCFeedbackReport` on three sources:
///
/// - Source 2 has three packets. Packet 65535 has CE and offset 512, packet 0 is lost, and packet 1 has ECT(1) and
///   offset 8189.
/// - Source 3 has no packets.
/// - Source 4 has two packets. Packet 9 has ECT(0) and offset 0x1FFE, and packet 10 has Not-ECT and offset 0x1FFF.
#[test]
fn congestion_feedback_of_pion_is_read_and_written_alike() {
    let theirs =
        bytes("8BCD000B0000000100000002FFFF0003E2000000BFFD000000000003004D00000000000400090002DFFE9FFF1C208000");
    let first =
        packets(65_535, &[Some(arrived(by_offset(512), Ecn::Marked)), None, Some(arrived(by_offset(8189), Ecn::Ect1))]);
    let third =
        packets(9, &[Some(arrived(by_offset(0x1FFE), Ecn::Ect0)), Some(arrived(by_offset(0x1FFF), Ecn::NotCapable))]);
    assert_eq!(said(&theirs, MADE), [(2, first.clone()), (3, vec![]), (4, third.clone())]);
    let mut ours = Vec::new();
    encode_congestion_feedback(1, MADE, AMPLE, &mut ours, |writer| {
        writer.stream(2, &mut first.into_iter()).expect("room");
        writer.nothing_new(3, 77).expect("room");
        writer.stream(4, &mut third.into_iter()).expect("room");
    });
    assert_eq!(ours, theirs);
}

/// The three packets are of type `TransportLayerCC`. The first has a run of three received packets, a run of 20 lost
/// packets, and one received packet; the second has a vector of two-bit symbols with deltas of both sizes; the third
/// has a vector of one-bit symbols and a run. In the first two, the padding bit is set, although the padding is shorter
/// than a 32-bit word.
#[test]
fn transport_feedback_of_pion_is_read_and_written_alike() {
    let mut lost_in_between = [1281, 1281, 1536].map(by_ticks).map(Some).to_vec();
    lost_in_between.resize(23, None);
    lost_in_between.push(Some(by_ticks(1540)));
    let base = 256 * 0x00FF_FFFF;
    let both_kinds =
        [Some(base + 4), None, Some(base + 260), Some(base + 260 - 32_768)].map(|ticks| ticks.map(by_ticks));
    let mut time = 256 * 0x0080_0000;
    let steps = [1, 2, 0, 3, 4, 0, 1, 2, 3, 0, 4, 1, 0, 2, 3, 4].map(|step| {
        time += step;
        (step > 0).then(|| by_ticks(time))
    });
    for (hex, expected) in [
        ("AFCD00070000000100000002FFFE0018000005FF2003001420010100FF040002", packets(65_534, &lost_in_between)),
        ("AFCD0006000000010000000200640004FFFFFF03D280040100800001", packets(100, &both_kinds)),
        ("8FCD000800000001000000020007001080000000B6ED2002010203040102030401020304", packets(7, &steps)),
    ] {
        let mut theirs = bytes(hex);
        let near = expected[0].arrival.and_then(|arrival| arrival.time.measured()).expect("it arrived");
        assert_eq!(said(&theirs, near), [(2, expected.clone())]);
        let head = TransportHead { ssrc: 1, media_ssrc: 2, number: theirs[19], at: near };
        let mut ours = Vec::new();
        encode_transport_feedback(&head, &mut expected.iter().copied(), AMPLE, &mut ours).expect("room");
        assert_eq!(said(&ours, near), [(2, expected)]);
        // Our encoder fills the last 32-bit word with zeros and does not set the padding bit, because RFC 3550 requires
        // padding in whole words. For the comparison, the packet of pion is changed in the same way.
        let length = theirs.len();
        if theirs[0] & 0x20 != 0 {
            let padding = usize::from(theirs[length - 1]);
            theirs[0] &= !0x20;
            theirs[length - padding..].fill(0);
        }
        // Our encoding of the first packet is shorter than theirs: it has two vectors of one-bit symbols instead of
        // three runs.
        assert!(ours == theirs || ours.len() < length, "{ours:02X?} for {theirs:02X?}");
    }
}

/// Parses our packet with the other implementation.
fn read_by_them<P: Packet + Clone + 'static>(mut datagram: &[u8]) -> P {
    let packets = unmarshal(&mut datagram).expect("they read what we write");
    packets[0].as_any().downcast_ref::<P>().expect("of that kind").clone()
}

/// Generates a metric block: an offset and the ECN bits, or `None` for a lost packet.
fn metric() -> impl Strategy<Value = Option<(u16, u8)>> {
    prop_oneof![4 => (0u16..0x2000, 0u8..4).prop_map(Some), 1 => Just(None)]
}

fn their_metric(metric: Option<(u16, u8)>) -> CcFeedbackMetricBlock {
    let Some((arrival_time_offset, ecn)) = metric else { return CcFeedbackMetricBlock::default() };
    let ecn = [TheirEcn::NotEct, TheirEcn::Ect1, TheirEcn::Ect0, TheirEcn::Ce][usize::from(ecn)];
    CcFeedbackMetricBlock { received: true, ecn, arrival_time_offset }
}

/// Generates a chunk in the other implementation's type, and the chunk's symbols.
fn their_chunks() -> impl Strategy<Value = (PacketStatusChunk, Vec<SymbolTypeTcc>)> {
    let symbol = || {
        prop_oneof![
            Just(SymbolTypeTcc::PacketNotReceived),
            Just(SymbolTypeTcc::PacketReceivedSmallDelta),
            Just(SymbolTypeTcc::PacketReceivedLargeDelta),
            Just(SymbolTypeTcc::PacketReceivedWithoutDelta),
        ]
    };
    let run = (symbol(), 1u16..300).prop_map(|(symbol, length)| {
        let type_tcc = StatusChunkTypeTcc::RunLengthChunk;
        let chunk = RunLengthChunk { type_tcc, packet_status_symbol: symbol, run_length: length };
        (PacketStatusChunk::RunLengthChunk(chunk), vec![symbol; usize::from(length)])
    });
    let vector = |symbol_size: SymbolSizeTypeTcc, symbols: Vec<SymbolTypeTcc>| {
        let type_tcc = StatusChunkTypeTcc::StatusVectorChunk;
        let chunk = StatusVectorChunk { type_tcc, symbol_size, symbol_list: symbols.clone() };
        (PacketStatusChunk::StatusVectorChunk(chunk), symbols)
    };
    let one = prop_oneof![Just(SymbolTypeTcc::PacketNotReceived), Just(SymbolTypeTcc::PacketReceivedSmallDelta)];
    let ones = vec(one, 14).prop_map(move |symbols| vector(SymbolSizeTypeTcc::OneBit, symbols));
    let twos = vec(symbol(), 7).prop_map(move |symbols| vector(SymbolSizeTypeTcc::TwoBit, symbols));
    prop_oneof![run, ones, twos]
}

/// Returns the packet status symbols of chunks from the library rtc-rtcp.
fn symbols(chunks: &[PacketStatusChunk]) -> impl Iterator<Item = SymbolTypeTcc> + '_ {
    chunks.iter().flat_map(|chunk| match chunk {
        PacketStatusChunk::RunLengthChunk(run) => vec![run.packet_status_symbol; usize::from(run.run_length)],
        PacketStatusChunk::StatusVectorChunk(vector) => vector.symbol_list.clone(),
    })
}

/// Computes the packet statuses from the symbols and deltas of a packet of the library rtc-rtcp.
fn by_their_account(packet: &TransportLayerCc, near: u64) -> Vec<PacketStatus> {
    let mut ticks = near & !0xFFFF_FFFF | u64::from(packet.reference_time) << 8;
    let mut deltas = packet.recv_deltas.iter();
    let arrivals: Vec<_> = symbols(&packet.packet_chunks)
        .take(usize::from(packet.packet_status_count))
        .map(|symbol| match symbol {
            SymbolTypeTcc::PacketNotReceived => None,
            SymbolTypeTcc::PacketReceivedWithoutDelta => Some(arrived(ArrivalTime::Unknown, Ecn::NotCapable)),
            _ => {
                ticks = ticks.saturating_add_signed(deltas.next().expect("a delta").delta / 250);
                Some(by_ticks(ticks))
            }
        })
        .collect();
    packets(packet.base_sequence_number, &arrivals)
}

proptest! {
    #[test]
    fn congestion_feedback_agrees_both_ways(streams in vec((any::<u32>(), any::<u16>(), vec(metric(), 1..60)), 0..5)) {
        let mut ours = Vec::new();
        let mut expected = Vec::new();
        encode_congestion_feedback(7, MADE, AMPLE, &mut ours, |writer| {
            for (ssrc, begin, metrics) in &streams {
                let arrival = |metric: &Option<(u16, u8)>| metric.map(|(offset, ecn)| arrived(by_offset(offset), Ecn::from_bits(ecn)));
                let packets = packets(*begin, &metrics.iter().map(arrival).collect::<Vec<_>>());
                assert_eq!(writer.stream(*ssrc, &mut packets.iter().copied()), Ok(metrics.len()));
                expected.push((*ssrc, packets));
            }
        });
        let block = |(ssrc, begin, metrics): &(u32, u16, Vec<_>)| CcFeedbackReportBlock {
            media_ssrc: *ssrc,
            begin_sequence: *begin,
            metric_blocks: metrics.iter().copied().map(their_metric).collect(),
        };
        let report_blocks = streams.iter().map(block).collect();
        let theirs = CcFeedbackReport { sender_ssrc: 7, report_blocks, report_timestamp: TIMESTAMP };
        prop_assert_eq!(&read_by_them::<CcFeedbackReport>(&ours), &theirs);
        let bytes = marshal(&[Box::new(theirs)]).unwrap();
        prop_assert_eq!(&bytes[..], &ours[..]);
        prop_assert_eq!(said(&bytes, MADE), expected);
    }

    #[test]
    fn transport_feedback_that_we_write_is_read_by_them(
        base: u16, start in 1u64 << 32..1 << 42,
        steps in vec(prop_oneof![4 => (-300i64..2000).prop_map(Some), 2 => (-32_768i64..32_768).prop_map(Some), 2 => Just(None)], 0..400),
    ) {
        let mut ticks = start;
        let arrivals: Vec<_> = core::iter::once(Some(0)).chain(steps).map(|step| {
            step.map(|step| {
                ticks = ticks.saturating_add_signed(step);
                by_ticks(ticks)
            })
        }).collect();
        let sent = packets(base, &arrivals);
        let mut ours = Vec::new();
        let head = TransportHead { ssrc: 1, media_ssrc: 2, number: 200, at: MADE };
        prop_assert_eq!(encode_transport_feedback(&head, &mut sent.iter().copied(), AMPLE, &mut ours), Ok(sent.len()));
        let theirs: TransportLayerCc = read_by_them(&ours);
        prop_assert_eq!((theirs.sender_ssrc, theirs.media_ssrc, theirs.fb_pkt_count), (1, 2, 200));
        prop_assert_eq!(by_their_account(&theirs, start), sent);
    }

    #[test]
    fn transport_feedback_that_they_write_is_read_by_us(
        base: u16, reference_time in 0u32..1 << 24, fb_pkt_count: u8, chunks in vec(their_chunks(), 1..12), seed: u64,
    ) {
        let (packet_chunks, lists): (Vec<_>, Vec<_>) = chunks.into_iter().unzip();
        let all = lists.concat();
        let delta = |(number, symbol): (u64, &SymbolTypeTcc)| {
            let random = seed.wrapping_mul(number | 1).rotate_left(17);
            let delta = if *symbol == SymbolTypeTcc::PacketReceivedSmallDelta { i64::from(random as u8) } else { i64::from(random as i16) };
            RecvDelta { type_tcc_packet: *symbol, delta: 250 * delta }
        };
        let timed = |symbol: &&SymbolTypeTcc| {
            matches!(symbol, SymbolTypeTcc::PacketReceivedSmallDelta | SymbolTypeTcc::PacketReceivedLargeDelta)
        };
        let theirs = TransportLayerCc {
            sender_ssrc: 1,
            media_ssrc: 2,
            base_sequence_number: base,
            packet_status_count: all.len() as u16,
            reference_time,
            fb_pkt_count,
            packet_chunks,
            recv_deltas: (0u64..).zip(all.iter().filter(timed)).map(delta).collect(),
        };
        let near = 1 << 41 | u64::from(reference_time) << 8;
        let expected = by_their_account(&theirs, near);
        let bytes = marshal(&[Box::new(theirs)]).unwrap();
        prop_assert_eq!(said(&bytes, Instant::from_nanos(near * 250_000)), [(2, expected)]);
    }
}
