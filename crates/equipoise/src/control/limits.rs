use super::{ConfigError, Reason};
use crate::units::Rate;

/// The lowest and highest rate that an application accepts (`a_min` and `a_max` of Waki 2013, Sec. 5.1), and the rate
/// at which the session starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimits {
    min: Rate,
    max: Rate,
    start: Rate,
}

impl RateLimits {
    /// Creates limits from `min` to `max`, with the start rate `min`.
    ///
    /// # Errors
    /// [`ConfigError::MinAboveMax`] if `min` is above `max`; [`ConfigError::ZeroRate`] if `min` is zero, because a
    /// session at rate zero would never learn anything about its path again.
    pub fn new(min: Rate, max: Rate) -> Result<Self, ConfigError> {
        if min > max {
            return Err(ConfigError::MinAboveMax { min, max });
        }
        if min == Rate::ZERO {
            return Err(ConfigError::ZeroRate);
        }
        Ok(Self { min, max, start: min })
    }

    /// Creates limits from any two rates. Raises `min` to at least 1 bit/s, and then `max` to at least `min`. The start
    /// rate is `min`.
    #[must_use]
    pub fn within(min: Rate, max: Rate) -> Self {
        let min = min.max(Rate::from_bps(1));
        Self { min, max: max.max(min), start: min }
    }

    /// Returns these limits with the start rate `rate`. The start rate is clamped to the limits.
    #[must_use]
    pub fn starting_at(self, rate: Rate) -> Self {
        Self { start: rate.clamp(self.min, self.max), ..self }
    }

    /// Returns the rate at which the session starts.
    pub const fn start(&self) -> Rate {
        self.start
    }

    /// Returns the lowest rate.
    pub const fn min(&self) -> Rate {
        self.min
    }

    /// Returns the highest rate.
    pub const fn max(&self) -> Rate {
        self.max
    }

    /// Clamps `bps`, in bit/s, to the limits (Waki 2013, Eq. 16). Returns the rate, and whether a limit applied. For
    /// NaN, returns the lowest rate.
    pub fn clamp(&self, bps: f64) -> (Rate, bool) {
        let rate = Rate::from_bps_f64(bps.max(0.0)).unwrap_or(self.min);
        let clamped = rate.clamp(self.min, self.max);
        (clamped, clamped != rate)
    }

    /// Returns half of `rate`, but not less than the lowest rate: the reaction to three missing reports (Waki 2013,
    /// Sec. 5.1).
    pub fn halve(&self, rate: Rate) -> Rate {
        rate.halved().max(self.min)
    }

    /// Returns the reason for a rate: [`Reason::RateLimit`] if a limit applied (`cut`), otherwise `reason`.
    pub fn reason(reason: Reason, cut: bool) -> Reason {
        if cut { Reason::RateLimit } else { reason }
    }
}
