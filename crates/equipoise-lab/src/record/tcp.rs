use equipoise::control::window::WindowSnapshot;
use equipoise::units::{Size, Span};
use equipoise_path::link::LinkStats;

use super::delays::Delays;
use crate::result::{LinkSample, TcpResult, TcpSample, WebResult};
use crate::scenario::TcpFlow;

/// State of a TCP connection at a point in time. Counters count from the connection's start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpReading {
    /// Congestion window, in segments.
    pub window: f64,
    /// Slow start threshold, in segments; `None` until a threshold is set, for example by the first loss.
    pub slow_start_threshold: Option<f64>,
    /// Number of segments sent and not yet cumulatively acknowledged.
    pub in_flight: u64,
    /// Smoothed round-trip time.
    pub smoothed_round_trip: Option<Span>,
    /// Minimum round-trip time.
    pub min_round_trip: Option<Span>,
    /// Number of segments sent, including retransmissions.
    pub sent: u64,
    /// Number of segments retransmitted.
    pub retransmissions: u64,
    /// Number of segments retransmitted after a timeout; `None` if unknown.
    pub resent_after_timeout: Option<u64>,
    /// Number of fast recoveries; `None` if unknown.
    pub recoveries: Option<u64>,
    /// Number of retransmission timeouts; `None` if unknown.
    pub timeouts: Option<u64>,
    /// Amount of data that has arrived at the receiver. In a live run, the amount that the receiving application has
    /// read. Each byte counts once.
    pub delivered: Size,
    /// When the last data of a finite transfer was acknowledged, since the run's start.
    pub finished: Option<Span>,
    /// State of the connection's window law.
    pub law: WindowSnapshot,
}

/// State of web traffic at a point in time. The state of all its connections together is a separate [`TcpReading`].
/// Counters count from the start of the web traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebReading {
    /// Number of fetches that were started.
    pub begun: u64,
    /// Total time that the on/off flows of the web traffic were ON, summed over the flows.
    pub time_on: Span,
}

/// The samples recorded so far about a TCP connection or web traffic.
#[derive(Debug)]
pub(super) struct TcpRecord {
    /// `None` unless the flow is web traffic.
    web: Option<WebRecord>,
    warm_up: Span,
    samples: Vec<TcpSample>,
    last: Option<(Span, TcpReading)>,
    /// Start of the time over which the mean goodput is measured, and the data delivered before this start. A flow that
    /// starts after the warm-up is measured from its own start. Any other flow is measured from the first reading after
    /// the warm-up.
    settled_from: Option<(Span, Size)>,
}

impl TcpRecord {
    /// Returns the empty record of a flow that begins at `start`.
    pub(super) fn new(flow: &TcpFlow, start: Span, warm_up: Span) -> Self {
        let web = flow.web.as_ref().map(|web| WebRecord::new(web.flows, start));
        let settled_from = (start >= warm_up).then_some((start, Size::ZERO));
        Self { web, warm_up, samples: Vec::new(), last: None, settled_from }
    }

    /// Records a reading of the connection at the time `at`, which must not be earlier than that of the previous
    /// reading.
    pub(super) fn push(&mut self, at: Span, reading: &TcpReading) {
        let (since, delivered) = self.last.map_or((Span::ZERO, Size::ZERO), |(at, last)| (at, last.delivered));
        if at >= self.warm_up && self.settled_from.is_none() {
            self.settled_from = Some((at, reading.delivered));
        }
        let elapsed = (at - since).as_secs_f64();
        let goodput = (reading.delivered - delivered).as_bits() as f64;
        let bandwidth = reading.law.bandwidth;
        self.samples.push(TcpSample {
            at_s: at.as_secs_f64(),
            window_segments: reading.window,
            slow_start_threshold_segments: reading.slow_start_threshold,
            in_flight_segments: reading.in_flight,
            smoothed_round_trip_s: reading.smoothed_round_trip.map(Span::as_secs_f64),
            min_round_trip_s: reading.min_round_trip.map(Span::as_secs_f64),
            goodput_bps: (elapsed > 0.0).then(|| goodput / elapsed),
            retransmissions: reading.retransmissions,
            timeouts: reading.timeouts,
            gamma: reading.law.gamma,
            capacity_bps: bandwidth.map(|found| found.capacity.rate.as_bps_f64()),
            available_bps: bandwidth.map(|found| found.available.rate.as_bps_f64()),
        });
        self.last = Some((at, *reading));
    }

    /// Records the state of web traffic at the time `at`.
    pub(super) fn on_web(&mut self, at: Span, reading: WebReading) {
        if let Some(web) = &mut self.web {
            web.last = Some((at, reading));
        }
    }

    /// Records that a fetch of web traffic is complete.
    pub(super) fn on_fetch(&mut self, opened: Span, completed: Span) {
        if let Some(web) = &mut self.web {
            web.complete += 1;
            if opened >= self.warm_up {
                web.times.push(completed - opened);
            }
        }
    }

    /// Returns the number of segments sent in total, and the number of segments sent for the first time.
    pub(super) fn sent(&self) -> (u64, u64) {
        self.last.map_or((0, 0), |(_, last)| (last.sent, last.sent.saturating_sub(last.retransmissions)))
    }

    pub(super) fn finish(self) -> Option<TcpResult> {
        let (at, last) = self.last?;
        // The goodput of a completed transfer is measured only until the completion.
        let until = last.finished.map_or(at, |finished| finished.min(at));
        let goodput = self
            .settled_from
            .filter(|(since, _)| *since < until)
            .map(|(since, delivered)| (last.delivered - delivered).as_bits() as f64 / (until - since).as_secs_f64());
        Some(TcpResult {
            goodput_bps: goodput,
            delivered_bytes: last.delivered.as_bytes(),
            retransmissions: last.retransmissions,
            resent_in_recovery: last.resent_after_timeout.map(|others| last.retransmissions.saturating_sub(others)),
            resent_after_timeout: last.resent_after_timeout,
            recoveries: last.recoveries,
            timeouts: last.timeouts,
            min_round_trip_s: last.min_round_trip.map(Span::as_secs_f64),
            finished_s: last.finished.map(Span::as_secs_f64),
            web: self.web.map(WebRecord::finish),
            samples: self.samples,
        })
    }
}

/// The data recorded so far about the fetches of web traffic.
#[derive(Debug)]
struct WebRecord {
    flows: u32,
    start: Span,
    complete: u64,
    /// Durations of the fetches that started after the warm-up.
    times: Delays,
    last: Option<(Span, WebReading)>,
}

impl WebRecord {
    fn new(flows: u32, start: Span) -> Self {
        Self { flows, start, complete: 0, times: Delays::default(), last: None }
    }

    fn finish(self) -> WebResult {
        let share = |(at, reading): (Span, WebReading)| {
            let lasted_s = (at - self.start).as_secs_f64();
            (lasted_s > 0.0).then(|| reading.time_on.as_secs_f64() / (lasted_s * f64::from(self.flows)))
        };
        WebResult {
            fetches_begun: self.last.map_or(0, |(_, reading)| reading.begun),
            fetches: self.complete,
            time: self.times.result(),
            on_share: self.last.and_then(share),
        }
    }
}

/// The samples recorded so far about a link.
#[derive(Debug, Default)]
pub(crate) struct LinkRecord {
    samples: Vec<LinkSample>,
    last: Option<(f64, LinkStats)>,
}

impl LinkRecord {
    /// Records the link's counters at the time `at`, which must not be earlier than that of the previous call.
    pub(crate) fn push(&mut self, at: Span, stats: LinkStats) {
        let at_s = at.as_secs_f64();
        let (since_s, last) = self.last.map_or((0.0, None), |(at, last)| (at, Some(last)));
        // Converts means since the start of the link into means since the previous sample.
        let over = |of: fn(&LinkStats) -> Option<f64>| {
            let before = last.as_ref().and_then(of).unwrap_or(0.0) * since_s;
            let elapsed = at_s - since_s;
            of(&stats).filter(|_| elapsed > 0.0).map(|mean| (mean * at_s - before) / elapsed)
        };
        self.samples.push(LinkSample {
            at_s,
            queue_packets: over(|stats| stats.usage.mean_queue).map(|queue| queue.max(0.0)),
            utilisation: over(|stats| stats.usage.utilisation).map(|share| share.clamp(0.0, 1.0)),
            packets_dropped: stats.dropped(),
        });
        self.last = Some((at_s, stats));
    }

    pub(crate) fn finish(self) -> Vec<LinkSample> {
        self.samples
    }
}
