//! The emulated bottleneck between the two peers, and a record of the media packets that pass through it.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use equipoise::units::{Rate, Schedule, Span};
use equipoise_net::{Clock, Emulator, EmulatorConfig, Passed, Protocol, Route, Time, Watcher};
use equipoise_path::link::{LinkConfig, LinkStats, QueueLimit};
use serde::Serialize;

/// The bottleneck's capacity in each phase, in the order of the phases (RFC 8867, Sec. 5.1).
pub(crate) const STEPS_BPS: [u64; 4] = [1_000_000, 2_500_000, 600_000, 1_000_000];
/// One-way delay of the path without queueing.
const PROPAGATION: Span = Span::from_millis(50);
/// Maximum queueing delay at the bottleneck. A packet that would wait longer is dropped.
const QUEUE: Span = Span::from_millis(300);
/// The utilisation leaves out this time at the start of each phase, because the sender still adapts.
const SETTLING: Span = Span::from_secs(5);
/// The rate of the return path, which is never the bottleneck.
const BACK: Rate = Rate::from_bps(100_000_000);

/// An emulated path that records each media packet.
pub(crate) struct Path {
    emulator: Emulator,
    seen: Arc<Mutex<Vec<Seen>>>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    at: Time,
    bits: u64,
    waited: Span,
}

/// Results of one phase, in which the capacity is constant.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Phase {
    /// The capacity of the bottleneck in this phase.
    pub(crate) capacity_bps: u64,
    /// Share of the capacity that media packets (whole IP packets) used, from 5 s after the start of the phase on.
    pub(crate) used: f64,
    /// 95th percentile of the queueing delays of all media packets in the phase.
    pub(crate) queueing_p95_s: f64,
}

/// Results of the path for the whole run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Through {
    pub(crate) phases: Vec<Phase>,
    pub(crate) queueing_mean_s: f64,
    pub(crate) queueing_p95_s: f64,
    pub(crate) packets_dropped: u64,
}

impl Path {
    /// Starts a path from `sender` to `receiver`. Its first phase begins at `begin`, and each phase lasts `phase`.
    pub(crate) fn new(
        clock: &Clock,
        begin: Time,
        phase: Span,
        (sender, receiver): (SocketAddr, SocketAddr),
    ) -> Result<Self, Box<dyn Error>> {
        let steps = (0i64..).zip(STEPS_BPS).skip(1).map(|(at, bps)| (phase * at, Rate::from_bps(bps))).collect();
        let link = |rate| LinkConfig { rate, propagation_delay: PROPAGATION, queue: QueueLimit::Time(QUEUE) };
        let forward = link(Schedule::new(Rate::from_bps(STEPS_BPS[0]), steps));
        let links = vec![forward.into(), link(Schedule::constant(BACK)).into()];
        let route = Route { forward: vec![0], backward: vec![1], protocol: Protocol::Udp, sender, receiver };
        let seen = Arc::new(Mutex::new(Vec::new()));
        let book = Arc::clone(&seen);
        let watcher = Watcher::new(move |passed| {
            if let Some(found) = media(passed) {
                book.lock().unwrap_or_else(PoisonError::into_inner).push(found);
            }
        });
        let config = EmulatorConfig { watcher: Some(watcher), ..EmulatorConfig::new(begin, links, vec![route]) };
        Ok(Self { emulator: Emulator::start(clock, config)?, seen })
    }

    /// Returns the address to which the sender must send, and the address from which its packets arrive at the
    /// receiver.
    pub(crate) fn ends(&self) -> Result<(SocketAddr, SocketAddr), &'static str> {
        self.emulator.entrance(0).zip(self.emulator.exit(0)).ok_or("the path has no ends")
    }

    /// Stops the path, and returns its results. The first phase began at `begin`, and each phase lasted `phase`.
    pub(crate) fn stop(self, begin: Time, phase: Span) -> Result<Through, Box<dyn Error>> {
        let report = self.emulator.stop()?;
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let phases = (0i64..).zip(STEPS_BPS).map(|(number, capacity_bps)| {
            let (from, end) = (begin + phase * number, begin + phase * (number + 1));
            let within = |from: Time| seen.iter().filter(move |it| (from..end).contains(&it.at));
            let bits: u64 = within(from + SETTLING).map(|it| it.bits).sum();
            let used = bits as f64 / (phase - SETTLING).as_secs_f64() / capacity_bps as f64;
            Phase { capacity_bps, used, queueing_p95_s: quantile(within(from).map(|it| it.waited), 0.95) }
        });
        let waits = || seen.iter().map(|it| it.waited);
        Ok(Through {
            phases: phases.collect(),
            queueing_mean_s: waits().map(Span::as_secs_f64).sum::<f64>() / seen.len().max(1) as f64,
            queueing_p95_s: quantile(waits(), 0.95),
            packets_dropped: report.links.first().map_or(0, LinkStats::dropped),
        })
    }
}

/// Returns the record of a media packet from the sender; `None` for other packets: packets from the receiver, RTCP,
/// STUN and DTLS (RFC 7983, Sec. 7; RFC 5761, Sec. 4).
fn media(passed: &Passed<'_>) -> Option<Seen> {
    let &[first, second, ..] = passed.datagram? else { return None };
    let is_media = !passed.is_back && (128..192).contains(&first) && !(192..224).contains(&second);
    is_media.then_some(Seen { at: passed.at, bits: passed.size.as_bits(), waited: passed.waited })
}

fn quantile(of: impl Iterator<Item = Span>, share: f64) -> f64 {
    let mut sorted: Vec<_> = of.collect();
    sorted.sort_unstable();
    let at = (share * sorted.len().saturating_sub(1) as f64).round() as usize;
    sorted.get(at).map_or(0.0, |wait| wait.as_secs_f64())
}
