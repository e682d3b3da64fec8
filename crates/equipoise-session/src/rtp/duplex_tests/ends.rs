//! Two endpoints, `near` and `far`, that send and receive, and the path between them.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::super::*;
use crate::wire::rtcp::{self, RtcpPacket};
use crate::wire::{JointExtension, is_rtcp};
use crate::{DropReason, Ecn, Endpoint, Event, Input, Output, PathId, Transmit};
use equipoise::control::{BoxedController, Cbr};
use equipoise::measure::ClockMap;
use equipoise::units::{Instant, Rate, ReceiverClock, SenderClock, Size, Span};

const EPOCH: u64 = 1_795_000_000_000_000_000;
const MILLI: u64 = 1_000_000;
pub(super) const SSRCS: [u32; 2] = [0xAAAA, 0xBBBB];

/// An RTCP datagram that an endpoint sent.
#[derive(Clone, Debug)]
pub(super) struct Said {
    /// Time since the start, in ms.
    pub(super) at_ms: u64,
    pub(super) from: usize,
    pub(super) bytes: Vec<u8>,
}

impl Said {
    /// Returns a summary of the datagram's packets: `SR` or `RR` with the number of report blocks, and `report` and
    /// `request` for the parts of its extension.
    fn words(&self) -> String {
        let word = |packet| match packet {
            RtcpPacket::SenderReport(report) => format!("SR{}{}", report.blocks().count(), parts(report.extension)),
            RtcpPacket::ReceiverReport(report) => format!("RR{}{}", report.blocks().count(), parts(report.extension)),
            RtcpPacket::SourceDescription(_) => "SDES".into(),
            RtcpPacket::Goodbye(_) => "BYE".into(),
            other => format!("{other:?}"),
        };
        rtcp::parse_compound(&self.bytes).expect("RTCP").map(word).collect::<Vec<_>>().join(" + ")
    }
}

fn parts(extension: &[u8]) -> &'static str {
    let joint = JointExtension::parse(extension).expect("ours");
    match (joint.report.is_empty(), joint.request.is_empty()) {
        (true, true) => "",
        (false, true) => " report",
        (true, false) => " request",
        (false, false) => " report request",
    }
}

/// A function that decides what the path does to a datagram. Its arguments are the index of the datagram's sender (0 is
/// `near`, 1 is `far`), the time in ms and the bytes. It returns the delay in ms of each copy that arrives.
pub(super) type Way = Box<dyn FnMut(usize, u64, &[u8]) -> Vec<u64>>;

pub(super) struct Ends {
    pub(super) now: u64,
    pub(super) near: Duplex<SenderClock>,
    pub(super) far: Duplex<ReceiverClock>,
    way: Way,
    /// Datagrams in flight: arrival time in ns, sequential number, index of the receiving endpoint, bytes.
    in_flight: Vec<(u64, usize, usize, Vec<u8>)>,
    order: usize,
    pub(super) reports: Vec<Said>,
    pub(super) events: Vec<(u64, usize, Event)>,
    pub(super) given: [Vec<u8>; 2],
}

/// Passes an input, if any, to an endpoint, and the endpoint's outputs to `take`. Returns when the endpoint must be
/// called next, in ns.
fn turn<C>(end: &mut Duplex<C>, now: u64, input: Option<Input<'_>>, take: &mut impl FnMut(Output<'_>)) -> Option<u64> {
    if let Some(input) = input {
        end.handle(Instant::from_nanos(now), input);
    }
    while let Some(output) = end.poll() {
        take(output);
    }
    end.wake().map(|wake| wake.at.as_nanos())
}

pub(super) fn cbr(bps: u64) -> BoxedController {
    Box::new(Cbr::new(Rate::from_bps(bps)))
}

/// Returns an endpoint's configuration for sending: 1000-byte packets, one request per second.
pub(super) fn sending(end: usize) -> SenderConfig {
    let stream = StreamConfig::new(SSRCS[end], 96, Size::from_bytes(1000), ["near@test", "far@test"][end]);
    SenderConfig::new(stream, Span::from_secs(1), Instant::from_nanos(EPOCH), end as u64 + 1)
}

pub(super) fn config(end: usize) -> DuplexConfig {
    DuplexConfig::new(sending(end), SSRCS[1 - end], Clocks::Known(ClockMap::SYNCHRONISED))
}

impl Ends {
    pub(super) fn new(configs: [DuplexConfig; 2], controllers: [BoxedController; 2], way: Way) -> Self {
        let ([near, far], [there, back]) = (configs, controllers);
        Self {
            now: EPOCH,
            near: Duplex::new(near, there).expect("a valid configuration"),
            far: Duplex::new(far, back).expect("a valid configuration"),
            way,
            in_flight: Vec::new(),
            order: 0,
            reports: Vec::new(),
            events: Vec::new(),
            given: [Vec::new(), Vec::new()],
        }
    }

    /// Creates two endpoints that each send 100 packets per second over a path with a delay of 10 ms.
    pub(super) fn plain() -> Self {
        Self::new([config(0), config(1)], [cbr(800_000), cbr(800_000)], Box::new(|_, _, _| vec![10]))
    }

    pub(super) fn tell(&mut self, end: usize, input: Option<Input<'_>>) {
        let Self { near, far, now, way, in_flight, order, reports, events, given } = self;
        let at_ms = (*now - EPOCH) / MILLI;
        let mut take = |output: Output<'_>| match output {
            Output::Event { event, .. } => events.push((at_ms, end, event)),
            Output::Payload { payload, .. } => given[end].extend_from_slice(payload),
            Output::Transmit { transmit, .. } => {
                let mut bytes = transmit.head.to_vec();
                bytes.resize(transmit.len(), 0);
                for way in way(end, at_ms, &bytes) {
                    *order += 1;
                    in_flight.push((*now + way * MILLI, *order, 1 - end, bytes.clone()));
                }
                if is_rtcp(&bytes) {
                    assert!(bytes.len() <= Transmit::MAX_HEAD, "{} bytes", bytes.len());
                    reports.push(Said { at_ms, from: end, bytes });
                }
            }
        };
        let was_handled = input.is_some();
        let wake = if end == 0 { turn(near, *now, input, &mut take) } else { turn(far, *now, input, &mut take) };
        assert!(!was_handled || wake.is_none_or(|at| at > *now), "a wake-up in the past");
    }

    pub(super) fn run(&mut self, until_ms: u64) {
        let until = EPOCH + until_ms * MILLI;
        (0..2).for_each(|end| self.tell(end, None));
        loop {
            let wakes =
                [self.near.wake().map(|wake| wake.at.as_nanos()), self.far.wake().map(|wake| wake.at.as_nanos())];
            let timers = wakes.into_iter().zip(0..).filter_map(|(at, end)| Some((at?, usize::MAX, end)));
            let arrivals = self.in_flight.iter().map(|(at, order, end, _)| (*at, *order, *end));
            let Some((at, order, end)) = arrivals.chain(timers).min().filter(|(at, ..)| *at <= until) else { break };
            self.now = at;
            let Some(place) = self.in_flight.iter().position(|(_, found, ..)| *found == order) else {
                self.tell(end, Some(Input::Timer));
                continue;
            };
            let (.., datagram) = self.in_flight.remove(place);
            self.tell(end, Some(Input::Datagram { path: PathId(0), datagram: &datagram, ecn: Ecn::NotCapable }));
        }
        self.now = until;
    }

    /// Returns summaries of the RTCP datagrams that the endpoints sent at `after_ms` or later.
    pub(super) fn lines(&self, after_ms: u64) -> Vec<String> {
        let said = self.reports.iter().filter(|said| said.at_ms >= after_ms);
        said.map(|said| format!("{} {} {}", said.at_ms, ["near", "far"][said.from], said.words())).collect()
    }

    /// Returns summaries of the RTCP datagrams that the endpoints sent at `after_ms` or later, except regular RTCP
    /// compounds (RFC 3550, Sec. 6.2).
    pub(super) fn exchange(&self, after_ms: u64) -> Vec<String> {
        self.lines(after_ms).into_iter().filter(|line| !line.contains("SDES")).collect()
    }

    pub(super) fn count(&self, end: usize, is: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|(_, from, event)| *from == end && is(event)).count()
    }

    pub(super) fn ignored(&self) -> Vec<(usize, DropReason)> {
        let reason = |(_, end, event): &(u64, usize, Event)| match event {
            Event::Ignored(reason) => Some((*end, *reason)),
            _ => None,
        };
        self.events.iter().filter_map(reason).collect()
    }
}

/// Returns, for each interval report that an endpoint has applied, the number of delay samples and the fraction of lost
/// packets.
pub(super) fn applied(ends: &Ends, end: usize) -> Vec<(u64, f64)> {
    let report = |(_, from, event): &(u64, usize, Event)| match event {
        Event::ReportApplied { delay, fraction_lost, .. } if *from == end => {
            Some((delay.map_or(0, |delay| delay.samples), *fraction_lost))
        }
        _ => None,
    };
    ends.events.iter().filter_map(report).collect()
}
