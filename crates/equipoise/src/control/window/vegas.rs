use super::{Acknowledged, NoiseAwareness, Reno, WindowController, WindowSnapshot};
use crate::units::{Instant, SenderClock, Span};

/// Vegas: keeps a few of the flow's segments in the queue.
///
/// Source: Brakmo 1995, once per round-trip time:
///
/// ```text
/// expected = w / base_rtt,  actual = w / rtt
/// diff = (expected - actual) base_rtt
/// w ← w + 1 if diff < α,  w - 1 if diff > β,  else w
/// ```
///
/// | symbol | name | unit |
/// | --- | --- | --- |
/// | `w` | window | segments |
/// | `base_rtt`, `rtt` | minimum and current round-trip time | s |
/// | `diff` | the flow's own segments in the queue | segments |
/// | `α`, `β` | lower and upper threshold of `diff` | segments |
/// | `γ` | threshold of `diff` at which slow start ends | segments |
///
/// The thresholds α and β are 2 and 4 by default; the paper also uses 1 and 3, as does ns-2. γ is 1. Slow start doubles
/// the window in every other round-trip time, and compares `diff` with γ in the rounds between.
///
/// What the source leaves open is our choice:
/// - `rtt` is the mean over the round, as in ns-2. After a round without a sample, `diff` is not compared.
/// - A round ends when the first segment sent in the round is acknowledged.
/// - When slow start ends because of γ, the window is kept. A loss halves the window and a timeout sets it to one
///   segment, as in Reno. The paper's early retransmission is left to the transport.
/// - The window does not rise while a part of it is unused, and `diff` does not lower it below two segments.
///
/// # Under noise (our own)
/// With a noise weight l, `diff` is multiplied by `1 / (1 + l C_v)`, where `C_v` is the coefficient of variation of the
/// queueing delay over the rounds (Kodama 2009, Eq. 15). The more the delay fluctuates, the more segments the flow
/// keeps in the queue. The flow's rate is steadier under bursts of cross traffic, but its queue is longer.
#[derive(Clone, Debug)]
pub struct Vegas {
    lower: f64,
    upper: f64,
    /// The Reno law, which stores the window and reacts to losses.
    reno: Reno,
    noise: NoiseAwareness,
    round: Round,
    /// Whether the current round of slow start doubles the window.
    doubling: bool,
}

/// The configuration of [`Vegas`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VegasConfig {
    /// α, the lower threshold of the flow's segments in the queue.
    pub lower: f64,
    /// β, the upper threshold of the flow's segments in the queue.
    pub upper: f64,
    /// l, how strongly noise of the queueing delay lowers `diff`; zero for Vegas as in the paper.
    pub noise_weight: f64,
    /// Initial window, in segments.
    pub initial_window: f64,
}

/// The state of one round, which lasts a round-trip time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Round {
    /// Number of segments of this round that are not acknowledged yet.
    left: u64,
    sum_s: f64,
    samples: u32,
}

/// γ, the value of `diff` above which slow start ends, in segments. With a larger value, slow start ends later (Brakmo
/// 1995, Sec. 3.3).
const SLOW_START_BACKLOG: f64 = 1.0;
/// Minimum window that `diff` may set, in segments, as in ns-2. One segment per round-trip time would be too little to
/// measure.
const LEAST_WINDOW: f64 = 2.0;

impl Round {
    /// Returns a round that ends when the first segment sent after `ack` is acknowledged.
    const fn behind(ack: &Acknowledged) -> Self {
        Self { left: ack.in_flight.saturating_sub(ack.segments).saturating_add(1), sum_s: 0.0, samples: 0 }
    }

    fn push(&mut self, ack: &Acknowledged) {
        self.left = self.left.saturating_sub(ack.segments);
        if let Some(round_trip) = ack.round_trip.filter(|round_trip| *round_trip > Span::ZERO) {
            self.sum_s += round_trip.as_secs_f64();
            self.samples = self.samples.saturating_add(1);
        }
    }

    fn mean_s(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.sum_s / f64::from(self.samples))
    }
}

impl Vegas {
    /// Creates a law in slow start.
    pub fn new(config: VegasConfig) -> Self {
        let VegasConfig { lower, upper, noise_weight, initial_window } = config;
        Self {
            lower,
            upper: upper.max(lower),
            reno: Reno::new(initial_window),
            noise: NoiseAwareness::new(noise_weight),
            round: Round::default(),
            doubling: true,
        }
    }

    /// Returns `diff`, the number of the flow's segments in the queue, multiplied by the noise factor.
    fn backlog(&mut self, mean_s: f64, base_s: f64) -> f64 {
        let queueing_s = (mean_s - base_s).max(0.0);
        self.noise.push(queueing_s);
        self.reno.window() * (queueing_s / mean_s) * self.noise.factor()
    }

    fn end_round(&mut self, ack: &Acknowledged) {
        let (mean_s, base_s) = (self.round.mean_s(), ack.min_round_trip.map(Span::as_secs_f64));
        let compares = !self.reno.in_slow_start() || !self.doubling;
        self.doubling = !self.doubling;
        let (Some(mean_s), Some(base_s)) = (mean_s, base_s.filter(|base| *base > 0.0)) else { return };
        let backlog = self.backlog(mean_s, base_s);
        if !compares {
            return;
        }
        let window = self.reno.window();
        if self.reno.in_slow_start() {
            if backlog > SLOW_START_BACKLOG {
                self.reno.leave_slow_start();
            }
        } else if backlog < self.lower && ack.window_limited {
            self.reno.take_over(window + 1.0);
        } else if backlog > self.upper {
            self.reno.take_over((window - 1.0).max(LEAST_WINDOW).min(window));
        }
    }
}

impl WindowController for Vegas {
    fn on_ack(&mut self, now: Instant<SenderClock>, ack: &Acknowledged) {
        if self.reno.in_slow_start() && self.doubling {
            self.reno.on_ack(now, ack);
        }
        self.round.push(ack);
        if self.round.left == 0 {
            self.end_round(ack);
            self.round = Round::behind(ack);
        }
    }

    fn on_loss(&mut self, now: Instant<SenderClock>, in_flight: u64) {
        self.reno.on_loss(now, in_flight);
        self.round = Round::default();
    }

    fn on_timeout(&mut self, now: Instant<SenderClock>, in_flight: u64) {
        self.reno.on_timeout(now, in_flight);
        (self.round, self.doubling) = (Round::default(), true);
    }

    fn on_restart(&mut self, now: Instant<SenderClock>, window: f64) {
        self.reno.on_restart(now, window);
        self.round = Round::default();
    }

    fn window(&self) -> f64 {
        self.reno.window()
    }

    fn slow_start_threshold(&self) -> Option<f64> {
        self.reno.slow_start_threshold()
    }

    fn reset_to(&mut self, window: f64) {
        self.reno.reset_to(window);
    }

    fn snapshot(&self) -> WindowSnapshot {
        WindowSnapshot::default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type At = Instant<SenderClock>;

    const CONFIG: VegasConfig = VegasConfig { lower: 2.0, upper: 4.0, noise_weight: 0.0, initial_window: 2.0 };
    const BASE_S: f64 = 0.1;

    /// Simulates one round on a path that carries `rate` segments/s: the part of the window above `rate · BASE_S`
    /// segments is queued, and cross traffic adds `extra_s` to the round-trip time.
    fn round(vegas: &mut Vegas, rate: f64, extra_s: f64) {
        let segments = vegas.window() as u64;
        let round_trip_s = (vegas.window() / rate).max(BASE_S) + extra_s;
        let ack = Acknowledged {
            segments: 1,
            round_trip: Span::from_secs_f64(round_trip_s),
            min_round_trip: Span::from_secs_f64(BASE_S),
            in_flight: segments,
            window_limited: true,
            ..Acknowledged::default()
        };
        (0..segments).for_each(|_| vegas.on_ack(At::ZERO, &ack));
    }

    /// Without a queue, 500 segments/s · 0.1 s = 50 segments are in flight. Vegas must settle two to four segments
    /// above that, from a smaller and from a larger window.
    #[test]
    fn it_rests_with_two_to_four_segments_in_the_queue() {
        for (start, threshold) in [(2.0, None), (10.0, Some(20)), (100.0, Some(200))] {
            let mut vegas = Vegas::new(VegasConfig { initial_window: start, ..CONFIG });
            if let Some(in_flight) = threshold {
                vegas.on_loss(At::ZERO, in_flight);
            }
            (0..200).for_each(|_| round(&mut vegas, 500.0, 0.0));
            assert!((51.5..=54.5).contains(&vegas.window()), "from {start}: {}", vegas.window());
            let rest = vegas.window();
            (0..50).for_each(|_| round(&mut vegas, 500.0, 0.0));
            assert!((vegas.window() - rest).abs() < 1e-9, "it rests");
        }
    }

    #[test]
    fn slow_start_doubles_in_every_other_round_and_ends_before_a_loss() {
        let mut vegas = Vegas::new(CONFIG);
        let windows: alloc::vec::Vec<_> = (0..12)
            .map(|_| {
                round(&mut vegas, 500.0, 0.0);
                vegas.window()
            })
            .collect();
        let doubled = windows.iter().position(|window| *window >= 16.0).expect("it doubles");
        assert!((4..=9).contains(&doubled), "three doublings in about twice as many rounds: {windows:?}");
        assert!(
            windows.iter().all(|window| *window < 100.0),
            "no further than one doubling past the path: {windows:?}"
        );
        assert!(vegas.slow_start_threshold().is_some(), "γ ended slow start");
    }

    #[test]
    fn without_samples_nothing_is_decided() {
        let mut vegas = Vegas::new(VegasConfig { initial_window: 10.0, ..CONFIG });
        vegas.on_loss(At::ZERO, 20);
        let ack = Acknowledged { segments: 1, in_flight: 10, window_limited: true, ..Acknowledged::default() };
        (0..500).for_each(|_| vegas.on_ack(At::ZERO, &ack));
        assert!((vegas.window() - 10.0).abs() < 1e-12);
    }

    #[test]
    fn a_noisy_delay_starves_vegas_less_where_it_knows_of_noise() {
        let run = |noise_weight| {
            let mut vegas = Vegas::new(VegasConfig { noise_weight, ..CONFIG });
            vegas.on_loss(At::ZERO, 60);
            // Bursts of cross traffic add 20 ms of delay in two of four rounds. Without a queue, 50 segments are in
            // flight.
            for number in 0..400 {
                round(&mut vegas, 500.0, if number % 4 < 2 { 0.02 } else { 0.0 });
            }
            vegas.window()
        };
        let (deaf, aware) = (run(0.0), run(4.0));
        assert!(aware > 1.2 * deaf, "{aware} against {deaf}");
        assert!(aware < 100.0, "it is no law without a limit: {aware}");
    }

    proptest! {
        #[test]
        fn a_round_moves_the_window_by_one_segment_at_most(start in 2u64..2000, rate in 1.0f64..1e5, extra in 0.0f64..1.0) {
            let mut vegas = Vegas::new(CONFIG);
            vegas.on_loss(At::ZERO, 2 * start);
            round(&mut vegas, rate, extra);
            let first = vegas.window();
            round(&mut vegas, rate, extra);
            prop_assert!((vegas.window() - first).abs() <= 1.0 + 1e-9);
        }

        #[test]
        fn the_window_is_finite_and_at_least_one_after_any_input(inputs in prop::collection::vec(any::<(u8, u64, u64, i64, i64, bool)>(), 1..60), weight in prop::num::f64::ANY) {
            let mut vegas = Vegas::new(VegasConfig { noise_weight: weight, ..CONFIG });
            for (kind, a, b, nanos, base, flag) in inputs {
                let now = At::from_nanos(a);
                match kind % 5 {
                    0 => vegas.on_loss(now, b),
                    1 => vegas.on_timeout(now, b),
                    2 => vegas.on_restart(now, b as f64),
                    3 => vegas.reset_to(nanos as f64),
                    _ => vegas.on_ack(now, &Acknowledged {
                        segments: b,
                        round_trip: Some(Span::from_nanos(nanos)),
                        min_round_trip: Some(Span::from_nanos(base)),
                        in_flight: a,
                        window_limited: flag,
                        ..Acknowledged::default()
                    }),
                }
                prop_assert!(vegas.window().is_finite() && vegas.window() >= 1.0, "{vegas:?}");
            }
        }
    }
}
