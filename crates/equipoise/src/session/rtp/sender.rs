use alloc::collections::VecDeque;

use super::compound::CompoundTimer;
use super::delays::{DelayReader, Delays, Reading};
use super::outbox::Outbox;
use super::payload::{Payload, PayloadQueue};
use super::stream::{Packetiser, SessionError, StreamConfig};
use crate::control::{BoxedController, Feedback, IntervalSummary};
use crate::pace::{Pacer, Readiness};
use crate::session::{Endpoint, Event, Ignored, Input, Output, Wake, WakeReason};
use crate::units::{Instant, SenderClock, Size, Span};
use crate::wire::rtcp::{self, ReceiverReport, ReportBlock, RtcpPacket};
use crate::wire::{DelayReport, NtpTime, ReportRequest, is_rtcp};

/// What a sender is made of, beside its controller.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// The stream it sends.
    pub stream: StreamConfig,
    /// What it carries.
    pub payload: Payload,
    /// What the delays are that the controller gets; the receiver has to know whether the clocks agree.
    pub delays: Delays,
    /// Time between two requests for a report: I of Waki 2013, Sec. 5.1; at least 1 ms.
    pub report_interval: Span,
    /// When the first packet leaves; the first request follows an interval later.
    pub start: Instant<SenderClock>,
    /// Seed of the numbers that RFC 3550 wants drawn: first sequence number, timestamp, spread of compound packets.
    pub seed: u64,
}

impl SenderConfig {
    /// A sender of generated media.
    pub const fn new(stream: StreamConfig, report_interval: Span, start: Instant<SenderClock>, seed: u64) -> Self {
        Self { stream, payload: Payload::Generated, delays: Delays::Agreed, report_interval, start, seed }
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
/// Beyond the paper: no report at all for [`Sender::CIRCUIT_S`] or three intervals stops the media (RFC 8083, Sec. 4);
/// requests go on, and the first answer lets it go on.
pub struct Sender {
    packetiser: Packetiser,
    payload: Payload,
    queue: PayloadQueue,
    application: Application,
    delays: DelayReader,
    controller: BoxedController,
    pacer: Pacer<SenderClock>,
    report_interval: Span,
    start: Instant<SenderClock>,
    exchange: Exchange,
    compound: CompoundTimer<SenderClock>,
    path_load: Option<f64>,
    /// Source of the reports, once one of them proved to be an answer.
    receiver_ssrc: Option<u32>,
    /// When a report was last heard of, or the session began; `None` while the circuit is broken.
    heard: Option<Instant<SenderClock>>,
    handled: Instant<SenderClock>,
    ended: bool,
    outbox: Outbox,
}

/// Whether the application uses its rate.
#[derive(Clone, Copy, Debug, Default)]
struct Application {
    /// From when on the pacer waits for the application; may lie ahead.
    waits_since: Option<Instant<SenderClock>>,
    /// How long it has waited in this interval.
    waited: Span,
}

impl Application {
    /// A pacer that waits for a larger part of an interval than one in so many is one that the application does not fill.
    /// Ours: encoders keep to a rate within some percent.
    const LIMITED: i64 = 10;

    fn waits(&mut self, from: Instant<SenderClock>) {
        self.waits_since.get_or_insert(from);
    }

    /// The pacer has something to send from `now` on, if it had not before.
    fn goes_on(&mut self, now: Instant<SenderClock>) {
        if let Some(since) = self.waits_since.take() {
            self.waited = self.waited + (now - since).max(Span::ZERO);
        }
    }

    /// Whether the interval of this length, which ends at `now`, was limited by the application.
    fn ends(&mut self, now: Instant<SenderClock>, interval: Span) -> bool {
        if let Some(since) = self.waits_since {
            self.goes_on(now);
            self.waits(since.max(now));
        }
        let waited = core::mem::take(&mut self.waited);
        waited * Self::LIMITED > interval
    }
}

/// Where the exchange of requests and reports stands.
#[derive(Debug)]
struct Exchange {
    next_due: Instant<SenderClock>,
    next_number: u64,
    /// What the next request will carry: the beginning of the interval it asks about.
    interval_start: Instant<SenderClock>,
    /// The latest requests, oldest first; at most [`Exchange::KEPT`].
    asked: VecDeque<Request>,
    last_applied: Option<u64>,
    skipped: bool,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    number: u64,
    sent: Instant<SenderClock>,
    /// The application limited the interval that it asks about.
    application_limited: bool,
}

impl Exchange {
    /// Requests that an answer is accepted for; older answers are stray.
    const KEPT: usize = 8;
    /// Reports that may be missing before the rate is halved (Waki 2013, Sec. 5.1).
    const MISSING: u64 = 3;

    /// Whether the last three requests are all unanswered.
    fn is_silent(&self) -> bool {
        let answered = self.last_applied.map_or(0, |number| number + 1);
        self.next_number - answered >= Self::MISSING
    }

    fn ask(&mut self, now: Instant<SenderClock>, application_limited: bool) -> Request {
        let request = Request { number: self.next_number, sent: now, application_limited };
        self.next_number += 1;
        if self.asked.len() >= Self::KEPT {
            self.asked.pop_front();
        }
        self.asked.push_back(request);
        self.interval_start = now;
        request
    }

    /// The request that a report answers, if it may still be applied.
    fn answer(&self, last_sr: u32) -> Result<Request, Ignored> {
        let is_asked = |request: &&Request| NtpTime::from_instant(request.sent).middle() == last_sr;
        let request = self.asked.iter().rev().find(is_asked).copied().ok_or(Ignored::Stray)?;
        match self.last_applied {
            Some(applied) if request.number == applied => Err(Ignored::Duplicate),
            Some(applied) if request.number < applied => Err(Ignored::Late),
            _ => Ok(request),
        }
    }
}

impl Sender {
    /// The shortest report interval.
    const SHORTEST_INTERVAL: Span = Span::from_millis(1);
    /// Seconds without a report after which no media is sent: three of the regular intervals of RTCP, 5 s each
    /// (RFC 8083, Sec. 4; RFC 3550, Sec. 6.2).
    pub const CIRCUIT_S: i64 = 15;

    /// A sender that starts at `config.start` at the controller's rate.
    ///
    /// # Errors
    /// [`SessionError`] where the configuration cannot be carried by RTP.
    pub fn new(config: SenderConfig, controller: BoxedController) -> Result<Self, SessionError> {
        let (found, min) = (config.report_interval, Self::SHORTEST_INTERVAL);
        if found < min {
            return Err(SessionError::ReportInterval { found, min });
        }
        let mut compound = CompoundTimer::new(config.seed);
        let packetiser = Packetiser::new(config.stream, compound.random())?;
        compound.restart(config.start);
        let mut sender = Self {
            packetiser,
            payload: config.payload,
            queue: PayloadQueue::default(),
            application: Application::default(),
            delays: DelayReader::new(config.delays),
            pacer: Pacer::new(controller.allowance().rate),
            controller,
            report_interval: config.report_interval,
            start: config.start,
            exchange: Exchange {
                next_due: config.start + config.report_interval,
                next_number: 0,
                interval_start: config.start,
                asked: VecDeque::with_capacity(Exchange::KEPT),
                last_applied: None,
                skipped: false,
            },
            compound,
            path_load: None,
            receiver_ssrc: None,
            heard: Some(config.start),
            handled: Instant::ZERO,
            ended: false,
            outbox: Outbox::default(),
        };
        sender.decided();
        Ok(sender)
    }

    /// When the sender is going to ask for the next report, or to find that the last ones are missing.
    pub const fn next_request(&self) -> Instant<SenderClock> {
        self.exchange.next_due
    }

    /// The controller's rate holds from now on.
    fn decided(&mut self) {
        let rate = self.controller.allowance().rate;
        self.pacer.set_rate(rate);
        self.outbox.event(Event::RateDecided { rate, snapshot: self.controller.snapshot() });
    }

    /// Does what is due at `now`.
    fn run(&mut self, now: Instant<SenderClock>) {
        if now < self.start {
            return;
        }
        if now >= self.exchange.next_due {
            self.request_or_skip(now);
        }
        if self.compound.fires(now) {
            self.packetiser.send_compound(now, false, &mut self.outbox);
        }
        if self.is_silent_for_good(now) {
            self.heard = None;
            self.outbox.event(Event::CircuitBroken);
        }
        // Two at the most: one that is due, and one that lateness of just a gap makes due at the same moment.
        for _ in 0..2 {
            if self.heard.is_none() || self.pacer.poll(now) != Readiness::Now {
                break;
            }
            let Some(size) = self.send(now) else {
                self.application.waits(now);
                break;
            };
            if let Some(late) = self.pacer.on_departure(now, size) {
                self.outbox.event(Event::PacingReset { late });
            }
            if let (false, Readiness::At(due)) = (self.has_payload(), self.pacer.poll(now)) {
                self.application.waits(due);
            }
        }
    }

    /// Sends the next packet and gives its size; `None` where the application has none.
    fn send(&mut self, now: Instant<SenderClock>) -> Option<Size> {
        match self.payload {
            Payload::Generated => Some(self.packetiser.send(now, &mut self.outbox)),
            Payload::Stream => self.packetiser.send_stream(now, &mut self.queue, &mut self.outbox),
            Payload::Rtp => self.packetiser.send_packet(now, &mut self.queue, &mut self.outbox),
        }
    }

    /// Whether nothing was heard of the receiver for so long that the media has to stop.
    fn is_silent_for_good(&self, now: Instant<SenderClock>) -> bool {
        let limit = Span::from_secs(Self::CIRCUIT_S).max(self.report_interval * 3);
        self.heard.is_some_and(|heard| now - heard > limit)
    }

    /// The receiver lives: media may go on.
    fn on_heard(&mut self, now: Instant<SenderClock>) {
        if self.heard.replace(now).is_none() {
            self.pacer.rested_until(now);
            self.outbox.event(Event::CircuitClosed);
        }
    }

    fn on_payload(&mut self, now: Instant<SenderClock>, payload: &[u8]) -> Result<(), Ignored> {
        match self.payload {
            Payload::Generated => return Err(Ignored::Stray),
            Payload::Stream => self.queue.push(payload)?,
            Payload::Rtp => self.queue.push_packet(payload, self.packetiser.config().ssrc)?,
        }
        if self.application.waits_since.is_some() {
            self.application.goes_on(now);
            self.pacer.rested_until(now);
        }
        Ok(())
    }

    fn has_payload(&self) -> bool {
        self.heard.is_some() && (self.payload == Payload::Generated || self.queue.waiting() > 0)
    }

    /// Asks for a report, or, where three are missing, tells the controller and lets this one be.
    fn request_or_skip(&mut self, now: Instant<SenderClock>) {
        let exchange = &mut self.exchange;
        exchange.next_due = exchange.next_due + self.report_interval;
        if exchange.next_due <= now {
            exchange.next_due = now + self.report_interval;
        }
        exchange.skipped = exchange.is_silent() && !exchange.skipped;
        if exchange.skipped {
            exchange.interval_start = now;
            self.controller.on_timeout(now);
            self.outbox.event(Event::ReportsMissing);
            self.decided();
            return;
        }
        let extension =
            ReportRequest { interval_start: NtpTime::from_instant(exchange.interval_start).middle() }.to_bytes();
        let number = exchange.ask(now, self.application.ends(now, self.report_interval)).number;
        let info = self.packetiser.sender_info(now);
        self.outbox.whole(|out| info.encode(&[], &extension, out));
        self.outbox.event(Event::ReportRequested { number });
    }

    fn on_datagram(&mut self, now: Instant<SenderClock>, datagram: &[u8]) {
        if !is_rtcp(datagram) {
            return self.outbox.ignore(Ignored::Foreign);
        }
        let Ok(packets) = rtcp::parse_compound(datagram) else {
            return self.outbox.ignore(Ignored::Malformed);
        };
        for packet in packets {
            let taken = match packet {
                RtcpPacket::ReceiverReport(report) => self.on_report(now, &report),
                RtcpPacket::Goodbye(goodbye) => {
                    if goodbye.ssrcs().any(|ssrc| Some(ssrc) == self.receiver_ssrc) {
                        self.end(true);
                    }
                    Ok(())
                }
                // Descriptions and whatever else a compound may hold is none of the control loop's business.
                _ => Ok(()),
            };
            if let Err(reason) = taken {
                self.outbox.ignore(reason);
            }
        }
    }

    fn on_report(&mut self, now: Instant<SenderClock>, report: &ReceiverReport<'_>) -> Result<(), Ignored> {
        // A receiver that was started anew has another source; while the old one speaks, it is a stranger.
        if self.receiver_ssrc.is_some_and(|ssrc| ssrc != report.ssrc) && !self.exchange.is_silent() {
            return Err(Ignored::Foreign);
        }
        let our_ssrc = self.packetiser.config().ssrc;
        let Some(block) = report.blocks().find(|block| block.ssrc == our_ssrc) else {
            return if report.extension.is_empty() { Ok(()) } else { Err(Ignored::Foreign) };
        };
        if report.extension.is_empty() {
            // The regular report of a compound: good for foreign tools, without the statistics that control wants.
            if self.receiver_ssrc.is_some() {
                self.on_heard(now);
            }
            return Ok(());
        }
        let said = DelayReport::parse(report.extension).map_err(|_| Ignored::Malformed)?;
        let request = self.exchange.answer(block.last_sr)?;
        let round_trip = now - request.sent - held(&block);
        if round_trip < -CLOCK_GRAIN {
            return Err(Ignored::Implausible);
        }
        self.receiver_ssrc = Some(report.ssrc);
        self.exchange.last_applied = Some(request.number);
        self.on_heard(now);
        let fraction_lost = f64::from(block.fraction_lost) / 256.0;
        let round_trip = round_trip.max(Span::ZERO);
        let outbox = &mut self.outbox;
        let reading = self.delays.read(now, &said, round_trip, &mut |event| outbox.event(event));
        let delay = if let Reading::Delay(delay) = reading { delay } else { None };
        self.outbox.event(Event::ReportApplied {
            number: request.number,
            delay,
            round_trip,
            fraction_lost,
            lost: block.cumulative_lost,
        });
        if let Reading::Spoilt = reading {
            // The rate stays: what the clocks did says nothing of the path.
            return Ok(());
        }
        if !self.delays.receiver_cuts() {
            // From here on packets are those of the present rate; no way has to be guessed.
            self.exchange.interval_start = now;
        }
        let summary = IntervalSummary {
            delay,
            fraction_lost,
            round_trip: Some(round_trip),
            path_load: self.path_load,
            application_limited: request.application_limited,
        };
        self.controller.on_feedback(now, &Feedback::Interval(summary));
        self.decided();
        Ok(())
    }

    fn end(&mut self, by_peer: bool) {
        self.ended = true;
        self.outbox.event(Event::Ended { by_peer });
    }
}

/// Resolution of the time that a report was held: 1/65536 s, rounded up (RFC 3550, Sec. 6.4.1).
const CLOCK_GRAIN: Span = Span::from_nanos(15_259);

/// How long the receiver held the report back (RFC 3550, Sec. 6.4.1).
fn held(block: &ReportBlock) -> Span {
    let nanos = u64::from(block.delay_since_last_sr) * 1_000_000_000 / 65_536;
    Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
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
        match input {
            Input::Datagram(datagram) => self.on_datagram(now, datagram),
            Input::Payload(payload) => {
                if let Err(reason) = self.on_payload(now, payload) {
                    self.outbox.ignore(reason);
                }
            }
            Input::PathLoad(load) => self.path_load = Some(load).filter(|load| load.is_finite() && *load >= 0.0),
            Input::Stop => {
                self.packetiser.send_compound(now, true, &mut self.outbox);
                self.end(false);
            }
            Input::Timer => {}
        }
        if !self.ended {
            self.run(now);
        }
    }

    fn poll(&mut self) -> Option<Output<'_>> {
        self.outbox.poll()
    }

    fn room(&self) -> usize {
        self.queue.room()
    }

    fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    fn wake(&self) -> Option<Wake<SenderClock>> {
        if self.ended {
            return None;
        }
        let report = self.compound.due().map_or(self.exchange.next_due, |due| due.min(self.exchange.next_due));
        let media = match self.pacer.poll(self.handled) {
            _ if !self.has_payload() => Instant::MAX,
            Readiness::At(due) => due.max(self.start),
            Readiness::Now => self.start.max(self.handled + Span::from_nanos(1)),
            Readiness::Never => Instant::MAX,
        };
        Some(if media <= report {
            Wake { at: media, reason: WakeReason::Media }
        } else {
            Wake { at: report, reason: WakeReason::Report }
        })
    }
}
