use std::collections::VecDeque;

use equipoise::control::{BoxedController, Ecn, Fate, Feedback, PacketFeedback, PacketReport, SentPacket, find};
use equipoise::random::{self, Generator};
use equipoise::units::{Instant, SenderClock, Size, Span};
use rand_core::Rng as _;

pub(super) const PACKET: Size = Size::from_bytes(1200);
/// The time at the start of a run.
pub(super) const FROM: Instant<SenderClock> = Instant::from_nanos(1_000_000_000_000);
/// The start rate and the maximum rate, in bit/s.
pub(super) const START_BPS: i64 = 300_000;
pub(super) const MAX_BPS: i64 = 20_000_000;
const PROPAGATION: Span = Span::from_millis(25);
const REPORT: Span = Span::from_millis(50);
/// A packet that would wait longer than this in the queue is dropped.
const LONGEST_WAIT: Span = Span::from_millis(300);

/// A controller of another implementation.
pub(super) trait Peer {
    /// Records a packet that was sent.
    fn on_sent(&mut self, now: Instant<SenderClock>, number: u64, size: Size);

    /// Processes feedback. Returns the rate, in bit/s, that the controller has set after the feedback; `None` before
    /// the first rate.
    fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &PacketFeedback<'_>) -> Option<f64>;
}

/// Which rate the sender follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leader {
    Ours,
    Theirs,
}

/// The properties of a path.
#[derive(Clone, Debug)]
pub(super) struct Conditions {
    pub capacity_bps: f64,
    /// Changes of the capacity: time in seconds and new capacity in bit/s.
    pub changes: Vec<(f64, f64)>,
    /// Share of packets lost at random, 0 to 1.
    pub loss: f64,
    /// Maximum random delay after the queue, in ms. The delay is uniformly distributed from zero to this maximum.
    /// Packets stay in order.
    pub jitter_ms: f64,
    pub application_bps: f64,
    pub seed: u64,
}

impl Conditions {
    pub(super) const fn new() -> Self {
        Self {
            capacity_bps: 2e6,
            changes: Vec::new(),
            loss: 0.0,
            jitter_ms: 0.0,
            application_bps: f64::INFINITY,
            seed: 1,
        }
    }

    fn capacity_bps(&self, seconds: f64) -> f64 {
        let behind = self.changes.partition_point(|(from, _)| *from <= seconds);
        behind.checked_sub(1).map_or(self.capacity_bps, |last| self.changes[last].1)
    }
}

/// The rates of our controller and of the other implementation after a report.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub at_s: f64,
    pub ours_bps: f64,
    pub theirs_bps: f64,
}

/// A sender, a link, and a receiver whose reports contain every packet.
pub(super) struct Path {
    conditions: Conditions,
    random: Generator,
    ours: BoxedController,
    theirs: Box<dyn Peer>,
    leader: Leader,
    theirs_bps: f64,
    number: u64,
    free: Instant<SenderClock>,
    last_arrival: Instant<SenderClock>,
    under_way: VecDeque<PacketReport>,
}

impl Path {
    /// Creates a path with our controller, configured by `words`, and the controller of another implementation.
    pub(super) fn new(conditions: Conditions, words: &[(&str, &str)], theirs: Box<dyn Peer>, leader: Leader) -> Self {
        let entry = find("gcc").expect("in the catalogue");
        let words = [words, &[("max_rate", "20 Mbit/s")]].concat();
        let parameters = entry.parse(&words).expect("right");
        Self {
            random: random::generator(conditions.seed, 0),
            conditions,
            ours: entry.build(&parameters, PACKET).expect("right"),
            theirs,
            leader,
            theirs_bps: START_BPS as f64,
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
                let bps = if self.leader == Leader::Ours { self.rate() } else { self.theirs_bps };
                let bps = bps.min(self.conditions.application_bps);
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

    /// Returns a random number from 0 to 1.
    fn draw(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn send(&mut self, now: Instant<SenderClock>) {
        let seconds = (now - FROM).as_secs_f64();
        let capacity_bps = self.conditions.capacity_bps(seconds);
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
        self.theirs_bps = self.theirs.on_feedback(now, &feedback)?;
        Some(Point { at_s: (now - FROM).as_secs_f64(), ours_bps: self.rate(), theirs_bps: self.theirs_bps })
    }
}

fn span(seconds: f64) -> Span {
    Span::from_secs_f64(seconds).expect("a number")
}
