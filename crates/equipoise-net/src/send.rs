//! A session in which this host sends to a server on another host.

use std::net::SocketAddr;

use equipoise::control::scheduler::BoxedScheduler;
use equipoise::control::{BoxedController, Needs};
use equipoise::units::{Rate, Size, Span};
use equipoise_session::feedback::{Format, Reporting};
use equipoise_session::multipath::{self, Total};
use equipoise_session::rtp::{Delays, Payload, Repeating, Sender, SenderConfig, StreamConfig};
use equipoise_session::wire::NtpTime;
use equipoise_session::wire::rtp::{RtpHeader, Subflow};
use equipoise_session::{Ecn, Endpoint};

use crate::channel::channel;
use crate::driver::drive;
use crate::secure::opening::Asked;
use crate::secure::protection::Protection;
use crate::secure::{Key, random};
use crate::transport::{Client, Links};
use crate::{Clock, Dscp, NetError, Observer, Paths, PayloadSender, Running, Socket, Via};

/// The settings of a session in which this host sends to a server, except for the controller.
#[derive(Clone, Debug)]
pub struct SendConfig {
    /// The address of the server.
    pub peer: SocketAddr,
    /// The key that both hosts share. With `None`, anybody can read and forge the packets of the session.
    pub key: Option<Key>,
    /// The kind of payload that the session carries.
    pub payload: Payload,
    /// Size of every IP packet, including headers. If an application provides the payload, this is the maximum size.
    pub packet_size: Size,
    /// Which delays the controller uses. [`Delays::Agreed`] is not possible between hosts.
    pub delays: Delays,
    /// Time between two requests that ask the server for a report.
    pub report_interval: Span,
    /// Interval and format of the per-packet feedback from the server. `None` means the default format once per
    /// [`Reporting::INTERVAL`] if the controller needs per-packet feedback, and no per-packet feedback otherwise.
    pub reporting: Option<Reporting>,
    /// The ECN field of media packets. It determines whether queues may mark these packets instead of dropping them.
    pub ecn: Ecn,
    /// SSRC of the media packets; `None` for a random SSRC. Must be set if the packets come from another program.
    pub ssrc: Option<u32>,
    /// Whether the session also carries packets of a second source in another program, such as audio in addition to
    /// video. These packets are sent before all other packets ([`SenderConfig::has_further_source`]). Possible only in
    /// a session over one path.
    pub has_further_source: bool,
    /// RTP payload type of the media packets.
    pub payload_type: u8,
    /// How long to wait until the server has opened the session.
    pub patience: Span,
}

/// The default RTP payload type: a dynamic type (RFC 3551, Sec. 3).
pub(crate) const PAYLOAD_TYPE: u8 = 96;

impl SendConfig {
    /// A session of generated media, with packets of 1200 bytes and a report every second.
    pub const fn new(peer: SocketAddr, key: Option<Key>) -> Self {
        Self {
            peer,
            key,
            payload: Payload::Generated,
            packet_size: Size::from_bytes(1200),
            delays: Delays::Queueing,
            report_interval: Span::from_secs(1),
            reporting: None,
            ecn: Ecn::NotCapable,
            ssrc: None,
            has_further_source: false,
            payload_type: PAYLOAD_TYPE,
            patience: Span::from_secs(5),
        }
    }

    /// A session that carries a stream of bytes. Its other settings are those of [`SendConfig::new`].
    pub fn stream(peer: SocketAddr, key: Option<Key>) -> Self {
        Self { payload: Payload::Stream, ..Self::new(peer, key) }
    }

    /// Returns the rate of the payload if all packets are full. `rate` is the rate of the IP packets, such as the
    /// controller's rate.
    pub fn payload_rate(&self, rate: Rate) -> Rate {
        self.payload_rate_with(rate, None)
    }

    /// Like [`payload_rate`](Self::payload_rate), for a session over several paths: its packets have longer headers.
    pub fn multipath_payload_rate(&self, rate: Rate) -> Rate {
        self.payload_rate_with(rate, Some(Subflow::default()))
    }

    fn payload_rate_with(&self, rate: Rate, subflow: Option<Subflow>) -> Rate {
        let header = RtpHeader { send_time: Some(NtpTime::from_bits(0)), subflow, ..RtpHeader::default() };
        let headers = Size::IPV4_UDP + self.overhead() + Size::from_bytes(header.encoded_len() as u64);
        let share = 1.0 - headers.as_bytes() as f64 / self.packet_size.as_bytes().max(1) as f64;
        Rate::from_bps((rate.as_bps_f64() * share) as u64)
    }

    /// Number of bytes of an IP packet in addition to an IPv4 header, the UDP header and the RTP packet. These are the
    /// bytes that encryption adds. If the peer has an IPv6 address, 20 bytes are added for the longer IP header.
    pub fn overhead(&self) -> Size {
        Self::overhead_to(self.peer, self.key.is_some())
    }

    /// Like [`overhead`](Self::overhead), for packets to `peer`.
    pub(crate) fn overhead_to(peer: SocketAddr, is_secure: bool) -> Size {
        let cipher = if is_secure { Protection::OVERHEAD } else { 0 };
        // An IPv6 header is 20 bytes longer than an IPv4 header (RFC 8200, Sec. 3).
        let header = match peer {
            SocketAddr::V6(peer) if peer.ip().to_ipv4_mapped().is_none() => 20,
            _ => 0,
        };
        Size::from_bytes(cipher + header)
    }

    /// Returns the sender's configuration, and the request that is sent to the receiver.
    fn session(&self, clock: &Clock, needs: Needs, several: bool) -> (SenderConfig, Asked) {
        let ssrc = self.ssrc.unwrap_or_else(|| u32::from_be_bytes(random()));
        let stream = StreamConfig {
            overhead: self.overhead(),
            ..StreamConfig::new(ssrc, self.payload_type, self.packet_size, format!("sender-{ssrc:08x}@equipoise"))
        };
        let start = clock.now().assume_clock();
        let base = SenderConfig::new(stream, self.report_interval, start, u64::from_be_bytes(random()));
        let Self { payload, delays, ecn, has_further_source, .. } = *self;
        let reporting =
            self.reporting.or_else(|| needs.contains(Needs::PACKETS).then(|| usual_reporting(payload, ecn, several)));
        let asked = Asked { key: self.key.clone(), ssrc, payload, reporting, several, wanted: None };
        // The sender answers all requests for retransmission. The receiver's configuration determines whether the
        // receiver sends such requests.
        let repeating = Some(Repeating::default());
        (SenderConfig { payload, delays, ecn, reporting, repeating, has_further_source, ..base }, asked)
    }
}

/// Returns the default per-packet feedback. Transport-wide feedback is preferred, because its arrival times are more
/// exact than those of RFC 8888 feedback. Transport-wide feedback is not used with ECN, because it contains no
/// congestion marks. It needs transport-wide sequence numbers, which exist only for generated media over one path.
pub(crate) fn usual_reporting(payload: Payload, ecn: Ecn, several: bool) -> Reporting {
    let has_numbers = payload == Payload::Generated && ecn == Ecn::NotCapable && !several;
    let format = if has_numbers { Format::TransportWide } else { Format::CongestionFeedback };
    Reporting { format, interval: Reporting::INTERVAL }
}

/// The additional settings of a session over several paths: the paths, and a scheduler that divides the rate among the
/// paths.
pub struct Multipath {
    /// The paths, 1 to [`MAX_PATHS`](multipath::MAX_PATHS), numbered from 0 in this order.
    pub paths: Vec<Via>,
    /// The scheduler, which divides the total rate among the paths.
    pub scheduler: BoxedScheduler,
    /// Time between two decisions of the scheduler; not less than the report interval.
    pub period: Span,
    /// The class of service of the session's packets.
    pub dscp: Dscp,
}

impl Multipath {
    /// A session over `paths`. The scheduler decides every 5 s, as in the paper (Asvarujanon 2014, Sec. 4.3).
    pub fn new(paths: Vec<Via>, scheduler: BoxedScheduler) -> Self {
        Self { paths, scheduler, period: multipath::Sender::PERIOD, dscp: Dscp::DEFAULT }
    }
}

/// An open session over several paths.
pub struct MultipathSession<O> {
    /// The session's thread.
    pub running: Running<multipath::Sender, O>,
    /// The channel for payload; `None` for generated media.
    pub payloads: Option<PayloadSender>,
    /// A handle for changing the session's paths while the session runs.
    pub paths: Paths,
}

/// Opens a session and sends on a separate thread. The thread ends when the session is stopped ([`Running::stop`]),
/// when the server ends the session, or when the last [`PayloadSender`] was dropped and all payload has been sent.
///
/// If the media is generated, there is no channel for payload, and the second value is `None`.
///
/// # Errors
/// [`NetError::NoAnswer`], [`NetError::Refused`] and [`NetError::OtherVersion`] if the server opens no session,
/// [`NetError::Session`] if the configuration is invalid or does not fit the controller, and the system's errors.
pub fn send<O: Observer + Send + 'static>(
    socket: Socket,
    config: &SendConfig,
    controller: BoxedController,
    observer: O,
) -> Result<(Running<Sender, O>, Option<PayloadSender>), NetError> {
    // The settings are checked before anything is sent.
    let (sender, asked) = config.session(socket.clock(), controller.needs(), false);
    let endpoint = Sender::new(sender, controller)?;
    start(endpoint, Links::fixed(vec![socket]), (config, asked), observer)
}

/// Opens a session over several paths, and otherwise behaves like [`send`]. The paths can be changed while the session
/// runs.
///
/// Each path has its own socket, which is bound to a network interface and to an address of this interface. If the
/// interface goes down or its address changes, the path stops at once. The path starts again when the server is
/// reachable over this path. No path is used before the server has answered on it.
///
/// `total` determines the total rate. If it has a controller for each path, the server sends per-packet feedback.
///
/// # Errors
/// The errors of [`send`], and the errors of [`Paths::add`] if a path is invalid.
pub fn send_multipath<O: Observer + Send + 'static>(
    clock: &Clock,
    config: &SendConfig,
    multipath: Multipath,
    total: Total,
    observer: O,
) -> Result<MultipathSession<O>, NetError> {
    let Multipath { paths, scheduler, period, dscp } = multipath;
    let needs = if matches!(total, Total::PerPath(_)) { Needs::PACKETS } else { Needs::NOTHING };
    let (sender, asked) = config.session(clock, needs, true);
    let endpoint = multipath::Sender::new(sender, period, total, scheduler)?;
    let paths = Paths::new(config.peer, &paths)?;
    let links = Links::following(paths.clone(), dscp, clock)?;
    let (running, payloads) = start(endpoint, links, (config, asked), observer)?;
    Ok(MultipathSession { running, payloads, paths })
}

/// A running sender and its channel for payload.
type Started<E, O> = (Running<E, O>, Option<PayloadSender>);

fn start<E, O>(
    endpoint: E,
    links: Links,
    (config, asked): (&SendConfig, Asked),
    observer: O,
) -> Result<Started<E, O>, NetError>
where
    E: Endpoint + Send + 'static,
    O: Observer + Send + 'static,
{
    let is_generated = asked.payload == Payload::Generated;
    let client = Client::open(links, config.peer, asked, config.patience)?;
    if is_generated {
        return Ok((drive("sender", endpoint, client, observer, None)?, None));
    }
    let (payloads, queue) = channel()?;
    Ok((drive("sender", endpoint, client, observer, Some(queue))?, Some(payloads)))
}
