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

/// The RTP payload type of the packets: a dynamic type (RFC 3551, Sec. 3).
const PAYLOAD_TYPE: u8 = 96;
/// Maximum length of an ADU, in bytes.
const LONGEST: usize = AduHeader::LONGEST as usize;

/// The sender of a flow pair.
///
/// If the sender is dropped, the flow ends and waiting data is discarded. [`close`](Self::close) sends the waiting data
/// first.
#[derive(Debug)]
pub struct PairSender {
    thread: Leaving<Worker<Result<(), NetError>>>,
    payloads: PayloadSender,
    state: Arc<Mutex<PairState>>,
    local: SocketAddr,
    /// Number of bytes of the current, unfinished ADU.
    open: usize,
}

impl PairSender {
    /// Opens a flow to the receiver at `peer`: over TCP to this address, and over UDP to the port in the receiver's
    /// answer.
    ///
    /// # Errors
    /// [`NetError::NoPair`] if no receiver answers at `peer`, [`NetError::Pair`] if the configuration is invalid,
    /// [`NetError::NoCongestionControl`] if the kernel does not have the requested congestion control, and the system's
    /// errors.
    pub fn connect(peer: SocketAddr, config: &PairConfig) -> Result<Self, NetError> {
        Self::connect_observed(peer, config, |_, _| {})
    }

    /// Does the same as [`connect`](Self::connect), and also calls `observe` with each event of the flow. The flow's
    /// thread makes these calls, so data is sent late if `observe` is slow.
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect).
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

    /// The asynchronous variant of [`connect`](Self::connect).
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect).
    ///
    /// # Panics
    /// If called outside of a tokio runtime.
    pub async fn connect_async(peer: SocketAddr, config: PairConfig) -> Result<Self, NetError> {
        blocking(move || Self::connect(peer, &config)).await
    }

    /// Sends a whole ADU, or the last bytes of the current ADU. Blocks until there is space for all bytes.
    ///
    /// # Errors
    /// [`SendError::TooLong`] if the ADU would be too long; in this case no byte is accepted. [`SendError::Closed`] if
    /// the flow is over; in this case [`close`](Self::close) returns the reason.
    pub fn send(&mut self, data: &[u8]) -> Result<(), SendError> {
        self.send_as(data, true)
    }

    /// Like [`send`](Self::send), but more bytes of the same ADU follow.
    ///
    /// # Errors
    /// The errors of [`send`](Self::send).
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

    /// The asynchronous variant of [`send`](Self::send).
    ///
    /// If the future is dropped before it completes, data of 64 kB or less has been added to the ADU completely or not
    /// at all. Longer data may have been added in part.
    ///
    /// # Errors
    /// The errors of [`send`](Self::send).
    pub async fn send_async(&mut self, data: &[u8]) -> Result<(), SendError> {
        self.send_as_async(data, true).await
    }

    /// Like [`send_async`](Self::send_async), for bytes of an ADU that are not its last bytes.
    ///
    /// # Errors
    /// The errors of [`send`](Self::send).
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

    /// Approximate number of bytes that were passed to this sender and that neither TCP nor RTP has accepted yet.
    pub fn waiting(&self) -> usize {
        self.payloads.waiting()
    }

    /// The state of the flow, and what the sender's host permits.
    pub fn state(&self) -> PairState {
        // No code panics while it has the lock, so a poisoned lock is harmless.
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The local address of the TCP connection.
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Sends all waiting data, ends an unfinished ADU, and ends the flow. Returns the last state of the flow.
    ///
    /// The duration of the call depends on the rate. The host delivers the data that was already passed to its TCP,
    /// even after this call.
    ///
    /// # Errors
    /// The error that ended the flow early, if any.
    pub fn close(self) -> Result<PairState, NetError> {
        let Self { thread, payloads, state, .. } = self;
        drop(payloads);
        if let Some(thread) = thread.take() {
            thread.join()??;
        }
        Ok(last(&state))
    }

    /// The asynchronous variant of [`close`](Self::close). The call itself begins to end the flow. If the future is
    /// dropped, even before it was polled, waiting data is still sent.
    ///
    /// # Errors
    /// The errors of [`close`](Self::close).
    ///
    /// # Panics
    /// If the future is polled outside of a tokio runtime.
    pub fn close_async(self) -> impl Future<Output = Result<PairState, NetError>> + Send + 'static {
        let Self { thread, payloads, state, .. } = self;
        drop(payloads);
        // From here on, dropping the future does not stop the thread.
        let ended = thread.take().map(Worker::release);
        async move {
            if let Some(ended) = ended {
                blocking(move || ended()?).await?;
            }
            Ok(last(&state))
        }
    }
}

/// Splits off the last part of an ADU, at most [`PayloadSender::PART`] bytes. If `end` is false, more data of the ADU
/// follows, and the last part is empty.
fn split(data: &[u8], end: bool) -> (&[u8], &[u8]) {
    let before =
        if end { data.len().saturating_sub(1) / PayloadSender::PART * PayloadSender::PART } else { data.len() };
    data.split_at(before)
}

/// Creates the state machine of the sender.
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
