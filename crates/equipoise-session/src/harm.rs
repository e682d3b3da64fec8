//! Simulated paths on which a sender could harm other traffic, and measurements of the sender's behaviour.

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
/// Time in ns for which the sending rate may exceed twice the delivery rate. Two report intervals plus a round trip are
/// shorter than this time.
pub(crate) const GRACE: u64 = 2 * SECOND;
/// Length in ns of the periods in which sent and arrived data are counted.
const BIN: u64 = SECOND / 4;

/// The fault of a network path. Datagrams from the sender cross a link and then take 10 ms; datagrams from the receiver
/// take 10 ms. The link's rate is 6 Mbit/s and its queue 200 ms, except in the variants that state other values.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Harm {
    /// The link has this rate in Mbit/s, and a queue of this length in time.
    Link(f64, Span),
    /// The link has this rate in Mbit/s, and a queue of only 2 ms.
    Policer(f64),
    /// Media packets sent from 8 s to 18 s are lost.
    BlackHole,
    /// All datagrams sent from 8 s to 18 s, in either direction, are lost.
    Outage,
    /// This share of the datagrams sent from 8 s to 18 s is lost, at random.
    Loss(f64),
    /// From 8 s to 18 s, the path alternately carries all datagrams for 300 ms and loses all datagrams for 300 ms.
    Flapping,
}

impl Harm {
    /// Returns a function that returns the delay of a datagram in ns, or `None` if the datagram is lost.
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
    /// Whether the datagram is a request or a report, not media.
    pub(crate) is_rtcp: bool,
}

/// The rates of sent and of arrived media in each period of length `BIN`, in bit/s.
pub(crate) struct Told {
    pub(crate) name: &'static str,
    sent: Vec<f64>,
    arrived: Vec<f64>,
}

impl Told {
    /// Computes the rates in a session of `seconds` seconds with the controller `name`, from the session's events and
    /// their times in ns.
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

    /// Returns the mean sending rate, in bit/s, between two times in s.
    pub(crate) fn rate(&self, from: u64, to: u64) -> f64 {
        let bins = &self.sent[(from * SECOND / BIN) as usize..(to * SECOND / BIN) as usize];
        bins.iter().sum::<f64>() / bins.len() as f64
    }

    /// Returns the longest time, in ns, for which the sending rate exceeded a limit. The limit is twice the delivery
    /// rate, plus 1.5 times [`LOWEST`] for each controller. The sending rate and the delivery rate are means over the
    /// last second.
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

/// Returns the controllers for which the feedback `provided` is enough, and whose rate is limited by the delivery rate
/// that reports prove.
pub(crate) fn adaptive(provided: Needs) -> impl Iterator<Item = &'static Entry> {
    entries().iter().filter(move |entry| {
        entry.parse(&[("target", "40 ms")]).or_else(|_| entry.parse(&[])).is_ok_and(|parsed| {
            entry
                .build(&parsed, PACKET)
                .is_ok_and(|controller| controller.is_held_to_proof() && provided.contains(controller.needs()))
        })
    })
}
