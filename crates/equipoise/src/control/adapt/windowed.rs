use crate::control::window::{Acknowledged, WindowController};
use crate::control::{Allowance, Controller, Fate, Feedback, Needs, PacketFeedback, SentPacket};
use crate::units::{Instant, SenderClock, Size, Span};

/// Adapts a window law to the trait [`Controller`]: converts per-packet feedback into acknowledgements and losses in
/// segments, and the law's window into bytes.
///
/// A loss or a timeout starts recovery. After that, neither losses nor acknowledgements of packets that were sent
/// before recovery started are passed to the law (RFC 9002, Sec. 7.3.2, B.5). Acknowledged bytes that do not fill a
/// segment are carried over, so that a law that counts segments works with a transport that counts bytes.
#[derive(Clone, Debug)]
pub struct Windowed<W> {
    law: W,
    /// Size of the IP packet of a full segment.
    packet: Size,
    /// The highest packet number so far plus one.
    next: u64,
    /// Packets below this number were sent before the last recovery started.
    recovery_start: u64,
    /// Acknowledged bytes that were not passed to the law yet, because they do not fill a segment.
    carried: u64,
    smoothed: Option<Span>,
    least: Option<Span>,
}

/// The weight of a new round-trip time in the smoothed round-trip time is 1/`NEW_ROUND_TRIP` (RFC 6298, Sec. 2.3).
const NEW_ROUND_TRIP: i64 = 8;

impl<W: WindowController> Windowed<W> {
    /// Creates a controller that runs `law`. The IP packet of a full segment has the size `packet`, at least one byte.
    pub fn new(law: W, packet: Size) -> Self {
        let packet = packet.max(Size::from_bytes(1));
        Self { law, packet, next: 0, recovery_start: 0, carried: 0, smoothed: None, least: None }
    }

    /// Returns the window law.
    pub const fn law(&self) -> &W {
        &self.law
    }

    fn segments(&self, size: Size) -> u64 {
        size.as_bytes().div_ceil(self.packet.as_bytes())
    }

    fn on_packets(&mut self, now: Instant<SenderClock>, feedback: &PacketFeedback<'_>) {
        if let Some(sample) = feedback.round_trip.filter(|sample| *sample > Span::ZERO) {
            let smoothed = self.smoothed.unwrap_or(sample);
            let part = Span::from_nanos((sample - smoothed).as_nanos() / NEW_ROUND_TRIP);
            self.smoothed = Some(smoothed + part);
            self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
        }
        let in_flight = self.segments(feedback.in_flight);
        for packet in feedback.packets {
            self.next = self.next.max(packet.number.saturating_add(1));
            match packet.fate {
                _ if packet.number < self.recovery_start => {}
                Fate::Lost => {
                    self.recovery_start = self.next;
                    self.law.on_loss(now, in_flight);
                }
                Fate::Arrived { .. } => {
                    self.carried = self.carried.saturating_add(packet.size.as_bytes());
                    self.acknowledge(now, feedback, in_flight);
                }
            }
        }
    }

    /// Passes the acknowledged bytes to the law, as one acknowledgement per full segment. The law changes its window
    /// for each of these acknowledgements, as if the receiver acknowledged every segment.
    fn acknowledge(&mut self, now: Instant<SenderClock>, feedback: &PacketFeedback<'_>, in_flight: u64) {
        while self.carried >= self.packet.as_bytes() {
            self.carried -= self.packet.as_bytes();
            let ack = Acknowledged {
                segments: 1,
                round_trip: feedback.round_trip,
                smoothed_round_trip: self.smoothed,
                min_round_trip: self.least,
                in_flight,
                window_limited: !feedback.app_limited,
            };
            self.law.on_ack(now, &ack);
        }
    }
}

impl<W: WindowController> Controller for Windowed<W> {
    fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &Feedback<'_>) {
        match feedback {
            Feedback::Packets(packets) => self.on_packets(now, packets),
            Feedback::TimedOut { in_flight } => {
                self.recovery_start = self.next;
                self.law.on_timeout(now, self.segments(*in_flight));
            }
            // Missing reports are ignored: a transport that acknowledges packets detects silence by its own timer.
            _ => {}
        }
    }

    fn allowance(&self) -> Allowance {
        let bytes = self.law.window().max(1.0) * self.packet.as_bytes() as f64;
        let window = Size::from_bytes(bytes as u64);
        self.law.pacing_rate().map_or(Allowance::window(window), |rate| Allowance::paced_window(rate, window))
    }

    fn needs(&self) -> Needs {
        Needs::PACKETS
    }

    fn on_sent(&mut self, _now: Instant<SenderClock>, packet: &SentPacket) {
        self.next = self.next.max(packet.number.saturating_add(1));
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::control::window::Reno;
    use crate::control::{Ecn, PacketReport};

    const PACKET: Size = Size::from_bytes(1000);

    fn reports(numbers: core::ops::Range<u64>, lost: &[u64]) -> Vec<PacketReport> {
        let fate = |number| {
            if lost.contains(&number) { Fate::Lost } else { Fate::Arrived { at: None, ecn: Ecn::NotEct } }
        };
        numbers.map(|number| PacketReport::new(number, PACKET, Instant::ZERO, fate(number))).collect()
    }

    fn window(reno: &Windowed<Reno>) -> f64 {
        reno.allowance().window.expect("a window").as_bytes() as f64 / 1000.0
    }

    fn send(reno: &mut Windowed<Reno>, numbers: core::ops::Range<u64>) {
        numbers.for_each(|number| reno.on_sent(Instant::ZERO, &SentPacket::new(number, PACKET, PACKET)));
    }

    fn tell(reno: &mut Windowed<Reno>, packets: &[PacketReport]) {
        let mut feedback = PacketFeedback::new(packets, Size::from_bytes(10_000));
        feedback.round_trip = Some(Span::from_millis(50));
        reno.on_feedback(Instant::ZERO, &Feedback::Packets(&feedback));
    }

    #[test]
    fn reno_doubles_in_slow_start_and_halves_once_for_all_losses_of_a_window() {
        let mut reno = Windowed::new(Reno::new(10.0), PACKET);
        assert!((window(&reno) - 10.0).abs() < 1e-9);
        send(&mut reno, 0..10);
        tell(&mut reno, &reports(0..10, &[]));
        assert!((window(&reno) - 20.0).abs() < 1e-9);
        send(&mut reno, 10..30);
        tell(&mut reno, &reports(10..20, &[12]));
        let halved = window(&reno);
        assert!((halved - 5.0).abs() < 1e-9, "half of ten segments in flight: {halved}");
        tell(&mut reno, &reports(20..30, &[23, 27]));
        assert!((window(&reno) - halved).abs() < 1e-9, "the same window");
        send(&mut reno, 30..31);
        tell(&mut reno, &reports(30..31, &[30]));
        assert!(window(&reno) <= halved, "a new loss");
    }

    /// If this test fails, the window of a law that counts segments grows too slowly when packets are smaller than a
    /// segment.
    #[test]
    fn bytes_that_do_not_fill_a_segment_are_carried_on() {
        let mut reno = Windowed::new(Reno::new(10.0), PACKET);
        for number in 0..20u64 {
            let fate = Fate::Arrived { at: None, ecn: Ecn::NotEct };
            let half = [PacketReport::new(number, Size::from_bytes(500), Instant::ZERO, fate)];
            tell(&mut reno, &half);
        }
        assert!((window(&reno) - 20.0).abs() < 1e-9, "ten segments in slow start: {}", window(&reno));
    }

    #[test]
    fn a_timeout_leaves_one_segment() {
        let mut reno = Windowed::new(Reno::new(10.0), PACKET);
        reno.on_feedback(Instant::ZERO, &Feedback::TimedOut { in_flight: Size::from_bytes(10_000) });
        assert!((window(&reno) - 1.0).abs() < 1e-9);
    }
}
