use std::net::SocketAddr;

use equipoise_path::link::Ecn;

use crate::Time;

/// The longest payload of a UDP datagram over IPv4, in bytes (RFC 768: 65 535 less both headers).
pub(crate) const MAX_PAYLOAD: usize = 65_507;

/// A received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Length in bytes of the part that fitted into the buffer; the rest is lost.
    pub len: usize,
    /// Its source.
    pub from: SocketAddr,
    /// When it arrived.
    pub at: Time,
    /// The ECN field of its IP header; [`Ecn::NotCapable`] also if the system does not report it.
    pub ecn: Ecn,
}
