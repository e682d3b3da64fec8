use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// How TCP's window comes down to what [`equipoise_pair::tpba::window_after`] says at the beginning of a probing period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowPreset {
    /// It is set, by a [`WindowControl`].
    Set,
    /// The window stays; what leaves in the first round trips is paced to one such window a round trip
    /// (`SO_MAX_PACING_RATE`), which needs no right.
    Paced,
    /// The window stays, and so does the burst: the system refused pacing.
    Kept,
}

impl WindowPreset {
    /// In words, as reports name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Set => "set to what the law says",
            Self::Paced => "paced to the window's rate for the first round trips",
            Self::Kept => "left as it was",
        }
    }
}

/// What becomes of TCP's window while RTP runs (Linux's `net.ipv4.tcp_slow_start_after_idle`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleWindow {
    /// It stays, as Tobe 1999, Sec. 4 wants it.
    Kept,
    /// The host takes it back to its initial window: unless it is [set](WindowPreset::Set) then, TCP begins each probing
    /// period with slow start, up to three quarters of the window that it had. Root may set
    /// `net.ipv4.tcp_slow_start_after_idle` to 0.
    Reset,
}

impl IdleWindow {
    /// In words, as reports name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept over idleness",
            Self::Reset => "reset by the host after idleness (net.ipv4.tcp_slow_start_after_idle is 1)",
        }
    }
}

/// Somebody who can set a TCP connection's congestion window, which Linux lets no application do: a congestion control of
/// one's own, such as `equipoise_kernel::PresetWindow`.
#[derive(Clone)]
pub struct WindowControl {
    congestion_control: String,
    set: Arc<SetWindow>,
}

type SetWindow = dyn Fn(BorrowedFd<'_>, u32) -> io::Result<()> + Send + Sync;

impl WindowControl {
    /// For connections under the congestion control of this name. `set` is given a connection and a window in segments,
    /// which is to hold from the next segment on: at that time nothing is under way.
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
