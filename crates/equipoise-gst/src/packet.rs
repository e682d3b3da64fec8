use gst_rtp::RTPBuffer;

/// The properties of an RTP packet that the control loop needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PacketInfo {
    /// Size of the payload in bytes.
    pub(crate) payload: u32,
    /// Size of the whole packet in bytes.
    pub(crate) whole: u32,
    pub(crate) ssrc: u32,
    pub(crate) timestamp: u32,
    /// The marker bit. In a video stream, this bit marks the last packet of a frame.
    pub(crate) marker: bool,
    /// Whether the packet has the header extension for a transport-wide number. If so, `rtpsession` sets the number,
    /// and the receiver reports on the packet.
    pub(crate) is_numbered: bool,
}

impl PacketInfo {
    /// Reads a packet whose header extension for the transport-wide number has the identifier `extension`. A buffer
    /// that is not an RTP packet counts as payload.
    pub(crate) fn of(buffer: &gst::Buffer, extension: Option<u8>) -> Self {
        let whole = u32::try_from(buffer.size()).unwrap_or(u32::MAX);
        let Ok(packet) = RTPBuffer::from_buffer_readable(buffer) else {
            return Self { payload: whole, whole, ..Self::default() };
        };
        let is_numbered = extension.is_some_and(|id| {
            // Identifiers of one-byte headers are at most 14 (RFC 8285, Sec. 4.2).
            (id < 15 && packet.extension_onebyte_header(id, 0).is_some())
                || packet.extension_twobytes_header(id, 0).is_some()
        });
        Self {
            payload: packet.payload_size(),
            whole,
            ssrc: packet.ssrc(),
            timestamp: packet.timestamp(),
            marker: packet.is_marker(),
            is_numbered,
        }
    }
}

/// The URI of the header extension for the transport-wide number (draft-holmer-rmcat-transport-wide-cc-extensions-01,
/// Sec. 2).
pub(crate) const TRANSPORT_WIDE: &str = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";

/// Returns the identifier that these caps assign to the header extension for the transport-wide number. In the caps,
/// the extension's URI is in a field named `extmap-N`, where `N` is the identifier.
pub(crate) fn extension_of(caps: &gst::CapsRef) -> Option<u8> {
    caps.structure(0)?.iter().find_map(|(field, value)| {
        let id = field.strip_prefix("extmap-")?;
        // If the value is an array, it consists of direction, URI and attributes (RFC 8285, Sec. 5).
        let is_named = match (value.get::<&str>(), value.get::<gst::Array>()) {
            (Ok(name), _) => name == TRANSPORT_WIDE,
            (_, Ok(parts)) => parts.iter().any(|part| part.get::<&str>().is_ok_and(|name| name == TRANSPORT_WIDE)),
            _ => false,
        };
        if is_named { id.parse().ok() } else { None }
    })
}
