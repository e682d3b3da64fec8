/// The delay of the empty path: the minimum of the delays in the last [`WINDOW_S`](Self::WINDOW_S) seconds, separately
/// for small, medium and large packets.
///
/// A delay is the arrival time on the receiver's clock minus the departure time on the sender's clock. At 1 Mbit/s, a
/// video packet of 1200 bytes takes 8 ms longer than an audio packet of 200 bytes. With one base delay for all sizes,
/// this difference would look like a queue.
///
/// The minimum of each second is kept (RFC 6817, Sec. 2.4). The base follows a longer route within the duration of the
/// window. If a clock drifts by 100 ppm, the error of the base is at most 1.2 ms. The size classes and these rules are
/// our choice:
///
/// - A class without a sample uses the minimum of the other classes, and the base of a smaller class is never above
///   that of a larger class.
/// - While the caller knows that a queue does not empty, the caller **holds** the time. Then minima do not age, but
///   lower samples are still accepted.
#[derive(Clone, Debug)]
pub struct BaseDelay {
    /// For each size class, one minimum delay per second, in s, the current second first. A second with an infinite
    /// value does not count.
    classes: [[f64; SECONDS]; 3],
    /// `elapsed_s` is how long the current second has lasted, and `now_s` is the time of the last update, in s.
    elapsed_s: f64,
    now_s: Option<f64>,
}

/// The size class of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeClass {
    /// Packets below 400 bytes, such as audio and feedback.
    Small,
    /// Packets from 400 to below 800 bytes.
    Middling,
    /// Packets of 800 bytes or more.
    Large,
}

const SECONDS: usize = 12;

impl SizeClass {
    /// Returns the class of a packet of `bits` bits.
    pub fn of(bits: f64) -> Self {
        if bits < 3200.0 {
            Self::Small
        } else if bits < 6400.0 {
            Self::Middling
        } else {
            Self::Large
        }
    }

    /// Returns the typical size of a packet of the class, in bits.
    pub(crate) const fn usual_bits(self) -> f64 {
        match self {
            Self::Small => 2400.0,
            Self::Middling => 4800.0,
            Self::Large => 9600.0,
        }
    }
}

impl BaseDelay {
    /// How long a minimum delay counts, in s. Our choice: the sender's own queue empties within a few seconds, so the
    /// window contains a delay without this queue.
    pub const WINDOW_S: f64 = SECONDS as f64;

    /// Creates a base delay without samples.
    pub const fn new() -> Self {
        Self { classes: [[f64::INFINITY; SECONDS]; 3], elapsed_s: 0.0, now_s: None }
    }

    /// Advances the time to `now_s`, in s. While `held`, minima do not age.
    pub fn come_to(&mut self, now_s: f64, held: bool) {
        let passed = (now_s - self.now_s.replace(now_s).unwrap_or(now_s)).max(0.0);
        if held {
            return;
        }
        self.elapsed_s += passed;
        if self.elapsed_s >= 1.0 {
            let seconds = (self.elapsed_s as usize).min(SECONDS);
            self.elapsed_s -= libm::floor(self.elapsed_s);
            for class in &mut self.classes {
                // A class of packet sizes without a recent sample keeps its last minimum.
                let least = least(class);
                class.rotate_right(seconds);
                class[..seconds].fill(f64::INFINITY);
                if class.iter().all(|it| it.is_infinite()) {
                    class[0] = least;
                }
            }
        }
    }

    /// Records the delay of a packet of `bits` bits, in s.
    pub fn push(&mut self, bits: f64, delay_s: f64) {
        let second = &mut self.classes[SizeClass::of(bits) as usize][0];
        *second = second.min(delay_s);
    }

    /// Returns the base delay for packets of `bits` bits, in s; infinite before the first sample.
    pub fn of(&self, bits: f64) -> f64 {
        self.bases()[SizeClass::of(bits) as usize]
    }

    /// Returns the base delays of all classes, the smallest class first, in s; infinite before the first sample.
    pub fn bases(&self) -> [f64; 3] {
        let own = self.classes.each_ref().map(|class| least(class));
        let least = own.iter().copied().fold(f64::INFINITY, f64::min);
        let [small, middling, large] = own.map(|base| if base.is_infinite() { least } else { base });
        let middling = middling.min(large);
        [small.min(middling), middling, large]
    }

    /// Raises the base delays by `by_s`, in s, because the path became longer. If the path became shorter, `by_s` is
    /// negative. Size classes without a sample are not changed.
    pub fn shift(&mut self, by_s: f64) {
        let bases = self.bases();
        for (class, base) in self.classes.iter_mut().zip(bases) {
            if class.iter().any(|it| it.is_finite()) {
                class.fill(f64::INFINITY);
                class[0] = base + by_s;
            }
        }
    }

    /// Raises the base delays when the bottleneck slows from `before_bps` to `now_bps`, because each packet then takes
    /// longer. No base delay rises above the minimum delay of the current and the previous second.
    pub fn slowed(&mut self, before_bps: f64, now_bps: f64) {
        let longer_s_per_bit = (1.0 / now_bps - 1.0 / before_bps).max(0.0);
        let bases = self.bases();
        for ((class, base), size) in
            self.classes.iter_mut().zip(bases).zip([SizeClass::Small, SizeClass::Middling, SizeClass::Large])
        {
            let lately = class[0].min(class[1]);
            let raised = lately.min(base + size.usual_bits() * longer_s_per_bit);
            if lately.is_finite() && raised > base {
                class.fill(f64::INFINITY);
                class[0] = raised;
            }
        }
    }
}

impl Default for BaseDelay {
    fn default() -> Self {
        Self::new()
    }
}

fn least(class: &[f64]) -> f64 {
    class.iter().copied().fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUDIO: f64 = 1600.0;
    const VIDEO: f64 = 9600.0;

    fn after(seconds: u32, base: &mut BaseDelay, video_s: f64) {
        let start = base.now_s.unwrap_or(0.0);
        for step in 0..seconds * 10 {
            base.come_to(start + f64::from(step + 1) / 10.0, false);
            base.push(VIDEO, video_s);
        }
    }

    #[test]
    fn a_class_has_a_base_of_its_own_and_a_smaller_one_none_above_it() {
        let mut base = BaseDelay::new();
        assert!(base.of(VIDEO).is_infinite());
        base.push(VIDEO, 0.060);
        assert!((base.of(AUDIO) - 0.060).abs() < 1e-12, "of the others");
        base.push(AUDIO, 0.052);
        assert!((base.of(VIDEO) - base.of(AUDIO) - 0.008).abs() < 1e-12);
        base.push(VIDEO, 0.050);
        assert!((base.of(AUDIO) - 0.050).abs() < 1e-12, "a small packet is no slower than a large one");
    }

    #[test]
    fn a_longer_path_is_followed_within_the_window_and_not_while_time_is_held() {
        let mut base = BaseDelay::new();
        base.push(VIDEO, 0.050);
        after(11, &mut base, 0.080);
        assert!((base.of(VIDEO) - 0.050).abs() < 1e-12);
        after(2, &mut base, 0.080);
        assert!((base.of(VIDEO) - 0.080).abs() < 1e-12);
        base.come_to(100.0, true);
        base.push(VIDEO, 0.090);
        assert!((base.of(VIDEO) - 0.080).abs() < 1e-12);
    }

    #[test]
    fn a_drifting_clock_of_100_ppm_is_off_by_no_more_than_1_2_ms() {
        let mut base = BaseDelay::new();
        for step in 0..1200 {
            let now = f64::from(step) / 10.0;
            base.come_to(now, false);
            base.push(VIDEO, 0.050 + 100e-6 * now);
            assert!(0.050 + 100e-6 * now - base.of(VIDEO) <= 0.00121, "at {now} s");
        }
    }

    /// If the link slows from 1.5 to 0.6 Mbit/s, a packet of 1200 bytes takes 9.6 ms longer.
    #[test]
    fn a_slower_link_raises_the_base_by_what_a_packet_takes_and_no_higher_than_what_is_seen() {
        let settled = |seen: f64| {
            let mut base = BaseDelay::new();
            base.push(VIDEO, 0.050);
            after(3, &mut base, seen);
            base.slowed(1.5e6, 0.6e6);
            base.of(VIDEO)
        };
        assert!((settled(0.100) - 0.0596).abs() < 1e-9);
        assert!((settled(0.055) - 0.055).abs() < 1e-9);
    }

    #[test]
    fn a_shift_moves_all_classes() {
        let mut base = BaseDelay::new();
        base.push(VIDEO, 0.060);
        base.push(AUDIO, 0.052);
        base.shift(0.040);
        assert!((base.of(VIDEO) - 0.100).abs() < 1e-12 && (base.of(AUDIO) - 0.092).abs() < 1e-12);
    }

    /// After the path has become longer, an audio packet takes 92 ms and a video packet takes 100 ms. If the test
    /// fails, the difference of 8 ms looks like a queue until the window of 12 s has passed.
    #[test]
    fn a_shift_gives_no_base_to_a_class_without_samples() {
        let mut base = BaseDelay::new();
        base.push(AUDIO, 0.052);
        base.shift(0.040);
        assert!((base.of(VIDEO) - 0.092).abs() < 1e-12, "of the others");
        base.push(VIDEO, 0.100);
        assert!((base.of(VIDEO) - 0.100).abs() < 1e-12 && (base.of(AUDIO) - 0.092).abs() < 1e-12);
    }
}
