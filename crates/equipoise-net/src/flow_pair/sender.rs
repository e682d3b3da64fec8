use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use equipoise::control::BoxedController;
use equipoise::units::Size;
use equipoise_pair::Event;
use equipoise_pair::tpba::Running;
use equipoise_pair::wire::AduHeader;
use equipoise_session::rtp::{self, Delays, StreamConfig};

use super::hello::{Link, overhead};
use super::open::{last, open};
use super::sending::{Sending, Supply};
use super::{PairConfig, PairState, SendError};
use crate::channel::channel;
use crate::leaving::{Leaving, blocking};
use crate::secure::random;
use crate::thread::Worker;
use crate::{Clock, NetError, PayloadSender, Time};

/// A dynamic payload type (RFC 3551, Sec. 3).
const PAYLOAD_TYPE: u8 = 96;
/// The longest ADU, in bytes.
const LONGEST: usize = AduHeader::LONGEST as usize;

/// The sending end of a flow pair.
///
/// Dropping it ends the flow and discards waiting data; [`close`](Self::close) sends that data first.
#[derive(Debug)]
pub struct PairSender {
    thread: Leaving<Worker<Result<(), NetError>>>,
    payloads: PayloadSender,
    state: Arc<Mutex<PairState>>,
    local: SocketAddr,
    /// Bytes of the current, unfinished ADU.
    open: usize,
}

impl PairSender {
    /// Opens a flow to the receiver at `peer`, over TCP to that port and over UDP to the port in the receiver's answer.
    ///
    /// # Errors
    /// [`NetError::NoPair`] if no receiver answers there, [`NetError::Pair`] for an invalid configuration,
    /// [`NetError::NoCongestionControl`], and the system's errors.
    pub fn connect(peer: SocketAddr, config: &PairConfig) -> Result<Self, NetError> {
        Self::connect_observed(peer, config, |_, _| {})
    }

    /// As [`connect`](Self::connect). `observe` is called with each event, on the flow's thread: a slow observer delays
    /// sending.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn connect_observed(
        peer: SocketAddr,
        config: &PairConfig,
        observe: impl FnMut(Time, &Event) + Send + 'static,
    ) -> Result<Self, NetError> {
        let (clock, ssrc) = (Clock::new(), u32::from_be_bytes(random()));
        let open = open(peer, &Link::from(config), &clock, ssrc)?;
        let end = end(peer, config, &clock, ssrc)?;
        let (local, state) = (open.local, open.state.clone());
        let (payloads, queue) = channel()?;
        let sending = Sending::new(end, open, Supply::Application { queue, message: None }, observe);
        let thread = Leaving::new(Worker::spawn("pair sender", move |stop| sending.run(stop))?);
        Ok(Self { thread, payloads, state, local, open: 0 })
    }

    /// As [`connect`](Self::connect), for a task.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    ///
    /// # Panics
    /// If called outside of a tokio runtime.
    pub async fn connect_async(peer: SocketAddr, config: PairConfig) -> Result<Self, NetError> {
        blocking(move || Self::connect(peer, &config)).await
    }

    /// Sends a whole ADU, or the last bytes of the current ADU. Blocks while there is no room for them.
    ///
    /// # Errors
    /// [`SendError::TooLong`] if the ADU would be too long; then no byte is accepted. [`SendError::Closed`] if the flow
    /// is over; [`close`](Self::close) returns the reason.
    pub fn send(&mut self, data: &[u8]) -> Result<(), SendError> {
        self.send_as(data, true)
    }

    /// As [`send`](Self::send), for a part of an ADU that is not its end.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_part(&mut self, data: &[u8]) -> Result<(), SendError> {
        self.send_as(data, false)
    }

    fn send_as(&mut self, data: &[u8], end: bool) -> Result<(), SendError> {
        self.check(data)?;
        let (parts, last) = split(data, end);
        for part in parts.chunks(PayloadSender::PART) {
            self.payloads.push_part(part, false)?;
            self.open += part.len();
        }
        if end {
            self.payloads.push_part(last, true)?;
            self.open = 0;
        }
        Ok(())
    }

    /// As [`send`](Self::send), for a task.
    ///
    /// If the future is dropped before it completes, a first part of the data may already belong to the ADU; none of it
    /// if the data is 64 kB or shorter.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn send_async(&mut self, data: &[u8]) -> Result<(), SendError> {
        self.send_as_async(data, true).await
    }

    /// As [`send_part`](Self::send_part), for a task; see [`send_async`](Self::send_async).
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn send_part_async(&mut self, data: &[u8]) -> Result<(), SendError> {
        self.send_as_async(data, false).await
    }

    async fn send_as_async(&mut self, data: &[u8], end: bool) -> Result<(), SendError> {
        self.check(data)?;
        let (parts, last) = split(data, end);
        for part in parts.chunks(PayloadSender::PART) {
            self.payloads.push_part_async(part, false).await?;
            self.open += part.len();
        }
        if end {
            self.payloads.push_part_async(last, true).await?;
            self.open = 0;
        }
        Ok(())
    }

    fn check(&self, data: &[u8]) -> Result<(), SendError> {
        let found = self.open.saturating_add(data.len());
        if found > LONGEST { Err(SendError::TooLong { found, most: LONGEST }) } else { Ok(()) }
    }

    /// Bytes passed to `send` that neither TCP nor RTP has accepted yet.
    pub fn waiting(&self) -> usize {
        self.payloads.waiting()
    }

    /// State of the flow, and what its host permits.
    pub fn state(&self) -> PairState {
        // The state is consistent even if a thread panicked: each change is one step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The local address of its TCP connection.
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Sends all waiting data, ends an unfinished ADU, and ends the flow. Returns the last state.
    ///
    /// How long this takes depends on the rate. Data already passed to the host's TCP is delivered by the host.
    ///
    /// # Errors
    /// The error of the flow, if any.
    pub fn close(self) -> Result<PairState, NetError> {
        let Self { thread, payloads, state, .. } = self;
        drop(payloads);
        if let Some(thread) = thread.take() {
            thread.join()??;
        }
        Ok(last(&state))
    }

    /// As [`close`](Self::close), for a task. If the future is dropped, waiting data is still sent.
    ///
    /// # Errors
    /// As [`close`](Self::close).
    pub async fn close_async(self) -> Result<PairState, NetError> {
        let Self { thread, payloads, state, .. } = self;
        drop(payloads);
        thread.end(|thread| thread.join()?).await?;
        Ok(last(&state))
    }
}

/// Splits off the last part of the data, which ends the ADU. If `end` is not set, the last part is empty.
fn split(data: &[u8], end: bool) -> (&[u8], &[u8]) {
    let before =
        if end { data.len().saturating_sub(1) / PayloadSender::PART * PayloadSender::PART } else { data.len() };
    data.split_at(before)
}

/// The state machine of the sending end.
fn end(peer: SocketAddr, config: &PairConfig, clock: &Clock, ssrc: u32) -> Result<equipoise_pair::Sender, NetError> {
    let stream = StreamConfig {
        overhead: Size::from_bytes(overhead(peer)),
        ..StreamConfig::new(ssrc, PAYLOAD_TYPE, config.packet_size, format!("sender-{ssrc:08x}@equipoise"))
    };
    let start = clock.now().assume_clock();
    let base = rtp::SenderConfig::new(stream, config.report_interval, start, u64::from_be_bytes(random()));
    let law = config.running;
    let config = equipoise_pair::SenderConfig {
        rtp: rtp::SenderConfig { delays: Delays::Queueing, ..base },
        tpba: config.tpba,
        running: Box::new(move |rate| Box::new(Running::new(law, rate)) as BoxedController),
    };
    Ok(equipoise_pair::Sender::new(config)?)
}
