//! The emulated path as a program: traffic of others goes through it, and its counters come out as JSON.

mod interval;
mod settings;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use equipoise::units::{Size, Span};
use equipoise_net::{Bridge, BridgeReport, Clock, DirectionReport, Lateness};
pub use equipoise_net::{BridgeConfig, NetError};
use equipoise_path::link::LinkStats;
use serde::{Deserialize, Serialize};

pub use interval::LinkInterval;
pub use settings::{
    BucketSettings, CapacitySettings, DisciplineSettings, Ends, JitterSettings, LossSettings, PathSettings,
    QueueSettings, RateStep,
};

use crate::result::Stall;
use interval::Sampled;

/// How often it is looked whether the end has come.
const LOOK: Span = Span::from_millis(20);

/// What a path tells while it carries.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkNews {
    /// It begins, at this address if it is a relay.
    Ready(Option<SocketAddr>),
    /// An interval is over.
    Interval {
        /// From the clients to the target, or from the first interface to the second.
        forward: LinkInterval,
        /// The other way.
        back: LinkInterval,
    },
}

/// Carries traffic between `ends` until `stop` is set, or for as long as `time`; `tell` hears of its beginning, and of each interval if
/// the configuration samples any.
///
/// # Errors
/// [`NetError`] where there is no such path or no right to it, or where it broke.
pub fn run(
    ends: &Ends,
    config: &BridgeConfig,
    time: Option<Span>,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(LinkNews),
) -> Result<LinkReport, NetError> {
    let clock = Clock::new();
    let bridge = match ends {
        Ends::Udp { listen, target } => Bridge::relay(&clock, config, *listen, *target)?,
        Ends::Interfaces { first, second } => Bridge::between(&clock, config, first, second)?,
        Ends::Tun { first, second } => Bridge::tun(&clock, config, first, second)?,
    };
    tell(LinkNews::Ready(bridge.address()));
    let start = clock.now();
    let mut last = Sampled::of(bridge.start_time());
    let ended = || stop.load(Ordering::Relaxed) || time.is_some_and(|time| clock.now() - start >= time);
    while bridge.is_running() && !ended() {
        let end = time.map_or(Span::MAX, |time| time - (clock.now() - start));
        clock.sleep_until(clock.now() + LOOK.min(end));
        for sample in bridge.samples() {
            let (forward, back) = last.until(&sample);
            tell(LinkNews::Interval { forward, back });
        }
    }
    Ok(LinkReport::new(&bridge.stop()?, LinkSettings::new(ends, config, time)))
}

/// What happened on the path, as JSON has it. Rates and sizes are of IP packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkReport {
    /// Version of Equipoise that made it.
    pub version: String,
    /// The configuration that it ran with.
    pub settings: LinkSettings,
    /// How long it ran, in seconds.
    pub lasted_s: f64,
    /// From the clients to the target, or from the first interface to the second.
    pub forward: LinkDirection,
    /// The other way.
    pub back: LinkDirection,
    /// Clients that there were.
    pub clients: u64,
    /// Packets that were lost at the sockets, by cause.
    pub sockets: SocketLosses,
    /// Frames of several segments that were taken apart.
    pub frames_taken_apart: u64,
    /// Checksums that were filled in.
    pub checksums_filled_in: u64,
    /// Where arrival times came from.
    pub timestamps: String,
    /// When the machine stalled.
    pub stalls: Vec<Stall>,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkSettings {
    /// Between what the path lies.
    pub ends: Ends,
    /// The seed.
    pub seed: u64,
    /// Whether it stayed awake before departures.
    pub spin: bool,
    /// For how long it was to run, in seconds; `None` for until it was stopped.
    pub time_s: Option<f64>,
    /// The path from the clients to the target, or from the first interface to the second.
    pub forward: PathSettings,
    /// The other way.
    pub back: PathSettings,
}

impl LinkSettings {
    fn new(ends: &Ends, config: &BridgeConfig, time: Option<Span>) -> Self {
        Self {
            ends: ends.clone(),
            seed: config.seed,
            spin: config.spin,
            time_s: time.map(Span::as_secs_f64),
            forward: PathSettings::new(&config.forward),
            back: PathSettings::new(&config.back),
        }
    }
}

/// One direction of the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkDirection {
    /// Packets that came in.
    pub packets_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Packets that came out, duplicates included.
    pub packets_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Mean rate of what came out, in bit/s; over the whole time, silence included.
    pub mean_rate_bps: Option<f64>,
    /// Packets lost by chance.
    pub packets_lost: u64,
    /// Packets that a policer dropped.
    pub packets_policed: u64,
    /// Packets that found the queue full.
    pub packets_dropped_full: u64,
    /// Packets that the queue dropped to tell of congestion.
    pub packets_dropped_early: u64,
    /// Packets that it marked in place of that (ECN).
    pub packets_marked: u64,
    /// Packets dropped for want of memory.
    pub packets_refused: u64,
    /// Copies made.
    pub packets_duplicated: u64,
    /// Packets that came out after one that had come in later.
    pub packets_reordered: u64,
    /// Packets that were still under way.
    pub packets_in_flight: u64,
    /// Waiting packets, averaged over time.
    pub mean_queue_packets: Option<f64>,
    /// The most packets that ever waited at once.
    pub longest_queue_packets: usize,
    /// How much later than ideal packets left.
    pub late: Option<Late>,
    /// The same without the windows of 100 ms in which the machine stalled.
    pub late_without_stalls: Option<Late>,
}

/// Lateness of departures, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Late {
    /// Packets that count.
    pub packets: u64,
    /// Median.
    pub p50_s: f64,
    /// 99th percentile.
    pub p99_s: f64,
    /// 99.9th percentile.
    pub p999_s: f64,
    /// Largest.
    pub max_s: f64,
}

/// Packets lost at the program's own sockets, not by the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketLosses {
    /// The system could not take them for sending.
    pub unsent: u64,
    /// They found a receive buffer full.
    pub overflowed: u64,
    /// They came to a client's socket and not from the target.
    pub foreign: u64,
    /// There was no socket for their client.
    pub turned_away: u64,
    /// They were longer than the interface may send.
    pub oversize: u64,
}

impl LinkReport {
    fn new(report: &BridgeReport, settings: LinkSettings) -> Self {
        let ports = &report.ports;
        let stalls = report.stalls.list.iter().map(|stall| (stall.start - report.start, stall.end - report.start));
        Self {
            version: crate::VERSION.to_owned(),
            settings,
            lasted_s: report.lasted.as_secs_f64(),
            forward: LinkDirection::new(&report.forward, report.lasted),
            back: LinkDirection::new(&report.back, report.lasted),
            clients: ports.clients,
            sockets: SocketLosses {
                unsent: ports.unsent,
                overflowed: ports.overflowed,
                foreign: ports.foreign,
                turned_away: ports.turned_away,
                oversize: ports.oversize,
            },
            frames_taken_apart: ports.taken_apart,
            checksums_filled_in: ports.checksums,
            timestamps: ports.timestamps.name().to_owned(),
            stalls: stalls
                .map(|(start, end)| Stall { start_s: start.as_secs_f64(), end_s: end.as_secs_f64() })
                .collect(),
        }
    }

    /// The report as pretty JSON.
    ///
    /// # Panics
    /// Never: a report holds no map with other keys than texts.
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self).expect("a report is plain numbers and texts");
        json.push('\n');
        json
    }
}

impl LinkDirection {
    fn new(report: &DirectionReport, lasted: Span) -> Self {
        let path: &LinkStats = &report.path;
        let seconds = lasted.as_secs_f64();
        let per_second = |size: Size| (seconds > 0.0).then(|| size.as_bits() as f64 / seconds);
        let late = |lateness: Option<Lateness>, packets| lateness.map(|lateness| Late::new(lateness, packets));
        let punctuality = &report.punctuality;
        Self {
            packets_in: path.entered,
            bytes_in: path.entered_bytes.as_bytes(),
            packets_out: path.left,
            bytes_out: path.left_bytes.as_bytes(),
            mean_rate_bps: per_second(path.left_bytes),
            packets_lost: path.lost,
            packets_policed: path.policed,
            packets_dropped_full: path.dropped_full,
            packets_dropped_early: path.dropped_early,
            packets_marked: path.marked,
            packets_refused: report.refused,
            packets_duplicated: path.duplicated,
            packets_reordered: path.reordered,
            packets_in_flight: path.in_flight,
            mean_queue_packets: path.usage.mean_queue,
            longest_queue_packets: path.usage.longest_queue,
            late: late(punctuality.all, punctuality.packets),
            late_without_stalls: late(punctuality.quiet, punctuality.quiet_packets),
        }
    }
}

impl Late {
    fn new(lateness: Lateness, packets: u64) -> Self {
        Self {
            packets,
            p50_s: lateness.p50.as_secs_f64(),
            p99_s: lateness.p99.as_secs_f64(),
            p999_s: lateness.p999.as_secs_f64(),
            max_s: lateness.max.as_secs_f64(),
        }
    }
}
