use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::ops::{Add, Sub};

use super::Span;

/// The clock of a session's sender: it stamps media packets and sender reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderClock {}

/// The clock of a session's receiver. Arrival times are times of this clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverClock {}

/// A time on the clock `C`: the number of nanoseconds since the Unix epoch, as the clock `C` counts them.
///
/// Times of different clocks can be neither compared nor subtracted. A [`ClockMap`](crate::measure::ClockMap) converts
/// times of one clock into times of another clock. If the clocks are known to agree, [`Instant::assume_clock`] converts
/// them, too. Arithmetic saturates at zero and at the year 2554.
pub struct Instant<C>(u64, PhantomData<fn() -> C>);

impl<C> Instant<C> {
    /// The zero of the clock `C`.
    pub const ZERO: Self = Self(0, PhantomData);
    /// The last moment the type can hold.
    pub const MAX: Self = Self(u64::MAX, PhantomData);

    /// Returns the moment `nanos` nanoseconds after the clock's zero.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos, PhantomData)
    }

    /// Returns the number of nanoseconds after the clock's zero.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the same clock reading as an instant of clock `D`.
    ///
    /// Use this only for clocks that agree, such as all clocks of a simulator, or of the sockets of one host.
    pub const fn assume_clock<D>(self) -> Instant<D> {
        Instant(self.0, PhantomData)
    }
}

impl<C> Clone for Instant<C> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<C> Copy for Instant<C> {}
/// The default is the zero of the clock.
impl<C> Default for Instant<C> {
    fn default() -> Self {
        Self::ZERO
    }
}
impl<C> PartialEq for Instant<C> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<C> Eq for Instant<C> {}
impl<C> PartialOrd for Instant<C> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<C> Ord for Instant<C> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}
impl<C> Hash for Instant<C> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}
impl<C> fmt::Debug for Instant<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

impl<C> Add<Span> for Instant<C> {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self::from_nanos(self.0.saturating_add_signed(span.as_nanos()))
    }
}

impl<C> Sub<Span> for Instant<C> {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        self + -span
    }
}

impl<C> Sub for Instant<C> {
    type Output = Span;
    fn sub(self, earlier: Self) -> Span {
        let magnitude = i64::try_from(self.0.abs_diff(earlier.0)).unwrap_or(i64::MAX);
        Span::from_nanos(if self.0 < earlier.0 { -magnitude } else { magnitude })
    }
}
