use equipoise::units::Size;

use super::listen::ReceiveWindow;
use super::socket::HEADERS;
use crate::TestHost;

/// Size of the TCP timestamp option with padding (RFC 7323, App. A). The kernel adds this option to every segment.
const TIMESTAMPS: Size = Size::from_bytes(12);

/// The configuration of the two hosts of a kernel TCP connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpHosts {
    /// The host that sends.
    pub sender: TestHost,
    /// The name of the sender's congestion control.
    pub congestion_control: String,
    /// Size of an IP packet that contains a full segment.
    pub packet: Size,
    /// The receiver's maximum window in full segments; `None` for the default of the host.
    pub receive_window: Option<u64>,
}

impl TcpHosts {
    /// Number of data bytes in a full segment.
    pub(super) fn segment(&self) -> Size {
        self.packet - HEADERS - TIMESTAMPS
    }

    /// The receiver's maximum window in bytes.
    pub(crate) fn window(&self) -> ReceiveWindow {
        let bytes = |segments: u64| Size::from_bytes(self.segment().as_bytes().saturating_mul(segments));
        ReceiveWindow(self.receive_window.map(bytes))
    }
}
