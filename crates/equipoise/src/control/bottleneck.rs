//! A simulated path for tests of controllers that use per-packet feedback: a FIFO queue in front of a link.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::{Controller, Ecn, Fate, Feedback, PacketFeedback, PacketReport, SentPacket};
use crate::units::{Instant, SenderClock, Size, Span};

/// The parameters of the simulated path and of the receiver's reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bottleneck {
    /// Capacity of the link in bit/s, as a function of the time since the start in s.
    pub(super) capacity_bps: fn(f64) -> f64,
    /// One-way delay of the empty path.
    pub(super) way: Span,
    /// The longest wait in the queue. A packet that would wait longer is dropped.
    pub(super) queue: Span,
    /// A packet that waits longer than this in the queue is marked with ECN CE.
    pub(super) mark_above: Span,
    /// Every packet whose number is a multiple of `mark_every` is also marked with ECN CE. With 0, no packet is marked
    /// in this way.
    pub(super) mark_every: u64,
    /// Every packet whose number is a multiple of `drop_every` is dropped, even if the queue is short. With 0, only the
    /// queue drops packets.
    pub(super) drop_every: u64,
    /// ECN codepoint of the packets sent.
    pub(super) ecn: Ecn,
    /// Time between two reports.
    pub(super) report_every: Span,
    /// Size of each packet.
    pub(super) packet: Size,
    /// The highest rate of the application, in bit/s.
    pub(super) wanted_bps: f64,
}

/// An observation of the simulated path, made every tenth of a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// Time since the start, in s.
    pub(super) at_s: f64,
    /// The rate that the controller allows, in bit/s.
    pub(super) rate_bps: f64,
    /// How long a packet that is sent at this time would wait in the queue, in s.
    pub(super) queue_s: f64,
}

impl Default for Bottleneck {
    fn default() -> Self {
        Self {
            capacity_bps: |_| 1e6,
            way: Span::from_millis(25),
            queue: Span::from_millis(300),
            mark_above: Span::MAX,
            mark_every: 0,
            drop_every: 0,
            ecn: Ecn::NotEct,
            report_every: Span::from_millis(50),
            packet: Size::from_bytes(1000),
            wanted_bps: 1e12,
        }
    }
}

/// `EPOCH` is the time on the sender's clock at the start of a run. The receiver's clock is `RECEIVER_BEHIND` behind
/// the sender's clock.
const EPOCH: Instant<SenderClock> = Instant::from_nanos(7_200_000_000_000);
const RECEIVER_BEHIND: Span = Span::from_secs(3600);
const TICK: Span = Span::from_millis(1);

/// A packet in flight, with the time at which it arrives or, if it is lost, would have arrived.
struct UnderWay {
    report: PacketReport,
    arrives: Instant<SenderClock>,
}

impl Bottleneck {
    /// Runs a controller for `seconds` over the simulated path. Returns the observations, ten per second.
    pub(super) fn run(&self, controller: &mut dyn Controller, seconds: i64) -> Vec<Moment> {
        let mut under_way: VecDeque<UnderWay> = VecDeque::new();
        let mut reports: VecDeque<(Instant<SenderClock>, Instant<SenderClock>, Vec<PacketReport>)> = VecDeque::new();
        let (mut link_free, mut next_report) = (EPOCH, EPOCH);
        let (mut in_flight, mut number, mut credit) = (0u64, 0u64, 0.0);
        let mut seen = Vec::new();
        let bytes = self.packet.as_bytes();
        for tick in 0..seconds * 1000 {
            let now = EPOCH + TICK * tick;
            let at_s = tick as f64 / 1000.0;
            while reports.front().is_some_and(|(due, ..)| *due <= now) {
                let Some((_, made, packets)) = reports.pop_front() else { break };
                let mut feedback = PacketFeedback::new(&packets, Size::from_bytes(in_flight));
                feedback.round_trip = packets.iter().rev().find_map(|packet| match packet.fate {
                    Fate::Arrived { at: Some(at), .. } => {
                        let held = made - (at + RECEIVER_BEHIND).assume_clock();
                        Some(now - packet.departed - held)
                    }
                    _ => None,
                });
                controller.on_feedback(now, &Feedback::Packets(&feedback));
                in_flight -= packets.len() as u64 * bytes;
            }
            let allowance = controller.allowance();
            let rate_bps = allowance.rate.expect("a rate").as_bps_f64();
            credit = (credit + rate_bps.min(self.wanted_bps) / 8.0 * TICK.as_secs_f64()).min(20.0 * bytes as f64);
            let window = allowance.window.map_or(u64::MAX, Size::as_bytes);
            while credit >= bytes as f64 && in_flight < window {
                credit -= bytes as f64;
                in_flight += bytes;
                let waits = if link_free > now { link_free - now } else { Span::ZERO };
                number += 1;
                let every = |count: u64| count > 0 && number.is_multiple_of(count);
                let is_lost = waits > self.queue || every(self.drop_every);
                if !is_lost {
                    let takes = bytes as f64 * 8.0 / (self.capacity_bps)(at_s);
                    link_free = now + waits + Span::from_secs_f64(takes).expect("a time");
                }
                let arrives = if is_lost { now + waits + self.way } else { link_free + self.way };
                let is_marked = waits > self.mark_above || every(self.mark_every);
                let at = Some((arrives - RECEIVER_BEHIND).assume_clock());
                let ecn = if is_marked { Ecn::Ce } else { self.ecn };
                let fate = if is_lost { Fate::Lost } else { Fate::Arrived { at, ecn } };
                under_way.push_back(UnderWay { report: PacketReport::new(number, self.packet, now, fate), arrives });
                controller.on_sent(now, &SentPacket::new(number, self.packet, Size::from_bytes(in_flight)));
            }
            if now >= next_report {
                next_report = next_report + self.report_every;
                let mut packets = Vec::new();
                while under_way.front().is_some_and(|packet| packet.arrives <= now) {
                    packets.extend(under_way.pop_front().map(|packet| packet.report));
                }
                if !packets.is_empty() {
                    reports.push_back((now + self.way, now, packets));
                }
            }
            if tick % 100 == 0 {
                let queue_s = if link_free > now { (link_free - now).as_secs_f64() } else { 0.0 };
                seen.push(Moment { at_s, rate_bps, queue_s });
            }
        }
        seen
    }
}

/// Returns the mean rate in bit/s and the mean wait in the queue in s, from the time `from_s` to the time `to_s`, in s.
pub(super) fn mean(seen: &[Moment], from_s: f64, to_s: f64) -> (f64, f64) {
    let part: Vec<_> = seen.iter().filter(|moment| (from_s..to_s).contains(&moment.at_s)).collect();
    let sum = |value: fn(&Moment) -> f64| part.iter().map(|moment| value(moment)).sum::<f64>() / part.len() as f64;
    (sum(|moment| moment.rate_bps), sum(|moment| moment.queue_s))
}
