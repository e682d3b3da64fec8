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
use super::payload::{Payload, PayloadQueue, ends_frame};
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

/// The configuration of a sender, without its controller.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// The stream that the sender sends.
    pub stream: StreamConfig,
    /// The kind of payload that the sender sends.
    pub payload: Payload,
    /// The source of the media, if the payload is generated.
    pub supply: Supply,
    /// How the delays for the controller are obtained. The receiver must be configured accordingly
    /// ([`Clocks`](super::Clocks)).
    pub delays: Delays,
    /// Time between two requests for a report, at least 1 ms. Waki 2013, Sec. 5.1, calls this time `I`.
    pub report_interval: Span,
    /// When the first packet is sent; the first request follows one report interval later.
    pub start: Instant<SenderClock>,
    /// Seed of the sender's random numbers, such as the first sequence number, the timestamp offset and the intervals
    /// between regular RTCP compounds (RFC 3550).
    pub seed: u64,
    /// Maximum time for which payload is queued. RTP packets of another program ([`Payload::Rtp`]) that have waited
    /// longer are dropped. The queue of a stream ([`Payload::Stream`]) accepts as much data as the current rate sends
    /// in this time, but at least 4 KiB.
    pub patience: Span,
    /// Whether the circuit breakers of RFC 8083, Sec. 4 are enabled. Disable them only if no other traffic can suffer:
    /// in a simulator, or on a private link.
    pub circuit_breakers: bool,
    /// Whether the receiver has a playout buffer and reports the buffer's state ([`Needs::PLAYOUT`]).
    pub reports_playout: bool,
    /// ECN field of media packets. The field tells queues whether they may mark packets instead of dropping them. If
    /// the path does not preserve the field, the sender reports [`Event::EcnFailed`], and from then on sends media as
    /// [`Ecn::NotCapable`].
    pub ecn: Ecn,
    /// The pauses of generated media, in order of time.
    pub pauses: Vec<Pause>,
    /// How the receiver sends per-packet reports; `None` if it sends none. The controller uses these reports instead of
    /// the answers to report requests, unless the controller needs [`Needs::PLAYOUT`].
    pub reporting: Option<Reporting>,
    /// How the sender answers requests for missing packets; `None` if it ignores such requests. Generated media is
    /// never retransmitted.
    pub repeating: Option<Repeating>,
    /// Whether the session also carries another program's packets from one further source, such as audio in addition to
    /// video. Packets of the further source are sent before all others, and the receiver delivers them on arrival. The
    /// first source that is not the session's own becomes the further source. If the further source sends no packet for
    /// 2 s, another source may replace it.
    pub has_further_source: bool,
}

impl SenderConfig {
    /// Creates the configuration of a sender of generated media.
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

    /// Default of `patience`. Our choice: after a longer time, payload is of no use to a conversation.
    pub const PATIENCE: Span = Span::from_millis(400);

    /// Returns the feedback that the session provides to its controller.
    pub const fn provides(&self) -> Needs {
        let playout = if self.reports_playout { Needs::PLAYOUT } else { Needs::NOTHING };
        let packets = if self.reporting.is_some() { Needs::PACKETS } else { Needs::NOTHING };
        Sender::PROVIDES.and(playout).and(packets)
    }

    /// Rejects a report interval that is too short.
    pub(crate) fn check(&self) -> Result<(), SessionError> {
        let (found, min) = (self.report_interval, Exchange::SHORTEST);
        if found < min { Err(SessionError::ReportInterval { found, min }) } else { Ok(()) }
    }
}

/// The sending end of a session. It paces media at the controller's rate, requests reports and passes them to the
/// controller.
///
/// Source: Waki 2013, Sec. 5.1. A request contains the time of the previous request, so that the receiver can select
/// the packets sent at the current rate. If none of the last three requests has been answered when the next request is
/// due, this next request is skipped. The controller is notified, and the rate is halved unless it is fixed. The
/// request one interval later contains the time of the skipped request, so that only packets sent at the halved rate
/// count. (The expression `t_i + 1 + I` in the paper is garbled; this is our reading.)
///
/// Our reading: a report that arrives after a later request was sent is applied, unless a newer report was already
/// applied. So the report interval may be shorter than the round-trip time.
///
/// In addition to the paper: unless the controller has a fixed rate or must act exactly as in its paper, the rate is at
/// most twice the delivery rate that reports prove. The circuit breakers of RFC 8083, Sec. 4 can stop the media
/// ([`Event::CircuitBroken`]). Requests then continue, but the time between them doubles with each unanswered request,
/// up to eight report intervals. After three answers, media restarts at the lowest rate. If media stopped for a reason
/// other than missing reports, a pause must also have passed.
///
/// Except with [`Delays::Agreed`]: if a report was applied after the previous request, the request contains the time at
/// which the last report was applied, instead of the time of the previous request. So the receiver need not estimate
/// when the new rate took effect.
pub struct Sender {
    packetiser: Packetiser,
    payload: Payload,
    queue: PayloadQueue,
    /// The queue of a second RTP source, for example of audio; `None` if the session carries only its main source.
    further: Option<FurtherSource>,
    /// The packets for retransmission; `None` if nothing is retransmitted.
    repeats: Option<RepeatQueue>,
    /// The packet that is being sent, without the RTP header extensions that the session adds.
    plain: Vec<u8>,
    stock: Stock,
    application: Application,
    governor: Governor,
    /// Number of the probe that is being sent.
    probe: Option<u64>,
    provided: Needs,
    /// The state for per-packet reports; `None` if the receiver sends no such reports.
    by_packet: Option<ByPacket>,
    pacer: Pacer<SenderClock>,
    report_interval: Span,
    start: Instant<SenderClock>,
    exchange: Exchange,
    compound: CompoundTimer<SenderClock>,
    /// Number of packets since the last packet pair.
    singles: u32,
    breakers: Breakers,
    key_frames: KeyFrameTaker,
    /// When the first media packet was sent under the present controller; `None` before this packet.
    first_media: Option<Instant<SenderClock>>,
    /// For the last two report requests: the sequence number of the next media packet at the time when the request was
    /// due. The older request is first.
    turns: [u64; 2],
    /// The sender's part of the next RTCP datagram, if this sender and a receiving role send common RTCP datagrams.
    /// `None` if the sender sends its own RTCP datagrams.
    shared: Option<Draft>,
    handled: Instant<SenderClock>,
    ended: bool,
    outbox: Outbox,
}

impl Sender {
    /// If the controller needs packet pairs, one departure in `PAIR_EVERY` is a pair, and the others are single
    /// packets. Our choice: some pairs in each report interval, but not enough to make the stream bursty.
    const PAIR_EVERY: u32 = 8;
    /// Feedback that a session over one path provides to its controller; [`Needs::PLAYOUT`] is added if the receiver
    /// has a playout buffer, and [`Needs::PACKETS`] if it sends per-packet reports.
    pub const PROVIDES: Needs = Needs::INTERVALS.and(Needs::PACKET_PAIRS);
    /// Time in seconds without a report after which no media is sent (RFC 8083, Sec. 4.1). If three report intervals
    /// are longer, they replace this time.
    pub const CIRCUIT_S: i64 = Breakers::SECONDS;

    /// Creates a sender that starts at `config.start` at the controller's rate.
    ///
    /// # Errors
    /// [`SessionError`] if RTP cannot carry the configuration, or if the session does not meet the controller's needs.
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

    /// Replaces the controller. The new controller starts at its own initial rate.
    ///
    /// # Errors
    /// [`SessionError::Needs`] if the new controller needs feedback that the session does not provide, and
    /// [`SessionError::NoRate`] if it decides on no rate. After an error, the current controller stays.
    pub fn set_controller(&mut self, controller: BoxedController) -> Result<(), SessionError> {
        self.governor = Governor::new(adapted(self.by_packet.as_ref(), controller), self.provided)?;
        self.first_media = None;
        self.decided();
        Ok(())
    }

    /// Returns the current maximum rate of the media.
    pub const fn rate(&self) -> Rate {
        self.governor.rate()
    }

    /// Whether a circuit breaker has stopped the media (RFC 8083, Sec. 4).
    pub const fn is_circuit_broken(&self) -> bool {
        self.breakers.has_stopped()
    }

    /// Applies and records the controller's decision.
    fn decided(&mut self) {
        let rate = self.governor.rate();
        self.keep_pace();
        self.outbox.event(Event::RateDecided { rate, snapshot: self.governor.snapshot() });
        if let Some(beliefs) = self.governor.beliefs() {
            self.outbox.event(Event::Believed(beliefs));
        }
    }

    /// Sets the pacing rate. For frames and another program's packets, this is the governor's [pace](Governor::pace);
    /// for other media, this is the governor's [rate](Governor::rate). If the controller wants a probe at a higher
    /// rate, the probe's rate is used instead.
    fn keep_pace(&mut self) {
        let pacing = if self.payload == Payload::Rtp { Some(1.0) } else { self.stock.pacing() };
        let pace = pacing.map_or(self.governor.rate(), |pacing| self.governor.pace(pacing));
        self.pacer.set_rate(self.governor.probe().map_or(pace, |probe| probe.rate.max(pace)));
    }

    /// Performs everything that is due at `now`.
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
        // Sends at most two packets or packet pairs: the one that is due, and the next one if the first was late by a
        // packet interval.
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

    /// If a probe begins or ends, makes a report request due, so that one report covers only the packets of the probe.
    fn ask_about_probe(&mut self, now: Instant<SenderClock>) {
        let probe = self.governor.probe().map(|probe| probe.number);
        if core::mem::replace(&mut self.probe, probe) != probe {
            self.exchange.hurry(now);
        }
    }

    /// Retransmits a requested packet and returns its size. Returns `None` if no packet must be retransmitted, or if a
    /// packet of the session's second source, such as audio, is queued.
    ///
    /// A retransmission is sent before other media, because the receiver waits for it. No measurement includes a
    /// retransmission: the receiver recognises it by its mark, and the sender does not count it as media.
    fn repeat(&mut self, now: Instant<SenderClock>) -> Option<Size> {
        let Self { packetiser, plain, outbox, repeats, further, .. } = self;
        if further.as_ref().is_some_and(|further| further.queue.waiting() > 0) {
            return None;
        }
        let sequence = repeats.as_mut()?.take(now, plain)?;
        // The receiver does not report congestion marks on retransmissions, so routers must not mark them.
        outbox.media_says(Ecn::NotCapable);
        Some(packetiser.repeat(now, sequence, plain, outbox))
    }

    /// Sends the next packet and returns its size; `None` if there is no packet.
    fn send(&mut self, now: Instant<SenderClock>) -> Option<Size> {
        let Self { packetiser, queue, stock, plain, exchange, outbox, repeats, further, .. } = self;
        let further = further.as_mut().map(|further| &mut further.queue).filter(|queue| queue.waiting() > 0);
        outbox.media_says(exchange.ecn());
        let sent = if self.payload == Payload::Generated {
            // A probe carries queued media first, then full packets of padding.
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

    /// Notifies the controller that packet `sequence` was sent.
    fn on_sent(&mut self, now: Instant<SenderClock>, sequence: u64, size: Size) {
        let Some(by_packet) = &mut self.by_packet else { return };
        let packet = by_packet.on_sent(now, sequence, size);
        if self.governor.on_sent(now, packet) {
            self.decided();
        } else {
            self.keep_pace();
        }
    }

    /// Whether the data in flight has reached the controller's window.
    fn is_window_full(&self) -> bool {
        let window = self.governor.window();
        let in_flight = self.by_packet.as_ref().map_or(Size::ZERO, ByPacket::in_flight);
        // At least one packet may be in flight; otherwise there would never be feedback.
        window.is_some_and(|window| in_flight >= window.max(Size::from_bytes(1)))
    }

    /// If a packet pair is due, sends the second packet of the pair. Returns the size of that packet, or zero.
    fn send_second(&mut self, now: Instant<SenderClock>) -> Size {
        self.singles += 1;
        if self.singles < Self::PAIR_EVERY || !self.governor.wants_packet_pairs() {
            return Size::ZERO;
        }
        self.singles = 0;
        self.send(now).unwrap_or(Size::ZERO)
    }

    /// Acts on the trip of a circuit breaker, if any.
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

    /// Restarts stopped media at the lowest rate, if the circuit breakers allow it.
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
        let source = source_of(payload).filter(|source| *source != own);
        if let (Some(further), Some(source)) = (&mut self.further, source) {
            further.offer(now, payload, (source, rate))?;
        } else {
            self.queue.offer(now, (payload, false), self.payload, (own, rate))?;
            self.on_queued(now, payload);
        }
        self.on_supply(now);
        Ok(())
    }

    /// If the packet that was just queued is the last packet of a frame, passes the frame to the controller. The data
    /// queued before the frame includes the queued packets of a second media source, such as audio.
    fn on_queued(&mut self, now: Instant<SenderClock>, packet: &[u8]) {
        if self.payload != Payload::Rtp || !ends_frame(packet) {
            return;
        }
        let further = self.further.as_ref().map_or(0, |further| further.queue.waiting());
        let frame = self.queue.last_frame(now, further);
        self.governor.on_frame(now, &frame);
    }

    /// Records that there is a packet to send from `now` on.
    fn on_supply(&mut self, now: Instant<SenderClock>) {
        if self.application.goes_on(now) {
            self.pacer.rested_until(now);
        }
    }

    /// Captures generated media that is due at `now`, and checks whether there is a packet to send.
    fn refill(&mut self, now: Instant<SenderClock>) {
        if self.payload == Payload::Generated {
            let (packet, media) = (self.packetiser.config().packet_size, self.packetiser.media());
            let room = Room { rate: self.governor.rate(), packet, media };
            let Self { stock, governor, outbox, .. } = self;
            stock.advance(now, room, &mut |queued| governor.on_frame(now, &queued.with_padding()), outbox);
            if self.stock.has(now) {
                self.on_supply(now);
            }
        }
    }

    /// Returns the number of bytes of queued payload, over all sources.
    fn unsent(&self) -> usize {
        self.queue.waiting() + self.further.as_ref().map_or(0, |further| further.queue.waiting())
    }

    /// Whether there is a packet to send, including retransmissions.
    fn has_payload(&self) -> bool {
        let repeats = self.repeats.as_ref().is_some_and(RepeatQueue::is_ready);
        !self.breakers.has_stopped() && (repeats || self.has_media())
    }

    /// Whether there is a packet to send, not counting retransmissions.
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

    /// Ends sending permanently.
    pub(super) const fn fall_silent(&mut self) {
        self.ended = true;
    }
}

/// Returns the controller, adapted to the session's kind of feedback.
fn adapted(by_packet: Option<&ByPacket>, controller: BoxedController) -> BoxedController {
    match by_packet {
        Some(by_packet) => by_packet.adapt(controller),
        None => controller,
    }
}

impl Endpoint for Sender {
    type Clock = SenderClock;

    fn handle(&mut self, now: Instant<SenderClock>, input: Input<'_>) {
        // The path of a session over one path never changes, so input about paths has no effect.
        if self.ended || matches!(input, Input::Path { .. }) {
            return;
        }
        // A datagram's kernel timestamp may be earlier than the last timer call, but time must not go backwards here.
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
