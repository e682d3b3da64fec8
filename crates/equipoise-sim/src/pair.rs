//! The endpoints of a flow pair in the simulator. Each of them combines a sender or a receiver of `equipoise_pair` with
//! a TCP host.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use equipoise::units::{Instant, ReceiverClock, SenderClock, Size};
use equipoise_pair::{Adu, Input as PairInput, Output as PairOutput, TcpRequest, TcpState};
use equipoise_session::{Carrier, Ecn, Endpoint, Event, Input, Output, PathId, Transmit, Wake, WakeReason};

use crate::Time;
use crate::tcp::{self, Segment};

/// The parts of a flow pair: two endpoints, a TCP host for each endpoint, and an application that always has another
/// ADU (application data unit) to send.
pub struct PairParts {
    /// The endpoint that sends ADUs.
    pub near: equipoise_pair::Sender,
    /// The endpoint that receives ADUs.
    pub far: equipoise_pair::Receiver,
    /// The TCP host that sends the data of the TCP flow. Its supply must be [`Supply::Written`](tcp::Supply::Written),
    /// and it must not reset its congestion window after idleness.
    pub tcp_near: tcp::Sender,
    /// The TCP host that receives the data of the TCP flow.
    pub tcp_far: tcp::Receiver,
    /// Size of the IP packet of a full TCP segment.
    pub packet: Size,
    /// Size of an ADU.
    pub adu: Size,
    /// When the application starts to send.
    pub start: Time,
}

/// The bytes of the TCP stream that were written and are not read yet. They are stored here, because the simulator's
/// TCP carries only sizes.
#[derive(Debug, Default)]
struct Stream {
    bytes: VecDeque<u8>,
    /// Whether the sender has finished the stream.
    finished: bool,
}

/// The TCP stream, shared by both endpoints of a pair.
#[derive(Clone, Debug, Default)]
struct Shared(Arc<Mutex<Stream>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Stream> {
        // After each change the stream is consistent, so it can still be used if another thread panicked while it held
        // the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates the two endpoints of a flow pair from its parts.
pub fn pair(parts: PairParts) -> (PairNear, PairFar) {
    let PairParts { near, far, tcp_near, tcp_far, packet, adu, start } = parts;
    let stream = Shared::default();
    let near = PairNear {
        pair: near,
        tcp: tcp_near,
        segment: packet - tcp::HEADER,
        start,
        adu: vec![0; adu.as_bytes() as usize],
        stream: stream.clone(),
        finished: false,
        handled: Time::ZERO,
        outbox: Outbox::default(),
    };
    let arrivals = Arrivals::default();
    (near, PairFar { pair: far, tcp: tcp_far, stream, arrivals, outbox: Outbox::default() })
}

/// Pending outputs of an endpoint, in order.
#[derive(Debug, Default)]
struct Outbox {
    items: VecDeque<Item>,
    head: Vec<u8>,
    spare: Vec<Vec<u8>>,
    segment: Option<crate::tcp::Encoded>,
}

#[derive(Debug)]
enum Item {
    Segment(Segment),
    Datagram { head: Vec<u8>, media: usize },
    Event(Event),
}

impl Outbox {
    fn segment(&mut self, segment: Segment) {
        self.items.push_back(Item::Segment(segment));
    }

    fn datagram(&mut self, transmit: &Transmit<'_>) {
        let mut head = self.spare.pop().unwrap_or_default();
        head.clear();
        head.extend_from_slice(transmit.head);
        self.items.push_back(Item::Datagram { head, media: transmit.media });
    }

    fn event(&mut self, event: Event) {
        self.items.push_back(Item::Event(event));
    }

    fn poll(&mut self) -> Option<Output<'_>> {
        let path = PathId::default();
        match self.items.pop_front()? {
            Item::Event(event) => Some(Output::Event { path: None, event }),
            Item::Segment(segment) => {
                let encoded = self.segment.insert(segment.encode());
                Some(Output::Transmit { path, transmit: encoded.transmit() })
            }
            Item::Datagram { head, media } => {
                self.spare.push(std::mem::replace(&mut self.head, head));
                let transmit = Transmit { head: &self.head, media, carrier: Carrier::Udp, ecn: Ecn::NotCapable };
                Some(Output::Transmit { path, transmit })
            }
        }
    }
}

/// The sending endpoint of a flow pair.
pub struct PairNear {
    pair: equipoise_pair::Sender,
    tcp: tcp::Sender,
    /// Size of the data in a full TCP segment.
    segment: Size,
    start: Time,
    /// The ADU that the application sends repeatedly.
    adu: Vec<u8>,
    stream: Shared,
    finished: bool,
    handled: Time,
    outbox: Outbox,
}

impl PairNear {
    /// The TCP host of this endpoint.
    pub const fn tcp(&self) -> &tcp::Sender {
        &self.tcp
    }

    fn tcp_state(&self) -> TcpState {
        let stats = self.tcp.stats();
        let (acknowledged, unsent) = self.tcp.written();
        TcpState {
            acknowledged,
            unsent,
            window: Size::from_bytes((stats.window * self.segment.as_bytes() as f64) as u64),
            segment: self.segment,
            header: tcp::HEADER,
            reductions: stats.recoveries + stats.timeouts,
        }
    }

    /// Applies a request of the flow pair to the TCP host.
    fn apply(&mut self, request: TcpRequest) {
        match request {
            TcpRequest::NoDelay(on) => self.tcp.set_no_delay(on),
            TcpRequest::Window(window) => {
                self.tcp.reset_to(window.as_bytes() as f64 / self.segment.as_bytes() as f64);
            }
            TcpRequest::Finish => {
                self.finished = true;
                self.stream.lock().finished = true;
            }
        }
    }

    /// Writes the flow pair's pending data to the TCP host. Returns whether there was any data.
    fn write(&mut self, now: Time) -> bool {
        let pending = self.pair.tcp_pending();
        let length = pending.len();
        if length > 0 {
            self.stream.lock().bytes.extend(pending);
            self.tcp.write(length as u64);
            self.pair.tcp_written(now.assume_clock(), length);
        }
        length > 0
    }

    /// Supplies ADUs of the application, which always has another ADU.
    fn supply(&mut self, now: Time) {
        let most = self.adu.len();
        // An ADU is supplied only while less than one ADU waits for the transports.
        while now >= self.start && !self.finished && self.pair.waiting() < most.max(1) {
            if self.pair.push(now.assume_clock(), &self.adu, true).is_err() {
                break;
            }
        }
    }

    /// Runs the flow pair and the TCP host until neither has anything to do.
    fn run(&mut self, now: Time) {
        loop {
            self.pair.handle(now.assume_clock(), PairInput::Tcp(self.tcp_state()));
            self.supply(now);
            let mut goes_on = self.write(now);
            while let Some(segment) = self.tcp.poll(now) {
                self.outbox.segment(segment);
                goes_on = true;
            }
            goes_on |= self.take();
            if !goes_on {
                break;
            }
        }
    }

    /// Handles the outputs of the flow pair. Returns whether one of them was a request to the TCP host.
    fn take(&mut self) -> bool {
        let mut asked = false;
        loop {
            let request = match self.pair.poll() {
                None => return asked,
                Some(PairOutput::Transmit(transmit)) => {
                    self.outbox.datagram(&transmit);
                    continue;
                }
                Some(PairOutput::Event(event)) => {
                    if let Some(event) = event.in_session() {
                        self.outbox.event(event);
                    }
                    continue;
                }
                Some(PairOutput::Tcp(request)) => request,
            };
            asked = true;
            self.apply(request);
        }
    }
}

impl Endpoint for PairNear {
    type Clock = SenderClock;

    fn handle(&mut self, now: Instant<SenderClock>, input: Input<'_>) {
        let time: Time = now.assume_clock();
        self.handled = time;
        match input {
            Input::Datagram { datagram, .. } if Segment::is_segment(datagram) => {
                if let Some(segment) = Segment::decode(datagram) {
                    self.tcp.on_segment(time, segment);
                }
            }
            Input::Datagram { datagram, .. } => self.pair.handle(now, PairInput::Datagram(datagram)),
            Input::Timer => {
                self.tcp.on_timer(time);
                self.pair.handle(now, PairInput::Timer);
            }
            Input::Stop => self.pair.handle(now, PairInput::Stop),
            // Other inputs are ignored: the application is part of this endpoint, and the pair has only one path.
            _ => return,
        }
        self.run(time);
    }

    fn poll(&mut self) -> Option<Output<'_>> {
        self.outbox.poll()
    }

    fn wake(&self) -> Option<Wake<SenderClock>> {
        let begins = (self.handled < self.start).then_some(self.start.assume_clock());
        let pair = self.pair.wake().map(|wake| wake.at);
        let tcp = tcp::Sender::wake(&self.tcp).map(Time::assume_clock);
        let at = [tcp, pair, begins].into_iter().flatten().min()?;
        Some(Wake { at, reason: WakeReason::Media })
    }
}

/// Number of bytes of the TCP stream that were received in order.
#[derive(Debug, Default)]
struct Arrivals {
    /// Data sizes of received segments that are not counted yet, by segment number.
    sizes: BTreeMap<u64, u64>,
    /// Number of the first segment whose data is not counted in `come` yet.
    counted: u64,
    come: u64,
    /// Number of bytes that the flow pair has read.
    read: u64,
}

impl Arrivals {
    fn on_data(&mut self, number: u64, payload: Size) {
        if number >= self.counted {
            self.sizes.insert(number, payload.as_bytes());
        }
    }

    /// Counts the data of all segments before segment `next`.
    fn advance(&mut self, next: u64) {
        while self.counted < next {
            self.come += self.sizes.remove(&self.counted).unwrap_or(0);
            self.counted += 1;
        }
    }
}

/// The receiving endpoint of a flow pair.
pub struct PairFar {
    pair: equipoise_pair::Receiver,
    tcp: tcp::Receiver,
    stream: Shared,
    arrivals: Arrivals,
    outbox: Outbox,
}

impl PairFar {
    /// The TCP host of this endpoint.
    pub const fn tcp(&self) -> &tcp::Receiver {
        &self.tcp
    }

    /// Passes TCP data to the flow pair, as far as the data was received in order.
    fn read(&mut self, now: Instant<ReceiverClock>) {
        self.arrivals.advance(self.tcp.next());
        let mut stream = self.stream.lock();
        while self.arrivals.come > self.arrivals.read && self.pair.wants_tcp() {
            let most = usize::try_from(self.arrivals.come - self.arrivals.read).unwrap_or(usize::MAX);
            let (front, _) = stream.bytes.as_slices();
            let taken = self.pair.tcp_received(now, &front[..front.len().min(most)]);
            stream.bytes.drain(..taken);
            self.arrivals.read += taken as u64;
            if taken == 0 {
                break;
            }
        }
        if stream.finished && stream.bytes.is_empty() {
            self.pair.handle(now, PairInput::TcpEnded);
        }
    }

    fn run(&mut self, now: Instant<ReceiverClock>) {
        loop {
            self.read(now);
            while let Some(output) = self.pair.poll() {
                match output {
                    PairOutput::Transmit(transmit) => self.outbox.datagram(&transmit),
                    PairOutput::Event(event) => {
                        if let Some(event) = event.in_session() {
                            self.outbox.event(event);
                        }
                    }
                    PairOutput::Tcp(_) => {}
                }
            }
            let Some(Adu { number, missing, over, data }) = self.pair.take_adu() else { break };
            let size = Size::from_bytes(data.len() as u64);
            self.outbox.event(Event::AduReceived { number, missing, over: over.into(), size });
        }
    }
}

impl Endpoint for PairFar {
    type Clock = ReceiverClock;

    fn handle(&mut self, now: Instant<ReceiverClock>, input: Input<'_>) {
        let time: Time = now.assume_clock();
        match input {
            Input::Datagram { datagram, .. } if Segment::is_segment(datagram) => {
                let Some(segment) = Segment::decode(datagram) else { return };
                if let Segment::Data { number, payload } = segment {
                    self.arrivals.on_data(number, payload);
                }
                if let Some(answer) = self.tcp.on_segment(time, segment) {
                    self.outbox.segment(answer);
                }
            }
            Input::Datagram { datagram, .. } => self.pair.handle(now, PairInput::Datagram(datagram)),
            Input::Timer => {
                if let Some(answer) = self.tcp.on_timer(time) {
                    self.outbox.segment(answer);
                }
                self.pair.handle(now, PairInput::Timer);
            }
            Input::Stop => self.pair.handle(now, PairInput::Stop),
            _ => return,
        }
        self.run(now);
    }

    fn poll(&mut self) -> Option<Output<'_>> {
        self.outbox.poll()
    }

    fn wake(&self) -> Option<Wake<ReceiverClock>> {
        let pair = self.pair.wake().map(|wake| wake.at);
        let tcp = tcp::Receiver::wake(&self.tcp).map(Time::assume_clock);
        let at = [tcp, pair].into_iter().flatten().min()?;
        Some(Wake { at, reason: WakeReason::Report })
    }
}
