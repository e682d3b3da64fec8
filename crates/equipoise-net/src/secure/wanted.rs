use equipoise::units::{Rate, Size, Span};
use equipoise_session::Ecn;
use thiserror::Error;

/// The media that a client requests from a server when it opens a session.
///
/// A value of this type is valid: the rates are in order, and every value fits into its field of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    min: Rate,
    start: Option<Rate>,
    max: Rate,
    packet_size: Size,
    report_interval: Span,
    ecn: Ecn,
}

/// Why the requested media is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WantedError {
    /// The rates are not in order, or the minimum rate is zero. A session at rate zero would never get feedback again.
    #[error(
        "the rates requested from the peer are {min} to {max}; the lowest must be above zero and not above the highest"
    )]
    Rates {
        /// The requested minimum rate.
        min: Rate,
        /// The requested maximum rate.
        max: Rate,
    },
    /// The start rate is below the minimum rate or above the maximum rate.
    #[error("the peer is asked to start at {start}; it must start at {min} to {max}")]
    Start {
        /// The requested start rate.
        start: Rate,
        /// The requested minimum rate.
        min: Rate,
        /// The requested maximum rate.
        max: Rate,
    },
    /// A value is too large for its field of the request.
    #[error("the {what} requested from the peer is {found}; it must be {most} or less")]
    TooLarge {
        /// The name of the field, with the unit.
        what: &'static str,
        /// The requested value.
        found: u64,
        /// The maximum of the field.
        most: u64,
    },
}

impl Wanted {
    /// Length of the encoded request, in bytes.
    pub(crate) const LENGTH: usize = 20;

    /// Media in packets of 1200 bytes, with a report every second. The server's controller chooses a rate from `min` to
    /// `max`. If both are equal, the rate is constant.
    ///
    /// # Errors
    /// [`WantedError::Rates`] if `min` is zero or above `max`, and [`WantedError::TooLarge`] if `max` is above
    /// 4 294 967 295 bit/s.
    pub fn new(min: Rate, max: Rate) -> Result<Self, WantedError> {
        if min == Rate::ZERO || min > max {
            return Err(WantedError::Rates { min, max });
        }
        fits("rate in bit/s", max.as_bps(), LONG)?;
        let (packet_size, report_interval) = (Size::from_bytes(1200), Span::from_secs(1));
        Ok(Self { min, start: None, max, packet_size, report_interval, ecn: Ecn::NotCapable })
    }

    /// Sets the start rate. If it is not set, the controller uses its default.
    ///
    /// # Errors
    /// [`WantedError::Start`] if the start rate is below the minimum rate or above the maximum rate.
    pub fn starting_at(self, start: Rate) -> Result<Self, WantedError> {
        let Self { min, max, .. } = self;
        if !(min..=max).contains(&start) {
            return Err(WantedError::Start { start, min, max });
        }
        Ok(Self { start: Some(start), ..self })
    }

    /// Sets the size of IP packets, including headers.
    ///
    /// # Errors
    /// [`WantedError::TooLarge`] if the size is above 65 535 bytes.
    pub fn in_packets_of(self, packet_size: Size) -> Result<Self, WantedError> {
        fits("packet size in bytes", packet_size.as_bytes(), SHORT)?;
        Ok(Self { packet_size, ..self })
    }

    /// Sets the time between two requests for a report; it is truncated to whole milliseconds.
    ///
    /// # Errors
    /// [`WantedError::TooLarge`] if the time is above 65 535 ms.
    pub fn reported_every(self, report_interval: Span) -> Result<Self, WantedError> {
        let millis = u64::try_from(report_interval.as_nanos() / 1_000_000).unwrap_or(0);
        fits("report interval in ms", millis, SHORT)?;
        Ok(Self { report_interval: Span::from_millis(millis as i64), ..self })
    }

    /// Sets the ECN field of the media packets.
    #[must_use]
    pub const fn marked(self, ecn: Ecn) -> Self {
        Self { ecn, ..self }
    }

    /// The minimum rate.
    pub const fn min(&self) -> Rate {
        self.min
    }

    /// The start rate; `None` for the default of the controller.
    pub const fn start(&self) -> Option<Rate> {
        self.start
    }

    /// The maximum rate.
    pub const fn max(&self) -> Rate {
        self.max
    }

    /// Maximum size of an IP packet, including headers.
    pub const fn packet_size(&self) -> Size {
        self.packet_size
    }

    /// Time between two requests for a report.
    pub const fn report_interval(&self) -> Span {
        self.report_interval
    }

    /// The ECN field of the media packets.
    pub const fn ecn(&self) -> Ecn {
        self.ecn
    }

    /// Whether the requested rate is constant.
    pub fn is_constant(&self) -> bool {
        self.min == self.max
    }

    /// Encodes the request: three rates in bit/s (minimum, start, maximum), packet size in bytes, report interval in
    /// ms, ECN field, three zero bytes.
    pub(crate) fn encode(&self) -> [u8; Self::LENGTH] {
        let mut out = [0; Self::LENGTH];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        let rate = |rate: Rate| u32::try_from(rate.as_bps()).unwrap_or(u32::MAX).to_be_bytes();
        put(0, &rate(self.min));
        put(4, &rate(self.start.unwrap_or(Rate::ZERO)));
        put(8, &rate(self.max));
        put(12, &u16::try_from(self.packet_size.as_bytes()).unwrap_or(u16::MAX).to_be_bytes());
        put(14, &u16::try_from(self.report_interval.as_nanos() / 1_000_000).unwrap_or(u16::MAX).to_be_bytes());
        put(16, &[self.ecn.bits()]);
        out
    }

    /// Decodes a request; `None` if it is invalid.
    pub(crate) fn parse(bytes: &[u8; Self::LENGTH]) -> Option<Self> {
        let rate = |at: usize| Some(Rate::from_bps(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?).into()));
        let number = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        // A request may demand ECN-capable packets, but not packets with the mark Congestion Experienced (CE).
        if bytes[16] >= Ecn::Marked.bits() || bytes[17..] != [0; 3] {
            return None;
        }
        let wanted = Self::new(rate(0)?, rate(8)?).ok()?;
        let wanted = match rate(4)? {
            Rate::ZERO => wanted,
            start => wanted.starting_at(start).ok()?,
        };
        let wanted = wanted.in_packets_of(Size::from_bytes(number(12)?.into())).ok()?;
        let wanted = wanted.reported_every(Span::from_millis(number(14)?.into())).ok()?;
        Some(wanted.marked(Ecn::from_bits(bytes[16])))
    }
}

/// Returns an error if a value is larger than `most`.
fn fits(what: &'static str, found: u64, most: u64) -> Result<(), WantedError> {
    if found > most { Err(WantedError::TooLarge { what, found, most }) } else { Ok(()) }
}

/// Maximum values of a field of four bytes (`LONG`) and of a field of two bytes (`SHORT`).
const LONG: u64 = u32::MAX as u64;
const SHORT: u64 = u16::MAX as u64;

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> Wanted {
        let [min, start, max] = [100_000, 300_000, 4_000_000_000].map(Rate::from_bps);
        let wanted = Wanted::new(min, max).and_then(|wanted| wanted.starting_at(start));
        let wanted = wanted.and_then(|wanted| wanted.in_packets_of(Size::from_bytes(1000)));
        wanted.and_then(|wanted| wanted.reported_every(Span::from_millis(250))).expect("right").marked(Ecn::Ect1)
    }

    #[test]
    fn what_is_wanted_comes_back() {
        let bytes = wanted().encode();
        assert_eq!(bytes[..8], [0, 1, 0x86, 0xA0, 0, 4, 0x93, 0xE0]);
        assert_eq!(bytes[12..], [0x03, 0xE8, 0, 250, 1, 0, 0, 0]);
        assert_eq!(Wanted::parse(&bytes), Some(wanted()));
        let by_itself = Wanted::new(Rate::from_bps(1), Rate::from_bps(1)).expect("one rate");
        assert_eq!((Wanted::parse(&by_itself.encode()), by_itself.is_constant()), (Some(by_itself), true));
    }

    /// If this test fails, a peer can make a server send at rate zero, or above the requested maximum rate.
    #[test]
    fn what_cannot_be_is_refused_by_name_and_as_bytes() {
        let [zero, low, high] = [0, 1000, 2000].map(Rate::from_bps);
        assert_eq!(Wanted::new(zero, high), Err(WantedError::Rates { min: zero, max: high }));
        assert_eq!(Wanted::new(high, low), Err(WantedError::Rates { min: high, max: low }));
        let fast = Rate::from_bps(1 << 32);
        assert_eq!(
            Wanted::new(low, fast),
            Err(WantedError::TooLarge { what: "rate in bit/s", found: fast.as_bps(), most: LONG })
        );
        let within = Wanted::new(low, high).expect("right");
        let fast = Rate::from_bps(2001);
        assert_eq!(within.starting_at(fast), Err(WantedError::Start { start: fast, min: low, max: high }));
        assert!(within.in_packets_of(Size::from_bytes(65_536)).is_err());
        assert!(within.reported_every(Span::from_secs(66)).is_err());
        // Invalid requests: minimum rate above the maximum, start rate above the maximum, packets with the CE mark, and
        // reserved bytes that are not zero.
        for (at, byte) in [(0, 0xFF), (4, 0xFF), (16, 3), (17, 1), (19, 1)] {
            let mut bytes = wanted().encode();
            bytes[at] = byte;
            assert_eq!(Wanted::parse(&bytes), None, "byte {at}");
        }
        let mut slow = wanted().encode();
        slow[..4].fill(0);
        assert_eq!(Wanted::parse(&slow), None);
    }
}
