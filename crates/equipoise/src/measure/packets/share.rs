/// The own share of a busy bottleneck, from how trains make its queue grow.
///
/// A train of `b` bits that leaves within `s` at more than the own mean rate `r` is ahead of it by `x = b/r - s` seconds. What others send meanwhile
/// is, while the bottleneck is busy, what its capacity `C` has beyond `r`, so that the queue grows by
///
/// ```text
/// g = (b + (C - r) s) / C - s = (r/C) x = f x
/// ```
///
/// The share is `f = Σ g x / Σ x²` of the trains of the last seconds: least squares, in which jitter averages out, as it makes trains longer as often as
/// shorter. On a path that has room trains come as they left, and `f` goes to its least. Ours; logistic growth towards a capacity that is measured
/// inline is Kodama 2009's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share {
    /// `Σ g x` and `Σ x²`, in s², faded until the last train arrived, in s.
    growth: f64,
    square: f64,
    at_s: f64,
}

impl Share {
    /// The least share that is told.
    pub const LEAST: f64 = 0.05;
    /// A train counts for less with its age, by this time constant in s: 30 frames a second are 120 trains, in which jitter of 10 ms leaves a tenth of
    /// the share. Ours.
    const FADES_S: f64 = 4.0;
    /// What counts for a share of 1 before trains say otherwise, in s²: some three frames of 30 a second at 1.35 times the rate. Ours.
    const PRIOR: f64 = 3e-4;
    /// The most that a train counts for, in s: an outage within a train is no share.
    const MOST_AHEAD_S: f64 = 0.05;
    const MOST_GROWTH_S: f64 = 0.1;

    /// Nothing has arrived yet.
    pub const fn new() -> Self {
        Self { growth: 0.0, square: 0.0, at_s: 0.0 }
    }

    /// Takes a train of so many bits that left within `leaving_s`, arrived within `arriving_s` until `at_s`, and is of a flow with the mean rate `rate_bps`.
    pub fn push(&mut self, bits: f64, (leaving_s, arriving_s): (f64, f64), at_s: f64, rate_bps: f64) {
        let ahead_s = (bits / rate_bps.max(1.0) - leaving_s).min(Self::MOST_AHEAD_S);
        if ahead_s > 0.0 {
            let growth_s = (arriving_s - leaving_s).clamp(-Self::MOST_GROWTH_S, Self::MOST_GROWTH_S);
            let fades = libm::exp(-(at_s - self.at_s).max(0.0) / Self::FADES_S);
            self.growth = self.growth * fades + growth_s * ahead_s;
            self.square = self.square * fades + ahead_s * ahead_s;
            self.at_s = at_s;
        }
    }

    /// `f`, from [`LEAST`](Self::LEAST) to 1; 1 where too little is known.
    pub fn get(&self) -> f64 {
        ((self.growth + Self::PRIOR) / (self.square + Self::PRIOR)).clamp(Self::LEAST, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of 1/30 s that leave `pace` times as fast as the rate, at a bottleneck of which the flow has the share `share`; what jitter adds to the
    /// span of each.
    fn measured(share: f64, pace: f64, jitter_s: fn(u32) -> f64) -> f64 {
        let (mut meter, rate_bps) = (Share::new(), 4e6);
        let (bits, leaving_s) = (rate_bps / 30.0, 1.0 / 30.0 / pace);
        for frame in 0..600 {
            let growth_s = share * (1.0 / 30.0 - leaving_s) + jitter_s(frame);
            meter.push(bits, (leaving_s, leaving_s + growth_s), f64::from(frame) / 30.0, rate_bps);
        }
        meter.get()
    }

    #[test]
    fn the_growth_of_the_queue_within_a_train_tells_the_share() {
        for (share, pace) in [(0.1, 1.35), (0.5, 1.35), (0.5, 2.0), (1.0, 2.0)] {
            let found = measured(share, pace, |_| 0.0);
            assert!((found - share).abs() < 0.04, "{share} at {pace}: {found}");
        }
        let jittered = measured(0.5, 1.35, |frame| if frame % 2 == 0 { 0.010 } else { -0.010 });
        assert!((jittered - 0.5).abs() < 0.05, "{jittered}");
    }

    #[test]
    fn without_trains_it_is_the_only_flow_and_with_room_it_has_little() {
        assert!((Share::new().get() - 1.0).abs() < 1e-12);
        assert!((measured(0.5, 1.0, |_| 0.01) - 1.0).abs() < 1e-12, "a train at the mean rate tells nothing");
        assert!((measured(0.0, 1.35, |_| 0.0) - Share::LEAST).abs() < 0.01);
    }

    /// What breaks otherwise: whatever a receiver reports, a number comes out that rates are multiplied by.
    #[test]
    fn odd_trains_leave_a_share() {
        let mut meter = Share::new();
        for (bits, leaving_s, arriving_s, at_s) in
            [(1e12, 0.0, 1e9, 1.0), (1e12, 0.0, -1e9, 0.5), (0.0, 0.0, 0.0, 1e9), (1e4, -1.0, 1.0, -1e9)]
        {
            meter.push(bits, (leaving_s, arriving_s), at_s, 0.0);
            assert!((Share::LEAST..=1.0).contains(&meter.get()), "{meter:?}");
        }
    }
}
