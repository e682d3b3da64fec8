//! One socket that receives many sessions, over one path each or over several, and sends in those that were opened for it.

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

/// What a server is made of.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// What both hosts know; `None` takes sessions that anybody may read and forge, and no others.
    pub key: Option<Key>,
    /// How payload is given out.
    pub reorder: ReorderConfig,
    /// Whether packets that are missing are asked for, if they can still come within [`ReorderConfig::hold`]; of sessions over one path,
    /// and of no generated media.
    pub repairs: bool,
    /// Sessions at once; a session takes up to 0.5 MB.
    pub most_sessions: usize,
    /// How long a session may be silent before it is given up.
    pub idle: Span,
    /// Canonical name of the receiver (RFC 3550, Sec. 6.5.1).
    pub cname: String,
    /// The highest rate at which it sends, in all, to those who open sessions to be sent to ([`fetch`](crate::fetch()));
    /// [`Rate::ZERO`] refuses such sessions.
    pub reverse_limit: Rate,
}

impl ServerConfig {
    /// A server with this key, or without security, that receives and does not send.
    pub fn new(key: Option<Key>) -> Self {
        let (reorder, cname) = (ReorderConfig::default(), "receiver@equipoise".to_owned());
        let (most_sessions, idle) = (1000, Span::from_secs(30));
        Self { key, reorder, repairs: false, most_sessions, idle, cname, reverse_limit: Rate::ZERO }
    }

    /// The receiving end of a session of generated media: its own source, and the sender's.
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
    /// Counts the server's sessions, from 0.
    pub number: u64,
    /// Where it comes from; where one of its paths does, if it has several.
    pub peer: SocketAddr,
    /// The source of the peer's packets.
    pub ssrc: u32,
    /// What media packets carry.
    pub payload: Payload,
    /// It comes on several paths.
    pub is_multipath: bool,
    /// The peer wanted to be sent to: the server sends, and the peer reports.
    pub is_sent_to: bool,
}

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The peer said goodbye.
    Goodbye,
    /// The peer fell silent.
    Silence,
    /// The server was stopped.
    Stopped,
}

/// Sees what a server's sessions do, on the server's thread.
pub trait SessionObserver {
    /// A session is open.
    fn on_open(&mut self, _now: Time, _session: &Session) {}
    /// A session did or saw something.
    fn on_event(&mut self, _now: Time, _session: &Session, _event: &Event) {}
    /// A session of several paths did or saw something on one of them, by the sender's number. Where nobody asks which one, it
    /// is an event like any other.
    fn on_path_event(&mut self, now: Time, session: &Session, _path: PathId, event: &Event) {
        self.on_event(now, session, event);
    }
    /// A session delivers payload, in order; `missing` packets before it are missing.
    fn on_payload(&mut self, _now: Time, _session: &Session, _missing: u64, _payload: &[u8]) {}
    /// A session is over.
    fn on_end(&mut self, _now: Time, _session: &Session, _why: End) {}
    /// A datagram belongs to no session, or is not what it seems.
    fn on_ignored(&mut self, _now: Time, _reason: DropReason) {}
}

/// A server on its thread. It is told to stop, at the latest, when this is dropped.
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
    /// [`NetError::Session`] if the canonical name is too long, [`NetError::Spawn`] and [`NetError::Wait`] if there is no thread or event
    /// descriptor to be had.
    pub fn start(socket: Socket, config: ServerConfig, visitor: V) -> Result<Self, NetError> {
        let address = socket.address();
        // Found now rather than with the first session.
        receiving(config.receiver(0, 0), false)?;
        let key_frames = KeyFrames::new()?;
        let (state, wanted) = (State::new(socket, config, visitor), key_frames.clone());
        Ok(Self { worker: Worker::spawn("server", move |stop| state.run(&wanted, stop))?, address, key_frames })
    }
}

impl<V> Server<V> {
    /// Where it receives.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Asks senders for key frames, from any thread.
    pub const fn key_frames(&self) -> &KeyFrames {
        &self.key_frames
    }

    /// Whether it has ended, by itself or not.
    pub fn is_finished(&self) -> bool {
        self.worker.is_finished()
    }

    /// Says goodbye to all sessions and stops.
    ///
    /// # Errors
    /// What made the server fail, if something did.
    pub fn stop(self) -> Result<(V, HostStats), NetError>
    where
        V: Send + 'static,
    {
        self.worker.request_stop();
        self.worker.join()?
    }
}

/// How often silent sessions are looked for.
const SWEEP: Span = Span::from_secs(1);
/// How long a session may take to its first packet. Ours: an address that opens sessions and leaves them holds none for long.
const FIRST_PACKET: Span = Span::from_secs(5);

struct State<V> {
    socket: Socket,
    config: ServerConfig,
    visitor: V,
    door: Door,
    /// By source.
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
                // There is probably more; a flood keeps nobody from asking.
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

    /// Tells sessions what their applications want.
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
            // The peer's address may change under it; who has the keys is the peer.
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

    /// Sends what the door wants said.
    fn say(&mut self) {
        while let Some((to, message)) = self.door.poll() {
            self.socket.answer(to, &Transmit::datagram(&message));
        }
    }

    /// Makes a session without keys, or lets a further path in.
    fn open_plain(&mut self, now: Time, from: SocketAddr, open: &Open) -> Result<(), NetError> {
        let Some(live) = self.live.get_mut(&open.ssrc) else {
            match self.make(now, from, open, Held { protection: Protection::None, join: None })? {
                Ok(own) => self.door.accept(from, open.number, own, None),
                Err(reason) => self.door.refuse(from, open.number, reason),
            }
            return Ok(());
        };
        // A further path, or the answer was lost: only the sender knows the number, or who can read all that it sends. Or the sender
        // has not heard from us for a while.
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

    /// A handshake has ended: makes the session, or holds its new keys ready where it lives already.
    fn open_secure(&mut self, now: Time, from: SocketAddr, open: &Open, keys: &Keys) -> Result<(), NetError> {
        let join = keys.join();
        let held = Held { protection: Protection::new(keys, Role::Server), join: Some(join.clone()) };
        let own = match self.live.get_mut(&open.ssrc) {
            // While the handshake went on, somebody else's has ended.
            Some(live) if live.owner != open.fingerprint => {
                self.door.refuse(from, open.number, Refusal::SourceInUse);
                return Ok(());
            }
            Some(live) => {
                live.next = Some((open.number, held));
                if live.session.is_sent_to {
                    // The cookie and the handshake went there and came back.
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

    /// Makes a session. Gives the source of this end's packets, or why there is none.
    fn make(&mut self, now: Time, from: SocketAddr, open: &Open, keys: Held) -> Result<Result<u32, Refusal>, NetError> {
        let own_ssrc = u32::from_be_bytes(random());
        let Open { payload, reporting, several: is_multipath, wanted, .. } = *open;
        let is_transport_wide = reporting.is_some_and(|reporting| reporting.format == Format::TransportWide);
        let half = match &wanted {
            // Packets of several paths have no such numbers.
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
            // It waits for no packet of the peer's to begin, but the word that the session is open goes first.
            self.timers.insert((now, open.ssrc));
        }
        self.live.insert(open.ssrc, live);
        Ok(Ok(own_ssrc))
    }

    /// Rings what is due, and gives up who is silent.
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

    /// One turn of a session.
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
