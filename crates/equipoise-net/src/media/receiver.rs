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

/// Sessions that may wait to be accepted. Ours: as many as wait at a listening socket by long custom.
const BACKLOG: usize = 128;

/// The receiving end of many sessions, for tasks.
///
/// Dropping it ends them all.
#[derive(Debug)]
pub struct MediaReceiver {
    server: Leaving<Server<Porter>>,
    arriving: mpsc::Receiver<Incoming>,
    unaccepted: Arc<AtomicU64>,
    local: SocketAddr,
    key_frames: KeyFrames,
}

impl MediaReceiver {
    /// Receives at `address`; port 0 takes any free one.
    ///
    /// # Errors
    /// [`NetError::PortInUse`] and [`NetError::Bind`] if the socket cannot be opened, [`NetError::Spawn`] if no thread
    /// can be started.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
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

    /// Where it receives, with the port that was chosen.
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// The next session that a sender has opened; `None` where the receiver failed, and [`close`](Self::close) tells why.
    pub async fn accept(&mut self) -> Option<Incoming> {
        self.arriving.recv().await
    }

    /// The form of [`accept`](Self::accept) for event loops of one's own: while it is pending, the context's waker is woken when a session was
    /// opened. That of the latest call counts.
    pub fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<Option<Incoming>> {
        self.arriving.poll_recv(context)
    }

    /// Sessions that were opened while 128 others waited to be accepted: nobody sees what they send.
    pub fn unaccepted(&self) -> u64 {
        self.unaccepted.load(Ordering::Relaxed)
    }

    /// Asks senders for key frames, where a decoder cannot go on without one, from any thread or task.
    pub const fn key_frames(&self) -> &KeyFrames {
        &self.key_frames
    }

    /// Says goodbye to all sessions and gives the port back.
    ///
    /// # Errors
    /// What made the receiver fail, if something did.
    pub async fn close(self) -> Result<HostStats, NetError> {
        self.server.end(|server| server.stop().map(|(_, stats)| stats)).await
    }
}

/// Payload that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Packets whose payload is missing before it: what was lost on the way, and what was not taken in time.
    pub missing: u64,
    /// When the session gave it out, which is its arrival unless it waited for packets that it had overtaken.
    pub at: Time,
    /// The next bytes of the stream, or one RTP packet.
    pub payload: Vec<u8>,
}

/// A session at a [`MediaReceiver`].
///
/// Dropping it throws its payload away; the session itself goes on until its sender ends it.
#[derive(Debug)]
pub struct Incoming {
    session: Session,
    queue: mpsc::Receiver<Received>,
    shared: Arc<Shared>,
    measurements: watch::Receiver<Reception>,
}

impl Incoming {
    /// Bytes of payload that may wait to be taken; what comes then is dropped. Ours: a file system may stall for 0.4 s at
    /// 20 Mbit/s, and many sessions still fit into memory.
    pub const MOST: usize = 1 << 20;
    /// Packets that may wait. Ours: of fewer than 256 bytes each, these are the limit.
    pub const MOST_PACKETS: usize = 4096;

    /// Which one it is, and where it came from when it was opened.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// The next payload, in order; `None` when the session is over and all has been taken.
    pub async fn recv(&mut self) -> Option<Received> {
        poll_fn(|context| self.poll_recv(context)).await
    }

    /// The form of [`recv`](Self::recv) for event loops of one's own: while it is pending, the context's waker is woken when there is
    /// payload. That of the latest call counts.
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<Received>> {
        let received = ready!(self.queue.poll_recv(context));
        let taken = received.as_ref().map_or(0, |received| received.payload.len());
        self.shared.waiting.fetch_sub(taken, Ordering::Relaxed);
        Poll::Ready(received)
    }

    /// Packets whose payload was not taken in time: it was dropped.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// What is known of the session, told with every report to its sender. Closed when the session is over, or
    /// nobody is left to take its payload.
    pub fn measurements(&self) -> watch::Receiver<Reception> {
        self.measurements.clone()
    }

    /// Why it is over; `None` while it is not, and where the receiver failed.
    pub fn end(&self) -> Option<End> {
        self.shared.end.get().copied()
    }
}

/// What both ends of a session's queue know.
#[derive(Debug, Default)]
struct Shared {
    /// Bytes in the queue.
    waiting: AtomicUsize,
    dropped: AtomicU64,
    end: OnceLock<End>,
}

/// Carries payload from the server's thread into queues, and waits for nobody.
#[derive(Debug)]
struct Porter {
    runtime: Handle,
    door: mpsc::Sender<Incoming>,
    unaccepted: Arc<AtomicU64>,
    /// By number, those whose payload somebody may still take.
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
    /// Puts payload into the queue or drops it. False where nobody is left to take any.
    fn deliver(&mut self, at: Time, missing: u64, payload: &[u8]) -> bool {
        self.missing = self.missing.saturating_add(missing);
        self.reception.missing = self.reception.missing.saturating_add(missing);
        let waiting = self.shared.waiting.load(Ordering::Relaxed);
        match self.queue.try_reserve() {
            Err(mpsc::error::TrySendError::Closed(())) => return false,
            Ok(place) if waiting.saturating_add(payload.len()) <= Incoming::MOST => {
                // Counted before it can be taken.
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
            // There is nothing to take.
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
            // It ends once.
            let _ = delivery.shared.end.set(why);
            delivery.publisher.tell(delivery.reception);
        }
    }
}
