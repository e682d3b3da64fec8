use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use equipoise::units::Size;
use equipoise_pair::wire::PairHello;
use equipoise_pair::{Receiver, ReceiverConfig, Sender, SenderConfig};
use equipoise_session::Event;
use nix::poll::{PollFd, PollFlags};

use super::hello::{Link, keep_alive};
use super::listener::{Heard, Opening, PATIENCE};
use super::open::{last, open};
use super::receiving::{Receiving, Shared};
use super::sending::{Sending, Supply};
use super::{PairState, WindowControl};
use crate::socket::wait_readable;
use crate::tcp::{ReceiveWindow, accept, check_congestion_control, failed, listen};
use crate::testbed::Namespace;
use crate::thread::{STOP_CHECK, Worker};
use crate::{Clock, NetError, Observer, Socket, TcpHosts, TestBed, TestHost, Time};

/// The two endpoints of a flow pair between the hosts of a test bed, before the flow is opened.
#[derive(Debug)]
pub struct PairEnds {
    clock: Clock,
    host: TestHost,
    near: Namespace,
    link: Link,
    listener: TcpListener,
    socket: Socket,
    port: u16,
    packet: Size,
    window: ReceiveWindow,
}

/// The configuration of the hosts of a flow pair.
#[derive(Clone, Debug)]
pub struct PairHosts {
    /// The port for TCP and UDP at both hosts. No other program may use this port.
    pub port: u16,
    /// The configuration of the kernel's TCP at both hosts.
    pub tcp: TcpHosts,
    /// Sets TCP's congestion window; `None` if the window cannot be set. With `Some`, TCP uses the congestion control
    /// of the [`WindowControl`] and ignores the congestion control in `tcp`.
    pub window_control: Option<WindowControl>,
}

/// The plan of a flow pair that runs between the hosts of a test bed.
#[derive(Debug)]
pub struct PairPlan {
    /// When the sender connects and starts to send.
    pub start: Time,
    /// Size of the application data units (ADUs). The application always has an ADU to send.
    pub adu: Size,
    /// Configuration of the sender.
    pub near: SenderConfig,
    /// Configuration of the receiver, whose application takes every ADU immediately.
    pub far: ReceiverConfig,
}

/// A running flow pair. If it is still running when this value is dropped, it is stopped.
#[derive(Debug)]
pub struct RunningPair {
    clock: Clock,
    near: Worker<Result<Option<PairState>, NetError>>,
    far: Worker<Result<(), NetError>>,
}

impl PairEnds {
    /// Opens the sockets of the receiving host.
    ///
    /// # Errors
    /// [`NetError::NoCongestionControl`] if the kernel does not have the requested congestion control,
    /// [`NetError::Tcp`] and the errors of [`Socket::bind`] if a socket cannot be opened, and the errors of
    /// [`TestBed::inside`].
    pub fn open(bed: &TestBed, clock: &Clock, hosts: PairHosts) -> Result<Self, NetError> {
        let PairHosts { port, tcp, window_control } = hosts;
        let window_name = window_control.as_ref().map(WindowControl::congestion_control);
        let name = window_name.unwrap_or(&tcp.congestion_control);
        let (host, peer) = (tcp.sender, tcp.sender.peer());
        bed.inside(host.place(), || check_congestion_control(name))?;
        let (packet, window) = (tcp.packet, tcp.window());
        let listener = listen(bed, peer, port, window)?;
        let socket = bed.inside(peer.place(), || Socket::bind((peer.address(), port).into(), clock))?;
        let link = Link {
            congestion_control: Some(tcp.congestion_control),
            window_control,
            local: Some((host.address(), port).into()),
            patience: PATIENCE,
            packet: Some(packet),
        };
        Ok(Self {
            clock: clock.clone(),
            host,
            near: bed.namespace(host.place())?,
            link,
            listener,
            socket,
            port,
            packet,
            window,
        })
    }

    /// The sender's address for TCP and UDP.
    pub const fn sender(&self) -> SocketAddr {
        SocketAddr::new(self.host.address(), self.port)
    }

    /// The receiver's address for TCP and UDP.
    pub const fn receiver(&self) -> SocketAddr {
        SocketAddr::new(self.host.peer().address(), self.port)
    }

    /// Size of the IP packet of a full TCP segment.
    pub const fn packet(&self) -> Size {
        self.packet
    }

    /// Runs a flow pair. `near` observes the sender and `far` the receiver, each on the thread of its endpoint.
    ///
    /// # Errors
    /// [`NetError::Pair`] if a configuration is invalid, and [`NetError::Spawn`] if no thread can be started.
    pub fn run(
        self,
        plan: PairPlan,
        mut near: impl Observer + Send + 'static,
        far: impl Observer + Send + 'static,
    ) -> Result<RunningPair, NetError> {
        let (sender, receiver) = (self.sender(), self.receiver());
        let Self { clock, near: namespace, link, listener, socket, port, window, .. } = self;
        let PairPlan { start, adu, near: near_config, far: far_config } = plan;
        let ssrc = near_config.rtp.stream.ssrc;
        let hello = PairHello { port, ssrc: far_config.rtp.ssrc };
        let (near_end, far_end) = (Sender::new(near_config)?, Receiver::new(far_config)?);
        let door = Door { clock: clock.clone(), listener, hello, sender };
        let far = Worker::spawn("pair far", move |stop| {
            let Some((stream, source)) = door.meet(stop)? else { return Ok(()) };
            let connection = stream.try_clone().map_err(failed("open"))?;
            let observe = Held { connection, window, observer: far };
            let shared = Arc::new(Shared::new()?);
            Receiving::new(far_end, stream, (socket, sender, source), (None, shared), observe).run(stop)
        })?;
        let near_clock = clock.clone();
        let near = Worker::spawn("pair near", move |stop| {
            let clock = near_clock;
            while clock.now() < start {
                if stop.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                clock.sleep_until(start.min(clock.now() + STOP_CHECK));
            }
            let open = namespace.inside(|| open(receiver, &link, &clock, ssrc))?;
            let (state, supply) = (open.state.clone(), Supply::Endless(vec![0; adu.as_bytes() as usize]));
            let observe = move |at: Time, event: &equipoise_pair::Event| {
                event.in_session().into_iter().for_each(|event| near.on_event(at, &event));
            };
            Sending::new(near_end, open, supply, observe).run(stop)?;
            Ok(Some(last(&state)))
        })?;
        Ok(RunningPair { clock, near, far })
    }
}

impl RunningPair {
    /// Whether the sender or the receiver has ended. Before [`stop_sending`](Self::stop_sending), they end only if the
    /// flow pair fails.
    pub fn is_finished(&self) -> bool {
        self.near.is_finished() || self.far.is_finished()
    }

    /// Tells the sender to stop sending. Does not wait until the sender has stopped.
    pub fn stop_sending(&self) {
        self.near.request_stop();
    }

    /// Ends the flow pair as soon as all data in flight has arrived, and no later than `give_up`. Returns the sender's
    /// last state, or `None` if the sender had not started.
    ///
    /// # Errors
    /// The error that ended the flow pair early, if any.
    pub fn stop(self, give_up: Time) -> Result<Option<PairState>, NetError> {
        self.near.request_stop();
        let state = self.near.join()??;
        while state.is_some() && !self.far.is_finished() && self.clock.now() < give_up {
            self.clock.sleep_until(give_up.min(self.clock.now() + STOP_CHECK));
        }
        self.far.request_stop();
        self.far.join()??;
        Ok(state)
    }
}

/// Passes the receiver's events to `observer`. After each read from TCP, limits the connection's receive window again,
/// because the kernel may have replaced the limit.
struct Held<O> {
    connection: TcpStream,
    window: ReceiveWindow,
    observer: O,
}

impl<O: Observer> Observer for Held<O> {
    fn on_event(&mut self, now: Time, event: &Event) {
        self.observer.on_event(now, event);
    }

    fn on_stream(&mut self, now: Time, read: Size) {
        self.window.hold(&self.connection);
        self.observer.on_stream(now, read);
    }
}

/// Accepts the sender's connection at the receiver.
struct Door {
    clock: Clock,
    listener: TcpListener,
    /// The receiver's first message (hello). It answers the sender's first message.
    hello: PairHello,
    sender: SocketAddr,
}

impl Door {
    /// Waits until the sender has connected and both first messages (hellos) are exchanged. Returns the connection and
    /// the SSRC of the sender's packets, or `None` if `stop` is set earlier.
    fn meet(self, stop: &AtomicBool) -> Result<Option<(TcpStream, u32)>, NetError> {
        let mut opening: Option<Opening> = None;
        while !stop.load(Ordering::Relaxed) {
            let heard = opening.as_mut().map_or(Heard::NotYet, Opening::hear);
            match (heard, &opening) {
                (Heard::Pair(PairHello { ssrc, .. }), Some(_)) => return self.answer(opening, ssrc),
                (Heard::Stranger, _) => {
                    return Err(NetError::NoPair { peer: self.sender, said: "no word of a flow pair".to_owned() });
                }
                (_, Some(opening)) => self.wait(&opening.stream)?,
                (_, None) => {
                    opening = accept(&self.listener)?.map(|stream| Opening::new(stream, self.clock.now() + PATIENCE));
                    if opening.is_none() {
                        self.wait(&self.listener)?;
                    }
                }
            }
        }
        Ok(None)
    }

    fn answer(&self, opening: Option<Opening>, ssrc: u32) -> Result<Option<(TcpStream, u32)>, NetError> {
        let Some(Opening { mut stream, .. }) = opening else { return Ok(None) };
        keep_alive(&stream);
        // These few bytes always fit into the send buffer of a new connection.
        stream.write_all(&self.hello.to_bytes()).map_err(failed("send to"))?;
        Ok(Some((stream, ssrc)))
    }

    fn wait(&self, socket: &impl AsFd) -> Result<(), NetError> {
        let until = self.clock.now() + STOP_CHECK;
        wait_readable(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLIN)], &self.clock, until)
    }
}
