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

/// Settings of the congestion control of a peer connection.
#[derive(Debug)]
pub struct Config {
    /// The controller.
    pub controller: BoxedController,
    /// The format of the receiver's feedback. Browsers offer transport-wide feedback.
    pub format: Format,
    /// The packets of a frame are paced at this multiple of the rate, unless the controller sets its own pacing rate. A
    /// value below 1 counts as 1. With a larger value, large frames are sent faster, but build a longer queue at the
    /// bottleneck.
    pub pacing: f64,
    /// Length of an interval for controllers that decide once per interval, such as `ap`.
    pub interval: Span,
    /// Number of bytes in each packet that the packet size of the WebRTC stack does not include: the IP and UDP headers
    /// and the SRTP tag (RFC 3711, Sec. 4.2).
    pub overhead: Size,
}

/// The size of the IPv4 and UDP headers and of the SRTP tag, which has 10 bytes (HMAC-SHA1-80).
const OVERHEAD: Size = Size::from_bytes(38);
/// The packet size that is assumed for controllers that count packets: typical for video, with headers.
const PACKET: Size = Size::from_bytes(1240);

impl Config {
    /// Creates the configuration for `controller`: transport-wide feedback, pacing at 1.5 times the rate, and intervals
    /// of 250 ms for a controller that decides once per interval.
    pub fn new(controller: BoxedController) -> Self {
        let interval = Span::from_millis(250);
        Self { controller, format: Format::TransportWide, pacing: 1.5, interval, overhead: OVERHEAD }
    }

    /// Creates the configuration for the controller with this name, with values for some of its parameters, such as
    /// `("max_rate", "5 Mbit/s")`.
    ///
    /// # Errors
    /// [`InstallError::Unknown`] if the name is not known, [`InstallError::Config`] if a parameter or its value is
    /// invalid.
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

/// Why congestion control cannot be installed.
#[derive(Debug, Error)]
pub enum InstallError {
    /// No controller has this name.
    #[error("there is no controller {name:?}; there are {known}")]
    Unknown {
        /// The given name.
        name: String,
        /// The names of all controllers, separated by commas.
        known: String,
    },
    /// A parameter of the controller is invalid.
    #[error("a parameter of the controller is invalid")]
    Config(#[from] ConfigError),
    /// The controller needs more than per-packet feedback, or it decides on no rate.
    #[error("the controller cannot be used here")]
    Controller(#[from] SessionError),
    /// The stack refused the header extension for transport-wide numbers.
    #[error("the stack refuses the header extension for transport-wide numbers")]
    Stack(#[from] StackError),
}

/// Adds congestion control to a chain of interceptors. Adds the feedback format to the offers and answers of
/// `media_engine`, whose codecs must already be registered.
///
/// The installed congestion control replaces the stack's own congestion control and pacer, so do not call
/// `configure_congestion_control` as well. This endpoint also sends feedback, in the same format, about the media that
/// it receives.
///
/// # Errors
/// [`InstallError::Controller`] if the controller needs more than per-packet feedback or sets no rate;
/// [`InstallError::Stack`] if the stack refuses a header extension.
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
            // The SDP feedback parameter of RFC 8888, Sec. 6.
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
