use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::queue::{AduQueue, PushError};
use super::{Event, Input, Output, TcpRequest, TcpState};
use crate::tpba::{Period, Progress, Running, RunningConfig, Tpba, TpbaConfig, TpbaError};
use crate::wire::{AduHeader, AduPart};
use equipoise::control::{BoxedController, Cbr};
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};
use equipoise_session::rtp::{self, Payload, SessionError, StreamConfig};
use equipoise_session::wire::NtpTime;
use equipoise_session::wire::rtp::RtpHeader;
use equipoise_session::{Endpoint as _, Wake, WakeReason};

/// Configuration of the sender of a flow pair.
pub struct SenderConfig {
    /// Configuration of the RTP part; its fields `payload` and `patience` are ignored.
    pub rtp: rtp::SenderConfig,
    /// Parameters of the probing and running periods.
    pub tpba: TpbaConfig,
    /// Creates the controller of a running period, in which RTP carries the data. The argument is the rate measured
    /// over TCP, which is the controller's upper limit.
    pub running: Box<dyn FnMut(Rate) -> BoxedController + Send>,
}

impl SenderConfig {
    /// Creates the configuration of a flow with the values of the paper (Tobe 1999).
    pub fn new(rtp: rtp::SenderConfig) -> Self {
        let running = |rate| Box::new(Running::new(RunningConfig::PAPER, rate)) as BoxedController;
        Self { rtp, tpba: TpbaConfig::PAPER, running: Box::new(running) }
    }
}

impl fmt::Debug for SenderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SenderConfig").field("rtp", &self.rtp).field("tpba", &self.tpba).finish_non_exhaustive()
    }
}

/// The error that the configuration of a sender is not valid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PairError {
    /// The configuration of the RTP part is not valid.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The configuration of the probing and running periods is not valid.
    #[error(transparent)]
    Tpba(#[from] TpbaError),
}

/// The sender of a flow pair.
///
/// Call [`handle`](Self::handle) with each event, and [`push`](Self::push) with the bytes of ADUs. After each of these
/// calls, call [`poll`](Self::poll) until `poll` returns `None`. Write the [pending bytes](Self::tcp_pending) to TCP,
/// and report [how many bytes](Self::tcp_written) TCP accepted.
pub struct Sender {
    rtp: rtp::Sender,
    numbers: Numbers,
    tpba: Tpba,
    running: Box<dyn FnMut(Rate) -> BoxedController + Send>,
    stage: Stage,
    tcp: TcpState,
    queue: AduQueue,
    next_adu: u64,
    /// The ADU that is being written to TCP, with its header. `written` is the number of its bytes that were already
    /// written.
    writing: Vec<u8>,
    written: usize,
    /// The next part of the ADU that is being sent over RTP.
    parting: Option<AduPart>,
    /// The RTP packet that is being built.
    packet: Vec<u8>,
    /// Whether the first packet, which has no payload, was sent.
    opened: bool,
    stopping: bool,
    ended: bool,
    start: Instant<SenderClock>,
    handled: Instant<SenderClock>,
    outbox: VecDeque<Item>,
}

/// Outputs in addition to those of the RTP part.
#[derive(Clone, Copy, Debug)]
enum Item {
    Tcp(TcpRequest),
    Event(Event),
}

/// Which transport carries ADUs at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// TCP.
    Tcp,
    /// TCP sends its last bytes before RTP takes over. New ADUs wait.
    TcpDrains,
    /// RTP carries the ADUs from number `since` on.
    Rtp { since: u64 },
    /// RTP sends its last packets. New ADUs wait.
    RtpDrains { since: u64 },
}

/// Assigns sequence numbers and timestamps to the RTP packets.
#[derive(Debug)]
struct Numbers {
    header: RtpHeader,
    timestamp_offset: u32,
    /// Number of bytes of an ADU that fit into a packet.
    part: usize,
}

/// The queue of RTP's pacer is filled up to this number of full packets: one to send next, and one after it.
const RTP_PACKETS: usize = 2;
/// TCP's buffer may contain as many unsent bytes as TCP sends in this time. Our choice: a switch of the transport waits
/// until these bytes are sent, and this pause is hardly longer than the time between two video frames.
const UNSENT: Span = Span::from_millis(50);
/// Time between two checks of a TCP connection that still has to send data. Our choice: a tenth of [`UNSENT`].
const LOOK: Span = Span::from_millis(5);
/// TCP's buffer may always contain this many unsent segments, so that a segment is ready when an acknowledgement
/// arrives.
const UNSENT_SEGMENTS: u64 = 2;

impl Sender {
    /// Creates a sender that begins with TCP. Its RTP part sends its first packet at `rtp.start`, and its first request
    /// for a report one report interval later.
    ///
    /// # Errors
    /// [`PairError`] if the configuration of the RTP part or of the periods is not valid, or if the RTP part does not
    /// provide the feedback that the controllers need.
    pub fn new(config: SenderConfig) -> Result<Self, PairError> {
        let stream = &config.rtp.stream;
        let numbers = Numbers::new(stream, config.rtp.seed)?;
        let tpba = Tpba::new(config.tpba)?;
        let mut running = config.running;
        running(Rate::from_bps(1)).needs().met_by(config.rtp.provides()).map_err(SessionError::from)?;
        let start = config.rtp.start;
        // This controller is in use only until the first running period, because each running period begins with a new
        // controller. Until then, RTP sends a single packet, at once, so the controller's rate delays no packet.
        let idle = Box::new(Cbr::new(Rate::from_bps(1)));
        let rtp =
            rtp::Sender::new(rtp::SenderConfig { payload: Payload::Rtp, patience: Span::MAX, ..config.rtp }, idle)?;
        Ok(Self {
            rtp,
            numbers,
            tpba,
            running,
            stage: Stage::Tcp,
            tcp: TcpState::default(),
            queue: AduQueue::default(),
            next_adu: 0,
            writing: Vec::new(),
            written: 0,
            parting: None,
            packet: Vec::new(),
            opened: false,
            stopping: false,
            ended: false,
            start,
            handled: Instant::ZERO,
            outbox: VecDeque::new(),
        })
    }

    /// Returns the present period. While a transport sends its last data before a switch, the old period continues.
    pub const fn period(&self) -> Period {
        match self.stage {
            Stage::Tcp | Stage::TcpDrains => Period::Probing,
            Stage::Rtp { .. } | Stage::RtpDrains { .. } => Period::Running,
        }
    }

    /// Returns the free space for ADUs, in bytes; 0 once the flow was stopped.
    pub fn room(&self) -> usize {
        if self.stopping { 0 } else { self.queue.room() }
    }

    /// Returns the number of bytes of ADUs that neither transport has taken yet.
    pub fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    /// Adds the next bytes of an ADU. If `end` is true, the ADU ends after these bytes.
    ///
    /// # Errors
    /// [`PushError`] if there are too many bytes or ADUs, or if the flow was stopped. Then no byte is accepted, and the
    /// ADU does not end.
    pub fn push(&mut self, now: Instant<SenderClock>, data: &[u8], end: bool) -> Result<(), PushError> {
        if self.stopping {
            return Err(PushError::Stopped);
        }
        self.queue.push(data, end)?;
        self.handle(now, Input::Timer);
        Ok(())
    }

    /// Handles an event at `now`.
    pub fn handle(&mut self, now: Instant<SenderClock>, input: Input<'_>) {
        if self.ended {
            return;
        }
        let now = now.max(self.handled);
        self.handled = now;
        match input {
            Input::Datagram(datagram) => self.rtp.handle(now, equipoise_session::Input::datagram(datagram)),
            Input::Tcp(state) => self.tcp = state,
            Input::Timer | Input::TcpEnded => self.rtp.handle(now, equipoise_session::Input::Timer),
            Input::Stop => {
                self.stopping = true;
                if self.queue.is_open() {
                    self.queue.end();
                }
            }
        }
        self.tpba.on_decided(self.rtp.rate());
        self.open(now);
        self.probe(now);
        self.switch(now);
        self.feed_tcp();
        self.feed_rtp(now);
        self.end_if_done(now);
    }

    /// Returns the next output; `None` if there is no further output.
    pub fn poll(&mut self) -> Option<Output<'_>> {
        if let Some(item) = self.outbox.pop_front() {
            return Some(match item {
                Item::Tcp(request) => Output::Tcp(request),
                Item::Event(event) => Output::Event(event),
            });
        }
        match self.rtp.poll()? {
            equipoise_session::Output::Transmit { transmit, .. } => Some(Output::Transmit(transmit)),
            // The sender's RTP part never delivers payload.
            equipoise_session::Output::Payload { .. } => None,
            equipoise_session::Output::Event { event, .. } => Some(Output::Event(Event::Rtp(event))),
        }
    }

    /// Returns when to call [`handle`](Self::handle) with [`Input::Tcp`] and then [`Input::Timer`], if no input arrives
    /// before; `None` for never. After [`poll`](Self::poll) has returned `None`, `wake` returns a time later than the
    /// last `now` passed to `handle`.
    pub fn wake(&self) -> Option<Wake<SenderClock>> {
        if self.ended {
            return None;
        }
        let soon = self.handled + Span::from_nanos(1);
        let period = match self.stage {
            // When the application has ended the flow, the running period has no planned end. The flow ends in this
            // period when the waiting data has been sent, unless a circuit breaker stops RTP earlier.
            Stage::Rtp { .. } if self.stopping => None,
            Stage::Tcp | Stage::Rtp { .. } => self.tpba.wake().map(|at| at.max(soon)),
            Stage::TcpDrains | Stage::RtpDrains { .. } => None,
        };
        let waits_for_tcp = match self.stage {
            Stage::Tcp => !self.is_written() && self.tcp_pending().is_empty(),
            Stage::TcpDrains => true,
            Stage::Rtp { .. } | Stage::RtpDrains { .. } => false,
        };
        let look = waits_for_tcp.then(|| self.handled + LOOK);
        let opens = (!self.opened).then(|| self.start.max(soon));
        let own = [period, look, opens].into_iter().flatten().min().map(|at| Wake { at, reason: WakeReason::Report });
        match (own, self.rtp.wake()) {
            (Some(own), Some(rtp)) => Some(if own.at < rtp.at { own } else { rtp }),
            (own, rtp) => own.or(rtp),
        }
    }

    /// Returns the bytes to write to TCP next. TCP may accept fewer.
    pub fn tcp_pending(&self) -> &[u8] {
        let rest = self.writing.get(self.written..).unwrap_or_default();
        let room = self.unsent_limit().saturating_sub(self.tcp.unsent);
        rest.get(..usize::try_from(room).unwrap_or(usize::MAX)).unwrap_or(rest)
    }

    /// Reports that TCP accepted this many bytes of [`tcp_pending`](Self::tcp_pending).
    pub fn tcp_written(&mut self, now: Instant<SenderClock>, bytes: usize) {
        let bytes = bytes.min(self.tcp_pending().len());
        self.written += bytes;
        self.tcp.unsent = self.tcp.unsent.saturating_add(bytes as u64);
        self.handle(now, Input::Tcp(self.tcp));
    }

    /// Returns the value for the socket option `TCP_NOTSENT_LOWAT`; `None` if the caller need not watch TCP. Linux
    /// reports the socket as writable when TCP has fewer unsent bytes than half of this value, so for the value 1 when
    /// TCP has no unsent bytes. When the socket is writable, the caller must call [`handle`](Self::handle) with
    /// [`Input::Tcp`], even before the time of [`wake`](Self::wake).
    pub fn tcp_awaited(&self) -> Option<u64> {
        match self.stage {
            Stage::Tcp | Stage::TcpDrains if !self.is_written() => Some(self.unsent_limit()),
            Stage::TcpDrains => Some(1),
            Stage::Tcp | Stage::Rtp { .. } | Stage::RtpDrains { .. } => None,
        }
    }

    /// Returns the maximum number of unsent bytes in TCP.
    fn unsent_limit(&self) -> u64 {
        let least = self.tcp.segment.as_bytes().max(1).saturating_mul(UNSENT_SEGMENTS);
        let wanted = self.tpba.last_rate().filter(|_| self.period() == Period::Probing).map_or(
            // TCP's rate is not known yet, so use the window, which TCP sends in one round trip.
            self.tcp.window.as_bytes(),
            |rate| (rate.as_bps_f64() * UNSENT.as_secs_f64() / 8.0) as u64,
        );
        wanted.max(least)
    }

    fn progress(&self) -> Progress {
        let TcpState { acknowledged, segment, header, reductions, .. } = self.tcp;
        let segment = segment.as_bytes().max(1);
        let packets = u128::from(acknowledged) * u128::from(segment.saturating_add(header.as_bytes()));
        let acknowledged = u64::try_from(packets / u128::from(segment)).unwrap_or(u64::MAX);
        Progress { acknowledged: Size::from_bytes(acknowledged), reductions }
    }

    /// Sends one RTP packet without payload. The packet creates state in middleboxes on the path, such as a NAT. The
    /// packet also informs the receiver of the first sequence number, so that the receiver delivers the first payload
    /// without waiting for earlier packets.
    fn open(&mut self, now: Instant<SenderClock>) {
        if !self.opened && now >= self.start {
            self.opened = true;
            self.packet.clear();
            self.numbers.next(now, false).encode(&mut self.packet);
            self.rtp.handle(now, equipoise_session::Input::payload(&self.packet));
        }
    }

    fn probe(&mut self, now: Instant<SenderClock>) {
        if self.stage == Stage::Tcp
            && let Some(rate) = self.tpba.on_progress(now, self.progress())
        {
            self.outbox.push_back(Item::Event(Event::Probed { rate }));
        }
    }

    /// Changes to the next stage if its conditions are met. One call can change the stage several times.
    fn switch(&mut self, now: Instant<SenderClock>) {
        if self.stage == Stage::Tcp && !self.stopping && self.tpba.is_over(now) {
            self.outbox.push_back(Item::Tcp(TcpRequest::NoDelay(true)));
            self.stage = Stage::TcpDrains;
        }
        if self.stage == Stage::TcpDrains && self.is_written() && self.tcp.unsent == 0 {
            self.begin_running(now);
        }
        // After a stop, the flow does not change from RTP to TCP, unless a circuit breaker has stopped RTP. Then TCP
        // sends the waiting data.
        let ends_running = if self.stopping { self.rtp.is_circuit_broken() } else { self.tpba.is_over(now) };
        if let Stage::Rtp { since } = self.stage
            && ends_running
        {
            self.stage = Stage::RtpDrains { since };
        }
        if matches!(self.stage, Stage::RtpDrains { .. }) && self.rtp_is_drained() {
            self.begin_probing(now);
        }
    }

    fn is_written(&self) -> bool {
        self.written >= self.writing.len()
    }

    /// Whether RTP has sent all ADUs that it took. If a circuit breaker has stopped RTP, the waiting packets count as
    /// lost.
    fn rtp_is_drained(&self) -> bool {
        self.rtp.is_circuit_broken() || (self.parting.is_none() && self.rtp.waiting() == 0)
    }

    fn begin_running(&mut self, now: Instant<SenderClock>) {
        // `Tpba::begin_running` returns a rate here: the probing period was over when `Stage::TcpDrains` began, and no
        // rate is measured in this stage.
        let Some(rate) = self.tpba.begin_running(now, self.tcp.window) else { return };
        // `set_controller` cannot fail, because the constructor has checked that the RTP session provides what this
        // kind of controller needs.
        let _ = self.rtp.set_controller((self.running)(rate));
        self.stage = Stage::Rtp { since: self.next_adu };
        self.began(Period::Running, rate);
    }

    fn begin_probing(&mut self, now: Instant<SenderClock>) {
        let rate = self.tpba.last_rate().unwrap_or(Rate::ZERO);
        let Some(window) = self.tpba.begin_probing(now, self.progress(), self.tcp.segment) else { return };
        self.drop_rest();
        self.outbox.push_back(Item::Tcp(TcpRequest::NoDelay(false)));
        self.outbox.push_back(Item::Tcp(TcpRequest::Window(window)));
        self.stage = Stage::Tcp;
        self.began(Period::Probing, rate);
    }

    fn began(&mut self, period: Period, rate: Rate) {
        self.outbox.push_back(Item::Event(Event::Began { period, adu: self.next_adu, rate }));
    }

    /// Drops the rest of an ADU of which RTP has sent only a part. There is such a rest only if a circuit breaker has
    /// stopped RTP.
    fn drop_rest(&mut self) {
        if let Some(part) = self.parting.take() {
            self.packet.clear();
            self.queue.take((part.adu.length - part.offset) as usize, &mut self.packet);
        }
    }

    fn next_header(&mut self) -> Option<AduHeader> {
        let length = self.queue.next()?;
        let number = self.next_adu;
        self.next_adu += 1;
        Some(AduHeader { number, length })
    }

    /// Prepares the next ADU for TCP, if the previous ADU is written.
    fn feed_tcp(&mut self) {
        if self.stage != Stage::Tcp || !self.is_written() {
            return;
        }
        let Some(header) = self.next_header() else { return };
        self.writing.clear();
        self.written = 0;
        self.writing.extend_from_slice(&header.to_bytes());
        self.queue.take(header.length as usize, &mut self.writing);
    }

    /// Passes the next packets to RTP, so that its pacer always has a packet.
    fn feed_rtp(&mut self, now: Instant<SenderClock>) {
        let since = match self.stage {
            Stage::Rtp { since } | Stage::RtpDrains { since } => since,
            Stage::Tcp | Stage::TcpDrains => return,
        };
        while self.rtp.waiting() < RTP_PACKETS * self.numbers.largest_packet() {
            if self.parting.is_none() && matches!(self.stage, Stage::Rtp { .. }) {
                self.parting = self.next_header().map(|adu| {
                    let since_switch = u32::try_from(adu.number - since).unwrap_or(u32::MAX);
                    AduPart { adu, offset: 0, since_switch }
                });
            }
            let Some(part) = self.parting else { return };
            let length = self.numbers.part.min((part.adu.length - part.offset) as usize);
            let end = part.offset + length as u32;
            let is_last = end == part.adu.length;
            self.packet.clear();
            self.numbers.next(now, is_last).encode(&mut self.packet);
            part.encode(&mut self.packet);
            self.queue.take(length, &mut self.packet);
            self.parting = (!is_last).then_some(AduPart { offset: end, ..part });
            self.rtp.handle(now, equipoise_session::Input::payload(&self.packet));
        }
    }

    /// Ends the flow if it was stopped and all data is sent.
    fn end_if_done(&mut self, now: Instant<SenderClock>) {
        if !self.stopping || self.queue.is_ready() || !self.is_written() || !self.rtp_is_drained() {
            return;
        }
        self.ended = true;
        self.rtp.handle(now, equipoise_session::Input::Stop);
        self.outbox.push_back(Item::Tcp(TcpRequest::Finish));
        self.outbox.push_back(Item::Event(Event::Ended));
    }
}

impl Numbers {
    /// Chooses the first sequence number and timestamp at random (RFC 3550, Sec. 5.1).
    fn new(stream: &StreamConfig, seed: u64) -> Result<Self, SessionError> {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let stamped = RtpHeader { send_time: Some(NtpTime::from_bits(0)), ..RtpHeader::default() };
        let heads = Size::from_bytes((stamped.encoded_len() + AduPart::LEN) as u64);
        let heads = Size::IPV4_UDP + stream.overhead + heads;
        let part = (stream.packet_size - heads).as_bytes() as usize;
        if part == 0 {
            let (found, min) = (stream.packet_size, heads + Size::from_bytes(1));
            return Err(SessionError::PacketSize { found, min, max: Size::from_bytes(u64::from(u16::MAX)) });
        }
        let header = RtpHeader {
            payload_type: stream.payload_type,
            ssrc: stream.ssrc,
            // The RTP session of the flow pair uses the same seed. So the session and this header start with the same
            // sequence number.
            sequence: (random.next_u32() & 0x7FFF) as u16,
            ..RtpHeader::default()
        };
        Ok(Self { header, timestamp_offset: random.next_u32(), part })
    }

    /// Returns the next packet's header. The marker bit is set at the end of an ADU (RFC 3550, Sec. 5.1).
    fn next(&mut self, now: Instant<SenderClock>, marker: bool) -> RtpHeader {
        let ticks = u128::from(now.as_nanos()) * u128::from(StreamConfig::MEDIA_CLOCK_HZ) / 1_000_000_000;
        let timestamp = self.timestamp_offset.wrapping_add(ticks as u32);
        let header = RtpHeader { marker, timestamp, ..self.header };
        self.header.sequence = self.header.sequence.wrapping_add(1);
        header
    }

    /// Returns the length of the largest packet that can wait for the pacer, in bytes.
    fn largest_packet(&self) -> usize {
        self.header.encoded_len() + AduPart::LEN + self.part
    }
}
