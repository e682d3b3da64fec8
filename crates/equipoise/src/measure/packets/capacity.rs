use alloc::collections::VecDeque;

/// The capacity of the bottleneck, from short trains that enter it a good deal faster than it serves.
///
/// A train of `b` bits behind its first packet that leaves within `s`, in a flow with the mean rate `r`, meets what others send at a busy bottleneck,
/// `(C - r) s` bits, and comes out within `a = (b + (C - r) s) / C`:
///
/// ```text
/// C = (b - r s) / (a - s)
/// ```
///
/// The shorter `s` is beside `a`, the less it matters what others send. Jitter makes some trains longer, and none that is held together shorter than the
/// link can serve it, so that the faster half of the last [`READINGS`](Self::READINGS) counts: all flows of one bottleneck come to the same number. The
/// dispersion of trains is Dovrolis 2001's, a capacity measured inline Kodama 2009's; numbers are ours.
#[derive(Clone, Debug, Default)]
pub struct Capacity {
    /// When each reading was taken, in s, and its rate, in bit/s.
    readings: VecDeque<(f64, f64)>,
}

impl Capacity {
    /// How many readings count, and for how long, in s.
    pub const READINGS: usize = 8;
    const WINDOW_S: f64 = 30.0;
    const LEAST_READINGS: usize = 4;
    /// No train counts as shorter on its arrival, in s: stamps have a granularity of up to 1 ms.
    const LEAST_S: f64 = 0.0005;
    /// A train that comes at most so many times as long as it left was not spread: its rate is a lower bound.
    const SPREAD: f64 = 1.1;
    /// What others send takes no more than so much of a train's bits off.
    const LEAST_PART: f64 = 0.3;

    /// Nothing known yet.
    pub const fn new() -> Self {
        Self { readings: VecDeque::new() }
    }

    /// Takes a train of so many bits behind its first packet that left and arrived within so long, in s, until `now_s`, of a flow that sends `own_bps`.
    pub fn push(&mut self, now_s: f64, bits: f64, (leaving_s, arriving_s): (f64, f64), own_bps: f64) {
        let arriving_s = arriving_s.max(Self::LEAST_S);
        let came_bps = bits / arriving_s;
        let bps = if arriving_s > Self::SPREAD * leaving_s {
            came_bps * (1.0 - own_bps * leaving_s / bits).max(Self::LEAST_PART) / (1.0 - leaving_s / arriving_s)
        } else {
            came_bps
        };
        if !bps.is_finite() || bps <= 0.0 {
            return;
        }
        self.readings.push_back((now_s, bps));
        while self.readings.len() > Self::READINGS
            || self.readings.front().is_some_and(|oldest| oldest.0 < now_s - Self::WINDOW_S)
        {
            self.readings.pop_front();
        }
    }

    /// Whether there are as many readings as count.
    pub fn is_known_well(&self) -> bool {
        self.readings.len() >= Self::READINGS
    }

    /// The capacity in bit/s; `None` before there are readings enough.
    pub fn bps(&self) -> Option<f64> {
        if self.readings.len() < Self::LEAST_READINGS {
            return None;
        }
        let mut sorted = [0.0; Self::READINGS];
        for (place, reading) in sorted.iter_mut().zip(&self.readings) {
            *place = reading.1;
        }
        let sorted = &mut sorted[..self.readings.len()];
        sorted.sort_by(f64::total_cmp);
        let faster = &sorted[sorted.len() / 2..];
        // Of times, not of rates: a single train that came too close counts for little.
        Some(faster.len() as f64 / faster.iter().map(|bps| 1.0 / bps).sum::<f64>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trains of 48 kbit at `sent` through a busy bottleneck of `capacity`, of which the flow has `share`; every other one is longer by `jitter_s`.
    fn measured(capacity: f64, share: f64, sent: f64, jitter_s: f64) -> f64 {
        let (mut meter, bits) = (Capacity::new(), 48_000.0);
        for train in 0..12 {
            let (own, leaving_s) = (share * capacity, bits / sent);
            let arriving_s = (bits + (capacity - own) * leaving_s) / capacity;
            let late_s = if train % 2 == 0 { jitter_s } else { 0.0 };
            meter.push(f64::from(train) * 0.5, bits, (leaving_s, arriving_s + late_s), own);
        }
        meter.bps().expect("twelve trains")
    }

    #[test]
    fn flows_of_any_share_measure_one_capacity() {
        for share in [0.05, 0.3, 0.5, 0.9] {
            for sent in [30e6, 60e6] {
                let found = measured(10e6, share, sent, 0.015);
                assert!((found / 10e6 - 1.0).abs() < 1e-6, "{share} at {sent}: {found}");
            }
        }
    }

    #[test]
    fn a_train_that_came_as_it_left_is_a_lower_bound() {
        let mut meter = Capacity::new();
        for train in 0..4 {
            assert_eq!(meter.bps(), None);
            meter.push(f64::from(train), 48_000.0, (0.006, 0.006), 1e6);
        }
        assert!((meter.bps().expect("four trains") / 8e6 - 1.0).abs() < 1e-9);
        meter.push(40.0, 48_000.0, (0.006, 0.006), 1e6);
        assert_eq!(meter.bps(), None, "old readings are forgotten");
    }

    /// What breaks otherwise: whatever a receiver reports, a number comes out that a rate is divided by.
    #[test]
    fn odd_trains_leave_a_positive_rate() {
        let mut meter = Capacity::new();
        for (bits, leaving_s, arriving_s) in
            [(9600.0, 0.0, 0.0), (9600.0, 0.001, -1.0), (9600.0, 1e-6, 1e9), (0.0, 0.001, 0.01), (9600.0, 1.0, 1.0)]
        {
            meter.push(0.0, bits, (leaving_s, arriving_s), 1e9);
            assert!(meter.bps().is_none_or(|bps| bps > 0.0), "{meter:?}");
        }
    }
}
