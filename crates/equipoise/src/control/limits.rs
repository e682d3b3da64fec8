use super::{ConfigError, Reason};
use crate::units::Rate;

/// The lowest and the highest rate that an application can live with, `a_min` and `a_max` of Waki 2013, Sec. 5.1, and the one
/// that it starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimits {
    min: Rate,
    max: Rate,
    start: Rate,
}

impl RateLimits {
    /// Limits from `min` to `max`, starting at `min`.
    ///
    /// # Errors
    /// [`ConfigError::MinAboveMax`] where there is no rate between them; [`ConfigError::ZeroRate`] where `min` is zero,
    /// at which a session would never hear of its path again.
    pub fn new(min: Rate, max: Rate) -> Result<Self, ConfigError> {
        if min > max {
            return Err(ConfigError::MinAboveMax { min, max });
        }
        if min == Rate::ZERO {
            return Err(ConfigError::ZeroRate);
        }
        Ok(Self { min, max, start: min })
    }

    /// Limits for any two rates: from `min`, or 1 bit/s if that is higher, to `max`, or to `min` if that is higher.
    #[must_use]
    pub fn within(min: Rate, max: Rate) -> Self {
        let min = min.max(Rate::from_bps(1));
        Self { min, max: max.max(min), start: min }
    }

    /// The same, starting at `rate`, or at the limit that it is beyond.
    #[must_use]
    pub fn starting_at(self, rate: Rate) -> Self {
        Self { start: rate.clamp(self.min, self.max), ..self }
    }

    /// The rate to start with.
    pub const fn start(&self) -> Rate {
        self.start
    }

    /// The lowest rate.
    pub const fn min(&self) -> Rate {
        self.min
    }

    /// The highest rate.
    pub const fn max(&self) -> Rate {
        self.max
    }

    /// `bps` brought between the limits (Waki 2013, Eq. 16), and whether a limit cut it. NaN gives the lowest rate.
    pub fn clamp(&self, bps: f64) -> (Rate, bool) {
        let rate = Rate::from_bps_f64(bps.max(0.0)).unwrap_or(self.min);
        let clamped = rate.clamp(self.min, self.max);
        (clamped, clamped != rate)
    }

    /// Half of `rate`, not below the lowest: the answer to three missing reports (Waki 2013, Sec. 5.1).
    pub fn halve(&self, rate: Rate) -> Rate {
        rate.halved().max(self.min)
    }

    /// The reason for a rate that came about by `reason` unless a limit had the last word.
    pub fn reason(reason: Reason, cut: bool) -> Reason {
        if cut { Reason::RateLimit } else { reason }
    }
}
