use super::receipts::Stamps;
use super::stream::StreamConfig;
use crate::wire::MarkReport;
use crate::wire::rtcp::{ReportBlock, SenderReport};
use crate::wire::{DelayOrigin, DelayReport, NtpTime, Receipt, ReceiptRequest, ReportRequest};
use crate::{DropReason, Ecn};
use equipoise::measure::{
    Arrival, ClockMap, DelayMeter, DelaySummary, InterarrivalJitter, LossInterval, PacketPairs, SequenceTracker,
};
use equipoise::units::{Instant, ReceiverClock, SenderClock, Size, Span};

/// What a receiver knows about the relation between the sender's clock and the receiver's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// The relation of the clocks is known, so reports contain one-way delays.
    Known(ClockMap),
    /// The relation of the clocks is unknown. In reports, a delay is the arrival time on the receiver's clock, minus
    /// the sending time on the sender's clock, minus an origin that the report contains.
    Apart,
}

/// The relation of the sender's and the receiver's clock. If it is not known, the receiver assumes that the one-way
/// delay of the first packet is zero.
#[derive(Debug)]
pub(crate) struct Timeline {
    clocks: Clocks,
    map: Option<ClockMap>,
    /// The delay of the last packet, if that delay was implausible.
    astray: Option<Span>,
}

/// When a packet was sent, according to its timestamp, and its one-way delay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed {
    pub(crate) sent: Instant<SenderClock>,
    pub(crate) delay: Span,
    /// Whether a clock was set. If so, earlier measurements are invalid.
    pub(crate) anew: bool,
}

/// Maximum plausible one-way delay. If a delay is longer, a clock is wrong. The maximum is below 128 s, because a
/// report cannot express more than ±128 s.
const PLAUSIBLE_DELAY: Span = Span::from_secs(100);
/// If the implausible delays of two packets differ by less than this, the same step of a clock caused both.
const SAME_STEP: Span = Span::from_secs(1);

impl Timeline {
    pub(crate) const fn new(clocks: Clocks) -> Self {
        let map = if let Clocks::Known(map) = clocks { Some(map) } else { None };
        Self { clocks, map, astray: None }
    }

    /// Computes the timing of a packet that arrived at `now` with the sending time `ntp`.
    pub(crate) fn time(&mut self, now: Instant<ReceiverClock>, ntp: NtpTime) -> Result<Timed, DropReason> {
        let shown = now.assume_clock() - ntp.to_instant_near(now.assume_clock());
        let map = *self.map.get_or_insert(ClockMap::receiver_ahead(shown));
        let sent = ntp.to_instant_near(map.to_sender(now));
        let delay = map.one_way_delay(sent, now);
        if delay.abs() <= PLAUSIBLE_DELAY {
            self.astray = None;
            return Ok(Timed { sent, delay, anew: false });
        }
        let agrees = self.astray.replace(delay).is_some_and(|last| (delay - last).abs() < SAME_STEP);
        if agrees && self.clocks == Clocks::Apart {
            // Two consecutive packets have nearly the same implausible delay. Therefore, a clock was set.
            self.map = Some(ClockMap::receiver_ahead(shown));
            self.astray = None;
            return Ok(Timed { sent: ntp.to_instant_near(now.assume_clock()), delay: Span::ZERO, anew: true });
        }
        Err(DropReason::Implausible)
    }

    /// Returns the origin of reported delays; `None` if the relation of the clocks is known.
    fn origin(&self, least: Option<Span>) -> Option<DelayOrigin> {
        let origin = self.map.filter(|_| self.clocks == Clocks::Apart)?.ahead();
        Some(DelayOrigin { origin, least })
    }
}

/// A receiver's measurements on one path's packets, and its answers to requests.
#[derive(Debug)]
pub(crate) struct Reception {
    tracker: Option<SequenceTracker>,
    delays: DelayMeter,
    jitter: InterarrivalJitter,
    pairs: PacketPairs,
    /// Number of packets that arrived, each counted once, modulo 2³².
    arrived: u32,
    marks: MarkReport,
    stamps: Stamps,
    /// When the newest sender report was sent, and when it arrived.
    last_sr: Option<SrTimes>,
    /// When the newest sender report that contains a request was sent, and when it arrived.
    last_request: Option<SrTimes>,
}

#[derive(Clone, Copy, Debug)]
struct SrTimes {
    ntp: NtpTime,
    sent: Instant<SenderClock>,
    arrived: Instant<ReceiverClock>,
    way: Span,
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) block: ReportBlock,
    pub(crate) report: DelayReport,
}

/// Which packets an answer covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Packets sent after the sender's current rate took effect. The receiver estimates this time from the one-way
    /// delay (Waki 2013, Eq. 13, 14).
    ByWay,
    /// Packets sent after the time that the request states. The sender chooses this time, because only the sender knows
    /// when its rate took effect.
    AsAsked,
}

impl Reception {
    pub(crate) fn new() -> Self {
        let (delays, jitter, pairs) = (DelayMeter::new(), InterarrivalJitter::default(), PacketPairs::new());
        Self {
            tracker: None,
            delays,
            jitter,
            pairs,
            arrived: 0,
            marks: MarkReport::default(),
            stamps: Stamps::new(),
            last_sr: None,
            last_request: None,
        }
    }

    /// Counts a media packet with number `sequence` that was sent at `sent`. Returns the packet's number, extended
    /// beyond 16 bits. Also returns false if the sender restarted with other numbers, and true otherwise.
    pub(crate) fn count(&mut self, sequence: u16, sent: Instant<SenderClock>) -> Result<(u64, bool), DropReason> {
        let Some(tracker) = &mut self.tracker else {
            let tracker = self.tracker.insert(SequenceTracker::new(sequence, sent));
            return Ok((tracker.highest(), true));
        };
        match tracker.push(sequence, sent) {
            Arrival::New(sequence) => Ok((sequence, true)),
            Arrival::Restarted(sequence) => Ok((sequence, false)),
            Arrival::Duplicate => Err(DropReason::Duplicate),
        }
    }

    /// Measures the first copy of packet `sequence`. It was sent at `sent`, carries this time as `ntp`, and arrived
    /// after `delay`.
    pub(crate) fn measure(&mut self, sequence: u16, ntp: NtpTime, (sent, delay): (Instant<SenderClock>, Span)) {
        self.arrived = self.arrived.wrapping_add(1);
        self.stamps.keep(sequence, ntp);
        self.delays.push(sent, delay);
        self.jitter.push(delay);
    }

    /// Counts the ECN field of the first copy of a packet.
    pub(crate) const fn count_mark(&mut self, ecn: Ecn) {
        let MarkReport { capable, marked } = &mut self.marks;
        match ecn {
            Ecn::NotCapable => {}
            Ecn::Ect0 | Ecn::Ect1 => *capable = capable.wrapping_add(1),
            Ecn::Marked => (*capable, *marked) = (capable.wrapping_add(1), marked.wrapping_add(1)),
        }
    }

    /// Records that packet `sequence` of `size` arrived at `now`. The packet may be one of a packet pair.
    pub(crate) fn pair_up(
        &mut self,
        sequence: u64,
        sent: Instant<SenderClock>,
        now: Instant<ReceiverClock>,
        size: Size,
    ) {
        self.pairs.push(sequence, sent, now, size);
    }

    /// Removes the measured delays, because a clock was set.
    pub(crate) fn forget(&mut self) {
        self.delays.clear();
    }

    /// Returns the number of packets that arrived, each counted once, modulo 2³².
    pub(crate) const fn arrived(&self) -> u32 {
        self.arrived
    }

    /// Whether a sender report has arrived.
    pub(crate) const fn has_report(&self) -> bool {
        self.last_sr.is_some()
    }

    /// Processes a sender report with the timing `timed`. If the report contains a request, returns the answer.
    pub(crate) fn on_sender_report(
        &mut self,
        now: Instant<ReceiverClock>,
        report: &SenderReport<'_>,
        timed: Timed,
        (timeline, cut): (&Timeline, Cut),
    ) -> Result<Option<Answer>, DropReason> {
        if let Some(last) = &self.last_sr {
            if last.ntp == report.ntp {
                // A sender report with a request is a duplicate if it has the time of the last sender report. It must
                // not be answered again. A sender report without a request may have that time.
                return if report.extension.is_empty() { Ok(None) } else { Err(DropReason::Duplicate) };
            }
            if timed.sent < last.sent {
                return Err(DropReason::Late);
            }
        }
        let times = SrTimes { ntp: report.ntp, sent: timed.sent, arrived: now, way: timed.delay };
        self.last_sr = Some(times);
        if report.extension.is_empty() {
            return Ok(None);
        }
        let request = ReportRequest::parse(report.extension).map_err(|_| DropReason::Malformed)?;
        if let (Some(tracker), Some(asked)) = (&mut self.tracker, request.receipt) {
            tracker.align(asked.number);
        }
        let (delay, least) = self.interval(request, times, cut);
        // The interval of the next request starts at this request or later. Therefore delays from before this request
        // are no longer needed.
        self.delays.forget_until(times.sent);
        self.last_request = Some(times);
        let loss = self.tracker.as_mut().map(SequenceTracker::report);
        let block = self.block(report.ssrc, times.arrived, loss);
        Ok(Some(Answer {
            block,
            report: DelayReport {
                delay,
                origin: timeline.origin(least),
                playout: None,
                bottleneck: self.pairs.bottleneck(),
                marks: (self.marks != MarkReport::default()).then_some(self.marks),
                receipt: request.receipt.map(|asked| self.receipt(asked)),
            },
        }))
    }

    fn receipt(&self, asked: ReceiptRequest) -> Receipt {
        Receipt { nonce: asked.nonce, arrived: self.arrived, stamp: self.stamps.find(asked.number as u16) }
    }

    /// Returns the delay statistics of the interval that a request asks for, and the interval's minimum delay.
    fn interval(&self, request: ReportRequest, times: SrTimes, cut: Cut) -> (Option<DelaySummary>, Option<Span>) {
        let start = NtpTime::from_middle_near(request.interval_start, times.ntp).to_instant_near(times.sent);
        let cut = if cut == Cut::ByWay {
            // If the request at the start of the interval arrived, Waki 2013, Eq. 13 applies; otherwise Eq. 14.
            let previous = self.last_request.filter(|previous| previous.ntp.middle() == request.interval_start);
            let way = previous.map_or(times.way, |previous| previous.way).max(Span::ZERO);
            start + way + way
        } else {
            start
        };
        (self.delays.summary_after(cut), self.delays.least_after(cut))
    }

    /// Returns a report block for a regular report. The count of losses since the last answer is not reset, because the
    /// next answer needs it.
    pub(crate) fn regular_block(&self, sender_ssrc: u32, now: Instant<ReceiverClock>) -> ReportBlock {
        let loss = self.tracker.clone().map(|mut tracker| tracker.report());
        self.block(sender_ssrc, now, loss)
    }

    fn block(&self, ssrc: u32, now: Instant<ReceiverClock>, loss: Option<LossInterval>) -> ReportBlock {
        let loss = loss.unwrap_or(LossInterval { fraction_lost: 0, cumulative_lost: 0, extended_highest: 0 });
        let held = self.last_sr.map_or(Span::ZERO, |sr| now - sr.arrived).max(Span::ZERO);
        ReportBlock {
            ssrc,
            fraction_lost: loss.fraction_lost,
            cumulative_lost: loss.cumulative_lost,
            extended_highest: loss.extended_highest,
            jitter: (self.jitter.as_secs_f64() * f64::from(StreamConfig::MEDIA_CLOCK_HZ)) as u32,
            last_sr: self.last_sr.map_or(0, |sr| sr.ntp.middle()),
            delay_since_last_sr: (held.as_secs_f64() * 65_536.0) as u32,
        }
    }
}
