//! Tests that the controller `equipoise` allocates no memory for per-packet feedback after its measurement windows have
//! been filled.

use equipoise::control::{Ecn, Fate, Feedback, PacketFeedback, PacketReport, SentPacket, find};
use equipoise::units::{Instant, SenderClock, Size, Span};

use crate::ALLOCATIONS;

const PACKET: Size = Size::from_bytes(1000);
/// Number of packets per report: packets of 1000 bytes at 4.8 Mbit/s, and one report every 50 ms.
const REPORTED: u64 = 30;

#[test]
fn reports_on_packets_are_taken_without_allocation() {
    let entry = find("equipoise").expect("in the catalogue");
    let values = entry.parse(&[("max_rate", "20 Mbit/s"), ("initial_rate", "4.8 Mbit/s")]).expect("right");
    let mut law = entry.build(&values, PACKET).expect("right");
    let (mut now, mut before) = (Instant::<SenderClock>::ZERO, 0);
    let mut reports = Vec::with_capacity(REPORTED as usize);
    for round in 0..1200 {
        // After half a minute, all measurement windows of the controller are full.
        if round == 600 {
            before = ALLOCATIONS.get();
        }
        reports.clear();
        for number in round * REPORTED..(round + 1) * REPORTED {
            now = now + Span::from_nanos(50_000_000 / REPORTED as i64);
            law.on_sent(now, &SentPacket::new(number, PACKET, PACKET));
            // The delay grows by up to 12 ms and then drops again, like that of a queue. One packet in 200 is lost.
            let arrived = now + Span::from_micros(25_000 + (number % 600) as i64 * 20);
            let fate = match number % 200 {
                0 => Fate::Lost,
                _ => Fate::Arrived { at: Some(arrived.assume_clock()), ecn: Ecn::NotEct },
            };
            reports.push(PacketReport::new(number, PACKET, now, fate));
        }
        let mut feedback = PacketFeedback::new(&reports, Size::from_bytes(2 * 1000 * REPORTED));
        feedback.round_trip = Some(Span::from_millis(50));
        law.on_feedback(now + Span::from_millis(25), &Feedback::Packets(&feedback));
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
}
