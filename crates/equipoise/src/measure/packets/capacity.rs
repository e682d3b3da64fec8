use alloc::collections::VecDeque;

/// The capacity of the bottleneck, measured with short packet trains. The trains arrive at the bottleneck much faster
/// than the bottleneck can send them.
///
/// The first packet of a train is not counted. The other packets have `b` bits and leave the sender within the time
/// `s`. The flow of the train has the mean rate `r`, and the busy bottleneck has the capacity `C`. The other flows use
/// the rest of the capacity, so `(C - r) s` of their bits arrive in the time `s`. Therefore the bottleneck takes the
/// time `a = (b + (C - r) s) / C` for the train:
///
/// ```text
/// C = (b - r s) / (a - s)
/// ```
///
/// The shorter `s` is in relation to `a`, the less the traffic of other flows matters. Because of jitter, some trains
/// take longer to arrive; few arrive faster than the bottleneck can serve them. Therefore only the faster half of the
/// last [`READINGS`](Self::READINGS) readings counts. All flows of one bottleneck obtain the same value. The use of the
/// dispersion of trains is from Dovrolis 2001, and the inline measurement of a capacity from Kodama 2009. The constants
/// are our choice.
#[derive(Clone, Debug, Default)]
pub struct Capacity {
    /// The time of each reading, in s, and its rate, in bit/s.
    readings: VecDeque<(f64, f64)>,
    /// Whether the next reading decides if the earlier ones are still valid.
    doubted: bool,
}

impl Capacity {
    /// The number of readings that are kept.
    pub const READINGS: usize = 8;
    /// A reading is kept for `WINDOW_S`, in s. The capacity is known from `LEAST_READINGS` readings on.
    const WINDOW_S: f64 = 30.0;
    const LEAST_READINGS: usize = 4;
    /// The arrival of a train is assumed to take at least this time, in s. Timestamps have a granularity of up to 1 ms,
    /// so all packets of a train may seem to arrive at the same time.
    const LEAST_S: f64 = 0.0005;
    /// If the arrival of a train takes at most this multiple of the duration of its departure, the bottleneck did not
    /// spread the train. The arrival rate of the train is then only a lower bound of the capacity.
    const SPREAD: f64 = 1.1;
    /// Lower limit of `(b - r s) / b` for a train of `b` bits that leaves the sender within the time `s`. With this
    /// limit, a reading is positive even if the flow's rate `r` is high.
    const LEAST_PART: f64 = 0.3;
    /// After [`doubt`](Self::doubt), a reading below this share of the capacity shows that the bottleneck became
    /// slower.
    const SLOWER: f64 = 0.75;

    /// Creates a measurement without readings.
    pub const fn new() -> Self {
        Self { readings: VecDeque::new(), doubted: false }
    }

    /// Notes that the bottleneck may have become slower. If the next reading is far below the capacity, the bottleneck
    /// has become slower, and all earlier readings are discarded. Otherwise, another flow has only taken a larger
    /// share, and the earlier readings remain.
    pub fn doubt(&mut self) {
        self.doubted = true;
    }

    /// Records at `now_s`, in s, a train of a flow that sends at `own_bps`, in bit/s. The packets after the first
    /// packet of the train have `bits` bits. They left the sender within `leaving_s` and arrived within `arriving_s`,
    /// in s.
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
        if self.doubted
            && let Some(before_bps) = self.bps()
        {
            self.doubted = false;
            if bps < Self::SLOWER * before_bps {
                self.readings.clear();
            }
        }
        self.readings.push_back((now_s, bps));
        while self.readings.len() > Self::READINGS
            || self.readings.front().is_some_and(|oldest| oldest.0 < now_s - Self::WINDOW_S)
        {
            self.readings.pop_front();
        }
    }

    /// Whether the maximum number of readings, [`READINGS`](Self::READINGS), is available.
    pub fn is_known_well(&self) -> bool {
        self.readings.len() >= Self::READINGS
    }

    /// Returns the capacity in bit/s; `None` if there are too few readings.
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
        // The times per bit are averaged, not the rates, so that one train that arrived too fast has little weight.
        Some(faster.len() as f64 / faster.iter().map(|bps| 1.0 / bps).sum::<f64>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the capacity measured on trains of 48 kbit, which are sent at the rate `sent`. The busy bottleneck has
    /// the rate `capacity`, and the flow's share of this rate is `share`. Every second train arrives over a time that
    /// is longer by `jitter_s`. Rates are in bit/s.
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
    fn a_train_that_arrives_as_it_left_is_a_lower_bound() {
        let mut meter = Capacity::new();
        for train in 0..4 {
            assert_eq!(meter.bps(), None);
            meter.push(f64::from(train), 48_000.0, (0.006, 0.006), 1e6);
        }
        assert!((meter.bps().expect("four trains") / 8e6 - 1.0).abs() < 1e-9);
        meter.push(40.0, 48_000.0, (0.006, 0.006), 1e6);
        assert_eq!(meter.bps(), None, "old readings are forgotten");
    }

    /// If this test fails, a flow no longer knows the capacity after another flow took a larger share, or it still uses
    /// the earlier capacity after the link became slower.
    #[test]
    fn in_doubt_the_next_reading_decides_whether_the_link_became_slower() {
        let after = |is_doubted: bool, bps: f64| {
            let mut meter = Capacity::new();
            for train in 0..8 {
                meter.push(f64::from(train), 10e3, (1e-6, 10e3 / 4e6), 1e6);
            }
            if is_doubted {
                meter.doubt();
            }
            meter.push(8.0, 10e3, (1e-6, 10e3 / bps), 1e6);
            meter.bps().is_some()
        };
        assert!(after(true, 3.5e6) && !after(true, 2e6));
        assert!(after(false, 2e6), "a single late train without doubt");
    }

    /// If this test fails, a receiver can report times that make the measured capacity zero, negative or not a number.
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
