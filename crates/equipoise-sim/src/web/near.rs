use std::collections::VecDeque;

use equipoise::control::window::WindowSnapshot;
use equipoise::units::{Instant, SenderClock, Span};
use equipoise_path::source::{Fetch, Web};
use equipoise_session::{Endpoint, Input, Output, PathId, Wake, WakeReason};

use super::{Request, Requests, WebParts, WebTrafficError};
use crate::Time;
use crate::tcp::{Encoded, Law, Segment, Sender, SenderConfig, SenderStats, Supply};

/// The sending endpoint of web traffic. It opens a connection for each fetch.
pub struct WebNear {
    web: Web<SenderClock>,
    /// Configuration of each connection; its start and supply are replaced for each fetch.
    host: SenderConfig,
    law: Box<dyn FnMut(u64) -> Option<Law> + Send>,
    requests: Requests,
    /// The open connection on each path, by path number; `None` for a path without an open connection.
    connections: Vec<Option<Box<Connection>>>,
    /// The numbers of the paths with an open connection.
    open: Vec<usize>,
    /// Indices, in `connections`, of the connections that may have a segment to send.
    pending: VecDeque<usize>,
    opened: u64,
    /// Total counters of all closed connections.
    closed: SenderStats,
    stop: Option<Time>,
    handled: Time,
    encoded: Encoded,
}

struct Connection {
    sender: Sender,
    tag: u16,
}

impl WebNear {
    pub(super) fn new(parts: WebParts, requests: Requests) -> Result<Self, WebTrafficError> {
        let WebParts { web, seed, near: host, mut law, .. } = parts;
        let web = Web::new(web, host.start.assume_clock(), seed)?;
        // All senders have the same configuration, so if one can be created, all can.
        Sender::new(host.clone(), law(0).ok_or(WebTrafficError::NoLaw)?)?;
        let stop = host.stop;
        let host = SenderConfig { stop: None, handshake: true, measurement: None, bandwidth: None, ..host };
        Ok(Self {
            connections: std::iter::repeat_with(|| None).take(web.connections()).collect(),
            web,
            host,
            law,
            requests,
            open: Vec::new(),
            pending: VecDeque::new(),
            opened: 0,
            closed: SenderStats::NONE,
            stop,
            handled: Time::ZERO,
            encoded: Encoded::EMPTY,
        })
    }

    /// Maximum number of simultaneous connections. Each connection is a path of the flow, numbered from 0.
    pub const fn places(&self) -> usize {
        self.web.connections()
    }

    /// Number of connections opened so far. Each connection serves one fetch.
    pub const fn opened(&self) -> u64 {
        self.opened
    }

    /// Total time until `now` that web flows were ON, as the sum over all web flows.
    pub fn time_on(&self, now: Time) -> Span {
        self.web.time_on(now.assume_clock())
    }

    /// Total counters of all connections. The window and the number of segments in flight are sums over the open
    /// connections. Of the round-trip times, only the minimum is set.
    pub fn stats(&self) -> SenderStats {
        let connections = self.open.iter().filter_map(|&place| self.connections.get(place)?.as_ref());
        connections.fold(self.closed, |sum, connection| {
            let stats = connection.sender.stats();
            let sum = sum.and(&stats);
            SenderStats { window: sum.window + stats.window, in_flight: sum.in_flight + stats.in_flight, ..sum }
        })
    }

    /// Opens connections for all fetches that start at `now`.
    fn begin(&mut self, now: Time) {
        while let Some(fetch) = self.web.begin(now.assume_clock()) {
            let place = fetch.connection;
            if !self.open(now, &fetch) {
                self.web.complete(now.assume_clock(), place);
            }
        }
    }

    /// Opens a connection for a fetch. Returns whether the connection could be opened.
    fn open(&mut self, now: Time, fetch: &Fetch) -> bool {
        let Fetch { connection: place, burst, size } = *fetch;
        let config = SenderConfig { start: now, supply: Supply::Transfer(size), ..self.host.clone() };
        let sender = (self.law)(self.opened).and_then(|law| Sender::new(config, law).ok());
        let (Some(mut sender), Some(free)) = (sender, self.connections.get_mut(place)) else { return false };
        // The tag is the lower 16 bits of the burst's number. Bursts with the same tag are so far apart in time that
        // their segments are never in flight together.
        let tag = burst as u16;
        self.requests.set(place, Request { tag, opened: now, size });
        sender.on_timer(now);
        *free = Some(Box::new(Connection { sender, tag }));
        self.open.push(place);
        self.pending.push_back(place);
        self.opened += 1;
        true
    }

    fn on_segment(&mut self, now: Time, place: usize, datagram: &[u8]) {
        let Some(Some(connection)) = self.connections.get_mut(place) else { return };
        let Some(segment) = Segment::decode(datagram).filter(|_| Segment::tag(datagram) == connection.tag) else {
            return;
        };
        connection.sender.on_segment(now, segment);
        let stats = connection.sender.finished().map(|_| connection.sender.stats());
        match stats {
            None => self.pending.push_back(place),
            Some(stats) => {
                self.closed = self.closed.and(&stats);
                self.connections[place] = None;
                self.open.retain(|open| *open != place);
                self.web.complete(now.assume_clock(), place);
            }
        }
    }

    fn on_timer(&mut self, now: Time) {
        if self.stop.is_some_and(|stop| stop <= now) {
            self.stop = None;
            self.web.stop();
        }
        for &place in &self.open {
            if let Some(Some(connection)) = self.connections.get_mut(place)
                && connection.sender.wake().is_some_and(|wake| wake <= now)
            {
                connection.sender.on_timer(now);
                self.pending.push_back(place);
            }
        }
    }

    /// Stops the application: no more fetches start, and open connections send no new data.
    fn end(&mut self, now: Time) {
        self.web.stop();
        for connection in self.connections.iter_mut().flatten() {
            connection.sender.stop(now);
        }
    }
}

impl SenderStats {
    /// The total of no connections: all counters are zero.
    const NONE: Self = Self {
        window: 0.0,
        slow_start_threshold: None,
        in_flight: 0,
        round_trip: None,
        smoothed_round_trip: None,
        min_round_trip: None,
        sent: 0,
        acknowledged: 0,
        resent_in_recovery: 0,
        resent_after_timeout: 0,
        recoveries: 0,
        timeouts: 0,
        finished: None,
        law: WindowSnapshot { gamma: None, bandwidth: None },
    };

    /// Adds the counters of another connection. The result has the smaller of the two minimum round-trip times.
    fn and(&self, more: &Self) -> Self {
        Self {
            sent: self.sent + more.sent,
            acknowledged: self.acknowledged + more.acknowledged,
            resent_in_recovery: self.resent_in_recovery + more.resent_in_recovery,
            resent_after_timeout: self.resent_after_timeout + more.resent_after_timeout,
            recoveries: self.recoveries + more.recoveries,
            timeouts: self.timeouts + more.timeouts,
            min_round_trip: self.min_round_trip.into_iter().chain(more.min_round_trip).min(),
            ..*self
        }
    }
}

impl Endpoint for WebNear {
    type Clock = SenderClock;

    fn handle(&mut self, now: Instant<SenderClock>, input: Input<'_>) {
        let now = now.assume_clock();
        self.handled = now;
        match input {
            Input::Datagram { path: PathId(place), datagram, .. } => {
                self.on_segment(now, usize::from(place), datagram);
            }
            Input::Timer => self.on_timer(now),
            Input::Stop => self.end(now),
            // Inputs of an application do not occur, because the application is part of this endpoint. Path changes
            // have no effect.
            _ => {}
        }
        self.begin(now);
    }

    fn poll(&mut self) -> Option<Output<'_>> {
        while let Some(&place) = self.pending.front() {
            let connection = self.connections.get_mut(place).and_then(Option::as_mut);
            if let Some(connection) = connection
                && let Some(segment) = connection.sender.poll(self.handled)
            {
                self.encoded = segment.encode().tagged(connection.tag);
                // The cast is exact, because each connection is a path, and path numbers have 16 bits.
                let path = PathId(place as u16);
                return Some(Output::Transmit { path, transmit: self.encoded.transmit() });
            }
            self.pending.pop_front();
        }
        None
    }

    fn wake(&self) -> Option<Wake<SenderClock>> {
        let connections = self.open.iter().filter_map(|&place| self.connections.get(place)?.as_ref()?.sender.wake());
        let next: Option<Time> = self.web.next_burst().map(Instant::assume_clock);
        let at = connections.chain(next).chain(self.stop).min()?;
        Some(Wake { at: at.assume_clock(), reason: WakeReason::Media })
    }
}
