//! A sketch of `SCReAM` on the seam: a window in bytes and a pace out of per-packet feedback, sent packets and ECN marks.
//!
//! It shows that the seam carries what the algorithm needs. Its form is that of RFC 8298, Sec. 4.1.2, in round numbers.
#![expect(clippy::print_stdout, reason = "a program that is read by a person")]

use equipoise::control::{Allowance, Controller, Ecn, Fate, Feedback, Needs, PacketFeedback, PacketReport, SentPacket};
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};

/// Queueing delay to hold.
const TARGET: Span = Span::from_millis(60);
/// Largest segment.
const MSS: f64 = 1200.0;

#[derive(Clone, Debug)]
struct Scream {
    window_bytes: f64,
    in_flight: Size,
    /// The least that arrival less departure was.
    base: Option<Span>,
    round_trip: Option<Span>,
    /// No second reduction before this.
    reduced_until: Instant<SenderClock>,
}

impl Scream {
    const fn new() -> Self {
        let window_bytes = 10.0 * MSS;
        Self { window_bytes, in_flight: Size::ZERO, base: None, round_trip: None, reduced_until: Instant::ZERO }
    }

    fn reduce(&mut self, now: Instant<SenderClock>, factor: f64) {
        if now >= self.reduced_until {
            self.window_bytes = (self.window_bytes * factor).max(2.0 * MSS);
            self.reduced_until = now + self.round_trip.unwrap_or(Span::from_millis(100));
        }
    }

    fn on_packets(&mut self, now: Instant<SenderClock>, feedback: &PacketFeedback<'_>) {
        self.round_trip = feedback.round_trip.or(self.round_trip);
        self.in_flight = feedback.in_flight;
        for packet in feedback.packets {
            match packet.fate {
                Fate::Lost => self.reduce(now, 0.8),
                Fate::Arrived { ecn: Ecn::Ce, .. } => self.reduce(now, 0.9),
                Fate::Arrived { at: Some(arrived), .. } => {
                    let shown = arrived.assume_clock() - packet.departed;
                    let base = self.base.map_or(shown, |base| base.min(shown));
                    self.base = Some(base);
                    let off = 1.0 - (shown - base).as_secs_f64() / TARGET.as_secs_f64();
                    let grown = off.max(-1.0) * packet.size.as_bytes() as f64 * MSS / self.window_bytes;
                    if grown < 0.0 || !feedback.app_limited {
                        self.window_bytes = (self.window_bytes + grown).max(2.0 * MSS);
                    }
                }
                _ => {}
            }
        }
    }
}

impl Controller for Scream {
    fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &Feedback<'_>) {
        match feedback {
            Feedback::Packets(packets) => self.on_packets(now, packets),
            Feedback::TimedOut { .. } | Feedback::Silent { .. } => self.window_bytes = 2.0 * MSS,
            _ => {}
        }
    }

    fn allowance(&self) -> Allowance {
        let window = Size::from_bytes(self.window_bytes as u64);
        let pace = self.round_trip.map(Span::as_secs_f64).filter(|seconds| *seconds > 0.0);
        let rate = pace.and_then(|seconds| Rate::from_bps_f64(1.25 * self.window_bytes * 8.0 / seconds));
        rate.map_or(Allowance::window(window), |rate| Allowance::paced_window(rate, window))
    }

    fn needs(&self) -> Needs {
        Needs::PACKETS.and(Needs::ECN)
    }

    fn on_sent(&mut self, _now: Instant<SenderClock>, packet: &SentPacket) {
        self.in_flight = packet.in_flight;
    }
}

fn main() {
    let mut scream = Scream::new();
    for number in 0..300u64 {
        let departed = Instant::from_nanos(number * 5_000_000);
        let queue = if number < 100 { 0 } else { 90_000_000 };
        let at = Some(Instant::from_nanos(number * 5_000_000 + 20_000_000 + queue));
        let ecn = if number == 250 { Ecn::Ce } else { Ecn::Ect1 };
        let report = [PacketReport::new(number, Size::from_bytes(1200), departed, Fate::Arrived { at, ecn })];
        let mut feedback = PacketFeedback::new(&report, Size::from_bytes(12_000));
        feedback.round_trip = Some(Span::from_nanos(40_000_000 + queue as i64));
        scream.on_sent(departed, &SentPacket::new(number, Size::from_bytes(1200), Size::from_bytes(12_000)));
        scream.on_feedback(departed + Span::from_millis(40), &Feedback::Packets(&feedback));
        if number % 50 == 49 {
            println!("{:5} ms: {:?}", number * 5, scream.allowance());
        }
    }
}
