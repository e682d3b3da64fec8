use std::io::{ErrorKind, Read as _};
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};

use equipoise::units::Size;
use equipoise_path::source::{Fetch, Web};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use socket2::Socket;

use super::{Request, Shared, WebLook, WebPlan};
use crate::socket::wait_readable;
use crate::tcp::diagnosis::Diagnosis;
use crate::tcp::near::{TICK, WRITE, ZEROS};
use crate::tcp::socket::{failed, is_gone, near_socket};
use crate::tcp::{TcpHosts, TcpState};
use crate::thread::STOP_CHECK;
use crate::{Clock, HostClock, NetError, Time};

/// The sending application of web traffic.
pub(super) struct Near<O> {
    clock: Clock,
    hosts: TcpHosts,
    receiver: SocketAddr,
    web: Web<HostClock>,
    plan: WebPlan,
    shared: Shared,
    open: Vec<Connection>,
    begun: u64,
    /// Sums of the counters of all closed connections.
    closed: TcpState,
    next_look: Time,
    observe: O,
}

struct Connection {
    /// The number of the connection, from [`Fetch::connection`].
    place: usize,
    port: u16,
    socket: Socket,
    diagnosis: Diagnosis,
    /// Number of bytes that are still to be written.
    unwritten: u64,
    /// The last state of the connection that the kernel has reported.
    state: TcpState,
}

impl<O: FnMut(Time, &WebLook<'_>)> Near<O> {
    pub(super) fn new(
        clock: Clock,
        (hosts, receiver): (TcpHosts, SocketAddr),
        (web, plan): (Web<HostClock>, WebPlan),
        shared: Shared,
        observe: O,
    ) -> Self {
        let next_look = plan.origin + plan.sample_interval.max(TICK);
        let closed = TcpState { timeouts: Some(0), ..TcpState::default() };
        Self { clock, hosts, receiver, web, plan, shared, open: Vec::new(), begun: 0, closed, next_look, observe }
    }

    /// Opens connections and writes their data until `stop` is set. Then takes the samples that are due.
    pub(super) fn run(mut self, stop: &AtomicBool) -> Result<(), NetError> {
        while !stop.load(Ordering::Relaxed) {
            let now = self.clock.now();
            self.look_until(now)?;
            if self.plan.stop.is_some_and(|stop| stop <= now) {
                self.plan.stop = None;
                self.web.stop();
            }
            while let Some(fetch) = self.web.begin(now) {
                self.begin(now, &fetch)?;
            }
            self.serve()?;
            self.wait(now)?;
        }
        self.look_until(self.clock.now())
    }

    /// Opens a connection for a fetch.
    fn begin(&mut self, now: Time, fetch: &Fetch) -> Result<(), NetError> {
        let Fetch { connection: place, size, .. } = *fetch;
        let (socket, sender) = near_socket(&self.hosts)?;
        let diagnosis = Diagnosis::open(sender, self.receiver)?;
        let (port, unwritten) = (sender.port(), size.as_bytes());
        // Record the fetch before its connection is opened. The receiver's thread looks for the fetch when it accepts
        // the connection.
        self.shared.lock().open.insert(port, Request { opened: now, size });
        match socket.connect(&self.receiver.into()) {
            Err(source) if source.raw_os_error() != Some(Errno::EINPROGRESS as i32) => {
                return Err(failed("connect")(source));
            }
            _ => {}
        }
        self.open.push(Connection { place, port, socket, diagnosis, unwritten, state: TcpState::default() });
        self.begun += 1;
        Ok(())
    }

    /// Writes the data of all connections as far as the kernel accepts it, and closes the connections that the receiver
    /// has closed.
    fn serve(&mut self) -> Result<(), NetError> {
        let mut at = 0;
        while let Some(connection) = self.open.get_mut(at) {
            if connection.serve()? {
                at += 1;
                continue;
            }
            connection.look()?;
            let Connection { place, port, state, .. } = self.open.swap_remove(at);
            self.shared.lock().open.remove(&port);
            self.closed = with(&self.closed, &state);
            self.web.complete(self.clock.now(), place);
        }
        Ok(())
    }

    /// Reports the state of the web traffic for all sample times that have passed by `now`.
    fn look_until(&mut self, now: Time) -> Result<(), NetError> {
        while self.next_look <= now {
            let mut sum = self.closed;
            for connection in &mut self.open {
                connection.look()?;
                let state = &connection.state;
                sum = with(&sum, state);
                sum.window = sum.window.saturating_add(state.window);
                sum.in_flight = sum.in_flight.saturating_add(state.in_flight);
            }
            sum.delivered = Size::from_bytes(self.shared.delivered.load(Ordering::Relaxed));
            let fetched = std::mem::take(&mut self.shared.lock().fetched);
            let time_on = self.web.time_on(now);
            let look = WebLook { tcp: &sum, begun: self.begun, time_on, fetched: &fetched };
            (self.observe)(self.next_look, &look);
            self.next_look = self.next_look + self.plan.sample_interval.max(TICK);
        }
        Ok(())
    }

    /// Waits until the next action is due or a connection is ready.
    fn wait(&self, now: Time) -> Result<(), NetError> {
        let times = [Some(self.next_look), self.web.next_burst(), self.plan.stop];
        let until = times.into_iter().flatten().fold(now + STOP_CHECK, Time::min);
        let waits_for = |connection: &Connection| match connection.unwritten {
            0 => PollFlags::POLLIN,
            _ => PollFlags::POLLIN | PollFlags::POLLOUT,
        };
        let sockets = self.open.iter().map(|open| PollFd::new(open.socket.as_fd(), waits_for(open)));
        wait_readable(&mut sockets.collect::<Vec<_>>(), &self.clock, until)
    }
}

impl Connection {
    /// Writes data as far as the kernel accepts it. Returns whether the connection is still open.
    fn serve(&mut self) -> Result<bool, NetError> {
        while self.unwritten > 0 {
            let length = usize::try_from(self.unwritten).unwrap_or(WRITE).min(WRITE);
            match self.socket.send(&ZEROS[..length]) {
                Ok(length) => self.unwritten -= length as u64,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if is_gone(error.kind()) => return Ok(false),
                Err(source) => return Err(failed("send to")(source)),
            }
        }
        // The receiver sends no data. When the receiver has received all data, it closes the connection.
        match self.socket.read(&mut [0]) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(true),
            Ok(1..) => Ok(true),
            Ok(0) => Ok(false),
            Err(error) if is_gone(error.kind()) => Ok(false),
            Err(source) => Err(failed("receive from")(source)),
        }
    }

    fn look(&mut self) -> Result<(), NetError> {
        // If the kernel no longer has the connection, the last state is used again.
        if let Some(found) = self.diagnosis.look()? {
            self.state = found;
        }
        Ok(())
    }
}

/// Adds the counters of a connection to a sum. The result has the smaller of the two minimum round-trip times.
fn with(sum: &TcpState, more: &TcpState) -> TcpState {
    TcpState {
        sent: sum.sent + more.sent,
        retransmissions: sum.retransmissions + more.retransmissions,
        timeouts: sum.timeouts.zip(more.timeouts).map(|(sum, more)| sum + more),
        min_round_trip: sum.min_round_trip.into_iter().chain(more.min_round_trip).min(),
        ..*sum
    }
}
