use std::future::poll_fn;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use equipoise::measure::ClockMap;
use equipoise::units::Size;
use equipoise_pair::wire::PairHello;
use equipoise_session::rtp::{self, Clocks};
use tokio::sync::mpsc;

use super::adu::{Adu, PairEnd};
use super::connection::at_port;
use super::hello::overhead;
use super::receiving::{Receiving, Shared};
use crate::leaving::Leaving;
use crate::secure::random;
use crate::tcp::failed;
use crate::thread::Worker;
use crate::{Clock, NetError, Socket, Time};

/// The receiver of a flow pair.
///
/// If the receiver is dropped, the flow ends.
#[derive(Debug)]
pub struct PairReceiver {
    thread: Leaving<Worker<Result<(), NetError>>>,
    queue: mpsc::Receiver<Adu>,
    shared: Arc<Shared>,
    peer: SocketAddr,
}

impl PairReceiver {
    /// Maximum number of ADUs in the queue of [`recv`](Self::recv). This limit and the limit [`MOST`](Self::MOST) are
    /// our choice.
    pub const MOST_ADUS: usize = 4096;
    /// While the queue of [`recv`](Self::recv) contains this number of bytes or more, no ADU is added. Further ADUs
    /// wait outside of the queue, up to [`equipoise_pair::ReceiverConfig::MOST`] bytes. Beyond this limit, TCP has to
    /// wait, and ADUs over RTP are dropped.
    pub const MOST: usize = Shared::MOST;

    /// Starts a receiver for the flow whose sender connected with `stream` and sent `hello`, its first message. Also
    /// returns the message that answers `hello`.
    pub(super) fn start(
        stream: TcpStream,
        hello: PairHello,
        port: u16,
        clock: &Clock,
    ) -> Result<(Self, PairHello), NetError> {
        let peer = stream.peer_addr().map_err(failed("accept"))?;
        let local = stream.local_addr().map_err(failed("accept"))?;
        let socket = Socket::bind(at_port(local, port), clock).or_else(|_| Socket::bind(at_port(local, 0), clock))?;
        let ssrc = u32::from_be_bytes(random());
        let answer = PairHello { port: socket.address().port(), ssrc };
        let cname = format!("receiver-{ssrc:08x}@equipoise");
        let base = rtp::ReceiverConfig::new(ssrc, cname, hello.ssrc, ClockMap::SYNCHRONISED, ssrc.into());
        let rtp = rtp::ReceiverConfig { clocks: Clocks::Apart, overhead: Size::from_bytes(overhead(peer)), ..base };
        let end = equipoise_pair::Receiver::new(equipoise_pair::ReceiverConfig::new(rtp))?;
        let (sender, queue) = mpsc::channel(Self::MOST_ADUS);
        let shared = Arc::new(Shared::new()?);
        let unobserved = |_: Time, _: &equipoise_session::Event| {};
        let delivery = (Some(sender), shared.clone());
        let receiving = Receiving::new(end, stream, (socket, peer, hello.ssrc), delivery, unobserved);
        let thread = Leaving::new(Worker::spawn("pair receiver", move |stop| receiving.run(stop))?);
        Ok((Self { thread, queue, shared, peer }, answer))
    }

    /// The TCP address of the sender.
    pub const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Waits for the next ADU and returns it. ADUs are returned in order. Returns `None` when the flow is over and all
    /// ADUs have been returned.
    ///
    /// # Panics
    /// If called within a tokio runtime.
    pub fn recv(&mut self) -> Option<Adu> {
        let adu = self.queue.blocking_recv()?;
        self.shared.taken(adu.data.len());
        Some(adu)
    }

    /// The asynchronous variant of [`recv`](Self::recv).
    pub async fn recv_async(&mut self) -> Option<Adu> {
        poll_fn(|context| self.poll_recv(context)).await
    }

    /// The polling variant of [`recv`](Self::recv), for custom event loops: if the result is pending, the context's
    /// waker is woken when there is an ADU. Only the waker of the latest call is woken.
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<Adu>> {
        let adu = ready!(self.queue.poll_recv(context));
        if let Some(adu) = &adu {
            self.shared.taken(adu.data.len());
        }
        Poll::Ready(adu)
    }

    /// Why the flow ended; `None` if it is still running, or if the receiver's thread failed.
    pub fn end(&self) -> Option<PairEnd> {
        self.shared.end.get().copied()
    }

    /// Number of bytes of ADUs in the queue from which [`recv`](Self::recv) takes them.
    pub fn waiting(&self) -> usize {
        self.shared.waiting.load(Ordering::Relaxed)
    }

    /// Ends the flow.
    ///
    /// # Errors
    /// The error of the receiver's thread, if any.
    pub fn close(self) -> Result<(), NetError> {
        self.thread.take().map_or(Ok(()), |thread| {
            thread.request_stop();
            thread.join()?
        })
    }
}
