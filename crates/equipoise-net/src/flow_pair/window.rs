use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// How TCP is limited to the reduced window [`equipoise_pair::tpba::window_after`] at the beginning of a probing
/// period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowPreset {
    /// The window is set with a [`WindowControl`].
    Set,
    /// TCP's window is not changed. Instead, in each of the first four round-trip times, TCP is paced
    /// (`SO_MAX_PACING_RATE`) so that it sends as much data as the reduced window allows. This needs no privilege.
    Paced,
    /// The window is not changed, and TCP may send a burst: the system refused pacing.
    Kept,
}

impl WindowPreset {
    /// The description used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Set => "set to what the law says",
            Self::Paced => "paced to the window's rate for the first round trips",
            Self::Kept => "left as it was",
        }
    }
}

/// What happens to TCP's congestion window while RTP is used (Linux's `net.ipv4.tcp_slow_start_after_idle`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleWindow {
    /// The window stays, as required by Tobe 1999, Sec. 4.
    Kept,
    /// While TCP is idle, the host halves the window once per retransmission timeout, down to the initial window. TCP
    /// then begins each probing period with slow start, unless the window is [set](WindowPreset::Set). Without losses,
    /// slow start continues to at least three quarters of the earlier window. To avoid the reset, root may set
    /// `net.ipv4.tcp_slow_start_after_idle` to 0.
    Reset,
}

impl IdleWindow {
    /// The description used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept over idleness",
            Self::Reset => "reset by the host after idleness (net.ipv4.tcp_slow_start_after_idle is 1)",
        }
    }
}

/// Sets the congestion window of a TCP connection. Linux does not permit applications to do this, so a special
/// congestion control is necessary, such as `equipoise_kernel::PresetWindow`.
#[derive(Clone)]
pub struct WindowControl {
    congestion_control: String,
    set: Arc<SetWindow>,
}

type SetWindow = dyn Fn(BorrowedFd<'_>, u32) -> io::Result<()> + Send + Sync;

impl WindowControl {
    /// A control for connections that use the given congestion control. `set` is called with a connection and a window
    /// in segments. The window must apply from the next segment on. If `set` is called with a window of 0, it must
    /// discard the previous window of the connection, unless that window already applies.
    pub fn new(
        congestion_control: impl Into<String>,
        set: impl Fn(BorrowedFd<'_>, u32) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self { congestion_control: congestion_control.into(), set: Arc::new(set) }
    }

    /// The name of the congestion control that connections must use.
    pub fn congestion_control(&self) -> &str {
        &self.congestion_control
    }

    pub(super) fn set(&self, connection: BorrowedFd<'_>, segments: u32) -> io::Result<()> {
        (self.set)(connection, segments)
    }
}

impl fmt::Debug for WindowControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowControl").field("congestion_control", &self.congestion_control).finish_non_exhaustive()
    }
}
