//! Draws the random path of a seed, and writes the scenario that runs flows over this path.

use std::borrow::Cow;

use equipoise::random::stream_seed;
use equipoise::units::{Rate, Span};

use crate::suite::Item;

/// Length of each run.
pub const DURATION: Span = Span::from_secs(45);
/// The minimum rate of a control law. Our choice: three flows at this rate need only half of the lowest possible
/// capacity.
pub const MIN_RATE: Rate = Rate::from_bps(50_000);
/// The initial rate of a control law, which is a third of the lowest possible capacity. Our choice.
pub const INITIAL_RATE: Rate = Rate::from_bps(100_000);
/// The maximum rate of a control law, relative to the capacity. Its media have the same maximum rate. Our choice: each
/// flow alone can fill the path.
pub const MAX_SHARE: u64 = 2;

/// A random path, and the flows over this path. Each property is drawn from its own random stream, so that a property
/// added later does not change any other property.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// The seed from which the path is drawn. The run over the path uses the same seed.
    pub seed: u64,
    /// Capacity of the bottleneck: log-uniform from 0.3 to 50 Mbit/s, rounded to whole kbit/s.
    pub capacity: Rate,
    /// One-way delay, equal in both directions: uniform from 5 to 200 ms, in steps of 0.1 ms.
    pub delay: Span,
    /// Maximum queueing delay: uniform from 50 to 1000 ms, in steps of 1 ms.
    pub queue: Span,
    /// Random loss of packets in each direction, in hundredths of a percent: uniform from 0 to 5 %.
    pub loss: u32,
    /// Standard deviation of the half-normal jitter in each direction: uniform from 0 to 15 ms, in steps of 0.1 ms. The
    /// jitter is at most three standard deviations (RFC 8868, Sec. 4.5.3).
    pub jitter: Span,
    /// Interval of the per-packet feedback: uniform from 20 to 200 ms, in steps of 1 ms.
    pub feedback: Span,
    /// Start times of the flows, since the run's start. There are 1 to 3 flows, and the first one starts at zero. On
    /// half of the paths all flows start together. On the other paths each later flow starts at a uniform random time
    /// from 1 to 5 s.
    pub starts: Vec<Span>,
}

/// Number of the first random stream of a path. The streams of a path are separate from those of the run.
const STREAMS: u64 = u64::from_be_bytes(*b"pathsuit");

/// Returns a random number that is uniform in [0, 1).
fn even(seed: u64, purpose: u64) -> f64 {
    // The upper 53 bits are used, because a double has a mantissa of 53 bits.
    (stream_seed(seed, STREAMS.wrapping_add(purpose)) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Converts a uniform number in [0, 1) to an integer from `least` to `most`, both included.
fn steps(even: f64, least: i64, most: i64) -> i64 {
    (least + (even * (most - least + 1) as f64) as i64).min(most)
}

impl Path {
    /// Returns the random path of a seed.
    pub fn draw(seed: u64) -> Self {
        let even = |purpose| even(seed, purpose);
        let (least, most) = (300.0, 50_000.0);
        let kbps = least * libm::pow(most / least, even(0));
        let flows = steps(even(6), 1, 3);
        let together = even(7) < 0.5;
        let later = |flow: i64| {
            if together { Span::ZERO } else { Span::from_millis(100 * steps(even(8 + flow.unsigned_abs()), 10, 50)) }
        };
        Self {
            seed,
            capacity: Rate::from_bps(1000 * (kbps.round() as u64)),
            delay: Span::from_micros(100 * steps(even(1), 50, 2000)),
            queue: Span::from_millis(steps(even(2), 50, 1000)),
            loss: steps(even(3), 0, 500).unsigned_abs() as u32,
            jitter: Span::from_micros(100 * steps(even(4), 0, 150)),
            feedback: Span::from_millis(steps(even(5), 20, 200)),
            starts: (0..flows).map(|flow| if flow == 0 { Span::ZERO } else { later(flow) }).collect(),
        }
    }

    /// Returns the maximum rate of the control law and of its media.
    pub const fn max_rate(&self) -> Rate {
        Rate::from_bps(MAX_SHARE * self.capacity.as_bps())
    }

    /// Returns the name of a flow from its index.
    pub fn flow_name(place: usize) -> String {
        format!("F{}", place + 1)
    }

    /// Returns a description of the path in one line.
    pub fn in_words(&self) -> String {
        let starts: Vec<_> = self.starts.iter().map(|start| format!("{:.1}", start.as_secs_f64())).collect();
        format!(
            "{:.3} Mbit/s, {:.1} ms, queue {:.0} ms, loss {:.2} %, jitter {:.1} ms, feedback {:.0} ms, flows from {} s",
            self.capacity.as_mbps_f64(),
            self.delay.as_millis_f64(),
            self.queue.as_millis_f64(),
            f64::from(self.loss) / 100.0,
            self.jitter.as_millis_f64(),
            self.feedback.as_millis_f64(),
            starts.join(", ")
        )
    }

    /// Returns the text of the scenario, in which all flows use our control law.
    pub fn text(&self) -> String {
        let kbps = |rate: Rate| rate.as_bps() / 1000;
        let max = kbps(self.max_rate());
        let mut text = format!(
            "# {words}\nname = \"path-{seed}\"\n\
             description = \"Random path {seed}: {words}.\"\nduration = \"{duration} s\"\nseed = {seed}\n\n\
             [[link]]\nname = \"path\"\nrate = \"{rate} kbit/s\"\ndelay = \"{delay:.1} ms\"\nqueue = \"{queue:.0} ms\"\n\
             loss = \"{whole}.{hundredths:02}%\"\njitter = \"{jitter:.1} ms half-normal\"\nback = {{ rate = \"unlimited\" }}\n",
            words = self.in_words(),
            seed = self.seed,
            duration = DURATION.as_secs_f64(),
            rate = kbps(self.capacity),
            delay = self.delay.as_millis_f64(),
            queue = self.queue.as_millis_f64(),
            whole = self.loss / 100,
            hundredths = self.loss % 100,
            jitter = self.jitter.as_millis_f64(),
        );
        for (place, start) in self.starts.iter().enumerate() {
            text.push_str(&format!(
                "\n[[flow]]\nname = \"{name}\"\npath = [\"path\"]\npacket_size = \"1200 B\"\nstart = \"{start:.0} ms\"\n\
                 report_interval = \"100 ms\"\nfeedback = {{ interval = \"{feedback:.0} ms\" }}\n\
                 controller = {{ name = \"equipoise\", initial_rate = \"{initial} kbit/s\", min_rate = \"{min} kbit/s\", \
                 max_rate = \"{max} kbit/s\" }}\n\
                 source = {{ kind = \"encoder\", min_rate = \"{VIDEO_MIN} kbit/s\", max_rate = \"{max} kbit/s\", \
                 reaction = \"100 ms\", burst = \"{burst} B\" }}\n",
                name = Self::flow_name(place),
                start = start.as_millis_f64(),
                feedback = self.feedback.as_millis_f64(),
                initial = kbps(INITIAL_RATE),
                min = kbps(MIN_RATE),
                // RFC 8593, Sec. 5 has the examples 13.5 kB for the burst and 1.5 Mbit/s for the maximum rate: 9 B for
                // each kbit/s.
                burst = 9 * max,
            ));
        }
        text
    }

    /// Returns the item of the suite for this path.
    pub(super) fn item(&self) -> Item {
        Item {
            case: format!("seed {}", self.seed),
            title: self.in_words(),
            variant: "path".to_owned(),
            text: Cow::Owned(self.text()),
            overrides: Vec::new(),
            needs: None,
        }
    }
}

/// Minimum rate of the video without packet headers, in kbit/s. This rate plus the rate of the headers of 30 packets
/// per second is below the control law's minimum rate.
const VIDEO_MIN: u64 = 30;

#[cfg(test)]
mod tests {
    use super::*;

    /// If this test fails, the seeds of earlier results draw different paths, so these results cannot be examined
    /// again.
    #[test]
    fn a_seed_draws_the_same_path_for_good() {
        assert_eq!(
            Path::draw(1).in_words(),
            "1.387 Mbit/s, 5.0 ms, queue 779 ms, loss 2.34 %, jitter 11.1 ms, feedback 24 ms, flows from 0.0, 1.2, 3.9 s"
        );
        assert_eq!(
            Path::draw(4711).in_words(),
            "3.510 Mbit/s, 199.1 ms, queue 109 ms, loss 3.62 %, jitter 6.3 ms, feedback 150 ms, flows from 0.0 s"
        );
    }

    /// The test counts the values in each quarter of a range. For the capacity, it divides the range of the logarithm.
    /// Each count may differ from its expected value by about five standard deviations.
    #[test]
    fn paths_fill_their_ranges() {
        let paths: Vec<_> = (0..4000).map(Path::draw).collect();
        let spread = |least: f64, most: f64, of: &dyn Fn(&Path) -> f64| {
            let mut quarters = [0u32; 4];
            for path in &paths {
                let place = (of(path) - least) / (most - least);
                assert!((-0.001..=1.001).contains(&place), "{}", path.in_words());
                quarters[((place * 4.0) as usize).min(3)] += 1;
            }
            assert!(quarters.iter().all(|count| count.abs_diff(1000) < 140), "{quarters:?}");
        };
        spread(0.3f64.ln(), 50f64.ln(), &|path| path.capacity.as_mbps_f64().ln());
        spread(5.0, 200.0, &|path| path.delay.as_millis_f64());
        spread(50.0, 1000.0, &|path| path.queue.as_millis_f64());
        spread(0.0, 500.0, &|path| f64::from(path.loss));
        spread(0.0, 15.0, &|path| path.jitter.as_millis_f64());
        spread(20.0, 200.0, &|path| path.feedback.as_millis_f64());
        for flows in 1..=3 {
            assert!(paths.iter().filter(|path| path.starts.len() == flows).count().abs_diff(1333) < 150);
        }
        let several = paths.iter().filter(|path| path.starts.len() > 1);
        let (together, apart): (Vec<_>, Vec<_>) =
            several.partition(|path| path.starts.iter().all(|start| *start == Span::ZERO));
        assert!(together.len().abs_diff(apart.len()) < 260, "{} and {}", together.len(), apart.len());
        let is_right = |start: &Span| (1.0..=5.0).contains(&start.as_secs_f64());
        assert!(apart.iter().all(|path| path.starts[0] == Span::ZERO && path.starts[1..].iter().all(is_right)));
    }
}
