use std::collections::BTreeMap;

use equipoise::session::Event;
use equipoise::units::{Instant, SenderClock, Size, Span};

use super::IntervalRow;
use super::delays::Delays;
use super::tcp::{TcpReading, TcpRecord};
use crate::result::{DelayResult, FlowResult, IntervalResult, Stall};
use crate::scenario::{Flow, FlowKind, Scenario};

/// What one flow did so far.
#[derive(Debug)]
pub(super) struct FlowRecord {
    name: String,
    controller: Option<String>,
    target: Option<Span>,
    start: Span,
    interval: Span,
    warm_up: Span,
    /// Load and capacity steps on the flow's path.
    steps: Vec<Span>,
    intervals: Vec<Interval>,
    /// The intervals before this one are closed.
    closed: usize,
    /// The intervals before this one have been given out as rows.
    shown: usize,
    sent: u64,
    received: u64,
    /// Bytes sent after the warm-up.
    settled_bytes: Size,
    /// Delays of packets sent after the warm-up.
    settled: Delays,
    ignored: BTreeMap<&'static str, u64>,
    decisions: BTreeMap<&'static str, u64>,
    last_decision: Option<&'static str>,
    response: Option<f64>,
    pacing_resets: u64,
    reports_missing: u64,
    packet: Size,
    /// Of a TCP connection, which has no events.
    tcp: Option<TcpRecord>,
    /// Its segments sent until the warm-up was over.
    unsettled: u64,
}

/// The packets sent in one interval.
#[derive(Debug, Default)]
struct Interval {
    sent: u64,
    bytes: Size,
    received: u64,
    delays: Summary,
}

#[derive(Debug, Default)]
enum Summary {
    /// No packet has arrived.
    #[default]
    Empty,
    /// Packets may still arrive.
    Open(Box<Delays>),
    /// What there was to say; packets that come later count as received, and no more.
    Closed(DelayResult),
}

/// Packets that take longer than this no longer count for their interval's quantiles.
const OPEN_FOR: Span = Span::from_secs(10);
/// How long after its end an interval is shown, so that its last packets have arrived.
const SHOWN_AFTER: Span = Span::from_secs(1);
/// Intervals after a step that do not count as settled.
const SETTLING: i64 = 3;
/// A bound on the intervals of a run, in case a clock goes wild.
const MOST_INTERVALS: usize = 1_000_000;

impl FlowRecord {
    pub(super) fn new(flow: &Flow, scenario: &Scenario) -> Self {
        let controller = match &flow.kind {
            FlowKind::Session { controller, .. } => Some(controller.entry.name.to_owned()),
            FlowKind::Tcp(tcp) => Some(tcp.law.entry.name.to_owned()),
            FlowKind::Background { .. } => None,
        };
        let tcp = matches!(flow.kind, FlowKind::Tcp(_)).then(|| TcpRecord::new(scenario.warm_up));
        Self {
            packet: flow.packet_size,
            tcp,
            unsettled: 0,
            name: flow.name.clone(),
            controller,
            target: flow.target(),
            start: flow.start,
            interval: flow.report_interval().unwrap_or(scenario.metric_interval()),
            warm_up: scenario.warm_up,
            steps: scenario.steps_on(&flow.path),
            intervals: Vec::new(),
            closed: 0,
            shown: 0,
            sent: 0,
            received: 0,
            settled_bytes: Size::ZERO,
            settled: Delays::new(),
            ignored: BTreeMap::new(),
            decisions: BTreeMap::new(),
            last_decision: None,
            response: None,
            pacing_resets: 0,
            reports_missing: 0,
        }
    }

    pub(super) fn on_event(&mut self, at: Span, origin: Instant<SenderClock>, event: &Event) {
        match event {
            Event::MediaSent { size, .. } => self.on_sent(at, *size),
            Event::MediaReceived { sent, delay, .. } => self.on_received(*sent - origin, *delay),
            Event::Ignored(reason) => *self.ignored.entry(reason.name()).or_default() += 1,
            Event::PacingReset { .. } => self.pacing_resets += 1,
            Event::ReportsMissing => self.reports_missing += 1,
            Event::RateDecided { snapshot, .. } => {
                if let Some(reason) = snapshot.reason {
                    *self.decisions.entry(reason.name()).or_default() += 1;
                    self.last_decision = Some(reason.name());
                }
                self.response = snapshot.response.or(self.response);
            }
            _ => {}
        }
    }

    pub(super) fn on_tcp(&mut self, at: Span, reading: &TcpReading) {
        if let Some(tcp) = self.tcp.as_mut().filter(|_| at >= self.start) {
            if at <= self.warm_up {
                self.unsettled = reading.sent;
            }
            let settled = reading.sent.saturating_sub(self.unsettled);
            self.settled_bytes = Size::from_bytes(settled.saturating_mul(self.packet.as_bytes()));
            tcp.push(at, reading);
            (self.sent, self.received) = tcp.sent();
        }
    }

    fn on_sent(&mut self, at: Span, size: Size) {
        self.sent += 1;
        if at >= self.warm_up {
            self.settled_bytes = self.settled_bytes + size;
        }
        if let Some(interval) = self.interval_at(at) {
            interval.sent += 1;
            interval.bytes = interval.bytes + size;
        }
        self.close_before(at - OPEN_FOR);
    }

    fn on_received(&mut self, sent: Span, delay: Span) {
        self.received += 1;
        if sent >= self.warm_up {
            self.settled.push(delay);
        }
        if let Some(interval) = self.interval_at(sent) {
            interval.received += 1;
            match &mut interval.delays {
                Summary::Open(delays) => delays.push(delay),
                Summary::Closed(_) => {}
                empty @ Summary::Empty => {
                    let mut delays = Box::new(Delays::new());
                    delays.push(delay);
                    *empty = Summary::Open(delays);
                }
            }
        }
    }

    /// The interval in which a packet that left at `at` belongs; made if it is new.
    fn interval_at(&mut self, at: Span) -> Option<&mut Interval> {
        let index = usize::try_from(((at - self.start).max(Span::ZERO) / self.interval)?).ok()?;
        if index >= MOST_INTERVALS {
            return None;
        }
        if index >= self.intervals.len() {
            self.intervals.resize_with(index + 1, Interval::default);
        }
        self.intervals.get_mut(index)
    }

    /// Start of an interval since the run's.
    fn start_of(&self, index: usize) -> Span {
        self.start + self.interval * i64::try_from(index).unwrap_or(i64::MAX)
    }

    /// Closes the intervals that ended before `at`.
    fn close_before(&mut self, at: Span) {
        while self.closed < self.intervals.len() && self.start_of(self.closed + 1) <= at {
            if let Some(interval) = self.intervals.get_mut(self.closed) {
                interval.delays = Summary::Closed(interval.delays.result());
            }
            self.closed += 1;
        }
    }

    pub(super) fn take_rows(&mut self, at: Span) -> Vec<IntervalRow> {
        let mut rows = Vec::new();
        let wait = SHOWN_AFTER.min(self.interval);
        while self.controller.is_some()
            && self.shown < self.intervals.len()
            && self.start_of(self.shown + 1) + wait <= at
        {
            let result = self.interval_result(self.shown, &[]);
            rows.push(IntervalRow {
                flow: self.name.clone(),
                start_s: result.start_s,
                end_s: result.end_s,
                rate_bps: result.rate_bps,
                delay_mean_s: result.delay_mean_s,
                delay_p95_s: result.delay_p95_s,
                target_s: self.target.map(Span::as_secs_f64),
                packets: result.packets,
                packets_lost: result.packets_lost,
                reason: self.last_decision.map(str::to_owned),
            });
            self.shown += 1;
        }
        rows
    }

    fn interval_result(&self, index: usize, stalls: &[Stall]) -> IntervalResult {
        let empty = Interval::default();
        let interval = self.intervals.get(index).unwrap_or(&empty);
        let delay = interval.delays.result();
        let (start_s, end_s) = (self.start_of(index).as_secs_f64(), self.start_of(index + 1).as_secs_f64());
        IntervalResult {
            start_s,
            end_s,
            rate_bps: interval.bytes.as_bits() as f64 / self.interval.as_secs_f64(),
            delay_mean_s: delay.mean_s,
            delay_variance_s2: delay.variance_s2,
            delay_p50_s: delay.p50_s,
            delay_p95_s: delay.p95_s,
            delay_p99_s: delay.p99_s,
            delay_max_s: delay.max_s,
            packets: interval.sent,
            packets_lost: interval.sent.saturating_sub(interval.received),
            stalled: stalls.iter().any(|stall| stall.start_s < end_s && stall.end_s > start_s),
        }
    }

    /// The results. An interval that the end of the run cut short is left out.
    pub(super) fn finish(self, lasted: Span, stalls: &[Stall]) -> FlowResult {
        let whole = ((lasted - self.start) / self.interval).and_then(|whole| usize::try_from(whole).ok()).unwrap_or(0);
        let count = whole.min(self.intervals.len());
        let intervals: Vec<_> = (0..count).map(|index| self.interval_result(index, stalls)).collect();
        let warm_up_s = self.warm_up.as_secs_f64();
        let means = |keep: &dyn Fn(&IntervalResult) -> bool| -> Vec<f64> {
            let counted = intervals.iter().filter(|interval| interval.start_s >= warm_up_s && keep(interval));
            counted.filter_map(|interval| interval.delay_mean_s).collect()
        };
        let all = means(&|_| true);
        let settled = means(&|interval| !self.is_settling(interval));
        let target_s = self.target.map(Span::as_secs_f64);
        let measured = lasted - self.warm_up.max(self.start);
        FlowResult {
            packets_sent: self.sent,
            packets_received: self.received,
            packets_lost: self.sent.saturating_sub(self.received),
            mean_rate_bps: (measured > Span::ZERO)
                .then(|| self.settled_bytes.as_bits() as f64 / measured.as_secs_f64()),
            delay: self.settled.result(),
            target_s,
            mse_s2: target_s.and_then(|target| mean(all.iter().map(|mean| (mean - target) * (mean - target)))),
            cv: coefficient_of_variation(&all),
            jitter_s: target_s.and_then(|target| all.iter().map(|mean| (mean - target).abs()).reduce(f64::max)),
            settled_delay_s: median(settled),
            ignored: owned(&self.ignored),
            pacing_resets: self.pacing_resets,
            reports_missing: self.reports_missing,
            decisions: owned(&self.decisions),
            response: self.response,
            histogram: self.settled.bins(),
            intervals,
            name: self.name,
            controller: self.controller,
            tcp: self.tcp.and_then(TcpRecord::finish),
        }
    }

    /// Whether an interval lies in the three after a step, or holds one.
    fn is_settling(&self, interval: &IntervalResult) -> bool {
        self.steps.iter().any(|&step| {
            let until = step + self.interval * SETTLING;
            interval.end_s > step.as_secs_f64() && interval.start_s < until.as_secs_f64()
        })
    }
}

impl Summary {
    fn result(&self) -> DelayResult {
        match self {
            Self::Empty => DelayResult::default(),
            Self::Open(delays) => delays.result(),
            Self::Closed(result) => *result,
        }
    }
}

fn owned(counts: &BTreeMap<&'static str, u64>) -> BTreeMap<String, u64> {
    counts.iter().map(|(&name, &count)| (name.to_owned(), count)).collect()
}

/// Mean of some numbers; `None` of none.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / f64::from(count))
}

/// Standard deviation over mean (Waki 2013, Eq. 19 to 21); the deviation's divisor is n there, and here.
fn coefficient_of_variation(values: &[f64]) -> Option<f64> {
    let centre = mean(values.iter().copied())?;
    let variance = mean(values.iter().map(|value| (value - centre) * (value - centre)))?;
    (centre > 0.0).then(|| variance.sqrt() / centre)
}

/// The middle number, or the mean of the two in the middle.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = values.get(values.len() / 2)?;
    let lower = values.get((values.len() - 1) / 2)?;
    Some(f64::midpoint(*lower, *upper))
}
