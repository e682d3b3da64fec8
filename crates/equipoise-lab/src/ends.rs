//! The two ends of a flow, the same in both worlds: same seed, same source numbers, same background departures.

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

/// Why a flow's ends cannot be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EndsError {
    /// The controller refuses its parameters.
    #[error(transparent)]
    Controller(#[from] ConfigError),
    /// The group refuses the flow.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The session refuses its configuration.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The simulator has no congestion control of the kernel.
    #[error(
        "`kernel = {name:?}` alone is for `equipoise live`; for the simulator give it a law of its own, such as `window = {{ name = \"reno\" }}`"
    )]
    KernelOnly {
        /// The congestion control that it names.
        name: String,
    },
    /// Only the end that sends there is told of its path's load.
    #[error(
        "the controller of {flow} goes by the load that it is told; media that come back in a session are told of none"
    )]
    LoadBack {
        /// The name of the media back.
        flow: String,
    },
    /// There is no such content.
    #[error(transparent)]
    Content(#[from] TraceError),
    /// There are no such live media.
    #[error(transparent)]
    Live(#[from] LiveMediaError),
    /// The flow pair refuses its configuration.
    #[error(transparent)]
    Pair(#[from] PairError),
    /// The TCP host refuses its configuration.
    #[error(transparent)]
    Tcp(#[from] TcpError),
    /// The web traffic refuses its configuration.
    #[error(transparent)]
    Web(#[from] WebTrafficError),
}

/// A dynamic payload type (RFC 3551, Sec. 3).
const PAYLOAD_TYPE: u8 = 96;

/// Streams from here on seed sessions; those before seed background sources.
const FIRST_SESSION_STREAM: u64 = 1 << 32;
/// From here on, those of window laws that draw; then those of the noise in their measurements.
const FIRST_LAW_STREAM: u64 = 2 << 32;
const FIRST_NOISE_STREAM: u64 = 3 << 32;
/// And from here on those of web traffic, behind those of videos and of links.
const FIRST_WEB_STREAM: u64 = 6 << 32;

/// A direction of a session with media both ways: its flow, and the flow's number.
#[derive(Clone, Copy)]
pub(crate) struct OneWay<'a> {
    pub(crate) flow: &'a Flow,
    pub(crate) index: usize,
    pub(crate) controller: &'a Choice,
    pub(crate) report_interval: Span,
    pub(crate) load: &'a PathLoad,
}

/// Both directions of the session whose media there are flow number `index`; `None` if those back do not stand behind it.
pub(crate) fn both_ways<'a>(scenario: &'a Scenario, index: usize, loads: &'a [PathLoad; 2]) -> Option<[OneWay<'a>; 2]> {
    let way = |index: usize, load: &'a PathLoad| {
        let flow = scenario.flows.get(index)?;
        let FlowKind::Session { controller, report_interval, .. } = &flow.kind else { return None };
        Some(OneWay { flow, index, controller, report_interval: *report_interval, load })
    };
    let [there, back] = loads;
    Some([way(index, there)?, way(index + 1, back)?])
}

/// Both ends of a session with media there and back, in a run that begins at `origin`.
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

/// What an end of flow number `index`, which is a session, sends.
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

/// Both ends of flow number `index`, which is a session, in a run that begins at `origin`.
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

/// What flow number `index`, which is a session, has to send.
fn supply(flow: &Flow, index: usize, seed: u64) -> Result<Supply, EndsError> {
    if let Some(live) = flow.live() {
        return Ok(live.supply(index, seed)?);
    }
    let content = flow.content().map(|content| content.content(flow.packet_size, index, seed)).transpose()?;
    Ok(content.map_or(Supply::Unlimited, Supply::Content))
}

/// Both ends of flow number `index`, which goes over several paths, in a run that begins at `origin`.
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

/// Both ends of background traffic as an RTP stream.
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

/// What the application of flow number `index`, which is a TCP connection, sends.
pub(crate) fn tcp_supply(
    flow: &Flow,
    connection: &TcpFlow,
    index: usize,
    seed: u64,
) -> Result<tcp::Supply, TraceError> {
    let content = flow.content().map(|content| content.content(flow.packet_size, index, seed)).transpose()?;
    Ok(content.map_or_else(|| connection.supply.clone(), tcp::Supply::Content))
}

/// Both hosts of flow number `index`, which is a TCP connection.
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

/// What both hosts of a connection are made of, in addition to what its scenario says.
struct TcpHosts {
    /// Size of the IP packet of a full segment.
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

/// The law that the simulator runs.
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

/// Of the random numbers of flow number `index`, which is web traffic: the same fetches and idle times in both worlds.
pub(crate) const fn web_seed(index: usize, seed: u64) -> u64 {
    stream_seed(seed, FIRST_WEB_STREAM + index as u64)
}

/// Both hosts of flow number `index`, which is web traffic.
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

/// Both ends of flow number `index`, which is a flow pair, without its TCP, in a run that begins at `origin`.
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

/// Both ends of flow number `index`, which is a flow pair, in a simulated run.
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

/// What a TCP connection is told of its path's bandwidth.
pub(crate) fn bandwidth_oracle(flow: &Flow, connection: &TcpFlow, index: usize, seed: u64) -> Option<BandwidthOracle> {
    let BandwidthSource::Known { interval, noise } = &connection.bandwidth else { return None };
    let noise = WhiteNoise::new(noise.clone(), stream_seed(seed, FIRST_NOISE_STREAM + index as u64));
    let told = KnownBandwidth::default();
    Some(BandwidthOracle { start: Instant::ZERO + flow.start, interval: *interval, noise, told })
}

/// When the packets of background traffic leave: at the same times in both worlds.
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
    // Another source number than the sender's, whatever that is.
    let ssrc = sender_ssrc ^ 1;
    let name = flow.rtcp.receiver.clone().unwrap_or_else(|| cname("receiver", index));
    let reporting = flow.reporting();
    ReceiverConfig { reporting, ..ReceiverConfig::new(ssrc, name, sender_ssrc, ClockMap::SYNCHRONISED, seed) }
}

fn cname(side: &str, index: usize) -> String {
    format!("{side}-{index}@equipoise")
}
