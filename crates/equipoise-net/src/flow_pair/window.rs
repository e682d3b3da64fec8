use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// How TCP's window is reduced to [`equipoise_pair::tpba::window_after`] at the beginning of a probing period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowPreset {
    /// It is set with a [`WindowControl`].
    Set,
    /// The window stays. In the first round trips, sending is paced to one such window per round trip
    /// (`SO_MAX_PACING_RATE`), which needs no privilege.
    Paced,
    /// The window stays, and the burst is sent: the system refused pacing.
    Kept,
}

impl WindowPreset {
    /// The name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Set => "set to what the law says",
            Self::Paced => "paced to the window's rate for the first round trips",
            Self::Kept => "left as it was",
        }
    }
}

/// What happens to TCP's window while RTP runs (Linux's `net.ipv4.tcp_slow_start_after_idle`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleWindow {
    /// It stays, as required by Tobe 1999, Sec. 4.
    Kept,
    /// The host resets it to the initial window. Unless it is [set](WindowPreset::Set) then, TCP begins each probing
    /// period with slow start, up to three quarters of its earlier window. Root may set
    /// `net.ipv4.tcp_slow_start_after_idle` to 0.
    Reset,
}

impl IdleWindow {
    /// The name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept over idleness",
            Self::Reset => "reset by the host after idleness (net.ipv4.tcp_slow_start_after_idle is 1)",
        }
    }
}

/// Sets a TCP connection's congestion window. Linux does not let applications do that, so this needs a special
/// congestion control, such as `equipoise_kernel::PresetWindow`.
#[derive(Clone)]
pub struct WindowControl {
    congestion_control: String,
    set: Arc<SetWindow>,
}

type SetWindow = dyn Fn(BorrowedFd<'_>, u32) -> io::Result<()> + Send + Sync;

impl WindowControl {
    /// A control for connections with the congestion control of this name. `set` is called with a connection and a
    /// window in segments. The window has to apply from the next segment on; no data is in flight at that time.
    pub fn new(
        congestion_control: impl Into<String>,
        set: impl Fn(BorrowedFd<'_>, u32) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self { congestion_control: congestion_control.into(), set: Arc::new(set) }
    }

    /// The name of the congestion control.
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
