use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::rtp::SenderConfig;
use crate::rtp::breaker::{Breakers, Trip};
use crate::rtp::exchange::Exchange;
use crate::rtp::proof::Proof;
use crate::rtp::stream::{Counts, Sent};
use crate::wire::rtp::Subflow;
use crate::{Event, PathId};
use equipoise::control::IntervalSummary;
use equipoise::control::scheduler::{PathView, PeriodDelay};
use equipoise::pace::{Pacer, Readiness};
use equipoise::random::stream_seed;
use equipoise::units::{Instant, Rate, SenderClock, Span};

/// One path of a session, as its sending end sees it.
#[derive(Debug)]
pub(super) struct Path {
    id: PathId,
    pub(super) exchange: Exchange,
    pub(super) pacer: Pacer<SenderClock>,
    /// The world lets it be used.
    pub(super) is_up: bool,
    /// It does not answer.
    is_silent: bool,
    breakers: Breakers,
    /// When it was last heard of, or came up.
    heard: Instant<SenderClock>,
    /// Since when it has its rate: what was asked before that tells of another one.
    begun: Instant<SenderClock>,
    /// It has told of the period that is being closed.
    pub(super) has_told: bool,
    /// How long what it has sent since the last split takes at its rate.
    served: Span,
    /// Its lower half is what the next packet carries.
    next_number: u32,
    pub(super) counts: Counts,
    /// Its delay in this period, and what else reports have told of it.
    pool: PeriodDelay,
    told: Told,
    copies: VecDeque<Waiting>,
    /// Buffers to use again.
    spare: Vec<Vec<u8>>,
}

/// What reports have told of a period.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    /// What of its packets arrived.
    pub(super) proof: Proof,
    /// The longest round trip.
    pub(super) round_trip: Option<Span>,
    /// Of the packets that arrived those that queues could mark, and those that they did.
    pub(super) capable: f64,
    pub(super) marked: f64,
}

/// A packet that left on another path, and is to leave here too.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) sequence: u64,
    pub(super) plain: Vec<u8>,
}

impl Path {
    /// Copies that wait for their turn at the most; the oldest gives way. Ours: later ones would come too late to help.
    const COPIES: usize = 32;

    pub(super) fn new(
        id: PathId,
        (config, period): (&SenderConfig, Span),
        now: Instant<SenderClock>,
        first: u16,
    ) -> Self {
        let start = now.max(config.start);
        let reports = (config.report_interval, config.stream.packet_size);
        Self {
            id,
            exchange: Exchange::new(config, start, stream_seed(config.seed, 1 + u64::from(id.0))),
            pacer: Pacer::new(Rate::ZERO),
            is_up: true,
            is_silent: false,
            breakers: Breakers::new(config.circuit_breakers, reports, start).of_path(period),
            heard: start,
            begun: start,
            has_told: false,
            served: Span::ZERO,
            next_number: u32::from(first),
            counts: Counts::default(),
            pool: PeriodDelay::default(),
            told: Told::default(),
            copies: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    pub(super) const fn id(&self) -> PathId {
        self.id
    }

    /// Whether it answers, or is too young to have been asked.
    pub(super) const fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// Whether it answers, and no circuit breaker keeps media off it.
    pub(super) const fn is_alive(&self) -> bool {
        !self.is_silent && !self.breakers.has_stopped()
    }

    /// It can be used again; what was known of it says nothing any more.
    pub(super) fn comes_up(&mut self, now: Instant<SenderClock>) {
        (self.is_up, self.is_silent, self.heard) = (true, false, now);
        self.pacer.rested_until(now);
        self.begin(now);
    }

    /// Only what is asked from now on, about what is sent from now on, counts.
    pub(super) fn begin(&mut self, now: Instant<SenderClock>) {
        self.begun = now;
        self.pool = PeriodDelay::default();
        self.exchange.begin(now);
    }

    /// It has this rate from now on.
    pub(super) fn set_rate(&mut self, now: Instant<SenderClock>, rate: Rate) {
        self.served = Span::ZERO;
        if rate != self.pacer.rate() {
            self.pacer.set_rate(rate);
            self.begin(now);
        }
    }

    /// It cannot be used.
    pub(super) fn goes_down(&mut self) {
        self.is_up = false;
        while let Some(copy) = self.copies.pop_front() {
            self.recycle(copy.plain);
        }
    }

    /// It answered.
    pub(super) const fn on_heard(&mut self, now: Instant<SenderClock>) {
        (self.heard, self.is_silent) = (now, false);
    }

    /// A report proves what arrived on it. Gives what its circuit breaker has done thereupon. None trips where no other path is
    /// there to carry on: then the session's own act.
    pub(super) fn on_proof(
        &mut self,
        now: Instant<SenderClock>,
        proof: Proof,
        round_trip: Span,
        others_live: bool,
    ) -> Option<Event> {
        if self.breakers.has_stopped() {
            self.breakers.on_report(now, proof, round_trip);
            return self.breakers.begins_again(now).then_some(Event::CircuitClosed);
        }
        if !others_live {
            return None;
        }
        match self.breakers.on_report(now, proof, round_trip)? {
            Trip::Stop(breaker) => Some(Event::CircuitBroken(breaker)),
            Trip::Tenth => None,
        }
    }

    /// It told of an interval that it was asked about at `asked`; of a period that is being closed since `closing`.
    pub(super) fn on_interval(
        &mut self,
        asked: Instant<SenderClock>,
        interval: &IntervalSummary,
        proof: Proof,
        closing: Option<Instant<SenderClock>>,
    ) {
        // What arrived is proved, whatever the rate was.
        self.told.proof = self.told.proof.and(proof);
        if asked <= self.begun || !self.is_alive() {
            return;
        }
        if let Some(delay) = &interval.delay {
            self.pool.push(delay);
        }
        self.told.round_trip = self.told.round_trip.max(interval.round_trip);
        if let Some(share) = interval.fraction_marked {
            self.told.capable += proof.arrived as f64;
            self.told.marked += proof.arrived as f64 * share;
        }
        self.has_told |= closing.is_some_and(|closing| asked >= closing);
    }

    /// Dies where it has been silent for three intervals (Waki 2013, Sec. 5.1); returns whether it did.
    ///
    /// Counted by time and not by requests: behind a long queue answers are late, and come all the same.
    pub(super) fn dies(&mut self, now: Instant<SenderClock>, report_interval: Span) -> bool {
        let limit = report_interval * Exchange::MISSING as i64;
        let dies = self.is_up && !self.is_silent && now - self.heard > limit;
        self.is_silent |= dies;
        dies
    }

    /// What the scheduler gets to see; with the delay, a period ends.
    pub(super) fn view(&mut self, ends: bool) -> PathView {
        let delay = if ends { self.pool.take() } else { None };
        PathView { path: self.id, alive: self.is_alive(), rate: self.pacer.rate(), delay }
    }

    /// What reports have told of the period that ends, which is forgotten.
    pub(super) fn take_told(&mut self) -> Told {
        core::mem::take(&mut self.told)
    }

    /// Whether a packet may leave at `now`.
    pub(super) fn is_ready(&self, now: Instant<SenderClock>) -> bool {
        self.is_up && self.pacer.poll(now) == Readiness::Now
    }

    /// How much of its share it has sent: the path that has sent least is next.
    pub(super) const fn served(&self) -> Span {
        self.served
    }

    /// A packet left on it. Gives how late it was, where that made the schedule start anew.
    pub(super) fn on_sent(&mut self, now: Instant<SenderClock>, sent: Sent) -> Option<Span> {
        self.counts.add(sent);
        self.exchange.on_media(now, sent.size, u64::from(self.next_number));
        self.served = self.served + self.pacer.rate().time_to_send(sent.size).unwrap_or(Span::ZERO);
        self.pacer.on_departure(now, sent.size)
    }

    /// The place of its next packet.
    pub(super) const fn next_subflow(&mut self) -> Subflow {
        let sequence = self.next_number as u16;
        self.next_number = self.next_number.wrapping_add(1);
        Subflow { id: self.id.0, sequence }
    }

    /// Keeps a copy of a packet until the path's turn comes.
    pub(super) fn keep(&mut self, sequence: u64, plain: &[u8]) {
        let oldest = if self.copies.len() >= Self::COPIES { self.copies.pop_front() } else { None };
        let mut buffer = oldest.map(|copy| copy.plain).or_else(|| self.spare.pop()).unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(plain);
        self.copies.push_back(Waiting { sequence, plain: buffer });
    }

    pub(super) fn has_copies(&self) -> bool {
        !self.copies.is_empty()
    }

    pub(super) fn take_copy(&mut self) -> Option<Waiting> {
        self.copies.pop_front()
    }

    /// Takes a buffer back.
    pub(super) fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < Self::COPIES {
            self.spare.push(buffer);
        }
    }
}
