use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use equipoise::units::{Size, Span};
use equipoise_session::{Endpoint, Event, Input, Output, PathChange, PathId, Transmit, Wake, WakeReason};

use crate::channel::{Message, PayloadReceiver};
use crate::thread::{STOP_CHECK, Worker};
use crate::transport::{Arrival, Plain, Transport, check_count};
use crate::{NetError, Socket, SocketStats, Time, TimestampSource};

/// Maximum time for which the driver spins before a media packet is due. Timers are about 50 µs late. Spinning avoids
/// this lateness.
const SPIN_AT_MOST: Span = Span::from_micros(100);

/// The driver spins for at most 1/32 of the gap between media packets. Our choice: spinning takes at most about 3% of
/// the processor time. With packets of 1200 bytes, 1/32 of the gap is 100 µs at 3 Mbit/s and 10 µs at 30 Mbit/s.
const SPIN_SHARE: i64 = 32;

/// If the gap between media packets is shorter than this, several packets are sent at one wake-up. Our choice: half of
/// [`Pacer::TOLERANCE`], the lateness for which the pacer compensates. The other half is for late wake-ups. Six packets
/// of 1200 bytes are sent together at 300 Mbit/s.
///
/// [`Pacer::TOLERANCE`]: equipoise::pace::Pacer::TOLERANCE
const TOGETHER: Span = Span::from_micros(200);

/// Maximum time without a check of the sockets. After this time, the thread reads the sockets. Our choice: the kernel
/// stamps arrivals, so a late read changes no measurement. A report that is handled 1 ms late does no harm.
const UNREAD_AT_MOST: Span = Span::from_millis(1);

/// Maximum number of datagrams that are read in a row before timers are served.
const BATCH: usize = 64;

/// Observes an endpoint, on the endpoint's thread. If the observer is slow, packets are sent late.
///
/// Any closure that takes a time and an event is an observer.
pub trait Observer {
    /// Called when the endpoint has emitted an event, at the time `now`. Also called with [`Event::Ignored`] for a
    /// datagram that the transport dropped.
    fn on_event(&mut self, now: Time, event: &Event);

    /// Called when a multipath endpoint has emitted an event on one of its paths. By default, calls
    /// [`on_event`](Self::on_event) and ignores the path.
    fn on_path_event(&mut self, now: Time, _path: PathId, event: &Event) {
        self.on_event(now, event);
    }

    /// Called when a path became usable or unusable, if the session follows the host's network interfaces.
    fn on_path(&mut self, _now: Time, _path: PathId, _change: PathChange) {}

    /// Called when the endpoint is about to handle `input`. The endpoint's outputs depend only on its inputs.
    fn on_input(&mut self, _now: Time, _input: &Input<'_>) {}

    /// Called when the endpoint sends a datagram.
    fn on_transmit(&mut self, _now: Time, _transmit: &Transmit<'_>) {}

    /// Called when the receiver of a flow pair has read `read` bytes from TCP.
    fn on_stream(&mut self, _now: Time, _read: Size) {}

    /// Called when the endpoint delivers payload, in order. `missing` is the number of packets lost directly before
    /// this payload.
    fn on_payload(&mut self, _now: Time, _missing: u64, _payload: &[u8]) {}
}

impl<F: FnMut(Time, &Event)> Observer for F {
    fn on_event(&mut self, now: Time, event: &Event) {
        self(now, event);
    }
}

/// The thread name, the sockets and the peers of an endpoint.
#[derive(Debug)]
pub struct Host {
    /// Name of the endpoint's thread. The system shows the first 15 bytes of the name.
    pub name: String,
    /// The paths, numbered from 0: the socket and the peer of each path. Datagrams from other addresses are dropped.
    pub paths: Vec<(Socket, SocketAddr)>,
}

impl Host {
    /// A host with one socket and one peer.
    pub fn new(name: impl Into<String>, socket: Socket, peer: SocketAddr) -> Self {
        Self { name: name.into(), paths: vec![(socket, peer)] }
    }
}

/// The result of an endpoint that has ended.
#[derive(Debug)]
pub struct Finished<E, O> {
    /// The endpoint that has ended.
    pub endpoint: E,
    /// The observer of the endpoint.
    pub observer: O,
    /// The counters of the endpoint's host.
    pub stats: HostStats,
}

/// Counters of an endpoint's host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostStats {
    /// Number of datagrams that arrived but were not passed to the endpoint, for example because they were forged or
    /// not from the peer's address.
    pub foreign: u64,
    /// The counters of the host's sockets.
    pub socket: SocketStats,
    /// The source of the datagrams' arrival times.
    pub timestamps: TimestampSource,
}

/// An endpoint that runs on its own thread. If this value is dropped, the endpoint is requested to stop.
#[derive(Debug)]
pub struct Running<E, O> {
    worker: Worker<Result<Finished<E, O>, NetError>>,
}

impl<E, O> Running<E, O> {
    /// Requests the endpoint to end its session. Does not wait for the end.
    pub fn request_stop(&self) {
        self.worker.request_stop();
    }

    /// Whether the endpoint has ended, for any reason.
    pub fn is_finished(&self) -> bool {
        self.worker.is_finished()
    }

    /// Waits until the endpoint ends: its peer ended the session, an error occurred, the last
    /// [`PayloadSender`](crate::PayloadSender) was dropped and all payload was sent, or
    /// [`request_stop`](Self::request_stop) was called.
    ///
    /// # Errors
    /// The error that ended the endpoint, if any.
    pub fn join(self) -> Result<Finished<E, O>, NetError> {
        self.worker.join()?
    }

    /// Ends the session. The endpoint tells its peer that the session is over.
    ///
    /// # Errors
    /// The error that ended the endpoint, if any.
    pub fn stop(self) -> Result<Finished<E, O>, NetError> {
        self.request_stop();
        self.join()
    }
}

/// Runs `endpoint` on a separate thread, until the endpoint ends or is stopped.
///
/// Datagrams are handled with their arrival time, timers with the current time of the host's clock. The endpoint itself
/// reads no clock.
///
/// # Errors
/// [`NetError::Paths`] if the host has no path or more than [`MAX_PATHS`](equipoise_session::multipath::MAX_PATHS)
/// paths, [`NetError::Spawn`] if no thread can be started.
pub fn run_endpoint<E, O>(endpoint: E, host: Host, observer: O) -> Result<Running<E, O>, NetError>
where
    E: Endpoint + Send + 'static,
    O: Observer + Send + 'static,
{
    check_count(host.paths.len())?;
    drive(&host.name, endpoint, Plain::new(host.paths), observer, None)
}

/// Runs an endpoint on a separate thread. The endpoint sends over `transport` and gets its payload from `queue`. The
/// thread ends when the last [`PayloadSender`] is dropped and all payload has been sent.
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

/// The loop on an endpoint's thread. Passes datagrams, payload and timers to the endpoint, and sends the endpoint's
/// datagrams.
struct Driver<E, O, T> {
    endpoint: E,
    observer: O,
    transport: T,
    queue: Option<PayloadReceiver>,
    /// Payload from the queue for which the endpoint has no space yet.
    payload: Vec<u8>,
    foreign: u64,
    media: MediaTimer,
    /// When the sockets were last checked; `readable` is the result.
    looked: Time,
    readable: bool,
    ended: bool,
}

impl<E: Endpoint, O: Observer, T: Transport> Driver<E, O, T> {
    fn run(mut self, stop: &AtomicBool) -> Result<Finished<E, O>, NetError> {
        // An endpoint may have outputs before its first input, such as its initial rate.
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

    /// Reports changes of paths to the observer and to the endpoint.
    fn follow_paths(&mut self) -> Result<(), NetError> {
        while let Some((path, change)) = self.transport.links_mut().change() {
            if self.transport.links().follows() {
                self.observer.on_path(self.now(), path, change);
            }
            self.step(self.now(), Input::Path { path, change })?;
        }
        Ok(())
    }

    /// Reads datagrams and passes them to the endpoint.
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

    /// Passes payload from the queue to the endpoint while the endpoint has space.
    fn take_payload(&mut self) -> Result<(), NetError> {
        while let Some(queue) = &mut self.queue {
            if self.payload.is_empty() {
                match queue.take() {
                    Message::Payload(payload, _) => self.payload = payload,
                    Message::None | Message::Closed => break,
                }
            }
            // The payload of a stream may be divided. An RTP packet is never divided, because the endpoint always has
            // space for it.
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

    /// Whether all payload has been sent and the application can send no more.
    fn is_done(&self) -> bool {
        let closed = self.queue.as_ref().is_some_and(PayloadReceiver::is_closed);
        closed && self.payload.is_empty() && self.endpoint.waiting() == 0
    }

    /// Calls the timer functions of the transport and of the endpoint if their timers are due.
    fn ring(&mut self) -> Result<(), NetError> {
        let now = self.now();
        if self.transport.wake().is_some_and(|at| at <= now) {
            self.transport.on_timer(now)?;
            // Path changes are handled before the endpoint's timer, so that the endpoint does not send on a path that
            // no longer exists.
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

    /// Waits for a datagram, for payload, for a timer, or for the next check of the stop flag.
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
        // If the wait ended before `until`, for example because a datagram arrived, there is no spinning, so that the
        // caller handles the datagram immediately.
        if spins && self.now() >= until {
            while self.now() < due {
                std::hint::spin_loop();
            }
        }
        Ok(())
    }

    /// Sleeps until the time `until`, or until a socket or the queue is readable.
    fn wait_until(&mut self, until: Time) -> Result<(), NetError> {
        // While a payload waits for space in the endpoint, no new payload can be passed to the endpoint. Therefore new
        // payload in the queue does not end the wait.
        let wakeup = self.queue.as_ref().filter(|_| self.payload.is_empty()).map(PayloadReceiver::wakeup);
        // If a datagram is still unread, the call returns at once.
        self.readable = self.transport.links_mut().wait(wakeup, until)?;
        self.looked = self.now();
        Ok(())
    }

    /// Passes an input to the endpoint, and then performs all outputs of the endpoint.
    fn step(&mut self, now: Time, input: Input<'_>) -> Result<(), NetError> {
        self.observer.on_input(now, &input);
        self.endpoint.handle(now.assume_clock(), input);
        self.apply(now)
    }

    /// Performs all outputs of the endpoint.
    fn apply(&mut self, now: Time) -> Result<(), NetError> {
        while let Some(output) = self.endpoint.poll() {
            match output {
                Output::Transmit { path, transmit } => {
                    self.transport.send(path, &transmit)?;
                    self.observer.on_transmit(now, &transmit);
                }
                Output::Event { path, event } => {
                    self.ended |= matches!(event, Event::Ended { .. });
                    // If an event has no path, the transport gets path 0. In a session over one path, no event has a
                    // path. In a multipath session, only events about the whole session have no path, and the transport
                    // ignores these events.
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

    /// When the endpoint's timer is due, and the reason of the timer.
    fn wake_up(&self) -> Option<(Time, WakeReason)> {
        self.endpoint.wake().map(|Wake { at, reason }| (at.assume_clock(), reason))
    }

    fn now(&self) -> Time {
        self.transport.links().clock().now()
    }
}

/// Plans how to wait for an endpoint's next timer: timers for media packets need precise timing.
#[derive(Debug, Default)]
pub(crate) struct MediaTimer {
    /// When the media timer last fired.
    last: Option<Time>,
}

impl MediaTimer {
    /// Records that a timer fired at `now` for `reason`.
    pub(crate) fn rang(&mut self, now: Time, reason: WakeReason) {
        if reason == WakeReason::Media {
            self.last = Some(now);
        }
    }

    /// For a timer that is due at `due`: returns when to end the sleep, and whether to spin from this time until `due`.
    pub(crate) fn plan(&self, due: Time, reason: WakeReason) -> (Time, bool) {
        if reason != WakeReason::Media {
            return (due, false);
        }
        let last = self.last.unwrap_or(Time::ZERO);
        if due - last < TOGETHER { (last + TOGETHER, false) } else { (due - spin_for(due - last), true) }
    }
}

/// How long to spin before a media packet is due, if the gap to the previous packet is `gap`.
fn spin_for(gap: Span) -> Span {
    let share = (gap / Span::from_nanos(SPIN_SHARE)).map_or(Span::ZERO, Span::from_nanos);
    share.max(Span::ZERO).min(SPIN_AT_MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this test fails, a fast sender uses a whole processor for spinning.
    #[test]
    fn spinning_takes_a_small_share_of_the_gap() {
        let micros = Span::from_micros;
        assert_eq!(spin_for(micros(10_000)), micros(100));
        assert_eq!(spin_for(micros(320)), micros(10));
        assert_eq!(spin_for(micros(0)), micros(0));
        assert_eq!(spin_for(micros(-5)), micros(0));
    }
}
