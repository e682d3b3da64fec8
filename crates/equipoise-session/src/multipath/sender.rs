mod reports;

use alloc::vec::Vec;

use super::law::Law;
use super::path::{Path, Session};
use super::paths::{AllTold, Paths};
use super::total::{Control, Total, sum};
use crate::rtp::application::Application;
use crate::rtp::breaker::{Breakers, Trip};
use crate::rtp::compound::CompoundTimer;
use crate::rtp::exchange::Exchange;
use crate::rtp::key_frames::KeyFrameTaker;
use crate::rtp::outbox::Outbox;
use crate::rtp::payload::PayloadQueue;
use crate::rtp::stream::{Numbers, Packetiser, Plain};
use crate::rtp::{Payload, SenderConfig, SessionError};
use crate::wire::rtcp::{self, SenderInfo};
use crate::wire::rtp::Subflow;
use crate::{DropReason, Endpoint, Event, Input, Output, PathChange, PathId, Wake};
use equipoise::control::scheduler::{BoxedScheduler, PathView, Share, pooled};
use equipoise::control::{IntervalSummary, Needs, Snapshot};
use equipoise::units::{Instant, Rate, SenderClock, Span};

/// The sending end of a session over several paths.
///
/// The sender requests a report on each path once per report interval. At the end of each period of one or more
/// intervals, the controller decides on the total rate from all reports of the period, and the scheduler divides the
/// total rate among the paths (Asvarujanon 2014, Sec. 4.3). Reports are usually more frequent than periods, so that a
/// dead path is noticed early.
///
/// A path is dead if no report about it arrived on any path for three report intervals. The traffic of a dead path
/// moves to the other paths at once. Requests on the dead path continue. With the first report about the path, the path
/// is alive again, and the scheduler assigns it a rate. If all paths are dead, all are treated as alive. Then the total
/// rate is halved for each report interval without an answer, and after [`Sender::CIRCUIT_S`] seconds the media stops.
///
/// If the losses of a path trip a circuit breaker while other paths are alive, the path's media stops. This media does
/// not move to the other paths: the total rate decreases by the path's share.
///
/// A path that the driver announced as down is not a dead path, and does not limit the total rate. If all paths are
/// down, the total rate is halved at once, and again in each report interval in which no path is usable. Our choice:
/// the sender continues at the low rate until reports prove that packets arrive.
///
/// With [`Total::Pooled`], one controller gets the delay of all paths as if it were the delay of one path. The mean of
/// this delay is `Σ w_i x_i`, and its variance is `Σ w_i² σ_i²`. Path `i` has the share `w_i` of the rate, the mean
/// delay `x_i` and the variance `σ_i²`. A controller with a delay target applies the same control law to this delay as
/// to the delay of one path.
///
/// With [`Total::PerPath`], each path has its own controller, as in a session over this path alone. The controller gets
/// reports on the path's packets (RFC 8888, by sub-flow sequence number). The answers to report requests state the
/// path's delivery rate, which limits the controller's rate. If answers are missing, the controller's rate is halved.
/// The total is the sum of the rates of the live paths' controllers, at most
/// [`PathLaws::highest`](super::PathLaws::highest). The scheduler assigns no path more than its controller allows. When
/// a path is usable again, its controller restarts at the lowest rate.
pub struct Sender {
    config: SenderConfig,
    period: Span,
    packetiser: Packetiser,
    queue: PayloadQueue,
    /// The packet that is being sent.
    plain: Vec<u8>,
    application: Application,
    control: Control,
    scheduler: BoxedScheduler,
    paths: Paths,
    period_ends: Instant<SenderClock>,
    /// When the sender began to wait for a report on each path. The sender divides the total rate again after these
    /// reports, or after one report interval. `None` if the sender does not wait.
    closing: Option<Instant<SenderClock>>,
    /// When the total rate was last halved because reports on all paths were missing.
    halved: Option<Instant<SenderClock>>,
    compound: CompoundTimer<SenderClock>,
    breakers: Breakers,
    key_frames: KeyFrameTaker,
    /// When the first packet was sent.
    first_media: Option<Instant<SenderClock>>,
    handled: Instant<SenderClock>,
    ended: bool,
    outbox: Outbox,
}

impl Sender {
    /// Feedback that a session over several paths provides to a controller for all paths together ([`Total::Pooled`]).
    pub const PROVIDES: Needs = Needs::INTERVALS;
    /// Feedback that a session over several paths provides to the controller of each path ([`Total::PerPath`]).
    pub const PROVIDES_PER_PATH: Needs = Law::PROVIDES;
    /// Time between two divisions of the total rate among the paths, as in the paper (Asvarujanon 2014, Sec. 4.3).
    pub const PERIOD: Span = Span::from_secs(5);
    /// Media stops if no report about any path arrives within this time, in seconds (RFC 8083, Sec. 4.1). If three
    /// periods (see [`new`](Self::new)) are longer than this time, media stops after three periods instead.
    pub const CIRCUIT_S: i64 = Breakers::SECONDS;

    /// Creates a sender that has no paths yet and starts at `config.start`. `total` decides on the total rate. At the
    /// end of each `period`, `scheduler` divides the total rate among the paths.
    ///
    /// # Errors
    /// [`SessionError`] if RTP cannot carry the configuration, or if the configuration does not fit `total`. For
    /// example: [`SessionError::Period`] if the period is shorter than a report interval; [`SessionError::ByPacket`] if
    /// there are per-packet reports but only one controller for all paths; [`SessionError::Needs`] if a controller
    /// needs feedback that the configuration does not provide.
    pub fn new(
        config: SenderConfig,
        period: Span,
        total: Total,
        scheduler: BoxedScheduler,
    ) -> Result<Self, SessionError> {
        config.check()?;
        if period < config.report_interval {
            return Err(SessionError::Period { found: period, min: config.report_interval });
        }
        let control = Control::new(&config, total)?;
        let like = Some(Subflow::default());
        let mut compound = CompoundTimer::new(config.seed);
        let numbers = Numbers { subflow: like, transport: None };
        let packetiser = Packetiser::new(config.stream.clone(), numbers, compound.random())?;
        compound.restart(config.start);
        Ok(Self {
            packetiser,
            queue: PayloadQueue::new(like, config.patience),
            plain: Vec::new(),
            application: Application::default(),
            control,
            scheduler,
            paths: Paths::default(),
            period_ends: config.start + period,
            closing: None,
            halved: None,
            compound,
            key_frames: KeyFrameTaker::default(),
            breakers: Breakers::new(config.circuit_breakers, (period, config.stream.packet_size), config.start),
            first_media: None,
            handled: Instant::ZERO,
            ended: false,
            outbox: Outbox::default(),
            period,
            config,
        })
    }

    /// Performs everything that is due at `now`.
    fn run(&mut self, now: Instant<SenderClock>) {
        if now < self.config.start {
            return;
        }
        let interval = self.config.report_interval;
        self.paths.up_mut().for_each(|path| path.tend(now, interval));
        let ends = now >= self.period_ends;
        if ends {
            self.close_period(now);
        }
        let mut is_lower = false;
        for at in 0..self.paths.len() {
            is_lower |= self.ask_if_due(now, at, ends);
        }
        self.outbox.about(None);
        is_lower |= self.halve_if_silent(now);
        let since_first = self.first_media.map_or(Span::ZERO, |first| now - first);
        is_lower |= self.control.pooled_mut().is_some_and(|governor| governor.on_unproved(since_first, interval));
        if self.has_closed(now) {
            self.closing = None;
            self.split(now, true);
        } else if is_lower || self.paths.has_other_rate() {
            self.split(now, false);
        }
        if self.compound.fires(now) {
            self.send_compound(now, false);
        }
        let trip = self.breakers.check(now);
        self.trips(now, trip);
        self.queue.expire(now, self.config.payload);
        self.outbox.expired(self.queue.take_expired());
        self.send_media(now);
        if self.paths.has_other_rate() {
            self.split(now, false);
        }
    }

    /// With [`Total::Pooled`], halves the total rate once per report interval while all usable paths are silent. A path
    /// is silent if no report about the path has arrived for three report intervals. A fixed rate does not change.
    /// Returns whether the rate decreased.
    fn halve_if_silent(&mut self, now: Instant<SenderClock>) -> bool {
        let Control::Pooled(governor) = &mut self.control else { return false };
        let is_silent = self.paths.len() > 0 && self.paths.are_silent();
        if !is_silent || self.halved.is_some_and(|halved| now - halved < self.config.report_interval) {
            return false;
        }
        self.halved = Some(now);
        let before = governor.rate();
        governor.on_silence(now, Exchange::MISSING);
        governor.rate() < before
    }

    /// Ends a period. A report on the period is then requested on all paths, and the total rate is divided again when
    /// the answers have arrived.
    fn close_period(&mut self, now: Instant<SenderClock>) {
        self.closing = Some(now);
        self.period_ends = self.period_ends + self.period;
        if self.period_ends <= now {
            self.period_ends = now + self.period;
        }
        self.paths.up_mut().for_each(|path| path.has_told = false);
    }

    /// Whether an ended period can be closed: reports about all live paths have arrived, or a report interval has
    /// passed since the period ended.
    fn has_closed(&self, now: Instant<SenderClock>) -> bool {
        let have_told = self.paths.alive().all(|path| path.has_told);
        self.closing.is_some() && (have_told || self.closes_by().is_some_and(|by| now >= by))
    }

    /// Returns the latest time until which the sender waits for the paths' reports on the period that has ended; `None`
    /// if it does not wait.
    fn closes_by(&self) -> Option<Instant<SenderClock>> {
        self.closing.map(|closing| closing + self.config.report_interval)
    }

    /// Requests a report on the path at index `at` if the path is up, and if a request is due or `ends` is true. `ends`
    /// says whether a period ends. Returns whether the path has just died.
    fn ask_if_due(&mut self, now: Instant<SenderClock>, at: usize, ends: bool) -> bool {
        let interval = self.config.report_interval;
        let is_due = |path: &&mut Path| path.is_up && (ends || now >= path.exchange.due());
        let Some(path) = self.paths.get_mut(at).filter(is_due) else {
            return false;
        };
        self.outbox.about(Some(path.id()));
        match path.turn(now, self.breakers.has_stopped(), &mut self.application) {
            None => self.outbox.event(Event::ReportsMissing),
            Some((number, extension)) => {
                let info = SenderInfo {
                    packet_count: path.counts.packets,
                    octet_count: path.counts.octets,
                    ..self.packetiser.sender_info(now)
                };
                let id = path.id().0;
                self.outbox.whole(|out| {
                    rtcp::encode_subflow(info.ssrc, info.ssrc, id, out, |out| info.encode(&[], &extension, out));
                });
                self.outbox.event(Event::ReportRequested { number });
            }
        }
        path.dies(now, interval)
    }

    /// Divides the total rate among the paths again. If a period `ends`, applies the period's statistics first.
    fn split(&mut self, now: Instant<SenderClock>, ends: bool) {
        let mut views = self.paths.views(ends);
        if views.is_empty() {
            return;
        }
        self.outbox.about(None);
        if ends {
            self.paths.up_mut().for_each(Path::begin_period);
        }
        if ends && !self.paths.are_silent() {
            self.end_period(now, &views);
            // A circuit breaker may have lowered the rates of the laws.
            self.paths.refresh(&mut views);
        }
        let (total, snapshot) = match &self.control {
            Control::Pooled(governor) => (governor.rate(), governor.snapshot()),
            Control::PerPath(laws) => (laws.allowed(&views), Snapshot::default()),
        };
        let shares = self.scheduler.split(total, &views);
        let has_laws = self.control.laws().is_some();
        // If the limits of the paths do not allow the total rate, the sum of the shares is below the total rate. With
        // one law for each path, this sum is reported as the total rate.
        let total = if has_laws { sum(shares.iter().map(|share| share.rate)) } else { total };
        self.outbox.event(Event::RateDecided { rate: total, snapshot });
        for (path, Share { rate, snapshot }) in self.paths.up_mut().zip(shares) {
            let is_other = path.set_share(now, rate);
            let own = path.law().filter(|law| rate >= law.rate()).map(Law::snapshot);
            if is_other || ends || !has_laws {
                self.outbox.about(Some(path.id()));
                self.outbox.event(Event::RateDecided { rate, snapshot: own.unwrap_or(snapshot) });
            }
        }
        self.outbox.about(None);
    }

    /// Applies the reports of all paths on the period that ends.
    fn end_period(&mut self, now: Instant<SenderClock>, views: &[PathView]) {
        let told = self.paths.take_told();
        // Our reading: RFC 8083, Sec. 4 assumes one path. Here all paths count as one, with the shortest round-trip
        // time of the paths that carried at least a tenth of the media. Otherwise, a long queue on one path could cut
        // the rate of all paths, although the scheduler moves traffic off this path.
        let trip = self.breakers.on_report(now, told.proof, told.shortest);
        let is_whole = match &mut self.control {
            Control::Pooled(governor) => {
                let app_limited = self.application.ends(now, self.period, 1.0);
                governor.on_interval(now, summary(app_limited, views, &told), told.proof);
                governor.is_whole()
            }
            Control::PerPath(_) => self.paths.up().filter_map(Path::law).all(Law::is_whole),
        };
        if is_whole {
            self.breakers.on_whole();
        }
        self.note(trip);
    }

    /// Applies the trip of a circuit breaker, if any. If the trip cuts the rate to a tenth, divides the new rate among
    /// the paths.
    fn trips(&mut self, now: Instant<SenderClock>, trip: Option<Trip>) {
        self.note(trip);
        if trip == Some(Trip::Tenth) {
            self.split(now, false);
        }
    }

    /// If a circuit breaker has tripped, reports this as an event. If the trip demands a tenth of the rate, also
    /// reduces the rate, but does not yet divide the reduced rate among the paths.
    fn note(&mut self, trip: Option<Trip>) {
        self.outbox.about(None);
        match trip {
            None => {}
            Some(Trip::Tenth) => {
                match &mut self.control {
                    Control::Pooled(governor) => governor.cut_to_tenth(),
                    Control::PerPath(_) => self.paths.up_mut().filter_map(Path::law_mut).for_each(Law::cut_to_tenth),
                }
                self.outbox.event(Event::CircuitStrained);
            }
            Some(Trip::Stop(breaker)) => self.outbox.event(Event::CircuitBroken(breaker)),
        }
    }

    /// Sends the packets that the paths' pacers release. If several paths may send, the path that has sent the smallest
    /// part of its share sends first.
    fn send_media(&mut self, now: Instant<SenderClock>) {
        if self.breakers.has_stopped() {
            return;
        }
        // The limit counts two packets for each path: if a path's first packet is late by a packet interval, the path's
        // next packet is due, too.
        for _ in 0..2 * self.paths.len() {
            let Some(at) = self.paths.next_ready(now, self.has_payload()) else { break };
            self.send(now, at);
        }
        self.outbox.about(None);
        if !self.has_payload() {
            // A path may send the next packet at `due`. From then on, the session waits for payload.
            if let Some(due) = self.paths.next_departure(now, now, true) {
                self.application.waits(due);
            }
        }
    }

    /// Sends a packet on the path at index `at`: a queued copy, or the next packet.
    fn send(&mut self, now: Instant<SenderClock>, at: usize) {
        let Self { packetiser, queue, plain, outbox, paths, .. } = self;
        let Some(path) = paths.get_mut(at) else { return };
        outbox.about(Some(path.id()));
        outbox.media_says(path.exchange.ecn());
        let subflow = Some(path.next_subflow());
        let is_twice = queue.is_twice();
        let sent = if let Some(copy) = path.take_copy() {
            let plain = Plain { sequence: copy.sequence, bytes: &copy.plain, waited: Span::ZERO };
            let sent = packetiser.stamp(now, plain, subflow, outbox);
            path.recycle(copy.plain);
            sent
        } else if self.config.payload == Payload::Generated {
            packetiser.send(now, packetiser.full(now), Numbers { subflow, transport: None }, outbox)
        } else {
            let waited = queue.waited(now);
            let Some(sequence) = packetiser.number(now, self.config.payload, queue, plain) else { return };
            let sent = packetiser.stamp(now, Plain { sequence, bytes: plain, waited }, subflow, outbox);
            if is_twice {
                self.keep_copy(at, sequence);
            }
            sent
        };
        self.first_media.get_or_insert(now);
        let Some(path) = self.paths.get_mut(at) else { return };
        if let Some(late) = path.on_sent(now, sent) {
            self.outbox.event(Event::PacingReset { late });
        }
    }

    /// The path at index `sent_on` has just sent a packet. Queues a copy of this packet on another live path: the one
    /// with the largest share.
    fn keep_copy(&mut self, sent_on: usize, sequence: u64) {
        if let Some(path) = self.paths.best_beside(sent_on) {
            path.keep(sequence, &self.plain);
        }
    }

    fn has_payload(&self) -> bool {
        !self.breakers.has_stopped() && (self.config.payload == Payload::Generated || self.queue.waiting() > 0)
    }

    /// Sends a regular RTCP compound on the live path with the largest share, or a BYE on every usable path.
    fn send_compound(&mut self, now: Instant<SenderClock>, goodbye: bool) {
        let best = self.paths.best();
        for path in self.paths.up().filter(|path| goodbye || Some(path.id()) == best) {
            self.outbox.about(Some(path.id()));
            self.packetiser.send_compound(now, goodbye, &mut self.outbox);
        }
        self.outbox.about(None);
    }

    fn on_path(&mut self, now: Instant<SenderClock>, id: PathId, change: PathChange) -> Result<(), DropReason> {
        let session = Session { config: &self.config, period: self.period, laws: self.control.laws() };
        self.paths.change(now, (id, change), session, self.compound.random())?;
        self.split(now, false);
        Ok(())
    }

    fn on_payload(&mut self, now: Instant<SenderClock>, payload: &[u8], twice: bool) -> Result<(), DropReason> {
        let origin = (self.packetiser.config().ssrc, self.rate());
        self.queue.offer(now, (payload, twice), self.config.payload, origin)?;
        if self.application.goes_on(now) {
            self.paths.up_mut().for_each(|path| path.pacer.rested_until(now));
        }
        Ok(())
    }

    /// Returns the total rate from now on.
    fn rate(&self) -> Rate {
        match &self.control {
            Control::Pooled(governor) => governor.rate(),
            Control::PerPath(_) => self.paths.rate(),
        }
    }

    fn end(&mut self, by_peer: bool) {
        self.ended = true;
        self.outbox.about(None);
        self.outbox.event(Event::Ended { by_peer });
    }

    /// Returns when the next request, RTCP compound, timer of a law or division of the rate is due.
    fn next_report(&self) -> Instant<SenderClock> {
        let requests = self.paths.up().map(|path| path.exchange.due());
        let soonest = self.handled + Span::from_nanos(1);
        let timers = self.paths.up().filter_map(|path| path.law()?.next_timer()).map(|at| at.max(soonest));
        requests.chain(timers).chain(self.compound.due()).chain(self.closes_by()).fold(self.period_ends, Instant::min)
    }

    /// Returns when the next packet is due; [`Instant::MAX`] if no packet is due.
    fn next_media(&self) -> Instant<SenderClock> {
        if self.breakers.has_stopped() {
            return Instant::MAX;
        }
        let soonest = self.handled + Span::from_nanos(1);
        let next = self.paths.next_departure(self.handled, soonest, self.has_payload());
        next.map_or(Instant::MAX, |due| due.max(self.config.start))
    }
}

/// Returns the interval summary of a period, with all paths taken as one path.
fn summary(app_limited: bool, views: &[PathView], told: &AllTold) -> IntervalSummary {
    let mut summary = IntervalSummary::unmeasured();
    summary.app_limited = app_limited;
    summary.delay = pooled(views);
    summary.fraction_lost = Some(told.proof.fraction_lost());
    summary.fraction_marked = told.fraction_marked;
    summary.packets = Some(told.proof.sent);
    summary.delivered = told.proof.delivered();
    summary.round_trip = told.round_trip;
    summary
}

impl Endpoint for Sender {
    type Clock = SenderClock;

    fn handle(&mut self, now: Instant<SenderClock>, input: Input<'_>) {
        if self.ended {
            return;
        }
        // A datagram's kernel timestamp may be earlier than the last timer call, but time must not go backwards here.
        let now = now.max(self.handled);
        self.handled = now;
        self.outbox.about(None);
        let taken = match input {
            Input::Datagram { path, datagram, .. } => {
                self.outbox.about(Some(path));
                self.on_datagram(now, path, datagram);
                Ok(())
            }
            Input::Payload { payload, twice } => self.on_payload(now, payload, twice),
            Input::Path { path, change } => self.on_path(now, path, change),
            Input::Stop => {
                self.send_compound(now, true);
                self.end(false);
                Ok(())
            }
            Input::Unreachable { path } => {
                if let Some(path) = self.paths.find_mut(path) {
                    path.exchange.on_unreachable();
                }
                Ok(())
            }
            Input::KeyFrame(_) => Err(DropReason::Stray),
            Input::Timer => Ok(()),
        };
        if let Err(reason) = taken {
            self.outbox.ignore(reason);
        }
        if !self.ended {
            self.run(now);
        }
    }

    fn poll(&mut self) -> Option<Output<'_>> {
        self.outbox.poll()
    }

    fn room(&self) -> usize {
        self.queue.room(self.config.payload, self.rate())
    }

    fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    fn wake(&self) -> Option<Wake<SenderClock>> {
        if self.ended {
            return None;
        }
        let (media, report) = (self.next_media(), self.next_report().max(self.config.start));
        Some(Wake::first(media, report))
    }
}
