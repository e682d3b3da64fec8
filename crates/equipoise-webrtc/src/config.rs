use std::time::Instant;

use equipoise::control::adapt::IntervalConfig;
use equipoise::control::{BoxedController, ConfigError, entries, find};
use equipoise::units::{Size, Span};
use equipoise_session::feedback::Format;
use equipoise_session::rtp::SessionError;
use rtc::interceptor::{Registry, Rfc8888Builder, Slot, TwccReceiverBuilder, TwccSenderBuilder};
use rtc::peer_connection::configuration::media_engine::MediaEngine;
use rtc::rtp_transceiver::rtp_sender::{RTCPFeedback, RTCRtpHeaderExtensionCapability, RtpCodecKind};
use rtc::sdp::extmap::TRANSPORT_CC_URI;
use rtc::shared::error::Error as StackError;
use thiserror::Error;

use crate::interceptor::CongestionControl;
use crate::monitor::Monitor;

/// What controls the rate of a peer connection, and how.
#[derive(Debug)]
pub struct Config {
    /// The law.
    pub controller: BoxedController,
    /// The format in which the receiver tells of packets. Browsers offer transport-wide feedback.
    pub format: Format,
    /// Packets of a frame follow each other at so many times the rate, unless the controller has a view of its own; 1 at least.
    /// More lets large frames leave sooner and makes a queue of their own at the bottleneck.
    pub pacing: f64,
    /// How long an interval is for a law that decides by intervals, such as `ap`.
    pub interval: Span,
    /// What a packet has around it that the stack does not count: IP, UDP and the tag of SRTP (RFC 3711, Sec. 4.2).
    pub overhead: Size,
}

/// IPv4 and UDP, and the 10 bytes of HMAC-SHA1-80.
const OVERHEAD: Size = Size::from_bytes(38);
/// The size for which laws that count packets are told that they are, at most: what packetisers make of frames, and headers.
const PACKET: Size = Size::from_bytes(1240);

impl Config {
    /// `controller` with transport-wide feedback, pacing at 1.5 times its rate, and intervals of 250 ms.
    pub fn new(controller: BoxedController) -> Self {
        let interval = Span::from_millis(250);
        Self { controller, format: Format::TransportWide, pacing: 1.5, interval, overhead: OVERHEAD }
    }

    /// The controller of this name in Equipoise's catalogue, with values for some of its parameters such as `("max_rate", "5 Mbit/s")`.
    ///
    /// # Errors
    /// [`InstallError::Unknown`] for the name, [`InstallError::Config`] for a parameter or its value.
    pub fn named(name: &str, given: &[(&str, &str)]) -> Result<Self, InstallError> {
        let entry = find(name).ok_or_else(|| InstallError::Unknown {
            name: name.to_owned(),
            known: entries().iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
        })?;
        Ok(Self::new(entry.build(&entry.parse(given)?, PACKET)?))
    }

    pub(crate) fn intervals(&self) -> IntervalConfig {
        IntervalConfig { quantum: self.format.quantum(), ..IntervalConfig::new(self.interval) }
    }
}

/// Why no congestion control was installed.
#[derive(Debug, Error)]
pub enum InstallError {
    /// No controller has that name.
    #[error("there is no controller {name:?}; there are {known}")]
    Unknown {
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// A parameter of the controller is wrong.
    #[error("a parameter of the controller is wrong")]
    Config(#[from] ConfigError),
    /// Feedback on packets does not provide what the controller needs, or it does not say a rate.
    #[error("the controller cannot be used here")]
    Controller(#[from] SessionError),
    /// The stack refuses a header extension.
    #[error("the stack refuses the header extension for transport-wide numbers")]
    Stack(#[from] StackError),
}

/// Puts congestion control into a chain of interceptors, and what feedback needs into the offers and answers of `media_engine`,
/// whose codecs have to be registered before.
///
/// It takes the places of the stack's own congestion control and pacer; so do not call `configure_congestion_control` as well. Its
/// own media are reported on to the far end in the same format.
///
/// # Errors
/// [`InstallError::Controller`] if the controller needs what feedback on packets does not provide; [`InstallError::Stack`].
pub fn install(
    registry: Registry,
    media_engine: &mut MediaEngine,
    config: Config,
) -> Result<(Registry, Monitor), InstallError> {
    let format = config.format;
    let (congestion_control, monitor) = CongestionControl::new(config, Instant::now())?;
    for kind in [RtpCodecKind::Video, RtpCodecKind::Audio] {
        match format {
            Format::TransportWide => {
                media_engine.register_feedback(feedback("transport-cc", ""), kind);
                let extension = RTCRtpHeaderExtensionCapability { uri: TRANSPORT_CC_URI.to_owned() };
                media_engine.register_header_extension(extension, kind, None)?;
            }
            // RFC 8888, Sec. 6.
            Format::CongestionFeedback => media_engine.register_feedback(feedback("ack", "ccfb"), kind),
        }
    }
    let registry = registry.with(Slot::CongestionControl, congestion_control);
    let registry = match format {
        Format::TransportWide => registry
            .with(Slot::TwccSender, TwccSenderBuilder::new().build())
            .with(Slot::TwccReceiver, TwccReceiverBuilder::new().build()),
        Format::CongestionFeedback => registry.with(Slot::Rfc8888, Rfc8888Builder::new().build()),
    };
    Ok((registry, monitor))
}

fn feedback(kind: &str, parameter: &str) -> RTCPFeedback {
    RTCPFeedback { typ: kind.to_owned(), parameter: parameter.to_owned() }
}
