use std::collections::VecDeque;

use equipoise::units::{Instant, ReceiverClock, Size};
use equipoise_session::{Endpoint, Input, Output, PathId, Wake, WakeReason};

use super::{Fetched, Request, Requests};
use crate::Time;
use crate::tcp::{Encoded, Receiver, ReceiverConfig, Segment, TcpError};

/// The receiving endpoint of web traffic.
pub struct WebFar {
    host: ReceiverConfig,
    requests: Requests,
    /// The last connection on each path, by path number.
    connections: Vec<Option<Connection>>,
    /// Acknowledgements to be sent, each with the path of its connection.
    answers: VecDeque<(usize, Encoded)>,
    delivered: Size,
    /// Number of data segments received.
    received: u64,
    fetched: Vec<Fetched>,
    encoded: Encoded,
}

struct Connection {
    receiver: Receiver,
    request: Request,
    complete: bool,
}

impl WebFar {
    pub(super) fn new(host: ReceiverConfig, places: usize, requests: Requests) -> Result<Self, TcpError> {
        // All receivers have the same configuration, so if one can be created, all can.
        Receiver::new(host)?;
        Ok(Self {
            host,
            requests,
            connections: std::iter::repeat_with(|| None).take(places).collect(),
            answers: VecDeque::new(),
            delivered: Size::ZERO,
            received: 0,
            fetched: Vec::new(),
            encoded: Encoded::EMPTY,
        })
    }

    /// Size of the data received over all connections; duplicates count once.
    pub const fn delivered(&self) -> Size {
        self.delivered
    }

    /// Number of data segments received over all connections.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Returns the fetches completed since the last call, in order of completion. Completed fetches are stored until
    /// this method is called.
    pub fn take_fetched(&mut self) -> Vec<Fetched> {
        std::mem::take(&mut self.fetched)
    }

    /// Returns the connection on path `place` for the fetch with the number `tag`. Creates the connection when its
    /// first segment arrives. Returns `None` for late segments of an older connection on this path.
    fn connection(&mut self, place: usize, tag: u16) -> Option<&mut Connection> {
        let found = self.connections.get_mut(place)?;
        if found.as_ref().is_none_or(|connection| connection.request.tag != tag) {
            let request = self.requests.get(place).filter(|request| request.tag == tag)?;
            *found = Some(Connection { receiver: Receiver::new(self.host).ok()?, request, complete: false });
        }
        found.as_mut()
    }

    fn on_segment(&mut self, now: Time, place: usize, datagram: &[u8]) -> Option<()> {
        let (segment, tag) = (Segment::decode(datagram)?, Segment::tag(datagram));
        let Connection { receiver, request, complete } = self.connection(place, tag)?;
        let (before, (segments, _)) = (receiver.delivered(), receiver.received());
        let answer = receiver.on_segment(now, segment);
        let news = receiver.delivered() - before;
        let more = receiver.received().0 - segments;
        let is_all = !*complete && receiver.delivered() >= request.size;
        *complete |= is_all;
        let Request { opened, size, .. } = *request;
        self.delivered = self.delivered + news;
        self.received += more;
        if is_all {
            self.fetched.push(Fetched { opened, completed: now, size });
        }
        self.answers.extend(answer.map(|answer| (place, answer.encode().tagged(tag))));
        Some(())
    }

    fn on_timer(&mut self, now: Time) {
        for (place, connection) in self.connections.iter_mut().enumerate() {
            let Some(Connection { receiver, request, .. }) = connection else { continue };
            let answer = receiver.on_timer(now);
            self.answers.extend(answer.map(|answer| (place, answer.encode().tagged(request.tag))));
        }
    }
}

impl Endpoint for WebFar {
    type Clock = ReceiverClock;

    fn handle(&mut self, now: Instant<ReceiverClock>, input: Input<'_>) {
        let now = now.assume_clock();
        match input {
            Input::Datagram { path: PathId(place), datagram, .. } => {
                // If no connection matches, the segment is ignored.
                let _ = self.on_segment(now, usize::from(place), datagram);
            }
            Input::Timer => self.on_timer(now),
            _ => {}
        }
    }

    fn poll(&mut self) -> Option<Output<'_>> {
        let (place, encoded) = self.answers.pop_front()?;
        self.encoded = encoded;
        // The cast is exact, because path numbers have 16 bits and there are no more paths than path numbers.
        Some(Output::Transmit { path: PathId(place as u16), transmit: self.encoded.transmit() })
    }

    fn wake(&self) -> Option<Wake<ReceiverClock>> {
        let wakes = self.connections.iter().flatten().filter_map(|connection| connection.receiver.wake());
        Some(Wake { at: wakes.min()?.assume_clock(), reason: WakeReason::Report })
    }
}
