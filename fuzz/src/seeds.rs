//! The seeds in `corpus/`, from which the fuzzer starts: valid inputs, and inputs that often cause errors in parsers.

use equipoise::measure::DelaySummary;
use equipoise::units::{Instant, Span};
use equipoise_pair::wire::{AduHeader, AduPart, PairHello};
use equipoise_session::Ecn;
use equipoise_session::wire::feedback::{
    ArrivalTime, PacketArrival, PacketStatus, TransportHead, encode_congestion_feedback, encode_transport_feedback,
};
use equipoise_session::wire::rtcp::{
    ReportBlock, SenderInfo, encode_cname, encode_goodbye, encode_receiver_report, encode_subflow,
};
use equipoise_session::wire::rtp::{RtpHeader, Subflow};
use equipoise_session::wire::{DelayReport, NtpTime, ReportRequest};

/// Returns all seeds. Each has the name of its target, the name of its file without the extension, and its bytes.
pub fn all() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let of = |target| move |(name, bytes)| (target, name, bytes);
    let capture = capture().into_iter().map(of("capture"));
    let rtp = rtp().into_iter().map(of("rtp"));
    let rtcp = rtcp().into_iter().map(of("rtcp"));
    let delay_report = delay_report().into_iter().map(of("delay_report"));
    let scenario = scenario().into_iter().map(of("scenario"));
    let session = session().into_iter().map(of("session"));
    let flow_pair = flow_pair().into_iter().map(of("flow_pair"));
    let server = server().into_iter().map(of("server"));
    let dtls_srtp = dtls_srtp().into_iter().map(of("dtls_srtp"));
    let wire = capture.chain(rtp).chain(rtcp).chain(delay_report);
    let by_packet = [
        ("congestion_feedback", congestion_feedback()),
        ("transport_feedback", transport_feedback()),
        ("packet_history", packet_history()),
    ];
    let by_packet = by_packet.into_iter().flat_map(|(target, seeds)| seeds.into_iter().map(of(target)));
    let wire = wire.chain(by_packet);
    wire.chain(scenario).chain(session).chain(flow_pair).chain(server).chain(dtls_srtp).collect()
}

type Seeds = Vec<(&'static str, Vec<u8>)>;

const NOW: NtpTime = NtpTime::from_bits(0xEE9A_3C01_4000_0000);
const FIXED: [u8; 10] = [0x12, 0x34, 0, 1, 0x5F, 0x90, 0x0E, 0x5F, 0, 1];

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

/// Captures of raw IPv4 packets with TCP between 10.0.0.1 and 10.0.0.2: a handshake, two segments of four bytes, one
/// acknowledgement for both, and a retransmission of the second segment. The last seed is the head of a gzip file.
fn capture() -> Seeds {
    const SYN: u8 = 2;
    const ACK: u8 = 16;
    let packet = |near: bool, flags: u8, sequence: u32, ack: u32, data: &[u8]| {
        let (from, to) = if near { ([10, 0, 0, 1], [10, 0, 0, 2]) } else { ([10, 0, 0, 2], [10, 0, 0, 1]) };
        let (source, target) = if near { (1000u16, 2000u16) } else { (2000, 1000) };
        let length = 40 + data.len() as u8;
        let mut bytes = vec![0x45, 0, 0, length, 0, 0, 0, 0, 64, 6, 0, 0];
        bytes.extend(from);
        bytes.extend(to);
        bytes.extend(source.to_be_bytes());
        bytes.extend(target.to_be_bytes());
        bytes.extend(sequence.to_be_bytes());
        bytes.extend(ack.to_be_bytes());
        bytes.extend([0x50, flags, 0xFF, 0xFF, 0, 0, 0, 0]);
        bytes.extend(data);
        bytes
    };
    let packets = [
        packet(true, SYN, 99, 0, &[]),
        packet(false, SYN | ACK, 499, 100, &[]),
        packet(true, ACK, 100, 500, &[]),
        packet(true, ACK, 100, 500, b"abcd"),
        packet(true, ACK, 104, 500, b"efgh"),
        packet(false, ACK, 500, 108, &[]),
        packet(true, ACK, 104, 500, b"efgh"),
    ];
    let words = |out: &mut Vec<u8>, words: &[u32]| words.iter().for_each(|word| out.extend(word.to_le_bytes()));
    let pcap = written(|out| {
        words(out, &[0xA1B2_C3D4, 0x0004_0002, 0, 0, 0x0004_0000, 101]);
        for (index, packet) in (0u32..).zip(&packets) {
            let length = packet.len() as u32;
            words(out, &[1, index * 10_000, length, length]);
            out.extend(packet);
        }
    });
    let pcapng = written(|out| {
        words(out, &[0x0A0D_0D0A, 28, 0x1A2B_3C4D, 1, u32::MAX, u32::MAX, 28]);
        words(out, &[1, 20, 101, 0x0004_0000, 20]);
        for (index, packet) in (0u32..).zip(&packets) {
            let (length, padded) = (packet.len() as u32, packet.len().next_multiple_of(4));
            let block = 32 + padded as u32;
            words(out, &[6, block, 0, 0, index * 10_000, length, length]);
            out.extend(packet);
            out.resize(out.len() + padded - packet.len(), 0);
            words(out, &[block]);
        }
    });
    vec![("pcap", pcap), ("pcapng", pcapng), ("gzip_head", vec![0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 1])]
}

fn rtp() -> Seeds {
    let header = RtpHeader {
        marker: true,
        payload_type: 96,
        sequence: 1,
        timestamp: 2,
        ssrc: 3,
        send_time: None,
        subflow: None,
        transport_sequence: None,
    };
    let media = |header: RtpHeader, payload: &[u8]| {
        let mut out = written(|out| header.encode(out));
        out.extend_from_slice(payload);
        out
    };
    let crafted = |first: u8, tail: &[u8]| [&[first, 96], &FIXED[..], tail].concat();
    vec![
        ("plain", media(header, &[0xAB; 32])),
        (
            "on_a_sub_flow",
            media(
                RtpHeader { send_time: Some(NOW), subflow: Some(Subflow { id: 1, sequence: 2 }), ..header },
                &[0xAB; 32],
            ),
        ),
        ("with_time", media(RtpHeader { send_time: Some(NOW), ..header }, &[0xAB; 32])),
        ("contributors", crafted(0x82, &[0, 0, 0, 1, 0, 0, 0, 2, 0xAB])),
        ("padding", crafted(0xA0, &[0xAB, 0, 0, 3])),
        ("padding_too_long", crafted(0xA0, &[0xAB, 9])),
        ("foreign_elements", crafted(0x90, &[0xBE, 0xDE, 0, 2, 0x21, 0xAA, 0xBB, 0, 0x30, 1, 0xF0, 0xE7])),
        ("two_byte_elements", crafted(0x90, &[0x10, 0, 0, 1, 1, 2, 0xAA, 0xBB, 7])),
        ("extension_too_long", crafted(0x90, &[0xBE, 0xDE, 0xFF, 0xFF, 0xE7])),
    ]
}

fn info() -> SenderInfo {
    SenderInfo { ssrc: 1, ntp: NOW, rtp_timestamp: 90_000, packet_count: 125, octet_count: 118_000 }
}

fn block() -> ReportBlock {
    ReportBlock {
        ssrc: 1,
        fraction_lost: 3,
        cumulative_lost: -2,
        extended_highest: 0x0001_0203,
        jitter: 45,
        last_sr: NOW.middle(),
        delay_since_last_sr: 66,
    }
}

fn summary() -> DelaySummary {
    DelaySummary { mean_s: 9.07e-3, variance_s2: 3.23e-6, samples: 5000 }
}

fn rtcp() -> Seeds {
    let request = ReportRequest { interval_start: NOW.middle(), receipt: None }.to_bytes();
    let report = DelayReport::agreed(Some(summary())).to_bytes();
    let compound = written(|out| {
        info().encode(&[block()], &[], out);
        encode_cname(1, "studio@192.0.2.1", out);
        encode_goodbye(1, out);
    });
    vec![
        ("request", written(|out| info().encode(&[], &request, out))),
        ("report", written(|out| encode_receiver_report(2, &[block()], &report, out))),
        ("request_on_a_sub_flow", written(|out| encode_subflow(1, 1, 3, out, |out| info().encode(&[], &request, out)))),
        ("sub_flow_block_too_long", vec![0x80, 211, 0, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 9, 0, 3]),
        ("extension_like_a_block", written(|out| encode_receiver_report(2, &[block()], &[0xEE; 24], out))),
        ("compound", compound),
        ("most_blocks", written(|out| encode_receiver_report(2, &[block(); 31], &[], out))),
        ("two_names", vec![0x82, 202, 0, 5, 0, 0, 0, 1, 1, 1, b'a', 0, 0, 0, 0, 2, 2, 0, 1, 1, b'b', 0, 0, 0]),
        ("name_without_end", vec![0x81, 202, 0, 2, 0, 0, 0, 1, 1, 2, b'a', b'b']),
        ("goodbye_with_reason", vec![0x81, 203, 0, 3, 0, 0, 0, 1, 4, b'd', b'o', b'n', b'e', 0, 0, 0]),
        ("goodbye_padded", vec![0xA0, 203, 0, 1, 0, 0, 0, 4]),
        ("more_blocks_than_bytes", vec![0x9F, 201, 0, 1, 0, 0, 0, 1]),
        ("missing_packets", vec![0x81, 205, 0, 4, 0, 0, 0, 1, 0, 0, 0, 2, 0xFF, 0xFE, 0x80, 1, 0x12, 0x34, 0, 0]),
        ("picture_loss", vec![0x81, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2]),
        ("full_intra", vec![0x84, 206, 0, 6, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 7, 0, 0, 0, 0, 0, 0, 3, 8, 0, 0, 0]),
        ("feedback", vec![0x82, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2]),
        ("length_beyond_the_end", vec![0x80, 200, 0xFF, 0xFF, 0, 0, 0, 1]),
    ]
}

fn delay_report() -> Seeds {
    let report = |delay| DelayReport::agreed(delay).to_bytes();
    let mean = |mean_s| report(Some(DelaySummary { mean_s, ..summary() }));
    let mut not_a_number = report(Some(summary()));
    not_a_number[8..12].copy_from_slice(&f32::NAN.to_bits().to_be_bytes());
    let numbers = [9.07e-3f64.to_bits(), 3.23e-6f64.to_bits(), 5000];
    let instants = [NOW.as_bits(), 1_794_000_000_000_000_000, 0];
    vec![
        ("report", report(Some(summary()))),
        ("too_few", report(None)),
        ("longest", mean(1e9)),
        ("most_negative", mean(-1e9)),
        ("most_samples", report(Some(DelaySummary { samples: u64::MAX, ..summary() }))),
        ("not_a_number", not_a_number),
        ("request", ReportRequest { interval_start: NOW.middle(), receipt: None }.to_bytes()),
        ("numbers", numbers.iter().flat_map(|number| number.to_be_bytes()).collect()),
        ("instants", instants.iter().flat_map(|number| number.to_be_bytes()).collect()),
    ]
}

/// Returns the statuses of packets with consecutive numbers from `begin` on. `micros` has their arrival times by the
/// receiver's clock, in µs after a reference; `None` for a lost packet.
fn arrivals(begin: u16, micros: &[Option<i64>]) -> Vec<PacketStatus> {
    let arrival = |micros: i64| {
        let time = ArrivalTime::At(Instant::from_nanos(1_795_449_600_000_000_000) + Span::from_micros(micros));
        PacketArrival { time, ecn: Ecn::Ect1 }
    };
    let status = |(offset, micros): (usize, &Option<i64>)| PacketStatus {
        sequence: begin.wrapping_add(offset as u16),
        arrival: micros.map(arrival),
    };
    micros.iter().enumerate().map(status).collect()
}

/// Bodies of RTCP feedback packets, without the RTCP header.
fn congestion_feedback() -> Seeds {
    let body = |streams: &[&[PacketStatus]]| {
        let at = Instant::from_nanos(1_795_449_609_000_000_000);
        let bytes = written(|out| {
            encode_congestion_feedback(1, at, 1200, out, |writer| {
                for (ssrc, packets) in (2..).zip(streams) {
                    writer.stream(ssrc, &mut packets.iter().copied()).expect("a short report");
                }
                writer.nothing_new(9, 77).expect("a short report");
            });
        });
        bytes[4..].to_vec()
    };
    let few = arrivals(0xFFFE, &[Some(8_000_000), None, Some(8_001_000), Some(8_003_000), Some(7_999_000)]);
    let out_of_range = arrivals(7, &[Some(0), Some(1_500_000), Some(9_000_001), None]);
    let block = |count: u16, metrics: usize| {
        [&[0, 0, 0, 1, 0, 0, 0, 2, 0, 5][..], &count.to_be_bytes(), &vec![0xE1; metrics], &[1, 2, 3, 4]].concat()
    };
    vec![
        ("streams", body(&[&few, &out_of_range])),
        ("nothing", body(&[])),
        ("unavailable", block(2, 4).into_iter().map(|byte| if byte == 0xE1 { 0xFF } else { byte }).collect()),
        ("bits_of_a_lost_packet", block(1, 4).into_iter().map(|byte| byte & 0x7F).collect()),
        ("more_metrics_than_bytes", block(9, 4)),
        ("too_many_metrics", block(0x4001, 8)),
        ("no_timestamp", vec![0, 0, 0, 1, 0, 0]),
    ]
}

/// Bodies of RTCP feedback packets, without the RTCP header.
fn transport_feedback() -> Seeds {
    let body = |base: u16, micros: &[Option<i64>]| {
        let head = TransportHead { ssrc: 1, media_ssrc: 2, number: 255, at: Instant::ZERO };
        let mut packets = arrivals(base, micros).into_iter();
        let bytes = written(|out| {
            encode_transport_feedback(&head, &mut packets, 1200, out).expect("a short report");
        });
        bytes[4..].to_vec()
    };
    let of_chunks = |count: u16, behind: &[u8]| {
        [&[0, 0, 0, 1, 0, 0, 0, 2, 0xFF, 0xF0][..], &count.to_be_bytes(), &[0x80, 0, 0, 3], behind].concat()
    };
    let steady: Vec<_> = (0..40).map(|number| Some(1000 * number)).collect();
    let patchy: Vec<_> = steady.iter().enumerate().map(|(number, at)| at.filter(|_| number % 5 != 3)).collect();
    vec![
        ("steady", body(0xFFF0, &steady)),
        ("patchy", body(1, &patchy)),
        (
            "deltas_of_both_kinds",
            body(9, &[Some(0), Some(70_000), None, Some(69_000), Some(-8_000_000), Some(-7_999_000)]),
        ),
        ("nothing_arrived", body(3, &[None; 30])),
        ("run_beyond_the_count", of_chunks(3, &[0x3F, 0xFF, 1, 2, 3, 0])),
        ("long_run", of_chunks(0x0900, &[0x1F, 0xFF, 0, 0])),
        ("empty_runs", of_chunks(1, &[0, 0, 0, 0, 0x20, 1, 5, 0])),
        ("without_deltas", of_chunks(9, &[0x60, 9, 0, 0])),
        ("deltas_missing", of_chunks(9, &[0x20, 9, 0, 0])),
        ("padded", of_chunks(1, &[0x20, 1, 9, 1])),
    ]
}

/// Operations of the target `packet_history`, in its input format.
fn packet_history() -> Seeds {
    const SEND: [u8; 2] = [0, 0];
    const SKIP_AND_SEND: [u8; 2] = [3, 255];
    const ARRIVE: [u8; 2] = [0x60, 0];
    const ARRIVE_LATE_AND_MARKED: [u8; 2] = [0x63, 3];
    const REPORT: [u8; 2] = [0xA1, 0];
    const REPORT_IS_LOST: [u8; 2] = [0xA0, 0];
    const REPORT_AND_OVERLAP: [u8; 2] = [0xC1, 20];
    const CLAIM_ALL: [u8; 2] = [0xF0, 0];
    const CLAIM_SOME: [u8; 2] = [0xE7, 0x55];
    let turn = [SEND, ARRIVE, SEND, SEND, ARRIVE].concat();
    vec![
        ("in_order", [&turn[..], &REPORT].concat().repeat(30)),
        ("repaired", [&turn[..], &REPORT, &ARRIVE_LATE_AND_MARKED, &REPORT].concat().repeat(20)),
        ("reports_lost", [&turn[..], &REPORT_IS_LOST, &turn, &REPORT, &turn, &REPORT_AND_OVERLAP].concat().repeat(9)),
        ("traps", [&SKIP_AND_SEND[..], &ARRIVE, &SEND, &REPORT, &CLAIM_ALL].concat().repeat(20)),
        ("claims", [&turn[..], &CLAIM_SOME, &REPORT, &CLAIM_ALL].concat().repeat(20)),
    ]
}

fn scenario() -> Seeds {
    let small = "name = \"s\"\nduration = \"9 s\"\n[[link]]\nname = \"l\"\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n\
        queue = \"9 packets\"\nsteps = [{ at = \"1 s\", rate = \"2 Mbit/s\" }]\n";
    let session = "[[flow]]\nname = \"m\"\npath = [\"l\"]\npacket_size = \"500 B\"\nreport_interval = \"1 s\"\n\
        controller = { name = \"ap\", target = \"9 ms\", b = 3e2 }\n";
    let bursts = "[[flow]]\nname = \"b\"\npath = [\"l\"]\npacket_size = \"500 B\"\n\
        source = { kind = \"on-off\", rate = \"1 Mbit/s\", on = \"1 s\", off = \"1 s\" }\n";
    vec![
        ("session", [small, session].concat().into_bytes()),
        ("bursts", [small, bursts].concat().into_bytes()),
        ("without_flows", small.as_bytes().to_vec()),
        ("huge_numbers", small.replace("9 s", "1e300 s").into_bytes()),
    ]
}

/// Operations of the target `session`, in its input format. The highest bit of an operation selects the sender.
fn session() -> Seeds {
    const SENDER_TIMER: u8 = 0x90;
    const TO_RECEIVER: u8 = 48;
    const TO_SENDER: u8 = 0xB0;
    const DAMAGED_TO_SENDER: [u8; 2] = [0xD0, 9];
    let exchange = [SENDER_TIMER, TO_RECEIVER, TO_SENDER].repeat(60);
    let unanswered = [SENDER_TIMER].repeat(120);
    let damaged = [&[SENDER_TIMER, TO_RECEIVER][..], &DAMAGED_TO_SENDER].concat().repeat(30);
    let doubled = [SENDER_TIMER, TO_RECEIVER, TO_RECEIVER, TO_SENDER, TO_SENDER].repeat(30);
    let clock_jumps = [&exchange[..], &[0xF7, 0x40, SENDER_TIMER, TO_RECEIVER, 15, 0xFF], &exchange[..30]].concat();
    // The first byte of a seed selects the payload of the session. In the seed `repaired`, the byte 2 selects RTP
    // packets of another program. Every second packet of this session is lost on the way to the receiver.
    let of = |source: u8, number: u8| {
        [&[0xFC, 20][..], &[0x80, 96, 0, number, 0, 0, 0, number, 0, 0, 0, source], &[7; 8]].concat()
    };
    let packet = |number| of(1, number);
    let lossy = |number: u8| match number % 2 {
        0 => {
            [&packet(number)[..], &[SENDER_TIMER, SENDER_TIMER, TO_RECEIVER, 16, TO_SENDER, SENDER_TIMER, TO_RECEIVER]]
                .concat()
        }
        _ => [&packet(number)[..], &[SENDER_TIMER]].concat(),
    };
    let repaired = [&[2][..], &(1..60).flat_map(lossy).collect::<Vec<u8>>()].concat();
    // If the first byte is 0x80, the session carries packets of two sources (SSRCs).
    let two_sources =
        |number: u8| [&of(1, number)[..], &of(2, number), &[SENDER_TIMER, TO_RECEIVER, SENDER_TIMER]].concat();
    let two_sources = [&[0x80][..], &(1..60).flat_map(two_sources).collect::<Vec<u8>>()].concat();
    let ended = [&exchange[..90], &[0xFF, 0xFF, TO_RECEIVER, SENDER_TIMER]].concat();
    let key_frames = [SENDER_TIMER, TO_RECEIVER, 126, 0, TO_SENDER, 126, 1, 16, TO_SENDER].repeat(20);
    vec![
        ("exchange", exchange),
        ("key_frames", key_frames),
        ("repaired", repaired),
        ("two_sources", two_sources),
        ("unanswered", unanswered),
        ("damaged", damaged),
        ("doubled", doubled),
        ("clock_jumps", clock_jumps),
        ("ended", ended),
        ("noise", vec![32, 8, 0x80, 201, 0, 1, 0, 0, 0, 9, 0xA0, 4, 0x80, 200, 0, 0]),
    ]
}

fn flow_pair() -> Seeds {
    const SENDER_TIMER: u8 = 0x90;
    const RECEIVER_TIMER: u8 = 0x10;
    const TO_RECEIVER: u8 = 48;
    const TO_SENDER: u8 = 0xB0;
    const DAMAGED_TO_RECEIVER: [u8; 2] = [64, 30];
    // `ADU` sends 60 bytes that end an ADU; `PART` sends 60 bytes of an ADU that continues.
    const ADU: [u8; 2] = [0xD3, 20];
    const PART: [u8; 2] = [0x53, 20];
    const WRITE: [u8; 2] = [96, 0xFF];
    const READ: [u8; 2] = [104, 0xFF];
    const STOP: [u8; 2] = [0xFF, 0xFF];
    let turn = [&ADU[..], &[SENDER_TIMER], &WRITE, &READ, &[TO_RECEIVER, TO_SENDER]].concat();
    let lossy =
        [&ADU[..], &PART, &ADU, &[SENDER_TIMER], &WRITE, &READ, &DAMAGED_TO_RECEIVER, &[RECEIVER_TIMER]].concat();
    let noise =
        [&turn[..], &[112, 12], &AduHeader { number: 9, length: 1 }.to_bytes(), &[112, 4, 1, 2, 3, 4], &READ].concat();
    let ended = [&turn.repeat(20)[..], &STOP, &WRITE, &READ, &[120, 0, RECEIVER_TIMER, RECEIVER_TIMER]].concat();
    let part = AduPart { adu: AduHeader { number: 258, length: 5120 }, offset: 512, since_switch: 3 };
    vec![
        ("exchange", turn.repeat(40)),
        ("lossy", lossy.repeat(20)),
        ("noise", noise),
        ("ended", ended),
        ("hello", PairHello { port: 5004, ssrc: 7 }.to_bytes().to_vec()),
        ("adu", AduHeader { number: 258, length: 5120 }.to_bytes().to_vec()),
        ("part", written(|out| part.encode(out))),
    ]
}

/// Operations of the target `server`, in its input format.
fn server() -> Seeds {
    const SECURE: [u8; 1] = [1];
    const INSECURE: [u8; 1] = [0];
    const WAIT_A_SECOND: [u8; 2] = [30, 1];
    const QUESTION: [u8; 2] = [64, 0];
    const QUESTION_ON_PATHS: [u8; 2] = [65, 4];
    const AGAIN: [u8; 1] = [96];
    const DAMAGED: [u8; 2] = [112, 30];
    const CUT: [u8; 2] = [128, 79];
    const MEDIA: [u8; 4] = [144, 2, b'o', b'k'];
    const MEDIA_ON_A_PATH: [u8; 3] = [153, 1, b'o'];
    const REPORT: [u8; 6] = [192, 4, 0, 0, 0, 1];
    const GOODBYE: [u8; 2] = [205, 0];
    let elsewhere = |place: u8| [224, place];
    let session = [&QUESTION[..], &MEDIA, &REPORT, &WAIT_A_SECOND].concat();
    let replays = [&SECURE[..], &session, &AGAIN, &elsewhere(1), &AGAIN, &DAMAGED, &CUT].concat();
    let paths =
        [&SECURE[..], &QUESTION_ON_PATHS, &MEDIA_ON_A_PATH, &elsewhere(1), &QUESTION_ON_PATHS, &MEDIA_ON_A_PATH];
    let questions: Vec<u8> = (0..8).flat_map(|variant| [64 + variant % 4, variant]).collect();
    let nowhere = [&INSECURE[..], &elsewhere(2), &questions, &elsewhere(5), &session, &[208, 22], &session].concat();
    let noise = [&SECURE[..], &[32, 8, b'e', b'q', 1, 1, 0, 0, 0, 0], &[32, 3, 0x80, 96, 0], &[32, 0]].concat();
    vec![
        ("session", [&SECURE[..], &session.repeat(3)].concat()),
        ("without_key", [&INSECURE[..], &session.repeat(2), &GOODBYE].concat()),
        ("replays", replays),
        ("paths", paths.concat()),
        ("full", [&SECURE[..], &questions, &[31, 9], &questions].concat()),
        ("nowhere", nowhere),
        ("noise", noise),
        ("senseless", [&SECURE[..], &QUESTION, &[216, 3, 22, 254, 253], &QUESTION, &[217, 90, 64], &session].concat()),
    ]
}

/// Operations of the target `dtls_srtp`, in its input format.
fn dtls_srtp() -> Seeds {
    const ALL_ARRIVES: [u8; 1] = [0];
    const MEDIA: [u8; 5] = [0xE0, 96, b'o', b'k', b'!'];
    const REPORT: [u8; 5] = [0xF1, 201, 0, 1, 2];
    const A_SECOND: [u8; 2] = [0xB0, 30];
    const RESTART: [u8; 2] = [0xC0, 0];
    const CLOSE: [u8; 2] = [0xD1, 0];
    let session = [&ALL_ARRIVES[..], &MEDIA, &REPORT, &ALL_ARRIVES].concat();
    let damaged: Vec<u8> = (0..6).flat_map(|at| [0x33, 40 + at, 0x30, 0, 0x32, 70 + at]).collect();
    let cut_and_repeated = [0x35, 60, 0x37, 0, 0x36, 0, 0x39, 7, 0x3B, 9, 0x3F, 0];
    let noise = [0x91, 5, 22, 254, 253, 0, 0, 0xA0, 3, 0x80, 96, 0, 0x91, 1, 21];
    vec![
        ("session", [&session[..], &A_SECOND, &MEDIA, &ALL_ARRIVES].concat()),
        ("restart", [&session[..], &RESTART, &session, &CLOSE, &ALL_ARRIVES, &RESTART, &session].concat()),
        ("damaged", [&damaged[..], &A_SECOND, &session].concat()),
        ("cut_and_repeated", [&cut_and_repeated[..], &A_SECOND, &A_SECOND, &session].concat()),
        ("noise", [&noise[..], &session, &noise, &session].concat()),
    ]
}
