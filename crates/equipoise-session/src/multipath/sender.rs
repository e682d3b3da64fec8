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
/// Each path is asked for a report at the session's report interval, and the intervals of a period add up; at its end the
/// controller decides on the total and the scheduler on its division (Asvarujanon 2014, Sec. 4.3). Reports are more
/// frequent than periods so that a path that dies is missed early.
///
/// A path of which nothing was heard for three report intervals, on it or on another one, is dead: its traffic moves to the
/// others at once. It is asked on, and with the first answer it is alive again, at the rate that the scheduler begins with.
/// A path that answers, and whose losses trip a circuit breaker while others live, is left, and what it carried is not moved:
/// the total falls by it. Where all paths are dead, all are treated as alive, as none is better than another; the total is
/// halved for each report interval in which none answers, and after [`Sender::CIRCUIT_S`] the media stops.
///
/// The total of [`Total::Pooled`] is held to a target, where the controller has one, by the delay of all paths taken together as one
/// path's: mean `Σ w_i x_i` and variance `Σ w_i² σ_i²` with the shares `w_i` of the rate, for which the same law holds.
///
/// With [`Total::PerPath`] each path has a controller of its own, of which all that is true that is of a session over this path
/// alone: it gets reports on the path's packets (RFC 8888, by their numbers in the sub-flow), is held to what answers on the path
/// prove, and halved by their absence. The total is what the living paths' controllers allow together, and at most
/// [`PathLaws::highest`](super::PathLaws::highest); the scheduler gives no path more than its controller allows. When a path comes
/// back its controller restarts, at the lowest rate.
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
    /// When the last period ended, while the paths are asked about it.
    closing: Option<Instant<SenderClock>>,
    /// When the rate was halved for silence the last time.
    halved: Option<Instant<SenderClock>>,
    compound: CompoundTimer<SenderClock>,
    breakers: Breakers,
    key_frames: KeyFrameTaker,
    /// When the first packet left.
    first_media: Option<Instant<SenderClock>>,
    handled: Instant<SenderClock>,
    ended: bool,
    outbox: Outbox,
}

impl Sender {
    /// What a session over several paths provides to one controller of its total ([`Total::Pooled`]).
    pub const PROVIDES: Needs = Needs::INTERVALS;
    /// What it provides to the controller of each path ([`Total::PerPath`]).
    pub const PROVIDES_PER_PATH: Needs = Law::PROVIDES;
    /// Time between two splits in the paper (Asvarujanon 2014, Sec. 4.3).
    pub const PERIOD: Span = Span::from_secs(5);
    /// Seconds without a report on any path after which no media is sent (RFC 8083, Sec. 4.1).
    pub const CIRCUIT_S: i64 = Breakers::SECONDS;

    /// A sender without a path so far, which starts at `config.start`, at the `total` that its controller, or those of its paths,
    /// say, and divides it again after each `period`.
    ///
    /// # Errors
    /// [`SessionError`] where the configuration cannot be carried by RTP; [`SessionError::Period`] where the period is shorter
    /// than a report interval; [`SessionError::ByPacket`] for reports on packets without a controller for each path, and
    /// [`SessionError::Needs`] for those controllers without reports on packets.
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

    /// Does what is due at `now`.
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

    /// Halves the total's one rate for each report interval in which no path answers, unless it is fixed. Returns whether it did.
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

    /// A period ends: all paths are asked about it, and the split follows their answers.
    fn close_period(&mut self, now: Instant<SenderClock>) {
        self.closing = Some(now);
        self.period_ends = self.period_ends + self.period;
        if self.period_ends <= now {
            self.period_ends = now + self.period;
        }
        self.paths.up_mut().for_each(|path| path.has_told = false);
    }

    /// Whether a period is to be closed and all live paths have reported on it, or have had a report interval's time for it.
    fn has_closed(&self, now: Instant<SenderClock>) -> bool {
        let have_told = self.paths.alive().all(|path| path.has_told);
        self.closing.is_some() && (have_told || self.closes_by().is_some_and(|by| now >= by))
    }

    /// By when the split of a period that has ended comes in any case.
    fn closes_by(&self) -> Option<Instant<SenderClock>> {
        self.closing.map(|closing| closing + self.config.report_interval)
    }

    /// Asks path number `at` for a report, where that is due or `ends` says so. Returns whether it has died.
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

    /// Divides the total again; `ends` says that a period does, with its statistics.
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
            // A circuit breaker may have cut the laws.
            self.paths.refresh(&mut views);
        }
        let (total, snapshot) = match &self.control {
            Control::Pooled(governor) => (governor.rate(), governor.snapshot()),
            Control::PerPath(laws) => (laws.allowed(&views), Snapshot::default()),
        };
        let shares = self.scheduler.split(total, &views);
        let has_laws = self.control.laws().is_some();
        // What a scheduler leaves to nobody, as there is no path that it may be on, is not sent.
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

    /// A period ends, with the reports of all paths on it.
    fn end_period(&mut self, now: Instant<SenderClock>, views: &[PathView]) {
        let told = self.paths.take_told();
        // Reading: RFC 8083, Sec. 4 knows one path. Here all are one whose round trip is the shortest of those that carried a
        // tenth at least, so that a path with a long queue is the scheduler's to relieve, and no reason to cut what others
        // carry well.
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

    /// If a circuit breaker has tripped, the rate is divided again.
    fn trips(&mut self, now: Instant<SenderClock>, trip: Option<Trip>) {
        self.note(trip);
        if trip == Some(Trip::Tenth) {
            self.split(now, false);
        }
    }

    /// A circuit breaker has tripped, where one has.
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

    /// Sends what the paths' pacers let go: of those whose turn has come, the one that has sent least of its share first.
    fn send_media(&mut self, now: Instant<SenderClock>) {
        if self.breakers.has_stopped() {
            return;
        }
        // Two for each path at most: one that is due, and one that lateness of just a gap makes due at the same moment.
        for _ in 0..2 * self.paths.len() {
            let Some(at) = self.paths.next_ready(now, self.has_payload()) else { break };
            self.send(now, at);
        }
        self.outbox.about(None);
        if !self.has_payload() {
            // From the moment on at which the first path would have sent.
            if let Some(due) = self.paths.next_departure(now, now, true) {
                self.application.waits(due);
            }
        }
    }

    /// Sends a packet on path number `at`: a copy that waits for it, or the next one.
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

    /// Keeps a copy of the packet that was sent for the best of the other paths.
    fn keep_copy(&mut self, sent_on: usize, sequence: u64) {
        if let Some(path) = self.paths.best_beside(sent_on) {
            path.keep(sequence, &self.plain);
        }
    }

    fn has_payload(&self) -> bool {
        !self.breakers.has_stopped() && (self.config.payload == Payload::Generated || self.queue.waiting() > 0)
    }

    /// The regular compound goes out on the path that carries most, a goodbye on every one.
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

    /// What is sent in all from now on.
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

    /// When the next request, report or split is due.
    fn next_report(&self) -> Instant<SenderClock> {
        let requests = self.paths.up().map(|path| path.exchange.due());
        let soonest = self.handled + Span::from_nanos(1);
        let timers = self.paths.up().filter_map(|path| path.law()?.next_timer()).map(|at| at.max(soonest));
        requests.chain(timers).chain(self.compound.due()).chain(self.closes_by()).fold(self.period_ends, Instant::min)
    }

    /// When the next packet is due; [`Instant::MAX`] where there is none.
    fn next_media(&self) -> Instant<SenderClock> {
        if self.breakers.has_stopped() {
            return Instant::MAX;
        }
        let soonest = self.handled + Span::from_nanos(1);
        let next = self.paths.next_departure(self.handled, soonest, self.has_payload());
        next.map_or(Instant::MAX, |due| due.max(self.config.start))
    }
}

/// The period of all paths as one path's.
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
        // A world may report an arrival that the kernel stamped before the last timer: time never runs backwards here.
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
