mod arrivals;
mod half;
mod reports;

use alloc::vec::Vec;

use super::application::Application;
use super::breaker::{Breakers, Trip};
use super::by_packet::ByPacket;
use super::compound::CompoundTimer;
use super::delays::Delays;
use super::exchange::Exchange;
use super::frames::Room;
use super::further::{FurtherSource, source_of};
use super::governor::Governor;
use super::key_frames::KeyFrameTaker;
use super::outbox::Outbox;
use super::payload::{Payload, PayloadQueue};
use super::repeats::{RepeatQueue, Repeating};
use super::stream::{Numbers, Packetiser, Plain, SessionError, StreamConfig};
use super::supply::{Pause, Stock, Supply};
use crate::feedback::Reporting;
use crate::{DropReason, Ecn, Endpoint, Event, Input, Output, Wake};
use equipoise::control::{BoxedController, Needs};
use equipoise::pace::{Pacer, Readiness};
use equipoise::random::stream_seed;
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};

pub(super) use half::Draft;

/// What a sender is made of, beside its controller.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// The stream it sends.
    pub stream: StreamConfig,
    /// What it carries.
    pub payload: Payload,
    /// Where generated media comes from.
    pub supply: Supply,
    /// What the delays are that the controller gets; the receiver has to know whether the clocks agree.
    pub delays: Delays,
    /// Time between two requests for a report: I of Waki 2013, Sec. 5.1; at least 1 ms.
    pub report_interval: Span,
    /// When the first packet leaves; the first request follows an interval later.
    pub start: Instant<SenderClock>,
    /// Seed of the numbers that RFC 3550 wants drawn: first sequence number, timestamp, spread of compound packets.
    pub seed: u64,
    /// How long payload may wait for its turn. Of another program's packets those that have waited for longer are given up, the
    /// oldest first; a stream is taken no faster than that it leaves in time.
    pub patience: Span,
    /// Whether the circuit breakers of RFC 8083, Sec. 4 act. Without them a session may only be where it harms nobody: in a
    /// simulator, or on a link of one's own.
    pub circuit_breakers: bool,
    /// Whether the receiver stands before a playout buffer and reports on it ([`Needs::PLAYOUT`]).
    pub reports_playout: bool,
    /// What media packets say of congestion: whether queues may mark them in place of dropping them. A path that does not let this
    /// pass is told by [`Event::EcnFailed`]; media on it says [`Ecn::NotCapable`] from then on.
    pub ecn: Ecn,
    /// When generated media pauses, in the order of the times.
    pub pauses: Vec<Pause>,
    /// How the receiver reports on single packets; `None` if it does not. The controller then uses these reports, and the answers to
    /// requests prove what arrives.
    pub reporting: Option<Reporting>,
    /// How it answers requests for packets that are missing; `None` if it does not. Generated media is never sent again.
    pub repeating: Option<Repeating>,
    /// Whether it carries another program's packets of one further source, such as audio beside video: they leave before all else, and the
    /// receiver gives them out as they come. The source is the first that is heard from, or another one when that was silent for 2 s.
    pub has_further_source: bool,
}

impl SenderConfig {
    /// A sender of generated media.
    pub const fn new(stream: StreamConfig, report_interval: Span, start: Instant<SenderClock>, seed: u64) -> Self {
        let (payload, supply, delays) = (Payload::Generated, Supply::Unlimited, Delays::Agreed);
        Self {
            stream,
            payload,
            supply,
            delays,
            report_interval,
            start,
            seed,
            patience: Self::PATIENCE,
            circuit_breakers: true,
            reports_playout: false,
            ecn: Ecn::NotCapable,
            pauses: Vec::new(),
            reporting: None,
            repeating: None,
            has_further_source: false,
        }
    }

    /// What is later than this is of no use to a conversation. Ours.
    pub const PATIENCE: Span = Span::from_millis(400);

    /// What such a session provides to its controller.
    pub const fn provides(&self) -> Needs {
        let playout = if self.reports_playout { Needs::PLAYOUT } else { Needs::NOTHING };
        let packets = if self.reporting.is_some() { Needs::PACKETS } else { Needs::NOTHING };
        Sender::PROVIDES.and(playout).and(packets)
    }

    /// Refuses a report interval that no report could keep to.
    pub(crate) fn check(&self) -> Result<(), SessionError> {
        let (found, min) = (self.report_interval, Exchange::SHORTEST);
        if found < min { Err(SessionError::ReportInterval { found, min }) } else { Ok(()) }
    }
}

/// The sending end of a session: paces media at the controller's rate, asks for reports and feeds them to it.
///
/// Source: Waki 2013, Sec. 5.1. A request carries the time of the one before, so that the receiver can cut out the
/// packets of the present rate. If none of the last three requests has been answered when the next is due, the
/// controller is told, the request is skipped, and the one an interval later carries the time of the skipped one, so
/// that only packets of the lower rate count. (The text's `t_i + 1 + I` is garbled; this is the reading.)
///
/// Reading: a report that arrives after a later request went out is applied as long as none newer was; so an interval
/// may be shorter than the round trip.
///
/// Beyond the paper: no more is sent than twice what reports prove to arrive, and the circuit breakers of RFC 8083, Sec. 4
/// stop the media whatever the controller does ([`Event::CircuitBroken`]). Requests go on, less often the longer no answer
/// comes; three answers in a row let media begin again at the lowest rate.
pub struct Sender {
    packetiser: Packetiser,
    payload: Payload,
    queue: PayloadQueue,
    /// `None` where there is none beside its own.
    further: Option<FurtherSource>,
    /// `None` where nothing is sent again.
    repeats: Option<RepeatQueue>,
    /// The packet that is being sent.
    plain: Vec<u8>,
    stock: Stock,
    application: Application,
    governor: Governor,
    /// The probe that is being sent, by its number.
    probe: Option<u64>,
    provided: Needs,
    /// `None` where the receiver does not report on single packets.
    by_packet: Option<ByPacket>,
    pacer: Pacer<SenderClock>,
    report_interval: Span,
    start: Instant<SenderClock>,
    exchange: Exchange,
    compound: CompoundTimer<SenderClock>,
    /// Packets since the last pair.
    singles: u32,
    breakers: Breakers,
    key_frames: KeyFrameTaker,
    /// When the first packet left under this controller.
    first_media: Option<Instant<SenderClock>>,
    /// What the number of the next packet was at the last two turns to ask for a report, the older first.
    turns: [u64; 2],
    /// What the RTCP datagram that it shares with a receiving half is to say of it; `None` where it writes its own.
    shared: Option<Draft>,
    handled: Instant<SenderClock>,
    ended: bool,
    outbox: Outbox,
}

impl Sender {
    /// A pair is sent once in this number of packets, if the controller wants pairs. Ours: some in each report interval, and
    /// not enough to make the stream bursty.
    const PAIR_EVERY: u32 = 8;
    /// What a session over one path provides to its controller, and [`Needs::PLAYOUT`] besides if its receiver stands before
    /// a playout buffer.
    pub const PROVIDES: Needs = Needs::INTERVALS.and(Needs::PACKET_PAIRS);
    /// Seconds without a report after which no media is sent (RFC 8083, Sec. 4.1).
    pub const CIRCUIT_S: i64 = Breakers::SECONDS;

    /// A sender that starts at `config.start` at the controller's rate.
    ///
    /// # Errors
    /// [`SessionError`] where the configuration cannot be carried by RTP.
    pub fn new(config: SenderConfig, controller: BoxedController) -> Result<Self, SessionError> {
        config.check()?;
        let provided = config.provides();
        let by_packet = ByPacket::new(&config)?;
        let controller = adapted(by_packet.as_ref(), controller);
        let governor = Governor::new(controller, provided)?;
        let exchange = Exchange::new(&config, config.start, stream_seed(config.seed, 1));
        let mut compound = CompoundTimer::new(config.seed);
        let packet = config.stream.packet_size;
        let numbers = Numbers { subflow: None, transport: by_packet.as_ref().and_then(ByPacket::like) };
        let packetiser = Packetiser::new(config.stream, numbers, compound.random())?;
        compound.restart(config.start);
        let mut sender = Self {
            stock: Stock::new(config.supply, config.pauses, config.start),
            packetiser,
            payload: config.payload,
            queue: PayloadQueue::new(None, config.patience),
            further: (config.has_further_source && config.payload == Payload::Rtp)
                .then(|| FurtherSource::new(config.patience)),
            repeats: config.repeating.filter(|_| config.payload != Payload::Generated).map(RepeatQueue::new),
            plain: Vec::new(),
            application: Application::default(),
            pacer: Pacer::new(governor.rate()),
            governor,
            probe: None,
            provided,
            by_packet,
            report_interval: config.report_interval,
            start: config.start,
            exchange,
            compound,
            singles: 0,
            breakers: Breakers::new(config.circuit_breakers, (config.report_interval, packet), config.start),
            key_frames: KeyFrameTaker::default(),
            first_media: None,
            turns: [0; 2],
            shared: None,
            handled: Instant::ZERO,
            ended: false,
            outbox: Outbox::default(),
        };
        sender.turns = [sender.packetiser.next_sequence(); 2];
        if let Some(packets) = sender.stock.packets() {
            sender.outbox.event(Event::ContentKnown { packets });
        }
        sender.decided();
        Ok(sender)
    }

    /// Another controller takes over, at its own rate.
    ///
    /// # Errors
    /// [`SessionError::Needs`] and [`SessionError::NoRate`]; then the present one goes on.
    pub fn set_controller(&mut self, controller: BoxedController) -> Result<(), SessionError> {
        self.governor = Governor::new(adapted(self.by_packet.as_ref(), controller), self.provided)?;
        self.first_media = None;
        self.decided();
        Ok(())
    }

    /// The rate that media may have now.
    pub const fn rate(&self) -> Rate {
        self.governor.rate()
    }

    /// Whether a circuit breaker has stopped the media (RFC 8083, Sec. 4).
    pub const fn is_circuit_broken(&self) -> bool {
        self.breakers.has_stopped()
    }

    /// The controller's rate holds from now on.
    fn decided(&mut self) {
        let rate = self.governor.rate();
        self.keep_pace();
        self.outbox.event(Event::RateDecided { rate, snapshot: self.governor.snapshot() });
        if let Some(beliefs) = self.governor.beliefs() {
            self.outbox.event(Event::Believed(beliefs));
        }
    }

    /// Packets follow each other as the controller allows, or as fast as it wants a probe to be.
    fn keep_pace(&mut self) {
        let pacing = if self.payload == Payload::Rtp { Some(1.0) } else { self.stock.pacing() };
        let pace = pacing.map_or(self.governor.rate(), |pacing| self.governor.pace(pacing));
        self.pacer.set_rate(self.governor.probe().map_or(pace, |probe| probe.rate.max(pace)));
    }

    /// Does what is due at `now`.
    pub(super) fn run(&mut self, now: Instant<SenderClock>) {
        if now < self.start {
            return;
        }
        self.ask_about_probe(now);
        if now >= self.exchange.due() {
            self.take_turn(now);
        }
        if self.compound.fires(now) {
            self.packetiser.send_compound(now, false, &mut self.outbox);
        }
        let trip = self.breakers.check(now);
        self.trips(trip);
        let since_first = self.first_media.map_or(Span::ZERO, |first| now - first);
        if self.governor.on_unproved(since_first, self.report_interval) {
            self.decided();
        }
        let Self { queue, further, .. } = self;
        for queue in further.iter_mut().map(|further| &mut further.queue).chain([queue]) {
            queue.expire(now, self.payload);
            self.outbox.expired(queue.take_expired());
        }
        self.repeats.iter_mut().for_each(|repeats| repeats.expire(now));
        self.refill(now);
        if self.governor.on_timer(now) {
            self.decided();
        }
        // Two at most: one that is due, and one that lateness of just a gap makes due at the same moment.
        for _ in 0..2 {
            if self.breakers.has_stopped() || self.is_window_full() || self.pacer.poll(now) != Readiness::Now {
                break;
            }
            let repeated = self.repeat(now);
            let Some(size) = repeated.or_else(|| self.send(now).map(|size| size + self.send_second(now))) else {
                self.application.waits(now);
                break;
            };
            if let Some(late) = self.pacer.on_departure(now, size) {
                self.outbox.event(Event::PacingReset { late });
            }
            match self.pacer.poll(now) {
                Readiness::At(due) if repeated.is_some() => self.application.lends(now, due),
                Readiness::At(due) if !self.has_media() => self.application.waits(due),
                _ => {}
            }
        }
        self.ask_about_probe(now);
    }

    /// A request goes out before a probe and behind it, so that the answers prove the rate of the probe alone.
    fn ask_about_probe(&mut self, now: Instant<SenderClock>) {
        let probe = self.governor.probe().map(|probe| probe.number);
        if core::mem::replace(&mut self.probe, probe) != probe {
            self.exchange.hurry(now);
        }
    }

    /// Sends what is missing once more and returns its size; `None` where nothing is, or where what goes before all else waits.
    ///
    /// It is waited for, and so goes before other media. No measure knows of it: it has no number and no time of its own.
    fn repeat(&mut self, now: Instant<SenderClock>) -> Option<Size> {
        let Self { packetiser, plain, outbox, repeats, further, .. } = self;
        if further.as_ref().is_some_and(|further| further.queue.waiting() > 0) {
            return None;
        }
        let sequence = repeats.as_mut()?.take(now, plain)?;
        // A mark would tell nobody.
        outbox.media_says(Ecn::NotCapable);
        Some(packetiser.repeat(now, sequence, plain, outbox))
    }

    /// Sends the next packet and returns its size; `None` where the application has none.
    fn send(&mut self, now: Instant<SenderClock>) -> Option<Size> {
        let Self { packetiser, queue, stock, plain, exchange, outbox, repeats, further, .. } = self;
        let further = further.as_mut().map(|further| &mut further.queue).filter(|queue| queue.waiting() > 0);
        outbox.media_says(exchange.ecn());
        let sent = if self.payload == Payload::Generated {
            // What there is of media goes into a probe first.
            let padding = self.governor.probe().map(|_| packetiser.full(now));
            let content = stock.take(now, packetiser).or(padding)?;
            let transport = self.by_packet.as_mut().and_then(ByPacket::number);
            packetiser.send(now, content, Numbers { subflow: None, transport }, outbox)
        } else {
            let queue = further.unwrap_or(queue);
            let waited = queue.waited(now);
            let sequence = packetiser.number(now, self.payload, queue, plain)?;
            if let Some(repeats) = repeats {
                repeats.keep(now, sequence, plain);
            }
            packetiser.stamp(now, Plain { sequence, bytes: plain, waited }, None, outbox)
        };
        self.first_media.get_or_insert(now);
        let next = packetiser.next_sequence();
        self.exchange.on_media(now, sent.size, next);
        self.on_sent(now, next.wrapping_sub(1), sent.size);
        Some(sent.size)
    }

    /// The packet with this number left: the controller may want to know.
    fn on_sent(&mut self, now: Instant<SenderClock>, sequence: u64, size: Size) {
        let Some(by_packet) = &mut self.by_packet else { return };
        let packet = by_packet.on_sent(now, sequence, size);
        if self.governor.on_sent(now, packet) {
            self.decided();
        } else {
            self.keep_pace();
        }
    }

    /// Whether the data in flight is at its limit.
    fn is_window_full(&self) -> bool {
        let window = self.governor.window();
        let in_flight = self.by_packet.as_ref().map_or(Size::ZERO, ByPacket::in_flight);
        // One packet may always be: nothing would ever be heard without.
        window.is_some_and(|window| in_flight >= window.max(Size::from_bytes(1)))
    }

    /// Sends the second packet of a pair behind one that was just sent, where that is due. Gives its size.
    fn send_second(&mut self, now: Instant<SenderClock>) -> Size {
        self.singles += 1;
        if self.singles < Self::PAIR_EVERY || !self.governor.wants_packet_pairs() {
            return Size::ZERO;
        }
        self.singles = 0;
        self.send(now).unwrap_or(Size::ZERO)
    }

    /// A circuit breaker has tripped, where one has.
    fn trips(&mut self, trip: Option<Trip>) {
        match trip {
            None => {}
            Some(Trip::Tenth) => {
                self.governor.cut_to_tenth();
                self.outbox.event(Event::CircuitStrained);
                self.decided();
            }
            Some(Trip::Stop(breaker)) => self.outbox.event(Event::CircuitBroken(breaker)),
        }
    }

    /// Media goes on at the lowest rate, where enough has been answered.
    fn begin_again_if_due(&mut self, now: Instant<SenderClock>) {
        if self.breakers.begins_again(now) {
            self.governor.begin_again();
            self.outbox.event(Event::CircuitClosed);
            self.pacer.rested_until(now);
            self.decided();
        }
    }

    pub(super) fn on_payload(&mut self, now: Instant<SenderClock>, payload: &[u8]) -> Result<(), DropReason> {
        let (own, rate) = (self.packetiser.config().ssrc, self.governor.rate());
        match (&mut self.further, source_of(payload).filter(|source| *source != own)) {
            (Some(further), Some(source)) => further.offer(now, payload, (source, rate))?,
            _ => self.queue.offer(now, (payload, false), self.payload, (own, rate))?,
        }
        self.on_supply(now);
        Ok(())
    }

    /// There is something to send from `now` on.
    fn on_supply(&mut self, now: Instant<SenderClock>) {
        if self.application.goes_on(now) {
            self.pacer.rested_until(now);
        }
    }

    /// Sees whether there is generated media to send at `now`.
    fn refill(&mut self, now: Instant<SenderClock>) {
        if self.payload == Payload::Generated {
            let (packet, media) = (self.packetiser.config().packet_size, self.packetiser.media());
            let room = Room { rate: self.governor.rate(), packet, media };
            let Self { stock, governor, outbox, .. } = self;
            stock.advance(now, room, &mut |queued| governor.on_frame(now, &queued), outbox);
            if self.stock.has(now) {
                self.on_supply(now);
            }
        }
    }

    /// Bytes of payload that wait, of all sources.
    fn unsent(&self) -> usize {
        self.queue.waiting() + self.further.as_ref().map_or(0, |further| further.queue.waiting())
    }

    /// Whether there is something to send.
    fn has_payload(&self) -> bool {
        let repeats = self.repeats.as_ref().is_some_and(RepeatQueue::is_ready);
        !self.breakers.has_stopped() && (repeats || self.has_media())
    }

    /// Whether there is something to send for the first time.
    fn has_media(&self) -> bool {
        match self.payload {
            Payload::Generated => self.stock.has(self.handled) || self.governor.probe().is_some(),
            Payload::Stream | Payload::Rtp => self.unsent() > 0,
        }
    }

    fn end(&mut self, by_peer: bool) {
        self.fall_silent();
        self.outbox.event(Event::Ended { by_peer });
    }

    /// Sends nothing from now on.
    pub(super) const fn fall_silent(&mut self) {
        self.ended = true;
    }
}

/// `controller` as the session feeds it.
fn adapted(by_packet: Option<&ByPacket>, controller: BoxedController) -> BoxedController {
    match by_packet {
        Some(by_packet) => by_packet.adapt(controller),
        None => controller,
    }
}

impl Endpoint for Sender {
    type Clock = SenderClock;

    fn handle(&mut self, now: Instant<SenderClock>, input: Input<'_>) {
        // A session over one path has it from beginning to end.
        if self.ended || matches!(input, Input::Path { .. }) {
            return;
        }
        // A world may report an arrival that the kernel stamped before the last timer: time never runs backwards here.
        let now = self.come_to(now);
        match input {
            Input::Datagram { datagram, .. } => self.on_datagram(now, datagram),
            Input::Payload { payload, .. } => {
                if let Err(reason) = self.on_payload(now, payload) {
                    self.outbox.ignore(reason);
                }
            }
            Input::Stop => {
                self.packetiser.send_compound(now, true, &mut self.outbox);
                self.end(false);
            }
            Input::Unreachable { .. } => self.on_unreachable(),
            Input::KeyFrame(_) => self.outbox.ignore(DropReason::Stray),
            Input::Timer | Input::Path { .. } => {}
        }
        if !self.ended {
            self.run(now);
        }
    }

    fn poll(&mut self) -> Option<Output<'_>> {
        self.outbox.poll()
    }

    fn room(&self) -> usize {
        self.queue.room(self.payload, self.governor.rate())
    }

    fn waiting(&self) -> usize {
        self.unsent()
    }

    fn wake(&self) -> Option<Wake<SenderClock>> {
        if self.ended {
            return None;
        }
        let request = self.exchange.due();
        let report = self.compound.due().map_or(request, |due| due.min(request));
        let is_stocked = self.payload == Payload::Generated && !self.breakers.has_stopped();
        let refill = self.stock.next_at(self.handled).filter(|_| is_stocked);
        let media = match self.pacer.poll(self.handled) {
            _ if self.is_window_full() => Instant::MAX,
            _ if !self.has_payload() => refill.map_or(Instant::MAX, |at| at.max(self.handled + Span::from_nanos(1))),
            Readiness::At(due) => due.max(self.start),
            Readiness::Now => self.start.max(self.handled + Span::from_nanos(1)),
            Readiness::Never => Instant::MAX,
        };
        let media =
            self.governor.next_timer().map_or(media, |at| media.min(at.max(self.handled + Span::from_nanos(1))));
        Some(Wake::first(media, report))
    }
}
