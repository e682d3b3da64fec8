use std::io::Read as _;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use equipoise::units::Size;
use equipoise_pair::{Event, Input, Output, Receiver};
use nix::poll::{PollFd, PollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::adu::{Adu, PairEnd};
use super::connection::{Moved, moved};
use crate::datagram::MAX_PAYLOAD;
use crate::secure::protection::source_of;
use crate::socket::wait_readable;
use crate::thread::STOP_CHECK;
use crate::{NetError, Observer, Socket, Time};

/// Maximum number of datagrams, and maximum number of reads from TCP, before the thread does other work.
const BATCH: usize = 64;
/// Maximum number of bytes per read from TCP.
const PIECE: usize = 64 << 10;

/// State that the receiver's thread and the application share: the queue of received ADUs between them.
#[derive(Debug)]
pub(super) struct Shared {
    /// Number of bytes of ADUs in the queue.
    pub(super) waiting: AtomicUsize,
    pub(super) end: OnceLock<PairEnd>,
    /// Whether the thread waits for space in the queue. If so, the thread is woken when the application takes an ADU.
    held: AtomicBool,
    wakeup: EventFd,
}

impl Shared {
    /// If the queue contains at least this number of bytes, no ADU is added.
    pub(super) const MOST: usize = 1 << 20;

    pub(super) fn new() -> Result<Self, NetError> {
        let wakeup = EventFd::from_value_and_flags(0, EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC);
        let wakeup = wakeup.map_err(|errno| NetError::Wait { sockets: 1, source: errno.into() })?;
        Ok(Self { waiting: AtomicUsize::new(0), end: OnceLock::new(), held: AtomicBool::new(false), wakeup })
    }

    /// Records that the application has taken an ADU of this many bytes from the queue.
    pub(super) fn taken(&self, bytes: usize) {
        self.waiting.fetch_sub(bytes, Ordering::SeqCst);
        if self.held.swap(false, Ordering::SeqCst) {
            // The write fails only if the counter would overflow. In this case the descriptor is already readable.
            let _ = self.wakeup.write(1);
        }
    }
}

/// The thread of a receiver, which connects TCP, UDP, the flow pair's state machine and the application.
pub(super) struct Receiving<O> {
    end: Receiver,
    stream: TcpStream,
    socket: Socket,
    /// The sender's TCP address. `reports_to` is the source address of the sender's datagrams; `None` before the first
    /// datagram.
    peer: SocketAddr,
    reports_to: Option<SocketAddr>,
    source: u32,
    /// The queue for the application. If it is `None`, ADUs are only reported to the observer.
    queue: Option<mpsc::Sender<Adu>>,
    shared: Arc<Shared>,
    observe: O,
    /// Bytes read from TCP. The first `used` bytes have been passed to the flow pair's state machine.
    piece: Vec<u8>,
    used: usize,
    /// Why the TCP connection has ended; `None` while the connection has not ended.
    over: Option<PairEnd>,
    ended: bool,
    buffer: Vec<u8>,
}

impl<O: Observer> Receiving<O> {
    /// Creates the receiver of the state machine `end`. `end` gets those datagrams of `socket` that come from the host
    /// of `peer` and have the SSRC `source`.
    pub(super) fn new(
        end: Receiver,
        stream: TcpStream,
        (socket, peer, source): (Socket, SocketAddr, u32),
        (queue, shared): (Option<mpsc::Sender<Adu>>, Arc<Shared>),
        observe: O,
    ) -> Self {
        let (piece, buffer) = (Vec::with_capacity(PIECE), vec![0; MAX_PAYLOAD.max(PIECE)]);
        let (reports_to, used, over, ended) = (None, 0, None, false);
        Self { end, stream, socket, peer, reports_to, source, queue, shared, observe, piece, used, over, ended, buffer }
    }

    /// Receives until the flow is over and all ADUs are delivered, until the application has dropped the queue, or
    /// until `stop` is set.
    pub(super) fn run(mut self, stop: &AtomicBool) -> Result<(), NetError> {
        loop {
            if stop.load(Ordering::Relaxed) || self.queue.as_ref().is_some_and(mpsc::Sender::is_closed) {
                return self.handle(self.now(), Input::Stop);
            }
            // Waiting datagrams are handled before the timer, with their arrival times. Otherwise, after a stall of the
            // host, the timer could expire first, and datagrams that arrived in time would count as late.
            if self.take_datagrams()? {
                self.take_stream()?;
            }
            if self.end.wake().is_some_and(|wake| wake.at.assume_clock() <= self.now()) {
                self.handle(self.now(), Input::Timer)?;
            }
            let all_given = self.give();
            if self.ended && all_given {
                let end = self.over.unwrap_or(PairEnd::Lost);
                // This code runs once, so the value is not set yet.
                let _ = self.shared.end.set(end);
                return Ok(());
            }
            self.wait()?;
        }
    }

    /// Handles the waiting datagrams, at most [`BATCH`]. Returns whether all of them are handled.
    fn take_datagrams(&mut self) -> Result<bool, NetError> {
        for _ in 0..BATCH {
            let Some(received) = self.socket.recv(&mut self.buffer)? else { return Ok(true) };
            let datagram = &self.buffer[..received.len];
            if received.from.ip() == self.peer.ip() && source_of(datagram) == Some(self.source) {
                self.reports_to = Some(received.from);
                self.end.handle(received.at.assume_clock(), Input::Datagram(datagram));
                self.obey(received.at)?;
            }
        }
        Ok(false)
    }

    /// Passes bytes from TCP to the flow pair's state machine while the state machine accepts bytes.
    fn take_stream(&mut self) -> Result<(), NetError> {
        for _ in 0..BATCH {
            if let Some(rest) = self.piece.get(self.used..).filter(|rest| !rest.is_empty()) {
                let now = self.socket.clock().now();
                let read = self.end.tcp_received(now.assume_clock(), rest);
                self.used += read;
                if read > 0 {
                    self.observe.on_stream(now, Size::from_bytes(read as u64));
                }
                self.obey(now)?;
                // ADUs are delivered to the application as soon as possible, so that there is space for further data.
                self.give();
            }
            if self.used < self.piece.len() || self.over.is_some() || !self.end.wants_tcp() {
                break;
            }
            match moved(self.stream.read(&mut self.buffer[..PIECE]), "receive from")? {
                Moved::Bytes(0) => self.over = Some(PairEnd::Finished),
                Moved::Bytes(length) => {
                    self.used = 0;
                    self.piece.clear();
                    self.piece.extend_from_slice(&self.buffer[..length]);
                }
                Moved::Later => break,
                Moved::Gone => self.over = Some(PairEnd::Lost),
            }
        }
        if self.over.is_some() && self.used == self.piece.len() {
            self.handle(self.now(), Input::TcpEnded)?;
        }
        Ok(())
    }

    fn handle(&mut self, now: Time, input: Input<'_>) -> Result<(), NetError> {
        self.end.handle(now.assume_clock(), input);
        self.obey(now)
    }

    /// Performs the outputs of the flow pair's state machine.
    fn obey(&mut self, now: Time) -> Result<(), NetError> {
        let mut garbled = false;
        while let Some(output) = self.end.poll() {
            match output {
                Output::Transmit(transmit) => {
                    if let Some(to) = self.reports_to {
                        // The receiver of a flow pair transmits nothing except reports.
                        self.socket.answer(to, &transmit);
                    }
                }
                Output::Event(event) => {
                    garbled |= event == Event::TcpBroken;
                    self.ended |= event == Event::Ended;
                    event.in_session().into_iter().for_each(|event| self.observe.on_event(now, &event));
                }
                Output::Tcp(_) => {}
            }
        }
        if garbled {
            self.over = Some(PairEnd::Garbled);
            self.handle(self.now(), Input::Stop)?;
        }
        Ok(())
    }

    /// Delivers ADUs to the application while the queue has space. Returns whether all ADUs are delivered.
    fn give(&mut self) -> bool {
        loop {
            let has_room = self.shared.waiting.load(Ordering::SeqCst) < Shared::MOST;
            let Some(queue) = &self.queue else {
                let Some(adu) = self.end.take_adu() else { return true };
                self.observe.on_event(self.socket.clock().now(), &delivered(&adu));
                continue;
            };
            match queue.try_reserve() {
                Ok(place) if has_room => {
                    let Some(adu) = self.end.take_adu() else { return true };
                    self.observe.on_event(self.socket.clock().now(), &delivered(&adu));
                    // The bytes of the ADU are counted before the application can take it.
                    self.shared.waiting.fetch_add(adu.data.len(), Ordering::SeqCst);
                    let data = adu.data.to_vec();
                    place.send(Adu { number: adu.number, missing: adu.missing, over: adu.over, data });
                }
                // The application has dropped its endpoint of the queue.
                Err(TrySendError::Closed(())) => return true,
                Ok(_) | Err(TrySendError::Full(())) => {
                    // After `held` is set, the loop checks the queue again, because the application may have taken an
                    // ADU before `held` was set.
                    if self.shared.held.swap(true, Ordering::SeqCst) {
                        return false;
                    }
                }
            }
        }
    }

    /// Waits for a datagram, for space in the queue, for a timer, or for the next check of the stop flag. If the state
    /// machine accepts TCP data, also waits for TCP data.
    fn wait(&mut self) -> Result<(), NetError> {
        let check = self.now() + STOP_CHECK;
        let until = self.end.wake().map_or(check, |wake| check.min(wake.at.assume_clock()));
        let mut waiting = [
            PollFd::new(self.socket.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.shared.wakeup.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.stream.as_fd(), PollFlags::POLLIN),
        ];
        let reads = self.over.is_none() && self.used == self.piece.len() && self.end.wants_tcp();
        wait_readable(&mut waiting[..if reads { 3 } else { 2 }], self.socket.clock(), until)?;
        // Makes the descriptor unreadable again, if it was readable.
        let _ = self.shared.wakeup.read();
        Ok(())
    }

    fn now(&self) -> Time {
        self.socket.clock().now()
    }
}

fn delivered(adu: &equipoise_pair::Adu<'_>) -> equipoise_session::Event {
    let equipoise_pair::Adu { number, missing, over, data } = *adu;
    let size = Size::from_bytes(data.len() as u64);
    equipoise_session::Event::AduReceived { number, missing, over: over.into(), size }
}
