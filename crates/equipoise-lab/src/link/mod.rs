//! Runs the emulated path as a program of its own. The path carries traffic of other programs, and reports its counters
//! as JSON.

mod interval;
mod settings;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use equipoise::units::{Size, Span};
use equipoise_net::{Bridge, BridgeReport, BridgeSample, Clock, DirectionReport, Lateness};
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

/// Maximum time between two checks for new samples and for the end of the run.
const LOOK: Span = Span::from_millis(20);

/// What a path reports while it runs.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkNews {
    /// The path is ready. For [`Ends::Udp`], contains the address on which the path listens.
    Ready(Option<SocketAddr>),
    /// A sampling interval is over.
    Interval {
        /// Counters of the direction from the clients to the target, or from the first interface to the second.
        forward: LinkInterval,
        /// Counters of the opposite direction.
        back: LinkInterval,
    },
}

/// Carries traffic between `ends` until `stop` is set, and for no longer than `time`. Calls `tell` when the path is
/// ready. If the configuration requests samples, also calls `tell` after each interval; the last interval may be
/// shorter.
///
/// # Errors
/// [`NetError`] if the path cannot be created, if the process lacks the permission for it, or if the path fails while
/// it runs.
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
    let report = bridge.stop()?;
    let sample =
        BridgeSample { at: report.start + report.lasted, forward: report.forward.path, back: report.back.path };
    if config.sample_interval.is_some() && last.is_before(&sample) {
        let (forward, back) = last.until(&sample);
        tell(LinkNews::Interval { forward, back });
    }
    Ok(LinkReport::new(&report, LinkSettings::new(ends, config, time)))
}

/// The results of the path. The fields are those of the JSON output. Rates and sizes are those of
/// whole IP packets, headers included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkReport {
    /// Version of Equipoise that produced the report.
    pub version: String,
    /// Configuration of the path.
    pub settings: LinkSettings,
    /// How long the path ran, in seconds.
    pub lasted_s: f64,
    /// Results of the direction from the clients to the target, or from the first interface to the second.
    pub forward: LinkDirection,
    /// Results of the opposite direction.
    pub back: LinkDirection,
    /// Number of UDP clients that the path served.
    pub clients: u64,
    /// Packets lost at the program's own sockets, by cause.
    pub sockets: SocketLosses,
    /// Number of Ethernet frames that this program split into segments, because the sender left this to hardware
    /// offload.
    pub frames_taken_apart: u64,
    /// Number of checksums that this program computed, because the sender left them to hardware offload.
    pub checksums_filled_in: u64,
    /// Name of the source of arrival timestamps.
    pub timestamps: String,
    /// Times during which the machine stalled.
    pub stalls: Vec<Stall>,
}

/// The configuration that the user requested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkSettings {
    /// The two ends of the path.
    pub ends: Ends,
    /// Seed of the path's random numbers.
    pub seed: u64,
    /// Whether the program busy-waited before departures, for better timing.
    pub spin: bool,
    /// Requested duration, in seconds; `None` for a path that runs until it is stopped.
    pub time_s: Option<f64>,
    /// Configuration of the direction from the clients to the target, or from the first interface to the second.
    pub forward: PathSettings,
    /// Configuration of the opposite direction.
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

/// Results of one direction of the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkDirection {
    /// Packets that entered the path.
    pub packets_in: u64,
    /// Bytes of the packets that entered the path.
    pub bytes_in: u64,
    /// Packets that left the path, including duplicates.
    pub packets_out: u64,
    /// Bytes of the packets that left the path.
    pub bytes_out: u64,
    /// Rate of the packets that left, in bit/s, averaged over the whole run including idle times; `None` for a run of
    /// zero length.
    pub mean_rate_bps: Option<f64>,
    /// Packets lost at random.
    pub packets_lost: u64,
    /// Packets that a policer dropped.
    pub packets_policed: u64,
    /// Packets dropped because the queue was full.
    pub packets_dropped_full: u64,
    /// Packets that the queue dropped to signal congestion.
    pub packets_dropped_early: u64,
    /// Packets that the queue marked to signal congestion (ECN).
    pub packets_marked: u64,
    /// Packets that the program dropped for lack of memory; the path's own drops are not included.
    pub packets_refused: u64,
    /// Number of duplicates that the path created.
    pub packets_duplicated: u64,
    /// Packets that were overtaken: another packet entered later and left earlier.
    pub packets_reordered: u64,
    /// Packets in the queue or in flight at the end of the run.
    pub packets_in_flight: u64,
    /// Number of packets waiting in the queue, averaged over time.
    pub mean_queue_packets: Option<f64>,
    /// Maximum number of packets that waited in the queue at once.
    pub longest_queue_packets: usize,
    /// Lateness of all packets that left, compared with the emulated path's departure times; `None` if no packet left.
    pub late: Option<Late>,
    /// As `late`, but only for packets that left in windows of 100 ms in which the machine did not stall. `None` if
    /// there are no such packets.
    pub late_without_stalls: Option<Late>,
}

/// Lateness of departures, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Late {
    /// Number of packets measured.
    pub packets: u64,
    /// Median lateness.
    pub p50_s: f64,
    /// 99th percentile of the lateness.
    pub p99_s: f64,
    /// 99.9th percentile of the lateness.
    pub p999_s: f64,
    /// Maximum lateness.
    pub max_s: f64,
}

/// Packets lost at the program's own sockets, not on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketLosses {
    /// Packets that the operating system did not accept for sending, or whose client's socket was already closed.
    pub unsent: u64,
    /// Packets that arrived when a receive buffer was full.
    pub overflowed: u64,
    /// Packets that arrived at a client's socket from an address other than the target's, and packets from UDP port 0,
    /// which cannot be answered.
    pub foreign: u64,
    /// Packets of refused clients. The program refuses a client if too many clients are active, or if the program
    /// cannot open a socket for the client.
    pub turned_away: u64,
    /// Packets that were longer than the interface's MTU and could not be segmented.
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

    /// Returns the report as indented JSON.
    ///
    /// # Panics
    /// Never: the derived serialisation fails only for maps whose keys are not strings, and a report contains no map.
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
