//! Test paths on which a sender could harm other traffic, and how it behaves there.

use alloc::vec;
use alloc::vec::Vec;

use rand_distr::{Distribution, StandardUniform};

use crate::Event;
use equipoise::control::{BoxedController, Entry, Needs, entries};
use equipoise::random::generator;
use equipoise::units::{Instant, Rate, ReceiverClock, Schedule, Size, Span};
use equipoise_path::link::{FifoLink, LinkConfig, Passage, QueueLimit};

/// A millisecond, in ns.
pub(crate) const MILLI: u64 = 1_000_000;
/// A second, in ns.
pub(crate) const SECOND: u64 = 1000 * MILLI;
pub(crate) const PACKET: Size = Size::from_bytes(1000);
pub(crate) const LOWEST: f64 = 100e3;
pub(crate) const INTERVAL: Span = Span::from_millis(250);
/// Time for which the sending rate may exceed twice the delivery rate: 2 s, or two report intervals and a round trip if
/// that is longer.
pub(crate) const GRACE: u64 = 2 * SECOND;
/// Length of the periods in which sent and arrived data are compared.
const BIN: u64 = SECOND / 4;

/// What the network does to media packets, and when; requests and reports take 10 ms each way.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Harm {
    /// A link of the given Mbit/s with a queue.
    Link(f64, Span),
    /// A link of the given Mbit/s without a queue.
    Policer(f64),
    /// No media arrives from 8 s to 18 s.
    BlackHole,
    /// Nothing arrives from 8 s to 18 s.
    Outage,
    /// This share of the packets is lost from 8 s to 18 s.
    Loss(f64),
    /// The path is on and off for 300 ms each, from 8 s to 18 s.
    Flapping,
}

impl Harm {
    /// The delay of a datagram in ns; `None` if it is lost.
    pub(crate) fn path(self) -> impl FnMut(Datagram) -> Option<u64> {
        let (mbps, queue) = match self {
            Self::Link(mbps, queue) => (mbps, queue),
            Self::Policer(mbps) => (mbps, Span::from_millis(2)),
            _ => (6.0, Span::from_millis(200)),
        };
        let rate = Schedule::constant(Rate::from_bps_f64(mbps * 1e6).expect("a rate"));
        let config = LinkConfig { rate, propagation_delay: Span::ZERO, queue: QueueLimit::Time(queue) };
        let mut link = FifoLink::<ReceiverClock>::new(config, Instant::ZERO).expect("a valid link");
        let mut random = generator(1, 0);
        move |Datagram { at, size, from_sender, is_rtcp }| {
            let drawn: f64 = StandardUniform.sample(&mut random);
            let is_hit = (8 * SECOND..18 * SECOND).contains(&at)
                && match self {
                    Self::Link(..) | Self::Policer(_) => false,
                    Self::BlackHole => !is_rtcp,
                    Self::Outage => true,
                    Self::Loss(share) => drawn < share,
                    Self::Flapping => at / (300 * MILLI) % 2 == 1,
                };
            if is_hit {
                return None;
            }
            match from_sender.then(|| link.offer(Instant::from_nanos(at), size)) {
                Some(None) => None,
                Some(Some(Passage { arrives_at, .. })) => Some(arrives_at.as_nanos() - at + 10 * MILLI),
                None => Some(10 * MILLI),
            }
        }
    }
}

/// A datagram that enters the network: its time in ns since the start, and its size as an IP packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram {
    pub(crate) at: u64,
    pub(crate) size: Size,
    pub(crate) from_sender: bool,
    /// Whether it is a request or a report.
    pub(crate) is_rtcp: bool,
}

/// The sent and arrived data in each period, in bit/s.
pub(crate) struct Told {
    pub(crate) name: &'static str,
    sent: Vec<f64>,
    arrived: Vec<f64>,
}

impl Told {
    /// The result of a session of `seconds` with the controller `name`, from its events and their times in ns.
    pub(crate) fn by<'a>(name: &'static str, seconds: u64, events: impl Iterator<Item = (u64, &'a Event)>) -> Self {
        let bins = (seconds * SECOND / BIN) as usize;
        let (mut sent, mut arrived) = (vec![0.0; bins], vec![0.0; bins]);
        for (at, event) in events {
            let (bins, size) = match event {
                Event::MediaSent { size, .. } => (&mut sent, size),
                Event::MediaReceived { size, .. } => (&mut arrived, size),
                _ => continue,
            };
            if let Some(bin) = bins.get_mut((at / BIN) as usize) {
                *bin += size.as_bits() as f64 / (BIN as f64 / SECOND as f64);
            }
        }
        Self { name, sent, arrived }
    }

    /// The mean sending rate between two times in s.
    pub(crate) fn rate(&self, from: u64, to: u64) -> f64 {
        let bins = &self.sent[(from * SECOND / BIN) as usize..(to * SECOND / BIN) as usize];
        bins.iter().sum::<f64>() / bins.len() as f64
    }

    /// The longest time, in ns, for which the sending rate over the last second exceeded twice the delivery rate.
    pub(crate) fn longest_excess(&self, controllers: u32) -> u64 {
        let over = |of: &[f64], at: usize| of[at.saturating_sub(3)..=at].iter().sum::<f64>() / 4.0;
        let (mut longest, mut present) = (0, 0);
        for at in 3..self.sent.len() {
            let is_over = over(&self.sent, at) > 2.0 * over(&self.arrived, at) + 1.5 * f64::from(controllers) * LOWEST;
            present = if is_over { present + BIN } else { 0 };
            longest = longest.max(present);
        }
        longest
    }
}

pub(crate) fn build(entry: &Entry, start: &str) -> BoxedController {
    let given = [
        ("target", "40 ms"),
        ("min_rate", "100 kbit/s"),
        ("max_rate", "20 Mbit/s"),
        ("initial_rate", start),
        ("increase", "50 kbit/s"),
    ];
    let given: Vec<_> =
        given.into_iter().filter(|(name, _)| entry.parameters.iter().any(|known| known.name == *name)).collect();
    let parsed = entry.parse(&given).expect("right");
    entry.build(&parsed, PACKET).expect("right")
}

/// The controllers whose needs `provided` meets and that are limited to what provably arrived.
pub(crate) fn adaptive(provided: Needs) -> impl Iterator<Item = &'static Entry> {
    entries().iter().filter(move |entry| {
        entry.parse(&[("target", "40 ms")]).or_else(|_| entry.parse(&[])).is_ok_and(|parsed| {
            entry
                .build(&parsed, PACKET)
                .is_ok_and(|controller| controller.is_held_to_proof() && provided.contains(controller.needs()))
        })
    })
}
