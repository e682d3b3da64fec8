use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::order::Order;
use super::{Adu, Event, Input, Output};
use crate::wire::{AduHeader, AduPart};
use equipoise::units::{Instant, ReceiverClock, Span};
use equipoise_session::rtp::{self, Payload, SessionError};
use equipoise_session::wire::rtp::RtpPacket;
use equipoise_session::{Carrier, DropReason, Ecn, Endpoint as _, Transmit, Wake, WakeReason};

/// Configuration of the receiver of a flow pair.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// Configuration of the RTP part; its field `payload` is ignored. An ADU from TCP waits for earlier ADUs from RTP
    /// for at most twice `reorder.hold`.
    pub rtp: rtp::ReceiverConfig,
    /// Limit of the total bytes of ADUs that wait for earlier ADUs or for the application. If the limit is reached, no
    /// more bytes are accepted from TCP. ADUs over RTP that would exceed the limit are dropped.
    pub most: usize,
}

impl ReceiverConfig {
    /// The usual maximum of waiting bytes. Our choice: four ADUs of the maximum length. Two ADUs, one from each
    /// transport, may wait for earlier ADUs. Two further ADUs may wait for the application.
    pub const MOST: usize = 4 * AduHeader::LONGEST as usize;

    /// Creates a configuration with the limit [`MOST`](Self::MOST).
    pub const fn new(rtp: rtp::ReceiverConfig) -> Self {
        Self { rtp, most: Self::MOST }
    }
}

/// The receiver of a flow pair.
///
/// Call [`handle`](Self::handle) and [`tcp_received`](Self::tcp_received) with each event, then [`poll`](Self::poll)
/// until it returns `None`. ADUs wait until the application [takes](Self::take_adu) them. If the application does not
/// take them, TCP's flow control stops the TCP sender, and ADUs over RTP are dropped.
pub struct Receiver {
    rtp: rtp::Receiver,
    order: Order,
    parts: Assembler,
    stream: Deframer,
    /// The ADU that was delivered last.
    given: Vec<u8>,
    /// The last datagram that `poll` returned.
    sent: Vec<u8>,
    hold: Span,
    /// When the flow ends; `None` before the end of TCP's stream. ADUs over RTP may still arrive until this time.
    ends: Option<Instant<ReceiverClock>>,
    ended: bool,
    handled: Instant<ReceiverClock>,
    outbox: VecDeque<Item>,
    /// Buffers of datagrams for reuse.
    spare: Vec<Vec<u8>>,
}

/// Outputs that wait for `poll`.
#[derive(Debug)]
enum Item {
    Datagram { bytes: Vec<u8>, media: usize },
    Event(Event),
}

/// Assembles ADUs from parts that arrive in order.
#[derive(Debug, Default)]
struct Assembler {
    /// The ADU that is being assembled, and the number of the first ADU since the sender's last switch from TCP to RTP.
    current: Option<(AduHeader, u64)>,
    data: Vec<u8>,
}

/// Extracts ADUs from a byte stream.
#[derive(Debug, Default)]
struct Deframer {
    head: [u8; AduHeader::LEN],
    head_len: usize,
    current: Option<AduHeader>,
    data: Vec<u8>,
    /// The lowest number that the next ADU can have.
    next: u64,
    broken: bool,
}

impl Assembler {
    /// Adds a part of an ADU. `missing` is the number of packets that are missing before this part. If the
    /// part completes an ADU, returns the ADU's header and the number of the first ADU since the sender's last switch
    /// from TCP to RTP.
    fn push(&mut self, missing: u64, payload: &[u8]) -> Result<Option<(AduHeader, u64)>, DropReason> {
        if missing > 0 {
            self.current = None;
        }
        if payload.is_empty() {
            // The sender's first packet has no payload.
            return Ok(None);
        }
        let Ok((part, bytes)) = AduPart::parse(payload) else {
            self.current = None;
            return Err(DropReason::Malformed);
        };
        // `parse` has checked that `since_switch` is not above the ADU's number.
        let whole = (part.adu, part.adu.number.saturating_sub(u64::from(part.since_switch)));
        if part.offset == 0 {
            self.current = Some(whole);
            self.data.clear();
        }
        if self.current != Some(whole) || self.data.len() != part.offset as usize {
            // The beginning of this ADU is missing.
            self.current = None;
            return Ok(None);
        }
        self.data.extend_from_slice(bytes);
        Ok(if self.data.len() == part.adu.length as usize { self.current.take() } else { None })
    }
}

impl Deframer {
    /// Reads bytes up to the end of an ADU. Returns the number of bytes read, and the header of the ADU if the ADU is
    /// complete.
    fn push(&mut self, bytes: &[u8]) -> Result<(usize, Option<AduHeader>), DropReason> {
        let header = bytes.get(..bytes.len().min(AduHeader::LEN - self.head_len)).unwrap_or_default();
        let header = if self.current.is_some() { &[] } else { header };
        self.head[self.head_len..self.head_len + header.len()].copy_from_slice(header);
        self.head_len += header.len();
        if self.current.is_none() {
            if self.head_len < AduHeader::LEN {
                return Ok((header.len(), None));
            }
            let adu = AduHeader::parse(self.head).map_err(|_| DropReason::Malformed)?;
            if adu.number < self.next {
                return Err(DropReason::Implausible);
            }
            (self.head_len, self.next) = (0, adu.number + 1);
            self.current = Some(adu);
            self.data.clear();
        }
        let Some(adu) = self.current else { return Ok((header.len(), None)) };
        let rest = bytes.get(header.len()..).unwrap_or_default();
        let taken = rest.len().min(adu.length as usize - self.data.len());
        self.data.extend_from_slice(rest.get(..taken).unwrap_or_default());
        let whole = if self.data.len() == adu.length as usize { self.current.take() } else { None };
        Ok((header.len() + taken, whole))
    }
}

impl Receiver {
    /// Creates a receiver that waits for its sender's first packet.
    ///
    /// # Errors
    /// [`SessionError::Cname`] if the canonical name is too long, and [`SessionError::FeedbackInterval`] if the
    /// interval of per-packet reports is too short or too long.
    pub fn new(config: ReceiverConfig) -> Result<Self, SessionError> {
        // RTP may be slower than TCP by `reorder.hold`, and its receiver may wait another `reorder.hold` for a lost
        // packet.
        let hold = config.rtp.reorder.hold * 2;
        Ok(Self {
            rtp: rtp::Receiver::new(rtp::ReceiverConfig { payload: Payload::Rtp, ..config.rtp })?,
            order: Order::new(hold, config.most),
            parts: Assembler::default(),
            stream: Deframer::default(),
            given: Vec::new(),
            sent: Vec::new(),
            hold,
            ends: None,
            ended: false,
            handled: Instant::ZERO,
            outbox: VecDeque::new(),
            spare: Vec::new(),
        })
    }

    /// Handles an event at `now`.
    pub fn handle(&mut self, now: Instant<ReceiverClock>, input: Input<'_>) {
        if self.ended {
            return;
        }
        self.handled = self.handled.max(now);
        match input {
            Input::Datagram(datagram) => self.rtp.handle(now, equipoise_session::Input::datagram(datagram)),
            Input::Timer | Input::Tcp(_) => self.rtp.handle(self.handled, equipoise_session::Input::Timer),
            Input::TcpEnded => _ = self.ends.get_or_insert(self.handled + self.hold),
            Input::Stop => self.ends = Some(self.handled),
        }
        self.settle();
    }

    /// Handles bytes of TCP's stream. Returns the number of bytes taken. The caller must offer the remaining bytes
    /// again after the next call of [`take_adu`](Self::take_adu) or [`handle`](Self::handle), if
    /// [`wants_tcp`](Self::wants_tcp) then returns true.
    pub fn tcp_received(&mut self, now: Instant<ReceiverClock>, bytes: &[u8]) -> usize {
        self.handled = self.handled.max(now);
        let mut taken = 0;
        while taken < bytes.len() && self.wants_tcp() {
            match self.stream.push(&bytes[taken..]) {
                Ok((more, whole)) => {
                    taken += more;
                    if let Some(adu) = whole {
                        self.take_tcp(adu);
                    }
                }
                Err(reason) => self.break_tcp(reason),
            }
        }
        // Bytes after the end of the flow, or after an error in the stream, are ignored.
        if self.stream.broken || self.ended { bytes.len() } else { taken }
    }

    /// Whether the receiver would accept bytes of TCP's stream now.
    pub fn wants_tcp(&self) -> bool {
        !self.ended && !self.stream.broken && self.order.wants_tcp()
    }

    /// Returns the next ADU for the application; `None` if no ADU is ready. Afterwards [`wants_tcp`](Self::wants_tcp)
    /// may be true again.
    pub fn take_adu(&mut self) -> Option<Adu<'_>> {
        let ready = self.order.pop()?;
        let before = core::mem::replace(&mut self.given, ready.data);
        self.order.recycle(before);
        Some(Adu { number: ready.number, missing: ready.missing, over: ready.over, data: &self.given })
    }

    /// Returns the next output other than ADUs, in order; `None` if there is no further output.
    pub fn poll(&mut self) -> Option<Output<'_>> {
        Some(match self.outbox.pop_front()? {
            Item::Event(event) => Output::Event(event),
            Item::Datagram { bytes, media } => {
                self.spare.push(core::mem::replace(&mut self.sent, bytes));
                Output::Transmit(Transmit { head: &self.sent, media, carrier: Carrier::Udp, ecn: Ecn::NotCapable })
            }
        })
    }

    /// Returns when to call [`handle`](Self::handle) with [`Input::Timer`], unless an event occurs earlier; `None` for
    /// never. The returned time is always later than the last event.
    pub fn wake(&self) -> Option<Wake<ReceiverClock>> {
        if self.ended {
            return None;
        }
        let soon = self.handled + Span::from_nanos(1);
        let rtp = self.rtp.wake().map(|wake| wake.at);
        let at = [rtp, self.order.due(), self.ends].into_iter().flatten().min()?;
        Some(Wake { at: at.max(soon), reason: WakeReason::Report })
    }

    fn take_tcp(&mut self, adu: AduHeader) {
        let empty = self.order.buffer();
        let data = core::mem::replace(&mut self.stream.data, empty);
        if let Err(data) = self.order.push_tcp(self.handled, adu.number, data) {
            self.order.recycle(data);
            self.ignore(DropReason::Late);
        }
        self.order.settle(self.handled);
    }

    fn break_tcp(&mut self, reason: DropReason) {
        self.stream.broken = true;
        self.order.end_tcp();
        self.ignore(reason);
        self.outbox.push_back(Item::Event(Event::TcpBroken));
        self.order.settle(self.handled);
    }

    fn ignore(&mut self, reason: DropReason) {
        self.outbox.push_back(Item::Event(Event::Rtp(equipoise_session::Event::Ignored(reason))));
    }

    /// Takes ADUs from the RTP part, and finds the ADUs that can be delivered.
    fn settle(&mut self) {
        self.drain_rtp();
        // `drain_rtp` is called first, because the RTP part outputs later ADUs when it stops waiting for a lost packet.
        self.order.settle(self.handled);
        if self.ends.is_some_and(|at| at <= self.handled) {
            self.rtp.handle(self.handled, equipoise_session::Input::Stop);
            self.drain_rtp();
            self.order.flush();
            self.ended = true;
            self.outbox.push_back(Item::Event(Event::Ended));
        }
    }

    fn drain_rtp(&mut self) {
        let Self { rtp, parts, order, outbox, spare, .. } = self;
        while let Some(output) = rtp.poll() {
            match output {
                equipoise_session::Output::Event { event, .. } => outbox.push_back(Item::Event(Event::Rtp(event))),
                equipoise_session::Output::Transmit { transmit, .. } => {
                    let mut bytes = spare.pop().unwrap_or_default();
                    bytes.clear();
                    bytes.extend_from_slice(transmit.head);
                    outbox.push_back(Item::Datagram { bytes, media: transmit.media });
                }
                equipoise_session::Output::Payload { missing, payload } => {
                    let taken = RtpPacket::parse(payload)
                        .map_err(|_| DropReason::Malformed)
                        .and_then(|packet| parts.push(missing, packet.payload))
                        .and_then(|whole| take_rtp(whole, parts, order));
                    if let Err(reason) = taken {
                        outbox.push_back(Item::Event(Event::Rtp(equipoise_session::Event::Ignored(reason))));
                    }
                }
            }
        }
    }
}

fn take_rtp(whole: Option<(AduHeader, u64)>, parts: &mut Assembler, order: &mut Order) -> Result<(), DropReason> {
    let Some((adu, since)) = whole else { return Ok(()) };
    let data = core::mem::replace(&mut parts.data, order.buffer());
    order.push_rtp(adu.number, since, data).map_err(|(reason, data)| {
        order.recycle(data);
        reason
    })
}
