use core::fmt;
use core::ops::{Add, Div, Mul, Neg, Sub};
use core::str::FromStr;

use super::parse::{self, UnitError};

/// A signed length of time, in nanoseconds; about ±292 years.
///
/// Signed because a one-way delay between unsynchronised clocks can be negative. Addition, subtraction and scaling
/// saturate at [`Span::MIN`] and [`Span::MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(i64);

impl Span {
    /// A span of zero.
    pub const ZERO: Self = Self(0);
    /// The shortest (most negative) span.
    pub const MIN: Self = Self(i64::MIN);
    /// The longest span.
    pub const MAX: Self = Self(i64::MAX);

    /// Returns a span of whole nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Returns a span of whole microseconds; saturates.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// Returns a span of whole milliseconds; saturates.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Returns a span of whole seconds; saturates.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Returns a span of `secs` seconds, rounded to the nearest nanosecond; saturates. Returns `None` for NaN.
    pub fn from_secs_f64(secs: f64) -> Option<Self> {
        (!secs.is_nan()).then(|| Self(libm::round(secs * 1e9) as i64))
    }

    /// Returns the span in whole nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Returns the span in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the span in milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Returns the absolute value of the span; saturates.
    #[must_use]
    pub const fn abs(self) -> Self {
        Self(self.0.saturating_abs())
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Span {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Neg for Span {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl Mul<i64> for Span {
    type Output = Self;
    fn mul(self, factor: i64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

/// Returns the quotient, truncated to a whole number; `None` if `other` is zero or if the quotient overflows.
impl Div for Span {
    type Output = Option<i64>;
    fn div(self, other: Self) -> Option<i64> {
        self.0.checked_div(other.0)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        parse::write_scaled(f, self.0.unsigned_abs(), self.0 < 0, parse::SPAN_UNITS)
    }
}

/// Reads `"8.2 ms"`, `"40 s"`, `"1 min"`, `"-3 us"`, `"0 s"`.
impl FromStr for Span {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let nanos = parse::signed(text, parse::SPAN)?;
        Ok(Self(nanos as i64))
    }
}
