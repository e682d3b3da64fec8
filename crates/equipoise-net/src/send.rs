//! A session to a server on another host.

use std::net::SocketAddr;

use equipoise::control::BoxedController;
use equipoise::session::rtp::{Delays, Payload, Sender, SenderConfig, StreamConfig};
use equipoise::units::{Rate, Size, Span};
use equipoise::wire::NtpTime;
use equipoise::wire::rtp::RtpHeader;

use crate::driver::drive;
use crate::mailbox::mailbox;
use crate::secure::protection::Protection;
use crate::secure::{Key, random};
use crate::transport::{Client, Opening};
use crate::{Mailbox, NetError, Observer, Running, Socket};

/// What a session to a server is made of, beside its controller.
#[derive(Clone, Debug)]
pub struct SendConfig {
    /// The server.
    pub peer: SocketAddr,
    /// What both hosts know; `None` for a session that anybody may read and forge.
    pub key: Option<Key>,
    /// What it carries.
    pub payload: Payload,
    /// Size of every IP packet, headers included; of the largest, where an application gives the payload.
    pub packet_size: Size,
    /// What the delays are that the controller holds; between hosts there is no [`Delays::Agreed`].
    pub delays: Delays,
    /// Time between two requests for a report.
    pub report_interval: Span,
    /// The source of its packets; `None` for one drawn by chance. Another program's packets have to have it.
    pub ssrc: Option<u32>,
    /// RTP payload type.
    pub payload_type: u8,
    /// How long the server's first answer is waited for.
    pub patience: Span,
}

impl SendConfig {
    /// A dynamic payload type (RFC 3551, Sec. 3).
    const PAYLOAD_TYPE: u8 = 96;

    /// A session of generated media: packets of 1200 bytes, a report every second.
    pub const fn new(peer: SocketAddr, key: Option<Key>) -> Self {
        Self {
            peer,
            key,
            payload: Payload::Generated,
            packet_size: Size::from_bytes(1200),
            delays: Delays::Queueing,
            report_interval: Span::from_secs(1),
            ssrc: None,
            payload_type: Self::PAYLOAD_TYPE,
            patience: Span::from_secs(5),
        }
    }

    /// A session that carries a stream of bytes, and is else like [`SendConfig::new`].
    pub fn stream(peer: SocketAddr, key: Option<Key>) -> Self {
        Self { payload: Payload::Stream, ..Self::new(peer, key) }
    }

    /// What a rate of IP packets, such as the controller decides, leaves for payload in full packets.
    pub fn payload_rate(&self, rate: Rate) -> Rate {
        let header = RtpHeader { send_time: Some(NtpTime::from_bits(0)), ..RtpHeader::default() };
        let headers = Size::IPV4_UDP + self.overhead() + Size::from_bytes(header.encoded_len() as u64);
        let share = 1.0 - headers.as_bytes() as f64 / self.packet_size.as_bytes().max(1) as f64;
        Rate::from_bps((rate.as_bps_f64() * share) as u64)
    }

    /// Bytes that other layers than UDP and IPv4 add to a datagram.
    pub fn overhead(&self) -> Size {
        let cipher = if self.key.is_some() { Protection::OVERHEAD } else { 0 };
        // An IPv6 header is twice as long (RFC 8200, Sec. 3).
        let header = if self.peer.is_ipv6() { 20 } else { 0 };
        Size::from_bytes(cipher + header)
    }
}

/// Opens a session and sends on a thread of its own, until it is stopped or nobody has a [`Mailbox`] to it any more.
///
/// Generated media needs no mailbox: stop it by [`Running::stop`]. Then `None` is given.
///
/// # Errors
/// [`NetError::NoAnswer`] and [`NetError::Refused`] where the server gives no session, [`NetError::Session`] for a packet
/// size or payload type that cannot be, and what the system says.
pub fn send<O: Observer + Send + 'static>(
    socket: Socket,
    config: &SendConfig,
    controller: BoxedController,
    observer: O,
) -> Result<(Running<Sender, O>, Option<Mailbox>), NetError> {
    let ssrc = config.ssrc.unwrap_or_else(|| u32::from_be_bytes(random()));
    let stream = StreamConfig {
        overhead: config.overhead(),
        ..StreamConfig::new(ssrc, config.payload_type, config.packet_size, format!("sender-{ssrc:08x}@equipoise"))
    };
    // Whatever is wrong with the session itself is said before anybody is asked.
    let start = socket.clock().now().assume_clock();
    let base = SenderConfig::new(stream, config.report_interval, start, u64::from_be_bytes(random()));
    let sender = Sender::new(SenderConfig { payload: config.payload, delays: config.delays, ..base }, controller)?;
    let opening = Opening {
        peer: config.peer,
        key: config.key.clone(),
        ssrc,
        payload: config.payload,
        patience: config.patience,
    };
    let client = Client::open(socket, opening)?;
    if config.payload == Payload::Generated {
        return Ok((drive("sender", sender, client, observer, None)?, None));
    }
    let (mailbox, inbox) = mailbox()?;
    Ok((drive("sender", sender, client, observer, Some(inbox))?, Some(mailbox)))
}
