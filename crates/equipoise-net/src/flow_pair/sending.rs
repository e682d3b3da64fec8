use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use equipoise::units::Span;
use equipoise_pair::tpba::Period;
use equipoise_pair::{Event, Input, Output, Sender};
use nix::poll::{PollFd, PollFlags};

use super::PairState;
use super::connection::{Connection, Moved, at_port};
use super::open::Open;
use crate::channel::{Message, PayloadReceiver};
use crate::datagram::MAX_PAYLOAD;
use crate::driver::MediaTimer;
use crate::secure::protection::source_of;
use crate::socket::wait_readable;
use crate::thread::STOP_CHECK;
use crate::{NetError, Socket, Time};

/// Maximum number of datagrams that are handled in a row, and maximum number of writes to TCP in a row. After that, the
/// thread does other work.
const BATCH: usize = 64;
/// Minimum time between two checks of TCP while RTP is used. Our choice: TCP's state is not needed until TCP is used
/// again, so a check for every RTP packet is unnecessary.
const IDLE_LOOK: Span = Span::from_millis(1);

/// The source of the data that is sent.
pub(super) enum Supply {
    /// Data from an application. `message` was taken from the queue, and waits until the flow pair has space.
    Application { queue: PayloadReceiver, message: Option<(Vec<u8>, bool)> },
    /// An endless sequence of equal ADUs, each with these bytes.
    Endless(Vec<u8>),
}

/// A sender's thread. The thread connects the application, TCP, UDP and the flow pair's state machine.
pub(super) struct Sending<O> {
    end: Sender,
    socket: Socket,
    /// The receiver's UDP address. `source` is the SSRC of the receiver's reports.
    peer: SocketAddr,
    source: u32,
    tcp: Connection,
    looked: Time,
    supply: Supply,
    state: Arc<Mutex<PairState>>,
    observe: O,
    media: MediaTimer,
    buffer: Vec<u8>,
    ended: bool,
}

impl<O: FnMut(Time, &Event)> Sending<O> {
    /// A sender for the state machine `end` and the open transports `open`.
    pub(super) fn new(end: Sender, open: Open, supply: Supply, observe: O) -> Self {
        let Open { socket, tcp, peer, receiver, state, .. } = open;
        Self {
            end,
            socket,
            peer: at_port(peer, receiver.port),
            source: receiver.ssrc,
            tcp,
            looked: Time::ZERO,
            supply,
            state,
            observe,
            media: MediaTimer::default(),
            buffer: vec![0; MAX_PAYLOAD],
            ended: false,
        }
    }

    /// Sends until the flow has ended, until the peer is lost, or until `stop` is set.
    pub(super) fn run(mut self, stop: &AtomicBool) -> Result<(), NetError> {
        while !self.ended {
            if stop.load(Ordering::Relaxed) {
                return self.handle(self.now(), Input::Stop);
            }
            self.take_datagrams()?;
            self.take_supply()?;
            self.serve_tcp()?;
            self.ring()?;
            if !self.ended {
                if let Supply::Application { queue, message } = &self.supply {
                    queue.note_unsent(message.as_ref().map_or(0, |(bytes, _)| bytes.len()) + self.end.waiting());
                }
                self.wait()?;
            }
        }
        Ok(())
    }

    fn take_datagrams(&mut self) -> Result<(), NetError> {
        for _ in 0..BATCH {
            let Some(received) = self.socket.recv(&mut self.buffer)? else { break };
            let datagram = &self.buffer[..received.len];
            if received.from.ip() == self.peer.ip() && source_of(datagram) == Some(self.source) {
                self.end.handle(received.at.assume_clock(), Input::Datagram(datagram));
                self.obey(received.at)?;
            }
        }
        Ok(())
    }

    /// Passes data to the flow pair's state machine while the state machine has space.
    fn take_supply(&mut self) -> Result<(), NetError> {
        loop {
            let now = self.now();
            match &mut self.supply {
                Supply::Application { queue, message } => {
                    if message.is_none() {
                        match queue.take() {
                            Message::Payload(bytes, end) => *message = Some((bytes, end)),
                            Message::None => return Ok(()),
                            Message::Closed => return self.handle(now, Input::Stop),
                        }
                    }
                    let room = self.end.room();
                    let Some((bytes, end)) = message.take_if(|(bytes, _)| room > 0 && bytes.len() <= room) else {
                        return Ok(());
                    };
                    // `push` cannot fail here: there is space, and the application's call has checked the length of the
                    // ADU.
                    let _ = self.end.push(now.assume_clock(), &bytes, end);
                }
                Supply::Endless(adu) => {
                    // ADUs are added until the waiting data is at least as long as one ADU, as in the simulator.
                    if self.end.waiting() >= adu.len().max(1) || self.end.push(now.assume_clock(), adu, true).is_err() {
                        return Ok(());
                    }
                }
            }
            self.obey(now)?;
        }
    }

    /// Reports TCP's state to the flow pair's state machine, and passes pending data to TCP.
    fn serve_tcp(&mut self) -> Result<(), NetError> {
        if self.end.period() == Period::Running && self.now() - self.looked < IDLE_LOOK {
            return Ok(());
        }
        if matches!(self.tcp.listen()?, Moved::Gone) {
            self.lose();
        }
        for _ in 0..BATCH {
            self.looked = self.now();
            self.tcp.lift(self.looked);
            let Some(state) = self.tcp.look()? else {
                self.lose();
                return Ok(());
            };
            self.state().window = state.window;
            self.handle(self.looked, Input::Tcp(state))?;
            let pending = self.end.tcp_pending();
            if self.ended || pending.is_empty() {
                return Ok(());
            }
            match self.tcp.write(pending)? {
                Moved::Bytes(bytes) => {
                    let now = self.now();
                    self.end.tcp_written(now.assume_clock(), bytes);
                    self.obey(now)?;
                }
                Moved::Later => return Ok(()),
                Moved::Gone => {
                    self.lose();
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Handles the loss of the connection to the peer.
    fn lose(&mut self) {
        if !self.ended {
            self.ended = true;
            self.state().ended_by_peer = true;
        }
    }

    fn ring(&mut self) -> Result<(), NetError> {
        let now = self.now();
        match self.end.wake() {
            Some(wake) if wake.at.assume_clock() <= now => {
                self.media.rang(now, wake.reason);
                self.handle(now, Input::Timer)
            }
            _ => Ok(()),
        }
    }

    fn handle(&mut self, now: Time, input: Input<'_>) -> Result<(), NetError> {
        self.end.handle(now.assume_clock(), input);
        self.obey(now)
    }

    /// Performs the outputs of the flow pair's state machine.
    fn obey(&mut self, now: Time) -> Result<(), NetError> {
        while let Some(output) = self.end.poll() {
            match output {
                Output::Transmit(transmit) => {
                    self.socket.send_to(self.peer, &transmit)?;
                }
                Output::Tcp(request) => self.tcp.obey(now, request)?,
                Output::Event(event) => {
                    self.ended |= event == Event::Ended;
                    note(&mut locked(&self.state), &event);
                    (self.observe)(now, &event);
                }
            }
        }
        Ok(())
    }

    /// Waits for a datagram, for data from the application, for TCP, for a timer, or for the next check of the stop
    /// flag.
    fn wait(&mut self) -> Result<(), NetError> {
        let (now, clock) = (self.now(), self.socket.clock().clone());
        let check = now + STOP_CHECK;
        let check = self.tcp.paced_until().map_or(check, |until| until.min(check));
        let wake = self.end.wake().map(|wake| (wake.at.assume_clock(), wake.reason));
        let (due, (until, spins)) =
            wake.map_or((check, (check, false)), |(due, reason)| (due, self.media.plan(due, reason)));
        if due <= now {
            return Ok(());
        }
        if until > now {
            // If earlier data still waits for space, new data from the application does not wake the thread.
            let wakeup = match &self.supply {
                Supply::Application { queue, message: None } => Some(queue.wakeup()),
                Supply::Application { .. } | Supply::Endless(_) => None,
            };
            let mut waiting = [
                PollFd::new(self.socket.as_fd(), PollFlags::POLLIN),
                self.tcp.poll(self.end.tcp_awaited()),
                PollFd::new(wakeup.unwrap_or(self.socket.as_fd()), PollFlags::POLLIN),
            ];
            let count = if wakeup.is_some() { 3 } else { 2 };
            wait_readable(&mut waiting[..count], &clock, until.min(check))?;
        }
        if spins && self.now() >= until {
            while self.now() < due {
                std::hint::spin_loop();
            }
        }
        Ok(())
    }

    fn now(&self) -> Time {
        self.socket.clock().now()
    }

    fn state(&self) -> MutexGuard<'_, PairState> {
        locked(&self.state)
    }
}

fn locked(state: &Mutex<PairState>) -> MutexGuard<'_, PairState> {
    // The lock is never poisoned, because no code panics while it holds the lock.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Updates the published state after an event.
fn note(state: &mut PairState, event: &Event) {
    match *event {
        Event::Probed { rate } => state.rate = Some(rate),
        Event::Began { period, rate, .. } => {
            (state.period, state.rate) = (period, Some(rate));
            state.running_periods += u64::from(period == Period::Running);
        }
        Event::Rtp(equipoise_session::Event::RateDecided { rate, .. }) if state.period == Period::Running => {
            state.rate = Some(rate);
        }
        _ => {}
    }
}
