//! The two ends of a flow, the same in both worlds: same seed, same source numbers, same background departures.

use equipoise::control::ConfigError;
use equipoise::measure::ClockMap;
use equipoise::pace::{Source, Traffic, stream_seed};
use equipoise::session::rtp::{Background, Receiver, ReceiverConfig, Sender, SenderConfig, SessionError, StreamConfig};
use equipoise::units::{Instant, Rate, Schedule, SenderClock, Span};
use thiserror::Error;

use crate::scenario::{ControllerChoice, Flow};

/// Why a flow's ends cannot be made.
#[derive(Debug, Error)]
pub enum EndsError {
    /// The controller refuses its parameters.
    #[error(transparent)]
    Controller(#[from] ConfigError),
    /// The session refuses its configuration.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// A dynamic payload type (RFC 3551, Sec. 3).
const PAYLOAD_TYPE: u8 = 96;

/// Streams from here on seed sessions; those before seed background sources.
const FIRST_SESSION_STREAM: u64 = 1 << 32;

/// Both ends of flow number `index`, which is a session, in a run that begins at `origin`.
pub(crate) fn session(
    flow: &Flow,
    (controller, report_interval): (&ControllerChoice, Span),
    index: usize,
    seed: u64,
    origin: Instant<SenderClock>,
) -> Result<(Sender, Receiver), EndsError> {
    let (stream, flow_seed) = stream(flow, index, seed);
    let far = receiver(index, stream.ssrc, flow_seed)?;
    let config = SenderConfig::new(stream, report_interval, origin + flow.start, flow_seed);
    Ok((Sender::new(config, controller.build(flow.packet_size)?)?, far))
}

/// Both ends of background traffic as an RTP stream.
pub(crate) fn background(
    flow: &Flow,
    source: Source<SenderClock>,
    index: usize,
    seed: u64,
) -> Result<(Background, Receiver), EndsError> {
    let (stream, flow_seed) = stream(flow, index, seed);
    let far = receiver(index, stream.ssrc, flow_seed)?;
    Ok((Background::new(stream, source)?, far))
}

/// When the packets of background traffic leave: at the same times in both worlds.
pub(crate) fn source<C>(
    flow: &Flow,
    (traffic, rate): (&Traffic, &Schedule<Rate>),
    index: usize,
    seed: u64,
    origin: Instant<C>,
) -> Source<C> {
    Source::new(traffic.clone(), rate.clone(), flow.packet_size, origin + flow.start, (seed, index as u64))
}

fn stream(flow: &Flow, index: usize, seed: u64) -> (StreamConfig, u64) {
    let flow_seed = stream_seed(seed, FIRST_SESSION_STREAM + index as u64);
    let (ssrc, packet_size) = (flow_seed as u32, flow.packet_size);
    (StreamConfig::new(ssrc, PAYLOAD_TYPE, packet_size, cname("sender", index)), flow_seed)
}

fn receiver(index: usize, sender_ssrc: u32, seed: u64) -> Result<Receiver, SessionError> {
    // Another source number than the sender's, whatever that is.
    let ssrc = sender_ssrc ^ 1;
    Receiver::new(ReceiverConfig::new(ssrc, cname("receiver", index), sender_ssrc, ClockMap::SYNCHRONISED, seed))
}

fn cname(side: &str, index: usize) -> String {
    format!("{side}-{index}@equipoise")
}
