//! Drives Google congestion control by hand: passes it feedback on each packet, and prints its rate and its probe
//! request.
//!
//! The example shows what a session must pass to a controller that needs per-packet feedback: each departure, and each
//! report with the departure, arrival and size of every packet.
#![expect(clippy::print_stdout, reason = "a program that is read by a person")]

use equipoise::control::{Ecn, Fate, Feedback, PacketFeedback, PacketReport, Reason, SentPacket, find};
use equipoise::units::{Instant, Size, Span};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let packet = Size::from_bytes(1200);
    let entry = find("gcc").ok_or("no such controller")?;
    let mut gcc = entry.build(&entry.parse(&[("initial_rate", "1 Mbit/s")])?, packet)?;
    // One packet of 1200 bytes leaves every 10 ms. From packet 200 on, the queueing delay grows by 1 ms per packet.
    for number in 0..400u64 {
        let departed = Instant::from_nanos(number * 10_000_000);
        gcc.on_sent(departed, &SentPacket::new(number, packet, Size::from_bytes(6000)));
        if number == 0
            && let Some(probe) = gcc.wanted_probe()
        {
            println!("a session that can might send {} packets at {}", probe.packets, probe.rate);
        }
        let queue = number.saturating_sub(200) * 1_000_000;
        let at = Some(Instant::from_nanos(number * 10_000_000 + 20_000_000 + queue));
        let report = [PacketReport::new(number, packet, departed, Fate::Arrived { at, ecn: Ecn::NotEct })];
        let mut feedback = PacketFeedback::new(&report, Size::from_bytes(6000));
        feedback.round_trip = Some(Span::from_millis(40));
        gcc.on_feedback(departed + Span::from_millis(40), &Feedback::Packets(&feedback));
        if number % 20 == 19 {
            let rate = gcc.allowance().rate.ok_or("no rate")?;
            println!("{:4} ms: {rate}, {}", number * 10, gcc.snapshot().reason.map_or("", Reason::name));
        }
    }
    Ok(())
}
