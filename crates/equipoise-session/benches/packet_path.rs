//! The cost of one packet in the core and a session: parse, measure, decide, pace.

use divan::Bencher;
use divan::counter::ItemsCount;
use equipoise::control::ap::{Ap, ApConfig, Learning};
use equipoise::control::window::{Acknowledged, Cubic, Symbiosis, SymbiosisConfig, WindowController};
use equipoise::control::{
    Controller, Ecn, Fate, Feedback, IntervalSummary, PacketFeedback, PacketReport, RateLimits, SentPacket, find,
};
use equipoise::measure::{BandwidthEstimate, DelayMeter, DelaySummary, Measured, SequenceTracker};
use equipoise::pace::Pacer;
use equipoise::units::{Instant, Rate, Schedule, SenderClock, Size, Span};
use equipoise_path::link::{FifoLink, LinkConfig, QueueLimit};
use equipoise_path::source::{Source, Traffic};
use equipoise_session::wire::rtp::{RtpHeader, RtpPacket};
use equipoise_session::wire::{NtpTime, rtcp};

type At = Instant<SenderClock>;

const PACKET: Size = Size::from_bytes(1000);

fn main() {
    divan::main();
}

#[divan::bench]
fn rtp_encode(bencher: Bencher<'_, '_>) {
    let header = RtpHeader { payload_type: 96, send_time: Some(NtpTime::from_bits(1 << 40)), ..RtpHeader::default() };
    let mut out = Vec::with_capacity(64);
    bencher.bench_local(|| {
        out.clear();
        divan::black_box(&header).encode(&mut out);
    });
}

#[divan::bench]
fn rtp_parse(bencher: Bencher<'_, '_>) {
    let header = RtpHeader { payload_type: 96, send_time: Some(NtpTime::from_bits(1 << 40)), ..RtpHeader::default() };
    let mut datagram = Vec::new();
    header.encode(&mut datagram);
    datagram.resize(972, 0);
    bencher.bench_local(|| RtpPacket::parse(divan::black_box(&datagram)).map(|packet| packet.header));
}

#[divan::bench]
fn rtcp_report_parse(bencher: Bencher<'_, '_>) {
    let mut datagram = Vec::new();
    rtcp::encode_receiver_report(1, &[rtcp::ReportBlock::default()], &[0; 12], &mut datagram);
    bencher.bench_local(|| rtcp::parse_compound(divan::black_box(&datagram)).map(Iterator::count));
}

#[divan::bench]
fn sequence_tracker(bencher: Bencher<'_, '_>) {
    let mut tracker = SequenceTracker::new(0, Instant::ZERO);
    let mut sequence = 0u16;
    bencher.bench_local(|| {
        sequence = sequence.wrapping_add(1);
        tracker.push(sequence, Instant::ZERO + Span::from_micros(i64::from(sequence)))
    });
}

#[divan::bench]
fn delay_meter(bencher: Bencher<'_, '_>) {
    let mut meter = DelayMeter::new();
    let mut sent = 0u64;
    bencher.bench_local(|| {
        sent += 533_333;
        meter.push(At::from_nanos(sent), Span::from_nanos((sent % 7919) as i64));
    });
}

#[divan::bench]
fn ap_law(bencher: Bencher<'_, '_>) {
    let limits = RateLimits::new(Rate::from_bps(100_000), Rate::from_bps(15_000_000)).expect("in order");
    let mut ap = Ap::new(ApConfig {
        target: Span::from_micros(8200),
        limits,
        response: 300.0,
        learning: Learning::Fixed,
        unrest: 0.08,
        packet: PACKET,
    });
    let delay = Some(DelaySummary { mean_s: 9.07e-3, variance_s2: 3.23e-6, samples: 5000 });
    let mut summary = IntervalSummary::unmeasured();
    summary.delay = delay;
    let feedback = Feedback::Interval(summary);
    bencher.bench_local(|| {
        ap.on_feedback(At::ZERO, divan::black_box(&feedback));
        ap.allowance()
    });
}

/// Measures a window law with one acknowledgement per 100 µs on a path with a round-trip time of 120 ms.
fn acknowledge(bencher: Bencher<'_, '_>, mut law: impl WindowController) {
    let round_trip = Some(Span::from_millis(120));
    let ack = Acknowledged {
        segments: 1,
        round_trip,
        smoothed_round_trip: round_trip,
        min_round_trip: round_trip,
        in_flight: 1000,
        window_limited: true,
    };
    let mut now = 0u64;
    bencher.bench_local(|| {
        now += 100_000;
        law.on_ack(At::from_nanos(now), divan::black_box(&ack));
        law.window()
    });
}

#[divan::bench]
fn symbiosis_ack(bencher: Bencher<'_, '_>) {
    let mut law = Symbiosis::new(SymbiosisConfig {
        gamma: 0.95,
        epsilon_per_s: 1.95,
        noise_weight: 4.0,
        initial_window: 10.0,
        packet: Size::from_bytes(1500),
    });
    let (capacity, available) = (Rate::from_bps(100_000_000), Rate::from_bps(60_000_000));
    law.on_bandwidth(
        At::ZERO,
        &BandwidthEstimate { capacity: Measured::exact(capacity), available: Measured::exact(available) },
    );
    acknowledge(bencher, law);
}

#[divan::bench]
fn cubic_ack(bencher: Bencher<'_, '_>) {
    let mut law = Cubic::new(1000.0);
    law.on_loss(At::ZERO, 1000);
    acknowledge(bencher, law);
}

#[divan::bench]
fn pacer(bencher: Bencher<'_, '_>) {
    let mut pacer = Pacer::new(Rate::from_bps(15_000_000));
    let mut now = 0u64;
    bencher.bench_local(|| {
        now += 533_334;
        let ready = pacer.poll(At::from_nanos(now));
        pacer.on_departure(At::from_nanos(now), PACKET);
        ready
    });
}

#[divan::bench]
fn poisson_source(bencher: Bencher<'_, '_>) {
    let rate = Schedule::constant(Rate::from_bps(9_000_000));
    let mut source = Source::<SenderClock>::new(Traffic::Poisson, rate, PACKET, At::ZERO, (1, 1));
    bencher.bench_local(|| {
        source.advance();
        source.next_departure()
    });
}

#[divan::bench]
fn fifo_link(bencher: Bencher<'_, '_>) {
    let config = LinkConfig {
        rate: Schedule::constant(Rate::from_bps(15_000_000)),
        propagation_delay: Span::from_millis(5),
        queue: QueueLimit::Packets(1000),
    };
    let mut link = FifoLink::<SenderClock>::new(config, At::ZERO).expect("a valid link");
    let mut now = 0u64;
    bencher.bench_local(|| {
        now += 540_000;
        link.offer(At::from_nanos(now), PACKET)
    });
}

/// Number of packets per report, at one report per 50 ms and a rate of 4.8 Mbit/s.
const REPORTED: usize = 30;

/// Measures how long a per-packet law takes to process the sending of `REPORTED` packets and one report on them. 2000
/// samples are enough to fill the law's measurement windows.
#[divan::bench(args = ["equipoise", "gcc", "nada", "scream"], sample_count = 2000)]
fn packet_feedback(bencher: Bencher<'_, '_>, law: &str) {
    let entry = find(law).expect("in the catalogue");
    let values = entry.parse(&[("max_rate", "20 Mbit/s"), ("initial_rate", "4.8 Mbit/s")]).expect("right");
    let mut law = entry.build(&values, PACKET).expect("right");
    let gap = Span::from_nanos(50_000_000 / REPORTED as i64);
    let (mut number, mut now) = (0u64, At::ZERO);
    bencher.counter(ItemsCount::new(REPORTED)).bench_local(|| {
        let reports: [PacketReport; REPORTED] = core::array::from_fn(|_| {
            now = now + gap;
            number += 1;
            law.on_sent(now, &SentPacket::new(number, PACKET, PACKET));
            // Some packets are queued briefly.
            let arrived = now + Span::from_micros(25_000 + (number % 7) as i64 * 200);
            PacketReport::new(number, PACKET, now, Fate::Arrived { at: Some(arrived.assume_clock()), ecn: Ecn::NotEct })
        });
        let mut feedback = PacketFeedback::new(&reports, Size::from_bytes(1000 * 2 * REPORTED as u64));
        feedback.round_trip = Some(Span::from_millis(50));
        law.on_feedback(now + Span::from_millis(25), &Feedback::Packets(&feedback));
        law.allowance()
    });
}
