use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use equipoise_session::Event;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};

use super::measurement::{Reception, moments};
use super::news::{Publisher, publisher};
use crate::leaving::{Leaving, blocking};
use crate::{Clock, End, HostStats, KeyFrames, NetError, Server, ServerConfig, Session, SessionObserver, Socket, Time};

/// Maximum number of sessions that wait to be accepted. Our choice: the usual backlog of a listening socket.
const BACKLOG: usize = 128;

/// The receiving end of many sessions, for tasks.
///
/// Dropping it ends all sessions.
#[derive(Debug)]
pub struct MediaReceiver {
    server: Leaving<Server<Porter>>,
    arriving: mpsc::Receiver<Incoming>,
    unaccepted: Arc<AtomicU64>,
    local: SocketAddr,
    key_frames: KeyFrames,
}

impl MediaReceiver {
    /// Receives at `address`; port 0 means any free port.
    ///
    /// # Errors
    /// [`NetError::PortInUse`] and [`NetError::Bind`] if the socket cannot be opened, [`NetError::Spawn`] if no thread
    /// can be started.
    ///
    /// # Panics
    /// If called outside of a tokio runtime.
    pub async fn bind(address: SocketAddr, config: ServerConfig) -> Result<Self, NetError> {
        let runtime = Handle::current();
        let socket = Socket::bind(address, &Clock::new())?;
        let local = socket.address();
        let (door, arriving) = mpsc::channel(BACKLOG);
        let unaccepted = Arc::new(AtomicU64::new(0));
        let porter = Porter { runtime, door, unaccepted: unaccepted.clone(), sessions: BTreeMap::new() };
        let server = blocking(move || Server::start(socket, config, porter)).await?;
        let key_frames = server.key_frames().clone();
        Ok(Self { server: Leaving::new(server), arriving, unaccepted, local, key_frames })
    }

    /// The address at which it receives, with the actual port.
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Waits for the next session that a sender opens; `None` if the receiver failed. [`close`](Self::close) returns
    /// the reason.
    pub async fn accept(&mut self) -> Option<Incoming> {
        self.arriving.recv().await
    }

    /// As [`accept`](Self::accept), for custom event loops: while it is pending, the context's waker is woken when a
    /// session was opened. Only the waker of the latest call counts.
    pub fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<Option<Incoming>> {
        self.arriving.poll_recv(context)
    }

    /// Number of sessions that were opened while 128 others waited to be accepted; their payload is dropped.
    pub fn unaccepted(&self) -> u64 {
        self.unaccepted.load(Ordering::Relaxed)
    }

    /// Handle that requests key frames from senders, if a decoder cannot continue without a key frame; from any thread
    /// or task.
    pub const fn key_frames(&self) -> &KeyFrames {
        &self.key_frames
    }

    /// Says goodbye to all sessions and releases the port.
    ///
    /// # Errors
    /// The error that ended the receiver early, if any.
    pub async fn close(self) -> Result<HostStats, NetError> {
        self.server.end(|server| server.stop().map(|(_, stats)| stats)).await
    }
}

/// Received payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Number of packets whose payload is missing before this payload: they were lost on the path or not taken in time.
    pub missing: u64,
    /// When the session delivered it. This is its arrival time, unless it had to wait for packets that it had
    /// overtaken.
    pub at: Time,
    /// The next bytes of the stream, or one RTP packet.
    pub payload: Vec<u8>,
}

/// A session at a [`MediaReceiver`].
///
/// Dropping it discards its payload; the session itself continues until its sender ends it.
#[derive(Debug)]
pub struct Incoming {
    session: Session,
    queue: mpsc::Receiver<Received>,
    shared: Arc<Shared>,
    measurements: watch::Receiver<Reception>,
}

impl Incoming {
    /// Maximum number of bytes of payload that wait to be taken; payload beyond this is dropped. Our choice: a file
    /// system may stall for 0.4 s at 20 Mbit/s, and many sessions still fit into memory.
    pub const MOST: usize = 1 << 20;
    /// Maximum number of packets that wait. Our choice: this limits packets of fewer than 256 bytes.
    pub const MOST_PACKETS: usize = 4096;

    /// The session, with the peer's address when it was opened.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Waits for the next payload, in order; `None` when the session is over and all payload has been taken.
    pub async fn recv(&mut self) -> Option<Received> {
        poll_fn(|context| self.poll_recv(context)).await
    }

    /// As [`recv`](Self::recv), for custom event loops: while it is pending, the context's waker is woken when there is
    /// payload. Only the waker of the latest call counts.
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<Received>> {
        let received = ready!(self.queue.poll_recv(context));
        let taken = received.as_ref().map_or(0, |received| received.payload.len());
        self.shared.waiting.fetch_sub(taken, Ordering::Relaxed);
        Poll::Ready(received)
    }

    /// Number of packets whose payload was dropped because it was not taken in time.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Measurements of the session, updated with every report to its sender. Closed when the session is over, or when
    /// this value is dropped.
    pub fn measurements(&self) -> watch::Receiver<Reception> {
        self.measurements.clone()
    }

    /// Why the session ended; `None` while it runs, and if the receiver failed.
    pub fn end(&self) -> Option<End> {
        self.shared.end.get().copied()
    }
}

/// State shared by both ends of a session's queue.
#[derive(Debug, Default)]
struct Shared {
    /// Bytes in the queue.
    waiting: AtomicUsize,
    dropped: AtomicU64,
    end: OnceLock<End>,
}

/// Moves payload from the server's thread into the queues, and never waits.
#[derive(Debug)]
struct Porter {
    runtime: Handle,
    door: mpsc::Sender<Incoming>,
    unaccepted: Arc<AtomicU64>,
    /// The sessions by number, until their [`Incoming`] is dropped.
    sessions: BTreeMap<u64, Delivery>,
}

#[derive(Debug)]
struct Delivery {
    queue: mpsc::Sender<Received>,
    shared: Arc<Shared>,
    /// Packets that are missing before the next payload.
    missing: u64,
    reception: Reception,
    publisher: Publisher<Reception>,
}

impl Delivery {
    /// Puts payload into the queue or drops it. Returns false if the [`Incoming`] was dropped.
    fn deliver(&mut self, at: Time, missing: u64, payload: &[u8]) -> bool {
        self.missing = self.missing.saturating_add(missing);
        self.reception.missing = self.reception.missing.saturating_add(missing);
        let waiting = self.shared.waiting.load(Ordering::Relaxed);
        match self.queue.try_reserve() {
            Err(mpsc::error::TrySendError::Closed(())) => return false,
            Ok(place) if waiting.saturating_add(payload.len()) <= Incoming::MOST => {
                // The payload is counted before it can be taken.
                self.shared.waiting.fetch_add(payload.len(), Ordering::Relaxed);
                let missing = std::mem::take(&mut self.missing);
                place.send(Received { missing, at, payload: payload.to_vec() });
            }
            _ => {
                self.missing = self.missing.saturating_add(1);
                self.shared.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
        true
    }
}

impl SessionObserver for Porter {
    fn on_open(&mut self, _now: Time, session: &Session) {
        if session.is_sent_to {
            // The server sends in this session, so there is no payload to take.
            return;
        }
        let (sender, queue) = mpsc::channel(Incoming::MOST_PACKETS);
        let (publisher, measurements) = publisher(&self.runtime, Reception::default());
        let shared = Arc::new(Shared::default());
        let incoming = Incoming { session: *session, queue, shared: shared.clone(), measurements };
        if self.door.try_send(incoming).is_err() {
            self.unaccepted.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let (missing, reception) = (0, Reception::default());
        self.sessions.insert(session.number, Delivery { queue: sender, shared, missing, reception, publisher });
    }

    fn on_event(&mut self, _now: Time, session: &Session, event: &Event) {
        let Some(delivery) = self.sessions.get_mut(&session.number) else { return };
        match event {
            Event::MediaReceived { size, .. } => {
                delivery.reception.packets += 1;
                delivery.reception.bytes += size.as_bytes();
            }
            Event::ReportSent { delay } => {
                (delivery.reception.delay_mean, delivery.reception.delay_deviation) = moments(*delay);
                delivery.publisher.tell(delivery.reception);
            }
            _ => {}
        }
    }

    fn on_payload(&mut self, now: Time, session: &Session, missing: u64, payload: &[u8]) {
        if let Some(delivery) = self.sessions.get_mut(&session.number)
            && !delivery.deliver(now, missing, payload)
        {
            self.sessions.remove(&session.number);
        }
    }

    fn on_end(&mut self, _now: Time, session: &Session, why: End) {
        if let Some(delivery) = self.sessions.remove(&session.number) {
            // A session ends only once.
            let _ = delivery.shared.end.set(why);
            delivery.publisher.tell(delivery.reception);
        }
    }
}
