//! From events to metrics, in one pass: what a run did, by flow and control interval.
//!
//! Both worlds feed the same recorder with the same events. A packet belongs to the interval in which it was *sent*
//! (Waki 2013, Sec. 6.2). Only intervals whose packets may still be under way hold a histogram, so that memory is
//! bounded by what is written out in the end.

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

/// Takes the events of a run and gives its results.
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

    /// One end of flow number `flow` did or saw something at `at` after the run's start; events of unknown flows are
    /// passed over.
    #[inline]
    pub fn on_event(&mut self, at: Span, flow: usize, event: &Event) {
        if let Some(record) = self.flows.get_mut(flow) {
            record.on_event(at, self.origin, event);
        }
        self.phases.on_event(at, flow, PathId::default(), event);
    }

    /// Packets of the background traffic that is flow number `flow` left one after the other, each at a time and with a size: the same as an
    /// event for each.
    #[inline]
    pub fn on_departures(&mut self, flow: usize, packets: impl Lot<(Span, Size)>) {
        if let Some(record) = self.flows.get_mut(flow) {
            record.on_sent(packets);
        }
    }

    /// Packets of the background traffic that is flow number `flow` came to its receiver one after the other: the same as an event for each.
    #[inline]
    pub fn on_arrivals(&mut self, flow: usize, packets: impl Lot<Received>) {
        if let Some(record) = self.flows.get_mut(flow) {
            record.on_packets(packets);
        }
    }

    /// The same on one of the paths of a flow that has several.
    pub fn on_path_event(&mut self, at: Span, flow: usize, path: PathId, event: &Event) {
        if let Some(record) = self.flows.get_mut(flow) {
            record.on_path_event(at, self.origin, path, event);
        }
        self.phases.on_event(at, flow, path, event);
    }

    /// Packets come to the receiver of flow number `flow`, each at a time and after it waited in the queues of its way for so long. The event of
    /// a session's packet follows before the next packet is told of. Where this is never said, nobody knows what packets waited.
    #[inline]
    pub fn on_waited(&mut self, flow: usize, waits: impl Lot<(Span, Span)>) {
        self.phases.on_waited(flow, waits);
    }

    /// An IP packet of this size comes back to the sender of flow number `flow`: feedback, or an acknowledgement.
    pub fn on_returned(&mut self, flow: usize, size: Size) {
        self.phases.on_returned(flow, size);
    }

    /// The TCP connection that is flow number `flow` says this of itself at `at`, behind all that it said before; of flows
    /// of another kind it is passed over.
    pub fn on_tcp(&mut self, at: Span, flow: usize, reading: &TcpReading) {
        if let Some(record) = self.flows.get_mut(flow) {
            record.on_tcp(at, reading);
        }
    }

    /// The web traffic that is flow number `flow` says this of itself at `at`, behind all that it said before; of flows of another
    /// kind it is passed over.
    pub fn on_web(&mut self, at: Span, flow: usize, reading: WebReading) {
        if let Some(record) = self.flows.get_mut(flow) {
            record.on_web(at, reading);
        }
    }

    /// A fetch of the web traffic that is flow number `flow` is complete, whose connection was opened at `opened`.
    pub fn on_fetch(&mut self, flow: usize, opened: Span, completed: Span) {
        if let Some(record) = self.flows.get_mut(flow) {
            record.on_fetch(opened, completed);
        }
    }

    /// IP packets of TCP with this size, headers included, came to the receiver of flow number `flow` since the last such call;
    /// those of RTP are events. It is passed over if the rates at the flow's receiver are not sampled.
    pub fn on_tcp_received(&mut self, at: Span, flow: usize, size: Size) {
        if let Some(record) = self.flows.get_mut(flow) {
            record.on_received(at, size);
        }
        self.phases.on_tcp_received(at, flow, size);
    }

    /// The sessions' intervals that have ended before `at`, each given out once.
    pub fn take_rows(&mut self, at: Span) -> Vec<IntervalRow> {
        self.flows.iter_mut().flat_map(|flow| flow.take_rows(at)).collect()
    }

    /// What all media did together, and in each phase, in a run that lasted so long; `None` if no flow sends media.
    pub fn media(&self, lasted: Span) -> Option<MediaResult> {
        self.phases.finish(lasted)
    }

    /// The results of a run that lasted so long, in which the machine stalled so often.
    pub fn finish(self, lasted: Span, stalls: &[Stall]) -> Vec<FlowResult> {
        let Self { flows, phases, .. } = self;
        let result = |(number, flow): (usize, FlowRecord)| FlowResult {
            queueing: phases.queueing(number),
            ..flow.finish(lasted, stalls)
        };
        flows.into_iter().enumerate().map(result).collect()
    }
}
