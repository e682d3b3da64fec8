//! The clock rates of RTP payload types (RFC 3551, Sec. 6).

/// Returns the clock rate of a payload type, in ticks per second; `None` for a dynamic or unassigned payload type.
pub(super) const fn rate(payload_type: u8) -> Option<u32> {
    match payload_type {
        // Payload type 9, G.722, has a clock of 8000 Hz, although it has 16 000 samples per second (RFC 3551,
        // Sec. 4.5.2).
        0 | 3 | 4 | 5 | 7 | 8 | 9 | 12 | 13 | 15 | 18 => Some(8000),
        6 => Some(16_000),
        10 | 11 => Some(44_100),
        16 => Some(11_025),
        17 => Some(22_050),
        14 | 25 | 26 | 28 | 31..=34 => Some(90_000),
        _ => None,
    }
}
