//! A session to a server on another host.

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
    /// How the server reports on single packets; `None` for [`Reporting::INTERVAL`] where the controller needs it, and not at all where
    /// it does not. Over several paths it is RFC 8888 alone, for a controller on each path.
    pub reporting: Option<Reporting>,
    /// What media packets say of congestion: whether queues may mark them in place of dropping them.
    pub ecn: Ecn,
    /// The source of its packets; `None` for one drawn by chance. Another program's packets have to have it.
    pub ssrc: Option<u32>,
    /// Whether it carries the packets of one further source of another program, such as audio beside video, before all else
    /// ([`SenderConfig::has_further_source`]); over one path.
    pub has_further_source: bool,
    /// RTP payload type.
    pub payload_type: u8,
    /// How long the server's first answer is waited for.
    pub patience: Span,
}

/// A dynamic payload type (RFC 3551, Sec. 3).
pub(crate) const PAYLOAD_TYPE: u8 = 96;

impl SendConfig {
    /// A session of generated media: packets of 1200 bytes, a report every second.
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

    /// A session that carries a stream of bytes, and is else like [`SendConfig::new`].
    pub fn stream(peer: SocketAddr, key: Option<Key>) -> Self {
        Self { payload: Payload::Stream, ..Self::new(peer, key) }
    }

    /// What a rate of IP packets, such as the controller decides, leaves for payload in full packets.
    pub fn payload_rate(&self, rate: Rate) -> Rate {
        self.payload_rate_with(rate, None)
    }

    /// The same for a session over several paths, whose packets say more of themselves.
    pub fn multipath_payload_rate(&self, rate: Rate) -> Rate {
        self.payload_rate_with(rate, Some(Subflow::default()))
    }

    fn payload_rate_with(&self, rate: Rate, subflow: Option<Subflow>) -> Rate {
        let header = RtpHeader { send_time: Some(NtpTime::from_bits(0)), subflow, ..RtpHeader::default() };
        let headers = Size::IPV4_UDP + self.overhead() + Size::from_bytes(header.encoded_len() as u64);
        let share = 1.0 - headers.as_bytes() as f64 / self.packet_size.as_bytes().max(1) as f64;
        Rate::from_bps((rate.as_bps_f64() * share) as u64)
    }

    /// Bytes that other layers than UDP and IPv4 add to a datagram.
    pub fn overhead(&self) -> Size {
        Self::overhead_to(self.peer, self.key.is_some())
    }

    /// The same of datagrams to this peer.
    pub(crate) fn overhead_to(peer: SocketAddr, is_secure: bool) -> Size {
        let cipher = if is_secure { Protection::OVERHEAD } else { 0 };
        // An IPv6 header is twice as long (RFC 8200, Sec. 3).
        let header = match peer {
            SocketAddr::V6(peer) if peer.ip().to_ipv4_mapped().is_none() => 20,
            _ => 0,
        };
        Size::from_bytes(cipher + header)
    }

    /// What a session of this kind is made of, and what its receiver is asked for.
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
        // Whether anything is, the receiver decides.
        let repeating = Some(Repeating::default());
        (SenderConfig { payload, delays, ecn, reporting, repeating, has_further_source, ..base }, asked)
    }
}

/// Feedback by packet for media of this kind: finer times, where nothing asks for marks and packets have room for another number, which
/// those of a session over several paths have not.
pub(crate) fn usual_reporting(payload: Payload, ecn: Ecn, several: bool) -> Reporting {
    let has_numbers = payload == Payload::Generated && ecn == Ecn::NotCapable && !several;
    let format = if has_numbers { Format::TransportWide } else { Format::CongestionFeedback };
    Reporting { format, interval: Reporting::INTERVAL }
}

/// What a session over several paths has beside: which they are, and what divides the rate among them.
pub struct Multipath {
    /// Its paths, 1 to [`MAX_PATHS`](multipath::MAX_PATHS); they are numbered from 0 in this order.
    pub paths: Vec<Via>,
    /// What divides the total.
    pub scheduler: BoxedScheduler,
    /// Time between two divisions; not less than the report interval.
    pub period: Span,
    /// The class of service that its packets ask for.
    pub dscp: Dscp,
}

impl Multipath {
    /// Paths whose shares are decided every 5 s, as in the paper (Asvarujanon 2014, Sec. 4.3).
    pub fn new(paths: Vec<Via>, scheduler: BoxedScheduler) -> Self {
        Self { paths, scheduler, period: multipath::Sender::PERIOD, dscp: Dscp::DEFAULT }
    }
}

/// An open session over several paths.
pub struct MultipathSession<O> {
    /// Its thread.
    pub running: Running<multipath::Sender, O>,
    /// Where its payload goes; `None` for generated media.
    pub payloads: Option<PayloadSender>,
    /// Its paths, to be changed while it runs.
    pub paths: Paths,
}

/// Opens a session and sends on a thread of its own, until it is stopped or nobody has a [`PayloadSender`] to it any more.
///
/// Generated media needs no channel: stop it by [`Running::stop`]. Then `None` is given.
///
/// # Errors
/// [`NetError::NoAnswer`], [`NetError::Refused`] and [`NetError::OtherVersion`] where the server gives no session, [`NetError::Session`] for a packet
/// size or payload type that cannot be, and what the system says.
pub fn send<O: Observer + Send + 'static>(
    socket: Socket,
    config: &SendConfig,
    controller: BoxedController,
    observer: O,
) -> Result<(Running<Sender, O>, Option<PayloadSender>), NetError> {
    // Whatever is wrong with the session itself is said before anybody is asked.
    let (sender, asked) = config.session(socket.clock(), controller.needs(), false);
    let endpoint = Sender::new(sender, controller)?;
    start(endpoint, Links::fixed(vec![socket]), (config, asked), observer)
}

/// Opens a session over several paths, and is else like [`send`]. Its paths may be changed while it runs.
///
/// Each path has a socket of its own, bound to its interface and to the address of that. A path whose interface goes down,
/// or whose address changes, is left at once, and taken up again when there is a way; no path is used before the server
/// has answered on it.
///
/// `total` says how much is sent in all; with a controller for each path the server reports on single packets.
///
/// # Errors
/// As [`send`]; and as [`Paths::add`], where a path is wrong.
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

/// A sender on its thread, and where its payload goes.
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
