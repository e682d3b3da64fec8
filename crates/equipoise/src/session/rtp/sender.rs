use alloc::collections::VecDeque;

use super::compound::CompoundTimer;
use super::outbox::Outbox;
use super::stream::{Packetiser, SessionError, StreamConfig};
use crate::control::{BoxedController, Feedback, IntervalSummary};
use crate::pace::{Pacer, Readiness};
use crate::session::{Endpoint, Event, Ignored, Input, Output, Wake, WakeReason};
use crate::units::{Instant, SenderClock, Span};
use crate::wire::rtcp::{self, ReceiverReport, ReportBlock, RtcpPacket};
use crate::wire::{DelayReport, NtpTime, ReportRequest, is_rtcp};

/// What a sender is made of, beside its controller.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// The stream it sends.
    pub stream: StreamConfig,
    /// Time between two requests for a report: I of Waki 2013, Sec. 5.1; at least 1 ms.
    pub report_interval: Span,
    /// When the first packet leaves; the first request follows an interval later.
    pub start: Instant<SenderClock>,
    /// Seed of the numbers that RFC 3550 wants drawn: first sequence number, timestamp, spread of compound packets.
    pub seed: u64,
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
pub struct Sender {
    packetiser: Packetiser,
    controller: BoxedController,
    pacer: Pacer<SenderClock>,
    report_interval: Span,
    start: Instant<SenderClock>,
    exchange: Exchange,
    compound: CompoundTimer<SenderClock>,
    path_load: Option<f64>,
    /// Source of the reports, once one of them proved to be an answer.
    receiver_ssrc: Option<u32>,
    handled: Instant<SenderClock>,
    ended: bool,
    outbox: Outbox,
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

    fn ask(&mut self, now: Instant<SenderClock>) -> Request {
        let request = Request { number: self.next_number, sent: now };
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
        // Two at the most: one that is due, and one that lateness of just a gap makes due at the same moment.
        for _ in 0..2 {
            if self.pacer.poll(now) != Readiness::Now {
                break;
            }
            self.packetiser.send(now, &mut self.outbox);
            if let Some(late) = self.pacer.on_departure(now, self.packetiser.config().packet_size) {
                self.outbox.event(Event::PacingReset { late });
            }
        }
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
        let number = exchange.ask(now).number;
        let info = self.packetiser.sender_info(now);
        self.outbox.control(|out| info.encode(&[], &extension, out));
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
        if self.receiver_ssrc.is_some_and(|ssrc| ssrc != report.ssrc) {
            return Err(Ignored::Foreign);
        }
        let our_ssrc = self.packetiser.config().ssrc;
        let Some(block) = report.blocks().find(|block| block.ssrc == our_ssrc) else {
            return if report.extension.is_empty() { Ok(()) } else { Err(Ignored::Foreign) };
        };
        if report.extension.is_empty() {
            // The regular report of a compound: good for foreign tools, without the statistics that control wants.
            return Ok(());
        }
        let delay = DelayReport::parse(report.extension).map_err(|_| Ignored::Malformed)?.delay;
        let request = self.exchange.answer(block.last_sr)?;
        let round_trip = now - request.sent - held(&block);
        if round_trip < -CLOCK_GRAIN {
            return Err(Ignored::Implausible);
        }
        self.receiver_ssrc = Some(report.ssrc);
        self.exchange.last_applied = Some(request.number);
        let fraction_lost = f64::from(block.fraction_lost) / 256.0;
        let round_trip = round_trip.max(Span::ZERO);
        self.outbox.event(Event::ReportApplied { number: request.number, delay, round_trip, fraction_lost });
        let summary = IntervalSummary { delay, fraction_lost, round_trip: Some(round_trip), path_load: self.path_load };
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

    fn wake(&self) -> Option<Wake<SenderClock>> {
        if self.ended {
            return None;
        }
        let report = self.compound.due().map_or(self.exchange.next_due, |due| due.min(self.exchange.next_due));
        let media = match self.pacer.poll(self.handled) {
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
