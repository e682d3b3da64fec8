//! A sketch of Google congestion control on the seam: per-packet feedback in, a rate out.
//!
//! It shows that the seam carries what the algorithm needs (departure, arrival and size of each packet, losses, time). Its
//! constants are those of draft-ietf-rmcat-gcc-02, Sec. 5 and 6, in round numbers; the Kalman filter is a least-squares slope.
#![expect(clippy::print_stdout, reason = "a program that is read by a person")]

use std::collections::VecDeque;

use equipoise::control::{
    Allowance, Controller, Ecn, Fate, Feedback, Needs, PacketFeedback, PacketReport, Reason, Snapshot,
};
use equipoise::units::{Instant, Rate, ReceiverClock, SenderClock, Size, Span};

/// Packets that leave within this time are one group.
const GROUP: Span = Span::from_millis(5);
/// Groups that the slope is fitted to.
const WINDOW: usize = 20;
/// Slope of the delay beyond which the path is overused.
const OVERUSE: f64 = 0.015;

#[derive(Clone, Debug)]
struct Gcc {
    rate: Rate,
    group: Option<(Instant<SenderClock>, Instant<ReceiverClock>)>,
    /// Time of arrival and accumulated delay of the last groups, in s.
    trend: VecDeque<(f64, f64)>,
    last_change: Instant<SenderClock>,
    reason: Option<Reason>,
}

impl Gcc {
    fn new(rate: Rate) -> Self {
        Self { rate, group: None, trend: VecDeque::new(), last_change: Instant::ZERO, reason: None }
    }

    fn on_arrival(&mut self, departed: Instant<SenderClock>, arrived: Instant<ReceiverClock>) {
        let (first, came) = *self.group.get_or_insert((departed, arrived));
        if departed - first < GROUP {
            return;
        }
        let gradient = (arrived - came).as_secs_f64() - (departed - first).as_secs_f64();
        let accumulated = self.trend.back().map_or(0.0, |(_, delay)| *delay) + gradient;
        self.trend.push_back((arrived.as_nanos() as f64 / 1e9, accumulated));
        if self.trend.len() > WINDOW {
            self.trend.pop_front();
        }
        self.group = Some((departed, arrived));
    }

    fn slope(&self) -> f64 {
        let n = self.trend.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| self.trend.iter().map(of).sum::<f64>() / n;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let over: f64 = self.trend.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
        let under: f64 = self.trend.iter().map(|point| (point.0 - x).powi(2)).sum();
        if under > 0.0 { over / under } else { 0.0 }
    }

    fn on_packets(&mut self, now: Instant<SenderClock>, feedback: &PacketFeedback<'_>) {
        let lost = feedback.packets.iter().filter(|packet| packet.fate == Fate::Lost).count();
        for packet in feedback.packets {
            if let Fate::Arrived { at: Some(arrived), .. } = packet.fate {
                self.on_arrival(packet.departed, arrived);
            }
        }
        let share = lost as f64 / feedback.packets.len().max(1) as f64;
        let elapsed = (now - self.last_change).as_secs_f64().clamp(0.0, 1.0);
        let (factor, reason) = if share > 0.1 {
            (1.0 - 0.5 * share, Reason::Other("loss"))
        } else if self.slope() > OVERUSE {
            (0.85_f64.powf(elapsed), Reason::Other("overuse"))
        } else if feedback.app_limited {
            (1.0, Reason::AppLimited)
        } else {
            (1.08_f64.powf(elapsed), Reason::Law)
        };
        self.last_change = now;
        self.reason = Some(reason);
        self.rate = Rate::from_bps_f64(self.rate.as_bps_f64() * factor).unwrap_or(self.rate);
    }
}

impl Controller for Gcc {
    fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &Feedback<'_>) {
        if let Feedback::Packets(packets) = feedback {
            self.on_packets(now, packets);
        }
    }

    fn allowance(&self) -> Allowance {
        Allowance::rate(self.rate)
    }

    fn needs(&self) -> Needs {
        Needs::PACKETS
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { reason: self.reason, ..Snapshot::default() }
    }
}

fn main() {
    let mut gcc = Gcc::new(Rate::from_bps(1_000_000));
    // A packet of 1200 bytes each 10 ms; from the hundredth on a queue grows by 1 ms with each.
    for number in 0..200u64 {
        let departed = Instant::from_nanos(number * 10_000_000);
        let queue = number.saturating_sub(100) * 1_000_000;
        let at = Some(Instant::from_nanos(number * 10_000_000 + 20_000_000 + queue));
        let fate = Fate::Arrived { at, ecn: Ecn::NotEct };
        let report = [PacketReport::new(number, Size::from_bytes(1200), departed, fate)];
        let feedback = PacketFeedback::new(&report, Size::from_bytes(6000));
        gcc.on_feedback(departed + Span::from_millis(40), &Feedback::Packets(&feedback));
        if number % 20 == 19 {
            println!("{:4} ms: {}, {}", number * 10, gcc.rate, gcc.reason.map_or("", Reason::name));
        }
    }
}
