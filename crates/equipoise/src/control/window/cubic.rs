use super::{Acknowledged, Reno, WindowController};
use crate::units::{Instant, SenderClock, Span};

/// CUBIC: the window follows a cubic function of the time since the last loss. The curve is flat near the window at
/// which that loss occurred.
///
/// Source: RFC 9438.
///
/// ```text
/// W_cubic(t) = C (t - K)³ + W_max                 Sec. 4.2
/// K = ∛((W_max - cwnd_epoch) / C)
/// W_est ← W_est + α segments_acked / cwnd         Sec. 4.3, the window that Reno would have
/// target = W_cubic(t + RTT), from cwnd to 1.5 cwnd
/// cwnd ← W_est if W_cubic(t) < W_est, else cwnd + (target - cwnd) / cwnd
/// after a loss: W_max ← cwnd, or cwnd (1 + β) / 2 if cwnd < W_max (fast convergence, Sec. 4.7)
///               cwnd ← β in_flight                Sec. 4.6
/// ```
///
/// | symbol | name | unit |
/// | --- | --- | --- |
/// | `t` | time since the current stage of congestion avoidance began | s |
/// | `K` | time until the window is `W_max` again | s |
/// | `W_max` | window at the last loss, or less with fast convergence | segments |
/// | `cwnd`, `cwnd_epoch` | window now, and at the start of the current stage | segments |
/// | `C` | steepness | segments/s³ |
/// | `α` | growth of `W_est` per round trip | segments |
/// | `β` | factor by which a loss reduces the window | 1 |
///
/// Slow start is that of Reno, without `HyStart++`, which RFC 9438, Sec. 4.10, recommends. After a timeout, K is zero
/// and `W_max` is the window at the end of slow start (Sec. 4.8).
///
/// Our interpretation of the source:
/// - A stage of congestion avoidance begins with the first acknowledgement after recovery or slow start. App-limited
///   time does not count (Sec. 5.8). An idle time starts a new stage.
/// - A stage that begins above `W_max`, for example because the window was set from outside, begins at the plateau of
///   the curve: K is zero.
/// - After a loss, the new window is β times the data in flight, even if little was in flight (Sec. 4.6).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cubic {
    /// The Reno law, which stores the window and controls it in slow start.
    reno: Reno,
    /// The window before the last reduction, in segments.
    prior: f64,
    /// `W_max`: the window at the last loss. Fast convergence may reduce this value (RFC 9438, Sec. 4.7). `None` before
    /// any loss and after a timeout.
    peak: Option<f64>,
    stage: Option<Stage>,
    last_ack: Option<Instant<SenderClock>>,
}

/// The state of the current stage of congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stage {
    curve: Curve,
    /// `W_est`, the window that Reno would have.
    reno: f64,
    /// t, the time since the stage began, without app-limited time, in s.
    elapsed_s: f64,
}

/// `W_cubic`, the window as a cubic function of time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Curve {
    /// K, the time until the window is `W_max` again, in s.
    time_to_peak_s: f64,
    /// `W_max`, the window at the plateau of the curve, in segments.
    peak: f64,
}

/// C, the steepness of the curve, in segments/s³ (RFC 9438, Sec. 5).
const STEEPNESS: f64 = 0.4;
/// β: a loss multiplies the window by this factor (RFC 9438, Sec. 4.6).
const DECREASE: f64 = 0.7;
/// α: growth of `W_est` in segments per round trip (RFC 9438, Sec. 4.3). `W_est` is the window that Reno would have.
/// The constant applies while `W_est` is below the window before the last reduction.
const FRIENDLY_INCREASE: f64 = 3.0 * (1.0 - DECREASE) / (1.0 + DECREASE);
/// Maximum target after one round-trip time, as a multiple of the window (RFC 9438, Sec. 4.2).
const LARGEST_TARGET: f64 = 1.5;

impl Curve {
    fn from(window: f64, peak: f64) -> Self {
        let peak = peak.max(window);
        Self { time_to_peak_s: libm::cbrt((peak - window) / STEEPNESS), peak }
    }

    fn at(self, elapsed_s: f64) -> f64 {
        let t = elapsed_s - self.time_to_peak_s;
        STEEPNESS * t * t * t + self.peak
    }
}

impl Cubic {
    /// Creates a law in slow start with a window of `initial_window` segments, at least one.
    pub const fn new(initial_window: f64) -> Self {
        let prior = initial_window.max(1.0);
        Self { reno: Reno::new(initial_window), prior, peak: None, stage: None, last_ack: None }
    }

    /// Applies congestion avoidance to one acknowledgement, which arrives `gap_s` seconds after the previous one.
    fn avoid_congestion(&mut self, ack: &Acknowledged, gap_s: f64) {
        let (window, prior) = (self.reno.window(), self.prior);
        let curve = Curve::from(window, self.peak.unwrap_or(window));
        let begin = Stage { curve, reno: window, elapsed_s: 0.0 };
        let mut stage = self.stage.map_or(begin, |stage| Stage { elapsed_s: stage.elapsed_s + gap_s, ..stage });
        // Once `W_est` reaches the window before the last reduction, α is one, as for Reno (RFC 9438, Sec. 4.3).
        let increase = if stage.reno < prior { FRIENDLY_INCREASE } else { 1.0 };
        stage.reno += increase * (ack.segments as f64).min(window) / window;
        let next = if stage.curve.at(stage.elapsed_s) < stage.reno {
            stage.reno.max(window)
        } else {
            let round_trip_s = ack.smoothed_round_trip.map_or(0.0, Span::as_secs_f64).max(0.0);
            let target = stage.curve.at(stage.elapsed_s + round_trip_s).clamp(window, LARGEST_TARGET * window);
            window + (target - window) / window
        };
        self.reno.take_over(next);
        self.stage = Some(stage);
    }

    /// Ends the stage of congestion avoidance, because of a loss or a timeout.
    fn end_stage(&mut self) {
        self.prior = self.reno.window();
        (self.stage, self.last_ack) = (None, None);
    }
}

impl WindowController for Cubic {
    fn on_ack(&mut self, now: Instant<SenderClock>, ack: &Acknowledged) {
        let gap_s = self.last_ack.map_or(0.0, |last| (now - last).as_secs_f64()).max(0.0);
        self.last_ack = Some(now);
        if !ack.window_limited {
            return;
        }
        if self.reno.in_slow_start() {
            self.reno.on_ack(now, ack);
        } else {
            self.avoid_congestion(ack, gap_s);
        }
    }

    fn on_loss(&mut self, _now: Instant<SenderClock>, in_flight: u64) {
        // Fast convergence: a window that did not return to its peak leaves room for newer flows (RFC 9438, Sec. 4.7).
        let window = self.reno.window();
        let fell_again = self.peak.is_some_and(|peak| window < peak);
        self.peak = Some(if fell_again { window * (1.0 + DECREASE) / 2.0 } else { window });
        self.end_stage();
        self.reno.reduce(in_flight as f64 * DECREASE);
    }

    fn on_timeout(&mut self, _now: Instant<SenderClock>, in_flight: u64) {
        self.end_stage();
        self.peak = None;
        self.reno.start_again(in_flight as f64 * DECREASE);
    }

    fn on_restart(&mut self, now: Instant<SenderClock>, window: f64) {
        self.reno.on_restart(now, window);
        (self.stage, self.last_ack) = (None, None);
    }

    fn window(&self) -> f64 {
        self.reno.window()
    }

    fn slow_start_threshold(&self) -> Option<f64> {
        self.reno.slow_start_threshold()
    }

    fn reset_to(&mut self, window: f64) {
        if let Some(stage) = &mut self.stage {
            // `W_est`, the window that Reno would have, changes by the same amount as the window.
            stage.reno = (stage.reno + (window - self.reno.window())).max(1.0);
        }
        self.reno.reset_to(window);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type At = Instant<SenderClock>;

    fn ack(round_trip_ms: i64) -> Acknowledged {
        let round_trip = Some(Span::from_millis(round_trip_ms));
        Acknowledged {
            segments: 1,
            smoothed_round_trip: round_trip,
            min_round_trip: round_trip,
            in_flight: 10,
            window_limited: true,
            ..Acknowledged::default()
        }
    }

    /// Acknowledges one window per round-trip time, evenly spaced, for `seconds`. Returns the window at each whole
    /// second.
    fn run(cubic: &mut Cubic, from_s: f64, seconds: usize, round_trip_ms: i64) -> alloc::vec::Vec<f64> {
        let (mut now_s, mut windows) = (from_s, alloc::vec::Vec::new());
        for second in 1..=seconds {
            while now_s < from_s + second as f64 {
                cubic.on_ack(At::from_nanos((now_s * 1e9) as u64), &ack(round_trip_ms));
                now_s += round_trip_ms as f64 / 1e3 / cubic.window();
            }
            windows.push(cubic.window());
        }
        windows
    }

    fn after_loss_at(window: f64) -> Cubic {
        let mut cubic = Cubic::new(window);
        cubic.on_loss(At::ZERO, window as u64);
        cubic
    }

    /// The expected values were calculated independently of this code, from the formulas of RFC 9438, Sec. 4.2 for a C
    /// of 0.4 and a β of 0.7.
    #[test]
    fn golden_values_of_the_cubic_function() {
        for (peak, time_to_peak, values) in [
            (
                100.0,
                4.217_163_326_5,
                [(0.0, 70.0), (1.0, 86.680_763_835_1), (5.0, 100.191_899_339_4), (10.0, 177.353_999_088_4)],
            ),
            (
                1000.0,
                9.085_602_964_2,
                [(0.0, 700.0), (1.0, 788.555_093_909_8), (5.0, 972.720_998_409_4), (10.0, 1_000.305_818_969_1)],
            ),
        ] {
            let curve = Curve::from(0.7 * peak, peak);
            assert!((curve.time_to_peak_s - time_to_peak).abs() < 1e-9);
            for (elapsed_s, window) in values {
                assert!((curve.at(elapsed_s) - window).abs() < 1e-8, "{elapsed_s} s: {}", curve.at(elapsed_s));
            }
        }
        assert!((FRIENDLY_INCREASE - 9.0 / 17.0).abs() < 1e-12);
    }

    /// On a path with a large bandwidth-delay product, the window must follow the cubic function to within 1 %.
    #[test]
    fn acknowledgement_by_acknowledgement_it_follows_the_curve() {
        let mut cubic = after_loss_at(1000.0);
        assert!((cubic.window() - 700.0).abs() < 1e-9);
        let windows = run(&mut cubic, 1.0, 12, 100);
        for (second, expected) in [(1, 788.555_093_909_8), (5, 972.720_998_409_4), (10, 1_000.305_818_969_1)] {
            let found = windows[second - 1];
            assert!((found / expected - 1.0).abs() < 0.01, "after {second} s: {found}, not {expected}");
        }
    }

    /// On a short path, CUBIC grows in its Reno-friendly region (RFC 9438, Sec. 4.3): by 0.529 segments per round-trip
    /// time below the last peak, and by one segment per round-trip time above the last peak.
    #[test]
    fn on_a_short_path_it_grows_as_reno_would() {
        let mut cubic = after_loss_at(20.0);
        let windows = run(&mut cubic, 1.0, 1, 100);
        assert!((windows[0] / (14.0 + 10.0 * 0.529_4) - 1.0).abs() < 0.02, "ten round trips: {}", windows[0]);
        let mut cubic = after_loss_at(20.0);
        // There are 500 round trips of 2 ms. In the first 11.3 round trips, the window grows from 14 segments to the
        // last peak of 20 segments, by 0.529 segments per round trip. In each of the other round trips, the window
        // grows by one segment.
        let windows = run(&mut cubic, 1.0, 1, 2);
        assert!((windows[0] / (20.0 + 500.0 - 11.3) - 1.0).abs() < 0.02, "500 round trips: {}", windows[0]);
    }

    #[test]
    fn a_second_loss_below_the_peak_gives_room() {
        let mut cubic = after_loss_at(100.0);
        run(&mut cubic, 1.0, 1, 1000);
        let fallen = cubic.window();
        cubic.on_loss(At::ZERO, 80);
        assert!(fallen < 100.0 && (cubic.peak.unwrap() - fallen * 0.85).abs() < 1e-9, "Sec. 4.7");
        assert!((cubic.window() - 56.0).abs() < 1e-9);
    }

    #[test]
    fn after_a_timeout_it_slow_starts_and_grows_from_the_plateau() {
        let mut cubic = after_loss_at(1000.0);
        cubic.on_timeout(At::ZERO, 700);
        assert!((cubic.window() - 1.0).abs() < 1e-12);
        assert!((cubic.slow_start_threshold().unwrap() - 490.0).abs() < 1e-9);
        (0..489).for_each(|_| cubic.on_ack(At::from_nanos(1_000_000_000), &ack(100)));
        assert!((cubic.window() - 490.0).abs() < 1e-9);
        let windows = run(&mut cubic, 1.0, 5, 100);
        // From its plateau at 490 segments, the curve rises by 0.4 · 5³ = 50 segments in 5 s. The window grows by 53,
        // because the target is one round-trip time, 0.1 s, ahead. In these 50 round trips, Reno's window would grow by
        // only 0.529 · 50 = 26 segments.
        assert!((windows[4] / 542.0 - 1.0).abs() < 0.01, "{}", windows[4]);
    }

    #[test]
    fn time_in_which_the_window_is_not_used_is_not_on_the_curve() {
        let (mut busy, mut lazy) = (after_loss_at(1000.0), after_loss_at(1000.0));
        run(&mut busy, 1.0, 2, 100);
        run(&mut lazy, 1.0, 2, 100);
        let unused = Acknowledged { window_limited: false, ..ack(100) };
        (0..60_000).for_each(|ms| lazy.on_ack(At::from_nanos(3_000_000_000 + ms * 1_000_000), &unused));
        assert!((busy.window() - lazy.window()).abs() < 1e-9);
        let (there, later) = (run(&mut busy, 3.0, 2, 100), run(&mut lazy, 63.0, 2, 100));
        assert!((there[1] / later[1] - 1.0).abs() < 0.001, "{} {}", there[1], later[1]);
    }

    proptest! {
        #[test]
        fn the_curve_begins_at_the_window_and_passes_the_peak_at_k(window in 1.0f64..1e6, above in 0.0f64..1e6) {
            let curve = Curve::from(window, window + above);
            prop_assert!((curve.at(0.0) / window - 1.0).abs() < 1e-6 * (1.0 + above / window));
            prop_assert!((curve.at(curve.time_to_peak_s) - curve.peak).abs() < 1e-9 * curve.peak);
        }

        /// By RFC 9438, Sec. 4.2, the target is at most 1.5 times the window, so the curve adds at most half a segment
        /// per acknowledgement. The test allows another half a segment for the Reno-friendly window. An acknowledgement
        /// never reduces the window.
        #[test]
        fn an_acknowledgement_adds_half_a_segment_at_most_beyond_reno(window in 2.0f64..1e5, nanos in any::<u64>()) {
            let mut cubic = after_loss_at(window);
            cubic.on_ack(At::ZERO, &ack(100));
            let before = cubic.window();
            cubic.on_ack(At::from_nanos(nanos), &ack(100));
            prop_assert!(cubic.window() >= before && cubic.window() <= before + 1.0 + 1e-9);
        }

        #[test]
        fn the_window_is_finite_and_at_least_one_after_any_input(inputs in prop::collection::vec(any::<(u8, u64, u64, i64, bool)>(), 1..60)) {
            let mut cubic = Cubic::new(10.0);
            for (kind, a, b, nanos, flag) in inputs {
                let now = At::from_nanos(a);
                match kind % 5 {
                    0 => cubic.on_loss(now, b),
                    1 => cubic.on_timeout(now, b),
                    2 => cubic.on_restart(now, b as f64),
                    3 => cubic.reset_to(nanos as f64),
                    _ => {
                        let smoothed_round_trip = Some(Span::from_nanos(nanos));
                        cubic.on_ack(now, &Acknowledged { segments: b, smoothed_round_trip, window_limited: flag, ..ack(1) });
                    }
                }
                prop_assert!(cubic.window().is_finite() && cubic.window() >= 1.0, "{cubic:?}");
            }
        }
    }
}
