//! Computes metrics from the events of a run in one pass, by flow and control interval.
//!
//! Simulated and live runs feed the same recorder with the same events. A packet belongs to the interval in which it
//! was *sent* (Waki 2013, Sec. 6.2). Only intervals whose packets may still be in flight have a histogram, so that
//! memory is bounded by the size of the results.

mod beliefs;
mod bins;
mod delays;
mod flow;
mod frames;
mod histogram;
mod media;
mod pair;
mod path;
mod phases;
mod playout;
mod received;
mod row;
mod summed;
mod tcp;
mod waits;

use equipoise::units::{Instant, SenderClock, Size, Span};
use equipoise_session::{Event, PathId};

use crate::result::{FlowResult, MediaResult, Stall};
use crate::scenario::Scenario;
pub use delays::Delays;
use flow::FlowRecord;
pub(crate) use frames::{Arrived, LiveRecord};
use phases::PhaseRecord;
pub use received::{Lot, Received};
pub use row::IntervalRow;
pub(crate) use tcp::LinkRecord;
pub use tcp::{TcpReading, WebReading};
pub(crate) use waits::Waits;

/// Takes the events of a run and returns its results.
#[derive(Debug)]
pub struct Recorder {
    origin: Instant<SenderClock>,
    flows: Vec<FlowRecord>,
    phases: PhaseRecord,
}

impl Recorder {
    /// A recorder of a run of `scenario` that begins at `origin`.
    pub fn new(scenario: &Scenario, origin: Instant<SenderClock>) -> Self {
        let flows = scenario.flows.iter().map(|flow| FlowRecord::new(flow, scenario)).collect();
        Self { origin, flows, phases: PhaseRecord::new(scenario) }
    }

    /// Records an event of one end of flow number `flow`, `at` after the run's start; events of unknown flows are
    /// ignored.
    #[inline]
    pub fn on_event(&mut self, at: Span, flow: usize, event: &Event) {
        if let Some(record) = self.flows.get_mut(flow) {
            record.on_event(at, self.origin, event);
        }
        self.phases.on_event(at, flow, PathId::default(), event);
    }

    /// Records that packets of background traffic, flow number `flow`, left one after the other, each with its time and
    /// size: equivalent to an event for each.
    #[inline]
    pub fn on_departures(&mut self, flow: usize, packets: impl Lot<(Span, Size)>) {
        if let Some(record) = self.flows.get_mut(flow) {
            record.on_sent(packets);
        }
    }

    /// Records that packets of background traffic, flow number `flow`, arrived one after the other: equivalent to an
    /// event for each.
    #[inline]
    pub fn on_arrivals(&mut self, flow: usize, packets: impl Lot<Received>) {
        if let Some(record) = self.flows.get_mut(flow) {
            record.on_packets(packets);
        }
    }

    /// Like [`Recorder::on_event`], on one of the paths of a flow that has several.
    pub fn on_path_event(&mut self, at: Span, flow: usize, path: PathId, event: &Event) {
        if let Some(record) = self.flows.get_mut(flow) {
            record.on_path_event(at, self.origin, path, event);
        }
        self.phases.on_event(at, flow, path, event);
    }

    /// Records that packets arrive at the receiver of flow number `flow`, each with its time and its total queueing
    /// delay. The event of a session's packet follows before the next packet is recorded. Without these calls, queueing
    /// delays are unknown.
    #[inline]
    pub fn on_waited(&mut self, flow: usize, waits: impl Lot<(Span, Span)>) {
        self.phases.on_waited(flow, waits);
    }

    /// Records that an IP packet of this size arrives at the sender of flow number `flow`: feedback, or an
    /// acknowledgement.
    pub fn on_returned(&mut self, flow: usize, size: Size) {
        self.phases.on_returned(flow, size);
    }

    /// Records a reading of the TCP connection with flow number `flow` at `at`, not before its last reading; a flow of
    /// another kind is ignored.
    pub fn on_tcp(&mut self, at: Span, flow: usize, reading: &TcpReading) {
        if let Some(record) = self.flows.get_mut(flow) {
            record.on_tcp(at, reading);
        }
    }

    /// Records a reading of the web traffic with flow number `flow` at `at`, not before its last reading; a flow of
    /// another kind is ignored.
    pub fn on_web(&mut self, at: Span, flow: usize, reading: WebReading) {
        if let Some(record) = self.flows.get_mut(flow) {
            record.on_web(at, reading);
        }
    }

    /// Records that a fetch of the web traffic with flow number `flow` is complete; its connection was opened at
    /// `opened`.
    pub fn on_fetch(&mut self, flow: usize, opened: Span, completed: Span) {
        if let Some(record) = self.flows.get_mut(flow) {
            record.on_fetch(opened, completed);
        }
    }

    /// Records that TCP packets of this IP size in total, headers included, arrived at the receiver of flow number
    /// `flow` since the last such call; RTP packets are events instead. Ignored if the rates at the flow's receiver are
    /// not sampled.
    pub fn on_tcp_received(&mut self, at: Span, flow: usize, size: Size) {
        if let Some(record) = self.flows.get_mut(flow) {
            record.on_received(at, size);
        }
        self.phases.on_tcp_received(at, flow, size);
    }

    /// Returns the sessions' intervals that have ended before `at`, each only once.
    pub fn take_rows(&mut self, at: Span) -> Vec<IntervalRow> {
        self.flows.iter_mut().flat_map(|flow| flow.take_rows(at)).collect()
    }

    /// Returns the results of all media together, and in each phase, in a run of length `lasted`; `None` if no flow
    /// sends media.
    pub fn media(&self, lasted: Span) -> Option<MediaResult> {
        self.phases.finish(lasted)
    }

    /// Returns the results of a run of length `lasted` with these stalls of the machine.
    pub fn finish(self, lasted: Span, stalls: &[Stall]) -> Vec<FlowResult> {
        let Self { flows, phases, .. } = self;
        let result = |(number, flow): (usize, FlowRecord)| FlowResult {
            queueing: phases.queueing(number),
            ..flow.finish(lasted, stalls)
        };
        flows.into_iter().enumerate().map(result).collect()
    }
}
