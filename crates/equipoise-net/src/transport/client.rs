use std::net::SocketAddr;

use equipoise::units::Span;
use equipoise_session::rtp::Payload;
use equipoise_session::wire::is_rtcp;
use equipoise_session::{DropReason, Event, PathId};

use super::{Arrival, Links, Transport};
use crate::datagram::MAX_PAYLOAD;
use crate::secure::handshake::{LENGTH, Message, Open, is_authentic, is_handshake};
use crate::secure::protection::{Protection, Role, source_of};
use crate::secure::{Key, Nonce, Refusal, random};
use crate::socket::Sent;
use crate::{NetError, Received, Socket, Time};

/// What a sender asks its receiver for.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) peer: SocketAddr,
    /// `None` for a session that anybody may read and forge.
    pub(crate) key: Option<Key>,
    pub(crate) ssrc: u32,
    pub(crate) payload: Payload,
    /// It has several paths, each of which joins the session.
    pub(crate) several: bool,
    /// How long the first answer is waited for.
    pub(crate) patience: Span,
}

/// The sender's side of a session that was opened by a handshake, over one path or several.
///
/// Each path asks for the session: whichever is first opens it, the others join it by its number. So no path is used
/// before an answer has come over it, and the receiver knows its address for the sender's, with a key or without.
///
/// Where reports stay away on all paths it asks for the session anew, so that a receiver that was started again, or an
/// address that changed, ends no session. Where they do on one of several, that path joins once more.
pub(crate) struct Client {
    links: Links,
    opening: Opening,
    /// The session's number, and what the receiver answered to it; `None` while it has not.
    nonce: Nonce,
    answer: Option<Nonce>,
    asking: Vec<(PathId, Asking)>,
    /// Paths on which reports stay away.
    silent: Vec<PathId>,
    protection: Protection,
    receiver_ssrc: u32,
    buffer: Vec<u8>,
    plain: Vec<u8>,
    whole: Vec<u8>,
    wire: Vec<u8>,
    /// The last report, which a goodbye is.
    last_report: Vec<u8>,
}

/// Where the handshake stands on a path.
struct Asking {
    cookie: Nonce,
    next: Time,
    pause: Span,
    /// A cookie was sent back as soon as it came.
    was_prompt: bool,
}

/// The first pause between two tries; each is twice as long as the one before.
const FIRST_PAUSE: Span = Span::from_millis(100);
/// The longest.
const LONGEST_PAUSE: Span = Span::from_secs(1);
/// How often a goodbye is said, and the time between: ours, to outlast a short burst of losses.
const FAREWELLS: u32 = 3;
const FAREWELL_PAUSE: Span = Span::from_millis(30);

impl Asking {
    const fn new(now: Time) -> Self {
        Self { cookie: [0; 16], next: now, pause: FIRST_PAUSE, was_prompt: false }
    }
}

impl Client {
    /// Opens a session.
    ///
    /// # Errors
    /// [`NetError::NoAnswer`] where nobody answers, or only somebody without the key; [`NetError::Refused`] where the
    /// receiver wants no session; what the socket says.
    pub(crate) fn open(links: Links, opening: Opening) -> Result<Self, NetError> {
        let now = links.clock().now();
        let give_up = now + opening.patience;
        let mut client = Self {
            links,
            opening,
            nonce: random(),
            answer: None,
            asking: Vec::new(),
            silent: Vec::new(),
            protection: Protection::None,
            receiver_ssrc: 0,
            buffer: vec![0; MAX_PAYLOAD],
            plain: Vec::new(),
            whole: Vec::new(),
            wire: Vec::new(),
            last_report: Vec::new(),
        };
        client.ask_for_session(now);
        loop {
            let now = client.links.clock().now();
            if now >= give_up {
                return Err(client.unanswered());
            }
            client.on_timer(now)?;
            let until = client.wake().unwrap_or(give_up).min(give_up);
            client.links.wait(None, until)?;
            while let Some((path, received)) = client.links.receive(&mut client.buffer)? {
                if let Some(reason) = client.on_message(path, received)? {
                    return Err(NetError::Refused { peer: client.opening.peer, reason });
                }
                if client.answer.is_some() {
                    return Ok(client);
                }
            }
        }
    }

    /// Why there was no answer: the kernel let no question out, or nobody heard it.
    fn unanswered(&self) -> NetError {
        let Opening { peer, patience, .. } = self.opening;
        match self.links.refusal() {
            Some(source) => NetError::Send { peer, length: LENGTH, source },
            None => NetError::NoAnswer { peer, waited: patience },
        }
    }

    /// Asks for a session of a new number, on all paths.
    fn ask_for_session(&mut self, now: Time) {
        (self.nonce, self.answer) = (random(), None);
        self.asking.clear();
        self.asking.extend(self.links.with_socket().map(|path| (path, Asking::new(now))));
    }

    fn ask(&mut self, at: usize) -> Result<(), NetError> {
        let Some((path, asking)) = self.asking.get(at) else { return Ok(()) };
        let Opening { peer, key, ssrc, payload, several, .. } = &self.opening;
        let open = Open {
            nonce: self.nonce,
            cookie: asking.cookie,
            ssrc: *ssrc,
            payload: *payload,
            secure: key.is_some(),
            several: *several,
        };
        let Some(socket) = self.links.socket(*path) else { return Ok(()) };
        socket.listen_for_errors(*peer);
        socket.send_to(*peer, &Message::Open(open).encode(key.as_ref()), 0).map(|_| ())
    }

    /// Takes the message in the buffer. Gives why there is to be no session, where it says so.
    fn on_message(&mut self, path: PathId, received: Received) -> Result<Option<Refusal>, NetError> {
        let datagram = &self.buffer[..received.len];
        let at = self.asking.iter().position(|(asking, _)| *asking == path);
        let (Some(at), Some(message)) = (at, Message::parse(datagram)) else { return Ok(None) };
        let is_authentic = self.opening.key.as_ref().is_none_or(|key| is_authentic(datagram, key));
        // Only who has seen the question knows its number.
        match message {
            Message::Retry { nonce, cookie } if nonce == self.nonce && received.from == self.opening.peer => {
                let (_, asking) = &mut self.asking[at];
                asking.cookie = cookie;
                // At once for each number. A path that changes its address with every datagram makes every cookie a wrong one,
                // and two ends that answer each other at once never stop.
                if !std::mem::replace(&mut asking.was_prompt, true) {
                    asking.next = received.at + asking.pause;
                    self.ask(at)?;
                }
            }
            // A number is answered once: keys that were used are never begun anew.
            Message::Accept { nonce, answer, ssrc }
                if nonce == self.nonce && is_authentic && self.answer.is_none_or(|first| first == answer) =>
            {
                if self.answer.is_none() {
                    if let Some(key) = &self.opening.key {
                        self.protection = Protection::new(key, Role::Sender, &nonce, &answer);
                    }
                    (self.answer, self.receiver_ssrc) = (Some(answer), ssrc);
                    self.silent.clear();
                }
                self.asking.remove(at);
                self.links.up(path);
                // What was said before the receiver was there is out of date.
                self.links.socket(path).map(Socket::take_unreachable);
            }
            Message::Refuse { nonce, reason } if nonce == self.nonce && received.from == self.opening.peer => {
                return Ok(Some(reason));
            }
            _ => {}
        }
        Ok(None)
    }

    /// Sends a datagram in its protected form on a path, or loses it where it cannot be protected.
    fn send_protected(&mut self, path: PathId, datagram: &[u8]) -> Result<(), NetError> {
        if self.protection.protect(datagram, &mut self.wire) {
            return deliver(&mut self.links, path, self.opening.peer, &self.wire, 0);
        }
        Ok(())
    }
}

/// Sends a datagram on a path. Media whose path is gone, or turns out to be, leaves by another one, which knows its place
/// as well.
fn deliver(links: &mut Links, path: PathId, peer: SocketAddr, head: &[u8], media: usize) -> Result<(), NetError> {
    if let Some(socket) = links.socket(path) {
        if socket.send_to(peer, head, media)? != Sent::NoRoute {
            return Ok(());
        }
        links.lose(path);
    }
    let other = links.in_use().find(|other| *other != path && !is_rtcp(head));
    match other.and_then(|other| links.socket(other)) {
        Some(socket) => socket.send_to(peer, head, media).map(|_| ()),
        None => Ok(()),
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
        let at = received.at;
        let datagram = &self.buffer[..received.len];
        if is_handshake(datagram) {
            // A refusal in the middle of a session is a stranger's, or will be followed by silence.
            self.on_message(path, received)?;
            return Ok(Some(Arrival::Own));
        }
        let is_secure = self.opening.key.is_some();
        if !is_secure && received.from != self.opening.peer {
            return Ok(Some(Arrival::Dropped { at, reason: DropReason::Foreign }));
        }
        if source_of(datagram) != Some(self.receiver_ssrc) {
            return Ok(Some(Arrival::Dropped { at, reason: DropReason::Foreign }));
        }
        Ok(Some(if self.protection.unprotect(datagram, self.receiver_ssrc, &mut self.plain) {
            Arrival::Datagram { path, at }
        } else {
            Arrival::Dropped { at, reason: DropReason::Forged }
        }))
    }

    fn datagram(&self) -> &[u8] {
        &self.plain
    }

    fn send(&mut self, path: PathId, head: &[u8], media: usize) -> Result<(), NetError> {
        if is_rtcp(head) {
            self.last_report.clear();
            self.last_report.extend_from_slice(head);
        }
        if self.opening.key.is_none() {
            return deliver(&mut self.links, path, self.opening.peer, head, media);
        }
        let mut whole = std::mem::take(&mut self.whole);
        whole.clear();
        whole.extend_from_slice(head);
        whole.resize(head.len() + media, 0);
        let sent = self.send_protected(path, &whole);
        self.whole = whole;
        sent
    }

    fn wake(&self) -> Option<Time> {
        self.asking.iter().map(|(_, asking)| asking.next).chain(self.links.wake()).min()
    }

    fn on_timer(&mut self, now: Time) -> Result<(), NetError> {
        let asking = &mut self.asking;
        self.links.look(now, |path| {
            asking.retain(|(other, _)| *other != path);
            asking.push((path, Asking::new(now)));
        });
        for at in 0..self.asking.len() {
            let (_, asking) = &mut self.asking[at];
            if asking.next <= now {
                asking.next = now + asking.pause;
                asking.pause = (asking.pause * 2).min(LONGEST_PAUSE);
                self.ask(at)?;
            }
        }
        Ok(())
    }

    fn on_event(&mut self, now: Time, path: PathId, event: &Event) {
        match event {
            Event::ReportsMissing => {
                if !self.silent.contains(&path) {
                    self.silent.push(path);
                }
                if self.answer.is_some() && self.links.in_use().all(|path| self.silent.contains(&path)) {
                    self.ask_for_session(now);
                } else if self.asking.iter().all(|(asking, _)| *asking != path) {
                    self.asking.push((path, Asking::new(now)));
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
                self.send_protected(*path, &goodbye)?;
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

    use nix::errno::Errno;

    use super::*;
    use crate::socket::every_errno;
    use crate::{Clock, Server, ServerConfig, SessionObserver};

    /// Sees nothing.
    struct Nobody;

    impl SessionObserver for Nobody {}

    fn refusing(errno: Errno) -> Socket {
        let mut socket = Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), &Clock::new()).expect("a socket");
        socket.kernel_says = Some(errno);
        socket
    }

    /// If it fails, a firewall that is loaded for a moment ends every session of the host.
    #[test]
    fn no_error_of_the_kernel_on_sending_ends_a_session() {
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
        for errno in every_errno() {
            let mut links = Links::fixed(vec![refusing(errno), refusing(errno)]);
            (0..2).for_each(|path| links.up(PathId(path)));
            for path in 0..2 {
                deliver(&mut links, PathId(path), peer, b"media", 100)
                    .unwrap_or_else(|error| panic!("{errno}: {error}"));
            }
            assert!(links.stats().0.unsent >= 2, "{errno}");
        }
    }

    /// A translator that takes another port for every datagram, or two receivers behind one name. If it fails, sender and receiver
    /// send as fast as they can.
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
        let opening = Opening {
            peer,
            key: None,
            ssrc: 1,
            payload: Payload::Generated,
            several: false,
            patience: Span::from_secs(1),
        };
        let opened = Client::open(Links::fixed(vec![socket()]), opening);
        assert!(matches!(opened, Err(NetError::NoAnswer { .. })), "no cookie is ever right");
        is_over.store(true, Ordering::Relaxed);
        let opens = translator.join().expect("no panic");
        // One at once, one for its answer, and then after 0.1, 0.3, 0.7 s.
        assert!((3..=6).contains(&opens), "{opens} questions in a second");
    }

    /// If it fails, who is kept from sending by his own host looks for the fault at the other one.
    #[test]
    fn where_no_question_leaves_the_kernels_reason_is_said_in_place_of_silence() {
        let opening = Opening {
            peer: (Ipv4Addr::LOCALHOST, 9).into(),
            key: None,
            ssrc: 1,
            payload: Payload::Generated,
            several: false,
            patience: Span::from_millis(20),
        };
        match Client::open(Links::fixed(vec![refusing(Errno::EPERM)]), opening) {
            Err(NetError::Send { source, .. }) => assert_eq!(source.raw_os_error(), Some(Errno::EPERM as i32)),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("nobody answered"),
        }
    }
}
