use crate::units::Rate;

/// The rate at which a path was last found full. It limits by how much a law may raise the rate at the next report.
///
/// A path without cross traffic reveals its capacity only when the rate exceeds the capacity: at a lower rate the delay
/// is constant, at a higher rate the delay grows without bound. The ceiling is the rate that was delivered while the
/// path was full. Far below the ceiling a law may take large steps, and near the ceiling small steps. If the rate is
/// well above the ceiling and there is no congestion, the capacity has increased, so the steps grow. This method is our
/// own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ceiling {
    full_bps: Option<f64>,
    /// Whether the path was found full, and the rate has not been raised since. While this is true, the ceiling does
    /// not change.
    is_known: bool,
    /// How many times the rate was raised to more than [`Self::BEYOND`] times the ceiling since the path was last full;
    /// at most [`Self::LARGEST`].
    steps: i32,
}

impl Ceiling {
    /// The ceiling is the rate at which the path was last full. A rate between `NEAR` and `BEYOND` times the ceiling is
    /// near the ceiling.
    const NEAR: f64 = 0.95;
    const BEYOND: f64 = 1.05;
    /// If the path is found full again, the ceiling falls to no less than this share of its previous value.
    const KEPT: f64 = 0.7;
    /// Size of a step near the ceiling (the rate at which the path was last full), as a share of the current rate.
    /// Above `BEYOND` times the ceiling, each step is twice as large as the previous one.
    const STEP: f64 = 0.01;
    /// Maximum number of times that the size of a step is doubled. The largest step is 32 % of the rate. Our choice:
    /// such steps double the rate within three reports.
    const LARGEST: i32 = 5;

    /// Records that the path was full at a sending rate of `sent_bps`, in bit/s, and delivered packets at the rate
    /// `delivered`.
    pub fn on_full(&mut self, delivered: Option<Rate>, sent_bps: f64) {
        let full = delivered.map_or(sent_bps, |rate| rate.as_bps_f64().min(sent_bps));
        // If the path was full for only a part of the time, or carried cross traffic, the delivered rate is less than
        // the capacity. Therefore `KEPT` limits the fall of the ceiling.
        let before = self.full_bps.unwrap_or(0.0);
        if !core::mem::replace(&mut self.is_known, true) {
            self.full_bps = Some(full.max(Self::KEPT * before));
        }
        self.steps = 0;
    }

    /// Records that the rate was raised to `to_bps`, in bit/s, after a report that shows no sign of a full path.
    pub fn on_raised(&mut self, to_bps: f64) {
        self.is_known = false;
        if self.full_bps.is_some_and(|full| to_bps > full * Self::BEYOND) {
            self.steps = (self.steps + 1).min(Self::LARGEST);
        }
    }

    /// Returns the highest rate that may follow the rate `now_bps`, both in bit/s. It is at most twice `now_bps`.
    pub fn most_bps(&self, now_bps: f64) -> f64 {
        let near = self.full_bps.map_or(f64::INFINITY, |full| full * Self::NEAR);
        let step = libm::ldexp(Self::STEP, self.steps.clamp(0, Self::LARGEST));
        (now_bps * (1.0 + step)).max(near).min(2.0 * now_bps)
    }

    /// Returns the rate at which the path was last found full, in bit/s; `None` if the path never was full.
    pub const fn full_bps(&self) -> Option<f64> {
        self.full_bps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this test fails, a law fills the queue repeatedly, because it doubles its rate beyond the known capacity.
    #[test]
    fn strides_end_below_the_rate_at_which_the_path_was_full_and_steps_lead_beyond() {
        let mut ceiling = Ceiling::default();
        let near =
            |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-9, "{found}, not {expected}");
        near(ceiling.most_bps(1e6), 2e6);
        ceiling.on_full(Some(Rate::from_bps(2_000_000)), 3e6);
        ceiling.on_full(Some(Rate::from_bps(200_000)), 1e6);
        near(ceiling.most_bps(0.5e6), 1e6);
        near(ceiling.most_bps(1.5e6), 1.9e6);
        let mut rate = 1.9e6;
        let rates = [(); 20].map(|()| {
            rate = ceiling.most_bps(rate);
            ceiling.on_raised(rate);
            rate
        });
        assert!((rates[0] - 1.919e6).abs() < 1.0 && (rates[9] / rates[8] - 1.01).abs() < 1e-9, "{rates:?}");
        assert!((rates[19] / rates[18] - 1.32).abs() < 1e-9, "a path that has become wider is found before long");
        ceiling.on_full(None, 5e6);
        assert_eq!((ceiling.full_bps(), ceiling.most_bps(5e6)), (Some(5e6), 5.05e6));
    }
}
