//! Computes metrics from the events of a run in one pass. Packets are counted by flow and by control interval.
//!
//! Simulated and live runs pass the same events to this recorder. A packet belongs to the interval in which it was
//! *sent* (Waki 2013, Sec. 6.2). Only intervals whose packets may still be in flight keep a histogram, so memory is
//! bounded by the size of the results.

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

/// Receives the events of a run and computes the results of the run.
#[derive(Debug)]
pub struct Recorder {
    origin: Instant<SenderClock>,
    flows: Vec<FlowRecord>,
    phases: PhaseRecord,
}

impl Recorder {
    /// Returns a recorder for a run of `scenario` that begins at `origin`.
    pub fn new(scenario: &Scenario, origin: Instant<SenderClock>) -> Self {
        let flows = scenario.flows.iter().map(|flow| FlowRecord::new(flow, scenario)).collect();
        Self { origin, flows, phases: PhaseRecord::new(scenario) }
    }

    /// Records an event of one endpoint of flow number `flow`; `at` is the time since the run's start. Events of
    /// unknown flows are ignored.
    #[inline]
    pub fn on_event(&mut self, at: Span, flow: usize, event: &Event) {
        if let Some(record) = self.flows.get_mut(flow) {
            record.on_event(at, self.origin, event);
        }
        self.phases.on_event(at, flow, PathId::default(), event);
    }

    /// Records packets that the background flow number `flow` sent, with the time and size of each packet. The call is
    /// equivalent to one event for each packet.
    #[inline]
    pub fn on_departures(&mut self, flow: usize, packets: impl Lot<(Span, Size)>) {
        if let Some(record) = self.flows.get_mut(flow) {
            record.on_sent(packets);
        }
    }

    /// Records packets of the background flow number `flow` that arrived. The call is equivalent to one event for each
    /// packet.
    #[inline]
    pub fn on_arrivals(&mut self, flow: usize, packets: impl Lot<Received>) {
        if let Some(record) = self.flows.get_mut(flow) {
            record.on_packets(packets);
        }
    }

    /// Records an event like [`Recorder::on_event`], for one path of a flow that has several paths.
    pub fn on_path_event(&mut self, at: Span, flow: usize, path: PathId, event: &Event) {
        if let Some(record) = self.flows.get_mut(flow) {
            record.on_path_event(at, self.origin, path, event);
        }
        self.phases.on_event(at, flow, path, event);
    }

    /// Records packets that are about to arrive at the receiver of flow number `flow`: for each, the time of its
    /// arrival and its total queueing delay. If the flow's endpoints report events, record one packet at a time, and
    /// then the event of its arrival. Without these calls, queueing delays are unknown.
    #[inline]
    pub fn on_waited(&mut self, flow: usize, waits: impl Lot<(Span, Span)>) {
        self.phases.on_waited(flow, waits);
    }

    /// Records that an IP packet of this size arrived at the sender of flow number `flow`. Such a packet contains
    /// feedback or an acknowledgement.
    pub fn on_returned(&mut self, flow: usize, size: Size) {
        self.phases.on_returned(flow, size);
    }

    /// Records `reading`, the state of flow number `flow` at the time `at`. The flow must be a TCP connection or web
    /// traffic; for other flows, the call is ignored. `at` must not be earlier than in the previous reading.
    pub fn on_tcp(&mut self, at: Span, flow: usize, reading: &TcpReading) {
        if let Some(record) = self.flows.get_mut(flow) {
            record.on_tcp(at, reading);
        }
    }

    /// Records `reading`, the state of the web traffic of flow number `flow` at the time `at`. This time must not be
    /// earlier than the time of the previous reading. If the flow is not web traffic, the call is ignored.
    pub fn on_web(&mut self, at: Span, flow: usize, reading: WebReading) {
        if let Some(record) = self.flows.get_mut(flow) {
            record.on_web(at, reading);
        }
    }

    /// Records that the web traffic of flow number `flow` completed a fetch at `completed`. The connection of the fetch
    /// was opened at `opened`.
    pub fn on_fetch(&mut self, flow: usize, opened: Span, completed: Span) {
        if let Some(record) = self.flows.get_mut(flow) {
            record.on_fetch(opened, completed);
        }
    }

    /// Records the TCP packets that arrived at the receiver of flow number `flow` since the last call for this flow.
    /// `size` is the total size of their new data and their headers (IP and TCP). RTP packets are recorded as events
    /// instead.
    pub fn on_tcp_received(&mut self, at: Span, flow: usize, size: Size) {
        if let Some(record) = self.flows.get_mut(flow) {
            record.on_received(at, size);
        }
        self.phases.on_tcp_received(at, flow, size);
    }

    /// Returns a row for each interval of a session that ended at least one second, or at least one interval length,
    /// before `at`. Each row is returned only once.
    pub fn take_rows(&mut self, at: Span) -> Vec<IntervalRow> {
        self.flows.iter_mut().flat_map(|flow| flow.take_rows(at)).collect()
    }

    /// Returns the results of all media together, for the whole run and for each phase, in a run of length `lasted`.
    /// `None` if no flow sends media.
    pub fn media(&self, lasted: Span) -> Option<MediaResult> {
        self.phases.finish(lasted)
    }

    /// Returns the results of each flow in a run of length `lasted` during which the machine had these stalls.
    pub fn finish(self, lasted: Span, stalls: &[Stall]) -> Vec<FlowResult> {
        let Self { flows, phases, .. } = self;
        let result = |(number, flow): (usize, FlowRecord)| FlowResult {
            queueing: phases.queueing(number),
            ..flow.finish(lasted, stalls)
        };
        flows.into_iter().enumerate().map(result).collect()
    }
}
