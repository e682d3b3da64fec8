use crate::units::Span;

/// Drift of the receiver's clock against the sender's clock, in seconds per second, within ±[`Slope::STEEPEST`]; above
/// zero if the receiver's clock is faster.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Slope(f64);

impl Slope {
    /// Maximum drift between two clocks: 500 ppm, the most that adjtimex(2) and ntpd correct.
    pub(super) const STEEPEST: Self = Self(500e-6);

    /// Returns a slope of `ppm` parts per million, limited to ±[`STEEPEST`](Self::STEEPEST); 0 for NaN.
    pub(super) fn from_ppm(ppm: f64) -> Self {
        let fraction = ppm / 1e6;
        Self(if fraction.is_nan() { 0.0 } else { fraction.clamp(-Self::STEEPEST.0, Self::STEEPEST.0) })
    }

    /// Returns the slope in seconds per second.
    pub(super) const fn per_second(self) -> f64 {
        self.0
    }

    /// Returns the change over `elapsed`; saturates.
    pub(super) fn over(self, elapsed: Span) -> Span {
        Span::from_nanos(libm::round(self.0 * elapsed.as_nanos() as f64) as i64)
    }
}
