use std::net::SocketAddr;

use equipoise::session::rtp::Payload;
use equipoise::session::{Event, Ignored};
use equipoise::units::Span;
use equipoise::wire::is_rtcp;

use super::{Arrival, Transport};
use crate::secure::handshake::{Message, Nonce, Open, is_authentic, is_handshake};
use crate::secure::protection::{Protection, Role, source_of};
use crate::secure::{Key, Refusal, random};
use crate::socket::{MAX_PAYLOAD, wait};
use crate::{NetError, Socket, Time};

/// What a sender asks its receiver for.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) peer: SocketAddr,
    /// `None` for a session that anybody may read and forge.
    pub(crate) key: Option<Key>,
    pub(crate) ssrc: u32,
    pub(crate) payload: Payload,
    /// How long the first answer is waited for.
    pub(crate) patience: Span,
}

/// The sender's side of a session that was opened by a handshake.
///
/// Where reports stay away it asks for the session anew, so that a receiver that was started again, or an address that
/// changed, ends no session.
pub(crate) struct Client {
    socket: Socket,
    opening: Opening,
    protection: Protection,
    receiver_ssrc: u32,
    asking: Option<Asking>,
    buffer: Vec<u8>,
    plain: Vec<u8>,
    whole: Vec<u8>,
    wire: Vec<u8>,
    /// The last report, which a goodbye is.
    last_report: Vec<u8>,
}

/// Where the handshake stands.
struct Asking {
    nonce: Nonce,
    cookie: Nonce,
    next: Time,
    pause: Span,
}

/// The first pause between two tries; each is twice as long as the one before.
const FIRST_PAUSE: Span = Span::from_millis(100);
/// The longest.
const LONGEST_PAUSE: Span = Span::from_secs(1);
/// How often a goodbye is said, and the time between: ours, to outlast a short burst of losses.
const FAREWELLS: u32 = 3;
const FAREWELL_PAUSE: Span = Span::from_millis(30);

impl Asking {
    fn new(now: Time) -> Self {
        Self { nonce: random(), cookie: [0; 16], next: now, pause: FIRST_PAUSE }
    }
}

/// What came of a message.
enum Answer {
    Nothing,
    Opened,
    Refused(Refusal),
}

impl Client {
    /// Opens a session.
    ///
    /// # Errors
    /// [`NetError::NoAnswer`] where nobody answers, or only somebody without the key; [`NetError::Refused`] where the
    /// receiver wants no session; what the socket says.
    pub(crate) fn open(socket: Socket, opening: Opening) -> Result<Self, NetError> {
        let now = socket.clock().now();
        let give_up = now + opening.patience;
        let mut client = Self {
            socket,
            opening,
            protection: Protection::None,
            receiver_ssrc: 0,
            asking: Some(Asking::new(now)),
            buffer: vec![0; MAX_PAYLOAD],
            plain: Vec::new(),
            whole: Vec::new(),
            wire: Vec::new(),
            last_report: Vec::new(),
        };
        loop {
            let now = client.socket.clock().now();
            if now >= give_up {
                return Err(NetError::NoAnswer { peer: client.opening.peer, waited: client.opening.patience });
            }
            client.on_timer(now)?;
            let until = client.wake().unwrap_or(give_up).min(give_up);
            wait(std::iter::once(&client.socket), client.socket.clock(), until)?;
            while let Some(received) = client.socket.recv(&mut client.buffer)? {
                match client.on_message(received.from, received.len, received.at)? {
                    Answer::Opened => return Ok(client),
                    Answer::Refused(reason) => {
                        return Err(NetError::Refused { peer: client.opening.peer, reason });
                    }
                    Answer::Nothing => {}
                }
            }
        }
    }

    fn ask(&mut self) -> Result<(), NetError> {
        let Some(asking) = &self.asking else { return Ok(()) };
        let Opening { peer, key, ssrc, payload, .. } = &self.opening;
        let open =
            Open { nonce: asking.nonce, cookie: asking.cookie, ssrc: *ssrc, payload: *payload, secure: key.is_some() };
        self.socket.send_to(*peer, &Message::Open(open).encode(key.as_ref()), 0)
    }

    /// Takes the message of `length` bytes in the buffer.
    fn on_message(&mut self, from: SocketAddr, length: usize, now: Time) -> Result<Answer, NetError> {
        let datagram = &self.buffer[..length];
        let (Some(asking), Some(message)) = (&mut self.asking, Message::parse(datagram)) else {
            return Ok(Answer::Nothing);
        };
        let is_authentic = self.opening.key.as_ref().is_none_or(|key| is_authentic(datagram, key));
        // Only who has seen the question knows its number.
        match message {
            Message::Retry { nonce, cookie } if nonce == asking.nonce && from == self.opening.peer => {
                asking.cookie = cookie;
                asking.next = now + asking.pause;
                self.ask()?;
            }
            Message::Accept { nonce, answer, ssrc } if nonce == asking.nonce && is_authentic => {
                if let Some(key) = &self.opening.key {
                    self.protection = Protection::new(key, Role::Sender, &nonce, &answer);
                }
                self.receiver_ssrc = ssrc;
                self.asking = None;
                return Ok(Answer::Opened);
            }
            Message::Refuse { nonce, reason } if nonce == asking.nonce && from == self.opening.peer => {
                return Ok(Answer::Refused(reason));
            }
            _ => {}
        }
        Ok(Answer::Nothing)
    }

    /// Sends a datagram in its protected form, or loses it where it cannot be protected.
    fn send_protected(&mut self, datagram: &[u8]) -> Result<(), NetError> {
        if self.protection.protect(datagram, &mut self.wire) {
            self.socket.send_to(self.opening.peer, &self.wire, 0)?;
        }
        Ok(())
    }
}

impl Transport for Client {
    fn socket(&self) -> &Socket {
        &self.socket
    }

    fn receive(&mut self) -> Result<Option<Arrival>, NetError> {
        let Some(received) = self.socket.recv(&mut self.buffer)? else { return Ok(None) };
        let at = received.at;
        let datagram = &self.buffer[..received.len];
        if is_handshake(datagram) {
            // A refusal in the middle of a session is a stranger's, or will be followed by silence.
            self.on_message(received.from, received.len, at)?;
            return Ok(Some(Arrival::Own));
        }
        let is_secure = self.opening.key.is_some();
        if !is_secure && received.from != self.opening.peer {
            return Ok(Some(Arrival::Dropped { at, reason: Ignored::Foreign }));
        }
        if source_of(datagram) != Some(self.receiver_ssrc) {
            return Ok(Some(Arrival::Dropped { at, reason: Ignored::Foreign }));
        }
        Ok(Some(if self.protection.unprotect(datagram, self.receiver_ssrc, &mut self.plain) {
            Arrival::Datagram { at }
        } else {
            Arrival::Dropped { at, reason: Ignored::Forged }
        }))
    }

    fn datagram(&self) -> &[u8] {
        &self.plain
    }

    fn send(&mut self, head: &[u8], media: usize) -> Result<(), NetError> {
        if is_rtcp(head) {
            self.last_report.clear();
            self.last_report.extend_from_slice(head);
        }
        if self.opening.key.is_none() {
            return self.socket.send_to(self.opening.peer, head, media);
        }
        let mut whole = std::mem::take(&mut self.whole);
        whole.clear();
        whole.extend_from_slice(head);
        whole.resize(head.len() + media, 0);
        let sent = self.send_protected(&whole);
        self.whole = whole;
        sent
    }

    fn wake(&self) -> Option<Time> {
        self.asking.as_ref().map(|asking| asking.next)
    }

    fn on_timer(&mut self, now: Time) -> Result<(), NetError> {
        if let Some(asking) = self.asking.as_mut().filter(|asking| asking.next <= now) {
            asking.next = now + asking.pause;
            asking.pause = (asking.pause * 2).min(LONGEST_PAUSE);
            self.ask()?;
        }
        Ok(())
    }

    fn on_event(&mut self, now: Time, event: &Event) {
        if matches!(event, Event::ReportsMissing) && self.asking.is_none() {
            self.asking = Some(Asking::new(now));
        }
    }

    fn farewell(&mut self) -> Result<(), NetError> {
        let goodbye = std::mem::take(&mut self.last_report);
        for _ in 1..FAREWELLS {
            self.socket.clock().sleep_until(self.socket.clock().now() + FAREWELL_PAUSE);
            self.send_protected(&goodbye)?;
        }
        Ok(())
    }
}
