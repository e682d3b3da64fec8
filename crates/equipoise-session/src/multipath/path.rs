use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::law::Law;
use super::total::PathLaws;
use crate::rtp::application::Application;
use crate::rtp::breaker::{Breakers, Trip};
use crate::rtp::exchange::Exchange;
use crate::rtp::proof::Proof;
use crate::rtp::stream::{Counts, Sent};
use crate::rtp::{SenderConfig, SessionError};
use crate::wire::feedback::ArrivalFeedback;
use crate::wire::rtp::Subflow;
use crate::{DropReason, Event, PathId};
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
    /// Its share of the total.
    share: Rate,
    /// `None` where all paths together have one.
    law: Option<Law>,
    /// What its law allowed when the total was divided last.
    divided_at: Rate,
    /// The world lets it be used.
    pub(super) is_up: bool,
    /// It does not answer.
    is_silent: bool,
    breakers: Breakers,
    /// When it was last heard from, or came up.
    heard: Instant<SenderClock>,
    /// Since when it has its rate: an answer to an earlier request concerns another rate.
    begun: Instant<SenderClock>,
    /// It has reported on the period that is being closed.
    pub(super) has_told: bool,
    /// How long what it has sent since the last split takes at its rate.
    served: Span,
    /// Its lower half is what the next packet carries.
    next_number: u64,
    pub(super) counts: Counts,
    /// Its delay in this period, and the other statistics from its reports.
    pool: PeriodDelay,
    told: Told,
    copies: VecDeque<Waiting>,
    /// Buffers to use again.
    spare: Vec<Vec<u8>>,
}

/// What a path has of its session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Session<'a> {
    pub(super) config: &'a SenderConfig,
    pub(super) period: Span,
    /// `None` where all paths together have one controller.
    pub(super) laws: Option<&'a PathLaws>,
}

/// The content of the reports on a period.
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
    /// Maximum number of copies that wait for their turn; the oldest is dropped. Ours: later ones would come too late to help.
    const COPIES: usize = 32;

    /// A path that the world lets be used from `now` on, whose packets are numbered from `first` on.
    ///
    /// # Errors
    /// [`SessionError`] where it is to have a law of its own, and none can be made.
    pub(super) fn new(
        id: PathId,
        Session { config, period, laws }: Session<'_>,
        now: Instant<SenderClock>,
        first: u16,
    ) -> Result<Self, SessionError> {
        let start = now.max(config.start);
        let law = laws.map(|laws| Law::new(config, laws, start)).transpose()?;
        let reports = (config.report_interval, config.stream.packet_size);
        Ok(Self {
            id,
            exchange: Exchange::new(config, start, stream_seed(config.seed, 1 + u64::from(id.0))),
            pacer: Pacer::new(Rate::ZERO),
            share: Rate::ZERO,
            divided_at: law.as_ref().map_or(Rate::ZERO, Law::rate),
            law,
            is_up: true,
            is_silent: false,
            breakers: Breakers::new(config.circuit_breakers, reports, start).of_path(period),
            heard: start,
            begun: start,
            has_told: false,
            served: Span::ZERO,
            next_number: u64::from(first),
            counts: Counts::default(),
            pool: PeriodDelay::default(),
            told: Told::default(),
            copies: VecDeque::new(),
            spare: Vec::new(),
        })
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
    pub(super) fn comes_up(&mut self, now: Instant<SenderClock>, laws: Option<&PathLaws>) {
        (self.is_up, self.is_silent, self.heard) = (true, false, now);
        self.exchange.forget_strays();
        self.pacer.rested_until(now);
        self.comes_back(now, laws);
    }

    /// It answers again, and its law restarts.
    pub(super) fn comes_back(&mut self, now: Instant<SenderClock>, laws: Option<&PathLaws>) {
        self.begin(now);
        if let (Some(law), Some(laws)) = (&mut self.law, laws) {
            law.begin_anew(laws, now);
        }
    }

    /// Only what is asked from now on, about what is sent from now on, counts.
    pub(super) fn begin(&mut self, now: Instant<SenderClock>) {
        self.begun = now;
        self.pool = PeriodDelay::default();
        self.exchange.begin(now);
    }

    /// Sets its share of the total from now on. Returns whether the share changed.
    ///
    /// A law of the path moves the share all the time, so that the delay of a period is then that of all its packets.
    pub(super) fn set_share(&mut self, now: Instant<SenderClock>, share: Rate) -> bool {
        let is_other = share != core::mem::replace(&mut self.share, share);
        match &self.law {
            Some(law) => self.divided_at = law.rate(),
            None if is_other => self.begin(now),
            None => {}
        }
        self.keep_pace();
        is_other
    }

    /// A period begins: what was sent of a share before does not count any more.
    pub(super) const fn begin_period(&mut self) {
        self.served = Span::ZERO;
    }

    /// Its law, if it has one, starts at its lowest rate: nothing that was sent on other paths proves what this one carries.
    pub(super) fn begin_low(&mut self) {
        self.law.iter_mut().for_each(Law::begin_low);
    }

    /// Packets follow each other as its share, and its law, let them.
    fn keep_pace(&mut self) {
        self.pacer.set_rate(self.law.as_ref().map_or(self.share, |law| law.pace(self.share)));
    }

    /// Its share of the total.
    pub(super) const fn share(&self) -> Rate {
        self.share
    }

    pub(super) const fn law(&self) -> Option<&Law> {
        self.law.as_ref()
    }

    pub(super) const fn law_mut(&mut self) -> Option<&mut Law> {
        self.law.as_mut()
    }

    /// Whether the allowance of its law has changed since the total was divided.
    pub(super) fn has_other_rate(&self) -> bool {
        self.law.as_ref().is_some_and(|law| law.rate() != self.divided_at)
    }

    /// Does what its law has to do by `now`.
    pub(super) fn tend(&mut self, now: Instant<SenderClock>, report_interval: Span) {
        let Some(law) = &mut self.law else { return };
        if law.tend(now, report_interval) {
            // The answers before a probe and behind it prove the rate of the probe alone.
            self.exchange.hurry(now);
        }
        self.keep_pace();
    }

    /// A request is due at `now`: its number and extension, or `None` where it is skipped, as three are missing.
    pub(super) fn turn(
        &mut self,
        now: Instant<SenderClock>,
        has_stopped: bool,
        application: &mut Application,
    ) -> Option<(u64, Vec<u8>)> {
        let Self { exchange, law: Some(law), pacer, .. } = self else {
            return self.exchange.turn(now, has_stopped, || false);
        };
        let is_silent = exchange.is_silent(now) && !has_stopped;
        if exchange.is_unanswered(now) {
            law.on_unanswered();
        }
        let asked = exchange.turn(now, has_stopped, || law.on_asked(now, application.waited_by(now), pacer.rate()));
        match asked {
            None => law.on_silence(now),
            Some(_) if is_silent => law.on_further_silence(),
            Some(_) => {}
        }
        asked
    }

    /// Handles a report on single packets of it, when the sender has waited for the application for `waited` in total.
    pub(super) fn on_feedback(
        &mut self,
        now: Instant<SenderClock>,
        feedback: &ArrivalFeedback<'_>,
        waited: Span,
        tell: &mut impl FnMut(Event),
    ) -> Result<(), DropReason> {
        let from = self.exchange.receiver_ssrc();
        let (Some(law), ArrivalFeedback::Congestion(feedback)) = (&mut self.law, feedback) else {
            return Err(DropReason::Foreign);
        };
        if from.is_some_and(|from| from != feedback.ssrc) {
            return Err(DropReason::Foreign);
        }
        for stream in feedback.streams() {
            tell(law.on_report(now, &stream, (waited, self.pacer.rate()))?);
        }
        self.keep_pace();
        Ok(())
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

    /// A report proves what arrived on it. Returns what its circuit breaker did then. None trips if no other path is
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
        let trip = self.breakers.on_report(now, proof, round_trip);
        self.stopped_by(now, trip)
    }

    /// Its reports contradict what was sent. Returns what its circuit breaker did then.
    pub(super) fn on_contradiction(&mut self, now: Instant<SenderClock>) -> Option<Event> {
        let trip = self.breakers.on_contradiction(now);
        self.stopped_by(now, trip)
    }

    /// If its breaker has stopped it, its law starts again at the lowest rate, should media come back to the path.
    fn stopped_by(&mut self, now: Instant<SenderClock>, trip: Option<Trip>) -> Option<Event> {
        let Some(Trip::Stop(breaker)) = trip else { return None };
        self.law.iter_mut().for_each(|law| law.on_stopped(now));
        Some(Event::CircuitBroken(breaker))
    }

    /// It reported on an interval that was requested at `asked`, or on a period that is being closed since `closing`.
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
        if dies {
            self.exchange.forget_strays();
        }
        dies
    }

    /// What the scheduler gets to see; with the delay, a period ends.
    pub(super) fn view(&mut self, ends: bool) -> PathView {
        let delay = if ends { self.pool.take() } else { None };
        let most = self.law.as_ref().map(Law::rate);
        PathView { path: self.id, alive: self.is_alive(), rate: self.share, delay, most }
    }

    /// Takes the content of the reports on the period that ends.
    pub(super) fn take_told(&mut self) -> Told {
        core::mem::take(&mut self.told)
    }

    /// Whether a packet may leave at `now`.
    pub(super) fn is_ready(&self, now: Instant<SenderClock>) -> bool {
        self.readiness(now) == Readiness::Now
    }

    /// When a packet may leave, as its world, its law and its pacer have it.
    pub(super) fn readiness(&self, now: Instant<SenderClock>) -> Readiness<SenderClock> {
        let is_full = self.law.as_ref().is_some_and(Law::is_window_full);
        if self.is_up && !is_full { self.pacer.poll(now) } else { Readiness::Never }
    }

    /// How much of its share it has sent: the path that has sent least is next.
    pub(super) const fn served(&self) -> Span {
        self.served
    }

    /// A packet left on it. Returns how late it was, if that made the schedule restart.
    pub(super) fn on_sent(&mut self, now: Instant<SenderClock>, sent: Sent) -> Option<Span> {
        self.counts.add(sent);
        self.exchange.on_media(now, sent.size, self.next_number);
        self.served = self.served + self.share.time_to_send(sent.size).unwrap_or(Span::ZERO);
        let late = self.pacer.on_departure(now, sent.size);
        if let Some(law) = &mut self.law {
            law.on_sent(now, self.next_number - 1, sent.size);
            self.keep_pace();
        }
        late
    }

    /// The place of its next packet.
    pub(super) const fn next_subflow(&mut self) -> Subflow {
        let sequence = self.next_number as u16;
        self.next_number += 1;
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
