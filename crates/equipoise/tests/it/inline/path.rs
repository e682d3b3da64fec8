use std::collections::VecDeque;

use equipoise::measure::BandwidthEstimate;
use equipoise::measure::{InlineConfig, InlineMeasurement};
use equipoise::units::{Instant, Rate, Schedule, SenderClock, Size, Span};
use equipoise_path::link::{FifoLink, LinkConfig, QueueLimit};
use equipoise_path::source::{Source, Traffic};

type Now = Instant<SenderClock>;

/// A window-limited connection over one link that it shares with cross traffic.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) capacity: Rate,
    /// Rate of the sender's own link, in multiples of the capacity.
    pub(super) access: u64,
    /// Round-trip time without any queue.
    pub(super) round_trip: Span,
    pub(super) traffic: Traffic,
    pub(super) others: Schedule<Rate>,
    pub(super) others_packet: Size,
    pub(super) delayed_acks: bool,
    /// Rate of the connection after slow start: one window per round-trip time, if no queue delays the packets.
    pub(super) own: Rate,
    pub(super) measures: bool,
    pub(super) lasts: Span,
    pub(super) seed: u64,
}

#[derive(Default)]
pub(super) struct Run {
    pub(super) results: Vec<(f64, BandwidthEstimate)>,
    pub(super) sent: u64,
    /// Number of segments sent in the second half of the run.
    pub(super) sent_late: u64,
    pub(super) dropped: u64,
    pub(super) longest_hold: f64,
}

pub(super) const SEGMENT: Size = Size::from_bytes(1500);
/// Timer of delayed acknowledgements: the minimum of Linux.
const ACK_TIMER: Span = Span::from_millis(40);
const FIRST_WINDOW: u64 = 10;

pub(super) fn fifo(rate: Rate) -> FifoLink<SenderClock> {
    let queue = QueueLimit::Packets(100_000);
    let config = LinkConfig { rate: Schedule::constant(rate), propagation_delay: Span::ZERO, queue };
    FifoLink::new(config, Instant::ZERO).expect("enough of them")
}

struct World {
    setup: Setup,
    measurement: InlineMeasurement,
    access: FifoLink<SenderClock>,
    link: FifoLink<SenderClock>,
    /// Segments on the way to the link: arrival time at the link, and number.
    on_wire: VecDeque<(Now, u64)>,
    /// Segments on the way to the receiver: arrival time at the receiver, and number.
    on_link: VecDeque<(Now, u64)>,
    acks: VecDeque<(Now, u64)>,
    /// The receiver's state: all segments below `received` arrived, all segments below `confirmed` were acknowledged,
    /// and `timer` is the time of the next delayed acknowledgement.
    received: u64,
    confirmed: u64,
    timer: Option<Now>,
    wake: Option<Now>,
    window: u64,
    next: u64,
    acknowledged: u64,
    blocked_since: Option<Now>,
    run: Run,
}

pub(super) fn run(setup: &Setup) -> Run {
    let mut others =
        Source::new(setup.traffic, setup.others.clone(), setup.others_packet, Instant::ZERO, (setup.seed, 0));
    let end = Instant::ZERO + setup.lasts;
    let mut world = World {
        measurement: InlineMeasurement::new(InlineConfig::new(SEGMENT)),
        access: fifo(Rate::from_bps(setup.capacity.as_bps() * setup.access)),
        link: fifo(setup.capacity),
        setup: setup.clone(),
        on_wire: VecDeque::new(),
        on_link: VecDeque::new(),
        acks: VecDeque::new(),
        received: 0,
        confirmed: 0,
        timer: None,
        wake: Some(Instant::from_nanos(1)),
        window: FIRST_WINDOW,
        next: 0,
        acknowledged: 0,
        blocked_since: None,
        run: Run::default(),
    };
    loop {
        let others_next = others.next_departure().unwrap_or(Instant::MAX);
        let own_next = world.next();
        let now = others_next.min(own_next);
        if now > end {
            return world.run;
        }
        if others_next <= own_next {
            world.link.offer(now, setup.others_packet);
            others.advance();
        } else {
            world.step(now);
        }
    }
}

impl World {
    fn next(&self) -> Now {
        let fronts = [&self.on_wire, &self.on_link, &self.acks].map(|queue| queue.front().map(|&(at, _)| at));
        fronts.into_iter().chain([self.timer, self.wake]).flatten().min().unwrap_or(Instant::MAX)
    }

    fn step(&mut self, now: Now) {
        while let Some(&(at, number)) = self.on_wire.front().filter(|(at, _)| *at <= now) {
            self.on_wire.pop_front();
            match self.link.offer(at, SEGMENT) {
                Some(passage) => self.on_link.push_back((passage.arrives_at, number)),
                None => self.run.dropped += 1,
            }
        }
        while let Some(&(at, number)) = self.on_link.front().filter(|(at, _)| *at <= now) {
            self.on_link.pop_front();
            self.received = number + 1;
            if !self.setup.delayed_acks || self.received - self.confirmed >= 2 {
                self.acknowledge(at);
            } else {
                self.timer = Some(at + ACK_TIMER);
            }
        }
        if self.timer.is_some_and(|timer| timer <= now) {
            self.acknowledge(now);
        }
        let mut try_now = self.wake.is_some_and(|at| at <= now);
        while let Some(&(_, up_to)) = self.acks.front().filter(|(at, _)| *at <= now) {
            self.acks.pop_front();
            self.take_ack(now, up_to);
            try_now = true;
        }
        if try_now {
            self.send(now);
        }
    }

    fn acknowledge(&mut self, at: Now) {
        self.timer = None;
        self.confirmed = self.received;
        self.acks.push_back((at + self.setup.round_trip, self.received));
    }

    fn take_ack(&mut self, now: Now, up_to: u64) {
        let full = self.setup.own.as_bps_f64() * self.setup.round_trip.as_secs_f64() / SEGMENT.as_bits() as f64;
        self.window = (self.window + up_to - self.acknowledged).min(full as u64).max(2);
        self.acknowledged = up_to;
        if self.setup.measures {
            self.measurement.on_ack(now, up_to);
            if let Some(estimate) = self.measurement.take_estimate() {
                self.run.results.push((now.as_nanos() as f64 / 1e9, estimate));
            }
        }
    }

    fn send(&mut self, now: Now) {
        self.wake = None;
        loop {
            let room = (self.acknowledged + self.window).saturating_sub(self.next);
            if room == 0 {
                self.blocked_since = None;
                return;
            }
            if self.setup.measures {
                let at = self.measurement.next_departure(now, room);
                if at > now {
                    self.wake = Some(at);
                    self.blocked_since.get_or_insert(now);
                    return;
                }
                self.measurement.on_sent(now, self.next, false);
            }
            if let Some(since) = self.blocked_since.take() {
                self.run.longest_hold = self.run.longest_hold.max((now - since).as_secs_f64());
            }
            if let Some(passage) = self.access.offer(now, SEGMENT) {
                self.on_wire.push_back((passage.arrives_at, self.next));
            }
            self.next += 1;
            self.run.sent += 1;
            if now - Instant::ZERO >= Span::from_nanos(self.setup.lasts.as_nanos() / 2) {
                self.run.sent_late += 1;
            }
        }
    }
}
