use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::SenderConfig;
use super::delays::{DelayReader, Delays, Reading};
use super::ecn::PathEcn;
use super::outbox::Outbox;
use super::proof::{Arrivals, Departed, Proof, Sent};
use super::receipts::{Asked, Receipts};
use crate::wire::rtcp::{ReceiverReport, ReportBlock};
use crate::wire::{DelayReport, NtpTime, ReportRequest};
use crate::{DropReason, Ecn, Event};
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
    /// What has gone out since the session began.
    media: Sent,
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
    arrivals: Arrivals,
    /// `None` where both ends are one program's.
    receipts: Option<Receipts>,
    delays: DelayReader,
    ecn: PathEcn,
    /// Source of the reports, once one of them proved to be an answer.
    receiver_ssrc: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    number: u64,
    /// When it was sent, and what had gone out before.
    departed: Departed,
    /// The application limited the interval that it asks about.
    app_limited: bool,
    /// Time since the request before it, and the rate at which media packets went out meanwhile.
    interval: Span,
    ingress: Rate,
    receipt: Option<Asked>,
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

    /// An exchange of a session of this configuration, whose first request follows an interval after `start`.
    pub(crate) fn new(config: &SenderConfig, start: Instant<SenderClock>, seed: u64) -> Self {
        let SenderConfig { delays, report_interval: interval, ecn, .. } = *config;
        Self {
            interval,
            next_due: start + interval,
            next_number: 0,
            interval_start: start,
            asked: VecDeque::with_capacity(Self::KEPT),
            asked_last: start,
            media: Sent::default(),
            next_sequence: 0,
            last_applied: None,
            skipped: false,
            backed_off: 0,
            strays: 0,
            unreachable: false,
            heard: start,
            arrivals: Arrivals::new(start),
            receipts: (delays != Delays::Agreed).then(|| Receipts::new(seed)),
            delays: DelayReader::new(delays),
            ecn: PathEcn::new(ecn),
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

    /// A request is due at `now`, whenever the next one was.
    pub(crate) fn hurry(&mut self, now: Instant<SenderClock>) {
        self.next_due = self.next_due.min(now);
    }

    /// What media packets say of congestion.
    pub(crate) const fn ecn(&self) -> Ecn {
        self.ecn.says()
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
        self.media = Sent { packets: self.media.packets + 1, size: self.media.size + size };
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
        self.arrivals.take_news()
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
        self.put_off(now, wait);
        self.skipped = !has_stopped && self.is_silent(now) && !self.skipped;
        if self.skipped {
            self.begin(now);
            return None;
        }
        let last = self.asked.back().map_or(Sent::default(), |last| last.departed.media);
        let mut before = self.asked.iter().rev().map(|request| request.departed.next_sequence as u32);
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
            departed: Departed { at: now, media: self.media, next_sequence: self.next_sequence },
            app_limited: limited(),
            interval,
            ingress: (self.media.size - last.size).over(interval).unwrap_or(Rate::ZERO),
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

    /// Nothing is asked at `now`, as nothing left for a while.
    pub(crate) fn rest(&mut self, now: Instant<SenderClock>) {
        self.put_off(now, self.interval);
        self.begin(now);
    }

    /// The next request is due after this wait.
    fn put_off(&mut self, now: Instant<SenderClock>, wait: Span) {
        self.next_due = self.next_due + wait;
        if self.next_due <= now {
            self.next_due = now + wait;
        }
    }

    /// Whether a request has had the time for an answer, and none came.
    pub(crate) fn is_unanswered(&self, now: Instant<SenderClock>) -> bool {
        let answered = self.last_applied.map_or(0, |number| number + 1);
        let first = self.asked.iter().find(|request| request.number >= answered);
        let round_trip = self.arrivals.round_trip().unwrap_or(Self::UNREACHABLE);
        first.is_some_and(|first| now - first.departed.at >= round_trip * 2)
    }

    /// Whether the last three requests are all unanswered, and a round trip has passed besides.
    fn misses_reports(&self, now: Instant<SenderClock>) -> bool {
        let answered = self.last_applied.map_or(0, |number| number + 1);
        let unanswered = self.next_number - answered;
        let first = self.asked.iter().find(|request| request.number >= answered);
        let patience = self.arrivals.round_trip().unwrap_or(Span::ZERO) + self.interval * 2;
        unanswered >= Self::MISSING && first.is_some_and(|first| now - first.departed.at >= patience)
    }

    /// Whether three reports are missing; or one is, and the network says that nobody is there to answer. Its word alone is
    /// nothing: anybody can forge it.
    pub(crate) fn is_silent(&self, now: Instant<SenderClock>) -> bool {
        let is_gone = self.unreachable && self.is_unanswered(now) && now - self.heard > Self::UNREACHABLE;
        is_gone || self.misses_reports(now)
    }

    /// The request that a report answers, if it may still be applied.
    fn answered(&self, last_sr: u32, nonce: Option<u32>) -> Result<Request, DropReason> {
        let is_asked = |request: &&Request| NtpTime::from_instant(request.departed.at).middle() == last_sr;
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
        if self.receiver_ssrc.is_some_and(|ssrc| ssrc != report.ssrc) && !self.misses_reports(now) {
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
        let round_trip = now - request.departed.at - held(&block);
        if round_trip < -CLOCK_GRAIN {
            return Err(DropReason::Implausible);
        }
        let round_trip = round_trip.max(Span::ZERO);
        if said.receipt.is_some_and(|receipt| u64::from(receipt.arrived) > self.media.packets) {
            // Its counter and ours are of the same length only in the first 2³² packets; from then on receipts tell.
            return Err(DropReason::Implausible);
        }
        let proof = self.arrivals.prove(request.departed, &block, said.receipt.as_ref(), round_trip);
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
        if let Some(playout) = said.playout {
            self.arrivals.on_discarded(playout.discarded);
        }
        let fraction_marked = self.ecn.on_report(said.marks, &proof);
        if let Some(packets) = self.ecn.take_failure() {
            outbox.event(Event::EcnFailed { packets });
        }
        let (number, lost) = (request.number, self.arrivals.lost());
        outbox.event(Event::ReportApplied { number, delay, round_trip, fraction_lost, fraction_marked, lost });
        let summary = matches!(reading, Reading::Delay(_)).then(|| {
            let mut summary = IntervalSummary::unmeasured();
            summary.delay = delay;
            summary.fraction_lost = Some(fraction_lost);
            summary.fraction_marked = fraction_marked;
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
        Ok(Told::Interval { asked: request.departed.at, summary, proof, round_trip })
    }
}

/// Resolution of the time that a report was held: 1/65536 s, rounded up (RFC 3550, Sec. 6.4.1).
const CLOCK_GRAIN: Span = Span::from_nanos(15_259);

/// How long the receiver held the report back (RFC 3550, Sec. 6.4.1).
fn held(block: &ReportBlock) -> Span {
    let nanos = u64::from(block.delay_since_last_sr) * 1_000_000_000 / 65_536;
    Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}
