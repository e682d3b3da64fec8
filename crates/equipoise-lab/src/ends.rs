//! Builds the two endpoints of a flow. The simulator and live runs use the same RTP endpoints: the same seed results in
//! the same synchronisation sources (SSRCs) and the same departure times of background packets. Live runs use the
//! kernel's TCP.

use equipoise::control::coupled::GroupError;
use equipoise::control::window::WindowContext;
use equipoise::control::{ConfigError, PathLoad, RateContext};
use equipoise::measure::{ClockMap, InlineConfig};
use equipoise::random::stream_seed;
use equipoise::units::{Instant, Rate, ReceiverClock, Schedule, SenderClock, Size, Span};
use equipoise_pair::PairError;
use equipoise_path::source::{Source, WebConfig};
use equipoise_session::multipath;
#[cfg(feature = "live")]
use equipoise_session::rtp::Background;
use equipoise_session::rtp::{
    Clocks, Duplex, DuplexConfig, Pause, Receiver, ReceiverConfig, Sender, SenderConfig, SessionError, StreamConfig,
    Supply,
};
use equipoise_sim::pair::{PairFar, PairNear, PairParts};
use equipoise_sim::tcp::{self, KnownBandwidth, TcpError};
use equipoise_sim::web::{WebFar, WebNear, WebParts, WebTrafficError};
use equipoise_sim::{BandwidthOracle, WhiteNoise};
use thiserror::Error;

use crate::coupling::Groups;
use crate::playout::SharedPlayout;
use crate::scenario::{
    BandwidthSource, Choice, Flow, FlowKind, LawChoice, LiveMediaError, MultipathFlow, Outage, PairFlow, Scenario,
    TcpFlow, TrafficChoice,
};
use crate::video::TraceError;

/// Why the endpoints of a flow cannot be built.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EndsError {
    /// The controller's parameters are invalid.
    #[error(transparent)]
    Controller(#[from] ConfigError),
    /// The flow cannot join its group.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The session's configuration is invalid.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The flow uses the kernel's congestion control, which cannot be simulated, and defines no window law for the
    /// simulator.
    #[error(
        "`kernel = {name:?}` alone is for `equipoise live`; for the simulator give it a law of its own, such as `window = {{ name = \"reno\" }}`"
    )]
    KernelOnly {
        /// Name of the kernel's congestion control.
        name: String,
    },
    /// The controller of a session's reverse media needs the path load, which only the controller of the forward media
    /// can receive.
    #[error(
        "the controller of {flow} needs the load of the path, which media in the reverse direction of a session do not receive"
    )]
    LoadBack {
        /// Name of the flow of the reverse media.
        flow: String,
    },
    /// The recorded content of a flow (a trace of video frames) is invalid.
    #[error(transparent)]
    Content(#[from] TraceError),
    /// The live media of a flow cannot be produced.
    #[error(transparent)]
    Live(#[from] LiveMediaError),
    /// The flow pair's configuration is invalid.
    #[error(transparent)]
    Pair(#[from] PairError),
    /// The TCP host's configuration is invalid.
    #[error(transparent)]
    Tcp(#[from] TcpError),
    /// The web traffic's configuration is invalid.
    #[error(transparent)]
    Web(#[from] WebTrafficError),
}

/// A payload type from the dynamic range (RFC 3551, Sec. 3).
const PAYLOAD_TYPE: u8 = 96;

/// Number of the first random stream for sessions; background sources use lower numbers.
const FIRST_SESSION_STREAM: u64 = 1 << 32;
/// Numbers of the first random streams for window laws and for the noise of bandwidth oracles.
const FIRST_LAW_STREAM: u64 = 2 << 32;
const FIRST_NOISE_STREAM: u64 = 3 << 32;
/// Number of the first random stream for web traffic, after the streams for videos and links.
const FIRST_WEB_STREAM: u64 = 6 << 32;

/// One direction of a session that has media in both directions. `index` is the number of the direction's flow.
#[derive(Clone, Copy)]
pub(crate) struct OneWay<'a> {
    pub(crate) flow: &'a Flow,
    pub(crate) index: usize,
    pub(crate) controller: &'a Choice,
    pub(crate) report_interval: Span,
    pub(crate) load: &'a PathLoad,
}

/// Returns both directions of a session. The forward media are flow number `index`. The reverse media are the next
/// flow. Returns `None` if one of the two flows is missing or not a session.
pub(crate) fn both_ways<'a>(scenario: &'a Scenario, index: usize, loads: &'a [PathLoad; 2]) -> Option<[OneWay<'a>; 2]> {
    let way = |index: usize, load: &'a PathLoad| {
        let flow = scenario.flows.get(index)?;
        let FlowKind::Session { controller, report_interval, .. } = &flow.kind else { return None };
        Some(OneWay { flow, index, controller, report_interval: *report_interval, load })
    };
    let [there, back] = loads;
    Some([way(index, there)?, way(index + 1, back)?])
}

/// Builds both endpoints of a session with media in both directions, in a run that starts at `origin`.
pub(crate) fn duplex(
    ways: [OneWay<'_>; 2],
    seed: u64,
    origin: Instant<SenderClock>,
) -> Result<(Duplex<SenderClock>, Duplex<ReceiverClock>), EndsError> {
    let [there, back] = ways;
    let sending = |way: OneWay<'_>| sending(way.flow, way.report_interval, (way.index, seed), origin);
    let (near, far) = (sending(there)?, sending(back)?);
    let controller =
        |way: OneWay<'_>| way.controller.build(RateContext { packet: way.flow.packet_size, load: way.load.clone() });
    let clocks = Clocks::Known(ClockMap::SYNCHRONISED);
    let peers = [near.stream.ssrc, far.stream.ssrc];
    let near = Duplex::new(DuplexConfig::new(near, peers[1], clocks), controller(there)?)?;
    let far = Duplex::new(DuplexConfig::new(far, peers[0], clocks), controller(back)?)?;
    if back.load.is_shared() {
        return Err(EndsError::LoadBack { flow: back.flow.name.clone() });
    }
    Ok((near, far))
}

/// Returns the sender configuration of flow number `index`, which is a session.
fn sending(
    flow: &Flow,
    report_interval: Span,
    (index, seed): (usize, u64),
    origin: Instant<SenderClock>,
) -> Result<SenderConfig, EndsError> {
    let (stream, flow_seed) = stream(flow, index, seed);
    let pause = |outage: &Outage| Pause { from: origin + outage.at, until: outage.until.map(|until| origin + until) };
    Ok(SenderConfig {
        supply: supply(flow, index, seed)?,
        pauses: flow.pauses.iter().map(pause).collect(),
        reports_playout: flow.playout().is_some(),
        circuit_breakers: flow.circuit_breakers,
        ecn: flow.ecn,
        reporting: flow.reporting(),
        ..SenderConfig::new(stream, report_interval, origin + flow.start, flow_seed)
    })
}

/// Builds both endpoints of flow number `index`, which is a session, in a run that starts at `origin`.
pub(crate) fn session(
    flow: &Flow,
    (controller, report_interval, load): (&Choice, Span, &PathLoad),
    (index, seed): (usize, u64),
    (playout, groups): (Option<SharedPlayout>, &mut Groups),
    origin: Instant<SenderClock>,
) -> Result<(Sender, Receiver), EndsError> {
    let config = sending(flow, report_interval, (index, seed), origin)?;
    let far = receiver(flow, index, config.stream.ssrc, config.seed)?;
    let far = if let Some(playout) = playout { far.with_playout_buffer(Box::new(playout)) } else { far };
    let context = RateContext { packet: flow.packet_size, load: load.clone() };
    let controller = groups.join(controller.build(context)?, flow.coupled())?;
    Ok((Sender::new(config, controller)?, far))
}

/// Returns the source of the payload that flow number `index`, a session, sends.
fn supply(flow: &Flow, index: usize, seed: u64) -> Result<Supply, EndsError> {
    if let Some(live) = flow.live() {
        return Ok(live.supply(index, seed)?);
    }
    let content = flow.content().map(|content| content.content(flow.packet_size, index, seed)).transpose()?;
    Ok(content.map_or(Supply::Unlimited, Supply::Content))
}

/// Builds both endpoints of flow number `index`, a session over several paths, in a run that starts at `origin`.
pub(crate) fn multipath(
    flow: &Flow,
    config: &MultipathFlow,
    (index, seed): (usize, u64),
    origin: Instant<SenderClock>,
) -> Result<(multipath::Sender, multipath::Receiver), EndsError> {
    let (stream, flow_seed) = stream(flow, index, seed);
    let far = multipath::Receiver::new(receiver_config(flow, index, stream.ssrc, flow_seed))?;
    let base = SenderConfig::new(stream, config.report_interval, origin + flow.start, flow_seed);
    let (ecn, reporting, circuit_breakers) = (flow.ecn, flow.reporting(), flow.circuit_breakers);
    let near = SenderConfig { circuit_breakers, ecn, reporting, ..base };
    let (choice, packet) = (config.controller.clone(), flow.packet_size);
    let (first, highest) = (choice.build(packet)?, choice.parameters.highest_rate());
    let laws = multipath::PathLaws::new(move || choice.build(packet).ok(), highest);
    let total = multipath::Total::of(first, laws);
    Ok((multipath::Sender::new(near, config.period, total, config.scheduler.build(flow.packet_size)?)?, far))
}

/// Builds both endpoints of background traffic, which is sent as an RTP stream.
#[cfg(feature = "live")]
pub(crate) fn background(
    flow: &Flow,
    source: Source<SenderClock>,
    index: usize,
    seed: u64,
) -> Result<(Background, Receiver), EndsError> {
    let (stream, flow_seed) = stream(flow, index, seed);
    let far = receiver(flow, index, stream.ssrc, flow_seed)?;
    Ok((Background::new(stream, source)?, far))
}

/// Returns the source of the data that a TCP connection's application sends. `index` is the number of the connection's
/// flow.
pub(crate) fn tcp_supply(
    flow: &Flow,
    connection: &TcpFlow,
    index: usize,
    seed: u64,
) -> Result<tcp::Supply, TraceError> {
    let content = flow.content().map(|content| content.content(flow.packet_size, index, seed)).transpose()?;
    Ok(content.map_or_else(|| connection.supply.clone(), tcp::Supply::Content))
}

/// Builds both hosts of flow number `index`, which is a TCP connection.
pub(crate) fn tcp(
    flow: &Flow,
    connection: &TcpFlow,
    (index, seed): (usize, u64),
    bandwidth: Option<KnownBandwidth>,
) -> Result<(tcp::Sender, tcp::Receiver), EndsError> {
    let supply = tcp_supply(flow, connection, index, seed)?;
    let law_seed = stream_seed(seed, FIRST_LAW_STREAM + index as u64);
    tcp_hosts(flow.start, connection, TcpHosts { packet: flow.packet_size, supply, law_seed, bandwidth })
}

/// The parameters of both hosts of a TCP connection, in addition to its `TcpFlow`.
struct TcpHosts {
    /// Size of an IP packet that carries a full segment.
    packet: Size,
    supply: tcp::Supply,
    law_seed: u64,
    bandwidth: Option<KnownBandwidth>,
}

fn tcp_hosts(start: Span, connection: &TcpFlow, hosts: TcpHosts) -> Result<(tcp::Sender, tcp::Receiver), EndsError> {
    let (packet, seed) = (hosts.packet, hosts.law_seed);
    let law = law_of(connection)?.build(WindowContext { packet, seed })?;
    let (near, far) = tcp_configs(start, connection, hosts);
    Ok((tcp::Sender::new(near, law)?, tcp::Receiver::new(far)?))
}

/// Returns the window law that the simulator runs for a TCP connection.
fn law_of(connection: &TcpFlow) -> Result<&LawChoice, EndsError> {
    let none = || EndsError::KernelOnly { name: connection.congestion_control().to_owned() };
    connection.law.as_ref().ok_or_else(none)
}

fn tcp_configs(start: Span, connection: &TcpFlow, hosts: TcpHosts) -> (tcp::SenderConfig, tcp::ReceiverConfig) {
    let TcpFlow { stop, recovery, receive_window, delayed_acks, .. } = connection;
    let TcpHosts { packet, supply, bandwidth, .. } = hosts;
    let near = tcp::SenderConfig {
        packet,
        start: Instant::ZERO + start,
        stop: stop.map(|stop| Instant::ZERO + stop),
        supply,
        recovery: *recovery,
        limited_transmit: connection.limited_transmit,
        idle_restart: connection.idle_restart,
        handshake: connection.handshake,
        min_rto: connection.min_rto,
        measurement: (connection.bandwidth == BandwidthSource::Inline).then(|| InlineConfig::new(packet)),
        bandwidth,
    };
    let standard = tcp::ReceiverConfig::new();
    let far = tcp::ReceiverConfig {
        window: receive_window.unwrap_or(standard.window),
        delayed_acks: *delayed_acks,
        sack: *recovery == tcp::LossRecovery::Sack,
    };
    (near, far)
}

/// Returns the seed of flow number `index`, which is web traffic. With this seed, fetches and idle times are the same
/// in the simulator and in live runs.
pub(crate) const fn web_seed(index: usize, seed: u64) -> u64 {
    stream_seed(seed, FIRST_WEB_STREAM + index as u64)
}

/// Builds both hosts of flow number `index`, which is web traffic.
pub(crate) fn web(
    flow: &Flow,
    connection: &TcpFlow,
    web: WebConfig,
    (index, seed): (usize, u64),
) -> Result<(WebNear, WebFar), EndsError> {
    let (packet, law_seed) = (flow.packet_size, stream_seed(seed, FIRST_LAW_STREAM + index as u64));
    let law = law_of(connection)?.clone();
    law.build(WindowContext { packet, seed: law_seed })?;
    let hosts = TcpHosts { packet, supply: tcp::Supply::Unlimited, law_seed, bandwidth: None };
    let (near, far) = tcp_configs(flow.start, connection, hosts);
    Ok(equipoise_sim::web::web(WebParts {
        web,
        seed: web_seed(index, seed),
        near,
        far,
        law: Box::new(move |number| {
            let context = WindowContext { packet, seed: stream_seed(law_seed, number) };
            law.build(context).ok().map(Into::into)
        }),
    })?)
}

/// Returns the configurations of both endpoints of flow number `index`, which is a flow pair. The configurations of the
/// pair's TCP half are not included. The run starts at `origin`.
pub(crate) fn pair_ends(
    flow: &Flow,
    config: &PairFlow,
    (index, seed): (usize, u64),
    origin: Instant<SenderClock>,
) -> (equipoise_pair::SenderConfig, equipoise_pair::ReceiverConfig) {
    let (stream, flow_seed) = stream(flow, index, seed);
    let far = receiver_config(flow, index, stream.ssrc, flow_seed);
    let base = SenderConfig::new(stream, config.report_interval, origin + flow.start, flow_seed);
    let rtp = SenderConfig { circuit_breakers: flow.circuit_breakers, ..base };
    let (law, packet) = (config.law, flow.packet_size);
    let running = Box::new(move |found| law.controller(found, packet));
    let near = equipoise_pair::SenderConfig { rtp, tpba: config.tpba, running };
    (near, equipoise_pair::ReceiverConfig::new(far))
}

/// Builds both endpoints of flow number `index`, a flow pair, for a simulated run.
pub(crate) fn pair(flow: &Flow, config: &PairFlow, index: usize, seed: u64) -> Result<(PairNear, PairFar), EndsError> {
    let (near, far) = pair_ends(flow, config, (index, seed), Instant::ZERO);
    let hosts = TcpHosts {
        packet: config.segment,
        supply: config.tcp.supply.clone(),
        law_seed: stream_seed(seed, FIRST_LAW_STREAM + index as u64),
        bandwidth: None,
    };
    let (tcp_near, tcp_far) = tcp_hosts(flow.start, &config.tcp, hosts)?;
    Ok(equipoise_sim::pair::pair(PairParts {
        near: equipoise_pair::Sender::new(near)?,
        far: equipoise_pair::Receiver::new(far)?,
        tcp_near,
        tcp_far,
        packet: config.segment,
        adu: config.adu,
        start: Instant::ZERO + flow.start,
    }))
}

/// Returns the oracle that provides the path's bandwidth to a TCP connection; `None` if the scenario does not specify a
/// known bandwidth for the connection.
pub(crate) fn bandwidth_oracle(flow: &Flow, connection: &TcpFlow, index: usize, seed: u64) -> Option<BandwidthOracle> {
    let BandwidthSource::Known { interval, noise } = &connection.bandwidth else { return None };
    let noise = WhiteNoise::new(noise.clone(), stream_seed(seed, FIRST_NOISE_STREAM + index as u64));
    let told = KnownBandwidth::default();
    Some(BandwidthOracle { start: Instant::ZERO + flow.start, interval: *interval, noise, told })
}

/// Builds the source of background packets. Departure times are the same in the simulator and in live runs.
pub(crate) fn source<C>(
    flow: &Flow,
    (traffic, rate): (&TrafficChoice, &Schedule<Rate>),
    index: usize,
    seed: u64,
    origin: Instant<C>,
) -> Result<Source<C>, EndsError> {
    let model = traffic.build(())?;
    Ok(Source::new(model, rate.clone(), flow.packet_size, origin + flow.start, (seed, index as u64)))
}

fn stream(flow: &Flow, index: usize, seed: u64) -> (StreamConfig, u64) {
    let flow_seed = flow.rtcp.seed.unwrap_or_else(|| stream_seed(seed, FIRST_SESSION_STREAM + index as u64));
    let (ssrc, packet_size) = (flow_seed as u32, flow.packet_size);
    let name = flow.rtcp.sender.clone().unwrap_or_else(|| cname("sender", index));
    (StreamConfig::new(ssrc, PAYLOAD_TYPE, packet_size, name), flow_seed)
}

fn receiver(flow: &Flow, index: usize, sender_ssrc: u32, seed: u64) -> Result<Receiver, SessionError> {
    Receiver::new(receiver_config(flow, index, sender_ssrc, seed))
}

fn receiver_config(flow: &Flow, index: usize, sender_ssrc: u32, seed: u64) -> ReceiverConfig {
    // The receiver's SSRC is the sender's with one bit flipped, so the two always differ.
    let ssrc = sender_ssrc ^ 1;
    let name = flow.rtcp.receiver.clone().unwrap_or_else(|| cname("receiver", index));
    let reporting = flow.reporting();
    ReceiverConfig { reporting, ..ReceiverConfig::new(ssrc, name, sender_ssrc, ClockMap::SYNCHRONISED, seed) }
}

fn cname(side: &str, index: usize) -> String {
    format!("{side}-{index}@equipoise")
}
