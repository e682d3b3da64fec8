//! A sender, a receiver, and the path between them, in simulated time.

use alloc::boxed::Box;
use alloc::collections::BinaryHeap;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::{Clocks, Delays, Payload, Receiver, ReceiverConfig, Sender, SenderConfig, StreamConfig};
use crate::wire::is_rtcp;
use crate::{Ecn, Endpoint, Event, Input, Output, PathId};
use equipoise::control::{BoxedController, Cbr};
use equipoise::measure::ClockMap;
use equipoise::units::{Instant, Rate, Size, Span};

pub(super) const EPOCH: u64 = 1_700_000_000_000_000_000;
pub(super) const MILLI: u64 = 1_000_000;

/// A datagram in flight: arrival time in ns, order among the datagrams that arrive at this time, whether it goes to the
/// sender, bits of the ECN field, bytes.
type UnderWay = (u64, u64, bool, u8, Vec<u8>);

/// A datagram that is about to enter the network.
pub(super) struct Passing {
    /// Number of the datagram, from 1, counted over both directions.
    pub(super) number: u64,
    pub(super) from_sender: bool,
    /// Whether the datagram is RTCP: a request or a report.
    pub(super) is_rtcp: bool,
    /// Time since the start, in ns.
    pub(super) at: u64,
    /// Size of the IP packet.
    pub(super) size: Size,
    /// ECN field of the datagram's IP header.
    pub(super) ecn: Ecn,
}

/// Returns a network in which requests and reports have a delay of 5 ms. For a media datagram, `path` returns the delay
/// of each copy in ms. The arguments of `path` are the datagram's number, and whether the sender sent the datagram.
pub(super) fn media(mut path: impl FnMut(u64, bool) -> Vec<u64>) -> impl FnMut(&Passing) -> Vec<u64> {
    move |passing| {
        let ways = if passing.is_rtcp { vec![5] } else { path(passing.number, passing.from_sender) };
        ways.into_iter().map(|way| way * MILLI).collect()
    }
}

/// A sender, a receiver, and the effect of the network on a datagram: `path` returns the delay of each copy, in ns.
pub(super) struct TwoEnds<F> {
    pub(super) now: u64,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) path: F,
    pub(super) order: u64,
    pub(super) under_way: BinaryHeap<Reverse<UnderWay>>,
    pub(super) given: Vec<u8>,
    pub(super) packets: Vec<Vec<u8>>,
    pub(super) missing: u64,
    pub(super) events: Vec<(u64, Event)>,
    /// Returns, for a time in ns since the start, how far the receiver's clock is ahead of the sender's, in ns.
    pub(super) ahead: fn(u64) -> i64,
    /// Returns the ECN field that a datagram's IP header has on arrival.
    pub(super) field: fn(&Passing) -> Ecn,
}

impl<F: FnMut(&Passing) -> Vec<u64>> TwoEnds<F> {
    pub(super) fn new(payload: Payload, controller: BoxedController, path: F) -> Self {
        Self::between(Delays::Agreed, payload, controller, path)
    }

    pub(super) fn between(delays: Delays, payload: Payload, controller: BoxedController, path: F) -> Self {
        let stream = StreamConfig::new(0x0102_0304, 96, Size::from_bytes(1000), "sender@test");
        let config = SenderConfig {
            payload,
            delays,
            ..SenderConfig::new(stream, Span::from_millis(500), Instant::from_nanos(EPOCH), 1)
        };
        let receiver = ReceiverConfig {
            payload,
            clocks: if delays == Delays::Agreed { Clocks::Known(ClockMap::SYNCHRONISED) } else { Clocks::Apart },
            ..ReceiverConfig::new(9, "receiver@test", 0x0102_0304, ClockMap::SYNCHRONISED, 2)
        };
        Self {
            now: EPOCH,
            sender: Sender::new(config, controller).expect("a valid configuration"),
            receiver: Receiver::new(receiver).expect("a valid configuration"),
            path,
            order: 0,
            under_way: BinaryHeap::new(),
            given: Vec::new(),
            packets: Vec::new(),
            missing: 0,
            events: Vec::new(),
            ahead: |_| 0,
            field: |passing| passing.ecn,
        }
    }

    pub(super) fn cbr(payload: Payload, path: F) -> Self {
        Self::new(payload, Box::new(Cbr::new(Rate::from_bps(4_000_000))), path)
    }

    pub(super) fn tell(&mut self, is_sender: bool, input: Input<'_>) {
        if is_sender {
            self.sender.handle(Instant::from_nanos(self.now), input);
        } else {
            let shown = self.now.saturating_add_signed((self.ahead)(self.now - EPOCH));
            self.receiver.handle(Instant::from_nanos(shown), input);
        }
        loop {
            let output = if is_sender { self.sender.poll() } else { self.receiver.poll() };
            match output {
                None => break,
                Some(Output::Event { event, .. }) => self.events.push((self.now - EPOCH, event)),
                Some(Output::Payload { missing, payload }) => {
                    self.missing += missing;
                    self.given.extend_from_slice(payload);
                    self.packets.push(payload.to_vec());
                }
                Some(Output::Transmit { transmit, .. }) => {
                    let mut bytes = transmit.head.to_vec();
                    bytes.resize(transmit.len(), 0);
                    self.order += 1;
                    let passing = Passing {
                        number: self.order,
                        from_sender: is_sender,
                        is_rtcp: is_rtcp(&bytes),
                        at: self.now - EPOCH,
                        size: Size::from_bytes(bytes.len() as u64) + Size::IPV4_UDP,
                        ecn: transmit.ecn,
                    };
                    let ecn = (self.field)(&passing).bits();
                    for way in (self.path)(&passing) {
                        self.under_way.push(Reverse((self.now + way, self.order, !is_sender, ecn, bytes.clone())));
                    }
                }
            }
        }
    }

    pub(super) fn run_until(&mut self, millis: u64) {
        let end = EPOCH + millis * MILLI;
        loop {
            let timers = [
                self.sender.wake().map(|wake| (wake.at.as_nanos(), true)),
                self.receiver.wake().map(|wake| {
                    let ahead = (self.ahead)(self.now - EPOCH);
                    (wake.at.as_nanos().saturating_add_signed(-ahead).max(self.now + 1), false)
                }),
            ];
            let timer = timers.into_iter().flatten().min();
            let datagram = self.under_way.peek().map(|Reverse((at, ..))| *at);
            let next = [timer.map(|(at, _)| at), datagram].into_iter().flatten().min();
            let Some(next) = next.filter(|at| *at <= end) else { break };
            self.now = self.now.max(next);
            if datagram == Some(next) {
                if let Some(Reverse((_, _, to_sender, ecn, datagram))) = self.under_way.pop() {
                    let (path, ecn) = (PathId(0), Ecn::from_bits(ecn));
                    self.tell(to_sender, Input::Datagram { path, datagram: &datagram, ecn });
                }
            } else if let Some((_, is_sender)) = timer {
                self.tell(is_sender, Input::Timer);
            }
        }
        self.now = end;
    }

    /// Queues as many bytes of `payload` as the sender accepts. Returns this number of bytes.
    pub(super) fn feed(&mut self, payload: &[u8]) -> usize {
        let length = payload.len().min(self.sender.room());
        self.tell(true, Input::payload(&payload[..length]));
        length
    }

    pub(super) fn count(&self, is: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|(_, event)| is(event)).count()
    }
}
