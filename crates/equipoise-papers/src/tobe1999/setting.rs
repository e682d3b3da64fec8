//! The testbed of Tobe 1999, Fig. 1 and 8, as a world, and what is read off it.

use equipoise::control::ap::{Ap, ApConfig, Learning};
use equipoise::control::window::Reno;
use equipoise::control::{self, BoxedController, RateLimits};
use equipoise::measure::ClockMap;
use equipoise::random::stream_seed;
use equipoise::units::{Instant, Rate, Schedule, Size, Span};
use equipoise_pair::tpba::{Period, Running, RunningConfig, TpbaConfig};
use equipoise_path::link::{LinkConfig, QueueLimit};
use equipoise_path::source::{Source, Traffic};
use equipoise_session::{Event, Transport, rtp};
use equipoise_sim::pair::{PairFar, PairParts, pair};
use equipoise_sim::tcp::{self, LossRecovery, Supply};
use equipoise_sim::{Flow, FlowId, LinkId, Observer, Side, SimClock, Stream, Time, World};
use rayon::prelude::*;

use super::super::experiment::Lab;
use equipoise_lab::EndsError;
use equipoise_lab::sim::SimError;

/// Tobe 1999, Sec. 3.
pub(super) const BOTTLENECK: Rate = Rate::from_bps(1_200_000);
/// The hosts' own links: Ethernet of the time.
pub(super) const ACCESS: Rate = Rate::from_bps(10_000_000);
/// The paper prints no length. It says that nothing is lost with LDA at 600 kbit/s beside two TCP flows: 22 segments of TCP and
/// 56 packets of LDA then wait at the same time. FreeBSD 2.2's own 50 packets would lose of them. Ours: the next round number.
pub(super) const QUEUE: QueueLimit = QueueLimit::Packets(100);
/// A queue that never fills: hosts and the way back lose nothing.
pub(super) const AMPLE: QueueLimit = QueueLimit::Packets(10_000);
/// FreeBSD 2.2's default socket buffers, 16 kB, in segments of 1460 bytes.
pub(super) const PAPER_WINDOW: u64 = 11;
/// A window that limits nobody, as of today's hosts.
pub(super) const OPEN_WINDOW: u64 = 1 << 20;
pub(super) const SEGMENT: Size = Size::from_bytes(1500);
/// Headers of IP and TCP.
const TCP_HEADER: u64 = 40;
/// An RTP packet with 512 bytes of an ADU: 28 of IP and UDP, 28 of RTP with the sending time, 20 of the part.
pub(super) const RTP_PACKET: Size = Size::from_bytes(588);
/// Ten payloads of 512 bytes, and one of 64 (Tobe 1999, Sec. 6.1).
pub(super) const ADU2: Size = Size::from_bytes(5120);
pub(super) const ADU1: Size = Size::from_bytes(64);
/// Flows that start together start within so many seconds of each other: otherwise all runs would be one. Ours.
const START_SPREAD_S: f64 = 0.2;
/// Those that start later than this start on time: from there on the response is counted.
const FIRST_START_S: f64 = 1.0;
/// Poisson packets of 64 bytes stand for what hosts do beside; they keep flows from dropping in step (Floyd 1992). Ours.
const NOISE: Rate = Rate::from_bps(12_000);
const NOISE_PACKET: Size = Size::from_bytes(64);

/// A run: the path, and who is on it.
#[derive(Clone)]
pub(super) struct Setting {
    pub(super) round_trip_ms: i64,
    pub(super) duration_s: f64,
    /// TCP's receive window, in segments.
    pub(super) window: u64,
    pub(super) flows: Vec<Plan>,
    pub(super) seed: u64,
}

/// A flow of a run.
#[derive(Clone)]
pub(super) struct Plan {
    pub(super) kind: Kind,
    pub(super) start_s: f64,
    /// When a TCP flow stops.
    pub(super) stop_s: Option<f64>,
}

#[derive(Clone)]
pub(super) enum Kind {
    Tcp,
    Pair {
        tpba: TpbaConfig,
        law: RunningLaw,
        report: Span,
        adu: Size,
    },
    /// A rate controller of the catalogue.
    Rate {
        name: &'static str,
        parameters: Vec<(&'static str, String)>,
        report: Span,
    },
}

/// What governs a running period.
#[derive(Clone, Copy)]
pub(super) enum RunningLaw {
    Loss(RunningConfig),
    /// AP with this target, whose highest rate is the one that TCP had.
    Ap(Span),
}

impl Plan {
    pub(super) const fn tcp(start_s: f64) -> Self {
        Self { kind: Kind::Tcp, start_s, stop_s: None }
    }

    /// TPBA with the paper's values.
    pub(super) const fn tpba(start_s: f64, adu: Size) -> Self {
        let law = RunningLaw::Loss(RunningConfig::PAPER);
        let kind = Kind::Pair { tpba: TpbaConfig::PAPER, law, report: Span::from_secs(1), adu };
        Self { kind, start_s, stop_s: None }
    }
}

/// What was seen of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Trace {
    /// Rate of IP packets at the receiver, in bit/s, by flow and interval.
    pub(super) rates: Vec<Vec<f64>>,
    /// ADUs given out: when, which one, and by which transport.
    pub(super) adus: Vec<(f64, u64, Period)>,
    /// Periods begun: when, which, the first ADU, and the rate.
    pub(super) began: Vec<(f64, Period, u64, f64)>,
    /// Loss shares that reports told of.
    pub(super) reported_losses: Vec<f64>,
    /// Mean one-way delay of RTP packets by flow, in s.
    pub(super) delays_s: Vec<f64>,
}

/// Sees the ends of the flows.
#[derive(Default)]
struct Watch {
    trace: Trace,
    /// Bytes of RTP packets by flow.
    media: Vec<u64>,
    /// Sum and count of delays by flow.
    delays: Vec<(f64, u64)>,
}

fn seconds(at: Time) -> f64 {
    (at - Time::ZERO).as_secs_f64()
}

fn at(seconds: f64) -> Time {
    Time::ZERO + Span::from_secs_f64(seconds).unwrap_or(Span::ZERO)
}

impl Observer for Watch {
    fn on_event(&mut self, now: Time, flow: FlowId, side: Side, event: &Event) {
        match (side, event) {
            (Side::Far, Event::MediaReceived { size, delay, .. }) => {
                let (media, delays) = (&mut self.media[flow.index()], &mut self.delays[flow.index()]);
                *media += size.as_bytes();
                *delays = (delays.0 + delay.as_secs_f64(), delays.1 + 1);
            }
            (Side::Near, Event::ReportApplied { fraction_lost, .. }) => self.trace.reported_losses.push(*fraction_lost),
            (_, Event::AduReceived { number, over, .. }) => {
                self.trace.adus.push((seconds(now), *number, period(*over)));
            }
            (_, Event::Switched { to, adu, rate }) => {
                self.trace.began.push((seconds(now), period(*to), *adu, rate.as_bps_f64()));
            }
            _ => {}
        }
    }
}

/// The period in which a transport carries the data.
const fn period(transport: Transport) -> Period {
    match transport {
        Transport::Tcp => Period::Probing,
        Transport::Rtp => Period::Running,
    }
}

/// Runs a setting, and takes rates over intervals of `interval_s`.
pub(super) fn run(setting: &Setting, interval_s: f64) -> Result<Trace, SimError> {
    let (mut world, flows) = build(setting)?;
    let count = flows.len() + 1;
    let mut watch = Watch { media: vec![0; count], delays: vec![(0.0, 0); count], ..Watch::default() };
    watch.trace.rates = vec![Vec::new(); flows.len()];
    let mut before = vec![0; flows.len()];
    let intervals = (setting.duration_s / interval_s).round() as u32;
    for interval in 1..=intervals {
        world.run(at(f64::from(interval) * interval_s), &mut watch);
        for (index, flow) in flows.iter().enumerate() {
            let tcp = world.far(*flow).or_else(|| world.far(*flow).map(PairFar::tcp));
            let segments =
                tcp.map_or(0, |far: &tcp::Receiver| far.delivered().as_bytes() + far.received().0 * TCP_HEADER);
            let bytes = segments + watch.media[index];
            let news = bytes - std::mem::replace(&mut before[index], bytes);
            watch.trace.rates[index].push(news as f64 * 8.0 / interval_s);
        }
    }
    watch.trace.delays_s = watch.delays.iter().map(|(sum, count)| sum / *count as f64).collect();
    Ok(watch.trace)
}

/// Runs each of them, on as many threads as the lab may use.
pub(super) fn run_all<T: Send>(
    lab: &Lab<'_>,
    settings: &[Setting],
    interval_s: f64,
    keep: impl Fn(&Setting, Trace) -> T + Sync,
) -> Result<Vec<T>, SimError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(lab.options.threads.unwrap_or(0)).build()?;
    let one = |setting: &Setting| {
        let kept = run(setting, interval_s).map(|trace| keep(setting, trace));
        lab.count(1);
        kept
    };
    pool.install(|| settings.par_iter().map(one).collect())
}

fn build(setting: &Setting) -> Result<(World, Vec<FlowId>), SimError> {
    let mut world = World::new();
    let mut link = |rate, propagation_delay, queue| {
        let config = LinkConfig { rate: Schedule::constant(rate), propagation_delay, queue };
        world.add_link(config).map_err(|source| SimError::Link { link: "of the testbed".to_owned(), source })
    };
    // Half of the round trip each way: a fifth of that in the access link, the rest at the bottleneck.
    let way = Span::from_micros(500 * setting.round_trip_ms);
    let access_delay = Span::from_nanos(way.as_nanos() / 5);
    let bottleneck = link(BOTTLENECK, way - access_delay, QUEUE)?;
    let back = link(ACCESS, way, AMPLE)?;
    let access = (0..=setting.flows.len()).map(|_| link(ACCESS, access_delay, AMPLE)).collect::<Result<Vec<_>, _>>()?;
    let mut flows = Vec::new();
    for (index, plan) in setting.flows.iter().enumerate() {
        let drawn = START_SPREAD_S * stream_seed(setting.seed, index as u64) as f64 / u64::MAX as f64;
        let late = if plan.start_s > FIRST_START_S { 0.0 } else { drawn };
        let paths = (vec![access[index], bottleneck], vec![back]);
        let seed = setting.seed.wrapping_mul(1000).wrapping_add(index as u64);
        let added = add(&mut world, setting.window, (plan, at(plan.start_s + late)), paths, seed);
        flows.push(added.map_err(|error| match error {
            Refused::Ends(source) => SimError::Ends { flow: format!("number {}", index + 1), source },
            Refused::Flow(error) => SimError::Flow(error),
        })?);
    }
    let source: Source<SimClock> = Source::new(
        Traffic::Poisson,
        Schedule::constant(NOISE),
        NOISE_PACKET,
        Instant::ZERO,
        (setting.seed, flows.len() as u64),
    );
    let noise_access = access[setting.flows.len()];
    world.add_stream(Stream { source, forward: vec![noise_access, bottleneck] })?;
    Ok((world, flows))
}

/// Why a flow cannot be added.
enum Refused {
    Ends(EndsError),
    Flow(equipoise_sim::FlowError),
}

impl<E: Into<EndsError>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self::Ends(error.into())
    }
}

fn add(
    world: &mut World,
    window: u64,
    (plan, start): (&Plan, Time),
    (forward, backward): (Vec<LinkId>, Vec<LinkId>),
    seed: u64,
) -> Result<FlowId, Refused> {
    let ssrc = (seed as u32).wrapping_mul(2);
    let rtp_far = rtp::ReceiverConfig::new(ssrc + 1, "far", ssrc, ClockMap::SYNCHRONISED, seed);
    let rtp_near = |packet, report| {
        let stream = rtp::StreamConfig::new(ssrc, 96, packet, "near");
        rtp::SenderConfig::new(stream, report, start.assume_clock(), seed)
    };
    match &plan.kind {
        Kind::Tcp => {
            let config = tcp_config(start, plan.stop_s, Supply::Unlimited);
            let (near, far) = (tcp_near(config)?, tcp_far(window)?);
            world.add_flow(Flow::new(near, far, forward, backward)).map_err(Refused::Flow)
        }
        Kind::Rate { name, parameters, report } => {
            let near = rtp::Sender::new(rtp_near(RTP_PACKET, *report), controller(name, parameters)?)?;
            let far = rtp::Receiver::new(rtp_far)?;
            world.add_flow(Flow::new(near, far, forward, backward)).map_err(Refused::Flow)
        }
        Kind::Pair { tpba, law, report, adu } => {
            let law = *law;
            let running = Box::new(move |rate| governed(law, rate));
            let config = equipoise_pair::SenderConfig { rtp: rtp_near(RTP_PACKET, *report), tpba: *tpba, running };
            let (near, far) = pair(PairParts {
                near: equipoise_pair::Sender::new(config)?,
                far: equipoise_pair::Receiver::new(equipoise_pair::ReceiverConfig::new(rtp_far))?,
                // Tobe 1999, Sec. 4: the window is not reset for idleness.
                tcp_near: tcp_near(tcp::SenderConfig {
                    idle_restart: false,
                    ..tcp_config(start, None, Supply::Written)
                })?,
                tcp_far: tcp_far(window)?,
                packet: SEGMENT,
                adu: *adu,
                start,
            });
            world.add_flow(Flow::new(near, far, forward, backward)).map_err(Refused::Flow)
        }
    }
}

/// TCP as BSD had it in 1999: `NewReno` for its fast recovery, no SACK, a first window of one segment.
fn tcp_config(start: Time, stop_s: Option<f64>, supply: Supply) -> tcp::SenderConfig {
    let recovery = LossRecovery::NewReno;
    tcp::SenderConfig { start, stop: stop_s.map(at), supply, recovery, ..tcp::SenderConfig::new(SEGMENT) }
}

fn tcp_near(config: tcp::SenderConfig) -> Result<tcp::Sender, EndsError> {
    Ok(tcp::Sender::new(config, Box::new(Reno::new(1.0)))?)
}

fn tcp_far(window: u64) -> Result<tcp::Receiver, EndsError> {
    Ok(tcp::Receiver::new(tcp::ReceiverConfig { window, sack: false, ..tcp::ReceiverConfig::new() })?)
}

fn controller(name: &'static str, parameters: &[(&'static str, String)]) -> Result<BoxedController, EndsError> {
    let given: Vec<_> = parameters.iter().map(|(name, text)| (*name, text.as_str())).collect();
    // The names are this program's own, and a test runs each.
    let Some(entry) = control::find(name) else { unreachable!("no controller is called {name}") };
    Ok(entry.build(&entry.parse(&given)?, RTP_PACKET)?)
}

fn governed(law: RunningLaw, rate: Rate) -> BoxedController {
    match law {
        RunningLaw::Loss(config) => Box::new(Running::new(config, rate)),
        RunningLaw::Ap(target) => {
            let least = RunningConfig::PAPER.min_rate;
            let limits = RateLimits::new(least, rate.max(least));
            match limits {
                Ok(limits) => {
                    // The catalogue's defaults.
                    let (response, unrest, learning) = (300.0, 0.08, Learning::Fixed);
                    Box::new(Ap::new(ApConfig { target, limits, response, learning, unrest, packet: RTP_PACKET }))
                }
                // The least rate is above zero and not above itself.
                Err(error) => unreachable!("{error}"),
            }
        }
    }
}
