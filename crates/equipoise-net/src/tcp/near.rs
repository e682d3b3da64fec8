use std::io::ErrorKind;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use equipoise::units::{Size, Span};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use socket2::Socket;

use super::diagnosis::Diagnosis;
use super::plan::{TcpPlan, TcpSupply};
use super::socket::failed;
use super::state::TcpState;
use crate::socket::wait_readable;
use crate::thread::STOP_CHECK;
use crate::{Clock, NetError, Time};

/// Maximum number of bytes per write. Our choice: about 0.5 ms of data at 1 Gbit/s.
pub(super) const WRITE: usize = 64 << 10;
pub(super) static ZEROS: [u8; WRITE] = [0; WRITE];

/// Time between two writes if the application sends at a given rate, and between two checks whether a transfer is
/// complete. Our choice: much shorter than any round-trip time of interest.
pub(super) const TICK: Span = Span::from_millis(1);

/// The socket of the sending application, and the data of the socket's TCP connection.
#[derive(Debug)]
pub(super) struct NearEnd {
    pub(super) socket: Socket,
    pub(super) diagnosis: Diagnosis,
    pub(super) receiver: SocketAddr,
    /// Number of data bytes in a full segment.
    pub(super) segment: u64,
}

/// The sending application of a TCP connection.
pub(super) struct Near<O> {
    clock: Clock,
    end: NearEnd,
    plan: TcpPlan,
    phase: Phase,
    written: u64,
    next_look: Time,
    state: TcpState,
    delivered: Arc<AtomicU64>,
    observe: O,
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    /// The connection is not opened yet.
    Early,
    /// The connection accepts data, or will accept data when it is established.
    Open,
    /// The application has sent its last data.
    Over,
}

impl<O: FnMut(Time, &TcpState)> Near<O> {
    pub(super) fn new(clock: Clock, end: NearEnd, plan: TcpPlan, delivered: Arc<AtomicU64>, observe: O) -> Self {
        let next_look = plan.origin + plan.sample_interval.max(TICK);
        let state = TcpState::default();
        Self { clock, end, plan, phase: Phase::Early, written: 0, next_look, state, delivered, observe }
    }

    /// Sends until `stop` is set. Then takes the samples that are due.
    pub(super) fn run(mut self, stop: &AtomicBool) -> Result<(), NetError> {
        while !stop.load(Ordering::Relaxed) {
            let now = self.clock.now();
            self.look_until(now)?;
            let blocked = match self.phase {
                Phase::Early if now >= self.plan.start => self.connect()?,
                Phase::Open if self.plan.stop.is_some_and(|stop| now >= stop) => self.end()?,
                Phase::Open => self.write(now)?,
                Phase::Early | Phase::Over => false,
            };
            self.wait(now, blocked)?;
        }
        self.look_until(self.clock.now())
    }

    /// Opens the connection. Returns whether the caller must wait until the socket is writable.
    fn connect(&mut self) -> Result<bool, NetError> {
        self.phase = Phase::Open;
        match self.end.socket.connect(&self.end.receiver.into()) {
            Ok(()) => Ok(false),
            Err(error) if error.raw_os_error() == Some(Errno::EINPROGRESS as i32) => Ok(true),
            Err(source) => Err(failed("connect")(source)),
        }
    }

    fn end(&mut self) -> Result<bool, NetError> {
        self.phase = Phase::Over;
        match self.end.socket.shutdown(Shutdown::Write) {
            // The connection was never established, for example because the path lost too many packets.
            Err(error) if error.kind() == ErrorKind::NotConnected => Ok(false),
            ended => ended.map(|()| false).map_err(failed("close")),
        }
    }

    /// Writes the available data as far as the kernel accepts it. Returns true if the kernel refused a part of the
    /// data.
    fn write(&mut self, now: Time) -> Result<bool, NetError> {
        let supplied = self.supplied(now);
        while self.written < supplied && self.clock.now() < self.next_look {
            let length = usize::try_from(supplied - self.written).unwrap_or(WRITE).min(WRITE);
            match self.end.socket.send(&ZEROS[..length]) {
                Ok(length) => self.written += length as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(failed("send to")(source)),
            }
        }
        self.finish()?;
        Ok(false)
    }

    /// Number of bytes that the application has supplied until `now`. If the supply is a rate, only full segments
    /// count.
    fn supplied(&self, now: Time) -> u64 {
        match &self.plan.supply {
            TcpSupply::Unlimited => u64::MAX,
            TcpSupply::Transfer(data) => data.as_bytes(),
            TcpSupply::Rate(rate) => {
                let bytes = (rate.as_bps_f64() / 8.0 * (now - self.plan.start).as_secs_f64()) as u64;
                bytes - bytes % self.end.segment.max(1)
            }
            TcpSupply::Content(content) => content.ready(now - self.plan.start).saturating_mul(self.end.segment),
        }
    }

    /// Records the time at which all data of a finite transfer is acknowledged.
    fn finish(&mut self) -> Result<(), NetError> {
        let all = match &self.plan.supply {
            TcpSupply::Unlimited | TcpSupply::Rate(_) => return Ok(()),
            TcpSupply::Transfer(data) => data.as_bytes(),
            TcpSupply::Content(content) => content.packets().saturating_mul(self.end.segment),
        };
        if self.state.finished.is_none() && self.written >= all && self.end.diagnosis.is_all_acknowledged()? {
            self.state.finished = Some(self.clock.now());
            self.phase = Phase::Over;
        }
        Ok(())
    }

    /// Reports the state of the connection for all sample times up to `now` that were not reported before.
    fn look_until(&mut self, now: Time) -> Result<(), NetError> {
        while self.next_look <= now {
            if self.phase != Phase::Early {
                // If the kernel no longer has the connection, the last state is reported again.
                if let Some(found) = self.end.diagnosis.look()? {
                    self.state = TcpState { finished: self.state.finished, ..found };
                }
            }
            self.state.delivered = Size::from_bytes(self.delivered.load(Ordering::Relaxed));
            (self.observe)(self.next_look, &self.state);
            self.next_look = self.next_look + self.plan.sample_interval.max(TICK);
        }
        Ok(())
    }

    /// Waits until the next action is due or, if `blocked`, until the socket is writable.
    fn wait(&mut self, now: Time, blocked: bool) -> Result<(), NetError> {
        let mut until = self.next_look.min(now + STOP_CHECK);
        match self.phase {
            Phase::Early => until = until.min(self.plan.start),
            Phase::Open if blocked => until = self.plan.stop.map_or(until, |stop| until.min(stop)),
            // The thread wakes every millisecond, to send at a rate or to detect that the last data is acknowledged.
            Phase::Open => until = until.min(now + TICK),
            Phase::Over => {}
        }
        if blocked {
            return wait_readable(&mut [PollFd::new(self.end.socket.as_fd(), PollFlags::POLLOUT)], &self.clock, until);
        }
        self.clock.sleep_until(until);
        Ok(())
    }
}
