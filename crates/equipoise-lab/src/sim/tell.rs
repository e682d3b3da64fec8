//! Who is told of a run while it goes on.

use equipoise::units::{Instant, Span};
use equipoise_session::{Event, Half, PathId};
use equipoise_sim::Datagram;

use crate::Progress;

/// Who is told of a run while it goes on.
pub(super) trait Tell {
    fn event(&mut self, at: Span, flow: usize, of: Of, event: &Event);
    /// A packet came to the far end, for which it had waited in queues for so long; its event follows.
    fn waited(&mut self, _at: Span, _flow: usize, _waited: Span) {}
    /// A datagram left one end or came to one.
    fn datagram(&mut self, _at: Span, _datagram: &Datagram<'_>) {}
    /// All events up to `until` have been told; this share of the run is done.
    fn come_to(&mut self, until: Span, share: f64);
}

/// Whose event it is: of which end of a flow, and of which of its paths if it is of one.
#[derive(Clone, Copy)]
pub(super) struct Of {
    pub(super) half: Half,
    pub(super) path: Option<PathId>,
}

/// Nobody.
pub(super) struct Silence;

impl Tell for Silence {
    fn event(&mut self, _: Span, _: usize, _: Of, _: &Event) {}
    fn come_to(&mut self, _: Span, _: f64) {}
}

/// Somebody who only wants to know how much is done.
pub(super) struct Shares<'a>(pub(super) &'a (dyn Fn(f64) + Sync));

impl Tell for Shares<'_> {
    fn event(&mut self, _: Span, _: usize, _: Of, _: &Event) {}

    fn come_to(&mut self, _: Span, share: f64) {
        (self.0)(share);
    }
}

/// Sees the events of a run.
pub trait RunObserver {
    /// One end of flow number `flow` did or saw something at `at` after the run's start; after the end of the run, what was
    /// still under way arrives. The events of one end come in the order of their times.
    fn on_event(&mut self, at: Span, flow: usize, event: &Event);

    /// A packet of flow number `flow` came to its receiver, for which it had waited in queues for so long. If it was media, its event
    /// follows.
    fn on_waited(&mut self, _at: Span, _flow: usize, _waited: Span) {}
}

/// An observer of a run's events.
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

/// Somebody who wants the events in order, though the world may tell a stream's ahead of time.
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
