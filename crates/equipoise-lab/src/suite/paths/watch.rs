//! Observes a run over a random path: records a few numbers for each tenth of a second.

use equipoise::control::Reason;
use equipoise::units::{Rate, Span};
use equipoise_session::Event;

use super::draw::{DURATION, MIN_RATE};
use crate::sim::RunObserver;

/// Length of the bins in which sent bytes, delivered bytes and queueing delays are recorded.
pub(super) const BIN: Span = Span::from_millis(100);

/// Observes a run over a random path.
#[derive(Debug)]
pub(super) struct Watch {
    delay: Span,
    max_rate: Rate,
    /// The minimum queueing delay of the packets that arrived in each bin; `None` if no packet arrived.
    least_waits: Vec<Option<Span>>,
    pub(super) flows: Vec<Watched>,
}

/// The data recorded so far about one flow.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    /// Bytes sent in each bin.
    pub(super) sent: Vec<u64>,
    /// Bytes that arrived in each bin. The one-way propagation delay is subtracted from their arrival times.
    pub(super) delivered: Vec<u64>,
    /// The first rate that the control law chose outside its limits.
    pub(super) outside: Option<Outside>,
}

/// A decision with a rate outside the control law's limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Outside {
    pub(super) at: Span,
    pub(super) rate: Rate,
    pub(super) reason: &'static str,
}

/// Number of bins of a run.
pub(super) fn bins() -> usize {
    (DURATION / BIN).and_then(|bins| usize::try_from(bins).ok()).unwrap_or(0)
}

fn bin(at: Span) -> Option<usize> {
    (at / BIN).and_then(|place| usize::try_from(place).ok())
}

/// The reasons that are given for a rate that a safety mechanism lowered. Only such a rate may be below the control
/// law's minimum.
const GUARDS: [Reason; 3] = [Reason::ReportsMissing, Reason::CircuitBreaker, Reason::Unproved];

impl Watch {
    /// Returns an observer of `flows` flows over a path with this one-way delay. `max_rate` is the maximum rate of the
    /// control laws.
    pub(super) fn new(flows: usize, delay: Span, max_rate: Rate) -> Self {
        let bins = bins();
        let flow = Watched { sent: vec![0; bins], delivered: vec![0; bins], outside: None };
        Self { delay, max_rate, least_waits: vec![None; bins], flows: vec![flow; flows] }
    }

    /// Returns the minimum queueing delay in each bin, in seconds; `None` if no packet arrived in the bin.
    pub(super) fn least_waits_s(&self) -> impl ExactSizeIterator<Item = Option<f64>> {
        self.least_waits.iter().map(|wait| wait.map(Span::as_secs_f64))
    }

    fn is_within(&self, rate: Rate, reason: Option<Reason>) -> bool {
        rate <= self.max_rate && (rate >= MIN_RATE || reason.is_some_and(|reason| GUARDS.contains(&reason)))
    }
}

fn add(bins: &mut [u64], at: Span, bytes: u64) {
    if let Some(bin) = bin(at).and_then(|place| bins.get_mut(place)) {
        *bin += bytes;
    }
}

impl RunObserver for Watch {
    fn on_event(&mut self, at: Span, flow: usize, event: &Event) {
        let (within, delay) = match event {
            Event::RateDecided { rate, snapshot } => (self.is_within(*rate, snapshot.reason), self.delay),
            _ => (true, self.delay),
        };
        let Some(flow) = self.flows.get_mut(flow) else { return };
        match event {
            Event::MediaSent { size, .. } => add(&mut flow.sent, at, size.as_bytes()),
            Event::MediaReceived { size, .. } => add(&mut flow.delivered, at - delay, size.as_bytes()),
            Event::RateDecided { rate, snapshot } if !within && flow.outside.is_none() => {
                let reason = snapshot.reason.map_or("none", Reason::name);
                flow.outside = Some(Outside { at, rate: *rate, reason });
            }
            _ => {}
        }
    }

    fn on_waited(&mut self, at: Span, _: usize, waited: Span) {
        if let Some(least) = bin(at).and_then(|place| self.least_waits.get_mut(place)) {
            *least = Some(least.map_or(waited, |before| before.min(waited)));
        }
    }
}
