use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use equipoise::units::{Size, Span};
use equipoise_session::{Endpoint, Event, Input, Output, PathChange, PathId, Transmit, Wake, WakeReason};

use crate::channel::{Message, PayloadReceiver};
use crate::thread::{STOP_CHECK, Worker};
use crate::transport::{Arrival, Plain, Transport, check_count};
use crate::{NetError, Socket, SocketStats, Time, TimestampSource};

/// How long before a media packet is due the driver stops sleeping, at most. Timers wake some 50 µs late.
const SPIN_AT_MOST: Span = Span::from_micros(100);

/// The driver spins for no more than one part in so many of the gap between media packets. Ours: 83 µs at 3 Mbit/s, where
/// packets are rare, and 10 µs at 30 Mbit/s, where they are not: waking takes more time than that already.
const SPIN_SHARE: i64 = 32;

/// Media packets that follow each other faster than this share a wake-up. Ours: half of what the pacer makes up for
/// ([`Pacer::TOLERANCE`]), so that a late wake-up fits, too; at 300 Mbit/s six packets leave together.
///
/// [`Pacer::TOLERANCE`]: equipoise::pace::Pacer::TOLERANCE
const TOGETHER: Span = Span::from_micros(200);

/// How long the socket is left alone where no wait says whether there is something to read. Ours: the kernel stamps what
/// arrives, and a report is worth nothing sooner.
const UNREAD_AT_MOST: Span = Span::from_millis(1);

/// Datagrams read in a row before timers get their turn.
const BATCH: usize = 64;

/// Sees what an endpoint does, on the endpoint's thread; slow observers make late senders.
///
/// Any closure over a time and an event is one.
pub trait Observer {
    /// The endpoint did or saw something, when it was handled at `now`.
    fn on_event(&mut self, now: Time, event: &Event);

    /// An endpoint of several paths did or saw something on one of them. Where nobody asks which one, it is an event like
    /// any other.
    fn on_path_event(&mut self, now: Time, _path: PathId, event: &Event) {
        self.on_event(now, event);
    }

    /// A path of a session that follows network interfaces can be used from now on, or cannot.
    fn on_path(&mut self, _now: Time, _path: PathId, _change: PathChange) {}

    /// The endpoint is about to handle `input`. What it then sends and outputs follows from it alone.
    fn on_input(&mut self, _now: Time, _input: &Input<'_>) {}

    /// The endpoint sends.
    fn on_transmit(&mut self, _now: Time, _transmit: &Transmit<'_>) {}

    /// The receiving end of a flow pair read so much of what came over TCP.
    fn on_stream(&mut self, _now: Time, _read: Size) {}

    /// The endpoint gives out payload, in order; so many packets are missing before it.
    fn on_payload(&mut self, _now: Time, _missing: u64, _payload: &[u8]) {}
}

impl<F: FnMut(Time, &Event)> Observer for F {
    fn on_event(&mut self, now: Time, event: &Event) {
        self(now, event);
    }
}

/// Where an endpoint lives.
#[derive(Debug)]
pub struct Host {
    /// Name of its thread; the system shows the first 15 bytes.
    pub name: String,
    /// Its paths, numbered from 0: what it talks through, and whom it talks to; datagrams from others do not reach it.
    pub paths: Vec<(Socket, SocketAddr)>,
}

impl Host {
    /// A host that talks to `peer` through one socket.
    pub fn new(name: impl Into<String>, socket: Socket, peer: SocketAddr) -> Self {
        Self { name: name.into(), paths: vec![(socket, peer)] }
    }
}

/// What is left of an endpoint at its end.
#[derive(Debug)]
pub struct Finished<E, O> {
    /// The endpoint itself.
    pub endpoint: E,
    /// What observed it.
    pub observer: O,
    /// What its host counted.
    pub stats: HostStats,
}

/// What an endpoint's host counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostStats {
    /// Datagrams that did not come from the peer.
    pub foreign: u64,
    /// What its socket lost.
    pub socket: SocketStats,
    /// Where its arrival times came from.
    pub timestamps: TimestampSource,
}

/// An endpoint on its thread. It is told to stop, at the latest, when this is dropped.
#[derive(Debug)]
pub struct Running<E, O> {
    worker: Worker<Result<Finished<E, O>, NetError>>,
}

impl<E, O> Running<E, O> {
    /// Asks the endpoint to end its session, without waiting for it.
    pub fn request_stop(&self) {
        self.worker.request_stop();
    }

    /// Whether the endpoint has ended, by itself or not.
    pub fn is_finished(&self) -> bool {
        self.worker.is_finished()
    }

    /// Waits until the endpoint has ended by itself: its peer said goodbye, or its host failed.
    ///
    /// # Errors
    /// What made its host fail, if something did.
    pub fn join(self) -> Result<Finished<E, O>, NetError> {
        self.worker.join()?
    }

    /// Ends the session; the endpoint says goodbye to its peer.
    ///
    /// # Errors
    /// What made its host fail, if something did.
    pub fn stop(self) -> Result<Finished<E, O>, NetError> {
        self.request_stop();
        self.join()
    }
}

/// Runs `endpoint` on a thread of its own until it ends or is stopped.
///
/// Datagrams are handled at the time they arrived, timers at the time it is. The endpoint's clock is taken to agree with
/// the host's: it has no other.
///
/// # Errors
/// [`NetError::Paths`] for no path and for more than [`MAX_PATHS`](equipoise_session::multipath::MAX_PATHS), [`NetError::Spawn`] if there is no thread to be had.
pub fn run_endpoint<E, O>(endpoint: E, host: Host, observer: O) -> Result<Running<E, O>, NetError>
where
    E: Endpoint + Send + 'static,
    O: Observer + Send + 'static,
{
    check_count(host.paths.len())?;
    drive(&host.name, endpoint, Plain::new(host.paths), observer, None)
}

/// Runs an endpoint on a thread of its own, which speaks through `transport` and has its payload from `queue`. Once nobody
/// can send it payload any more and all payload has left, it ends.
pub(crate) fn drive<E, O>(
    name: &str,
    endpoint: E,
    transport: impl Transport + Send + 'static,
    observer: O,
    queue: Option<PayloadReceiver>,
) -> Result<Running<E, O>, NetError>
where
    E: Endpoint + Send + 'static,
    O: Observer + Send + 'static,
{
    let driver = Driver {
        endpoint,
        observer,
        transport,
        queue,
        payload: Vec::new(),
        foreign: 0,
        media: MediaTimer::default(),
        looked: Time::ZERO,
        readable: true,
        ended: false,
    };
    Ok(Running { worker: Worker::spawn(name, move |stop| driver.run(stop))? })
}

/// The loop between a transport and an endpoint.
struct Driver<E, O, T> {
    endpoint: E,
    observer: O,
    transport: T,
    queue: Option<PayloadReceiver>,
    /// Payload that the endpoint has had no room for yet.
    payload: Vec<u8>,
    foreign: u64,
    media: MediaTimer,
    /// When it was last known whether there is something to read, and whether there was.
    looked: Time,
    readable: bool,
    ended: bool,
}

impl<E: Endpoint, O: Observer, T: Transport> Driver<E, O, T> {
    fn run(mut self, stop: &AtomicBool) -> Result<Finished<E, O>, NetError> {
        // An endpoint may have something to say before anything happens: its first rate, for one.
        self.apply(self.now())?;
        while !self.ended {
            if stop.load(Ordering::Relaxed) || self.is_done() {
                self.step(self.now(), Input::Stop)?;
                self.transport.farewell()?;
                break;
            }
            self.follow_paths()?;
            if self.readable || self.now() - self.looked > UNREAD_AT_MOST {
                self.take_in()?;
            }
            if !self.ended {
                self.take_payload()?;
                self.ring()?;
                if let Some(queue) = &self.queue {
                    queue.note_unsent(self.payload.len() + self.endpoint.waiting());
                }
                self.wait()?;
            }
        }
        let (socket, timestamps) = self.transport.links().stats();
        let stats = HostStats { foreign: self.foreign + socket.unanswerable, socket, timestamps };
        Ok(Finished { endpoint: self.endpoint, observer: self.observer, stats })
    }

    /// Tells what became of the paths.
    fn follow_paths(&mut self) -> Result<(), NetError> {
        while let Some((path, change)) = self.transport.links_mut().change() {
            if self.transport.links().follows() {
                self.observer.on_path(self.now(), path, change);
            }
            self.step(self.now(), Input::Path { path, change })?;
        }
        Ok(())
    }

    /// Hands over what has arrived.
    fn take_in(&mut self) -> Result<(), NetError> {
        (self.looked, self.readable) = (self.now(), true);
        for _ in 0..BATCH {
            match self.transport.receive()? {
                None => {
                    self.readable = false;
                    break;
                }
                Some(Arrival::Own) => {}
                Some(Arrival::Unreachable { path, at }) => self.step(at, Input::Unreachable { path })?,
                Some(Arrival::Datagram { path, at, ecn }) => {
                    let input = Input::Datagram { path, datagram: self.transport.datagram(), ecn };
                    self.observer.on_input(at, &input);
                    self.endpoint.handle(at.assume_clock(), input);
                    self.apply(at)?;
                }
                Some(Arrival::Dropped { at, reason }) => {
                    self.foreign += 1;
                    self.observer.on_event(at, &Event::Ignored(reason));
                }
            }
            if self.ended {
                break;
            }
        }
        Ok(())
    }

    /// Hands over payload while there is room for it.
    fn take_payload(&mut self) -> Result<(), NetError> {
        while let Some(queue) = &mut self.queue {
            if self.payload.is_empty() {
                match queue.take() {
                    Message::Payload(payload, _) => self.payload = payload,
                    Message::None | Message::Closed => break,
                }
            }
            // A stream is taken in parts; there is always room for a whole packet.
            let room = self.endpoint.room().min(self.payload.len());
            if room == 0 {
                break;
            }
            let now = self.now();
            let rest = self.payload.split_off(room);
            let input = Input::payload(&self.payload);
            self.observer.on_input(now, &input);
            self.endpoint.handle(now.assume_clock(), input);
            self.payload = rest;
            self.apply(now)?;
        }
        Ok(())
    }

    /// Whether all payload has left, and no more can come.
    fn is_done(&self) -> bool {
        let closed = self.queue.as_ref().is_some_and(PayloadReceiver::is_closed);
        closed && self.payload.is_empty() && self.endpoint.waiting() == 0
    }

    /// Rings the endpoint's timer, and the transport's, if its time has come.
    fn ring(&mut self) -> Result<(), NetError> {
        let now = self.now();
        if self.transport.wake().is_some_and(|at| at <= now) {
            self.transport.on_timer(now)?;
            // Before anything leaves by a path that is no more.
            self.follow_paths()?;
        }
        match self.wake_up() {
            Some((at, reason)) if at <= now => {
                self.media.rang(now, reason);
                self.step(now, Input::Timer)
            }
            _ => Ok(()),
        }
    }

    /// Waits for a datagram, payload, a timer, or the next look at the stop flag.
    fn wait(&mut self) -> Result<(), NetError> {
        let now = self.now();
        let check = now + STOP_CHECK;
        let check = self.transport.wake().map_or(check, |at| at.min(check));
        let Some((due, reason)) = self.wake_up() else { return self.wait_until(check) };
        if due <= now {
            return Ok(());
        }
        let (until, spins) = self.media.plan(due, reason);
        if until > now {
            self.wait_until(until.min(check))?;
        }
        // A datagram or the check may have ended the wait: then the loop comes round again first.
        if spins && self.now() >= until {
            while self.now() < due {
                std::hint::spin_loop();
            }
        }
        Ok(())
    }

    /// Sleeps until then, or until there is something to read.
    fn wait_until(&mut self, until: Time) -> Result<(), NetError> {
        // While payload waits for room, the next payload is none of our business.
        let wakeup = self.queue.as_ref().filter(|_| self.payload.is_empty()).map(PayloadReceiver::wakeup);
        // What was left unread ends the wait at once.
        self.readable = self.transport.links_mut().wait(wakeup, until)?;
        self.looked = self.now();
        Ok(())
    }

    /// One turn of the session: what happened, then all that the endpoint has to say to it.
    fn step(&mut self, now: Time, input: Input<'_>) -> Result<(), NetError> {
        self.observer.on_input(now, &input);
        self.endpoint.handle(now.assume_clock(), input);
        self.apply(now)
    }

    /// Does all that the endpoint asks.
    fn apply(&mut self, now: Time) -> Result<(), NetError> {
        while let Some(output) = self.endpoint.poll() {
            match output {
                Output::Transmit { path, transmit } => {
                    self.transport.send(path, &transmit)?;
                    self.observer.on_transmit(now, &transmit);
                }
                Output::Event { path, event } => {
                    self.ended |= matches!(event, Event::Ended { .. });
                    // What a session over one path says is of that path.
                    self.transport.on_event(now, path.unwrap_or_default(), &event);
                    match path {
                        Some(path) => self.observer.on_path_event(now, path, &event),
                        None => self.observer.on_event(now, &event),
                    }
                }
                Output::Payload { missing, payload } => self.observer.on_payload(now, missing, payload),
            }
        }
        Ok(())
    }

    /// When the endpoint wants to be woken, and what for.
    fn wake_up(&self) -> Option<(Time, WakeReason)> {
        self.endpoint.wake().map(|Wake { at, reason }| (at.assume_clock(), reason))
    }

    fn now(&self) -> Time {
        self.transport.links().clock().now()
    }
}

/// How an endpoint's next wake-up is waited for: media wants punctuality.
#[derive(Debug, Default)]
pub(crate) struct MediaTimer {
    /// When the timer for media last rang.
    last: Option<Time>,
}

impl MediaTimer {
    /// A timer rings at `now`.
    pub(crate) fn rang(&mut self, now: Time, reason: WakeReason) {
        if reason == WakeReason::Media {
            self.last = Some(now);
        }
    }

    /// Until when to sleep for what is due at `due`, and whether to spin from then on.
    pub(crate) fn plan(&self, due: Time, reason: WakeReason) -> (Time, bool) {
        if reason != WakeReason::Media {
            return (due, false);
        }
        let last = self.last.unwrap_or(Time::ZERO);
        if due - last < TOGETHER { (last + TOGETHER, false) } else { (due - spin_for(due - last), true) }
    }
}

/// How long to spin before a media packet that comes `gap` after the last.
fn spin_for(gap: Span) -> Span {
    let share = (gap / Span::from_nanos(SPIN_SHARE)).map_or(Span::ZERO, Span::from_nanos);
    share.max(Span::ZERO).min(SPIN_AT_MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If it fails, a fast sender burns a whole processor.
    #[test]
    fn spinning_takes_a_small_share_of_the_gap() {
        let micros = Span::from_micros;
        assert_eq!(spin_for(micros(10_000)), micros(100));
        assert_eq!(spin_for(micros(320)), micros(10));
        assert_eq!(spin_for(micros(0)), micros(0));
        assert_eq!(spin_for(micros(-5)), micros(0));
    }
}
