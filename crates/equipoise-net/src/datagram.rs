use std::net::SocketAddr;

use equipoise_path::link::Ecn;

use crate::Time;

/// The longest payload of a UDP datagram over IPv4, in bytes (RFC 768: 65 535 less both headers).
pub(crate) const MAX_PAYLOAD: usize = 65_507;

/// A datagram that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Length in bytes of what is in the buffer; what did not fit is lost.
    pub len: usize,
    /// Who sent it.
    pub from: SocketAddr,
    /// When it arrived.
    pub at: Time,
    /// What its IP header said of congestion; [`Ecn::NotCapable`] too where the system does not tell.
    pub ecn: Ecn,
}
