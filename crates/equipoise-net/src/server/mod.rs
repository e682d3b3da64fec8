//! A server: one socket that receives many sessions, each over one path or several paths. If peers request it, the
//! server also sends media.

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
    /// The key that both hosts share. With `None`, the server accepts only unencrypted sessions, whose packets anybody
    /// can read and forge.
    pub key: Option<Key>,
    /// How received payload is put in order before it is delivered.
    pub reorder: ReorderConfig,
    /// Whether the server requests the retransmission of missing packets. A packet is requested only if the
    /// retransmission can still arrive within [`ReorderConfig::hold`]. Retransmissions are not possible in sessions
    /// over several paths or of generated media.
    pub repairs: bool,
    /// Maximum number of simultaneous sessions. A session needs up to 0.5 MB of memory.
    pub most_sessions: usize,
    /// If no packet arrives in a session for this time, the server ends the session.
    pub idle: Span,
    /// Canonical name (CNAME) of the server (RFC 3550, Sec. 6.5.1).
    pub cname: String,
    /// Maximum total rate of the media that the server sends in sessions whose peers request media
    /// ([`fetch`](crate::fetch())). With [`Rate::ZERO`], the server refuses such sessions.
    pub reverse_limit: Rate,
}

impl ServerConfig {
    /// A server with this key; with `None`, sessions are not encrypted. The server only receives, and sends no media.
    pub fn new(key: Option<Key>) -> Self {
        let (reorder, cname) = (ReorderConfig::default(), "receiver@equipoise".to_owned());
        let (most_sessions, idle) = (1000, Span::from_secs(30));
        Self { key, reorder, repairs: false, most_sessions, idle, cname, reverse_limit: Rate::ZERO }
    }

    /// Configuration of a session's receiver. `ssrc` is the receiver's SSRC.
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
    /// Number of the session on this server, counted from 0.
    pub number: u64,
    /// The peer's address. If the session has several paths, the address of the first path.
    pub peer: SocketAddr,
    /// SSRC of the media or report packets that the peer sends.
    pub ssrc: u32,
    /// The kind of payload in media packets.
    pub payload: Payload,
    /// Whether the session may have several paths.
    pub is_multipath: bool,
    /// Whether the peer requested media. If so, the server sends media, and the peer sends reports.
    pub is_sent_to: bool,
}

/// Why a session has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The peer ended the session and told the server so.
    Goodbye,
    /// No packets arrived from the peer for too long.
    Silence,
    /// The server was stopped.
    Stopped,
}

/// Observes the sessions of a server. All calls are on the server's thread.
pub trait SessionObserver {
    /// Called when a session was opened.
    fn on_open(&mut self, _now: Time, _session: &Session) {}
    /// Called when a session has emitted an event.
    fn on_event(&mut self, _now: Time, _session: &Session, _event: &Event) {}
    /// Called when a multipath session has emitted an event on one of its paths. For received media and sent reports,
    /// `path` is the sender's number of this path; for other events, `path` may be the server's own number. The default
    /// implementation calls [`on_event`](Self::on_event) and ignores the path.
    fn on_path_event(&mut self, now: Time, session: &Session, _path: PathId, event: &Event) {
        self.on_event(now, session, event);
    }
    /// Called when a session delivers payload, by default in sending order. `missing` is the number of packets lost
    /// directly before this payload.
    fn on_payload(&mut self, _now: Time, _session: &Session, _missing: u64, _payload: &[u8]) {}
    /// Called when a session has ended.
    fn on_end(&mut self, _now: Time, _session: &Session, _why: End) {}
    /// Called when a datagram was dropped, because it belongs to no session or is invalid.
    fn on_ignored(&mut self, _now: Time, _reason: DropReason) {}
}

/// A server that runs on its own thread. Dropping this value stops the server and waits until the thread has ended.
#[derive(Debug)]
pub struct Server<V> {
    worker: Worker<Result<(V, HostStats), NetError>>,
    address: SocketAddr,
    key_frames: KeyFrames,
}

impl<V: SessionObserver + Send + 'static> Server<V> {
    /// Starts a server that receives at `socket`.
    ///
    /// # Errors
    /// [`NetError::Session`] if the canonical name is too long, [`NetError::Spawn`] if the system cannot start a
    /// thread, and [`NetError::Wait`] if the system cannot create an event descriptor.
    pub fn start(socket: Socket, config: ServerConfig, visitor: V) -> Result<Self, NetError> {
        let address = socket.address();
        // Without this check, an error in the configuration would be reported only when the first session opens.
        receiving(config.receiver(0, 0), false)?;
        let key_frames = KeyFrames::new()?;
        let (state, wanted) = (State::new(socket, config, visitor), key_frames.clone());
        Ok(Self { worker: Worker::spawn("server", move |stop| state.run(&wanted, stop))?, address, key_frames })
    }
}

impl<V> Server<V> {
    /// The address at which the server receives.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// A handle that requests key frames from senders.
    pub const fn key_frames(&self) -> &KeyFrames {
        &self.key_frames
    }

    /// Whether the server has ended, for any reason.
    pub fn is_finished(&self) -> bool {
        self.worker.is_finished()
    }

    /// Ends all sessions, notifies their peers, and stops the server.
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

/// Time between two checks for sessions in which no packets arrive.
const SWEEP: Span = Span::from_secs(1);
/// How long a session may wait for its first packet. Our choice: sessions that are opened but never used are soon
/// removed.
const FIRST_PACKET: Span = Span::from_secs(5);

struct State<V> {
    socket: Socket,
    config: ServerConfig,
    visitor: V,
    door: Door,
    /// The open sessions by the peer's SSRC.
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
                // Probably more datagrams wait. Key frame requests are passed on now, so that a flood of datagrams
                // cannot delay them.
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

    /// Passes the waiting requests for key frames to the sessions.
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
            // The packet is authentic. Its source may be a new address of the peer.
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

    /// Sends all messages that answer requests to open a session.
    fn say(&mut self) {
        while let Some((to, message)) = self.door.poll() {
            self.socket.answer(to, &Transmit::datagram(&message));
        }
    }

    /// Opens a session without encryption, or adds a path to an open session without encryption.
    fn open_plain(&mut self, now: Time, from: SocketAddr, open: &Open) -> Result<(), NetError> {
        let Some(live) = self.live.get_mut(&open.ssrc) else {
            match self.make(now, from, open, Held { protection: Protection::None, join: None })? {
                Ok(own) => self.door.accept(from, open.number, own, None),
                Err(reason) => self.door.refuse(from, open.number, reason),
            }
            return Ok(());
        };
        // The session is already open. The sender may use a further path, may have missed the answer, or may have
        // received nothing for some time. Only the sender, and those who can read its packets, know `live.number`. A
        // request with another number from a new address may come from another host, so it is refused.
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

    /// Handles a completed handshake: opens the session. If the session is already open, its keys are replaced when the
    /// first packet with the new keys arrives.
    fn open_secure(&mut self, now: Time, from: SocketAddr, open: &Open, keys: &Keys) -> Result<(), NetError> {
        let join = keys.join();
        let held = Held { protection: Protection::new(keys, Role::Server), join: Some(join.clone()) };
        let own = match self.live.get_mut(&open.ssrc) {
            // Another sender has completed its handshake for the same SSRC earlier.
            Some(live) if live.owner != open.fingerprint => {
                self.door.refuse(from, open.number, Refusal::SourceInUse);
                return Ok(());
            }
            Some(live) => {
                live.next = Some((open.number, held));
                if live.session.is_sent_to {
                    // The cookie and the handshake have verified this address.
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

    /// Creates a session. Returns the SSRC of the server's packets, or the reason of a refusal.
    fn make(&mut self, now: Time, from: SocketAddr, open: &Open, keys: Held) -> Result<Result<u32, Refusal>, NetError> {
        let own_ssrc = u32::from_be_bytes(random());
        let Open { payload, reporting, several: is_multipath, wanted, .. } = *open;
        let is_transport_wide = reporting.is_some_and(|reporting| reporting.format == Format::TransportWide);
        let half = match &wanted {
            // The packets of a multipath session have no transport-wide sequence numbers, so transport-wide feedback is
            // impossible.
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
            // The server sends media without waiting for a packet from the peer. The Accept message precedes the media,
            // because it is sent before timers are handled.
            self.timers.insert((now, open.ssrc));
        }
        self.live.insert(open.ssrc, live);
        Ok(Ok(own_ssrc))
    }

    /// Handles all expired timers, and ends sessions in which no packets have arrived for too long.
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

    /// Passes an input to the endpoint of the session `ssrc`, and then performs all outputs of the endpoint.
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
