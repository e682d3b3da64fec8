use equipoise::units::Size;

use super::listen::ReceiveWindow;
use super::socket::HEADERS;
use crate::TestHost;

/// The timestamps that the kernel puts into every segment, padded (RFC 7323, App. A).
const TIMESTAMPS: Size = Size::from_bytes(12);

/// The kernel's hosts of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpHosts {
    /// The host that sends.
    pub sender: TestHost,
    /// The sender's congestion control, by its name.
    pub congestion_control: String,
    /// Size of the sender's IP packets with full segments.
    pub packet: Size,
    /// Full segments that the receiver's window has room for, at most; `None` for what the host gives.
    pub receive_window: Option<u64>,
}

impl TcpHosts {
    /// Data of a full segment.
    pub(super) fn segment(&self) -> Size {
        self.packet - HEADERS - TIMESTAMPS
    }

    /// The receiver's window in bytes.
    pub(crate) fn window(&self) -> ReceiveWindow {
        let bytes = |segments: u64| Size::from_bytes(self.segment().as_bytes().saturating_mul(segments));
        ReceiveWindow(self.receive_window.map(bytes))
    }
}
