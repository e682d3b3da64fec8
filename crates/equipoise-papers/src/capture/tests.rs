//! Tests of the analysis of captures, with captures that the tests build frame by frame.

use etherparse::{IpNumber, PacketBuilder, TcpOptionElement};
use proptest::prelude::*;

use super::*;

/// The file format of a capture: pcap with microseconds, pcap with nanoseconds in big-endian order, or pcapng.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Micros,
    NanosBigEndian,
    Ng,
}

/// Builds a capture of a connection between 10.0.0.1:1000 (the near end) and 10.0.0.2:2000 (the far end).
struct Script {
    form: Form,
    link: u32,
    bytes: Vec<u8>,
}

/// The end of the connection that sends a segment.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Near,
    Far,
}
use End::{Far, Near};

/// The flags and numbers of a TCP segment. Sequence numbers are counted from zero after the SYN.
#[derive(Clone, Copy, Default)]
struct Tcp {
    syn: bool,
    fin: bool,
    seq: u32,
    ack: Option<u32>,
    data: usize,
}

const ETHERNET: u32 = 1;
/// The initial sequence numbers of both ends. The near end's sequence number wraps in its second segment of 1000 bytes.
const NEAR_START: u32 = u32::MAX - 1500;
const FAR_START: u32 = 7000;

impl Script {
    fn new(form: Form, link: u32) -> Self {
        let mut bytes = Vec::new();
        match form {
            Form::Micros => {
                bytes.extend(0xA1B2_C3D4u32.to_le_bytes());
                bytes.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0]);
                bytes.extend(link.to_le_bytes());
            }
            Form::NanosBigEndian => {
                bytes.extend(0xA1B2_3C4Du32.to_be_bytes());
                bytes.extend([0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0]);
                bytes.extend(link.to_be_bytes());
            }
            Form::Ng => {
                let mut body = 0x1A2B_3C4Du32.to_le_bytes().to_vec();
                body.extend([1, 0, 0, 0]);
                body.extend([0xFF; 8]);
                block(&mut bytes, 0x0A0D_0D0A, &body);
                // An interface whose timestamps have a resolution of nanoseconds. Option 9 is `if_tsresol`.
                let mut body = (link as u16).to_le_bytes().to_vec();
                body.extend([0, 0, 0, 0, 4, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
                block(&mut bytes, 1, &body);
            }
        }
        Self { form, link, bytes }
    }

    /// Adds a frame whose capture time is 1 s plus `micros` microseconds.
    fn frame(&mut self, micros: u64, frame: &[u8]) {
        let nanos = 1_000_000_000 + micros * 1000;
        let length = frame.len() as u32;
        match self.form {
            Form::Micros => {
                let times = [(nanos / 1_000_000_000) as u32, (nanos % 1_000_000_000 / 1000) as u32];
                self.bytes.extend([times[0], times[1], length, length].iter().flat_map(|word| word.to_le_bytes()));
                self.bytes.extend(frame);
            }
            Form::NanosBigEndian => {
                let times = [(nanos / 1_000_000_000) as u32, (nanos % 1_000_000_000) as u32];
                self.bytes.extend([times[0], times[1], length, length].iter().flat_map(|word| word.to_be_bytes()));
                self.bytes.extend(frame);
            }
            Form::Ng => {
                let words = [0, (nanos >> 32) as u32, nanos as u32, length, length];
                let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                body.extend(frame);
                body.resize(body.len().next_multiple_of(4), 0);
                block(&mut self.bytes, 6, &body);
            }
        }
    }

    fn tcp(&mut self, micros: u64, from: End, tcp: Tcp) -> &mut Self {
        let frame = ethernet(from, tcp, 64);
        self.frame(micros, &frame);
        self
    }

    /// Adds the handshake. The near end opens the connection, and the capture is made at this end. The round-trip time
    /// is 30 ms.
    fn handshake(&mut self) -> &mut Self {
        self.tcp(0, Near, Tcp { syn: true, ..Tcp::default() });
        self.tcp(30_000, Far, Tcp { syn: true, ack: Some(0), ..Tcp::default() });
        self.tcp(30_010, Near, Tcp { ack: Some(0), ..Tcp::default() })
    }

    fn data(&mut self, micros: u64, seq: u32, data: usize) -> &mut Self {
        self.tcp(micros, Near, Tcp { seq, ack: Some(0), data, ..Tcp::default() })
    }

    fn ack(&mut self, micros: u64, ack: u32) -> &mut Self {
        self.tcp(micros, Far, Tcp { ack: Some(ack), ..Tcp::default() })
    }

    fn analyse(&self, rule: AckRule) -> Analysis {
        analyse(self.bytes.as_slice(), &Options { rule, bin: None }).expect("a capture")
    }

    /// Analyses the capture, and returns the direction in which the near end sends data.
    fn near(&self, rule: AckRule) -> Direction {
        self.analyse(rule).connections.remove(0).directions.remove(0)
    }
}

fn block(out: &mut Vec<u8>, kind: u32, body: &[u8]) {
    let length = (body.len() + 12) as u32;
    out.extend(kind.to_le_bytes());
    out.extend(length.to_le_bytes());
    out.extend(body);
    out.extend(length.to_le_bytes());
}

/// Builds an Ethernet frame with a TCP segment. A SYN announces an MSS of 1000 bytes.
fn ethernet(from: End, tcp: Tcp, hops: u8) -> Vec<u8> {
    let (ours, theirs) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let (source, target, ports, starts) = match from {
        Near => (ours, theirs, (1000, 2000), (NEAR_START, FAR_START)),
        Far => (theirs, ours, (2000, 1000), (FAR_START, NEAR_START)),
    };
    let sequence = starts.0.wrapping_add(tcp.seq).wrapping_add(u32::from(!tcp.syn));
    let mut builder =
        PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4(source, target, hops).tcp(ports.0, ports.1, sequence, 9);
    if let Some(ack) = tcp.ack {
        builder = builder.ack(starts.1.wrapping_add(ack).wrapping_add(1));
    }
    if tcp.syn {
        builder = builder.syn().options(&[TcpOptionElement::MaximumSegmentSize(1000)]).expect("it fits");
    }
    if tcp.fin {
        builder = builder.fin();
    }
    let mut frame = Vec::new();
    builder.write(&mut frame, &vec![0; tcp.data]).expect("a vector takes all");
    frame
}

fn rtts_ms(direction: &Direction) -> (u64, Option<f64>) {
    let rtt = direction.rtt.as_ref();
    (rtt.map_or(0, |rtt| rtt.samples), rtt.map(|rtt| (rtt.mean_s * 1e6).round() / 1e3))
}

fn left_out(direction: &Direction) -> Vec<(&str, u64)> {
    direction.left_out.iter().map(|(reason, count)| (reason.as_str(), *count)).collect()
}

/// In all file formats, the capture contains the same two segments and their acknowledgement. The sequence numbers
/// wrap.
#[test]
fn a_pair_of_segments_gives_the_time_of_the_second_in_every_form() {
    for form in [Form::Micros, Form::NanosBigEndian, Form::Ng] {
        let mut script = Script::new(form, ETHERNET);
        script.handshake().data(40_000, 0, 1000).data(41_000, 1000, 1000).ack(66_000, 2000);
        let near = script.near(AckRule::Pair);
        assert_eq!(rtts_ms(&near), (1, Some(25.0)));
        assert_eq!((near.side, near.data_segments, near.data_bytes), (Side::Sender, 2, 2000));
        assert_eq!(script.analyse(AckRule::Pair).ended, None);
    }
}

#[test]
fn one_segment_is_the_timers_and_three_are_too_many_unless_every_one_counts() {
    let mut script = Script::new(Form::Micros, ETHERNET);
    script.handshake().data(40_000, 0, 1000).ack(280_000, 1000);
    script.data(300_000, 1000, 1000).data(300_100, 2000, 1000).data(300_200, 3000, 1000).ack(330_200, 4000);
    let near = script.near(AckRule::Pair);
    assert_eq!(rtts_ms(&near), (0, None));
    assert_eq!(left_out(&near), [("more than two segments", 1), ("one segment: delayed-ACK timer", 1)]);
    let near = script.near(AckRule::Every);
    assert_eq!(rtts_ms(&near), (2, Some(135.0)));
}

/// Tests Karn's rule. If data was sent twice, it is unknown which of the two segments was acknowledged.
#[test]
fn acknowledgements_of_repeated_segments_give_nothing() {
    let mut script = Script::new(Form::Micros, ETHERNET);
    script.handshake().data(40_000, 0, 1000).data(41_000, 1000, 1000).ack(70_000, 0).ack(70_100, 0);
    script.data(300_000, 0, 1000).ack(330_000, 2000);
    script.data(340_000, 2000, 1000).data(340_100, 3000, 1000).ack(370_100, 4000);
    let near = script.near(AckRule::Every);
    assert_eq!((rtts_ms(&near), near.retransmitted), ((1, Some(30.0)), 1));
    assert_eq!(left_out(&near), [("duplicate", 2), ("retransmitted", 1)]);
}

/// Hardware offload receives 4000 bytes from TCP at once, and sends them in four segments of 1000 bytes.
#[test]
fn what_a_card_cuts_into_segments_counts_as_these() {
    let mut script = Script::new(Form::Micros, ETHERNET);
    script.handshake().data(40_000, 0, 4000).ack(70_000, 2000).ack(71_000, 4000);
    let near = script.near(AckRule::Pair);
    assert_eq!((near.data_segments, rtts_ms(&near)), (4, (2, Some(30.5))));
}

#[test]
fn an_acknowledgement_within_a_segment_or_of_one_not_captured_gives_nothing() {
    let mut script = Script::new(Form::Micros, ETHERNET);
    script.handshake().data(40_000, 0, 1000).data(40_100, 1000, 1000).ack(70_000, 1500).ack(75_000, 2000);
    // The segment before sequence number 3000 is missing in the capture.
    script.data(80_000, 3000, 1000).ack(90_000, 3000);
    let near = script.near(AckRule::Every);
    assert_eq!(rtts_ms(&near), (1, Some(34.9)));
    assert_eq!(
        left_out(&near),
        [("not at a segment's end", 1), ("segment not captured, or not acknowledged whole", 1)]
    );
}

#[test]
fn beside_the_receiver_the_times_are_said_to_be_its_own() {
    let mut script = Script::new(Form::Micros, ETHERNET);
    script.tcp(0, Near, Tcp { syn: true, ..Tcp::default() });
    script.tcp(10, Far, Tcp { syn: true, ack: Some(0), ..Tcp::default() });
    script.tcp(30_000, Near, Tcp { ack: Some(0), ..Tcp::default() });
    script.data(40_000, 0, 1000).data(41_000, 1000, 1000).ack(41_040, 2000);
    assert_eq!(script.near(AckRule::Pair).side, Side::Receiver);
}

#[test]
fn without_a_handshake_the_hops_tell_the_side() {
    for (near_hops, far_hops, side) in [(64, 51, Side::Sender), (50, 128, Side::Receiver), (64, 64, Side::Unknown)] {
        let mut script = Script::new(Form::Micros, ETHERNET);
        script.frame(0, &ethernet(Near, Tcp { data: 100, ack: Some(0), ..Tcp::default() }, near_hops));
        script.frame(30_000, &ethernet(Far, Tcp { ack: Some(100), ..Tcp::default() }, far_hops));
        assert_eq!(script.near(AckRule::Every).side, side);
    }
}

#[test]
fn the_same_ports_again_are_another_connection() {
    let mut script = Script::new(Form::Micros, ETHERNET);
    script.handshake().data(40_000, 0, 1000).ack(70_000, 1000);
    script.tcp(80_000, Near, Tcp { fin: true, seq: 1000, ack: Some(0), ..Tcp::default() }).ack(110_000, 1001);
    script.tcp(500_000, Near, Tcp { syn: true, seq: 90_000, ..Tcp::default() });
    let analysis = script.analyse(AckRule::Every);
    assert_eq!(analysis.connections.len(), 2);
    assert!((analysis.connections[1].start_s - 0.5).abs() < 1e-9);
    assert!(analysis.connections[0].directions[0].left_out.is_empty(), "a FIN's acknowledgement is none of data");
}

#[test]
fn other_links_and_ip_versions_are_read_and_strangers_counted() {
    let inner = |frame: &[u8]| frame[14..].to_vec();
    let plain = ethernet(Near, Tcp { data: 10, ack: Some(0), ..Tcp::default() }, 64);
    let mut vlan = plain[..12].to_vec();
    vlan.extend([0x81, 0, 0, 5]);
    vlan.extend(&plain[12..]);
    let mut sll = vec![0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0];
    sll.extend(inner(&plain));
    // For packets of the loopback device, `tcpdump -i any -y LINUX_SLL` writes this header. It contains the device type
    // (ARPHRD) 772.
    let mut sll_loopback = vec![0, 0, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0];
    sll_loopback.extend(inner(&plain));
    let mut sll2 = vec![8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0];
    sll2.extend(inner(&plain));
    let mut loopback = vec![2, 0, 0, 0];
    loopback.extend(inner(&plain));
    let mut six = Vec::new();
    let builder = PacketBuilder::ethernet2([1; 6], [2; 6]).ipv6([1; 16], [2; 16], 64).tcp(1, 2, 3, 4).ack(5);
    builder.write(&mut six, &[0; 10]).expect("a vector takes all");
    let cooked = [(113, sll), (113, sll_loopback), (276, sll2)];
    let links = [(1, plain.clone()), (1, vlan), (101, inner(&plain)), (0, loopback), (1, six)];
    for (link, frame) in links.into_iter().chain(cooked) {
        let mut script = Script::new(Form::Micros, link);
        script.frame(0, &frame);
        let analysis = script.analyse(AckRule::Every);
        assert_eq!((analysis.segments, script.link), (1, link), "{:?}", analysis.skipped);
        assert_eq!(analysis.connections[0].directions[0].data_bytes, 10, "link type {link}");
    }
    let mut script = Script::new(Form::Micros, 1);
    let mut udp = Vec::new();
    PacketBuilder::ethernet2([1; 6], [2; 6])
        .ipv4([1; 4], [2; 4], 9)
        .udp(1, 2)
        .write(&mut udp, &[0; 9])
        .expect("it fits");
    let mut fragment = Vec::new();
    let mut header = etherparse::Ipv4Header::new(20, 9, IpNumber::TCP, [1; 4], [2; 4]).expect("it fits");
    header.more_fragments = true;
    PacketBuilder::ethernet2([1; 6], [2; 6])
        .ip(etherparse::IpHeaders::Ipv4(header, etherparse::Ipv4Extensions::default()))
        .write(&mut fragment, IpNumber::TCP, &[0; 20])
        .expect("it fits");
    script.frame(0, &udp);
    script.frame(0, &fragment);
    script.frame(0, &[0xFF; 20]);
    let reasons: Vec<_> = script.analyse(AckRule::Every).skipped.into_keys().collect();
    assert_eq!(reasons, ["fragment", "not IP", "not TCP"]);
}

#[test]
fn what_is_no_capture_is_refused_and_compressed_ones_are_read() {
    assert!(matches!(analyse(&b""[..], &Options::default()), Err(CaptureError::Empty)));
    assert!(matches!(analyse(&b"name = \"demo\""[..], &Options::default()), Err(CaptureError::NotACapture)));
    let mut script = Script::new(Form::Ng, ETHERNET);
    script.handshake().data(40_000, 0, 1000).data(41_000, 1000, 1000).ack(66_000, 2000);
    let read = analyse(packed(&script.bytes).as_slice(), &Options::default()).expect("a capture");
    assert_eq!(read, script.analyse(AckRule::Pair));
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).expect("a vector takes all");
    packed.finish().expect("a vector takes all")
}

/// Builds a capture with `pairs` pairs of segments. Each pair is acknowledged.
fn transfer(pairs: u32) -> Script {
    let mut script = Script::new(Form::Micros, ETHERNET);
    script.handshake();
    for pair in 0..pairs {
        let start = 1_000_000 + u64::from(pair) * 100_000;
        script.data(start, pair * 2000, 1000).data(start + 100, pair * 2000 + 1000, 1000);
        script.ack(start + 40_000, pair * 2000 + 2000);
    }
    script
}

/// If this test fails, the reader drops its buffer of 512 KiB on a read error, so nothing of a smaller capture is
/// analysed.
#[test]
fn a_compressed_capture_that_is_cut_off_gives_what_came_before_whatever_its_size() {
    for pairs in [30, 200, 3000] {
        let script = transfer(pairs);
        let (whole, packed) = (script.analyse(AckRule::Pair), packed(&script.bytes));
        let cut = analyse(&packed[..packed.len() / 2], &Options::default()).expect("its beginning is there");
        assert!(cut.ended.is_some() && cut.frames > whole.frames / 10 && cut.frames < whole.frames, "{}", cut.frames);
    }
    // All frames are in the file, but the end of the gzip stream is missing. The analysis must report this.
    let script = transfer(30);
    let packed = packed(&script.bytes);
    let cut = analyse(&packed[..packed.len() - 8], &Options::default()).expect("all frames are there");
    assert_eq!(cut.frames, script.analyse(AckRule::Pair).frames);
    assert!(cut.ended.is_some_and(|ended| ended.starts_with("cut off")));
}

/// If the header of the capture is incomplete, only the reason for the failure can be reported.
#[test]
fn a_compressed_capture_without_a_whole_header_says_why_it_cannot_be_read() {
    let error = analyse(&packed(&transfer(30).bytes)[..12], &Options::default()).expect_err("nothing is there");
    assert!(
        matches!(&error, CaptureError::Read(source) if source.kind() == std::io::ErrorKind::UnexpectedEof),
        "{error:?}"
    );
}

/// Analyses a published capture of a call on the loopback device, with Linux cooked headers. If the test fails, the
/// UDP packets of the capture count as unreadable.
#[test]
fn a_cooked_capture_of_loopback_by_others_is_read() {
    let default = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("EQUIPOISE_TEST_DATA").map_or(default, Into::into);
    let Ok(file) = std::fs::File::open(folder.join("rtp/pcap/ndpi-freeswitch-sr-rr-sdes.pcap.gz")) else {
        println!("skipped: test data (EQUIPOISE_TEST_DATA): a capture of loopback in {}", folder.display());
        return;
    };
    let analysis = analyse(file, &Options::default()).expect("a capture");
    assert!(analysis.frames > 0 && !analysis.skipped.contains_key("headers not captured"), "{:?}", analysis.skipped);
}

/// If a capture is cut off at any byte, the analysis must have fewer frames. It must report the cut, unless the cut is
/// directly after a frame or after a header of the file.
#[test]
fn a_capture_that_is_cut_off_gives_what_came_before() {
    for form in [Form::Micros, Form::NanosBigEndian, Form::Ng] {
        let mut script = Script::new(form, ETHERNET);
        script.handshake().data(40_000, 0, 1000).data(41_000, 1000, 1000).ack(66_000, 2000);
        let whole = script.analyse(AckRule::Pair);
        let mut boundaries = 0;
        for length in 1..script.bytes.len() {
            let Ok(found) = analyse(&script.bytes[..length], &Options::default()) else { continue };
            assert!(found.frames < whole.frames);
            boundaries += u32::from(found.ended.is_none());
        }
        // A cut directly after a frame, or after a header of the file, cannot be noticed.
        assert!((6..=8).contains(&boundaries), "{boundaries}");
    }
}

/// The capture contains more connections than the limit, as in a port scan or an attack that fills the memory. The
/// first connections, up to the limit, must be analysed. The segments of the other connections must be counted.
#[test]
fn more_connections_than_are_kept_are_counted_and_the_first_analysed() {
    let mut script = Script::new(Form::Micros, ETHERNET);
    script.handshake().data(40_000, 0, 1000).data(41_000, 1000, 1000).ack(66_000, 2000);
    // A new connection opens between the addresses of the first connection. Its segments must not count for the first
    // connection.
    script
        .tcp(80_000, Near, Tcp { syn: true, seq: 90_000, ..Tcp::default() })
        .data(90_000, 2000, 1000)
        .ack(95_000, 3000);
    let room = Room { connections: 1, ..Room::DEFAULT };
    let options = Options { rule: AckRule::Every, bin: None };
    let analysis = analyse_within(room, script.bytes.as_slice(), &options).expect("a capture");
    assert_eq!((analysis.connections.len(), analysis.segments), (1, 6));
    assert_eq!(analysis.skipped, BTreeMap::from([("of more connections than are kept".to_owned(), 3)]));
    assert_eq!(rtts_ms(&analysis.connections[0].directions[0]), (1, Some(25.0)));
}

#[test]
fn segments_samples_and_bars_are_bounded_over_all_connections_together() {
    let near = |room| {
        let options = Options { rule: AckRule::Every, bin: Some(Span::from_nanos(1)) };
        let analysis = analyse_within(room, transfer(30).bytes.as_slice(), &options).expect("a capture");
        analysis.connections.into_iter().flat_map(|found| found.directions).next().expect("the near end's")
    };
    let few = near(Room { samples: 10, ..Room::DEFAULT });
    assert_eq!((rtts_ms(&few).0, left_out(&few)), (10, vec![("of more samples than are kept", 20)]));
    // With space for one segment, the second segment of each pair replaces the first segment. The samples are the same,
    // because an acknowledgement gives a sample only for the last segment that it covers.
    let one = near(Room { pieces: 1, ..Room::DEFAULT });
    assert_eq!(rtts_ms(&one), rtts_ms(&near(Room::DEFAULT)));
    assert_eq!(rtts_ms(&near(Room { pieces: 0, ..Room::DEFAULT })).0, 0);
    let spread = (0..100).map(|i| f64::from(i * i)).collect();
    let coarse = Distribution::of(spread, Some(Span::from_millis(1)), 0).expect("samples");
    assert!(coarse.counts.len() <= 11, "{} bars", coarse.counts.len());
}

proptest! {
    /// If this test fails, there are files for which the analysis panics or counts too many frames.
    #[test]
    fn any_bytes_behind_a_header_are_survived(garbage: Vec<u8>, ng: bool, at in 0usize..400, byte: u8) {
        let mut script = Script::new(if ng { Form::Ng } else { Form::Micros }, ETHERNET);
        script.handshake().data(40_000, 0, 1000);
        let place = at % script.bytes.len();
        script.bytes[place] = byte;
        script.bytes.extend(garbage);
        if let Ok(analysis) = analyse(script.bytes.as_slice(), &Options { rule: AckRule::Every, bin: None }) {
            prop_assert!(analysis.frames <= 20 + script.bytes.len() as u64 / 12);
        }
    }
}

/// The expected values were computed with scipy 1.15 (`skew`, `kurtosis`, `kstest` and `curve_fit`) from the same 500
/// numbers, with histogram bars of 1 ms.
#[test]
fn moments_distance_and_fit_are_those_of_scipy() {
    let sample = |i: u32| 0.020 + 0.004 * f64::from(i * i).sin() + 0.001 * f64::from(i % 7);
    let found = Distribution::of((0..500).map(sample).collect(), Some(Span::from_millis(1)), 5000).expect("samples");
    let close = |found: f64, scipy: f64| assert!((found - scipy).abs() <= 1e-6 * scipy.abs(), "{found}, scipy {scipy}");
    close(found.mean_s, 0.022_987_560_448_3);
    close(found.deviation_s.expect("many"), 0.003_500_470_006_6);
    close(found.skewness.expect("they differ"), -0.023_016_453_782_7);
    close(found.excess_kurtosis.expect("they differ"), -0.737_637_797_737);
    close(found.ks_distance.expect("they differ"), 0.035_833_897_782_522);
    close(found.p95_s, 0.028_852_92);
    assert_eq!(found.counts, [22, 23, 21, 40, 38, 46, 60, 56, 46, 50, 24, 29, 31, 14]);
    close(found.first_s, 0.016);
    let fit = found.fit.expect("a bell");
    let found = [
        (fit.a, 52.504_384_834_5),
        (fit.b_s, 0.023_040_383_205_9),
        (fit.c_s, 0.004_163_487_513_3),
        (fit.r2, 0.798_593_825_8),
    ];
    for (found, scipy) in found {
        close(found, scipy);
    }
    let errors = [3.333_452_357, 0.000_309_815_243_5, 0.000_372_455_792_8];
    for (found, scipy) in fit.standard_errors.iter().zip(errors) {
        assert!((found / scipy - 1.0).abs() < 1e-4, "{found}, scipy {scipy}");
    }
}

#[test]
fn degenerate_samples_have_no_shape_and_no_nan() {
    assert_eq!(Distribution::of(vec![f64::NAN], None, 5000), None);
    let few =
        Distribution::of((0..29).map(|i| 0.03 + 0.001 * f64::from(i % 5)).collect(), None, 5000).expect("samples");
    assert_eq!(few.fit, None, "29 samples have no shape");
    for samples in [vec![0.03], vec![0.03; 9], vec![0.03, 0.031], vec![0.0, 1e9]] {
        let found = Distribution::of(samples.clone(), None, 5000).expect("samples");
        assert_eq!(found.counts.iter().sum::<u64>(), samples.len() as u64);
        let json = serde_json::to_string(&found).expect("plain numbers");
        assert!(!json.contains("NaN") && found.counts.len() <= 5002, "{json}");
    }
}

/// The round-trip times of this capture are drawn from a normal distribution with a mean of 40 ms and a standard
/// deviation of 5 ms. The fit must find these parameters.
#[test]
fn a_capture_of_known_round_trips_gives_their_law() {
    use rand_core::{Rng as _, SeedableRng as _};
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(1);
    let mut uniform = || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    // The Box-Muller transform (Box 1958).
    let mut normal = || (-2.0 * (1.0 - uniform()).ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
    let mut script = Script::new(Form::NanosBigEndian, ETHERNET);
    script.handshake();
    for pair in 0..4000u32 {
        let start = 1_000_000 + u64::from(pair) * 200_000;
        let rtt = (40_000.0 + 5000.0 * normal()) as u64;
        script.data(start, pair * 2000, 1000).data(start + 500, pair * 2000 + 1000, 1000);
        script.ack(start + 500 + rtt, pair * 2000 + 2000);
    }
    let near = script.near(AckRule::Pair);
    let rtt = near.rtt.expect("many samples");
    let fit = rtt.fit.expect("a bell");
    assert_eq!((rtt.samples, near.left_out.len()), (4000, 0));
    let [_, b, c] = fit.standard_errors;
    assert!((fit.b_s - 0.040).abs() < 4.0 * b.max(0.005 / 4000f64.sqrt()), "{fit:?}");
    assert!((fit.c_s - 0.005).abs() < 4.0 * c.max(0.005 / 8000f64.sqrt()), "{fit:?}");
    assert!(fit.r2 > 0.97 && rtt.ks_distance.is_some_and(|distance| distance < 0.02), "{rtt:?}");
}
