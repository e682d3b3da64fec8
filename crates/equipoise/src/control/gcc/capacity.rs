/// Estimates the capacity of the link, from the delivery rates while the link was overused.
///
/// ```text
/// C = 0.95 C + 0.05 R                          kbit/s
/// v = 0.95 v + 0.05 (C - R)² / max(C, 1)       0.4 ≤ v ≤ 2.5
/// ```
///
/// C is the estimated capacity, and R is the delivery rate. v is the variance of R, divided by C. While C is known, the
/// allowed rate counts as near the capacity and is raised slowly. A delivery rate above the band `C ± 3 sqrt(v C)`
/// during an increase, or below this band at overuse, shows that the path has changed. Then C is forgotten.
///
/// Source: libwebrtc, `link_capacity_estimator`; draft-ietf-rmcat-gcc-02, Sec. 5.5 for the factor 0.95.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkCapacity {
    kbps: Option<f64>,
    /// v, in kbit/s: the variance of the delivery rate, divided by the estimated capacity C.
    spread_kbps: f64,
}

/// Weight of a new delivery rate in the estimates of the capacity and of the delivery rate's variance. With a larger
/// value, old rates are forgotten sooner (draft-ietf-rmcat-gcc-02, Sec. 5.5).
const NEW: f64 = 0.05;
/// The minimum of v, in kbit/s: v is the variance of the delivery rate, divided by the estimated capacity C. The band
/// around a C of 500 kbit/s is then ±42 kbit/s (libwebrtc, `link_capacity_estimator`).
const LEAST_SPREAD: f64 = 0.4;
/// The maximum of v, in kbit/s: v is the variance of the delivery rate, divided by the estimated capacity C. The band
/// around a C of 500 kbit/s is then ±106 kbit/s (libwebrtc, `link_capacity_estimator`).
const LARGEST_SPREAD: f64 = 2.5;
/// Half-width of the band around C, the estimated capacity, in standard deviations of the delivery rate
/// (draft-ietf-rmcat-gcc-02, Sec. 5.5).
const BAND: f64 = 3.0;

impl LinkCapacity {
    pub(super) const fn new() -> Self {
        Self { kbps: None, spread_kbps: LEAST_SPREAD }
    }

    /// Returns C, the estimated capacity, in bit/s; `None` if there is no estimate.
    pub(super) fn bps(&self) -> Option<f64> {
        self.kbps.map(|kbps| kbps * 1e3)
    }

    /// Forgets C, but keeps v.
    pub(super) const fn forget(&mut self) {
        self.kbps = None;
    }

    /// Records a delivery rate that was measured while the path was overused.
    pub(super) fn push(&mut self, bps: f64) {
        let sample = bps / 1e3;
        if !sample.is_finite() {
            return;
        }
        let kbps = self.kbps.map_or(sample, |kbps| (1.0 - NEW) * kbps + NEW * sample);
        let error = kbps - sample;
        let spread = (1.0 - NEW) * self.spread_kbps + NEW * error * error / kbps.max(1.0);
        self.spread_kbps = spread.clamp(LEAST_SPREAD, LARGEST_SPREAD);
        self.kbps = Some(kbps);
    }

    fn half_band_kbps(&self, kbps: f64) -> f64 {
        BAND * libm::sqrt(self.spread_kbps * kbps.max(0.0))
    }

    /// Whether a rate in bit/s is above the estimated capacity by more than `BAND` standard deviations; false if there
    /// is no estimate.
    pub(super) fn is_above(&self, bps: f64) -> bool {
        self.kbps.is_some_and(|kbps| bps > 1e3 * (kbps + self.half_band_kbps(kbps)))
    }

    /// Whether a rate in bit/s is below the band around the estimated capacity; false if there is no estimate.
    pub(super) fn is_below(&self, bps: f64) -> bool {
        self.kbps.is_some_and(|kbps| bps < 1e3 * (kbps - self.half_band_kbps(kbps)).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 500 kbit/s, the half-width of the band is `3 sqrt(0.4 · 500)` = 42.4 kbit/s for the minimum `spread_kbps`,
    /// and `3 sqrt(2.5 · 500)` = 106.1 kbit/s for the maximum.
    #[test]
    fn the_band_is_as_wide_as_its_variance_says() {
        let mut link = LinkCapacity::new();
        assert!(!link.is_above(1e12) && !link.is_below(0.0), "no estimate, no band");
        link.push(500e3);
        assert!(link.is_above(542.5e3) && !link.is_above(542.4e3));
        assert!(link.is_below(457.5e3) && !link.is_below(457.6e3));
        link.spread_kbps = LARGEST_SPREAD;
        assert!(link.is_above(606.1e3) && !link.is_above(606.0e3));
    }

    #[test]
    fn a_twentieth_of_a_new_rate_counts() {
        let mut link = LinkCapacity::new();
        for bps in [500e3, 600e3] {
            link.push(bps);
        }
        assert!(link.bps().is_some_and(|bps| (bps - 505e3).abs() < 1e-6));
        // The new `spread_kbps` is 0.95 · 0.4 + 0.05 · 95²/505, because the new estimate is 505 kbit/s and the delivery
        // rate 600 kbit/s.
        assert!((link.spread_kbps - (0.38 + 0.05 * 95.0 * 95.0 / 505.0)).abs() < 1e-12);
        link.forget();
        assert_eq!(link.bps(), None);
    }

    #[test]
    fn what_is_no_number_does_not_count() {
        let mut link = LinkCapacity::new();
        for bps in [f64::NAN, f64::INFINITY] {
            link.push(bps);
        }
        assert_eq!(link.bps(), None);
    }
}
