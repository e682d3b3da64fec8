//! Opens, runs and ends the sessions, each on its own thread.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::mpsc;
use std::thread;

use equipoise::control::BoxedController;
use equipoise::control::scheduler::BoxedScheduler;
use equipoise_net::{
    Clock, FetchConfig, HostStats, Multipath, MultipathSession, NetError, Observer, PayloadSender, Running, SendConfig,
    Socket, Time, fetch, send, send_multipath,
};
use equipoise_session::multipath::{PathLaws, Total};
use equipoise_session::{Event, PathChange, PathId, multipath, rtp};

use super::super::args::Send;

/// A session to open.
pub(super) enum Planned {
    /// A session in which this host sends.
    Send(Box<SendConfig>, BoxedController, Source),
    /// A session in which the remote host sends.
    Fetch(Box<FetchConfig>, Socket),
}

/// The socket, or the paths, through which a session sends its packets.
pub(super) enum Source {
    Socket(Socket),
    /// One or more paths, and the function that creates a controller for each path. The function is used only if each
    /// path has its own controller.
    Paths(Clock, Multipath, PathLaws),
}

/// Opens a socket, at any free port, that can send to `peer`.
pub(super) fn socket(options: &Send, peer: SocketAddr, clock: &Clock) -> Result<Socket, NetError> {
    let any: IpAddr = if peer.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let mut socket = Socket::bind((options.bind.unwrap_or(any), 0).into(), clock)?;
    socket.set_dscp(options.ends.dscp);
    Ok(socket)
}

impl Source {
    /// Opens a socket, or the paths that the user requested.
    pub(super) fn of(
        options: &Send,
        peer: SocketAddr,
        (scheduler, laws): (BoxedScheduler, PathLaws),
        clock: &Clock,
    ) -> Result<Self, NetError> {
        if options.path.is_empty() {
            return Ok(Self::Socket(socket(options, peer, clock)?));
        }
        let multipath = Multipath::new(options.path.clone(), scheduler);
        // By default, the scheduler's period is not shorter than the interval between reports, so that a period
        // contains a report.
        let period = options.scheduler_period.unwrap_or(multipath.period.max(options.report_interval));
        Ok(Self::Paths(clock.clone(), Multipath { period, dscp: options.ends.dscp, ..multipath }, laws))
    }
}

impl Planned {
    /// Returns the session's socket; `None` if the session sends over paths, each of which has its own socket.
    pub(super) const fn socket(&self) -> Option<&Socket> {
        match self {
            Self::Send(_, _, Source::Socket(socket)) | Self::Fetch(_, socket) => Some(socket),
            Self::Send(_, _, Source::Paths(..)) => None,
        }
    }

    fn open(self, poster: Poster) -> Result<(Stream, Option<PayloadSender>), NetError> {
        Ok(match self {
            Self::Send(config, controller, Source::Socket(socket)) => {
                let (running, payloads) = send(socket, &config, controller, poster)?;
                (Stream::OnePath(running), payloads)
            }
            Self::Send(config, controller, Source::Paths(clock, multipath, laws)) => {
                let session = send_multipath(&clock, &config, multipath, Total::of(controller, laws), poster)?;
                let MultipathSession { running, payloads, .. } = session;
                (Stream::SeveralPaths(running), payloads)
            }
            Self::Fetch(config, socket) => (Stream::Reverse(fetch(socket, &config, poster)?), None),
        })
    }
}

/// An open session.
pub(super) enum Stream {
    OnePath(Running<rtp::Sender, Poster>),
    SeveralPaths(Running<multipath::Sender, Poster>),
    Reverse(Running<rtp::Receiver, Poster>),
}

impl Stream {
    pub(super) fn is_finished(&self) -> bool {
        match self {
            Self::OnePath(running) => running.is_finished(),
            Self::SeveralPaths(running) => running.is_finished(),
            Self::Reverse(running) => running.is_finished(),
        }
    }

    fn request_stop(&self) {
        match self {
            Self::OnePath(running) => running.request_stop(),
            Self::SeveralPaths(running) => running.request_stop(),
            Self::Reverse(running) => running.request_stop(),
        }
    }

    fn stop(self) -> Result<HostStats, NetError> {
        match self {
            Self::OnePath(running) => running.stop().map(|finished| finished.stats),
            Self::SeveralPaths(running) => running.stop().map(|finished| finished.stats),
            Self::Reverse(running) => running.stop().map(|finished| finished.stats),
        }
    }
}

/// Opens all sessions in parallel. In sequence, each session would wait for the round trips of all earlier sessions.
pub(super) fn open(
    planned: Vec<Planned>,
    post: &mpsc::Sender<Note>,
) -> Result<(Vec<Stream>, Option<PayloadSender>), NetError> {
    let opened: Vec<_> = thread::scope(|scope| {
        let opening = planned.into_iter().enumerate().map(|(stream, planned)| {
            let poster = Poster { stream, post: post.clone() };
            scope.spawn(move || planned.open(poster))
        });
        let opening: Vec<_> = opening.collect();
        opening.into_iter().map(|opening| opening.join().map_err(|_| panicked()).flatten()).collect()
    });
    let mut streams = Vec::new();
    let mut payloads = None;
    for opened in opened {
        let (stream, its) = opened?;
        streams.push(stream);
        payloads = payloads.or(its);
    }
    Ok((streams, payloads))
}

fn panicked() -> NetError {
    NetError::Panicked { name: "opening".to_owned() }
}

/// Ends all sessions. Returns for each session the counters of its thread, or the session's error.
pub(super) fn stop(streams: Vec<Stream>) -> Vec<Result<HostStats, NetError>> {
    streams.iter().for_each(Stream::request_stop);
    streams.into_iter().map(Stream::stop).collect()
}

/// A message from a session's thread to the main thread, with the time of the event.
pub(super) struct Note {
    pub(super) at: Time,
    /// The number of the session.
    pub(super) stream: usize,
    pub(super) what: What,
}

pub(super) enum What {
    /// An event of the session, or of one of its paths if the session has several paths.
    Event(Option<PathId>, Event),
    Path(PathId, PathChange),
}

/// Sends a session's events to the main thread, which runs longer than the session.
pub(super) struct Poster {
    stream: usize,
    post: mpsc::Sender<Note>,
}

impl Poster {
    fn tell(&self, at: Time, what: What) {
        let _ = self.post.send(Note { at, stream: self.stream, what });
    }
}

impl Observer for Poster {
    fn on_event(&mut self, now: Time, event: &Event) {
        self.tell(now, What::Event(None, *event));
    }

    fn on_path_event(&mut self, now: Time, path: PathId, event: &Event) {
        self.tell(now, What::Event(Some(path), *event));
    }

    fn on_path(&mut self, now: Time, path: PathId, change: PathChange) {
        self.tell(now, What::Path(path, change));
    }
}
