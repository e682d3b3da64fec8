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
/// The longest ADU.
const LONGEST: usize = AduHeader::LONGEST as usize;

/// The sending end of a flow pair.
///
/// Dropping it ends the flow without what still waits to be sent; [`close`](Self::close) sends that first.
#[derive(Debug)]
pub struct PairSender {
    thread: Leaving<Worker<Result<(), NetError>>>,
    payloads: PayloadSender,
    state: Arc<Mutex<PairState>>,
    local: SocketAddr,
    /// Bytes of the ADU that is not ended yet.
    open: usize,
}

impl PairSender {
    /// Opens a flow to the receiver at `peer`, over TCP to that port and UDP to the one that it then names.
    ///
    /// # Errors
    /// [`NetError::NoPair`] where no receiver answers there, [`NetError::Pair`] for a configuration that cannot be,
    /// [`NetError::NoCongestionControl`], and what the system says.
    pub fn connect(peer: SocketAddr, config: &PairConfig) -> Result<Self, NetError> {
        Self::connect_observed(peer, config, |_, _| {})
    }

    /// The same; `observe` is told what the flow does and sees, on its own thread: slow observers make late senders.
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

    /// Opens a flow as [`connect`](Self::connect) does; a task waits instead of a thread.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn connect_async(peer: SocketAddr, config: PairConfig) -> Result<Self, NetError> {
        blocking(move || Self::connect(peer, &config)).await
    }

    /// Sends the last bytes of an ADU, or all of it, and waits while there is no room for them.
    ///
    /// # Errors
    /// [`SendError::TooLong`] where the ADU would be: nothing is taken then. [`SendError::Closed`] where the flow is over, of
    /// which [`close`](Self::close) tells the reason.
    pub fn send(&mut self, data: &[u8]) -> Result<(), SendError> {
        self.send_as(data, true)
    }

    /// Sends bytes of an ADU that goes on, as [`send`](Self::send) does.
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

    /// Sends as [`send`](Self::send) does; a task waits instead of a thread.
    ///
    /// Where it is given up before it ends, some part of the data from its beginning belongs to the ADU; of 64 kB or less,
    /// nothing.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn send_async(&mut self, data: &[u8]) -> Result<(), SendError> {
        self.send_as_async(data, true).await
    }

    /// Sends as [`send_part`](Self::send_part) does; a task waits instead of a thread, as with
    /// [`send_async`](Self::send_async).
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

    /// Bytes that were given and that neither transport has taken.
    pub fn waiting(&self) -> usize {
        self.payloads.waiting()
    }

    /// How the flow stands, and what its host lets it do.
    pub fn state(&self) -> PairState {
        // A state is whole between any two of its changes.
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where its TCP connection comes from.
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Sends what waits, an ADU that is not ended with what it has, and ends the flow. Gives its last state.
    ///
    /// That lasts as long as the rate makes it. What the host's TCP then has, it delivers by itself.
    ///
    /// # Errors
    /// What made the flow fail, if something did.
    pub fn close(self) -> Result<PairState, NetError> {
        let Self { thread, payloads, state, .. } = self;
        drop(payloads);
        if let Some(thread) = thread.take() {
            thread.join()??;
        }
        Ok(last(&state))
    }

    /// Ends the flow as [`close`](Self::close) does; a task waits instead of a thread. Given up before it ends, what waits is
    /// sent all the same.
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

/// What goes before the last part, and the part that ends the ADU where it does.
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
