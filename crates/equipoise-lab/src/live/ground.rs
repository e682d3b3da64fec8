//! The environment of a live run, and how its endpoints report to the main thread.

use std::sync::mpsc::Sender as Post;

use equipoise::control::PathLoad;
use equipoise::units::{Size, Span};
use equipoise_net::flow_pair::WindowControl;
use equipoise_net::{Clock, LoadProbe, Observer, TestBed, Time, WebFetched};
use equipoise_session::{Event, Half, PathId};

use crate::record::{TcpReading, WebReading};

/// The environment, start time and seed of a run.
pub(super) struct Ground<'a> {
    pub(super) clock: &'a Clock,
    pub(super) origin: Time,
    pub(super) seed: u64,
    /// The network namespaces; `None` if the run uses the loopback interface.
    pub(super) bed: Option<&'a TestBed>,
    /// Takes the name of a congestion control. Returns the [`WindowControl`] of flow pairs whose TCP uses this
    /// congestion control; `None` if the window cannot be set with this congestion control.
    pub(super) window_control: &'a dyn Fn(&str) -> Option<WindowControl>,
}

/// A message from the thread of an endpoint or from the thread of the emulator. It is about flow number `flow`.
pub(super) struct Note {
    pub(super) at: Time,
    pub(super) flow: usize,
    pub(super) said: Said,
}

pub(super) enum Said {
    /// An event at one endpoint of a session, of background traffic or of a flow pair. The path is `Some` if the
    /// session has several paths and the event belongs to one of them.
    Event(Option<PathId>, Half, Event),
    /// The current state of a TCP connection.
    Tcp(TcpReading),
    /// The current state of web traffic, and the fetches completed since the previous message of this kind.
    Web(WebReading, Vec<WebFetched>),
    /// The receiver of a flow pair read this much data from TCP.
    Stream(Size),
    /// A packet is about to arrive at the flow's receiver. `waited` is the total time that the packet waited in queues;
    /// `sequence` is the sequence number of a media packet.
    Waited { waited: Span, sequence: Option<u16> },
    /// A packet of this size is about to arrive at the flow's sender.
    Returned(Size),
}

/// Sends the events of a flow's endpoint to the main thread. If the flow's controller needs the load of the path, also
/// measures this load.
pub(super) struct Poster {
    pub(super) flow: usize,
    /// Whether the endpoint sends or receives the flow's media.
    pub(super) half: Half,
    /// For a session with media in both directions, the number of the flow whose media the endpoint receives. The
    /// endpoint sends the media of `flow`. `None` for any other endpoint.
    pub(super) receives: Option<usize>,
    pub(super) post: Post<Note>,
    pub(super) load: Option<(LoadProbe, PathLoad)>,
}

impl Poster {
    pub(super) fn tell(&self, note: Note) {
        // The main thread outlives the endpoints. If the channel is closed nevertheless, nobody needs the note.
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
