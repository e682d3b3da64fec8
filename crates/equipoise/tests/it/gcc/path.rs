use std::collections::VecDeque;

use equipoise::control::{BoxedController, Ecn, Fate, Feedback, PacketFeedback, PacketReport, SentPacket, find};
use equipoise::random::{self, Generator};
use equipoise::units::{Instant, SenderClock, Size, Span};
use rand_core::Rng as _;

use super::peer::Peer;

const PACKET: Size = Size::from_bytes(1200);
const FROM: Instant<SenderClock> = Instant::from_nanos(1_000_000_000_000);
const PROPAGATION: Span = Span::from_millis(25);
const REPORT: Span = Span::from_millis(50);
/// A packet that would wait for longer is dropped.
const LONGEST_WAIT: Span = Span::from_millis(300);

/// What a path does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    pub capacity_bps: f64,
    /// From which second on the capacity is another.
    pub changed: Option<(f64, f64)>,
    /// Random loss, 0 to 1.
    pub loss: f64,
    /// Random delay behind the queue, even between zero and this; nothing is overtaken.
    pub jitter_ms: f64,
    pub application_bps: f64,
    pub seed: u64,
}

impl Conditions {
    pub(super) const fn new() -> Self {
        Self { capacity_bps: 2e6, changed: None, loss: 0.0, jitter_ms: 0.0, application_bps: f64::INFINITY, seed: 1 }
    }
}

/// What both said after a report.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub at_s: f64,
    pub ours_bps: f64,
    pub theirs_bps: f64,
}

/// A sender, a link and a receiver that reports on every packet.
pub(super) struct Path {
    conditions: Conditions,
    random: Generator,
    ours: BoxedController,
    theirs: Peer,
    number: u64,
    free: Instant<SenderClock>,
    last_arrival: Instant<SenderClock>,
    under_way: VecDeque<PacketReport>,
}

impl Path {
    pub(super) fn new(conditions: Conditions) -> Self {
        let entry = find("gcc").expect("in the catalogue");
        let parameters = entry.parse(&[("probing", "off"), ("max_rate", "20 Mbit/s")]).expect("right");
        Self {
            conditions,
            random: random::generator(conditions.seed, 0),
            ours: entry.build(&parameters, PACKET).expect("right"),
            theirs: Peer::new(FROM, 30_000, 300_000, 20_000_000),
            number: 0,
            free: FROM,
            last_arrival: FROM,
            under_way: VecDeque::new(),
        }
    }

    pub(super) fn run(mut self, length: Span) -> Vec<Point> {
        let (mut next_send, mut next_report) = (FROM, FROM + REPORT);
        let mut points = Vec::new();
        while next_report < FROM + length {
            if next_send < next_report {
                self.send(next_send);
                let bps = self.rate().min(self.conditions.application_bps);
                next_send = next_send + span(PACKET.as_bits() as f64 / bps);
            } else {
                points.extend(self.report(next_report));
                next_report = next_report + REPORT;
            }
        }
        points
    }

    fn rate(&self) -> f64 {
        self.ours.allowance().rate.expect("a rate").as_bps_f64()
    }

    /// From 0 to 1.
    fn draw(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn send(&mut self, now: Instant<SenderClock>) {
        let seconds = (now - FROM).as_secs_f64();
        let changed = self.conditions.changed.filter(|(from, _)| seconds >= *from);
        let capacity_bps = changed.map_or(self.conditions.capacity_bps, |(_, bps)| bps);
        let is_lost = self.draw() < self.conditions.loss || self.free - now > LONGEST_WAIT;
        let fate = if is_lost {
            Fate::Lost
        } else {
            self.free = self.free.max(now) + span(PACKET.as_bits() as f64 / capacity_bps);
            let jitter = span(self.draw() * self.conditions.jitter_ms / 1e3);
            self.last_arrival = self.last_arrival.max(self.free + PROPAGATION + jitter);
            Fate::Arrived { at: Some(self.last_arrival.assume_clock()), ecn: Ecn::NotEct }
        };
        self.under_way.push_back(PacketReport::new(self.number, PACKET, now, fate));
        self.ours.on_sent(now, &SentPacket::new(self.number, PACKET, Size::ZERO));
        self.theirs.on_sent(now, self.number, PACKET);
        self.number += 1;
    }

    fn report(&mut self, now: Instant<SenderClock>) -> Option<Point> {
        let is_known = |packet: &PacketReport| match packet.fate {
            Fate::Arrived { at: Some(at), .. } => at.assume_clock::<SenderClock>() + PROPAGATION <= now,
            _ => true,
        };
        let count = self.under_way.iter().take_while(|packet| is_known(packet)).count();
        let packets: Vec<_> = self.under_way.drain(..count).collect();
        let newest = packets.iter().rev().find(|packet| packet.fate != Fate::Lost)?;
        let mut feedback = PacketFeedback::new(&packets, Size::ZERO);
        feedback.round_trip = Some(now - newest.departed);
        self.ours.on_feedback(now, &Feedback::Packets(&feedback));
        let theirs_bps = self.theirs.on_feedback(now, &feedback)?;
        Some(Point { at_s: (now - FROM).as_secs_f64(), ours_bps: self.rate(), theirs_bps })
    }
}

fn span(seconds: f64) -> Span {
    Span::from_secs_f64(seconds).expect("a number")
}
