use std::net::SocketAddr;

use equipoise_path::link::Ecn;

use crate::Time;

/// The longest payload of a UDP datagram over IPv4, in bytes (65 535 minus the IP and UDP headers; RFC 791,
/// Sec. 3.1).
pub(crate) const MAX_PAYLOAD: usize = 65_507;

/// The data about a received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Number of bytes that fitted into the buffer; the rest of the datagram is lost.
    pub len: usize,
    /// The source address of the datagram.
    pub from: SocketAddr,
    /// When the datagram arrived.
    pub at: Time,
    /// The ECN field of the datagram's IP header. It is [`Ecn::NotCapable`] if the system does not report the field.
    pub ecn: Ecn,
}
