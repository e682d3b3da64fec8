use std::path::PathBuf;
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::*;

/// The fields of an RTP packet that a test sends from 10.0.0.1 to 10.0.0.2.
struct Packet {
    at_ns: i64,
    interface: u32,
    sequence: u16,
    timestamp: u32,
    payload_type: u8,
}

fn bytes(packet: &Packet) -> Vec<u8> {
    let mut bytes = vec![0x80, packet.payload_type];
    bytes.extend(packet.sequence.to_be_bytes());
    bytes.extend(packet.timestamp.to_be_bytes());
    bytes.extend([0, 0, 0, 7]);
    bytes.extend([0xAB; 160]);
    bytes
}

fn datagram(at_ns: i64, interface: u32, payload: &[u8]) -> Datagram<'_> {
    let address = |host: &str| host.parse().expect("an address");
    let (from, to) = (address("10.0.0.1:4000"), address("10.0.0.2:5000"));
    Datagram { at_ns, interface, from, to, size: payload.len() as u32 + 28, payload }
}

fn analysed(packets: &[Packet]) -> RtpAnalysis {
    let mut found = Found::default();
    for packet in packets {
        found.push(&datagram(packet.at_ns, packet.interface, &bytes(packet))).expect("RTP");
    }
    found.finish(packets.len() as u64, BTreeMap::new(), None)
}

/// Returns RTP packets. Each entry of `numbers` has a packet's sequence number and its delay in ms. One packet with 20
/// ms of G.711 is sent every 20 ms.
fn g711(numbers: &[(u16, i64)]) -> Vec<Packet> {
    let packet = |(place, &(sequence, late_ms)): (usize, &(u16, i64))| Packet {
        at_ns: (place as i64 * 20 + late_ms) * 1_000_000,
        interface: 0,
        sequence,
        timestamp: u32::from(sequence.wrapping_sub(numbers[0].0)) * 160,
        payload_type: 0,
    };
    numbers.iter().enumerate().map(packet).collect()
}

#[test]
fn loss_follows_from_the_highest_number_over_wraps_duplicates_and_late_packets() {
    let numbers = [65_533, 65_534, 65_535, 1, 0, 1, 3, 6].map(|sequence| (sequence, 0));
    let found = analysed(&g711(&numbers));
    let [stream] = found.streams.as_slice() else { panic!("one stream") };
    assert_eq!((stream.packets, stream.expected, stream.lost), (8, 10, 2));
    assert_eq!((stream.duplicates, stream.reordered), (1, 1));
    assert_eq!(stream.ssrc, "0x00000007");
    // The stream has 8 packets of 200 bytes within 140 ms.
    let rate = stream.rate_bps.expect("they lasted");
    assert!((rate - 8.0 * 200.0 * 8.0 / 0.14).abs() < 1e-6, "{rate}");
}

/// If every second packet is 4 ms late, the difference |D| between neighbouring packets is always 4 ms, and the jitter
/// J after n differences is 4 ms (1 - (15/16)ⁿ).
#[test]
fn jitter_is_the_filter_of_rfc_3550() {
    let numbers: Vec<_> = (0..101).map(|number| (number, i64::from(number % 2) * 4)).collect();
    let found = analysed(&g711(&numbers));
    let jitter = found.streams[0].jitter.expect("a known clock");
    let closed = |n: i32| 0.004 * (1.0 - (15.0f64 / 16.0).powi(n));
    assert!((jitter.last_s - closed(100)).abs() < 1e-12 && (jitter.max_s - closed(100)).abs() < 1e-12, "{jitter:?}");
    let mean = (1..=100).map(closed).sum::<f64>() / 100.0;
    assert!((jitter.mean_s - mean).abs() < 1e-12, "{jitter:?}");
    let unknown: Vec<_> = g711(&numbers).into_iter().map(|packet| Packet { payload_type: 96, ..packet }).collect();
    assert_eq!(analysed(&unknown).streams[0].jitter, None, "nobody has said what its clock is");
}

#[test]
fn what_two_interfaces_saw_has_delays() {
    let mut packets = Vec::new();
    for sequence in 0..50u16 {
        let at_ns = i64::from(sequence) * 20_000_000;
        let packet = |interface, at_ns| Packet { at_ns, interface, sequence, timestamp: 0, payload_type: 96 };
        packets.push(packet(0, at_ns));
        if sequence % 10 != 3 {
            packets.push(packet(1, at_ns + 5_000_000 + i64::from(sequence % 2) * 2_000_000));
        }
    }
    let found = analysed(&packets);
    let [near, far] = found.streams.as_slice() else { panic!("two places") };
    assert_eq!((near.delay, far.lost, near.lost), (None, 5, 0));
    let delay = far.delay.expect("both saw it");
    assert_eq!((delay.from_interface, delay.packets), (0, 45));
    let close = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
    assert!(close(delay.min_s, 0.005) && close(delay.max_s, 0.007), "{delay:?}");
    assert!(close(delay.mean_s, (25.0 * 5.0 + 20.0 * 7.0) / 45.0 * 1e-3), "{delay:?}");
}

/// A packet is sent twice, and the network delivers its first copy before the second copy is sent. If the test fails,
/// the analysis reports a delay from the receiver's interface to the sender's interface.
#[test]
fn the_interface_that_saw_a_stream_first_has_no_delay_even_if_a_packet_comes_again() {
    let packet = |at_ms: i64, interface, sequence| Packet {
        at_ns: at_ms * 1_000_000,
        interface,
        sequence,
        timestamp: 0,
        payload_type: 96,
    };
    let packets = [(0, 0, 1), (5, 1, 1), (20, 0, 2), (25, 1, 2), (30, 0, 2), (35, 1, 2)];
    let found = analysed(&packets.map(|(at_ms, interface, sequence)| packet(at_ms, interface, sequence)));
    let [near, far] = found.streams.as_slice() else { panic!("two places") };
    assert_eq!((near.interface, near.duplicates, near.delay), (0, 1, None));
    assert!(near.seconds.iter().all(|second| second.delay_mean_s.is_none()), "{near:?}");
    assert_eq!(far.delay.map(|delay| (delay.from_interface, delay.packets)), Some((0, 3)));
}

/// The report block is captured 50 ms after the sender report. The receiver held the sender report for 20 ms, so the
/// round-trip time is 30 ms.
#[test]
fn round_trips_are_from_a_sender_report_to_its_answer_less_what_the_receiver_held_it() {
    let mut report = vec![0x80, 200, 0, 6, 0, 0, 0, 7];
    report.extend([0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88]);
    report.extend([0; 12]);
    let mut answer = vec![0x81, 201, 0, 7, 0, 0, 0, 9, 0, 0, 0, 7];
    answer.extend([0; 12]);
    answer.extend([0x33, 0x44, 0x55, 0x66]);
    answer.extend(1311u32.to_be_bytes());
    let mut found = Found::default();
    for (at_ns, bytes) in [(1_000_000_000, &report), (1_050_000_000, &answer)] {
        found.push(&datagram(at_ns, 0, bytes)).expect("RTCP");
    }
    let found = found.finish(2, BTreeMap::new(), None);
    let [trip] = found.round_trips.as_slice() else { panic!("one pair") };
    assert_eq!((trip.sender_ssrc.as_str(), trip.reporter_ssrc.as_str()), ("0x00000007", "0x00000009"));
    let [sample] = trip.samples.as_slice() else { panic!("one sample") };
    assert!((sample.round_trip_s - (0.05 - 1311.0 / 65_536.0)).abs() < 1e-9 && (sample.at_s - 0.05).abs() < 1e-9);
}

#[test]
fn what_is_no_rtp_is_counted_by_its_reason() {
    let mut found = Found::default();
    assert!(found.push(&datagram(0, 0, &[0x16, 0xFE])).is_err(), "DTLS");
    assert!(found.push(&datagram(0, 0, &[])).is_err());
    assert!(found.push(&datagram(0, 0, &[0x80, 0])).is_err());
    assert!(found.push(&datagram(0, 0, &[0x80, 200, 0, 9])).is_err());
    let alone = analysed(&g711(&[(1, 0), (9, 0)]));
    assert!(alone.streams.is_empty() && alone.skipped.values().sum::<u64>() == 2, "{alone:?}");
}

/// The test's file has the header of rtpdump, and packets with their times in milliseconds.
#[test]
fn a_dump_is_read_to_its_end_or_to_where_it_is_cut() {
    let mut dump = b"#!rtpplay1.0 10.0.0.2/5000\n".to_vec();
    dump.extend([0; 8]);
    dump.extend([10, 0, 0, 1, 0x0F, 0xA0, 0, 0]);
    let entries = g711(&[(1, 0), (2, 0), (3, 0)]);
    for packet in &entries {
        let bytes = bytes(packet);
        dump.extend((bytes.len() as u16 + 8).to_be_bytes());
        dump.extend((bytes.len() as u16).to_be_bytes());
        dump.extend(((packet.at_ns / 1_000_000) as u32).to_be_bytes());
        dump.extend(bytes);
    }
    let found = analyse_rtp(dump.as_slice(), &RtpOptions::default()).expect("a dump");
    let stream = &found.streams[0];
    assert_eq!((stream.from.as_str(), stream.to.as_str()), ("10.0.0.1:4000", "10.0.0.2:5000"));
    assert_eq!((found.frames, stream.packets, found.ended), (3, 3, None));
    assert!((stream.end_s - 0.04).abs() < 1e-9);
    for cut in 0..dump.len() {
        // A truncated file may be refused. If the file is accepted, the result must have fewer packets than the result
        // for the complete file.
        if let Ok(found) = analyse_rtp(&dump[..cut], &RtpOptions::default()) {
            assert!(found.frames <= 2, "{cut}");
        }
    }
}

proptest! {
    /// If this test fails, some bytes or capture times cause a panic or impossible packet counts.
    #[test]
    fn any_packets_at_any_times_are_survived(
        packets in proptest::collection::vec(
            (any::<i64>(), 0..3u32, proptest::collection::vec(any::<u8>(), 12..40), any::<bool>()), 0..40),
    ) {
        let mut found = Found { options: RtpOptions { clock_rate: Some(90_000) }, ..Found::default() };
        for (at_ns, interface, mut bytes, is_ours) in packets {
            bytes[0] = 0x80;
            if is_ours {
                bytes[4..12].fill(0);
            }
            let _ = found.push(&datagram(at_ns, interface, &bytes));
        }
        let found = found.finish(0, BTreeMap::new(), None);
        for stream in &found.streams {
            prop_assert!(stream.packets > 0 && stream.duplicates + stream.reordered < stream.packets);
        }
    }
}

/// Parses a line of tshark's table of streams. Returns the stream's name, its numbers of packets and lost packets, and
/// its mean and maximum jitter in milliseconds.
fn told(line: &str) -> Option<(String, [f64; 4])> {
    let columns: Vec<_> = line.trim().trim_end_matches('X').split_whitespace().collect();
    let end = |back: usize| columns.get(columns.len().checked_sub(back)?)?.parse::<f64>().ok();
    let address = |host: usize| {
        let host_and_port = (columns.get(host)?, columns.get(host + 1)?);
        let (host, port) = host_and_port;
        Some(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
    };
    let ssrc = columns.iter().find(|column| column.starts_with("0x"))?.to_lowercase();
    Some((format!("{} {} {ssrc}", address(2)?, address(4)?), [end(9)?, end(8)?, end(2)?, end(1)?]))
}

/// Analyses all RTP captures in the test data. The streams and their counts must be those of tshark. If tshark knows
/// the clock rate of a stream, the jitter must also agree, to about 1 %.
#[test]
fn streams_are_those_of_tshark() {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data").into();
    let folder: PathBuf = std::env::var_os("EQUIPOISE_TEST_DATA").map_or(default, PathBuf::from).join("rtp/pcap");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("skipped: test data (EQUIPOISE_TEST_DATA): captures of RTP in {}", folder.display());
        return;
    };
    let mut seen = 0;
    for entry in entries {
        let path = entry.expect("readable").path();
        let mut tshark = Command::new("tshark");
        // Our analysis ignores signalling. With signalling, tshark would decode the last packets of one call as fax, so
        // the protocols SIP and T.38 are disabled.
        tshark.args(["-q", "--disable-protocol", "sip", "--disable-protocol", "t38"]);
        tshark.args(["--enable-heuristic", "rtp_udp", "-z", "rtp,streams", "-r"]).arg(&path);
        let Ok(printed) = tshark.stderr(Stdio::null()).output() else {
            println!("skipped: tshark: it is not installed");
            return;
        };
        let file = std::fs::File::open(&path).expect("readable");
        let found = analyse_rtp(file, &RtpOptions::default()).expect("a capture");
        let text = String::from_utf8_lossy(&printed.stdout).into_owned();
        let expected: BTreeMap<_, _> = text.lines().filter_map(told).collect();
        let name = path.display();
        let key = |stream: &RtpStream| format!("{} {} {}", stream.from, stream.to, stream.ssrc);
        let ours: Vec<_> = found.streams.iter().map(key).collect();
        assert!(
            ours.iter().all(|key| expected.contains_key(key)) && ours.len() == expected.len(),
            "{name}: {ours:?}, {expected:?}"
        );
        for stream in &found.streams {
            let [packets, lost, mean_ms, max_ms] = expected[&key(stream)];
            assert_eq!((stream.packets as f64, stream.lost as f64), (packets, lost), "{name}: {stream:?}");
            // tshark excludes the jitter after a duplicate from its mean and maximum, so the jitter of streams with
            // duplicates is not compared.
            let is_plain = mean_ms > 0.0 && stream.payload_types.len() == 1 && stream.duplicates == 0;
            if let Some(jitter) = stream.jitter.filter(|_| is_plain) {
                let is_close = |found_s: f64, ms: f64| (found_s * 1e3 - ms).abs() <= 0.0015 + 0.01 * ms;
                assert!(
                    is_close(jitter.mean_s, mean_ms) && is_close(jitter.max_s, max_ms),
                    "{name}: {jitter:?}, {mean_ms}, {max_ms}"
                );
                seen += 1;
            }
        }
    }
    assert!(seen >= 4, "jitter was compared of {seen} streams");
}
