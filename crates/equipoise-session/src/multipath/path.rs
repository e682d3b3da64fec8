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

/// The sender's state of one path of a session.
#[derive(Debug)]
pub(super) struct Path {
    id: PathId,
    pub(super) exchange: Exchange,
    pub(super) pacer: Pacer<SenderClock>,
    /// The path's share of the total rate.
    share: Rate,
    /// The path's control law; `None` if all paths together have one control law.
    law: Option<Law>,
    /// The rate that the path's law allowed when the total rate was last divided among the paths.
    divided_at: Rate,
    /// Whether the driver announced the path as usable.
    pub(super) is_up: bool,
    /// Whether three report intervals have passed without a report about the path. The report may arrive on any path.
    /// Becomes true only while the path is up.
    is_silent: bool,
    breakers: Breakers,
    /// When the last report about the path arrived, on this path or on another. Also set when the path becomes usable.
    heard: Instant<SenderClock>,
    /// When measurements of the path last restarted. Answers to earlier requests are not used as measurements.
    begun: Instant<SenderClock>,
    /// Whether a report about the path has answered a request that was sent since the last period ended. When all live
    /// paths have such a report, the total rate is divided again among the paths.
    pub(super) has_told: bool,
    /// The time that the data sent on the path in this period takes at the path's assigned rate.
    served: Span,
    /// Number of the next packet on the path; the packet's header carries the lower 16 bits of this number.
    next_number: u64,
    pub(super) counts: Counts,
    /// Statistics from the reports on the path in this period. `pool` contains the delay statistics, and `told`
    /// contains the other statistics.
    pool: PeriodDelay,
    told: Told,
    copies: VecDeque<Waiting>,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
}

/// The parts of the session that a path uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Session<'a> {
    pub(super) config: &'a SenderConfig,
    pub(super) period: Span,
    /// What creates the controllers of the paths; `None` if all paths together have one controller.
    pub(super) laws: Option<&'a PathLaws>,
}

/// The totals of all reports on one path in one scheduler period.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    /// Counts of the packets that were sent, and of those that arrived.
    pub(super) proof: Proof,
    /// The longest round-trip time.
    pub(super) round_trip: Option<Span>,
    /// Number of packets that arrived ECN-capable.
    pub(super) capable: f64,
    /// Number of packets that arrived with a congestion mark.
    pub(super) marked: f64,
}

/// A copy of a packet that was sent on another path. The copy is queued to be sent on this path, too.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) sequence: u64,
    pub(super) plain: Vec<u8>,
}

impl Path {
    /// Maximum number of packet copies that wait on a path. If the queue is full, a new copy replaces the oldest one.
    /// Our choice: in a longer queue, copies would wait for too long to help.
    const COPIES: usize = 32;

    /// Creates a path that is usable from `now` on; `first` is the number of its first packet.
    ///
    /// # Errors
    /// [`SessionError`] if each path has its own law and this path's law cannot be created.
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

    /// Whether no report about the path has arrived on any path for three report intervals.
    pub(super) const fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// Whether reports about the path arrive, and no circuit breaker has stopped the path's media.
    pub(super) const fn is_alive(&self) -> bool {
        !self.is_silent && !self.breakers.has_stopped()
    }

    /// Records that the path is usable again. Earlier measurements of the path are ignored.
    pub(super) fn comes_up(&mut self, now: Instant<SenderClock>, laws: Option<&PathLaws>) {
        (self.is_up, self.is_silent, self.heard) = (true, false, now);
        self.exchange.forget_strays();
        self.pacer.rested_until(now);
        self.comes_back(now, laws);
    }

    /// Records that the path is alive again. Earlier measurements are discarded, and the path's law restarts.
    pub(super) fn comes_back(&mut self, now: Instant<SenderClock>, laws: Option<&PathLaws>) {
        self.begin(now);
        if let (Some(law), Some(laws)) = (&mut self.law, laws) {
            law.begin_anew(laws, now);
        }
    }

    /// Discards earlier delay measurements. Only answers to requests sent after `now` count as measurements, and they
    /// cover only packets sent from `now` on.
    pub(super) fn begin(&mut self, now: Instant<SenderClock>) {
        self.begun = now;
        self.pool = PeriodDelay::default();
        self.exchange.begin(now);
    }

    /// Sets the path's share of the total rate from `now` on. Returns whether the share changed.
    ///
    /// A path without a law of its own discards the measurements at the previous share. A path with its own law keeps
    /// them, because its share changes often.
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

    /// Starts a new period. The period ends when the rate is divided among the paths again. Sets the path's sending
    /// time in the period to zero.
    pub(super) const fn begin_period(&mut self) {
        self.served = Span::ZERO;
    }

    /// If the path has a law of its own, starts this law at the lowest rate, because packets on other paths do not show
    /// what rate this path can carry.
    pub(super) fn begin_low(&mut self) {
        self.law.iter_mut().for_each(Law::begin_low);
    }

    /// Sets the pacer to the rate that the path's share and the path's law allow.
    fn keep_pace(&mut self) {
        self.pacer.set_rate(self.law.as_ref().map_or(self.share, |law| law.pace(self.share)));
    }

    /// The path's share of the total rate.
    pub(super) const fn share(&self) -> Rate {
        self.share
    }

    pub(super) const fn law(&self) -> Option<&Law> {
        self.law.as_ref()
    }

    pub(super) const fn law_mut(&mut self) -> Option<&mut Law> {
        self.law.as_mut()
    }

    /// Whether the rate that the path's law allows has changed since the total rate was last divided among the paths.
    pub(super) fn has_other_rate(&self) -> bool {
        self.law.as_ref().is_some_and(|law| law.rate() != self.divided_at)
    }

    /// Performs everything that is due for the path's law at `now`.
    pub(super) fn tend(&mut self, now: Instant<SenderClock>, report_interval: Span) {
        let Some(law) = &mut self.law else { return };
        if law.tend(now, report_interval) {
            // A request is sent before and after a probe, so that the answer to the second request proves the rate of
            // the probe alone.
            self.exchange.hurry(now);
        }
        self.keep_pace();
    }

    /// Makes a report request that is due at `now`. Returns the request's number and its extension. While the receiver
    /// [is silent](Exchange::is_silent), skips every second request and returns `None` for it. While media is stopped,
    /// skips no request.
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

    /// Processes a per-packet report on this path. `waited` is the total time for which the sender waited for data from
    /// the application.
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

    /// Records that the path is not usable, and drops the copies of packets that wait for this path.
    pub(super) fn goes_down(&mut self) {
        self.is_up = false;
        while let Some(copy) = self.copies.pop_front() {
            self.recycle(copy.plain);
        }
    }

    /// Records that a report about the path arrived at `now`, on this or another path.
    pub(super) const fn on_heard(&mut self, now: Instant<SenderClock>) {
        (self.heard, self.is_silent) = (now, false);
    }

    /// Processes a report that proves how many packets arrived on this path. Returns the event of the path's circuit
    /// breaker, if any. If no other path is alive, the session's circuit breaker acts instead of the path's circuit
    /// breaker.
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
        if self.law.as_ref().is_none_or(Law::is_whole) {
            self.breakers.on_whole();
        }
        self.stopped_by(now, trip)
    }

    /// Records that a report contradicts what was sent. Returns the event of the path's circuit breaker, if any.
    pub(super) fn on_contradiction(&mut self, now: Instant<SenderClock>) -> Option<Event> {
        let trip = self.breakers.on_contradiction(now);
        self.stopped_by(now, trip)
    }

    /// If the circuit breaker stopped the path, restarts the path's law at the lowest rate, in case media is sent on
    /// the path again.
    fn stopped_by(&mut self, now: Instant<SenderClock>, trip: Option<Trip>) -> Option<Event> {
        let Some(Trip::Stop(breaker)) = trip else { return None };
        self.law.iter_mut().for_each(|law| law.on_stopped(now));
        Some(Event::CircuitBroken(breaker))
    }

    /// Processes a report on an interval. The report was requested at `asked`. After the end of a scheduler period, the
    /// sender waits for a report from each path. Meanwhile, `closing` is the end of this period; otherwise `None`.
    pub(super) fn on_interval(
        &mut self,
        asked: Instant<SenderClock>,
        interval: &IntervalSummary,
        proof: Proof,
        closing: Option<Instant<SenderClock>>,
    ) {
        // `told.proof` counts all packets that arrived, even those sent before the path's share of the rate changed.
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

    /// Declares the path dead if no report about it arrived for three report intervals (Waki 2013, Sec. 5.1). Returns
    /// whether the path has just died.
    ///
    /// The limit is not a number of unanswered report requests: with a long queue on the path, reports are late, so
    /// several requests are unanswered although reports still arrive.
    pub(super) fn dies(&mut self, now: Instant<SenderClock>, report_interval: Span) -> bool {
        let limit = report_interval * Exchange::MISSING as i64;
        let dies = self.is_up && !self.is_silent && now - self.heard > limit;
        self.is_silent |= dies;
        if dies {
            self.exchange.forget_strays();
        }
        dies
    }

    /// Returns the state of the path for the scheduler. If a period `ends`, the state includes the path's delay in that
    /// period.
    pub(super) fn view(&mut self, ends: bool) -> PathView {
        let delay = if ends { self.pool.take() } else { None };
        let most = self.law.as_ref().map(Law::rate);
        PathView { path: self.id, alive: self.is_alive(), rate: self.share, delay, most }
    }

    /// Returns the totals from all reports about the path since the last call, and resets the totals.
    pub(super) fn take_told(&mut self) -> Told {
        core::mem::take(&mut self.told)
    }

    /// Whether a packet may be sent at `now`.
    pub(super) fn is_ready(&self, now: Instant<SenderClock>) -> bool {
        self.readiness(now) == Readiness::Now
    }

    /// Returns when a packet may be sent, according to the path's state, its law and its pacer.
    pub(super) fn readiness(&self, now: Instant<SenderClock>) -> Readiness<SenderClock> {
        let is_full = self.law.as_ref().is_some_and(Law::is_window_full);
        if self.is_up && !is_full { self.pacer.poll(now) } else { Readiness::Never }
    }

    /// Returns the time that the data sent on the path in this scheduler period takes at the path's assigned rate. Of
    /// the paths that may send, the one with the shortest time sends next.
    pub(super) const fn served(&self) -> Span {
        self.served
    }

    /// Records a packet sent on this path. If the packet was so late that the pacer started a new schedule, returns how
    /// late it was.
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

    /// Returns the sub-flow number and the sequence number for the path's next packet.
    pub(super) const fn next_subflow(&mut self) -> Subflow {
        let sequence = self.next_number as u16;
        self.next_number += 1;
        Subflow { id: self.id.0, sequence }
    }

    /// Queues a copy of a packet until the path may send it.
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

    /// Keeps a buffer for reuse.
    pub(super) fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < Self::COPIES {
            self.spare.push(buffer);
        }
    }
}
