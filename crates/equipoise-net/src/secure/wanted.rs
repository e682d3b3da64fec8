use equipoise::units::{Rate, Size, Span};
use equipoise_session::Ecn;
use thiserror::Error;

/// The media that a client requests from its server when it opens a session.
///
/// The values are already checked: the rates are in order, and every value fits into its field of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    min: Rate,
    start: Option<Rate>,
    max: Rate,
    packet_size: Size,
    report_interval: Span,
    ecn: Ecn,
}

/// The requested media is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WantedError {
    /// The rates are not in order, or the lowest rate is zero. A session at rate zero would never get feedback again.
    #[error(
        "the rates requested from the peer are {min} to {max}; the lowest must be above zero and not above the highest"
    )]
    Rates {
        /// The lowest rate.
        min: Rate,
        /// The highest rate.
        max: Rate,
    },
    /// The start rate is outside the limits.
    #[error("the peer is asked to start at {start}; it must start at {min} to {max}")]
    Start {
        /// The rate to start at.
        start: Rate,
        /// The lowest rate.
        min: Rate,
        /// The highest rate.
        max: Rate,
    },
    /// A value is too large for its field of the message.
    #[error("the {what} requested from the peer is {found}; it must be {most} or less")]
    TooLarge {
        /// The field.
        what: &'static str,
        /// The value.
        found: u64,
        /// The maximum, in the same unit.
        most: u64,
    },
}

impl Wanted {
    /// Bytes of its wire format.
    pub(crate) const LENGTH: usize = 20;

    /// Media in packets of 1200 bytes with a report every second. The sender's controller chooses a rate from `min` to
    /// `max`; if they are equal, the rate is constant.
    ///
    /// # Errors
    /// [`WantedError::Rates`], and [`WantedError::TooLarge`] above 4.29 Gbit/s.
    pub fn new(min: Rate, max: Rate) -> Result<Self, WantedError> {
        if min == Rate::ZERO || min > max {
            return Err(WantedError::Rates { min, max });
        }
        fits("rate in bit/s", max.as_bps(), LONG)?;
        let (packet_size, report_interval) = (Size::from_bytes(1200), Span::from_secs(1));
        Ok(Self { min, start: None, max, packet_size, report_interval, ecn: Ecn::NotCapable })
    }

    /// Sets the start rate. Without it, the controller uses its default.
    ///
    /// # Errors
    /// [`WantedError::Start`] if it is outside the limits.
    pub fn starting_at(self, start: Rate) -> Result<Self, WantedError> {
        let Self { min, max, .. } = self;
        if !(min..=max).contains(&start) {
            return Err(WantedError::Start { start, min, max });
        }
        Ok(Self { start: Some(start), ..self })
    }

    /// Sets the size of IP packets, headers included.
    ///
    /// # Errors
    /// [`WantedError::TooLarge`] above 65 535 bytes.
    pub fn in_packets_of(self, packet_size: Size) -> Result<Self, WantedError> {
        fits("packet size in bytes", packet_size.as_bytes(), SHORT)?;
        Ok(Self { packet_size, ..self })
    }

    /// Sets the time between two requests for a report, in whole milliseconds.
    ///
    /// # Errors
    /// [`WantedError::TooLarge`] above 65 535 ms.
    pub fn reported_every(self, report_interval: Span) -> Result<Self, WantedError> {
        let millis = u64::try_from(report_interval.as_nanos() / 1_000_000).unwrap_or(0);
        fits("report interval in ms", millis, SHORT)?;
        Ok(Self { report_interval: Span::from_millis(millis as i64), ..self })
    }

    /// Sets the ECN field of the packets.
    #[must_use]
    pub const fn marked(self, ecn: Ecn) -> Self {
        Self { ecn, ..self }
    }

    /// The lowest rate.
    pub const fn min(&self) -> Rate {
        self.min
    }

    /// The start rate; `None` for the controller's default.
    pub const fn start(&self) -> Option<Rate> {
        self.start
    }

    /// The highest rate.
    pub const fn max(&self) -> Rate {
        self.max
    }

    /// Size of the largest IP packet.
    pub const fn packet_size(&self) -> Size {
        self.packet_size
    }

    /// Time between two requests for a report.
    pub const fn report_interval(&self) -> Span {
        self.report_interval
    }

    /// The ECN field of its packets.
    pub const fn ecn(&self) -> Ecn {
        self.ecn
    }

    /// Whether its rate is constant.
    pub fn is_constant(&self) -> bool {
        self.min == self.max
    }

    /// Its wire format: three rates in bit/s, packet size in bytes, report interval in ms, ECN, three zeros.
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

    /// Parses the wire format; `None` if the request is invalid.
    pub(crate) fn parse(bytes: &[u8; Self::LENGTH]) -> Option<Self> {
        let rate = |at: usize| Some(Rate::from_bps(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?).into()));
        let number = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        // A request may ask for ECN-capable packets, but not for CE-marked packets.
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

/// Checks that a value is at most `most`.
fn fits(what: &'static str, found: u64, most: u64) -> Result<(), WantedError> {
    if found > most { Err(WantedError::TooLarge { what, found, most }) } else { Ok(()) }
}

/// The largest values of a field of four bytes and of a field of two bytes.
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

    /// If it fails, a peer makes a server send at rate zero, or above the requested limit.
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
        // Lowest above highest, start above highest, CE-marked packets, non-zero reserved bytes.
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
