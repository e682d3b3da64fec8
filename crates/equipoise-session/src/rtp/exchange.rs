use alloc::collections::VecDeque;

use super::delays::{DelayReader, Delays, Reading};
use super::outbox::Outbox;
use crate::wire::rtcp::{ReceiverReport, ReportBlock};
use crate::wire::{DelayReport, NtpTime, PlayoutReport, ReportRequest};
use crate::{DropReason, Event};
use equipoise::control::IntervalSummary;
use equipoise::measure::PlayoutSummary;
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};

/// One path's exchange of requests and reports, as its sending end sees it (Waki 2013, Sec. 5.1).
#[derive(Debug)]
pub(crate) struct Exchange {
    interval: Span,
    next_due: Instant<SenderClock>,
    next_number: u64,
    /// What the next request will carry: the beginning of the interval it asks about.
    interval_start: Instant<SenderClock>,
    /// The latest requests, oldest first; at most [`Exchange::KEPT`].
    asked: VecDeque<Request>,
    /// When the last of them was sent, or the session began.
    asked_last: Instant<SenderClock>,
    /// Media packets that have gone out since.
    entered: Size,
    /// The number that the next media packet has.
    next_sequence: u64,
    last_applied: Option<u64>,
    skipped: bool,
    losses: Losses,
    /// The highest number that a report has told of.
    reported_highest: Option<u32>,
    delays: DelayReader,
    /// Source of the reports, once one of them proved to be an answer.
    receiver_ssrc: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    number: u64,
    sent: Instant<SenderClock>,
    /// The application limited the interval that it asks about.
    app_limited: bool,
    /// Time since the request before it, and the rate at which media packets went out meanwhile.
    interval: Span,
    ingress: Rate,
    /// The number that the next media packet had.
    next_sequence: u64,
}

/// How many packets are known to be lost.
#[derive(Debug, Default)]
struct Losses {
    /// Lost on the way.
    network: u64,
    /// Discarded at the receiver, as its counter has it.
    discarded: u32,
    /// Of both, those that nobody was told of yet.
    news: u64,
}

impl Losses {
    /// Takes what a report says.
    ///
    /// Media packets that went out before the request have come before it, or will not come; more than that only
    /// reordering would tell.
    fn on_report(&mut self, request: &Request, block: &ReportBlock, playout: Option<PlayoutReport>) {
        // Before the first packet has come the receiver does not know a number.
        let highest = (block.extended_highest > 0).then_some(block.extended_highest);
        let behind = highest.map_or(0, |highest| (request.next_sequence as u32).wrapping_sub(highest).wrapping_sub(1));
        // A number ahead of the request's is one that overtook it.
        let behind = if behind.cast_signed() > 0 { i64::from(behind) } else { 0 };
        let lost = u64::try_from(behind + i64::from(block.cumulative_lost)).unwrap_or(0);
        let network = lost.saturating_sub(self.network);
        self.network = self.network.max(lost);
        let discarded = playout.map_or(self.discarded, |playout| playout.discarded);
        let before = core::mem::replace(&mut self.discarded, discarded);
        self.news = self.news.saturating_add(network).saturating_add(u64::from(discarded.wrapping_sub(before)));
    }
}

/// What a report has told.
#[derive(Debug)]
pub(crate) enum Told {
    /// Nothing.
    Nothing,
    /// The receiver lives.
    Alive,
    /// The receiver lives, and this is the interval that it was asked about.
    Interval {
        /// When it was asked.
        asked: Instant<SenderClock>,
        /// `None` where a clock was set in the middle of it.
        summary: Option<IntervalSummary>,
    },
}

impl Exchange {
    /// Requests that an answer is accepted for; older answers are stray.
    const KEPT: usize = 8;
    /// Reports that may be missing before the rate is halved (Waki 2013, Sec. 5.1).
    pub(crate) const MISSING: u64 = 3;
    /// The shortest report interval.
    pub(crate) const SHORTEST: Span = Span::from_millis(1);

    /// An exchange whose first request follows an interval after `start`.
    pub(crate) fn new(delays: Delays, interval: Span, start: Instant<SenderClock>) -> Self {
        Self {
            interval,
            next_due: start + interval,
            next_number: 0,
            interval_start: start,
            asked: VecDeque::with_capacity(Self::KEPT),
            asked_last: start,
            entered: Size::ZERO,
            next_sequence: 0,
            last_applied: None,
            skipped: false,
            losses: Losses::default(),
            reported_highest: None,
            delays: DelayReader::new(delays),
            receiver_ssrc: None,
        }
    }

    /// When the next request is due.
    pub(crate) const fn due(&self) -> Instant<SenderClock> {
        self.next_due
    }

    /// Source of the reports, once one of them proved to be an answer.
    pub(crate) const fn receiver_ssrc(&self) -> Option<u32> {
        self.receiver_ssrc
    }

    /// Whether the receiver cuts the interval by its own knowledge of the way (Waki 2013, Eq. 13).
    pub(crate) fn receiver_cuts(&self) -> bool {
        self.delays.receiver_cuts()
    }

    /// Only what is sent from `now` on counts in the interval.
    pub(crate) const fn begin(&mut self, now: Instant<SenderClock>) {
        self.interval_start = now;
    }

    /// A media packet of `size` leaves, and the one behind it has this number.
    pub(crate) fn on_media(&mut self, size: Size, next_sequence: u64) {
        (self.entered, self.next_sequence) = (self.entered + size, next_sequence);
    }

    /// Packets that are known to be lost, on the way or at its end, since this was asked last.
    pub(crate) const fn take_lost(&mut self) -> u64 {
        core::mem::replace(&mut self.losses.news, 0)
    }

    /// A request is due at `now`: its number and extension, or `None` where the last three are unanswered and this one is
    /// skipped. `limited` says whether the application limited the interval.
    pub(crate) fn turn(&mut self, now: Instant<SenderClock>, limited: impl FnOnce() -> bool) -> Option<(u64, [u8; 8])> {
        self.next_due = self.next_due + self.interval;
        if self.next_due <= now {
            self.next_due = now + self.interval;
        }
        self.skipped = self.is_silent() && !self.skipped;
        if self.skipped {
            self.begin(now);
            return None;
        }
        let extension =
            ReportRequest { interval_start: NtpTime::from_instant(self.interval_start).middle() }.to_bytes();
        let interval = now - core::mem::replace(&mut self.asked_last, now);
        let entered = core::mem::take(&mut self.entered).as_bits() as f64 / interval.as_secs_f64();
        let request = Request {
            number: self.next_number,
            sent: now,
            app_limited: limited(),
            interval,
            ingress: Rate::from_bps_f64(entered).filter(|_| interval > Span::ZERO).unwrap_or(Rate::ZERO),
            next_sequence: self.next_sequence,
        };
        self.next_number += 1;
        if self.asked.len() >= Self::KEPT {
            self.asked.pop_front();
        }
        self.asked.push_back(request);
        self.begin(now);
        Some((request.number, extension))
    }

    /// Whether the last three requests are all unanswered.
    fn is_silent(&self) -> bool {
        let answered = self.last_applied.map_or(0, |number| number + 1);
        self.next_number - answered >= Self::MISSING
    }

    /// The request that a report answers, if it may still be applied.
    fn answered(&self, last_sr: u32) -> Result<Request, DropReason> {
        let is_asked = |request: &&Request| NtpTime::from_instant(request.sent).middle() == last_sr;
        let request = self.asked.iter().rev().find(is_asked).copied().ok_or(DropReason::Stray)?;
        match self.last_applied {
            Some(applied) if request.number == applied => Err(DropReason::Duplicate),
            Some(applied) if request.number < applied => Err(DropReason::Late),
            _ => Ok(request),
        }
    }

    /// A report came that speaks of the media of `our_ssrc`, or ought to.
    pub(crate) fn on_report(
        &mut self,
        now: Instant<SenderClock>,
        report: &ReceiverReport<'_>,
        our_ssrc: u32,
        outbox: &mut Outbox,
    ) -> Result<Told, DropReason> {
        // A receiver that was started anew has another source; while the old one speaks, it is a stranger.
        if self.receiver_ssrc.is_some_and(|ssrc| ssrc != report.ssrc) && !self.is_silent() {
            return Err(DropReason::Foreign);
        }
        let Some(block) = report.blocks().find(|block| block.ssrc == our_ssrc) else {
            return if report.extension.is_empty() { Ok(Told::Nothing) } else { Err(DropReason::Foreign) };
        };
        if report.extension.is_empty() {
            // The regular report of a compound: good for foreign tools, without the statistics that control wants.
            return Ok(if self.receiver_ssrc.is_some() { Told::Alive } else { Told::Nothing });
        }
        let said = DelayReport::parse(report.extension).map_err(|_| DropReason::Malformed)?;
        let request = self.answered(block.last_sr)?;
        let round_trip = now - request.sent - held(&block);
        if round_trip < -CLOCK_GRAIN {
            return Err(DropReason::Implausible);
        }
        self.receiver_ssrc = Some(report.ssrc);
        self.last_applied = Some(request.number);
        let fraction_lost = f64::from(block.fraction_lost) / 256.0;
        let round_trip = round_trip.max(Span::ZERO);
        let reading = self.delays.read(now, &said, round_trip, &mut |event| outbox.event(event));
        let delay = if let Reading::Delay(delay) = reading { delay } else { None };
        let (number, lost) = (request.number, block.cumulative_lost);
        outbox.event(Event::ReportApplied { number, delay, round_trip, fraction_lost, lost });
        self.losses.on_report(&request, &block, said.playout);
        let playout = said.playout.map(|playout| PlayoutSummary {
            interval: request.interval,
            ingress: request.ingress,
            arrival: playout.arrival,
            service: playout.service,
            occupancy: u64::from(playout.occupancy),
        });
        let highest = self.reported_highest.replace(block.extended_highest).unwrap_or(block.extended_highest);
        let summary = match reading {
            Reading::Delay(delay) => {
                let mut summary = IntervalSummary::unmeasured();
                summary.delay = delay;
                summary.fraction_lost = Some(fraction_lost);
                summary.packets = Some(u64::from(block.extended_highest.saturating_sub(highest)));
                summary.round_trip = Some(round_trip);
                summary.bottleneck = said.bottleneck;
                summary.app_limited = request.app_limited;
                summary.playout = playout;
                Some(summary)
            }
            Reading::Spoilt => None,
        };
        Ok(Told::Interval { asked: request.sent, summary })
    }
}

/// Resolution of the time that a report was held: 1/65536 s, rounded up (RFC 3550, Sec. 6.4.1).
const CLOCK_GRAIN: Span = Span::from_nanos(15_259);

/// How long the receiver held the report back (RFC 3550, Sec. 6.4.1).
fn held(block: &ReportBlock) -> Span {
    let nanos = u64::from(block.delay_since_last_sr) * 1_000_000_000 / 65_536;
    Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}

/// Stops the media of a session that hears nothing any more (RFC 8083, Sec. 4).
#[derive(Debug)]
pub(crate) struct CircuitBreaker {
    limit: Span,
    /// When the receiver was last heard of, or the session began; `None` while the circuit is broken.
    heard: Option<Instant<SenderClock>>,
}

impl CircuitBreaker {
    /// Seconds without a report after which no media is sent: three of the regular intervals of RTCP, 5 s each
    /// (RFC 8083, Sec. 4; RFC 3550, Sec. 6.2).
    pub(crate) const SECONDS: i64 = 15;

    pub(crate) fn new(report_interval: Span, start: Instant<SenderClock>) -> Self {
        Self { limit: Span::from_secs(Self::SECONDS).max(report_interval * 3), heard: Some(start) }
    }

    pub(crate) const fn is_broken(&self) -> bool {
        self.heard.is_none()
    }

    /// Breaks, where it is time to.
    pub(crate) fn check(&mut self, now: Instant<SenderClock>, outbox: &mut Outbox) {
        if self.heard.is_some_and(|heard| now - heard > self.limit) {
            self.heard = None;
            outbox.event(Event::CircuitBroken);
        }
    }

    /// The receiver lives. Gives whether the circuit was broken: then media may go on.
    pub(crate) fn on_heard(&mut self, now: Instant<SenderClock>, outbox: &mut Outbox) -> bool {
        let was_broken = self.heard.replace(now).is_none();
        if was_broken {
            outbox.event(Event::CircuitClosed);
        }
        was_broken
    }
}

/// Whether the application uses its rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Application {
    /// From when on the pacer waits for the application; may lie ahead.
    waits_since: Option<Instant<SenderClock>>,
    /// How long it has waited in this interval.
    waited: Span,
}

impl Application {
    /// A pacer that waits for a larger part of an interval than one in so many is one that the application does not fill.
    /// Ours: encoders keep to a rate within some percent.
    const LIMITED: i64 = 10;

    /// The pacer has nothing to send from then on.
    pub(crate) fn waits(&mut self, from: Instant<SenderClock>) {
        self.waits_since.get_or_insert(from);
    }

    /// The pacer has something to send from `now` on. Gives whether it had not before.
    pub(crate) fn goes_on(&mut self, now: Instant<SenderClock>) -> bool {
        let since = self.waits_since.take();
        if let Some(since) = since {
            self.waited = self.waited + (now - since).max(Span::ZERO);
        }
        since.is_some()
    }

    /// Whether the interval of this length, which ends at `now`, was limited by the application.
    pub(crate) fn ends(&mut self, now: Instant<SenderClock>, interval: Span) -> bool {
        if let Some(since) = self.waits_since {
            self.goes_on(now);
            self.waits(since.max(now));
        }
        let waited = core::mem::take(&mut self.waited);
        waited * Self::LIMITED > interval
    }
}
