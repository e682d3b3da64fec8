use core::fmt;
use core::iter::Sum;
use core::ops::{Add, Sub};
use core::str::FromStr;

use super::parse::{self, UnitError};
use super::{Rate, Span};

/// A number of bytes. Packet sizes are those of whole IP packets, unless stated otherwise. Arithmetic saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(u64);

impl Size {
    /// A size of zero.
    pub const ZERO: Self = Self(0);
    /// The size of an IPv4 header without options (RFC 791, Sec. 3.1).
    pub const IPV4: Self = Self(20);
    /// The IPv4 and UDP headers of a datagram, without IP options: 20 + 8 bytes (RFC 791, Sec. 3.1; RFC 768).
    pub const IPV4_UDP: Self = Self(28);
    /// The IPv6 and UDP headers of a datagram: 40 + 8 bytes (RFC 8200, Sec. 3; RFC 768).
    pub const IPV6_UDP: Self = Self(48);

    /// Returns a size of `bytes` bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Returns the size in bytes.
    pub const fn as_bytes(self) -> u64 {
        self.0
    }

    /// Returns the rate that carries this size in `time`; `None` if `time` is not positive.
    pub fn over(self, time: Span) -> Option<Rate> {
        if time > Span::ZERO { Rate::from_bps_f64(self.as_bits() as f64 / time.as_secs_f64()) } else { None }
    }

    /// Returns the size in bits; saturates.
    pub const fn as_bits(self) -> u64 {
        self.0.saturating_mul(8)
    }
}

impl Add for Size {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Size {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for Size {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

/// Reads `"1000 B"`, `"1.5 kB"` (1500 bytes), `"64 KiB"` (65 536 bytes), `"2 MB"`.
impl FromStr for Size {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse::unsigned(text, parse::SIZE).map(Self)
    }
}
