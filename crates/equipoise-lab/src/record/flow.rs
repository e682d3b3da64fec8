use std::collections::BTreeMap;
use std::iter::once;

use equipoise::control::Reason;
use equipoise::units::{Instant, SenderClock, Size, Span};
use equipoise_session::{Ecn, Event, PathId};

use super::beliefs::BeliefRecord;
use super::frames::LiveRecord;
use super::media::MediaRecord;
use super::pair::PairRecord;
use super::path::{PathRecord, owned};
use super::playout::PlayoutRecord;
use super::received::{Lot, Received, ReceivedRecord};
use super::row::IntervalRow;
use super::tcp::{TcpReading, TcpRecord, WebReading};
use crate::result::{ExcursionResult, FlowResult, IntervalResult, Stall};
use crate::scenario::{Flow, FlowKind, Scenario};
use crate::statistics::{coefficient_of_variation, mean};
use crate::verdict;

/// The data recorded so far about one flow.
#[derive(Debug)]
pub(super) struct FlowRecord {
    name: String,
    controller: Option<String>,
    target: Option<Span>,
    start: Span,
    interval: Span,
    warm_up: Span,
    /// Times of capacity and load steps on the flow's path, and times at which one of the flow's paths is removed or
    /// returns.
    steps: Vec<Span>,
    media: MediaRecord,
    /// Number of packets that arrived with an ECN congestion mark; `None` if the flow's packets cannot be marked.
    marked: Option<u64>,
    /// Number of intervals that have already been returned as rows.
    shown: usize,
    ignored: BTreeMap<&'static str, u64>,
    decisions: BTreeMap<&'static str, u64>,
    last_decision: Option<&'static str>,
    /// Number of decisions after the warm-up, and the number of these decisions in which the application or a rate
    /// limit set the rate instead of the control law.
    settled_decisions: u64,
    limited_decisions: u64,
    response: Option<f64>,
    beliefs: BeliefRecord,
    pacing_resets: u64,
    reports_missing: u64,
    circuit_broken: BTreeMap<&'static str, u64>,
    circuit_strained: u64,
    packet: Size,
    /// `None` unless the session sends live media.
    live: Option<LiveRecord>,
    /// `None` unless the session has a playout buffer.
    playout: Option<PlayoutRecord>,
    /// `None` unless the flow is a TCP connection or web traffic, whose endpoints report no events.
    tcp: Option<TcpRecord>,
    /// `None` unless the flow is a flow pair.
    pair: Option<PairRecord>,
    /// The sampled rates at the flow's receiver; `None` if these rates are not sampled. For a flow pair, these rates
    /// are always sampled.
    received: Option<ReceivedRecord>,
    /// For a TCP connection, the number of segments sent before the end of the warm-up.
    unsettled: u64,
    /// For a flow over several paths, the name of the scheduler that divides the total rate over the paths, and the
    /// record of each path by the path's index.
    split: Option<String>,
    paths: Vec<PathRecord>,
}

/// An interval is returned as a row when this time, or the length of the interval if that is shorter, has passed since
/// the interval's end. Until then, the last packets of the interval can arrive.
const SHOWN_AFTER: Span = Span::from_secs(1);
/// An interval does not count as settled if it contains one of [`FlowRecord::steps`], or begins less than this many
/// interval lengths after such a step.
const SETTLING: i64 = 3;

impl FlowRecord {
    pub(super) fn new(flow: &Flow, scenario: &Scenario) -> Self {
        let controller = match &flow.kind {
            FlowKind::Session { controller, .. } => Some(controller.entry.name().to_owned()),
            FlowKind::Tcp(tcp) => Some(tcp.name().to_owned()),
            FlowKind::Multipath(multipath) => Some(multipath.controller.entry.name().to_owned()),
            FlowKind::Pair(pair) => Some(pair.name().to_owned()),
            FlowKind::Background { .. } => None,
        };
        let tcp = match &flow.kind {
            FlowKind::Tcp(tcp) => Some(TcpRecord::new(tcp, flow.start, scenario.warm_up)),
            _ => None,
        };
        let split = match &flow.kind {
            FlowKind::Multipath(multipath) => Some(multipath.scheduler.entry.name().to_owned()),
            FlowKind::Session { .. } | FlowKind::Background { .. } | FlowKind::Tcp(_) | FlowKind::Pair(_) => None,
        };
        let pair = matches!(flow.kind, FlowKind::Pair(_)).then(PairRecord::default);
        let is_sampled = scenario.receiver_rates || pair.is_some();
        let interval = flow.report_interval().unwrap_or(scenario.metric_interval());
        let media = || MediaRecord::new(flow.start, interval, scenario.warm_up);
        let outages = scenario.paths_of(flow).flat_map(|path| &path.down);
        let mut steps = scenario.steps_on(&flow.path);
        steps.extend(outages.flat_map(|outage| std::iter::once(outage.at).chain(outage.until)));
        Self {
            packet: flow.packet_size,
            live: flow.live().map(|live| LiveRecord::new(live, scenario.warm_up)),
            playout: PlayoutRecord::new(flow, scenario),
            tcp,
            pair,
            received: is_sampled.then(|| ReceivedRecord::new(scenario.sample_interval)),
            unsettled: 0,
            name: flow.name.clone(),
            controller,
            target: flow.target(),
            start: flow.start,
            interval,
            warm_up: scenario.warm_up,
            steps,
            media: media(),
            marked: (flow.ecn != Ecn::NotCapable).then_some(0),
            shown: 0,
            split,
            paths: scenario.paths_of(flow).map(|path| PathRecord::new(path.name.clone(), media())).collect(),
            ignored: BTreeMap::new(),
            decisions: BTreeMap::new(),
            last_decision: None,
            settled_decisions: 0,
            limited_decisions: 0,
            response: None,
            beliefs: BeliefRecord::default(),
            pacing_resets: 0,
            reports_missing: 0,
            circuit_broken: BTreeMap::new(),
            circuit_strained: 0,
        }
    }

    /// Records an event of one endpoint. Most events are packets sent or received.
    #[expect(clippy::inline_always, reason = "where it is known which event it is, a fifth of it is left")]
    #[inline(always)]
    pub(super) fn on_event(&mut self, at: Span, origin: Instant<SenderClock>, event: &Event) {
        match event {
            Event::MediaSent { sequence, size, waited, fragment } => {
                self.on_sent(once((at, *size)));
                if let Some(live) = &mut self.live {
                    live.on_sent(*sequence, *waited, *fragment);
                }
            }
            Event::MediaReceived { sequence, sent, delay, size, ecn } => {
                if let Some(live) = &mut self.live {
                    live.on_received(at, *sequence);
                }
                self.on_packets(once(Received { at, sent: *sent - origin, delay: *delay, size: *size, ecn: *ecn }));
            }
            _ => self.on_rare_event(at, event),
        }
    }

    /// Records media packets that were sent one after another, each with its time and size.
    #[inline]
    pub(super) fn on_sent(&mut self, packets: impl Lot<(Span, Size)>) {
        self.media.on_sent(packets);
    }

    /// Records media packets that arrived one after another.
    #[inline]
    pub(super) fn on_packets(&mut self, packets: impl Lot<Received>) {
        self.media.on_received(packets.clone());
        if let Some(marked) = &mut self.marked {
            *marked += packets.clone().filter(|packet| packet.ecn == Ecn::Marked).count() as u64;
        }
        if let Some(received) = &mut self.received {
            packets.for_each(|packet| received.push(packet.at, packet.size));
        }
    }

    fn on_rare_event(&mut self, at: Span, event: &Event) {
        match event {
            Event::FrameCaptured { medium, size, .. } => {
                if let Some(live) = &mut self.live {
                    live.on_captured(at, *medium, *size);
                }
            }
            Event::AduReceived { .. } | Event::Switched { .. } => {
                if let Some(pair) = &mut self.pair {
                    pair.on_event(at, event);
                }
            }
            Event::Ignored(reason) => *self.ignored.entry(reason.name()).or_default() += 1,
            Event::ContentKnown { packets } => {
                if let Some(playout) = &mut self.playout {
                    playout.on_content(*packets);
                }
            }
            Event::Buffered { wait, .. } => {
                if let Some(playout) = &mut self.playout {
                    playout.on_buffered(at + *wait);
                }
            }
            Event::Discarded { .. } => {
                if let Some(playout) = &mut self.playout {
                    playout.result.packets_discarded += 1;
                }
            }
            Event::PacingReset { .. } => self.pacing_resets += 1,
            Event::ReportsMissing => self.reports_missing += 1,
            Event::CircuitBroken(breaker) => *self.circuit_broken.entry(breaker.name()).or_default() += 1,
            Event::CircuitStrained => self.circuit_strained += 1,
            Event::Believed(beliefs) => self.beliefs.on_believed(at, beliefs),
            Event::RateDecided { rate, snapshot } => {
                self.beliefs.on_decided(*rate, snapshot);
                if let Some(reason) = snapshot.reason {
                    if at >= self.warm_up {
                        self.settled_decisions += 1;
                        self.limited_decisions += u64::from(matches!(reason, Reason::AppLimited | Reason::RateLimit));
                    }
                    *self.decisions.entry(reason.name()).or_default() += 1;
                    self.last_decision = Some(reason.name());
                }
                self.response = snapshot.response.or(self.response);
            }
            _ => {}
        }
    }

    /// Records an event of one path. The event also counts for the flow, unless it is a decision on the path's rate or
    /// a triggered circuit breaker.
    pub(super) fn on_path_event(&mut self, at: Span, origin: Instant<SenderClock>, path: PathId, event: &Event) {
        if let Some(record) = self.paths.get_mut(usize::from(path.0)) {
            record.on_event(at, origin, event);
        }
        if !matches!(event, Event::RateDecided { .. } | Event::CircuitBroken(_)) {
            self.on_event(at, origin, event);
        }
    }

    #[inline]
    pub(super) fn on_received(&mut self, at: Span, size: Size) {
        if let Some(received) = &mut self.received {
            received.push(at, size);
        }
    }

    pub(super) fn on_tcp(&mut self, at: Span, reading: &TcpReading) {
        if let Some(tcp) = self.tcp.as_mut().filter(|_| at >= self.start) {
            if at <= self.warm_up {
                self.unsettled = reading.sent;
            }
            let settled = reading.sent.saturating_sub(self.unsettled);
            self.media.settled_bytes = Size::from_bytes(settled.saturating_mul(self.packet.as_bytes()));
            tcp.push(at, reading);
            (self.media.sent, self.media.received) = tcp.sent();
        }
    }

    pub(super) fn on_web(&mut self, at: Span, reading: WebReading) {
        if let Some(tcp) = self.tcp.as_mut().filter(|_| at >= self.start) {
            tcp.on_web(at, reading);
        }
    }

    pub(super) fn on_fetch(&mut self, opened: Span, completed: Span) {
        if let Some(tcp) = &mut self.tcp {
            tcp.on_fetch(opened, completed);
        }
    }

    pub(super) fn take_rows(&mut self, at: Span) -> Vec<IntervalRow> {
        let mut rows = Vec::new();
        let wait = SHOWN_AFTER.min(self.interval);
        while self.controller.is_some()
            && self.shown < self.media.len()
            && self.media.start_of(self.shown + 1) + wait <= at
        {
            let result = self.media.interval_result(self.shown, &[]);
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

    /// Returns the results of the flow. If the end of the run cut the last interval short, that interval is left out.
    pub(super) fn finish(self, lasted: Span, stalls: &[Stall]) -> FlowResult {
        let intervals = self.media.interval_results(lasted, stalls);
        let warm_up_s = self.warm_up.as_secs_f64();
        let means = |keep: &dyn Fn(&IntervalResult) -> bool| -> Vec<f64> {
            let counted = intervals.iter().filter(|interval| interval.start_s >= warm_up_s && keep(interval));
            counted.filter_map(|interval| interval.delay_mean_s).collect()
        };
        let all = means(&|_| true);
        let settled = means(&|interval| !self.is_settling(interval));
        let target_s = self.target.map(Span::as_secs_f64);
        let media = &self.media;
        let delays = media.settled();
        let excursions = target_s.map(|target| self.excursions(&intervals, target));
        let received = self.received.map(|received| received.finish(lasted)).unwrap_or_default();
        let [video, audio] = self.live.map(|live| live.finish(lasted)).unwrap_or_default();
        FlowResult {
            packets_sent: media.sent,
            packets_received: media.received,
            packets_lost: media.sent.saturating_sub(media.received),
            packets_marked: self.marked,
            mean_rate_bps: media.mean_rate_bps(lasted),
            delivered_rate_bps: media.delivered_rate_bps(lasted).filter(|_| self.tcp.is_none()),
            delay: delays.result(),
            target_s,
            mse_s2: target_s
                .and_then(|target| mean(&all.iter().map(|mean| (mean - target) * (mean - target)).collect::<Vec<_>>())),
            cv: coefficient_of_variation(&all),
            jitter_s: target_s.and_then(|target| all.iter().map(|mean| (mean - target).abs()).reduce(f64::max)),
            settled_delay_s: median(settled),
            excursions,
            limited_share: (self.settled_decisions > 0)
                .then(|| self.limited_decisions as f64 / self.settled_decisions as f64),
            ignored: owned(&self.ignored),
            pacing_resets: self.pacing_resets,
            reports_missing: self.reports_missing,
            circuit_broken: owned(&self.circuit_broken),
            circuit_strained: self.circuit_strained,
            decisions: owned(&self.decisions),
            response: self.response,
            distribution: delays.distribution(),
            queueing: None,
            beliefs: self.beliefs.finish(),
            intervals,
            name: self.name,
            controller: self.controller,
            video,
            audio,
            playout: self.playout.map(|playout| playout.result),
            tcp: self.tcp.and_then(TcpRecord::finish),
            pair: self.pair.map(|pair| pair.finish(self.warm_up, lasted, &received)),
            received,
            split: self.split,
            paths: self.paths.into_iter().map(|path| path.finish(lasted, stalls)).collect(),
        }
    }

    /// Returns the total length of the intervals whose mean delay was far above the target, and the length of the
    /// longest excursion, which is a series of such intervals. The intervals in the warm-up, the intervals with a
    /// planned step, and the three intervals after a step do not count. Intervals without a delay do not end an
    /// excursion.
    fn excursions(&self, intervals: &[IntervalResult], target_s: f64) -> ExcursionResult {
        let (mut found, mut stretch_s) = (ExcursionResult::default(), 0.0);
        for interval in intervals.iter().filter(|interval| interval.start_s >= self.warm_up.as_secs_f64()) {
            match interval.delay_mean_s {
                Some(mean) if mean > verdict::EXCURSION_FROM * target_s && !self.is_settling(interval) => {
                    let lasts_s = interval.end_s - interval.start_s;
                    stretch_s += lasts_s;
                    found.total_s += lasts_s;
                    found.longest_s = found.longest_s.max(stretch_s);
                }
                Some(_) => stretch_s = 0.0,
                None => {}
            }
        }
        found
    }

    /// Whether an interval contains one of the times in `steps`, or begins less than `SETTLING` interval lengths after
    /// such a time.
    fn is_settling(&self, interval: &IntervalResult) -> bool {
        self.steps.iter().any(|&step| {
            let until = step + self.interval * SETTLING;
            interval.end_s > step.as_secs_f64() && interval.start_s < until.as_secs_f64()
        })
    }
}

/// Returns the median: the middle value, or the mean of the two middle values.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = values.get(values.len() / 2)?;
    let lower = values.get((values.len() - 1) / 2)?;
    Some(f64::midpoint(*lower, *upper))
}
