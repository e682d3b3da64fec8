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

/// Flows that may wait to be accepted. Ours: as many as wait at a listening socket by long custom.
const BACKLOG: usize = 128;
/// Connections that have not said their first word yet; beyond, others wait with the kernel. Ours.
const OPENING: usize = 64;
/// How long a connection may take to its first word. Ours: one that says nothing holds up nobody for long.
pub(super) const PATIENCE: Span = Span::from_secs(5);

/// Where flow pairs arrive.
///
/// Dropping it ends no flow that was accepted.
#[derive(Debug)]
pub struct PairListener {
    thread: Leaving<Worker<Result<(), NetError>>>,
    arriving: mpsc::Receiver<PairReceiver>,
    turned_away: Arc<AtomicU64>,
    address: SocketAddr,
}

impl PairListener {
    /// Listens at `address`; port 0 takes any free one.
    ///
    /// TCP listens there. The first flow takes its datagrams at the same port of UDP, where that is free; others at any.
    ///
    /// # Errors
    /// [`NetError::Tcp`] where the address cannot be had, [`NetError::Spawn`] where there is no thread to be had.
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

    /// Where it listens, with the port that was chosen.
    pub const fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for the next flow; `None` where the listener failed, and [`close`](Self::close) tells why.
    ///
    /// # Panics
    /// Within a tokio runtime.
    pub fn accept(&mut self) -> Option<PairReceiver> {
        self.arriving.blocking_recv()
    }

    /// Waits as [`accept`](Self::accept) does; a task waits instead of a thread.
    pub async fn accept_async(&mut self) -> Option<PairReceiver> {
        self.arriving.recv().await
    }

    /// The form of [`accept`](Self::accept) for event loops of one's own: while it is pending, the context's waker is woken when a flow was
    /// opened. That of the latest call counts.
    pub fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<Option<PairReceiver>> {
        self.arriving.poll_recv(context)
    }

    /// Connections that were no flow pair's, said nothing, or found 128 others waiting to be accepted.
    pub fn turned_away(&self) -> u64 {
        self.turned_away.load(Ordering::Relaxed)
    }

    /// Listens no more.
    ///
    /// # Errors
    /// What made it fail, if something did.
    pub fn close(self) -> Result<(), NetError> {
        self.thread.take().map_or(Ok(()), |thread| {
            thread.request_stop();
            thread.join()?
        })
    }
}

/// The thread that hears first words.
struct Door {
    listener: TcpListener,
    clock: Clock,
    opening: Vec<Opening>,
    queue: mpsc::Sender<PairReceiver>,
    turned_away: Arc<AtomicU64>,
}

/// A connection that has not said its first word.
pub(super) struct Opening {
    pub(super) stream: TcpStream,
    word: [u8; PairHello::LEN],
    heard: usize,
    give_up: Time,
}

/// What a connection has come to.
pub(super) enum Heard {
    NotYet,
    Pair(PairHello),
    /// It is none of ours, or gone.
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
                // It was gone before it was let in.
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                Err(source) if self.opening.is_empty() && self.queue.is_closed() => {
                    return Err(failed("accept")(source));
                }
                Err(_) => {
                    // No descriptors or no memory, for now: others may give theirs back.
                    self.clock.sleep_until(self.clock.now() + STOP_CHECK);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Hears what connections say, and lets go those that are done.
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

    /// Makes a receiver of a connection and answers; `None` where that cannot be, or nobody would take it.
    fn admit(&self, mut stream: TcpStream, hello: PairHello) -> Option<()> {
        let place = self.queue.try_reserve().ok()?;
        keep_alive(&stream);
        let port = self.listener.local_addr().ok()?.port();
        let answer = stream.try_clone().ok()?;
        let (receiver, own) = PairReceiver::start(answer, hello, port, &self.clock).ok()?;
        // So few bytes always fit into a connection that has sent none.
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
