use core::fmt;
use core::str::FromStr;

use super::parse::{self, UnitError};
use super::{Size, Span};

/// A rate in whole bits per second, of IP packets unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// A rate of zero.
    pub const ZERO: Self = Self(0);

    /// Returns a rate of `bps` bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }

    /// Returns a rate of `bps` bits per second, rounded. A rate that is too large saturates. Returns `None` for NaN and
    /// for a negative rate.
    pub fn from_bps_f64(bps: f64) -> Option<Self> {
        (bps >= 0.0).then(|| Self(libm::round(bps) as u64))
    }

    /// Returns the rate in whole bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Returns the rate in bits per second, as a floating-point number.
    pub const fn as_bps_f64(self) -> f64 {
        self.0 as f64
    }

    /// Returns the rate in megabits (10⁶ bits) per second.
    pub const fn as_mbps_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Returns half of the rate, rounded down.
    #[must_use]
    pub const fn halved(self) -> Self {
        Self(self.0 / 2)
    }

    /// Returns how long sending `size` takes at this rate, rounded to the nearest nanosecond; saturates. Returns `None`
    /// at rate zero.
    pub fn time_to_send(self, size: Size) -> Option<Span> {
        let nanos =
            (u128::from(size.as_bits()) * 1_000_000_000 + u128::from(self.0 / 2)).checked_div(u128::from(self.0))?;
        Some(Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        parse::write_scaled(f, self.0, false, parse::RATE_UNITS)
    }
}

/// Reads rates such as `"15 Mbit/s"`, `"800 kbit/s"`, `"15mbit"` and `"2.5 Gbps"`. Also reads `"15M"`, as iperf3 does.
///
/// A lower-case `mbps` is refused: `tc` reads it as megabytes per second, and other tools as megabits per second.
impl FromStr for Rate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse::unsigned(text, parse::RATE).map(Self)
    }
}
