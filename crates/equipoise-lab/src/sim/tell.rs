//! Observers of a simulated run.

use equipoise::units::{Instant, Span};
use equipoise_session::{Event, Half, PathId};
use equipoise_sim::Datagram;

use crate::Progress;

/// Receives the events of a simulated run.
pub(super) trait Tell {
    fn event(&mut self, at: Span, flow: usize, of: Of, event: &Event);
    /// A packet arrived at the far endpoint after it had waited in queues for `_waited` in total. If it carries media,
    /// the event of its arrival follows.
    fn waited(&mut self, _at: Span, _flow: usize, _waited: Span) {}
    /// A datagram left or reached one endpoint.
    fn datagram(&mut self, _at: Span, _datagram: &Datagram<'_>) {}
    /// All events until the time `until` have been reported, and the share `share` of the run is complete.
    fn come_to(&mut self, until: Span, share: f64);
}

/// The origin of an event: an endpoint of a flow, and the path if the event belongs to a single path.
#[derive(Clone, Copy)]
pub(super) struct Of {
    pub(super) half: Half,
    pub(super) path: Option<PathId>,
}

/// An observer that ignores all events.
pub(super) struct Silence;

impl Tell for Silence {
    fn event(&mut self, _: Span, _: usize, _: Of, _: &Event) {}
    fn come_to(&mut self, _: Span, _: f64) {}
}

/// An observer that reports only the completed share of the run.
pub(super) struct Shares<'a>(pub(super) &'a (dyn Fn(f64) + Sync));

impl Tell for Shares<'_> {
    fn event(&mut self, _: Span, _: usize, _: Of, _: &Event) {}

    fn come_to(&mut self, _: Span, share: f64) {
        (self.0)(share);
    }
}

/// Observes the events of a simulated run.
pub trait RunObserver {
    /// Reports an event of one endpoint of flow number `flow`; `at` is the time since the run's start. Packets that are
    /// in flight at the end of the run still arrive, so `at` can be later than this end. The events of each endpoint
    /// are in order of time.
    fn on_event(&mut self, at: Span, flow: usize, event: &Event);

    /// Reports that a packet of flow number `flow` arrived at its receiver. `waited` is the total time for which the
    /// packet waited in queues. If the packet was media, the event of its arrival follows.
    fn on_waited(&mut self, _at: Span, _flow: usize, _waited: Span) {}
}

/// Passes the events of a run to an observer.
pub(super) struct Observed<O>(pub(super) O);

impl<O: RunObserver> Tell for Observed<O> {
    fn event(&mut self, at: Span, flow: usize, _: Of, event: &Event) {
        self.0.on_event(at, flow, event);
    }

    fn waited(&mut self, at: Span, flow: usize, waited: Span) {
        self.0.on_waited(at, flow, waited);
    }

    fn come_to(&mut self, _: Span, _: f64) {}
}

/// Passes on the events of a run in order of time. It sorts them, because the simulator may report events of background
/// traffic before earlier events of other endpoints.
pub(super) struct InOrder<'a> {
    early: Vec<(Span, usize, Of, Event)>,
    progress: &'a mut dyn FnMut(Progress),
    datagrams: &'a mut dyn FnMut(Span, &Datagram<'_>),
}

impl<'a> InOrder<'a> {
    pub(super) fn new(
        progress: &'a mut dyn FnMut(Progress),
        datagrams: &'a mut dyn FnMut(Span, &Datagram<'_>),
    ) -> Self {
        Self { early: Vec::new(), progress, datagrams }
    }
}

impl Tell for InOrder<'_> {
    fn event(&mut self, at: Span, flow: usize, of: Of, event: &Event) {
        self.early.push((at, flow, of, *event));
    }

    fn datagram(&mut self, at: Span, datagram: &Datagram<'_>) {
        (self.datagrams)(at, datagram);
    }

    fn come_to(&mut self, until: Span, share: f64) {
        self.early.sort_by_key(|(at, ..)| *at);
        let due = self.early.partition_point(|(at, ..)| *at <= until);
        for (at, flow, Of { half, path }, event) in self.early.drain(..due) {
            (self.progress)(Progress::Event { at, origin: Instant::ZERO, flow, path, half, event });
        }
        (self.progress)(Progress::Share(share));
    }
}
