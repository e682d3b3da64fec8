use std::net::SocketAddr;

use equipoise::units::Span;
use equipoise_session::wire::is_rtcp;
use equipoise_session::{DropReason, Event, PathId, Transmit};

use super::{Arrival, Links, Transport};
use crate::datagram::MAX_PAYLOAD;
use crate::secure::Refusal;
use crate::secure::Role;
use crate::secure::message::{LENGTH, VERSION, is_message};
use crate::secure::opening::{Asked, Opening, Told};
use crate::secure::protection::{Protection, source_of};
use crate::socket::Sent;
use crate::{NetError, Received, Socket, Time};

/// The endpoint that opened a session, over one path or several paths.
///
/// Usually this endpoint sends. If no reports arrive on any path, it requests the session again. Therefore the session
/// does not end if the receiver was restarted or an address has changed. If no reports arrive on one of several paths,
/// this endpoint requests again to join the session on this path.
///
/// If the server sends and no packets arrive, this endpoint requests the session again. If this endpoint's address has
/// changed, the server learns the new address from this request. A restart of the server ends the session, because the
/// server would send a different stream.
pub(crate) struct Client {
    links: Links,
    peer: SocketAddr,
    is_secure: bool,
    opening: Opening,
    /// The paths on which no reports arrive.
    silent: Vec<PathId>,
    /// If the server sends: when the last packet arrived, and when the session was last requested again. `None` if this
    /// endpoint sends.
    listening: Option<Listening>,
    protection: Protection,
    /// The previous keys. The peer may use them until it has received a packet with the new keys.
    earlier: Option<Protection>,
    peer_ssrc: u32,
    buffer: Vec<u8>,
    plain: Vec<u8>,
    whole: Vec<u8>,
    wire: Vec<u8>,
    /// The last report that was sent. At the end of the session, this is the BYE.
    last_report: Vec<u8>,
}

/// The state of a client that receives media from the server. `heard` is the time of the last arrival from the server.
#[derive(Clone, Copy, Debug)]
struct Listening {
    heard: Time,
    /// When the session was last requested again.
    asked: Time,
    /// How long the server may send nothing before the session fails.
    idle: Span,
}

/// If the server sends nothing for this time, the session is requested again. Our choice: twice the default report
/// interval.
const SILENT: Span = Span::from_secs(2);

/// Number of times that the BYE is sent at the end of a session; `FAREWELL_PAUSE` is the time from one BYE to the next.
/// Our choice: the last BYE follows 60 ms after the first, so a short burst of losses does not affect all of them.
const FAREWELLS: u32 = 3;
const FAREWELL_PAUSE: Span = Span::from_millis(30);

impl Client {
    /// Opens the requested session with `peer`. Waits at most `patience` until the session is open.
    ///
    /// # Errors
    /// [`NetError::NoAnswer`] if no answer opens or refuses the session. [`NetError::Refused`] if the receiver refuses
    /// the session; the refusal need not be authenticated. [`NetError::OtherVersion`] if the receiver uses another
    /// protocol version. The errors of the socket.
    pub(crate) fn open(links: Links, peer: SocketAddr, asked: Asked, patience: Span) -> Result<Self, NetError> {
        let now = links.clock().now();
        let give_up = now + patience;
        let mut client = Self {
            links,
            peer,
            is_secure: asked.key.is_some(),
            opening: Opening::new(asked),
            silent: Vec::new(),
            listening: None,
            protection: Protection::None,
            earlier: None,
            peer_ssrc: 0,
            buffer: vec![0; MAX_PAYLOAD],
            plain: Vec::new(),
            whole: Vec::new(),
            wire: Vec::new(),
            last_report: Vec::new(),
        };
        client.opening.ask_for_session(now, client.links.with_socket());
        loop {
            let now = client.links.clock().now();
            if now >= give_up {
                return Err(client.unanswered(patience));
            }
            client.on_timer(now)?;
            let until = client.wake().unwrap_or(give_up).min(give_up);
            client.links.wait(None, until)?;
            while let Some((path, received)) = client.links.receive(&mut client.buffer)? {
                if let Some(reason) = client.on_message(path, received)? {
                    return Err(NetError::Refused { peer, reason });
                }
                if client.opening.is_open() {
                    return Ok(client);
                }
            }
        }
    }

    /// SSRC of the peer's packets.
    pub(crate) const fn peer_ssrc(&self) -> u32 {
        self.peer_ssrc
    }

    /// Must be called if the server, and not this client, sends the media. The session then fails if nothing arrives
    /// from the server for `idle`.
    pub(crate) fn listen(&mut self, idle: Span) {
        let now = self.links.clock().now();
        self.listening = Some(Listening { heard: now, asked: now, idle });
    }

    /// Requests the session again if the server has sent nothing for some time. Returns an error if the server
    /// has sent nothing for the idle time of the session.
    fn tend_silence(&mut self, now: Time) -> Result<(), NetError> {
        let Some(listening) = &mut self.listening else { return Ok(()) };
        if now - listening.heard >= listening.idle {
            return Err(NetError::Silent { peer: self.peer, waited: listening.idle });
        }
        if now >= listening.next() && self.opening.is_open() {
            listening.asked = now;
            self.opening.ask_for_session(now, self.links.with_socket());
        }
        Ok(())
    }

    /// Returns the error for a session that was neither opened nor refused in time. The error names the first cause
    /// that applies: the kernel refused to send, an unauthenticated message refused the session, a message had another
    /// protocol version, or no answer arrived.
    fn unanswered(&self, patience: Span) -> NetError {
        let (peer, hints) = (self.peer, self.opening.hints());
        match (self.links.refusal(), hints.refusal, hints.version) {
            (Some(source), ..) => NetError::Send { peer, length: LENGTH, source },
            (None, Some(reason), _) => NetError::Refused { peer, reason },
            (None, None, Some(theirs)) => NetError::OtherVersion { peer, theirs, ours: VERSION },
            (None, None, None) => NetError::NoAnswer { peer, waited: patience },
        }
    }

    /// Handles the message in `self.buffer`. Returns the reason if the receiver refuses the session.
    fn on_message(&mut self, path: PathId, received: Received) -> Result<Option<Refusal>, NetError> {
        let (now, is_peer) = (received.at, received.from == self.peer);
        let told = self.opening.handle(now, path, is_peer, &self.buffer[..received.len]);
        match told {
            Told::Nothing => {}
            Told::Refused(reason) => return Ok(Some(reason)),
            Told::Joined(path) => self.use_path(path),
            Told::Opened { path, ssrc, keys } => {
                if let Some(keys) = keys {
                    let new = Protection::new(&keys, Role::Client);
                    let before = std::mem::replace(&mut self.protection, new);
                    self.earlier = matches!(before, Protection::Srtp(_)).then_some(before);
                }
                if self.listening.is_some() && ssrc != self.peer_ssrc {
                    return Err(NetError::StartedAgain { peer: self.peer });
                }
                self.peer_ssrc = ssrc;
                self.silent.clear();
                self.use_path(path);
            }
        }
        self.say()?;
        Ok(None)
    }

    fn use_path(&mut self, path: PathId) {
        self.links.up(path);
        // ICMP errors that arrived before the receiver's answer are outdated, so they are discarded.
        self.links.socket(path).map(Socket::take_unreachable);
    }

    /// Sends the waiting messages of the exchange that opens the session.
    fn say(&mut self) -> Result<(), NetError> {
        while let Some((path, message)) = self.opening.poll() {
            if let Some(socket) = self.links.socket(path) {
                socket.listen_for_errors(self.peer);
                socket.send_to(self.peer, &Transmit::datagram(&message))?;
            }
        }
        Ok(())
    }

    /// Decrypts a datagram and writes its content to `self.plain`. Returns false if the datagram is forged, damaged or
    /// a replay.
    fn unprotect(&mut self, length: usize) -> bool {
        let datagram = &self.buffer[..length];
        if self.protection.unprotect(datagram, self.peer_ssrc, &mut self.plain) {
            // The peer has the new keys, so the previous keys and the handshake are no longer needed.
            self.earlier = None;
            self.opening.on_proved();
            return true;
        }
        let Self { earlier, peer_ssrc, plain, .. } = self;
        earlier.as_mut().is_some_and(|earlier| earlier.unprotect(datagram, *peer_ssrc, plain))
    }

    /// Encrypts a datagram and sends it on a path. If the datagram cannot be encrypted, it is lost.
    fn send_protected(&mut self, path: PathId, transmit: &Transmit<'_>) -> Result<(), NetError> {
        if self.protection.protect(transmit.head, &mut self.wire) {
            return deliver(&mut self.links, path, self.peer, &Transmit { head: &self.wire, ..*transmit });
        }
        Ok(())
    }
}

/// Sends a datagram on a path. If the path cannot be used, media is sent on another path, and reports are lost.
fn deliver(links: &mut Links, path: PathId, peer: SocketAddr, transmit: &Transmit<'_>) -> Result<(), NetError> {
    if let Some(socket) = links.socket(path) {
        if socket.send_to(peer, transmit)? != Sent::NoRoute {
            return Ok(());
        }
        links.lose(path);
    }
    let other = links.in_use().find(|other| *other != path && !is_rtcp(transmit.head));
    match other.and_then(|other| links.socket(other)) {
        Some(socket) => socket.send_to(peer, transmit).map(|_| ()),
        None => Ok(()),
    }
}

impl Listening {
    /// When to request the session again, if no packet arrives before.
    fn next(&self) -> Time {
        self.heard.max(self.asked) + SILENT
    }
}

impl Transport for Client {
    fn links(&self) -> &Links {
        &self.links
    }

    fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }

    fn receive(&mut self) -> Result<Option<Arrival>, NetError> {
        let Some((path, received)) = self.links.receive(&mut self.buffer)? else {
            let at = self.links.clock().now();
            return Ok(self.links.take_unreachable().map(|path| Arrival::Unreachable { path, at }));
        };
        let Received { at, ecn, .. } = received;
        let datagram = &self.buffer[..received.len];
        if is_message(datagram) {
            // A message that refuses the session is ignored while the session runs. If the peer has really ended the
            // session, no more packets arrive from the peer.
            self.on_message(path, received)?;
            return Ok(Some(Arrival::Own));
        }
        if !self.is_secure && received.from != self.peer {
            return Ok(Some(Arrival::Dropped { at, reason: DropReason::Foreign }));
        }
        if source_of(datagram) != Some(self.peer_ssrc) {
            return Ok(Some(Arrival::Dropped { at, reason: DropReason::Foreign }));
        }
        Ok(Some(if self.unprotect(received.len) {
            self.listening.iter_mut().for_each(|listening| listening.heard = at);
            Arrival::Datagram { path, at, ecn }
        } else {
            Arrival::Dropped { at, reason: DropReason::Forged }
        }))
    }

    fn datagram(&self) -> &[u8] {
        &self.plain
    }

    fn send(&mut self, path: PathId, transmit: &Transmit<'_>) -> Result<(), NetError> {
        if is_rtcp(transmit.head) {
            self.last_report.clear();
            self.last_report.extend_from_slice(transmit.head);
        }
        if !self.is_secure {
            return deliver(&mut self.links, path, self.peer, transmit);
        }
        let mut whole = std::mem::take(&mut self.whole);
        whole.clear();
        whole.extend_from_slice(transmit.head);
        whole.resize(transmit.len(), 0);
        let sent = self.send_protected(path, &Transmit { head: &whole, media: 0, ..*transmit });
        self.whole = whole;
        sent
    }

    fn wake(&self) -> Option<Time> {
        let silence = self.listening.map(|listening| listening.next().min(listening.heard + listening.idle));
        self.opening.wake().into_iter().chain(self.links.wake()).chain(silence).min()
    }

    fn on_timer(&mut self, now: Time) -> Result<(), NetError> {
        let Self { links, opening, .. } = self;
        links.look(now, |path| opening.ask_on(now, path));
        opening.on_timer(now);
        self.tend_silence(now)?;
        self.say()
    }

    fn on_event(&mut self, now: Time, path: PathId, event: &Event) {
        match event {
            Event::ReportsMissing => {
                if !self.silent.contains(&path) {
                    self.silent.push(path);
                }
                if self.opening.is_open() && self.links.in_use().all(|path| self.silent.contains(&path)) {
                    self.opening.ask_for_session(now, self.links.with_socket());
                } else if !self.opening.is_asking(path) {
                    self.opening.ask_on(now, path);
                }
            }
            Event::ReportApplied { .. } => self.silent.retain(|silent| *silent != path),
            _ => {}
        }
    }

    fn farewell(&mut self) -> Result<(), NetError> {
        let goodbye = std::mem::take(&mut self.last_report);
        let paths: Vec<PathId> = self.links.in_use().collect();
        for _ in 1..FAREWELLS {
            let clock = self.links.clock();
            clock.sleep_until(clock.now() + FAREWELL_PAUSE);
            for path in &paths {
                self.send_protected(*path, &Transmit::datagram(&goodbye))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use equipoise_session::rtp::Payload;
    use nix::errno::Errno;

    use super::*;
    use crate::socket::every_errno;
    use crate::{Clock, Server, ServerConfig, SessionObserver};

    /// An observer that ignores all events.
    struct Nobody;

    impl SessionObserver for Nobody {}

    fn asked() -> Asked {
        Asked { key: None, ssrc: 1, payload: Payload::Generated, reporting: None, several: false, wanted: None }
    }

    fn refusing(errno: Errno) -> Socket {
        let mut socket = Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), &Clock::new()).expect("a socket");
        socket.kernel_says = Some(errno);
        socket
    }

    /// If this test fails, a firewall that is active for a short time ends every session of the host.
    #[test]
    fn no_error_of_the_kernel_on_sending_ends_a_session() {
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
        for errno in every_errno() {
            let mut links = Links::fixed(vec![refusing(errno), refusing(errno)]);
            (0..2).for_each(|path| links.up(PathId(path)));
            for path in 0..2 {
                deliver(&mut links, PathId(path), peer, &Transmit { media: 100, ..Transmit::datagram(b"media") })
                    .unwrap_or_else(|error| panic!("{errno}: {error}"));
            }
            assert!(links.stats().0.unsent >= 2, "{errno}");
        }
    }

    /// If this test fails, sender and receiver send messages without a pause in two cases: a NAT uses another port for
    /// every datagram, or one host name leads to two receivers.
    #[test]
    fn a_path_that_changes_the_port_of_every_datagram_is_asked_a_few_times_a_second() {
        let here = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let front = here();
        front.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
        let socket = || Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), &Clock::new()).expect("a socket");
        let server = Server::start(socket(), ServerConfig::new(None), Nobody).expect("a server");
        let (peer, behind) = (front.local_addr().expect("bound"), server.address());
        let is_over = Arc::new(AtomicBool::new(false));
        let stop = is_over.clone();
        let translator = thread::spawn(move || {
            let (mut opens, mut buffer) = (0, [0; 2000]);
            while !stop.load(Ordering::Relaxed) {
                let Ok((length, from)) = front.recv_from(&mut buffer) else { continue };
                opens += 1;
                let back = here();
                back.send_to(&buffer[..length], behind).expect("sent");
                back.set_read_timeout(Some(Duration::from_secs(1))).expect("a timeout");
                let length = back.recv(&mut buffer).expect("the server answers");
                front.send_to(&buffer[..length], from).expect("sent");
            }
            opens
        });
        let opened = Client::open(Links::fixed(vec![socket()]), peer, asked(), Span::from_secs(1));
        assert!(matches!(opened, Err(NetError::NoAnswer { .. })), "no cookie is ever right");
        is_over.store(true, Ordering::Relaxed);
        let opens = translator.join().expect("no panic");
        // Five requests: at the start, when the first Retry message arrives, and 0.2, 0.4 and 0.8 s after the start.
        assert!((3..=6).contains(&opens), "{opens} questions in a second");
    }

    /// If this test fails, a user whose own host refuses to send is told that the peer does not answer.
    #[test]
    fn where_no_question_leaves_the_kernels_reason_is_said_in_place_of_silence() {
        let (links, peer) = (Links::fixed(vec![refusing(Errno::EPERM)]), (Ipv4Addr::LOCALHOST, 9).into());
        match Client::open(links, peer, asked(), Span::from_millis(20)) {
            Err(NetError::Send { source, .. }) => assert_eq!(source.raw_os_error(), Some(Errno::EPERM as i32)),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("nobody answered"),
        }
    }
}
