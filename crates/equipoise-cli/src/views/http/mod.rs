//! A small HTTP server for the live views. It serves only GET requests, only a few paths, and one request per
//! connection. It limits the memory, threads and time that clients can use.
//!
//! Requests are not trusted, even on the loopback interface: any page in a browser on this host can send them. A
//! request must therefore name this server as its host; another name that resolves to this server's address is refused.
//! Except for the page `/`, which contains no data of the run, a request must not come from another origin. The answer
//! has no header that would let a page of another origin read it. Requests cannot change any state.

mod answer;
mod hosts;
mod request;

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{Shared, metrics};
use answer::{Answer, Page};
use hosts::Hosts;
use request::{Read, Request};

/// Maximum number of connections. There is a limit, because each connection needs a thread. Our choice: enough for some
/// pages and scrapers.
const MOST_CONNECTIONS: usize = 32;
/// Maximum number of pages that receive the run's events. The limit keeps some connections free for other requests.
const MOST_FOLLOWERS: usize = 16;
/// Time limit for receiving a request, and for sending an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Interval at which a waiting thread checks whether it must end.
const LOOK: Duration = Duration::from_millis(100);
/// When the server is dropped, it waits at most this time until the pages have received the last events. Most pages
/// receive these events at once. On a busy machine, the connections' threads may have to wait, because their priority
/// is low.
const FAREWELL: Duration = Duration::from_secs(3);
/// The server sends a line to a page after this time without events, to show that the server is still running.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// What the server offers at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offers {
    pub(crate) page: bool,
    pub(crate) metrics: bool,
}

/// A server and its threads. The server ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct Site {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    followers: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

/// The data that the thread of each connection needs.
#[derive(Clone)]
struct Served {
    offers: Offers,
    hosts: Arc<Hosts>,
    shared: Shared,
    stop: Arc<AtomicBool>,
    connections: Arc<AtomicUsize>,
    followers: Arc<AtomicUsize>,
}

impl Site {
    /// Listens at an address such as `127.0.0.1:8080`, and serves the data of `shared`.
    pub(crate) fn open(place: &str, offers: Offers, shared: Shared) -> io::Result<Self> {
        let mut addresses = place.to_socket_addrs()?;
        let address = addresses.next().ok_or(io::ErrorKind::AddrNotAvailable)?;
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        // `accept` must not block, so that the thread can notice that it must end.
        listener.set_nonblocking(true)?;
        let stop = Arc::new(AtomicBool::new(false));
        let served = Served {
            offers,
            hosts: Arc::new(Hosts::of(place)),
            shared,
            stop: stop.clone(),
            connections: Arc::default(),
            followers: Arc::default(),
        };
        let followers = served.followers.clone();
        let thread = thread::Builder::new().name("http".to_owned()).spawn(move || listen(&listener, &served))?;
        Ok(Self { address, stop, followers, thread: Some(thread) })
    }

    /// Returns the server's address, with the port that it actually uses.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, the error cannot be reported, so it is ignored.
            let _ = thread.join();
        }
        // A page that does not read must not delay the end for longer than `FAREWELL`.
        let deadline = Instant::now() + FAREWELL;
        while self.followers.load(Ordering::Relaxed) > 0 && Instant::now() < deadline {
            thread::sleep(LOOK / 10);
        }
    }
}

fn listen(listener: &TcpListener, served: &Served) {
    super::yield_to_others();
    while !served.stop.load(Ordering::Relaxed) {
        let Ok((stream, _)) = listener.accept() else {
            // No connection is pending, or accepting failed, for example because no file descriptor is free. The thread
            // waits and tries again.
            thread::sleep(LOOK / 4);
            continue;
        };
        let Some(place) = Place::taken(&served.connections, MOST_CONNECTIONS) else {
            // The request is not read, so that a client that connects very often costs little.
            let _ = stream.set_nonblocking(true);
            let _ = (&stream).write(&Answer::BUSY.whole());
            continue;
        };
        let served = served.clone();
        let body = move || {
            let _place = place;
            super::yield_to_others();
            // The error is ignored, because it means only that the client has disconnected or does not read.
            let _ = serve(&stream, &served);
        };
        if thread::Builder::new().name("http client".to_owned()).spawn(body).is_err() {
            thread::sleep(LOOK);
        }
    }
}

/// A slot for a connection. The number of slots is limited. When this value is dropped, the slot is free for another
/// client.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn taken(count: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let more = |now: usize| (now < most).then_some(now + 1);
        count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Self(count.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn serve(stream: &TcpStream, served: &Served) -> io::Result<()> {
    // A socket that was accepted from a non-blocking listener may itself be non-blocking.
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; request::MOST];
    let answer = match read(stream, &mut buffer)? {
        Some(Read::Whole(request)) => answer(&request, stream.local_addr()?, served),
        Some(Read::Wrong(answer)) => answer,
        None => return Ok(()),
    };
    match answer {
        Answer::Follow => follow(stream, served),
        answer => {
            send(stream, &answer.whole())?;
            close(stream)
        }
    }
}

/// Sends all `bytes`. Returns an error if this takes longer than [`PATIENCE`].
fn send(mut stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !bytes.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(taken) => bytes = bytes.get(taken..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads a request. Returns `None` if the client disconnects before the request is complete.
fn read<'a>(mut stream: &TcpStream, buffer: &'a mut [u8]) -> io::Result<Option<Read<'a>>> {
    let deadline = Instant::now() + PATIENCE;
    let mut length = 0;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Some(Read::Wrong(Answer::LATE)));
        }
        stream.set_read_timeout(Some(left))?;
        let room = buffer.get_mut(length..).unwrap_or_default();
        if room.is_empty() {
            return Ok(Some(Read::Wrong(Answer::TOO_LARGE)));
        }
        match stream.read(room) {
            Ok(0) => return Ok(None),
            Ok(more) => length += more,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if request::is_whole(buffer.get(..length).unwrap_or_default()) {
            return Ok(Some(request::parse(buffer.get(..length).unwrap_or_default())));
        }
    }
}

/// Returns the response to a request.
fn answer(request: &Request<'_>, local: SocketAddr, served: &Served) -> Answer {
    if !served.hosts.is_ours(request.host, local) {
        return Answer::FOREIGN_HOST;
    }
    if !request.is_from_here() {
        return Answer::FOREIGN_ORIGIN;
    }
    match request.path {
        "/" if served.offers.page => Answer::Page(Page::Html),
        "/live.css" if served.offers.page => Answer::Page(Page::Style),
        "/live.js" if served.offers.page => Answer::Page(Page::Script),
        "/events" if served.offers.page => Answer::Follow,
        "/metrics" if served.offers.metrics => Answer::Metrics(served.shared.with_board(metrics::text)),
        _ => Answer::NOT_FOUND,
    }
}

/// Sends the run's events to a page as server-sent events. A page that does not read is disconnected. It may connect
/// again.
fn follow(stream: &TcpStream, served: &Served) -> io::Result<()> {
    let Some(_place) = Place::taken(&served.followers, MOST_FOLLOWERS) else {
        send(stream, &Answer::BUSY.whole())?;
        return close(stream);
    };
    let (so_far, news) = served.shared.follow();
    send(stream, &Answer::Follow.whole())?;
    let mut text = String::from("retry: 1000\n\n");
    for line in so_far {
        push(&mut text, &line);
    }
    let mut last = Instant::now();
    loop {
        if !text.is_empty() {
            send(stream, text.as_bytes())?;
            text.clear();
            last = Instant::now();
        }
        match news.recv_timeout(LOOK) {
            Ok(line) => {
                push(&mut text, &line);
                // All lines that are already in the queue are sent together.
                for line in news.try_iter() {
                    push(&mut text, &line);
                }
            }
            // The server must end. The run's last events may have been put into the queue after the timeout, so they
            // are sent before the connection is closed.
            Err(RecvTimeoutError::Timeout) if served.stop.load(Ordering::Acquire) => {
                for line in news.try_iter() {
                    push(&mut text, &line);
                }
                send(stream, text.as_bytes())?;
                return close(stream);
            }
            Err(RecvTimeoutError::Timeout) if last.elapsed() > HEARTBEAT => text.push_str(": still here\n\n"),
            Err(RecvTimeoutError::Timeout) => {}
            // Either the run is over, or the page was disconnected because it did not read fast enough.
            Err(RecvTimeoutError::Disconnected) => return close(stream),
        }
    }
}

fn push(text: &mut String, line: &str) {
    text.push_str("data: ");
    text.push_str(line);
    text.push_str("\n\n");
}

/// Ends the connection. Input that still arrives is read for a short time, because closing a socket with unread input
/// makes the system discard data that was written but not yet sent.
fn close(mut stream: &TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(LOOK))?;
    let mut rest = [0; 1024];
    let deadline = Instant::now() + LOOK;
    while Instant::now() < deadline && stream.read(&mut rest).is_ok_and(|count| count > 0) {}
    Ok(())
}

#[cfg(test)]
mod tests;
