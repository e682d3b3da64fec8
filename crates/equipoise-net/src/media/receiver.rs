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

/// Maximum number of sessions that wait to be accepted by the application. Our choice: the usual backlog of a listening
/// socket.
const BACKLOG: usize = 128;

/// The receiver of many sessions, for asynchronous applications.
///
/// If the receiver is dropped, all sessions end.
#[derive(Debug)]
pub struct MediaReceiver {
    server: Leaving<Server<Porter>>,
    arriving: mpsc::Receiver<Incoming>,
    unaccepted: Arc<AtomicU64>,
    local: SocketAddr,
    key_frames: KeyFrames,
}

impl MediaReceiver {
    /// Starts to receive at `address`; port 0 means any free port.
    ///
    /// # Errors
    /// [`NetError::PortInUse`] and [`NetError::Bind`] if the socket cannot be opened, and the errors of
    /// [`Server::start`].
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

    /// The address at which the receiver receives, with the actual port.
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Waits for the next session that a sender opens; `None` if the receiver failed. In this case,
    /// [`close`](Self::close) returns the error.
    pub async fn accept(&mut self) -> Option<Incoming> {
        self.arriving.recv().await
    }

    /// The polling variant of [`accept`](Self::accept), for custom event loops: if the result is pending, the context's
    /// waker is woken when a session was opened. Only the waker of the latest call is woken.
    pub fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<Option<Incoming>> {
        self.arriving.poll_recv(context)
    }

    /// Number of sessions that were opened when 128 sessions already waited to be accepted. The payload of these
    /// sessions is dropped.
    pub fn unaccepted(&self) -> u64 {
        self.unaccepted.load(Ordering::Relaxed)
    }

    /// A handle that requests key frames from senders, for a decoder that cannot continue without a key frame. It can
    /// be used in any thread or task.
    pub const fn key_frames(&self) -> &KeyFrames {
        &self.key_frames
    }

    /// Ends all sessions, notifies their senders, and releases the port.
    ///
    /// # Errors
    /// The error that ended the receiver early, if any.
    pub async fn close(self) -> Result<HostStats, NetError> {
        self.server.end(|server| server.stop().map(|(_, stats)| stats)).await
    }
}

/// Received payload of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Number of packets that are missing directly before this payload: the packets were lost or late, or the
    /// application did not take their payload in time.
    pub missing: u64,
    /// When the session delivered the payload. This is the arrival time of the payload, unless the payload had to wait
    /// for earlier packets that were missing.
    pub at: Time,
    /// The next bytes of the stream, or one RTP packet.
    pub payload: Vec<u8>,
}

/// A session that a sender has opened with a [`MediaReceiver`].
///
/// If this value is dropped, the session's payload is discarded, and the session continues until its sender ends it.
#[derive(Debug)]
pub struct Incoming {
    session: Session,
    queue: mpsc::Receiver<Received>,
    shared: Arc<Shared>,
    measurements: watch::Receiver<Reception>,
}

impl Incoming {
    /// Maximum number of bytes of payload that wait for [`recv`](Self::recv); further payload is dropped. Our choice:
    /// at 20 Mbit/s, an application may pause for 0.4 s, and many sessions fit into memory.
    pub const MOST: usize = 1 << 20;
    /// Maximum number of packets that wait for [`recv`](Self::recv). Our choice: this limit is reached before
    /// [`MOST`](Self::MOST) only if packets have fewer than 256 bytes of payload.
    pub const MOST_PACKETS: usize = 4096;

    /// The session, with the address that the peer had when the session was opened.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Waits for the next payload, in order; `None` when the session is over and all payload has been returned.
    pub async fn recv(&mut self) -> Option<Received> {
        poll_fn(|context| self.poll_recv(context)).await
    }

    /// The polling variant of [`recv`](Self::recv), for custom event loops: if the result is pending, the context's
    /// waker is woken when there is payload. Only the waker of the latest call is woken.
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<Received>> {
        let received = ready!(self.queue.poll_recv(context));
        let taken = received.as_ref().map_or(0, |received| received.payload.len());
        self.shared.waiting.fetch_sub(taken, Ordering::Relaxed);
        Poll::Ready(received)
    }

    /// Number of packets whose payload was dropped because the application did not take it in time.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Measurements of the session, updated with every report to the sender. The channel is closed when the session is
    /// over, or when payload arrives after this [`Incoming`] was dropped.
    pub fn measurements(&self) -> watch::Receiver<Reception> {
        self.measurements.clone()
    }

    /// Why the session ended; `None` if it is still running, or if the receiver failed.
    pub fn end(&self) -> Option<End> {
        self.shared.end.get().copied()
    }
}

/// State of a session that the server's thread and the application share.
#[derive(Debug, Default)]
struct Shared {
    /// Number of bytes of payload in the queue.
    waiting: AtomicUsize,
    dropped: AtomicU64,
    end: OnceLock<End>,
}

/// Moves payload from the server's thread into the queues of the sessions, and never waits.
#[derive(Debug)]
struct Porter {
    runtime: Handle,
    door: mpsc::Sender<Incoming>,
    unaccepted: Arc<AtomicU64>,
    /// The sessions by number. A session is removed when it ends, or when payload arrives after the session's
    /// [`Incoming`] was dropped.
    sessions: BTreeMap<u64, Delivery>,
}

#[derive(Debug)]
struct Delivery {
    queue: mpsc::Sender<Received>,
    shared: Arc<Shared>,
    /// Number of packets that are missing before the next payload.
    missing: u64,
    reception: Reception,
    publisher: Publisher<Reception>,
}

impl Delivery {
    /// Puts payload into the queue of a session, or drops it if the queue is full. Returns false if the [`Incoming`]
    /// was dropped.
    fn deliver(&mut self, at: Time, missing: u64, payload: &[u8]) -> bool {
        self.missing = self.missing.saturating_add(missing);
        self.reception.missing = self.reception.missing.saturating_add(missing);
        let waiting = self.shared.waiting.load(Ordering::Relaxed);
        match self.queue.try_reserve() {
            Err(mpsc::error::TrySendError::Closed(())) => return false,
            Ok(place) if waiting.saturating_add(payload.len()) <= Incoming::MOST => {
                // The bytes are added before the payload is sent. When the application takes the payload, `poll_recv`
                // subtracts the bytes, and `waiting` must not fall below zero.
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
            // In this session the server sends, so no payload is received.
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
            // A session ends only once, so the value is not set yet.
            let _ = delivery.shared.end.set(why);
            delivery.publisher.tell(delivery.reception);
        }
    }
}
