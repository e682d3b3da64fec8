//! A server: one socket that receives many sessions, over one path each or over several. It also sends media in
//! sessions whose peer requests it.

#[cfg(feature = "fuzz")]
mod bench;
#[cfg(any(test, feature = "fuzz"))]
mod caller;
mod key_frames;
mod live;
mod reverse;

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use equipoise::measure::ClockMap;
use equipoise::units::{Rate, Size, Span};
use equipoise_session::feedback::Format;
use equipoise_session::rtp::{Clocks, Payload, ReceiverConfig, ReorderConfig};
use equipoise_session::{DropReason, Event, Input, Output, PathId, Transmit};

use live::{Half, Held, Live, receiving};

use crate::batch::Batch;
use crate::secure::Role;
use crate::secure::door::{Door, Visit};
use crate::secure::message::{Open, is_message};
use crate::secure::protection::{Protection, source_of};
use crate::secure::{Key, Keys, Refusal, random};
use crate::socket::wait_any;
use crate::thread::{STOP_CHECK, Worker};
use crate::{HostStats, NetError, Received, Socket, Time};

#[cfg(feature = "fuzz")]
pub use bench::ServerBench;
pub use key_frames::KeyFrames;

/// Configuration of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The key that both hosts share; with `None`, the server accepts only sessions that anybody can read and forge.
    pub key: Option<Key>,
    /// How payload is put in order before it is delivered.
    pub reorder: ReorderConfig,
    /// Whether the server asks the sender to repeat missing packets that can still arrive within
    /// [`ReorderConfig::hold`]. It does so only in sessions over one path, and not for generated media.
    pub repairs: bool,
    /// Maximum number of sessions at a time; a session takes up to 0.5 MB of memory.
    pub most_sessions: usize,
    /// How long a session may be silent before the server ends it.
    pub idle: Span,
    /// Canonical name of the receiver (RFC 3550, Sec. 6.5.1).
    pub cname: String,
    /// The highest total rate of the media that it sends in sessions whose peers request media
    /// ([`fetch`](crate::fetch())); [`Rate::ZERO`] refuses such sessions.
    pub reverse_limit: Rate,
}

impl ServerConfig {
    /// A server with this key, or without security for `None`. It receives and does not send.
    pub fn new(key: Option<Key>) -> Self {
        let (reorder, cname) = (ReorderConfig::default(), "receiver@equipoise".to_owned());
        let (most_sessions, idle) = (1000, Span::from_secs(30));
        Self { key, reorder, repairs: false, most_sessions, idle, cname, reverse_limit: Rate::ZERO }
    }

    /// Configuration of the receiving end of a session of generated media: `ssrc` is its own SSRC.
    fn receiver(&self, ssrc: u32, sender_ssrc: u32) -> ReceiverConfig {
        let overhead = if self.key.is_some() { Protection::OVERHEAD } else { 0 };
        ReceiverConfig {
            clocks: Clocks::Apart,
            reorder: self.reorder,
            repairs: self.repairs,
            overhead: Size::from_bytes(overhead),
            ..ReceiverConfig::new(ssrc, self.cname.clone(), sender_ssrc, ClockMap::SYNCHRONISED, u64::from(ssrc))
        }
    }
}

/// A session at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// Number of the session at this server, counted from 0.
    pub number: u64,
    /// The peer's address; if there are several paths, the address of the first path.
    pub peer: SocketAddr,
    /// SSRC of the peer's packets.
    pub ssrc: u32,
    /// What media packets carry.
    pub payload: Payload,
    /// Whether the session may have several paths.
    pub is_multipath: bool,
    /// Whether the peer requested media: then the server sends, and the peer reports.
    pub is_sent_to: bool,
}

/// Why a session has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The peer said goodbye.
    Goodbye,
    /// The peer fell silent.
    Silence,
    /// The server was stopped.
    Stopped,
}

/// Observes the sessions of a server, on the server's thread.
pub trait SessionObserver {
    /// A session was opened.
    fn on_open(&mut self, _now: Time, _session: &Session) {}
    /// A session emitted an event.
    fn on_event(&mut self, _now: Time, _session: &Session, _event: &Event) {}
    /// A session of several paths emitted an event on one of them, with the sender's path number. By default the path
    /// is ignored and [`on_event`](Self::on_event) is called.
    fn on_path_event(&mut self, now: Time, session: &Session, _path: PathId, event: &Event) {
        self.on_event(now, session, event);
    }
    /// A session delivers payload, in order; `missing` is the number of packets lost before it.
    fn on_payload(&mut self, _now: Time, _session: &Session, _missing: u64, _payload: &[u8]) {}
    /// A session has ended.
    fn on_end(&mut self, _now: Time, _session: &Session, _why: End) {}
    /// A datagram was dropped: it belongs to no session or is invalid.
    fn on_ignored(&mut self, _now: Time, _reason: DropReason) {}
}

/// A server that runs on its own thread. It is asked to stop, at the latest, when this value is dropped.
#[derive(Debug)]
pub struct Server<V> {
    worker: Worker<Result<(V, HostStats), NetError>>,
    address: SocketAddr,
    key_frames: KeyFrames,
}

impl<V: SessionObserver + Send + 'static> Server<V> {
    /// Starts to receive at `socket`.
    ///
    /// # Errors
    /// [`NetError::Session`] if the canonical name is too long, [`NetError::Spawn`] or [`NetError::Wait`] if the system
    /// cannot start a thread or create an event descriptor.
    pub fn start(socket: Socket, config: ServerConfig, visitor: V) -> Result<Self, NetError> {
        let address = socket.address();
        // An invalid configuration is reported now, not when the first session opens.
        receiving(config.receiver(0, 0), false)?;
        let key_frames = KeyFrames::new()?;
        let (state, wanted) = (State::new(socket, config, visitor), key_frames.clone());
        Ok(Self { worker: Worker::spawn("server", move |stop| state.run(&wanted, stop))?, address, key_frames })
    }
}

impl<V> Server<V> {
    /// The address at which it receives.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Handle that requests key frames from senders, from any thread.
    pub const fn key_frames(&self) -> &KeyFrames {
        &self.key_frames
    }

    /// Whether it has ended, for any reason.
    pub fn is_finished(&self) -> bool {
        self.worker.is_finished()
    }

    /// Says goodbye to all sessions and stops.
    ///
    /// # Errors
    /// The error that ended the server early, if any.
    pub fn stop(self) -> Result<(V, HostStats), NetError>
    where
        V: Send + 'static,
    {
        self.worker.request_stop();
        self.worker.join()?
    }
}

/// Time between two checks for silent sessions.
const SWEEP: Span = Span::from_secs(1);
/// How long a session may wait for its first packet. Our choice: sessions that are opened and never used are soon
/// removed.
const FIRST_PACKET: Span = Span::from_secs(5);

struct State<V> {
    socket: Socket,
    config: ServerConfig,
    visitor: V,
    door: Door,
    /// Open sessions by SSRC.
    live: HashMap<u32, Live>,
    timers: BTreeSet<(Time, u32)>,
    opened: u64,
    foreign: u64,
    next_sweep: Time,
    plain: Vec<u8>,
    whole: Vec<u8>,
    wire: Vec<u8>,
}

impl<V: SessionObserver> State<V> {
    fn new(socket: Socket, config: ServerConfig, visitor: V) -> Self {
        let next_sweep = socket.clock().now() + SWEEP;
        Self {
            socket,
            door: Door::new(config.key.clone()),
            config,
            visitor,
            live: HashMap::new(),
            timers: BTreeSet::new(),
            opened: 0,
            foreign: 0,
            next_sweep,
            plain: Vec::new(),
            whole: Vec::new(),
            wire: Vec::new(),
        }
    }

    fn run(mut self, key_frames: &KeyFrames, stop: &AtomicBool) -> Result<(V, HostStats), NetError> {
        let mut batch = Batch::new();
        while !stop.load(Ordering::Relaxed) {
            self.socket.recv_batch(&mut batch)?;
            for (received, datagram) in batch.datagrams() {
                self.on_datagram(received, datagram)?;
            }
            self.ring(self.socket.clock().now());
            if batch.received.len() == Batch::MOST {
                // More datagrams probably wait. A flood of them must not delay key frame requests.
                self.ask(key_frames);
                continue;
            }
            let check = self.socket.clock().now() + STOP_CHECK;
            let until = self.timers.first().map_or(check, |(at, _)| check.min(*at));
            let until = self.door.wake().map_or(until, |at| until.min(at));
            let readers = [self.socket.as_fd(), key_frames.wakeup()];
            if wait_any(readers.into_iter(), self.socket.clock(), until)? & 0b10 != 0 {
                self.ask(key_frames);
            }
        }
        let sources: Vec<u32> = self.live.keys().copied().collect();
        for ssrc in sources {
            self.step(self.socket.clock().now(), ssrc, Input::Stop);
            self.end(ssrc, End::Stopped);
        }
        let (socket, timestamps) = (self.socket.stats(), self.socket.timestamps());
        Ok((self.visitor, HostStats { foreign: self.foreign + socket.unanswerable, socket, timestamps }))
    }

    /// Passes the applications' requests for key frames to the sessions.
    fn ask(&mut self, key_frames: &KeyFrames) {
        let now = self.socket.clock().now();
        for (ssrc, request) in key_frames.take() {
            self.step(now, ssrc, Input::KeyFrame(request));
        }
    }

    fn on_datagram(&mut self, received: Received, datagram: &[u8]) -> Result<(), NetError> {
        let Received { at: now, from, ecn, .. } = received;
        if is_message(datagram) {
            return self.on_message(now, from, datagram);
        }
        let Some(ssrc) = source_of(datagram) else {
            self.ignore(now, DropReason::Malformed);
            return Ok(());
        };
        let Some(live) = self.live.get_mut(&ssrc) else {
            self.ignore(now, DropReason::Foreign);
            return Ok(());
        };
        if self.config.key.is_none() && live.path_from(from).is_none() {
            self.ignore(now, DropReason::Foreign);
            return Ok(());
        }
        let mut plain = std::mem::take(&mut self.plain);
        if live.unprotect(now, datagram, &mut plain) {
            // The peer's address may change. A sender that has the keys is the peer.
            match live.path_of(now, from) {
                Some(path) => {
                    (live.heard, live.has_media) = (now, true);
                    let number = live.number;
                    self.door.on_proved(&number);
                    self.step(now, ssrc, Input::Datagram { path, datagram: &plain, ecn });
                }
                None => self.ignore(now, DropReason::Foreign),
            }
        } else {
            self.foreign += 1;
            self.visitor.on_event(now, &live.session, &Event::Ignored(DropReason::Forged));
        }
        self.plain = plain;
        Ok(())
    }

    fn ignore(&mut self, now: Time, reason: DropReason) {
        self.foreign += 1;
        self.visitor.on_ignored(now, reason);
    }

    fn on_message(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) -> Result<(), NetError> {
        let Self { door, live, config, .. } = self;
        let room = config.most_sessions.saturating_sub(live.len());
        match door.handle(now, from, datagram, |ssrc| live.get(&ssrc).map(Live::known), room) {
            Visit::Nobody => {}
            Visit::Malformed => self.ignore(now, DropReason::Malformed),
            Visit::Plain(open) => self.open_plain(now, from, &open)?,
            Visit::Joins(ssrc) => {
                if let Some(live) = live.get_mut(&ssrc) {
                    live.comes_from(now, from);
                    door.accept(from, live.number, live.own_ssrc, live.keys.join.as_ref());
                }
            }
            Visit::Opened { open, from, keys } => self.open_secure(now, from, &open, &keys)?,
        }
        self.say();
        Ok(())
    }

    /// Sends the messages that were queued while sessions were opened.
    fn say(&mut self) {
        while let Some((to, message)) = self.door.poll() {
            self.socket.answer(to, &Transmit::datagram(&message));
        }
    }

    /// Opens a session without keys, or adds a path to an open session.
    fn open_plain(&mut self, now: Time, from: SocketAddr, open: &Open) -> Result<(), NetError> {
        let Some(live) = self.live.get_mut(&open.ssrc) else {
            match self.make(now, from, open, Held { protection: Protection::None, join: None })? {
                Ok(own) => self.door.accept(from, open.number, own, None),
                Err(reason) => self.door.refuse(from, open.number, reason),
            }
            return Ok(());
        };
        // The sender uses a further path, missed the answer, or has received nothing for a while. Only the sender, and
        // those who can read its packets, know the number.
        if live.number != open.number && live.path_from(from).is_none() {
            self.door.refuse(from, open.number, Refusal::SourceInUse);
            return Ok(());
        }
        if live.session.is_multipath || live.number != open.number {
            live.comes_from(now, from);
        }
        (live.number, live.heard) = (open.number, now);
        self.door.accept(from, live.number, live.own_ssrc, None);
        Ok(())
    }

    /// A handshake is complete: opens the session, or keeps the new keys ready if it is already open.
    fn open_secure(&mut self, now: Time, from: SocketAddr, open: &Open, keys: &Keys) -> Result<(), NetError> {
        let join = keys.join();
        let held = Held { protection: Protection::new(keys, Role::Server), join: Some(join.clone()) };
        let own = match self.live.get_mut(&open.ssrc) {
            // Another sender completed its handshake for this SSRC first.
            Some(live) if live.owner != open.fingerprint => {
                self.door.refuse(from, open.number, Refusal::SourceInUse);
                return Ok(());
            }
            Some(live) => {
                live.next = Some((open.number, held));
                if live.session.is_sent_to {
                    // The cookie and the handshake have proved this address.
                    live.comes_from(now, from);
                }
                Ok(live.own_ssrc)
            }
            None => self.make(now, from, open, held)?,
        };
        match own {
            Ok(own) => self.door.accept(from, open.number, own, Some(&join)),
            Err(reason) => self.door.refuse(from, open.number, reason),
        }
        Ok(())
    }

    /// Opens a session. Returns the SSRC of this end's packets, or the reason for a refusal.
    fn make(&mut self, now: Time, from: SocketAddr, open: &Open, keys: Held) -> Result<Result<u32, Refusal>, NetError> {
        let own_ssrc = u32::from_be_bytes(random());
        let Open { payload, reporting, several: is_multipath, wanted, .. } = *open;
        let is_transport_wide = reporting.is_some_and(|reporting| reporting.format == Format::TransportWide);
        let half = match &wanted {
            // Packets of a multipath session have no transport-wide sequence numbers.
            None if is_multipath && is_transport_wide => return Ok(Err(Refusal::Impossible)),
            None => {
                let config = ReceiverConfig { payload, reporting, ..self.config.receiver(own_ssrc, open.ssrc) };
                Half::Receives(receiving(config, is_multipath)?)
            }
            Some(wanted) => match self.sending(now, from, own_ssrc, (wanted, reporting)) {
                Ok(half) => half,
                Err(reason) => return Ok(Err(reason)),
            },
        };
        let is_sent_to = wanted.is_some();
        let session = Session { number: self.opened, peer: from, ssrc: open.ssrc, payload, is_multipath, is_sent_to };
        let live = Live {
            session,
            number: open.number,
            owner: open.fingerprint,
            keys,
            next: None,
            earlier: None,
            half,
            own_ssrc,
            paths: vec![(from, now)],
            wake: is_sent_to.then_some(now),
            heard: now,
            has_media: false,
        };
        self.opened += 1;
        self.visitor.on_open(now, &session);
        if is_sent_to {
            // The server sends without waiting for a packet from the peer, but the Accept message is sent first.
            self.timers.insert((now, open.ssrc));
        }
        self.live.insert(open.ssrc, live);
        Ok(Ok(own_ssrc))
    }

    /// Handles all expired timers, and ends silent sessions.
    fn ring(&mut self, now: Time) {
        self.door.on_timer(now);
        self.say();
        while let Some((_, ssrc)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            self.step(now, ssrc, Input::Timer);
        }
        if now >= self.next_sweep {
            self.next_sweep = now + SWEEP;
            let idle = self.config.idle;
            let patience = |live: &Live| if live.has_media { idle } else { idle.min(FIRST_PACKET) };
            let silent = self.live.iter().filter(|(_, live)| now - live.heard > patience(live));
            let silent: Vec<u32> = silent.map(|(ssrc, _)| *ssrc).collect();
            for ssrc in silent {
                self.end(ssrc, End::Silence);
            }
        }
    }

    /// One step of a session: handles an input, then all outputs of the endpoint.
    fn step(&mut self, now: Time, ssrc: u32, input: Input<'_>) {
        let Some(live) = self.live.get_mut(&ssrc) else { return };
        live.half.handle(now, input);
        let mut ended = false;
        while let Some(output) = live.half.poll() {
            match output {
                Output::Event { path, event } => {
                    ended |= matches!(event, Event::Ended { by_peer: true });
                    match path {
                        Some(path) => self.visitor.on_path_event(now, &live.session, path, &event),
                        None => self.visitor.on_event(now, &live.session, &event),
                    }
                }
                Output::Payload { missing, payload } => {
                    self.visitor.on_payload(now, &live.session, missing, payload);
                }
                Output::Transmit { path, transmit } => {
                    self.whole.clear();
                    self.whole.extend_from_slice(transmit.head);
                    self.whole.resize(transmit.len(), 0);
                    if let Some((peer, _)) = live.paths.get(usize::from(path.0))
                        && live.keys.protection.protect(&self.whole, &mut self.wire)
                    {
                        self.socket.answer(*peer, &Transmit { head: &self.wire, media: 0, ..transmit });
                    }
                }
            }
        }
        let wake = live.half.wake();
        if wake != live.wake {
            live.wake.map(|at| self.timers.remove(&(at, ssrc)));
            live.wake = wake;
            wake.map(|at| self.timers.insert((at, ssrc)));
        }
        if ended {
            self.end(ssrc, End::Goodbye);
        }
    }

    fn end(&mut self, ssrc: u32, why: End) {
        if let Some(live) = self.live.remove(&ssrc) {
            live.wake.map(|at| self.timers.remove(&(at, ssrc)));
            self.visitor.on_end(self.socket.clock().now(), &live.session, why);
        }
    }
}

#[cfg(test)]
mod tests;
