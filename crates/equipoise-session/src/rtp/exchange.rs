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

/// What the sender knows about its report requests and the receiver's reports on one path (Waki 2013, Sec. 5.1).
#[derive(Debug)]
pub(crate) struct Exchange {
    interval: Span,
    next_due: Instant<SenderClock>,
    next_number: u64,
    /// Start of the interval that the next request will state.
    interval_start: Instant<SenderClock>,
    /// The latest report requests that were sent, oldest first; at most [`Exchange::KEPT`].
    asked: VecDeque<Request>,
    /// When the last request was sent; the start of the session if no request was sent yet.
    asked_last: Instant<SenderClock>,
    /// Number and size of the media packets sent since the session began.
    media: Sent,
    /// Number of the next media packet.
    next_sequence: u64,
    last_applied: Option<u64>,
    skipped: bool,
    /// Number of unanswered requests sent while media is stopped; 0 after each answer, and while media is sent.
    backed_off: u32,
    /// Number of reports that answered no request, since a report was last applied.
    strays: u32,
    /// Whether the network reported the destination as unreachable, and no report was applied since.
    unreachable: bool,
    /// When the last report was applied; the start of the session before the first report.
    heard: Instant<SenderClock>,
    arrivals: Arrivals,
    /// The receipts with which the receiver proves that it received media packets. `None` with [`Delays::Agreed`]: the
    /// sender and the receiver then belong to one program, so the receiver needs no check.
    receipts: Option<Receipts>,
    delays: DelayReader,
    ecn: PathEcn,
    /// The receiver's synchronisation source; `None` until a report has answered a request.
    receiver_ssrc: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    number: u64,
    /// When the request was sent, and which media packets had been sent before it.
    departed: Departed,
    /// Whether the interval of the request was app-limited.
    app_limited: bool,
    /// Time since the previous request, and the rate of media packets in that time.
    interval: Span,
    ingress: Rate,
    receipt: Option<Asked>,
}

/// What a report contains for the sender.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time, on the stack")]
pub(crate) enum Told {
    /// The report contains nothing for the sender.
    Nothing,
    /// The report shows only that the receiver is alive.
    Alive,
    /// The report contains the statistics of the requested interval.
    Interval {
        /// When the request was sent.
        asked: Instant<SenderClock>,
        /// Summary of the requested interval; `None` if a clock was set during the interval.
        summary: Option<IntervalSummary>,
        proof: Proof,
        round_trip: Span,
    },
    /// The report does not come from the receiver of the media.
    Contradiction,
}

impl Exchange {
    /// Number of the latest requests for which an answer is accepted; an answer to an older request counts as stray.
    /// Our choice: enough for a round trip of 6 s and a request every 100 ms.
    const KEPT: usize = 64;
    /// Maximum number of reports that answer no request, counted since the last applied report. At this number, the
    /// sender assumes that an attacker sends guessed reports.
    const STRAYS: u32 = 64;
    /// Maximum factor by which the request interval is lengthened while media is stopped; the factor doubles with each
    /// unanswered request.
    const RAREST: i64 = 8;
    /// If the network reports the destination as unreachable and a request [is unanswered](Self::is_unanswered), the
    /// receiver counts as silent after this time without a report. Before the first measurement, the round-trip time is
    /// assumed to have this value, too.
    const UNREACHABLE: Span = Span::from_secs(1);
    /// Number of missing reports after which the rate is halved (Waki 2013, Sec. 5.1).
    pub(crate) const MISSING: u64 = 3;
    /// The shortest report interval that can be configured.
    pub(crate) const SHORTEST: Span = Span::from_millis(1);

    /// Creates the state for a session with this configuration. The first request is due one report interval after
    /// `start`.
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

    /// Returns when the next request is due.
    pub(crate) const fn due(&self) -> Instant<SenderClock> {
        self.next_due
    }

    /// Returns the receiver's synchronisation source; `None` until a report has answered a request.
    pub(crate) const fn receiver_ssrc(&self) -> Option<u32> {
        self.receiver_ssrc
    }

    /// Makes the next request due at `now` at the latest.
    pub(crate) fn hurry(&mut self, now: Instant<SenderClock>) {
        self.next_due = self.next_due.min(now);
    }

    /// Returns the ECN field with which media packets are sent.
    pub(crate) const fn ecn(&self) -> Ecn {
        self.ecn.says()
    }

    /// Whether the receiver selects the packets of an interval by its own estimate of the one-way delay (Waki 2013, Eq.
    /// 13).
    pub(crate) fn receiver_cuts(&self) -> bool {
        self.delays.receiver_cuts()
    }

    /// Restricts the present interval to packets sent from `now` on.
    pub(crate) const fn begin(&mut self, now: Instant<SenderClock>) {
        self.interval_start = now;
    }

    /// Records a media packet of `size` sent at `now`; `next_sequence` is the number of the next packet.
    pub(crate) fn on_media(&mut self, now: Instant<SenderClock>, size: Size, next_sequence: u64) {
        self.media = Sent { packets: self.media.packets + 1, size: self.media.size + size };
        self.next_sequence = next_sequence;
        if let Some(receipts) = &mut self.receipts {
            receipts.on_media((next_sequence as u16).wrapping_sub(1), NtpTime::from_instant(now));
        }
    }

    /// Records that the network reported the destination as unreachable.
    pub(crate) const fn on_unreachable(&mut self) {
        self.unreachable = true;
    }

    /// Whether at least `STRAYS` reports that answer no request have arrived since a report was last applied. The
    /// sender then assumes that these reports come from an attacker who guesses the sending time and the nonce of a
    /// request.
    pub(crate) const fn is_guessed_at(&self) -> bool {
        self.strays >= Self::STRAYS
    }

    /// Resets the count of reports that answer no request.
    pub(crate) const fn forget_strays(&mut self) {
        self.strays = 0;
    }

    /// Returns the number of packets that became known as lost since the last call. A packet that the receiver's
    /// playout buffer discarded counts as lost.
    pub(crate) const fn take_lost(&mut self) -> u64 {
        self.arrivals.take_news()
    }

    /// Makes the request that is due at `now`. Returns the request's number and extension. `limited` returns whether
    /// the application limited the rate since the previous request.
    ///
    /// While the receiver [is silent](Self::is_silent), skips every second request and returns `None` for it. While
    /// media is stopped, no request is skipped; instead the request interval grows with each unanswered request.
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

    /// Skips the request that is due at `now`, because no media was sent recently.
    pub(crate) fn rest(&mut self, now: Instant<SenderClock>) {
        self.put_off(now, self.interval);
        self.begin(now);
    }

    /// Adds `wait` to the due time of the next request. If the result is not later than `now`, the next request is due
    /// `wait` after `now`.
    fn put_off(&mut self, now: Instant<SenderClock>, wait: Span) {
        self.next_due = self.next_due + wait;
        if self.next_due <= now {
            self.next_due = now + wait;
        }
    }

    /// Whether a request that is newer than the last answered request is still unanswered after two round-trip times.
    pub(crate) fn is_unanswered(&self, now: Instant<SenderClock>) -> bool {
        let answered = self.last_applied.map_or(0, |number| number + 1);
        let first = self.asked.iter().find(|request| request.number >= answered);
        let round_trip = self.arrivals.round_trip().unwrap_or(Self::UNREACHABLE);
        first.is_some_and(|first| now - first.departed.at >= round_trip * 2)
    }

    /// Whether at least three requests were sent after the last answered request, and the first of these requests was
    /// sent at least a round-trip time plus two report intervals ago.
    fn misses_reports(&self, now: Instant<SenderClock>) -> bool {
        let answered = self.last_applied.map_or(0, |number| number + 1);
        let unanswered = self.next_number - answered;
        let first = self.asked.iter().find(|request| request.number >= answered);
        let patience = self.arrivals.round_trip().unwrap_or(Span::ZERO) + self.interval * 2;
        unanswered >= Self::MISSING && first.is_some_and(|first| now - first.departed.at >= patience)
    }

    /// Whether the receiver is silent. The receiver is silent if three reports are missing. It is also silent if one
    /// report is missing, the network reports the destination as unreachable, and no report was applied for longer than
    /// `UNREACHABLE`. The network's message alone does not count, because anyone can forge such a message.
    pub(crate) fn is_silent(&self, now: Instant<SenderClock>) -> bool {
        let is_gone = self.unreachable && self.is_unanswered(now) && now - self.heard > Self::UNREACHABLE;
        is_gone || self.misses_reports(now)
    }

    /// Returns the request that a report answers, if the report may still be applied.
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

    /// Processes a report about the media of `our_ssrc`.
    pub(crate) fn on_report(
        &mut self,
        now: Instant<SenderClock>,
        report: &ReceiverReport<'_>,
        our_ssrc: u32,
        outbox: &mut Outbox,
    ) -> Result<Told, DropReason> {
        // A restarted receiver has a new SSRC. Its reports are rejected as foreign while the old receiver may still
        // answer (see `misses_reports`).
        if self.receiver_ssrc.is_some_and(|ssrc| ssrc != report.ssrc) && !self.misses_reports(now) {
            return Err(DropReason::Foreign);
        }
        let Some(block) = report.blocks().find(|block| block.ssrc == our_ssrc) else {
            return if report.extension.is_empty() { Ok(Told::Nothing) } else { Err(DropReason::Foreign) };
        };
        if report.extension.is_empty() {
            // The report is part of a regular RTCP compound (RFC 3550, Sec. 6.2), and has no statistics for the
            // controller.
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
            // The receiver's counter has 32 bits, so this comparison works only for the first 2³² packets; after that,
            // only the sending times in the receipts reveal false reports.
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

/// Resolution of the time for which the receiver held a report back: 1/65536 s, rounded up (RFC 3550, Sec. 6.4.1).
const CLOCK_GRAIN: Span = Span::from_nanos(15_259);

/// Returns how long the receiver held the report back after the request arrived (RFC 3550, Sec. 6.4.1).
fn held(block: &ReportBlock) -> Span {
    let nanos = u64::from(block.delay_since_last_sr) * 1_000_000_000 / 65_536;
    Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}
