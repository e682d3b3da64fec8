//! A sender, a receiver, and a network that treats each datagram as the test specifies.

use alloc::boxed::Box;
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::super::{Receiver, Sender, Total};
use crate::rtp::{Clocks, Delays, Payload, ReceiverConfig, ReorderConfig, SenderConfig, StreamConfig};
use crate::wire::is_rtcp;
use crate::{Ecn, Endpoint, Event, Input, Output, PathChange, PathId, Wake};
use equipoise::control::Cbr;
use equipoise::control::scheduler::{BoxedScheduler, find};
use equipoise::measure::ClockMap;
use equipoise::units::{Instant, Rate, Size, Span};

pub(super) const EPOCH: u64 = 1_700_000_000_000_000_000;
pub(super) const MILLI: u64 = 1_000_000;
pub(super) const SSRC: u32 = 0x0102_0304;

/// A datagram in flight: arrival time in ns, order among the datagrams that arrive at this time, whether it goes to the
/// sender, path number, bits of the ECN field, bytes.
type UnderWay = (u64, u64, bool, u16, u8, Vec<u8>);

/// A function that simulates the network: for each datagram, it returns the delays of the copies that arrive. The
/// function in a [`Bench`] returns ns. The function that is passed to [`Bench::new`] returns ms.
pub(super) type Network = Box<dyn FnMut(&Passing) -> Vec<u64>>;

/// A datagram that is being sent.
pub(super) struct Passing {
    pub(super) millis: u64,
    /// Time since the start, in ns, and size of the IP packet.
    pub(super) at: u64,
    pub(super) size: Size,
    /// Number of the datagram, from 1, counted over both directions and all paths.
    pub(super) number: u64,
    pub(super) path: u16,
    pub(super) to_sender: bool,
    pub(super) is_rtcp: bool,
    /// ECN field of the IP header.
    pub(super) ecn: Ecn,
}

pub(super) struct Bench {
    pub(super) now: u64,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) network: Network,
    /// Returns the ECN field that a datagram's IP header has on arrival.
    pub(super) field: fn(&Passing) -> Ecn,
    sent: u64,
    under_way: BinaryHeap<Reverse<UnderWay>>,
    pub(super) given: Vec<Vec<u8>>,
    pub(super) missing: u64,
    pub(super) events: Vec<(u64, Option<PathId>, Event)>,
}

pub(super) fn scheduler(name: &str, given: &[(&str, &str)]) -> BoxedScheduler {
    let entry = find(name).expect("in the catalogue");
    entry.build(&entry.parse(given).expect("right"), Size::from_bytes(1000)).expect("right")
}

impl Bench {
    /// Creates a session with a total rate of 4 Mbit/s over `paths` paths. A report comes every 200 ms. Every second,
    /// the total rate is divided among the paths again.
    pub(super) fn new(payload: Payload, paths: u16, scheduler: BoxedScheduler, mut network: Network) -> Self {
        let stream = StreamConfig::new(SSRC, 96, Size::from_bytes(1000), "sender@test");
        let start = Instant::from_nanos(EPOCH);
        let config = SenderConfig { payload, ..SenderConfig::new(stream, Span::from_millis(200), start, 1) };
        let total = Total::Pooled(Box::new(Cbr::new(Rate::from_bps(4_000_000))));
        let network = Box::new(move |passing: &Passing| network(passing).into_iter().map(|way| way * MILLI).collect());
        Self::between(config, paths, (total, scheduler), network)
    }

    /// Creates a session. `total` decides the total rate, and `scheduler` divides it among the paths every second.
    /// `network` returns delays in ns.
    pub(super) fn between(
        config: SenderConfig,
        paths: u16,
        (total, scheduler): (Total, BoxedScheduler),
        network: Network,
    ) -> Self {
        let (payload, reporting) = (config.payload, config.reporting);
        let clocks =
            if config.delays == Delays::Agreed { Clocks::Known(ClockMap::SYNCHRONISED) } else { Clocks::Apart };
        let reorder = ReorderConfig { hold: Span::from_millis(400), ..ReorderConfig::default() };
        let receiver = ReceiverConfig {
            clocks,
            payload,
            reorder,
            reporting,
            ..ReceiverConfig::new(9, "receiver@test", SSRC, ClockMap::SYNCHRONISED, 2)
        };
        let mut bench = Self {
            now: EPOCH,
            sender: Sender::new(config, Span::from_secs(1), total, scheduler).expect("a valid configuration"),
            receiver: Receiver::new(receiver).expect("a valid configuration"),
            network,
            field: |passing| passing.ecn,
            sent: 0,
            under_way: BinaryHeap::new(),
            given: Vec::new(),
            missing: 0,
            events: Vec::new(),
        };
        (0..paths).for_each(|path| bench.change(path, PathChange::Up));
        bench
    }

    pub(super) fn millis(&self) -> u64 {
        (self.now - EPOCH) / MILLI
    }

    pub(super) fn change(&mut self, path: u16, change: PathChange) {
        self.tell(true, Input::Path { path: PathId(path), change });
    }

    pub(super) fn tell(&mut self, is_sender: bool, input: Input<'_>) {
        let now = self.now;
        if is_sender {
            self.sender.handle(Instant::from_nanos(now), input);
        } else {
            self.receiver.handle(Instant::from_nanos(now), input);
        }
        loop {
            let output = if is_sender { self.sender.poll() } else { self.receiver.poll() };
            match output {
                None => break,
                Some(Output::Event { path, event }) => self.events.push(((now - EPOCH) / MILLI, path, event)),
                Some(Output::Payload { missing, payload }) => {
                    self.missing += missing;
                    self.given.push(payload.to_vec());
                }
                Some(Output::Transmit { path: PathId(path), transmit }) => {
                    let mut bytes = transmit.head.to_vec();
                    bytes.resize(transmit.len(), 0);
                    self.sent += 1;
                    let (number, to_sender, is_rtcp) = (self.sent, !is_sender, is_rtcp(&bytes));
                    let size = Size::from_bytes(bytes.len() as u64) + Size::IPV4_UDP;
                    let (at, millis) = (now - EPOCH, (now - EPOCH) / MILLI);
                    let passing = Passing { millis, at, size, number, path, to_sender, is_rtcp, ecn: transmit.ecn };
                    let ecn = (self.field)(&passing).bits();
                    for way in (self.network)(&passing) {
                        let arrival = (now + way, number, to_sender, path, ecn, bytes.clone());
                        self.under_way.push(Reverse(arrival));
                    }
                }
            }
        }
        // The endpoint that processed the input must request a wake-up later than `now`.
        let ahead = |at: u64| at > now;
        assert!(self.sender.wake().is_none_or(|wake| !is_sender || ahead(wake.at.as_nanos())));
        assert!(self.receiver.wake().is_none_or(|wake| is_sender || ahead(wake.at.as_nanos())));
    }

    pub(super) fn run_until(&mut self, millis: u64) {
        let end = EPOCH + millis * MILLI;
        loop {
            let timers = [(at(self.sender.wake()), true), (at(self.receiver.wake()), false)];
            let (timer, is_sender) = timers.into_iter().min_by_key(|(at, _)| *at).unwrap_or((u64::MAX, true));
            let datagram = self.under_way.peek().map_or(u64::MAX, |Reverse((at, ..))| *at);
            let next = timer.min(datagram);
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            if datagram <= timer {
                if let Some(Reverse((_, _, to_sender, path, ecn, datagram))) = self.under_way.pop() {
                    let (path, ecn) = (PathId(path), Ecn::from_bits(ecn));
                    self.tell(to_sender, Input::Datagram { path, datagram: &datagram, ecn });
                }
            } else {
                self.tell(is_sender, Input::Timer);
            }
        }
        self.now = end;
    }

    /// Queues as many bytes of `payload` as the sender accepts. Returns this number of bytes.
    pub(super) fn feed(&mut self, payload: &[u8], twice: bool) -> usize {
        let length = payload.len().min(self.sender.room());
        self.tell(true, Input::Payload { payload: &payload[..length], twice });
        length
    }

    /// Queues `stream` in parts that the sender accepts. When the whole stream has been sent, ends the session. Then
    /// waits for the datagrams in flight. Returns the delivered payload.
    pub(super) fn carry(&mut self, stream: &[u8], twice: bool) -> Vec<u8> {
        let mut fed = 0;
        while fed < stream.len() || self.sender.waiting() > 0 {
            fed += self.feed(&stream[fed..], twice);
            self.run_until(self.millis() + 50);
            assert!(self.millis() < 100_000, "it does not get on");
        }
        self.tell(true, Input::Stop);
        self.run_until(self.millis() + 2000);
        self.given.concat()
    }

    pub(super) fn count(&self, is: impl Fn(Option<u16>, &Event) -> bool) -> usize {
        self.events.iter().filter(|(_, path, event)| is(path.map(|path| path.0), event)).count()
    }

    /// Number of media packets sent on a path between two times in ms.
    pub(super) fn sent_on(&self, path: u16, from: u64, to: u64) -> usize {
        let is = |event: &Event| matches!(event, Event::MediaSent { .. });
        let within = |millis: u64| (from..to).contains(&millis);
        self.events.iter().filter(|(at, on, event)| within(*at) && *on == Some(PathId(path)) && is(event)).count()
    }
}

fn at<C>(wake: Option<Wake<C>>) -> u64 {
    wake.map_or(u64::MAX, |wake| wake.at.as_nanos())
}

pub(super) fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at * 31 % 251) as u8).collect()
}
