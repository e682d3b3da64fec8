//! The bottleneck between the two pipelines, and the packets that pass through it.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use equipoise::units::{Rate, Schedule, Span};
use equipoise_net::{Clock, Emulator, EmulatorConfig, Passed, Protocol, Route, Time, Watcher};
use equipoise_path::link::{LinkConfig, LinkStats, QueueLimit};

/// The capacities of the bottleneck in bit/s, in order (RFC 8867, Sec. 5.1).
pub(crate) const STEPS_BPS: [u64; 4] = [1_000_000, 2_500_000, 600_000, 1_000_000];
/// One-way delay without a queue.
const PROPAGATION: Span = Span::from_millis(50);
/// The maximum length of the bottleneck's queue; packets that arrive at a full queue are dropped.
const QUEUE: Span = Span::from_millis(300);
/// The rate of the return path, which is never the bottleneck.
const BACK: Rate = Rate::from_bps(100_000_000);

/// An emulated path, which records each packet that it delivers to the receiver.
pub(crate) struct Path {
    emulator: Emulator,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// A packet that passed the bottleneck.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Time,
    pub(crate) bits: u64,
    pub(crate) waited: Span,
}

impl Path {
    /// Starts an emulated path from `sender` to `receiver`. The first phase begins at `begin`, and each phase has the
    /// length `phase`. The capacity changes from each phase to the next.
    pub(crate) fn new(
        clock: &Clock,
        (begin, phase): (Time, Span),
        (sender, receiver): (SocketAddr, SocketAddr),
    ) -> Result<Self, Box<dyn Error>> {
        let steps = (0i64..).zip(STEPS_BPS).skip(1).map(|(at, bps)| (phase * at, Rate::from_bps(bps))).collect();
        let link = |rate| LinkConfig { rate, propagation_delay: PROPAGATION, queue: QueueLimit::Time(QUEUE) };
        let forward = link(Schedule::new(Rate::from_bps(STEPS_BPS[0]), steps));
        let links = vec![forward.into(), link(Schedule::constant(BACK)).into()];
        let route = Route { forward: vec![0], backward: vec![1], protocol: Protocol::Udp, sender, receiver };
        let seen = Arc::new(Mutex::new(Vec::new()));
        let book = Arc::clone(&seen);
        let watcher = Watcher::new(move |passed: &Passed<'_>| {
            if !passed.is_back {
                let seen = Seen { at: passed.at, bits: passed.size.as_bits(), waited: passed.waited };
                book.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
            }
        });
        let config = EmulatorConfig { watcher: Some(watcher), ..EmulatorConfig::new(begin, links, vec![route]) };
        Ok(Self { emulator: Emulator::start(clock, config)?, seen })
    }

    /// Returns the address to which the sender must send, and the address from which the sender's packets arrive at the
    /// receiver.
    pub(crate) fn ends(&self) -> Result<(SocketAddr, SocketAddr), &'static str> {
        self.emulator.entrance(0).zip(self.emulator.exit(0)).ok_or("the path has no ends")
    }

    /// Stops the path. Returns the packets that passed, and the number of packets that were dropped.
    pub(crate) fn stop(self) -> Result<(Vec<Seen>, u64), Box<dyn Error>> {
        let report = self.emulator.stop()?;
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok((seen, report.links.first().map_or(0, LinkStats::dropped)))
    }
}
