//! A session that a server on another host sends in, since it is asked to.

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

/// What a session is made of in which the server sends.
#[derive(Clone, Debug)]
pub struct FetchConfig {
    /// The server.
    pub peer: SocketAddr,
    /// What both hosts know; `None` for a session that anybody may read and forge.
    pub key: Option<Key>,
    /// What the server is to send.
    pub wanted: Wanted,
    /// How this end reports on single packets; `None` for [`Reporting::INTERVAL`], and not at all at a constant rate.
    pub reporting: Option<Reporting>,
    /// How long the server's first answer is waited for.
    pub patience: Span,
    /// How long the server may be silent afterwards.
    pub idle: Span,
}

impl FetchConfig {
    /// A session in which the server sends what is wanted.
    pub const fn new(peer: SocketAddr, key: Option<Key>, wanted: Wanted) -> Self {
        Self { peer, key, wanted, reporting: None, patience: Span::from_secs(5), idle: Span::from_secs(30) }
    }
}

/// Opens a session in which the server sends, to this address and no other, and receives on a thread of its own until it is stopped or the
/// server ends it.
///
/// The rate is decided by the server's own law, `equipoise`, within what is wanted and what the server may send
/// ([`ServerConfig::reverse_limit`](crate::ServerConfig::reverse_limit)).
///
/// # Errors
/// [`NetError::NoAnswer`], [`NetError::Refused`] and [`NetError::OtherVersion`] where the server gives no session, [`NetError::Session`] for an interval of
/// feedback that cannot be, and what the system says. The session itself fails with [`NetError::Silent`] and
/// [`NetError::StartedAgain`].
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
    // Whatever is wrong with the session itself is said before anybody is asked.
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
