//! Tests of a sender's and a receiver's chain of interceptors in simulated time, with a link between them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant as HostInstant};

use equipoise::units::{Instant, Rate, ReceiverClock, Schedule, Size, Span};
use equipoise_path::link::{FifoLink, LinkConfig, QueueLimit};
use equipoise_session::Ecn;
use equipoise_session::feedback::{Reporter, Reporting};
use rtc::interceptor::{
    Attribute, AttributedPacket, Interceptor, Packet, RTPHeaderExtension, Registry, Slot, StreamInfo, TaggedPacket,
    TwccReceiverBuilder, TwccSenderBuilder,
};
use rtc::rtcp::payload_feedbacks::picture_loss_indication::PictureLossIndication;
use rtc::rtp;
use rtc::sansio::Protocol as _;
use rtc::sdp::extmap::TRANSPORT_CC_URI;
use rtc::shared::TransportContext;
use rtc::shared::marshal::MarshalSize as _;

use super::*;

const SSRC: u32 = 7;
const RTX: u32 = 8;
const FEC: u32 = 9;
const MILLI: Duration = Duration::from_millis(1);
/// One-way delay without queueing.
const WAY: Duration = Duration::from_millis(20);

fn stream() -> StreamInfo {
    StreamInfo {
        ssrc: SSRC,
        ssrc_rtx: Some(RTX),
        ssrc_fec: Some(FEC),
        payload_type: 96,
        payload_type_rtx: Some(97),
        mime_type: "video/VP8".to_owned(),
        clock_rate: 90_000,
        rtp_header_extensions: vec![RTPHeaderExtension { uri: TRANSPORT_CC_URI.to_owned(), id: 5 }],
        ..StreamInfo::default()
    }
}

/// The receiver of a call.
enum Receiver {
    /// The stack's own chain of interceptors, with transport-wide feedback.
    Stack(Box<dyn Interceptor>),
    /// Equipoise's reporter, with feedback of RFC 8888. The stack's own RFC 8888 reports are not used, because their
    /// timestamps depend on the host's clock and differ between runs of the test.
    Ours(Reporter),
}

/// A simulated call: an encoder that follows the rate, a sender's chain of interceptors, a link, and a receiver.
struct Call {
    epoch: HostInstant,
    now: HostInstant,
    sender: Box<dyn Interceptor>,
    receiver: Receiver,
    monitor: Monitor,
    link: FifoLink<ReceiverClock>,
    /// Packets in flight, by arrival time: to the receiver (`there`), and to the sender (`back`).
    there: BTreeMap<(HostInstant, u64), TaggedPacket>,
    back: BTreeMap<(HostInstant, u64), TaggedPacket>,
    /// Whether reports reach the sender.
    reports_come: bool,
    count: u64,
    sequence: u16,
    frame: u32,
    /// Sending time since the start, and size of the IP packet, for each RTP packet sent.
    left: Vec<(Duration, u64)>,
    waits: Vec<Span>,
}

impl Call {
    fn new(format: Format, controller: &str, given: &[(&str, &str)], link_bps: u64) -> Self {
        let epoch = HostInstant::now();
        let config = Config { format, ..Config::named(controller, given).expect("right") };
        let (control, monitor) = CongestionControl::new(config, epoch).expect("its needs are met");
        let registry = Registry::new().with(Slot::CongestionControl, control);
        let (registry, mut receiver) = match format {
            Format::TransportWide => {
                let receiver = Registry::new().with(Slot::TwccReceiver, TwccReceiverBuilder::new().build()).build();
                let registry = registry.with(Slot::TwccSender, TwccSenderBuilder::new().build());
                (registry, Receiver::Stack(Box::new(receiver)))
            }
            Format::CongestionFeedback => {
                let interval = Span::from_millis(50);
                (registry, Receiver::Ours(Reporter::new(Reporting { format, interval })))
            }
        };
        let mut sender = registry.build();
        sender.bind_local_stream(&stream());
        if let Receiver::Stack(receiver) = &mut receiver {
            receiver.bind_remote_stream(&stream());
        }
        let rate = Schedule::constant(Rate::from_bps(link_bps));
        let queue = QueueLimit::Time(Span::from_millis(300));
        let link = FifoLink::new(LinkConfig { rate, propagation_delay: Span::ZERO, queue }, Instant::ZERO);
        Self {
            epoch,
            now: epoch,
            sender: Box::new(sender),
            receiver,
            monitor,
            link: link.expect("a valid link"),
            there: BTreeMap::new(),
            back: BTreeMap::new(),
            reports_come: true,
            count: 0,
            sequence: 65_000,
            frame: 0,
            left: Vec::new(),
            waits: Vec::new(),
        }
    }

    fn message(&self, packet: Packet) -> TaggedPacket {
        TaggedPacket { now: self.now, transport: TransportContext::default(), message: AttributedPacket::new(packet) }
    }

    fn rtp(&self, ssrc: u32, sequence_number: u16, marker: bool, payload: Vec<u8>) -> Packet {
        let timestamp = self.frame * 3600;
        let header = rtp::header::Header { version: 2, ssrc, sequence_number, timestamp, marker, ..Default::default() };
        Packet::Rtp(rtp::Packet { header, payload: payload.into() })
    }

    /// Writes a frame of `bytes` bytes, in packets of at most 1000 bytes.
    fn write_frame(&mut self, bytes: usize) {
        self.frame += 1;
        let packets = bytes.div_ceil(1000).max(1);
        for packet in 0..packets {
            let packet = self.rtp(SSRC, self.sequence, packet + 1 == packets, vec![0; bytes / packets]);
            self.sequence = self.sequence.wrapping_add(1);
            self.sender.handle_write(self.message(packet)).expect("it takes everything");
            self.send();
        }
    }

    /// Takes the packets that leave the sender's chain of interceptors, and sends them over the link.
    fn send(&mut self) {
        while let Some(mut message) = self.sender.poll_write() {
            let Packet::Rtp(packet) = &message.message.packet else { continue };
            let size = Size::from_bytes(packet.marshal_size() as u64 + 38);
            let at = message.now - self.epoch;
            self.left.push((at, size.as_bytes()));
            let entered = Instant::from_nanos(at.as_nanos() as u64);
            if let Some(passage) = self.link.offer(entered, size) {
                let arrived = self.epoch + Duration::from_nanos(passage.arrives_at.as_nanos()) + WAY;
                self.waits.push(passage.arrives_at - entered);
                message.now = arrived;
                self.count += 1;
                self.there.insert((arrived, self.count), message);
            }
        }
    }

    /// Advances the time by `time`. The encoder writes 25 frames per second, whose size follows the rate.
    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            if (self.now - self.epoch).as_millis().is_multiple_of(40) {
                let bps = self.monitor.status().media_rate.as_bps();
                self.write_frame((bps / 8 / 25) as usize);
            }
            // Timers are handled up to 1 ms late, as on a real host.
            self.now += MILLI;
            self.step();
        }
    }

    fn step(&mut self) {
        while let Some((&(at, number), _)) = self.there.first_key_value().filter(|((at, _), _)| *at <= self.now) {
            let message = self.there.remove(&(at, number)).expect("it is the first");
            let arrived = self.time(message.now);
            match (&mut self.receiver, &message.message.packet) {
                (Receiver::Ours(reporter), Packet::Rtp(packet)) => {
                    let sequence = u64::from(packet.header.sequence_number) + (1 << 16);
                    // The first sequence number is 65 000, so numbers below 32 768 are from after the wrap.
                    let sequence = if sequence < (1 << 16) + 32_768 { sequence + (1 << 16) } else { sequence };
                    reporter.on_arrival(arrived, (sequence, None), Ecn::NotCapable);
                }
                (Receiver::Ours(_), _) => {}
                (Receiver::Stack(chain), _) => {
                    chain.handle_read(message).expect("it takes everything");
                    while chain.poll_read().is_some() {}
                }
            }
        }
        for message in self.reports() {
            self.count += 1;
            self.back.insert((self.now + WAY, self.count), message);
        }
        while let Some((&(at, number), _)) = self.back.first_key_value().filter(|((at, _), _)| *at <= self.now) {
            let mut message = self.back.remove(&(at, number)).expect("it is the first");
            message.now = self.now;
            if self.reports_come {
                self.sender.handle_read(message).expect("it takes everything");
                while self.sender.poll_read().is_some() {}
                self.send();
            }
        }
        if self.sender.poll_timeout().is_some_and(|at| at <= self.now) {
            self.sender.handle_timeout(self.now).expect("time does no harm");
            self.send();
        }
    }

    /// Returns the reports that the receiver sends now.
    fn reports(&mut self) -> Vec<TaggedPacket> {
        let at = self.time(self.now);
        match &mut self.receiver {
            Receiver::Stack(chain) => {
                chain.handle_timeout(self.now).expect("time does no harm");
                std::iter::from_fn(|| chain.poll_write()).collect()
            }
            Receiver::Ours(reporter) => {
                let mut datagrams = Vec::new();
                let write = |write: &mut dyn FnMut(&mut Vec<u8>)| {
                    let mut datagram = Vec::new();
                    write(&mut datagram);
                    datagrams.push(datagram);
                };
                reporter.report(at, (1, SSRC), 1200, write).expect("there is room");
                let read =
                    |datagram: Vec<u8>| rtc::rtcp::packet::unmarshal(&mut &datagram[..]).expect("the stack reads it");
                let packets: Vec<_> = datagrams.into_iter().map(read).collect();
                packets.into_iter().map(|packets| self.message(Packet::Rtcp(packets))).collect()
            }
        }
    }

    /// Returns the time of the receiver's clock. It is 40 000 s at the start of the call, more than half the range of
    /// RFC 8888 times.
    fn time(&self, at: HostInstant) -> Instant<ReceiverClock> {
        Instant::from_nanos((at - self.epoch).as_nanos() as u64 + 40_000_000_000_000)
    }

    /// Returns the sending rate between two times in s, in bit/s.
    fn rate(&self, from_s: u64, to_s: u64) -> f64 {
        let within = from_s..to_s;
        let bytes: u64 = self.left.iter().filter(|(at, _)| within.contains(&at.as_secs())).map(|(_, size)| size).sum();
        bytes as f64 * 8.0 / (to_s - from_s) as f64
    }
}

/// If this test fails, feedback in one of the formats does not reach the controller, or the receiver's clock is
/// converted wrongly.
#[test]
fn our_own_law_fills_a_link_over_either_format() {
    for format in [Format::TransportWide, Format::CongestionFeedback] {
        let mut call = Call::new(format, "equipoise", &[("max_rate", "5 Mbit/s")], 2_000_000);
        call.run(Duration::from_secs(30));
        let used = call.rate(10, 30) / 2e6;
        assert!((0.85..1.02).contains(&used), "{format:?}: {used} of the link");
        let mut waits = call.waits.clone();
        waits.sort_unstable();
        let p95 = waits[waits.len() * 95 / 100];
        assert!(p95 < Span::from_millis(60), "{format:?}: {p95:?}");
        let status = call.monitor.status();
        assert_eq!(status.counts.refused, 0, "{format:?}");
        assert!(status.round_trip.is_some_and(|trip| trip >= Span::from_millis(40)), "{:?}", status.round_trip);
    }
}

#[test]
fn every_law_that_feedback_on_packets_can_feed_adapts() {
    for name in ["ap", "aimd", "tfrc", "rap", "gcc", "nada", "scream", "equipoise"] {
        let given: &[_] = if ["ap", "aimd"].contains(&name) { &[("target", "20 ms")] } else { &[] };
        let mut call = Call::new(Format::TransportWide, name, given, 1_000_000);
        call.run(Duration::from_secs(30));
        let used = call.rate(15, 30) / 1e6;
        assert!((0.2..1.15).contains(&used), "{name}: {used} of the link");
    }
}

/// The frame has 20 packets, the rate is 1 Mbit/s, and packets are paced at 1.5 Mbit/s. If the test fails, the sender
/// itself causes the queue that it measures.
#[test]
fn packets_of_a_frame_leave_one_by_one() {
    let mut call = Call::new(Format::TransportWide, "cbr", &[("rate", "1 Mbit/s")], 100_000_000);
    call.write_frame(20_000);
    for _ in 0..200 {
        call.now += MILLI;
        call.step();
    }
    assert_eq!(call.left.len(), 20);
    let gap = call.left[0].1 as f64 * 8.0 / 1.5e6;
    for (number, (at, _)) in call.left.iter().enumerate() {
        let due = gap * number as f64;
        assert!((due - 1e-6..due + 2e-3).contains(&at.as_secs_f64()), "packet {number} at {at:?}, due at {due}");
    }
}

/// If this test fails, each request for a packet causes a retransmission, even if a retransmission of the packet
/// already waits in the queue or was sent less than a round-trip time ago.
#[test]
fn a_packet_is_sent_again_once_in_a_round_trip() {
    let mut call = Call::new(Format::TransportWide, "cbr", &[("rate", "1 Mbit/s")], 100_000_000);
    call.run(Duration::from_secs(1));
    let before = call.left.len();
    let ask = |call: &mut Call| {
        for original in [3u16, 4, 3] {
            let packet = call.rtp(RTX, 0, false, [&original.to_be_bytes()[..], &[0; 900]].concat());
            let mut message = call.message(packet);
            message.message.add(Attribute::Retransmission);
            call.sender.handle_write(message).expect("it takes everything");
        }
        for _ in 0..30 {
            call.now += MILLI;
            call.step();
        }
    };
    ask(&mut call);
    ask(&mut call);
    assert_eq!(call.left.len() - before, 2, "twice each");
    (0..40).for_each(|_| (call.now += MILLI, call.step()).1);
    ask(&mut call);
    assert_eq!(call.left.len() - before, 4, "a round trip later they are asked for again");
}

#[test]
fn without_reports_hardly_anything_leaves_and_with_them_it_comes_back() {
    let mut call = Call::new(Format::TransportWide, "equipoise", &[("max_rate", "5 Mbit/s")], 2_000_000);
    call.run(Duration::from_secs(10));
    call.reports_come = false;
    call.run(Duration::from_secs(10));
    let silent = call.rate(15, 20);
    assert!(silent < 100e3, "{silent} bit/s into silence");
    call.reports_come = true;
    call.run(Duration::from_secs(15));
    let back = call.rate(30, 35);
    assert!(back > 1e6, "{back} bit/s after it");
}

#[test]
fn a_request_for_a_key_frame_is_counted_and_passed_on() {
    let mut call = Call::new(Format::TransportWide, "cbr", &[("rate", "1 Mbit/s")], 1_000_000);
    let message =
        call.message(Packet::Rtcp(vec![Box::new(PictureLossIndication { sender_ssrc: 1, media_ssrc: SSRC })]));
    call.sender.handle_read(message).expect("it takes everything");
    assert_eq!(call.monitor.status().key_frame_requests, 1);
}

/// Each packet has 900 to 1000 bytes of payload and at least 50 bytes of headers. Only the headers lower the media
/// rate, because there are no retransmissions. If the test fails, the media rate includes headers.
#[test]
fn headers_are_taken_off_the_rate_of_media() {
    let mut call = Call::new(Format::TransportWide, "cbr", &[("rate", "1 Mbit/s")], 100_000_000);
    call.run(Duration::from_secs(5));
    let status = call.monitor.status();
    let share = status.media_rate.as_bps_f64() / status.rate.as_bps_f64();
    assert!((0.90..0.97).contains(&share), "{share}");
}

/// A packet of forward error correction follows each frame. Together, these packets take 0.2 Mbit/s of 1 Mbit/s. If the
/// test fails, the media rate includes forward error correction.
#[test]
fn forward_error_correction_is_taken_off_the_rate_of_media() {
    let mut call = Call::new(Format::TransportWide, "cbr", &[("rate", "1 Mbit/s")], 100_000_000);
    for number in 0..125 {
        call.run(Duration::from_millis(40));
        let correction = call.rtp(FEC, number, false, vec![0; 1000]);
        call.sender.handle_write(call.message(correction)).expect("it takes everything");
        call.send();
    }
    let status = call.monitor.status();
    let share = status.media_rate.as_bps_f64() / status.rate.as_bps_f64();
    assert!((0.65..0.85).contains(&share), "{share}");
}

#[test]
fn what_is_wrong_is_named() {
    let named = |name: &str, given: &[(&str, &str)]| Config::named(name, given).expect_err("it is wrong").to_string();
    assert!(named("gc", &[]).starts_with("there is no controller \"gc\"; there are "));
    let error = Config::named("equipoise", &[("max_rat", "1 Mbit/s")]).expect_err("no such parameter");
    assert!(matches!(&error, InstallError::Config(_)), "{error}");
    let config = Config::named("tq", &[]).expect("right");
    let refused = CongestionControl::new(config, HostInstant::now()).map(|_| ()).expect_err("it has no playout buffer");
    assert!(refused.to_string().contains("playout"), "{refused}");
}
