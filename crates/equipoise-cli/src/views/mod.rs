//! Live views of a run: the stream of the run's events, and everything that displays or serves the events.
//!
//! ```text
//! real-time threads ─▶ main thread ─┬─ lines of JSON (--json-stream), on a writer's thread
//!  (notes, samples)     tell(Told)  │
//!                                   └─ bounded channel ─▶ views' thread ─┬─ board ─▶ terminal (--ui), metrics, report
//!                                                                        └─ hub ─▶ pages (--serve)
//! ```
//!
//! A view never delays the run. The main thread sends events without waiting. Events that do not fit into the channel
//! are dropped and counted. The threads of the views, except the writer's thread, have a lower priority than all
//! other threads of the process.

pub(crate) mod args;
mod board;
mod http;
mod hub;
mod metrics;
mod report;
#[cfg(test)]
mod samples;
pub(crate) mod told;
mod trail;
mod ui;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use equipoise_session::Event;

use crate::error::{CliError, RealError};
use crate::hosts::results;
use crate::output::Output;
use crate::writer::{MOST_LINES, Writer};
use args::Viewing;
use board::Board;
use http::{Offers, Site};
use hub::Hub;
use told::{Interval, Measured, Told};
use ui::Screenful;

/// Capacity of the channel to the views, in events. Our choice: the events of a thousand sessions in ten seconds, if
/// each session has one event per second.
const MOST_EVENTS: usize = 10_000;
/// Interval at which the terminal is redrawn and pressed keys are read. The views' thread waits at most this long for
/// events.
const LOOK: Duration = Duration::from_millis(100);
/// Maximum time for each of two waits at the end of the run: for space in the channel to the views' thread, and for the
/// end of the thread. On a busy machine, the thread may have to wait for seconds, because its priority is low.
const PATIENCE: Duration = Duration::from_secs(5);
/// Interval at which the sum of the rates of all series is sampled.
const SUMS: Duration = Duration::from_secs(1);

/// All views of a run. Sending an event to them never blocks.
#[derive(Debug, Default)]
pub(crate) struct Views {
    stream: Option<Writer>,
    report: Option<Output>,
    watching: Option<Watching>,
    has_ui: bool,
    takes_stdout: bool,
}

/// The views' thread, and the servers.
#[derive(Debug)]
struct Watching {
    /// Sends events to the views' thread; `None` after the last event was sent.
    post: Option<SyncSender<Told>>,
    shared: Shared,
    /// The handle of the thread; `None` after the thread was joined or abandoned.
    thread: Option<JoinHandle<()>>,
    sites: Vec<Site>,
}

/// State that the views' thread updates and that the servers' threads read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    board: Arc<Mutex<Board>>,
    hub: Arc<Mutex<Hub>>,
    dropped: Arc<AtomicU64>,
}

impl Shared {
    /// Calls `read` with the board, and with the number of events that were dropped before they could change the board.
    fn with_board<T>(&self, read: impl FnOnce(&Board, u64) -> T) -> T {
        read(&lock(&self.board), self.dropped.load(Ordering::Relaxed))
    }

    fn follow(&self) -> (Vec<Arc<str>>, Receiver<Arc<str>>) {
        lock(&self.hub).follow()
    }
}

/// Locks the mutex even after a panic in another thread, because the state is still good enough to be shown.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lowers the priority of this thread below the priority of the threads of the run.
fn yield_to_others() {
    // If the system refuses the priority, the thread continues with its old priority.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), 10);
}

impl Views {
    /// Opens all requested views before the run begins, so that errors are reported early. The terminal view sets
    /// `stop` when the user ends the run. If `stdout_is_taken`, no view may use standard output. Otherwise, one view
    /// may use it.
    pub(crate) fn open(
        options: &Viewing,
        report: Option<&Path>,
        quiet: bool,
        stdout_is_taken: bool,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, CliError> {
        let stream = options.json_stream.as_deref().map(Output::stream).transpose()?;
        let report = report.map(Output::promise).transpose()?;
        let mine = [&stream, &report].iter().filter(|output| matches!(output, Some(Output::Stdout))).count();
        if mine + usize::from(stdout_is_taken) > 1 {
            return Err(RealError::StdoutTwice.into());
        }
        let takes_stdout = mine == 1;
        let shared = Shared::default();
        let sites = sites(options, quiet, &shared)?;
        let screenful = if options.ui && !takes_stdout && !stdout_is_taken { Screenful::open() } else { None };
        let has_ui = screenful.is_some();
        let wanted = has_ui || !sites.is_empty() || report.is_some();
        let watching = wanted.then(|| Watching::start(shared, sites, screenful, stop.clone())).transpose()?;
        let stream = stream.map(|output| Writer::start(output, MOST_LINES));
        Ok(Self { stream, report, watching, has_ui, takes_stdout })
    }

    /// Whether a view uses standard output. If so, no other text may be printed there.
    pub(crate) const fn takes_stdout(&self) -> bool {
        self.takes_stdout
    }

    /// Whether the terminal view is active. If so, no lines may be printed.
    pub(crate) const fn has_ui(&self) -> bool {
        self.has_ui
    }

    /// Whether there is any view.
    pub(crate) const fn is_watched(&self) -> bool {
        self.stream.is_some() || self.watching.is_some()
    }

    /// Sends an event to all views.
    pub(crate) fn tell(&self, told: Told) {
        if let Some(stream) = &self.stream {
            stream.line(&told);
        }
        if let Some(watching) = &self.watching
            && watching.post.as_ref().is_none_or(|post| post.try_send(told).is_err())
        {
            watching.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends the results of an interval of a session between hosts to the views. An interval of length zero is ignored.
    pub(crate) fn tell_of_session(&self, series: u64, at_s: f64, interval: &results::Interval) {
        if self.is_watched() {
            let measured = Measured::Session(interval.clone());
            if measured.figures().lasted_s > 0.0 {
                self.tell(Told::Interval(Box::new(Interval { series, at_s, measured })));
            }
        }
    }

    /// Sends the event to the views if a circuit breaker stopped or resumed a session's media.
    pub(crate) fn tell_of_breaker(&self, series: u64, at_s: f64, event: &Event) {
        let breaker = match event {
            Event::CircuitBroken(breaker) => Some(breaker.name()),
            Event::CircuitClosed => None,
            _ => return,
        };
        self.tell(Told::Breaker { series, at_s, breaker });
    }

    /// Ends the views after the run: shows the last state, restores the terminal, and writes the report. The caller
    /// must write its own results even if this function returns an error.
    pub(crate) fn finish(self, at_s: f64) -> Result<(), CliError> {
        let Self { stream, report, watching, .. } = self;
        let over = |dropped| Told::Over { at_s, dropped };
        let mut reported = Ok(());
        if let Some(mut watching) = watching {
            let dropped = watching.shared.dropped.load(Ordering::Relaxed);
            watching.end_with(over(dropped));
            if let Some(report) = report {
                reported = report.fulfil(&watching.shared.with_board(report::html));
            }
        }
        let Some(stream) = stream else { return reported };
        let dropped = stream.inlet().dropped();
        stream.fulfil(&over(dropped)).and(reported)
    }
}

/// Opens the requested servers. If the page and the metrics have the same address, a single server serves both.
fn sites(options: &Viewing, quiet: bool, shared: &Shared) -> Result<Vec<Site>, CliError> {
    let open = |place: &String, page: bool, metrics: bool| {
        let site = Site::open(place, Offers { page, metrics }, shared.clone()).map_err(|source| {
            let place = place.clone();
            RealError::Serve { place, source }
        })?;
        if !quiet {
            say(site.address(), page, metrics);
        }
        warn(site.address());
        Ok::<_, CliError>(site)
    };
    let mut sites = Vec::new();
    match (&options.serve, &options.metrics) {
        (Some(page), Some(metrics)) if page == metrics => sites.push(open(page, true, true)?),
        (page, metrics) => {
            if let Some(place) = page {
                sites.push(open(place, true, false)?);
            }
            if let Some(place) = metrics {
                sites.push(open(place, false, true)?);
            }
        }
    }
    Ok(sites)
}

/// Prints the server's address on standard error, because standard output may be used for results.
fn say(address: SocketAddr, page: bool, metrics: bool) {
    let mut text = String::new();
    // An unspecified address such as 0.0.0.0 is not a valid destination, so the loopback address is printed instead.
    let address = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port()),
        IpAddr::V6(ip) if ip.is_unspecified() => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), address.port()),
        _ => address,
    };
    if page {
        text.push_str(&format!("serving a page at http://{address}/\n"));
    }
    if metrics {
        text.push_str(&format!("serving metrics at http://{address}/metrics\n"));
    }
    // If standard error is closed, the line cannot be printed; this error is ignored.
    let _ = io::Write::write_all(&mut anstream::stderr(), text.as_bytes());
}

/// If other hosts can reach the server, warns that they can read the run's data.
fn warn(address: SocketAddr) {
    if !address.ip().to_canonical().is_loopback() {
        let text =
            format!("warning: anyone who can reach {address} can read this: there is no password and no encryption\n");
        let _ = io::Write::write_all(&mut anstream::stderr(), text.as_bytes());
    }
}

impl Watching {
    fn start(
        shared: Shared,
        sites: Vec<Site>,
        screenful: Option<Screenful>,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, CliError> {
        let (post, queue) = sync_channel(MOST_EVENTS);
        let theirs = shared.clone();
        let body = move || watch(&queue, &theirs, screenful, &stop);
        let failed = |source| RealError::Serve { place: "a thread".to_owned(), source };
        let thread = thread::Builder::new().name("views".to_owned()).spawn(body).map_err(failed)?;
        Ok(Self { post: Some(post), shared, thread: Some(thread), sites })
    }

    /// Sends the last event and closes the channel. If the channel is full, waits at most `PATIENCE` for space. Waiting
    /// does no harm, because the run is over.
    fn end_with(&mut self, mut last: Told) {
        let deadline = Instant::now() + PATIENCE;
        while let Some(post) = &self.post
            && let Err(TrySendError::Full(refused)) = post.try_send(last)
        {
            if Instant::now() > deadline {
                break;
            }
            last = refused;
            thread::sleep(LOOK / 5);
        }
        self.close();
    }

    /// Waits until the views' thread has shown all events and restored the terminal, then closes the servers. If a
    /// stalled terminal blocks the thread for `PATIENCE`, the thread is abandoned.
    fn close(&mut self) {
        self.post = None;
        if let Some(thread) = self.thread.take() {
            let deadline = Instant::now() + PATIENCE;
            while !thread.is_finished() && Instant::now() < deadline {
                thread::sleep(LOOK / 20);
            }
            if thread.is_finished() {
                // If the thread panicked, the error cannot be reported, so it is ignored.
                let _ = thread.join();
            }
        }
        self.sites.clear();
    }
}

/// Dropping the value restores the terminal, so that a later error message is not overwritten by the terminal view.
impl Drop for Watching {
    fn drop(&mut self) {
        self.close();
    }
}

/// The views' thread: passes events to the board and the hub, and draws the terminal view, until the channel is closed.
fn watch(queue: &Receiver<Told>, shared: &Shared, mut screenful: Option<Screenful>, stop: &AtomicBool) {
    yield_to_others();
    // Time of the next totals; `None` after the event `Over`, which must be the last event.
    let mut next_sums = Some(Instant::now() + SUMS);
    let mut next_look = Instant::now();
    loop {
        let first = queue.recv_timeout(LOOK);
        let is_over = matches!(first, Err(RecvTimeoutError::Disconnected));
        let news: Vec<_> = first.ok().into_iter().chain(queue.try_iter()).collect();
        {
            let (mut board, mut hub) = (lock(&shared.board), lock(&shared.hub));
            for told in &news {
                board.take(told);
                if matches!(told, Told::Over { .. }) {
                    next_sums = None;
                    board.sample();
                    hub.tell(board.sums_line().into());
                }
                hub.take(told);
            }
            if next_sums.is_some_and(|next| next <= Instant::now()) {
                next_sums = Some(Instant::now() + SUMS);
                board.sample();
                hub.tell(board.sums_line().into());
            }
        }
        let now = Instant::now();
        if let Some(screenful) = &mut screenful
            && (next_look <= now || is_over)
        {
            next_look = now + LOOK;
            screenful.draw(&shared.board);
            if screenful.is_left() {
                stop.store(true, Ordering::Relaxed);
            }
        }
        if is_over {
            lock(&shared.hub).close();
            return;
        }
        // The pause lets several events arrive, which are then handled together.
        thread::sleep(LOOK / 5);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this test fails, other events may follow the event `Over`. A program that expects `Over` in the last line
    /// then misses the end of the run.
    #[test]
    fn nothing_follows_the_event_that_says_that_the_run_is_over() {
        let shared = Shared::default();
        let (post, queue) = sync_channel(MOST_EVENTS);
        let theirs = shared.clone();
        let thread = thread::spawn(move || watch(&queue, &theirs, None, &AtomicBool::new(false)));
        for told in [samples::start(), Told::Over { at_s: 1.0, dropped: 0 }] {
            post.send(told).expect("the views' thread runs");
        }
        // Totals would be due in this time.
        thread::sleep(SUMS + 2 * LOOK);
        drop(post);
        thread.join().expect("no panic");
        let (lines, _) = shared.follow();
        assert!(lines.last().is_some_and(|line| line.starts_with("{\"event\":\"over\"")), "{lines:?}");
        assert_eq!(lines.iter().filter(|line| line.starts_with("{\"event\":\"sums\"")).count(), 1, "{lines:?}");
    }
}
