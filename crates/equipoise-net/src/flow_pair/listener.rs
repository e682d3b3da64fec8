use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use equipoise::units::Span;
use equipoise_pair::wire::PairHello;
use nix::poll::{PollFd, PollFlags};
use tokio::sync::mpsc;

use super::PairReceiver;
use super::hello::keep_alive;
use crate::leaving::Leaving;
use crate::socket::wait_readable;
use crate::tcp::failed;
use crate::thread::{STOP_CHECK, Worker};
use crate::{Clock, NetError, Time};

/// Maximum number of flows that wait to be accepted by the application. Our choice: the usual backlog of a listening
/// socket.
const BACKLOG: usize = 128;
/// Maximum number of connections whose first message (hello) has not arrived; further connections wait in the kernel.
/// Our choice.
const OPENING: usize = 64;
/// How long a connection may take to send its first message (hello). Our choice: then a silent connection does not
/// block others for long.
pub(super) const PATIENCE: Span = Span::from_secs(5);

/// Accepts the TCP connections of flow pairs.
///
/// If the listener is dropped, the flows that were accepted continue.
#[derive(Debug)]
pub struct PairListener {
    thread: Leaving<Worker<Result<(), NetError>>>,
    arriving: mpsc::Receiver<PairReceiver>,
    turned_away: Arc<AtomicU64>,
    address: SocketAddr,
}

impl PairListener {
    /// Starts to listen at `address`; port 0 means any free port.
    ///
    /// TCP listens at this address. A new flow receives its datagrams at the UDP port of the same number if this port
    /// is free, and otherwise at any free port.
    ///
    /// # Errors
    /// [`NetError::Tcp`] if the address is not available, [`NetError::Spawn`] if no thread can be started.
    pub fn bind(address: SocketAddr) -> Result<Self, NetError> {
        let listener = TcpListener::bind(address).map_err(failed("listen with"))?;
        listener.set_nonblocking(true).map_err(failed("listen with"))?;
        let address = listener.local_addr().map_err(failed("listen with"))?;
        let (queue, arriving) = mpsc::channel(BACKLOG);
        let turned_away = Arc::new(AtomicU64::new(0));
        let (clock, opening) = (Clock::new(), Vec::new());
        let door = Door { listener, clock, opening, queue, turned_away: turned_away.clone() };
        let thread = Leaving::new(Worker::spawn("pair listener", move |stop| door.run(stop))?);
        Ok(Self { thread, arriving, turned_away, address })
    }

    /// The address at which the listener listens, with the actual port.
    pub const fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for the next flow; `None` if the listener failed. In this case, [`close`](Self::close) returns the error.
    ///
    /// # Panics
    /// If called within a tokio runtime.
    pub fn accept(&mut self) -> Option<PairReceiver> {
        self.arriving.blocking_recv()
    }

    /// The asynchronous variant of [`accept`](Self::accept).
    pub async fn accept_async(&mut self) -> Option<PairReceiver> {
        self.arriving.recv().await
    }

    /// The polling variant of [`accept`](Self::accept), for custom event loops: if the result is pending, the context's
    /// waker is woken when a flow was opened. Only the waker of the latest call is woken.
    pub fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<Option<PairReceiver>> {
        self.arriving.poll_recv(context)
    }

    /// Number of connections that were closed for one of these reasons: no valid first message arrived in time, 128
    /// flows already waited to be accepted, or the receiver could not be started.
    pub fn turned_away(&self) -> u64 {
        self.turned_away.load(Ordering::Relaxed)
    }

    /// Stops listening for new flows.
    ///
    /// # Errors
    /// The error that ended the listener, if any.
    pub fn close(self) -> Result<(), NetError> {
        self.thread.take().map_or(Ok(()), |thread| {
            thread.request_stop();
            thread.join()?
        })
    }
}

/// The thread that accepts connections and reads their first messages (hellos).
struct Door {
    listener: TcpListener,
    clock: Clock,
    opening: Vec<Opening>,
    queue: mpsc::Sender<PairReceiver>,
    turned_away: Arc<AtomicU64>,
}

/// A connection whose first message (hello) has not arrived completely.
pub(super) struct Opening {
    pub(super) stream: TcpStream,
    word: [u8; PairHello::LEN],
    heard: usize,
    give_up: Time,
}

/// The result of reading the first message (hello) of a connection.
pub(super) enum Heard {
    NotYet,
    Pair(PairHello),
    /// The first message is invalid, or the connection was closed or lost.
    Stranger,
}

impl Door {
    fn run(mut self, stop: &AtomicBool) -> Result<(), NetError> {
        while !stop.load(Ordering::Relaxed) {
            self.let_in()?;
            self.hear();
            let until = self.clock.now() + STOP_CHECK;
            let listener = Some(self.listener.as_fd()).filter(|_| self.opening.len() < OPENING);
            let streams = self.opening.iter().map(|opening| opening.stream.as_fd());
            let mut waiting: Vec<_> = streams.chain(listener).map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
            wait_readable(&mut waiting, &self.clock, until)?;
        }
        Ok(())
    }

    fn let_in(&mut self) -> Result<(), NetError> {
        while self.opening.len() < OPENING {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(true).map_err(failed("accept"))?;
                    self.opening.push(Opening::new(stream, self.clock.now() + PATIENCE));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The peer closed the connection before it was accepted, or a signal interrupted the call.
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                Err(source) if self.opening.is_empty() && self.queue.is_closed() => {
                    return Err(failed("accept")(source));
                }
                Err(_) => {
                    // Probably the system has too few descriptors or too little memory. They may become free when other
                    // flows end, so accepting is tried again later.
                    self.clock.sleep_until(self.clock.now() + STOP_CHECK);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Reads from all connections whose first message (hello) is not complete. Removes the connections whose first
    /// message is complete, invalid or too late.
    fn hear(&mut self) {
        let now = self.clock.now();
        for mut opening in std::mem::take(&mut self.opening) {
            let heard = opening.hear();
            match heard {
                Heard::NotYet if now < opening.give_up => self.opening.push(opening),
                Heard::Pair(hello) if self.admit(opening.stream, hello).is_some() => {}
                _ => _ = self.turned_away.fetch_add(1, Ordering::Relaxed),
            }
        }
    }

    /// Creates a receiver for a connection, and answers the connection's first message (hello). Returns `None` if one
    /// of these steps fails, or if the queue is full.
    fn admit(&self, mut stream: TcpStream, hello: PairHello) -> Option<()> {
        let place = self.queue.try_reserve().ok()?;
        keep_alive(&stream);
        let port = self.listener.local_addr().ok()?.port();
        let answer = stream.try_clone().ok()?;
        let (receiver, own) = PairReceiver::start(answer, hello, port, &self.clock).ok()?;
        // These few bytes always fit into the send buffer of a new connection.
        stream.write_all(&own.to_bytes()).ok()?;
        place.send(receiver);
        Some(())
    }
}

impl Opening {
    pub(super) const fn new(stream: TcpStream, give_up: Time) -> Self {
        Self { stream, word: [0; PairHello::LEN], heard: 0, give_up }
    }

    pub(super) fn hear(&mut self) -> Heard {
        while let Some(rest) = self.word.get_mut(self.heard..).filter(|rest| !rest.is_empty()) {
            match self.stream.read(rest) {
                Ok(0) => return Heard::Stranger,
                Ok(length) => self.heard += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Heard::NotYet,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Heard::Stranger,
            }
        }
        PairHello::parse(self.word).map_or(Heard::Stranger, Heard::Pair)
    }
}
