use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd as _;

use equipoise::units::{Size, Span};
use equipoise_pair::{TcpRequest, TcpState};
use nix::poll::{PollFd, PollFlags};
use nix::sys::socket::{SetSockOpt as _, getsockopt, sockopt};
use socket2::SockRef;

use super::pacing::{MaxPacingRate, UNLIMITED};
use super::{IdleWindow, WindowControl, WindowPreset};
use crate::tcp::diagnosis::{Diagnosis, Progress};
use crate::tcp::{failed, is_gone};
use crate::{NetError, Time};

/// Number of round-trip times for which TCP is paced. Our choice: after this time, arriving acknowledgements determine
/// when TCP sends.
const PACED_ROUND_TRIPS: i64 = 4;
/// The file that contains 0 if the host keeps TCP's congestion window after an idle time.
const AFTER_IDLE: &str = "/proc/sys/net/ipv4/tcp_slow_start_after_idle";
/// Maximum number of received bytes that one call of `listen` discards. A correct receiver sends no data over TCP after
/// its first message.
const JUNK: usize = 4096;

/// The TCP connection of the sender of a flow pair.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    diagnosis: Diagnosis,
    /// Total length of the IP and TCP headers without options, in bytes.
    headers: u64,
    last: Progress,
    /// Number of reductions of the congestion window so far.
    reductions: u64,
    /// The last value of the socket option `TCP_NOTSENT_LOWAT`, in bytes; `None` if it was never set.
    awaited: Option<u64>,
    preset: WindowPreset,
    /// Sets TCP's congestion window; `None` if not configured. Used only if `preset` is [`WindowPreset::Set`].
    control: Option<WindowControl>,
    /// When pacing ends; `None` if TCP is not paced.
    paced_until: Option<Time>,
}

/// The result of a read or write.
pub(super) enum Moved {
    Bytes(usize),
    /// The operation is not possible now, and must be tried again later.
    Later,
    /// The peer has closed the connection, or the connection is lost.
    Gone,
}

impl Connection {
    /// Wraps a TCP connection, which must be non-blocking.
    pub(super) fn new(stream: TcpStream, control: Option<WindowControl>) -> Result<Self, NetError> {
        let (local, peer) = (stream.local_addr().map_err(failed("open"))?, stream.peer_addr().map_err(failed("open"))?);
        let headers = if peer.is_ipv4() { 40 } else { 60 };
        // A window of 0 removes a preset window. Because no window is preset yet, this call changes nothing, but it
        // shows whether this process may set windows.
        let can_set = |control: &WindowControl| control.set(stream.as_fd(), 0).is_ok();
        let preset = match (&control, MaxPacingRate.set(&stream, &UNLIMITED)) {
            (Some(control), _) if can_set(control) => WindowPreset::Set,
            (_, Ok(())) => WindowPreset::Paced,
            (_, Err(_)) => WindowPreset::Kept,
        };
        let (diagnosis, last) = (Diagnosis::open(local, peer)?, Progress::default());
        Ok(Self { stream, diagnosis, headers, last, reductions: 0, awaited: None, preset, control, paced_until: None })
    }

    pub(super) const fn preset(&self) -> WindowPreset {
        self.preset
    }

    /// The name of the connection's congestion control.
    pub(super) fn congestion_control(&self) -> String {
        let name = getsockopt(&self.stream, sockopt::TcpCongestion).unwrap_or_default();
        name.to_string_lossy().trim_end_matches('\0').to_owned()
    }

    /// The state of the connection; `None` if the kernel no longer has this connection.
    pub(super) fn look(&mut self) -> Result<Option<TcpState>, NetError> {
        let Some(found) = self.diagnosis.progress()? else { return Ok(None) };
        let lost = found.is_reducing || found.retransmissions != self.last.retransmissions;
        // A change of the slow start threshold without a loss is not a reduction: the kernel also changes the threshold
        // after an idle time.
        self.reductions += u64::from(found.threshold != self.last.threshold && lost);
        self.last = found;
        // TCP timestamps take 12 bytes, including padding (RFC 7323, App. A).
        let options = if found.has_timestamps { 12 } else { 0 };
        Ok(Some(TcpState {
            acknowledged: found.acknowledged,
            unsent: found.unsent.into(),
            window: Size::from_bytes(u64::from(found.window) * u64::from(found.segment)),
            segment: Size::from_bytes(found.segment.into()),
            header: Size::from_bytes(self.headers + options),
            reductions: self.reductions,
        }))
    }

    /// Writes bytes to the connection.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<Moved, NetError> {
        moved(self.stream.write(bytes), "send to")
    }

    /// Checks whether the peer is still connected. A correct peer sends no data, so received bytes are discarded.
    pub(super) fn listen(&mut self) -> Result<Moved, NetError> {
        let mut junk = [0; JUNK];
        Ok(match moved(self.stream.read(&mut junk), "receive from")? {
            Moved::Bytes(0) => Moved::Gone,
            moved => moved,
        })
    }

    /// Performs a request of the flow pair at `now`.
    pub(super) fn obey(&mut self, now: Time, request: TcpRequest) -> Result<(), NetError> {
        match request {
            TcpRequest::NoDelay(on) => self.stream.set_nodelay(on).map_err(failed("set TCP_NODELAY of")),
            TcpRequest::Window(window) => {
                self.preset_window(now, window);
                Ok(())
            }
            TcpRequest::Finish => match self.stream.shutdown(Shutdown::Write) {
                Err(error) if error.kind() == ErrorKind::NotConnected => Ok(()),
                ended => ended.map_err(failed("close")),
            },
        }
    }

    /// Reduces TCP's congestion window to `window`, or paces TCP instead. If the host permits neither, does nothing.
    fn preset_window(&mut self, now: Time, window: Size) {
        match self.preset {
            WindowPreset::Set => {
                let segments = window.as_bytes() / u64::from(self.last.segment.max(1));
                let segments = u32::try_from(segments).unwrap_or(u32::MAX).max(1);
                // Setting a window succeeded when the connection was opened, so no error is expected.
                let _ = self.control.as_ref().map(|control| control.set(self.stream.as_fd(), segments));
            }
            WindowPreset::Paced => self.pace(now, window),
            WindowPreset::Kept => {}
        }
    }

    /// Paces TCP to one `window` per round-trip time, for the next [`PACED_ROUND_TRIPS`] round-trip times.
    fn pace(&mut self, now: Time, window: Size) {
        let round_trip = self.last.round_trip;
        if round_trip <= Span::ZERO {
            return;
        }
        let rate = window.as_bytes() as f64 / round_trip.as_secs_f64();
        // The option `SO_MAX_PACING_RATE` has 32 bits. Its largest value, `UNLIMITED`, means no pacing.
        let rate = (rate as u32).clamp(1, UNLIMITED);
        self.paced_until = MaxPacingRate.set(&self.stream, &rate).ok().map(|()| now + round_trip * PACED_ROUND_TRIPS);
    }

    /// When pacing ends; `None` if TCP is not paced.
    pub(super) const fn paced_until(&self) -> Option<Time> {
        self.paced_until
    }

    /// Ends pacing if its end time has passed.
    pub(super) fn lift(&mut self, now: Time) {
        if self.paced_until.is_some_and(|until| until <= now) {
            // Setting this option succeeded before, so no error is expected.
            let _ = MaxPacingRate.set(&self.stream, &UNLIMITED);
            self.paced_until = None;
        }
    }

    /// Returns the events to wait for. The first event is that the peer has sent data or ended the stream. If `awaited`
    /// is set, the second event is that TCP has fewer than `awaited / 2` unsent bytes.
    pub(super) fn poll(&mut self, awaited: Option<u64>) -> PollFd<'_> {
        if awaited.is_some() && awaited != self.awaited {
            let least = u32::try_from(awaited.unwrap_or(0)).unwrap_or(u32::MAX).clamp(1, i32::MAX as u32);
            // If this option cannot be set, the flow pair detects only at its next periodic check that few bytes are
            // unsent.
            let _ = SockRef::from(&self.stream).set_tcp_notsent_lowat(least);
            self.awaited = awaited;
        }
        let room = if awaited.is_some() { PollFlags::POLLOUT } else { PollFlags::empty() };
        PollFd::new(self.stream.as_fd(), PollFlags::POLLIN | room)
    }
}

pub(super) fn moved(result: std::io::Result<usize>, what: &'static str) -> Result<Moved, NetError> {
    match result {
        Ok(bytes) => Ok(Moved::Bytes(bytes)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(Moved::Later),
        Err(error) if is_gone(error.kind()) => Ok(Moved::Gone),
        Err(source) => Err(failed(what)(source)),
    }
}

/// Whether this host keeps or resets TCP's congestion window after an idle time.
pub(super) fn idle_window() -> IdleWindow {
    match fs::read_to_string(AFTER_IDLE) {
        Ok(text) if text.trim() == "0" => IdleWindow::Kept,
        // The kernel's default. It is also assumed if the file cannot be read.
        _ => IdleWindow::Reset,
    }
}

/// The same IP address with another port.
pub(super) fn at_port(address: SocketAddr, port: u16) -> SocketAddr {
    let mut address = address;
    address.set_port(port);
    address
}
