use super::path::{Path, Seen};
use super::standing::StandingQueue;
use crate::control::window::{Acknowledged, Cubic, WindowController as _};
use crate::units::{Instant, SenderClock, Span};

/// The mode in competition with a loss-based flow (the rival). The rate follows from a virtual TCP window. From time to
/// time, the mode tests whether the rival is still present.
#[derive(Clone, Debug)]
pub(super) struct RivalMode {
    /// CUBIC's congestion avoidance, with its window in segments; `None` during slow start.
    cubic: Option<Cubic>,
    window_bits: f64,
    /// Bits that have arrived and do not fill a whole segment yet.
    left_bits: f64,
    /// The longest queueing delay shortly before the competition with a loss-based flow began, in s.
    queue_before_s: f64,
    /// The time when a loss last reduced the window, in s.
    reduced_s: f64,
    /// `tested_s` is the time when the last test for a rival began, in s. `reference_s` is the later of two times:
    /// `tested_s`, and the time when the queue last fell without a test.
    reference_s: f64,
    tested_s: f64,
    test: Option<DipTest>,
    /// `arriving_bps` is the flow's smoothed arrival rate. `tested_bps` is the arrival rate before the last test for a
    /// rival; `None` while this rate is unknown. Both are in bit/s.
    arriving_bps: f64,
    tested_bps: Option<f64>,
    /// Number of tests that found the competing loss-based flow still present, since the competition began.
    confirmed: u32,
    short_since_s: Option<f64>,
}

/// A test that lowers the rate for a short time to detect whether another flow holds the queue.
///
/// If this flow is alone in a queue that does not empty, its arrival rate stays the same. If this flow has a share `f`
/// of the arrivals and lowers its rate by the share `x`, its arrival rate falls to
/// `λ = (1 - x) / ((1 - x) f + 1 - f)` times the rate before the test. If `f` and `x` are one half, `λ` is 2/3.
#[derive(Clone, Copy, Debug)]
struct DipTest {
    began_s: f64,
    ends_s: f64,
    /// The arrival rate of the packets sent before the test, in bit/s; `None` until they have been reported.
    before_bps: Option<f64>,
}

/// How the mode continues.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// The competition with a loss-based flow continues. The control law continues with this rate, in bit/s.
    Stays(f64),
    /// The competition with a loss-based flow ends, because that flow is gone. The control law continues with this
    /// rate, in bit/s.
    Leaves(f64),
}

/// Size of a segment of the virtual TCP window that sets the rate, in bits.
const SEGMENT_BITS: f64 = 12_000.0;
const LEAST_SEGMENTS: f64 = 2.0;
/// If a competition with a loss-based flow ended recently, the first window of a new competition is at least `KEPT`
/// times the last window of that competition.
const KEPT: f64 = 1.0;
/// In the slow start of [`RivalMode`], the window grows by `SLOW_START` times the bits that arrive. Slow start ends
/// when the queue is more than `QUEUE_GREW` times as long as before the mode began, or with the first loss.
const SLOW_START: f64 = 1.0;
const QUEUE_GREW: f64 = 1.5;
/// The rate is `ABOVE_WINDOW` times the virtual TCP window per round trip. This compensates for the tests, which lower
/// the rate for a short time to detect whether the competing flow is still present.
const ABOVE_WINDOW: f64 = 1.05;
/// Upper limit of the virtual window, as a share of the controller's maximum rate times the round-trip time.
const ABOVE_MAX: f64 = 0.95;
/// A test for a competing flow multiplies the rate by `TEST_DIP` for one round trip (1 s at most) plus `TEST_S`, in s.
const TEST_DIP: f64 = 0.6;
const TEST_S: f64 = 0.45;
/// A test lowers the flow's rate for a short time, to find whether another flow causes the queue. The test compares two
/// arrival rates: the rate of the packets sent in the last `JUDGED_S` of the test, and the rate of the packets sent in
/// the `COMPARED_S` before the test. Both times are in s.
const JUDGED_S: f64 = 0.4;
const COMPARED_S: f64 = 0.6;
/// A test lowers the rate. If the flow's arrival rate stays above this share of the arrival rate before the test, the
/// flow is alone.
const ALONE: f64 = 0.92;
/// A test checks whether a competing loss-based flow is still present. The basic interval between tests is the larger
/// of `TEST_EVERY_S`, in s, and `TEST_EVERY_ROUND_TRIPS`, in round trips. If the queue falls without a test, the next
/// test may begin earlier: `TEST_SOONER` times the current interval after the last test.
const TEST_EVERY_S: f64 = 3.0;
const TEST_EVERY_ROUND_TRIPS: f64 = 4.0;
const TEST_SOONER: f64 = 0.6;
/// The interval between two tests for a competing flow starts at a basic length. Each test that finds a competing flow
/// makes the interval longer by `RARER` basic lengths. All tests together add at most `MOST_RARER` basic lengths.
const RARER: f64 = 1.5;
const MOST_RARER: f64 = 6.0;
/// `ARRIVING_S`, in s, is the time constant with which the flow's arrival rate is smoothed. If the smoothed rate
/// exceeds `ROSE` times the arrival rate before the last test, the competing flow may have left. The next test for a
/// competing flow then begins after the basic interval.
const ARRIVING_S: f64 = 1.0;
const ROSE: f64 = 1.3;
/// If the queue stays below the target for this time, in s, there is no rival.
const SHORT_S: f64 = 1.2;

impl RivalMode {
    /// Starts the competition with a loss-based flow. `left` is the state of a recent competition. The first window is
    /// the larger of two values: the window for `rate_bps`, and `KEPT` times the window of `left`. If the slow start of
    /// `left` had ended, there is no slow start now.
    pub(super) fn new(seen: &Seen, rate_bps: f64, queue_before_s: f64, left: Option<&Self>) -> Self {
        let own = (rate_bps * seen.latest_round_trip_s).max(LEAST_SEGMENTS * SEGMENT_BITS);
        let window_bits = left.map_or(own, |left| own.max(KEPT * left.window_bits));
        let cubic = left.and_then(|left| left.cubic.map(|_| steady(seen, window_bits)));
        Self {
            cubic,
            window_bits,
            left_bits: 0.0,
            queue_before_s,
            reduced_s: f64::NEG_INFINITY,
            reference_s: seen.now_s,
            tested_s: seen.now_s,
            test: None,
            arriving_bps: seen.received_bps,
            tested_bps: None,
            confirmed: 0,
            short_since_s: None,
        }
    }

    /// The virtual window, in bits.
    pub(super) const fn window_bits(&self) -> f64 {
        self.window_bits
    }

    /// Multiplies the window by `scale`, after a decision outside of this mode changed the rate.
    pub(super) fn scale(&mut self, scale: f64) {
        self.window_bits = (self.window_bits * scale).max(LEAST_SEGMENTS * SEGMENT_BITS);
        if let Some(cubic) = &mut self.cubic {
            cubic.reset_to(self.window_bits / SEGMENT_BITS);
        }
    }

    /// Applies a report. `target_s` is the target of the queueing delay without a rival, in s, and `max_bps` the
    /// highest rate, in bit/s.
    pub(super) fn step(
        &mut self,
        seen: &Seen,
        (path, standing): (&Path, &StandingQueue),
        (target_s, max_bps): (f64, f64),
    ) -> Verdict {
        self.grow(seen, max_bps);
        let gain = 1.0 - libm::exp(-seen.elapsed_s / ARRIVING_S);
        self.arriving_bps += gain * (seen.received_bps - self.arriving_bps);
        let rate_bps = ABOVE_WINDOW * self.window_bits / seen.round_trip_s;
        if let Some(before_bps) = self.test(seen, (path, standing), target_s) {
            return Verdict::Leaves(before_bps);
        }
        if seen.least_s >= target_s {
            self.short_since_s = None;
        } else if seen.now_s - *self.short_since_s.get_or_insert(seen.now_s) > SHORT_S {
            return Verdict::Leaves(rate_bps);
        }
        Verdict::Stays(if self.test.is_some_and(|it| seen.now_s < it.ends_s) { TEST_DIP * rate_bps } else { rate_bps })
    }

    fn grow(&mut self, seen: &Seen, max_bps: f64) {
        let most_bits = ABOVE_MAX * max_bps * seen.round_trip_s;
        let is_free = seen.now_s - self.reduced_s > seen.latest_round_trip_s;
        let segments = self.window_bits / SEGMENT_BITS;
        if seen.lost > 0.0 && is_free && !seen.after_gap {
            self.reduced_s = seen.now_s;
            let cubic = self.cubic.get_or_insert_with(|| steady(seen, self.window_bits));
            cubic.on_loss(moment(seen.now_s), segments as u64);
            self.window_bits = cubic.window() * SEGMENT_BITS;
        } else if is_free && self.window_bits < most_bits {
            match &mut self.cubic {
                None if seen.last_s > QUEUE_GREW * self.queue_before_s => {
                    self.cubic = Some(steady(seen, self.window_bits));
                }
                None => self.window_bits += SLOW_START * seen.arrived_bits,
                Some(cubic) => {
                    self.left_bits += seen.arrived_bits;
                    while self.left_bits >= SEGMENT_BITS {
                        self.left_bits -= SEGMENT_BITS;
                        cubic.on_ack(moment(seen.now_s), &acknowledged(seen, segments));
                    }
                    self.window_bits = cubic.window() * SEGMENT_BITS;
                }
            }
        }
        self.window_bits = self.window_bits.min(most_bits).max(LEAST_SEGMENTS * SEGMENT_BITS);
    }

    /// Starts a test for a competing loss-based flow if a test is due, and evaluates a finished test. A test is a short
    /// reduction of the rate. If the finished test found no competing flow, returns the arrival rate before the test,
    /// in bit/s. If this arrival rate is unknown, returns the window of the virtual TCP connection, divided by the
    /// round-trip time.
    fn test(&mut self, seen: &Seen, (path, standing): (&Path, &StandingQueue), target_s: f64) -> Option<f64> {
        let fell = standing.fell(seen);
        if fell && seen.now_s - self.reference_s > 1.0 && self.test.is_none() {
            self.reference_s = seen.now_s;
        }
        let Some(test) = &mut self.test else {
            if self.is_due(seen, fell) {
                let ends_s = seen.now_s + seen.round_trip_s.min(1.0) + TEST_S;
                self.test = Some(DipTest { began_s: seen.now_s, ends_s, before_bps: None });
                (self.tested_s, self.reference_s) = (seen.now_s, seen.now_s);
            }
            return None;
        };
        let newest_s = path.recent.newest_first().next()?.departed_s;
        if newest_s > test.began_s && test.before_bps.is_none() {
            // The rate before the test is measured now. On long paths, when the test ends, `recent` no longer has the
            // packets that were sent before the test.
            test.before_bps = arriving_bps(path, test.began_s - COMPARED_S, test.began_s);
        }
        if newest_s <= test.ends_s {
            return None;
        }
        let (before_bps, ends_s) = (test.before_bps, test.ends_s);
        self.test = None;
        let during_bps = arriving_bps(path, ends_s - JUDGED_S, ends_s);
        let is_alone = before_bps.zip(during_bps).is_some_and(|(before, during)| during > ALONE * before);
        let mut judged = path.recent.newest_first().filter(|it| it.departed_s <= ends_s);
        let is_empty = judged.any(|it| it.departed_s > ends_s - JUDGED_S && it.over_s < target_s);
        self.confirmed += 1;
        self.tested_bps = before_bps;
        (is_alone || is_empty).then(|| before_bps.unwrap_or(self.window_bits / seen.round_trip_s))
    }

    /// Whether the next test must begin now. A test lowers the rate to detect whether the rival is still present.
    /// `fell` tells whether the queue fell without a test.
    fn is_due(&self, seen: &Seen, fell: bool) -> bool {
        let basic_s = TEST_EVERY_S.max(TEST_EVERY_ROUND_TRIPS * seen.round_trip_s);
        let every_s = basic_s * (1.0 + (RARER * f64::from(self.confirmed)).min(MOST_RARER));
        let since_s = seen.now_s - self.tested_s;
        let has_risen = self.tested_bps.is_some_and(|tested| self.arriving_bps > ROSE * tested);
        fell && since_s > (2.0 * seen.round_trip_s).max(TEST_SOONER * every_s)
            || has_risen && since_s > basic_s
            || seen.now_s - self.reference_s > every_s
            || since_s > 2.0 * every_s
    }
}

/// The arrival rate of the packets that left the sender between two times, in bit/s; `None` if there are fewer than
/// three such packets.
fn arriving_bps(path: &Path, from_s: f64, to_s: f64) -> Option<f64> {
    let mut left = path.recent.newest_first().filter(|it| it.departed_s > from_s && it.departed_s <= to_s);
    let last = left.next()?;
    let (mut bits, mut first, mut packets) = (last.bits, last, 1);
    for sample in left {
        (bits, first, packets) = (bits + sample.bits, sample, packets + 1);
    }
    (packets >= 3).then(|| (bits - first.bits) / (last.arrived_s - first.arrived_s).max(1e-3))
}

/// CUBIC in congestion avoidance, with the window `window_bits`.
fn steady(seen: &Seen, window_bits: f64) -> Cubic {
    let window = (window_bits / SEGMENT_BITS).max(LEAST_SEGMENTS);
    let mut cubic = Cubic::new(window);
    cubic.on_timeout(moment(seen.now_s), 1);
    cubic.reset_to(window);
    cubic
}

fn acknowledged(seen: &Seen, in_flight: f64) -> Acknowledged {
    let round_trip = Span::from_secs_f64(seen.round_trip_s);
    Acknowledged {
        segments: 1,
        round_trip,
        smoothed_round_trip: round_trip,
        min_round_trip: Span::from_secs_f64(seen.least_round_trip_s),
        in_flight: in_flight as u64,
        window_limited: true,
    }
}

fn moment(now_s: f64) -> Instant<SenderClock> {
    Instant::ZERO + Span::from_secs_f64(now_s.max(0.0)).unwrap_or(Span::ZERO)
}
