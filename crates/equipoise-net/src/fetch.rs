//! A session in which this host requests media from a server on another host.

use std::net::SocketAddr;

use equipoise::measure::ClockMap;
use equipoise::units::{Size, Span};
use equipoise_session::feedback::Reporting;
use equipoise_session::rtp::{Clocks, Payload, Receiver, ReceiverConfig};

use crate::driver::drive;
use crate::secure::opening::Asked;
use crate::secure::protection::Protection;
use crate::secure::{Key, Wanted, random};
use crate::send::usual_reporting;
use crate::transport::{Client, Links};
use crate::{NetError, Observer, Running, Socket};

/// The settings of a session in which the server sends media to this host.
#[derive(Clone, Debug)]
pub struct FetchConfig {
    /// The address of the server.
    pub peer: SocketAddr,
    /// The key that both hosts share. With `None`, anybody can read and forge the packets of the session.
    pub key: Option<Key>,
    /// The media that is requested from the server.
    pub wanted: Wanted,
    /// Interval and format of the per-packet feedback that this host sends. `None` means the default format once per
    /// [`Reporting::INTERVAL`], or no feedback if the requested rate is constant.
    pub reporting: Option<Reporting>,
    /// How long to wait until the server has opened the session.
    pub patience: Span,
    /// How long the server may send nothing in the open session, before the session ends.
    pub idle: Span,
}

impl FetchConfig {
    /// The settings of a session in which the server sends `wanted`.
    pub const fn new(peer: SocketAddr, key: Option<Key>, wanted: Wanted) -> Self {
        Self { peer, key, wanted, reporting: None, patience: Span::from_secs(5), idle: Span::from_secs(30) }
    }
}

/// Opens a session in which the server sends media to this host. Receives the media on a separate thread, until the
/// session is stopped or the server ends it.
///
/// If the requested rate is not constant, the server's own control law, `equipoise`, sets the rate. The rate is within
/// the range of `wanted` and within the server's limit
/// ([`ServerConfig::reverse_limit`](crate::ServerConfig::reverse_limit)).
///
/// # Errors
/// [`NetError::NoAnswer`], [`NetError::Refused`] and [`NetError::OtherVersion`] if the server opens no session;
/// [`NetError::Session`] if the feedback interval is invalid; and the system's errors. The running session can fail
/// with [`NetError::Silent`] or [`NetError::StartedAgain`].
pub fn fetch<O: Observer + Send + 'static>(
    socket: Socket,
    config: &FetchConfig,
    observer: O,
) -> Result<Running<Receiver, O>, NetError> {
    let FetchConfig { peer, wanted, .. } = *config;
    let usual = || (!wanted.is_constant()).then(|| usual_reporting(Payload::Generated, wanted.ecn(), false));
    let reporting = config.reporting.or_else(usual);
    let ssrc = u32::from_be_bytes(random());
    let receiver = |sender_ssrc| {
        let overhead = if config.key.is_some() { Protection::OVERHEAD } else { 0 };
        let cname = format!("receiver-{ssrc:08x}@equipoise");
        let base = ReceiverConfig::new(ssrc, cname, sender_ssrc, ClockMap::SYNCHRONISED, u64::from(ssrc));
        let overhead = Size::from_bytes(overhead);
        Receiver::new(ReceiverConfig { clocks: Clocks::Apart, overhead, reporting, ..base })
    };
    // This receiver is created only to check the settings before anything is sent.
    receiver(0)?;
    let asked = Asked {
        key: config.key.clone(),
        ssrc,
        payload: Payload::Generated,
        reporting,
        several: false,
        wanted: Some(wanted),
    };
    let mut client = Client::open(Links::fixed(vec![socket]), peer, asked, config.patience)?;
    client.listen(config.idle);
    let receiver = receiver(client.peer_ssrc())?;
    drive("receiver", receiver, client, observer, None)
}
