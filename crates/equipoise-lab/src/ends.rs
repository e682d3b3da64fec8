//! The two ends of a flow, the same in both worlds: same seed, same source numbers, same background departures.

use equipoise::control::ConfigError;
use equipoise::measure::ClockMap;
use equipoise::pace::{Source, stream_seed};
use equipoise::session::rtp::{Background, Receiver, ReceiverConfig, Sender, SenderConfig, SessionError, StreamConfig};
use equipoise::units::{Instant, SenderClock};
use thiserror::Error;

use crate::scenario::{Flow, FlowKind};

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

/// The end that sends media.
pub(crate) enum Near {
    /// A controlled session.
    Sender(Sender),
    /// Background traffic.
    Background(Background),
}

/// A dynamic payload type (RFC 3551, Sec. 3).
const PAYLOAD_TYPE: u8 = 96;

/// Streams from here on seed sessions; those before seed background sources.
const FIRST_SESSION_STREAM: u64 = 1 << 32;

/// Both ends of flow number `index`, in a run that begins at `origin`.
pub(crate) fn ends(
    flow: &Flow,
    index: usize,
    seed: u64,
    origin: Instant<SenderClock>,
) -> Result<(Near, Receiver), EndsError> {
    let flow_seed = stream_seed(seed, FIRST_SESSION_STREAM + index as u64);
    let ssrc = flow_seed as u32;
    let stream =
        StreamConfig { ssrc, payload_type: PAYLOAD_TYPE, packet_size: flow.packet_size, cname: cname("sender", index) };
    let start = origin + flow.start;
    let near = match &flow.kind {
        FlowKind::Session { controller, report_interval, .. } => {
            let config = SenderConfig { stream, report_interval: *report_interval, start, seed: flow_seed };
            Near::Sender(Sender::new(config, controller.build(flow.packet_size)?)?)
        }
        FlowKind::Background { traffic, rate } => {
            let source = Source::new(traffic.clone(), rate.clone(), flow.packet_size, start, (seed, index as u64));
            Near::Background(Background::new(stream, source)?)
        }
    };
    let far = ReceiverConfig {
        // Another source number than the sender's, whatever that is.
        ssrc: ssrc ^ 1,
        cname: cname("receiver", index),
        sender_ssrc: ssrc,
        clocks: ClockMap::SYNCHRONISED,
        seed: flow_seed,
    };
    Ok((near, Receiver::new(far)?))
}

fn cname(side: &str, index: usize) -> String {
    format!("{side}-{index}@equipoise")
}
