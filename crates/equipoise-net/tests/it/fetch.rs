//! Tests of sessions in which a server sends and then disappears, over real sockets.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use equipoise::units::{Rate, Span};
use equipoise_net::{
    Clock, FetchConfig, Key, NetError, Server, ServerConfig, SessionObserver, Socket, Time, Wanted, fetch,
};
use equipoise_session::Event;

/// An observer that ignores all events.
struct Nobody;

impl SessionObserver for Nobody {}

fn socket() -> Socket {
    Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), &Clock::new()).expect("a socket")
}

fn key() -> Key {
    Key::new(b"a secret of this test").expect("long enough")
}

fn server() -> Server<Nobody> {
    let config = ServerConfig { reverse_limit: Rate::from_bps(10_000_000), ..ServerConfig::new(Some(key())) };
    Server::start(socket(), config, Nobody).expect("a server")
}

/// A relay to a server. It can be redirected to another server, or to no server.
struct Way {
    address: SocketAddr,
    to: Arc<Mutex<Option<SocketAddr>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Way {
    fn new(to: SocketAddr) -> Self {
        let [front, back] = [(); 2].map(|()| {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
            socket.set_read_timeout(Some(Duration::from_micros(500))).expect("a timeout");
            socket
        });
        let address = front.local_addr().expect("bound");
        let (to, stop) = (Arc::new(Mutex::new(Some(to))), Arc::new(AtomicBool::new(false)));
        let (leads, stopped) = (to.clone(), stop.clone());
        let thread = thread::spawn(move || {
            let (mut buffer, mut client) = ([0; 2048], None);
            while !stopped.load(Ordering::Relaxed) {
                let to: Option<SocketAddr> = *leads.lock().expect("no panic while looking");
                if let Ok((length, from)) = front.recv_from(&mut buffer) {
                    client = Some(from);
                    to.map(|to| back.send_to(&buffer[..length], to).expect("sent"));
                }
                if let (Ok((length, from)), Some(client)) = (back.recv_from(&mut buffer), client)
                    && Some(from) == to
                {
                    front.send_to(&buffer[..length], client).expect("sent");
                }
            }
        });
        Self { address, to, stop, thread: Some(thread) }
    }

    fn lead(&self, to: Option<SocketAddr>) {
        *self.to.lock().expect("no panic while looking") = to;
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("no panic");
        }
    }
}

/// Opens a session of 400 kbit/s through a relay. After media has arrived, the relay forwards to `elsewhere` instead of
/// the server; with `None`, the relay forwards nothing. Returns the error that ends the session.
fn ended_by(idle: Span, elsewhere: Option<SocketAddr>) -> NetError {
    let server = server();
    let way = Way::new(server.address());
    let rate = Rate::from_bps(400_000);
    let wanted = Wanted::new(rate, rate).expect("right");
    let config = FetchConfig { idle, ..FetchConfig::new(way.address, Some(key()), wanted) };
    let (came, comes) = mpsc::channel();
    let observe = move |_: Time, event: &Event| {
        if let Event::MediaReceived { .. } = event {
            let _ = came.send(());
        }
    };
    let running = fetch(socket(), &config, observe).expect("an open session");
    for _ in 0..5 {
        comes.recv_timeout(Duration::from_secs(10)).expect("media comes");
    }
    way.lead(elsewhere);
    running.join().map(|_| ()).expect_err("nobody ends it")
}

/// If this test fails, a viewer waits forever for a host that has disappeared.
#[test]
fn a_server_that_falls_silent_is_given_up_and_named() {
    let ended = ended_by(Span::from_secs(1), None);
    assert!(matches!(ended, NetError::Silent { waited, .. } if waited == Span::from_secs(1)), "{ended}");
}

/// If this test fails, a session continues after its server was restarted: with a stream that was not requested, or
/// with no stream.
#[test]
fn a_server_that_was_started_again_is_named() {
    let other = server();
    let ended = ended_by(Span::from_secs(30), Some(other.address()));
    assert!(matches!(ended, NetError::StartedAgain { .. }), "{ended}");
}
