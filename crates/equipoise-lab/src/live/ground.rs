//! Where a live run takes place, and how its ends report to the main thread.

use std::sync::mpsc::Sender as Post;

use equipoise::control::PathLoad;
use equipoise::units::{Size, Span};
use equipoise_net::flow_pair::WindowControl;
use equipoise_net::{Clock, LoadProbe, Observer, TestBed, Time, WebFetched};
use equipoise_session::{Event, Half, PathId};

use crate::record::{TcpReading, WebReading};

/// Where and when a run takes place, and its seed.
pub(super) struct Ground<'a> {
    pub(super) clock: &'a Clock,
    pub(super) origin: Time,
    pub(super) seed: u64,
    /// The hosts; `None` for this host's loopback.
    pub(super) bed: Option<&'a TestBed>,
    /// Who can set the window of a flow pair's TCP under a congestion control.
    pub(super) window_control: &'a dyn Fn(&str) -> Option<WindowControl>,
}

/// What the thread of an endpoint, or that of the emulator, tells of flow number `flow`.
pub(super) struct Note {
    pub(super) at: Time,
    pub(super) flow: usize,
    pub(super) said: Said,
}

pub(super) enum Said {
    /// This end of a session or of background traffic did or saw something, on one of its paths where it has several.
    Event(Option<PathId>, Half, Event),
    /// A TCP connection is like this.
    Tcp(TcpReading),
    /// Web traffic is like this, and completed these fetches.
    Web(WebReading, Vec<WebFetched>),
    /// The receiver of a flow pair read this much of what came over TCP.
    Stream(Size),
    /// A packet is about to come to the flow's receiver, after it waited in queues for so long; of media with its number.
    Waited { waited: Span, sequence: Option<u16> },
    /// A packet of this size is about to come back to the flow's sender.
    Returned(Size),
}

/// Posts what a flow's end says to the main thread, and knows the load of its path where that is wanted.
pub(super) struct Poster {
    pub(super) flow: usize,
    /// What the end does of the flow's media.
    pub(super) half: Half,
    /// The flow whose media the end receives, if it sends those of `flow`.
    pub(super) receives: Option<usize>,
    pub(super) post: Post<Note>,
    pub(super) load: Option<(LoadProbe, PathLoad)>,
}

impl Poster {
    pub(super) fn tell(&self, note: Note) {
        // The main thread outlives the ends; if it is gone, there is nobody to tell.
        let _ = self.post.send(note);
    }
}

impl Observer for Poster {
    fn on_event(&mut self, now: Time, event: &Event) {
        if let (Event::ReportRequested { .. }, Some((probe, cell))) = (event, &mut self.load) {
            probe.load(now).into_iter().for_each(|load| cell.set(load));
        }
        let other = self.receives.filter(|_| event.half() == Half::Receiving);
        let (flow, half) = other.map_or((self.flow, self.half), |flow| (flow, Half::Receiving));
        self.tell(Note { at: now, flow, said: Said::Event(None, half, *event) });
    }

    fn on_path_event(&mut self, now: Time, path: PathId, event: &Event) {
        self.tell(Note { at: now, flow: self.flow, said: Said::Event(Some(path), self.half, *event) });
    }

    fn on_stream(&mut self, now: Time, read: Size) {
        self.tell(Note { at: now, flow: self.flow, said: Said::Stream(read) });
    }
}
