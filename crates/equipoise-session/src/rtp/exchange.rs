use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::delays::{DelayReader, Delays, Reading};
use super::outbox::Outbox;
use super::receipts::{Asked, Receipts};
use crate::wire::rtcp::{ReceiverReport, ReportBlock};
use crate::wire::{DelayReport, NtpTime, PlayoutReport, Receipt, ReportRequest};
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
    /// Media packets that have gone out since the session began.
    entered: Sent,
    /// The number that the next media packet has.
    next_sequence: u64,
    last_applied: Option<u64>,
    skipped: bool,
    /// Requests since the last answer while no media is sent.
    backed_off: u32,
    /// Reports in a row that answer no request.
    strays: u32,
    /// The network said that nobody is there, and no report has come since.
    unreachable: bool,
    /// When the last report was applied.
    heard: Instant<SenderClock>,
    losses: Losses,
    /// What the last report told of arrivals.
    reported: Reported,
    /// `None` where both ends are one program's.
    receipts: Option<Receipts>,
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
    /// The number that the next media packet had, and what had gone out before.
    next_sequence: u64,
    entered: Sent,
    receipt: Option<Asked>,
}

/// Packets, and their size together.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    packets: u64,
    size: Size,
}

/// What a report has told of arrivals.
#[derive(Clone, Copy, Debug)]
struct Reported {
    /// When it was asked for, what had gone out by then, and how long it took.
    asked: Instant<SenderClock>,
    entered: Sent,
    round_trip: Option<Span>,
    /// Counts up with each arrival; `None` before the first.
    arrivals: Option<u32>,
}

impl Reported {
    /// The receiver's count of arrivals. Reading: where no receipt says it, the highest number less those lost, which counts
    /// duplicates and what was lost before the first packet as arrivals (RFC 3550, App. A.3).
    fn arrivals(block: &ReportBlock, receipt: Option<&Receipt>) -> Option<u32> {
        match receipt {
            Some(receipt) => Some(receipt.arrived),
            // Before the first packet has come the receiver does not know a number.
            None => (block.extended_highest > 0)
                .then(|| block.extended_highest.wrapping_sub(block.cumulative_lost.cast_unsigned())),
        }
    }
}

/// What of the packets sent in an interval is proved to have arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Proof {
    /// Packets sent, and arrived; more than sent where some of before came late.
    pub(crate) sent: u64,
    pub(crate) arrived: u64,
    /// Their sizes.
    pub(crate) sent_size: Size,
    pub(crate) arrived_size: Size,
    /// How long it took to send them, and how long they took to arrive.
    pub(crate) sending: Span,
    pub(crate) arriving: Span,
}

impl Proof {
    /// Both, one behind the other.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            arrived: self.arrived + other.arrived,
            sent_size: self.sent_size + other.sent_size,
            arrived_size: self.arrived_size + other.arrived_size,
            sending: self.sending + other.sending,
            arriving: self.arriving + other.arriving,
        }
    }

    /// Both, beside each other on two paths, each for as long as it took on average.
    #[must_use]
    pub(crate) fn beside(self, other: Self) -> Self {
        Self {
            sending: self.sending.max(other.sending),
            arriving: self.arriving.max(other.arriving),
            ..self.and(other)
        }
    }

    /// Packets that did not arrive.
    pub(crate) const fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.arrived)
    }

    /// Share of the packets that were lost, 0 to 1.
    pub(crate) fn fraction_lost(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.lost() as f64 / self.sent as f64 }
    }

    /// Time between two packets when they were sent; zero if nothing was.
    pub(crate) fn gap(&self) -> Span {
        let packets = i64::try_from(self.sent).unwrap_or(i64::MAX);
        Span::from_nanos(self.sending.as_nanos().checked_div(packets).unwrap_or(0))
    }

    /// Rate of the arrivals; `None` if nothing was sent.
    pub(crate) fn delivered(&self) -> Option<Rate> {
        if self.sent == 0 { None } else { self.arrived_size.over(self.arriving) }
    }
}

/// How many packets are known to be lost.
#[derive(Debug, Default)]
struct Losses {
    /// Packets that have not arrived, since the session began, and the most that there were at a time: what came late was
    /// told of as lost.
    network: u64,
    most: u64,
    /// Discarded at the receiver, as its counter has it.
    discarded: u32,
    /// Of both, those that nobody was told of yet.
    news: u64,
}

impl Losses {
    /// Takes what a report says.
    fn on_report(&mut self, proof: &Proof, playout: Option<PlayoutReport>) {
        self.network = self.network.saturating_add(proof.sent).saturating_sub(proof.arrived);
        let lost = self.network.saturating_sub(self.most);
        self.most = self.most.max(self.network);
        let discarded = playout.map_or(self.discarded, |playout| playout.discarded);
        let before = core::mem::replace(&mut self.discarded, discarded);
        self.news = self.news.saturating_add(lost).saturating_add(u64::from(discarded.wrapping_sub(before)));
    }
}

/// What a report has told.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time, on the stack")]
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
        proof: Proof,
        round_trip: Span,
    },
    /// The report is not from who received the media.
    Contradiction,
}

impl Exchange {
    /// Requests that an answer is accepted for; older answers are stray. Enough for a round trip of 6 s and a report every
    /// 100 ms.
    const KEPT: usize = 64;
    /// So many stray reports in a row are no accident.
    const STRAYS: u32 = 64;
    /// While no media is sent, requests come this many times as rarely at the most, each unanswered one doubling it.
    const RAREST: i64 = 8;
    /// Where the network says that nobody is there, silence begins after this.
    const UNREACHABLE: Span = Span::from_secs(1);
    /// Reports that may be missing before the rate is halved (Waki 2013, Sec. 5.1).
    pub(crate) const MISSING: u64 = 3;
    /// The shortest report interval.
    pub(crate) const SHORTEST: Span = Span::from_millis(1);

    /// An exchange whose first request follows an interval after `start`.
    pub(crate) fn new(delays: Delays, interval: Span, start: Instant<SenderClock>, seed: u64) -> Self {
        let entered = Sent::default();
        Self {
            interval,
            next_due: start + interval,
            next_number: 0,
            interval_start: start,
            asked: VecDeque::with_capacity(Self::KEPT),
            asked_last: start,
            entered,
            next_sequence: 0,
            last_applied: None,
            skipped: false,
            backed_off: 0,
            strays: 0,
            unreachable: false,
            heard: start,
            losses: Losses::default(),
            reported: Reported { asked: start, entered, round_trip: None, arrivals: None },
            receipts: (delays != Delays::Agreed).then(|| Receipts::new(seed)),
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

    /// A media packet of `size` leaves at `now`, and the one behind it has this number.
    pub(crate) fn on_media(&mut self, now: Instant<SenderClock>, size: Size, next_sequence: u64) {
        self.entered = Sent { packets: self.entered.packets + 1, size: self.entered.size + size };
        self.next_sequence = next_sequence;
        if let Some(receipts) = &mut self.receipts {
            receipts.on_media((next_sequence as u16).wrapping_sub(1), NtpTime::from_instant(now));
        }
    }

    /// The network said that nobody is there.
    pub(crate) const fn on_unreachable(&mut self) {
        self.unreachable = true;
    }

    /// Whether so many reports in a row answered no request that somebody guesses.
    pub(crate) const fn is_guessed_at(&self) -> bool {
        self.strays >= Self::STRAYS
    }

    /// Packets that are known to be lost, on the way or at its end, since this was asked last.
    pub(crate) const fn take_lost(&mut self) -> u64 {
        core::mem::replace(&mut self.losses.news, 0)
    }

    /// A request is due at `now`: its number and extension, or `None` where the last three are unanswered and this one is
    /// skipped. `limited` says whether the application limited the interval. Where no media is sent, none is skipped, and they
    /// come the more rarely the longer no answer comes.
    pub(crate) fn turn(
        &mut self,
        now: Instant<SenderClock>,
        has_stopped: bool,
        limited: impl FnOnce() -> bool,
    ) -> Option<(u64, Vec<u8>)> {
        let wait =
            if has_stopped { self.interval * (1 << self.backed_off.min(16)).min(Self::RAREST) } else { self.interval };
        self.backed_off = if has_stopped { self.backed_off.saturating_add(1) } else { 0 };
        self.next_due = self.next_due + wait;
        if self.next_due <= now {
            self.next_due = now + wait;
        }
        self.skipped = !has_stopped && self.is_silent(now) && !self.skipped;
        if self.skipped {
            self.begin(now);
            return None;
        }
        let last = self.asked.back().map_or(Sent::default(), |last| last.entered);
        let mut before = self.asked.iter().rev().map(|request| request.next_sequence as u32);
        let before = before.next().map(|last| (before.next().unwrap_or(last), last));
        let next = self.next_sequence as u32;
        let receipt = self.receipts.as_mut().map(|receipts| receipts.ask(before.unwrap_or((next, next)), next));
        let extension = ReportRequest {
            interval_start: NtpTime::from_instant(self.interval_start).middle(),
            receipt: receipt.map(|asked| asked.request),
        };
        let interval = now - core::mem::replace(&mut self.asked_last, now);
        let request = Request {
            number: self.next_number,
            sent: now,
            app_limited: limited(),
            interval,
            ingress: (self.entered.size - last.size).over(interval).unwrap_or(Rate::ZERO),
            next_sequence: self.next_sequence,
            entered: self.entered,
            receipt,
        };
        self.next_number += 1;
        if self.asked.len() >= Self::KEPT {
            self.asked.pop_front();
        }
        self.asked.push_back(request);
        self.begin(now);
        Some((request.number, extension.to_bytes()))
    }

    /// Whether a request has had the time for an answer, and none came.
    pub(crate) fn is_unanswered(&self, now: Instant<SenderClock>) -> bool {
        let answered = self.last_applied.map_or(0, |number| number + 1);
        let first = self.asked.iter().find(|request| request.number >= answered);
        let round_trip = self.reported.round_trip.unwrap_or(Self::UNREACHABLE);
        first.is_some_and(|first| now - first.sent >= round_trip * 2)
    }

    /// Whether the last three requests are all unanswered, and a round trip has passed besides; or nobody is there to answer.
    pub(crate) fn is_silent(&self, now: Instant<SenderClock>) -> bool {
        let answered = self.last_applied.map_or(0, |number| number + 1);
        let unanswered = self.next_number - answered;
        let first = self.asked.iter().find(|request| request.number >= answered).map_or(now, |request| request.sent);
        let patience = self.reported.round_trip.unwrap_or(Span::ZERO) + self.interval * 2;
        (unanswered >= Self::MISSING && now - first >= patience)
            || (self.unreachable && now - self.heard > Self::UNREACHABLE)
    }

    /// The request that a report answers, if it may still be applied.
    fn answered(&self, last_sr: u32, nonce: Option<u32>) -> Result<Request, DropReason> {
        let is_asked = |request: &&Request| NtpTime::from_instant(request.sent).middle() == last_sr;
        let request = self
            .asked
            .iter()
            .rev()
            .find(is_asked)
            .copied()
            .filter(|request| request.receipt.map(|asked| asked.request.nonce) == nonce);
        let request = request.ok_or(DropReason::Stray)?;
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
        if self.receiver_ssrc.is_some_and(|ssrc| ssrc != report.ssrc) && !self.is_silent(now) {
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
        let request =
            self.answered(block.last_sr, said.receipt.map(|receipt| receipt.nonce)).inspect_err(|reason| {
                self.strays = self.strays.saturating_add(u32::from(*reason == DropReason::Stray));
            })?;
        let round_trip = now - request.sent - held(&block);
        if round_trip < -CLOCK_GRAIN {
            return Err(DropReason::Implausible);
        }
        let round_trip = round_trip.max(Span::ZERO);
        let proof = self.prove(&request, &block, said.receipt.as_ref(), round_trip)?;
        self.receiver_ssrc = Some(report.ssrc);
        self.last_applied = Some(request.number);
        (self.heard, self.strays, self.backed_off, self.unreachable) = (now, 0, 0, false);
        self.next_due = self.next_due.min(now + self.interval);
        let fraction_lost = proof.fraction_lost();
        if let (Some(receipts), Some(asked), Some(receipt)) = (&mut self.receipts, request.receipt, said.receipt)
            && receipts.read(&asked, &receipt, fraction_lost).is_err()
        {
            return Ok(Told::Contradiction);
        }
        let reading = self.delays.read(now, &said, round_trip, &mut |event| outbox.event(event));
        let delay = if let Reading::Delay(delay) = reading { delay } else { None };
        self.losses.on_report(&proof, said.playout);
        let (number, lost) = (request.number, self.losses.network);
        outbox.event(Event::ReportApplied { number, delay, round_trip, fraction_lost, lost });
        let summary = matches!(reading, Reading::Delay(_)).then(|| {
            let mut summary = IntervalSummary::unmeasured();
            summary.delay = delay;
            summary.fraction_lost = Some(fraction_lost);
            summary.packets = Some(proof.sent);
            summary.delivered = proof.delivered();
            summary.round_trip = Some(round_trip);
            summary.bottleneck = said.bottleneck;
            summary.app_limited = request.app_limited;
            summary.playout = said.playout.map(|playout| PlayoutSummary {
                interval: request.interval,
                ingress: request.ingress,
                arrival: playout.arrival,
                service: playout.service,
                occupancy: u64::from(playout.occupancy),
            });
            summary
        });
        Ok(Told::Interval { asked: request.sent, summary, proof, round_trip })
    }

    /// What of the packets sent since the request that was answered last has arrived.
    ///
    /// # Errors
    /// [`DropReason::Implausible`] where more is said to have arrived than had been sent.
    fn prove(
        &mut self,
        request: &Request,
        block: &ReportBlock,
        receipt: Option<&Receipt>,
        round_trip: Span,
    ) -> Result<Proof, DropReason> {
        let before = self.reported;
        let count = Reported::arrivals(block, receipt);
        if receipt.is_some_and(|receipt| u64::from(receipt.arrived) > self.entered.packets) {
            // Its counter and ours are of the same length only in the first 2³² packets; from then on receipts tell.
            return Err(DropReason::Implausible);
        }
        let (sent, sent_size) =
            (request.entered.packets - before.entered.packets, request.entered.size - before.entered.size);
        let arrived = match (before.arrivals, count, receipt) {
            (_, None, _) => 0,
            (Some(before), Some(now), _) => now.wrapping_sub(before),
            (None, Some(_), Some(receipt)) => receipt.arrived,
            (None, Some(_), None) => (sent as u32).saturating_sub(missing(request, block)),
        };
        // No more than what has not arrived yet; and a count that goes back, as duplicates let it, is none.
        let arrived = u64::from(if arrived.cast_signed() < 0 { 0 } else { arrived }).min(sent + self.losses.network);
        let sending = request.sent - before.asked;
        let stretched = before.round_trip.map_or(Span::ZERO, |before| round_trip - before);
        self.reported = Reported {
            asked: request.sent,
            entered: request.entered,
            round_trip: Some(round_trip),
            arrivals: count.or(before.arrivals),
        };
        let share = if sent == 0 { 0.0 } else { arrived as f64 / sent as f64 };
        Ok(Proof {
            sent,
            arrived,
            sent_size,
            arrived_size: Size::from_bytes((sent_size.as_bytes() as f64 * share) as u64),
            sending,
            // A round trip that became longer did so on the way there, as far as is known: arrivals took longer than sending.
            arriving: (sending + stretched).max(Span::from_nanos(sending.as_nanos() / 4)),
        })
    }
}

/// Packets that left before a request and have not come, by the first block that tells of any: those behind the highest, and
/// those lost before it.
fn missing(request: &Request, block: &ReportBlock) -> u32 {
    let behind = (request.next_sequence as u32).wrapping_sub(block.extended_highest).wrapping_sub(1);
    // A number ahead of the request's is one that overtook it.
    let behind = if behind.cast_signed() > 0 { behind } else { 0 };
    behind.saturating_add(block.cumulative_lost.max(0).cast_unsigned())
}

/// Resolution of the time that a report was held: 1/65536 s, rounded up (RFC 3550, Sec. 6.4.1).
const CLOCK_GRAIN: Span = Span::from_nanos(15_259);

/// How long the receiver held the report back (RFC 3550, Sec. 6.4.1).
fn held(block: &ReportBlock) -> Span {
    let nanos = u64::from(block.delay_since_last_sr) * 1_000_000_000 / 65_536;
    Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
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
