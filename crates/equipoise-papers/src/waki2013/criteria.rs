use super::ratio;
use equipoise_lab::result::{IntervalResult, Run};
use equipoise_lab::statistics::{Estimate, median_95, quantile, sorted};

/// The target of the delay in the paper's experiments, in seconds (Waki 2013, Sec. 6.1.2).
pub(super) const TARGET_S: f64 = 8.2e-3;
/// Length of the intervals over which the criteria compute means, in seconds.
const INTERVAL_S: f64 = 10.0;
/// Length of the paper's run, and time of the load step, in seconds (Waki 2013, Sec. 6.1.2).
const LASTS_S: f64 = 400.0;
const STEP_S: f64 = 200.0;
/// Number of intervals that belong to the initial transient. Our choice, because the paper does not state it.
pub(super) const TRANSIENT: usize = 5;
/// Number of intervals that begin before the load step.
const BEFORE: usize = 20;
/// A runaway is at least this number of consecutive intervals with a delay above twice the target.
const RUNAWAY: usize = 3;

/// The results of a run in the setting of Sec. 6.1, mostly as means over intervals of 10 s. Only the last 400 s of the
/// run are evaluated, because the paper's run takes 400 s.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// Mean delay in each interval (`T_i`), in seconds; `NaN` if no packet arrived.
    pub(super) delays_s: Vec<f64>,
    /// Sending rate in each interval, in Mbit/s.
    pub(super) rates_mbps: Vec<f64>,
    /// Variance of the delay in the first report interval after the load step, in s².
    pub(super) variance_s2: f64,
    /// Mean delay of the third report interval after the load step, in seconds.
    pub(super) third_s: f64,
    /// Number of intervals at the beginning that are left out as the initial transient.
    pub(super) transient: usize,
}

impl Outcome {
    /// Computes the results from the first flow of a run, which is the media session.
    pub(super) fn of(run: &Run) -> Self {
        let intervals = run.flows.first().map(|session| session.intervals.as_slice()).unwrap_or_default();
        // The last 400 s of a run correspond to the paper's run. In a longer run, the time before them is an additional
        // initial transient, which is ignored.
        let zero_s = run.lasted_s - LASTS_S;
        let start_s = zero_s + intervals.first().map_or(0.0, |first| first.start_s);
        let whole = ((run.lasted_s - start_s) / INTERVAL_S + 1e-6) as usize;
        let pooled: Vec<_> =
            (0..whole).map(|index| pooled(intervals, start_s + index as f64 * INTERVAL_S, INTERVAL_S)).collect();
        let mut behind = intervals.iter().skip_while(|interval| interval.start_s < zero_s + STEP_S - 1e-6);
        let variance_s2 = behind.next().and_then(|first| first.delay_variance_s2).unwrap_or(f64::NAN);
        Self {
            delays_s: pooled.iter().map(|(delay, _)| *delay).collect(),
            rates_mbps: pooled.iter().map(|(_, rate)| *rate).collect(),
            variance_s2,
            third_s: behind.nth(1).and_then(|third| third.delay_mean_s).unwrap_or(f64::NAN),
            transient: TRANSIENT,
        }
    }

    /// Returns the same results with another length of the initial transient, in intervals.
    pub(super) fn with_transient(&self, transient: usize) -> Self {
        Self { transient, ..self.clone() }
    }

    fn counted(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        self.delays_s.iter().copied().skip(self.transient).filter(|delay| !delay.is_nan())
    }

    fn after(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        self.delays_s.iter().copied().skip(BEFORE).filter(|delay| !delay.is_nan())
    }

    /// Returns the mean squared error of the delay, in ms² (Waki 2013, Eq. 18).
    pub(super) fn mse_ms2(&self) -> f64 {
        mean(self.counted().map(squared_error_ms2))
    }

    /// Returns the coefficient of variation of the delay (Waki 2013, Eq. 19 to 21).
    pub(super) fn cv(&self) -> f64 {
        let centre = mean(self.counted());
        mean(self.counted().map(|delay| (delay - centre) * (delay - centre))).sqrt() / centre
    }

    /// Returns the delay jitter, in ms (Waki 2013, Eq. 22).
    pub(super) fn jitter_ms(&self) -> f64 {
        largest_error_ms(self.counted())
    }

    /// Returns the mean squared difference between the delay and its target, in the intervals after the load step, in
    /// ms².
    pub(super) fn mse_after_ms2(&self) -> f64 {
        mean(self.after().map(squared_error_ms2))
    }

    /// Returns the delay jitter in the intervals after the load step, in ms. As in Waki 2013, Eq. 22, the jitter is the
    /// largest difference between the delay and its target.
    pub(super) fn jitter_after_ms(&self) -> f64 {
        largest_error_ms(self.after())
    }

    /// Returns the mean rate between the transient and the load step, in Mbit/s.
    pub(super) fn rate_before_mbps(&self) -> f64 {
        mean(self.rates_mbps.iter().copied().take(BEFORE).skip(self.transient))
    }

    /// Returns the mean rate after the load step, in Mbit/s.
    pub(super) fn rate_after_mbps(&self) -> f64 {
        mean(self.rates_mbps.iter().copied().skip(BEFORE))
    }

    /// Returns the mean delay of the intervals after the transient and before the load step, in ms.
    pub(super) fn settled_before_ms(&self) -> f64 {
        mean(self.delays_s.iter().copied().take(BEFORE - 1).skip(self.transient)) * 1e3
    }

    /// Returns by how much the rate decreases at the first and at the second control action after the load step, in
    /// Mbit/s. These actions are at 201 s and at 211 s (Waki 2013, Sec. 7.1).
    pub(super) fn decreases_mbps(&self) -> [f64; 2] {
        let rate = |interval: usize| self.rates_mbps.get(interval).copied().unwrap_or(f64::NAN);
        [BEFORE, BEFORE + 1].map(|interval| rate(interval - 1) - rate(interval))
    }

    /// Returns the mean delay of the first interval that begins after the load step, in ms.
    pub(super) fn first_behind_ms(&self) -> f64 {
        self.delays_s.get(BEFORE).map_or(f64::NAN, |delay| delay * 1e3)
    }

    /// Returns the mean delay of the intervals after the load step, without the first three, in ms.
    pub(super) fn settled_after_ms(&self) -> f64 {
        mean(self.delays_s.iter().copied().skip(BEFORE + 3)) * 1e3
    }

    /// Returns the index of the first interval of a runaway, or `None` if the run has no runaway. A runaway is
    /// `RUNAWAY` consecutive intervals with delays above twice the target.
    pub(super) fn runs_away_at(&self) -> Option<usize> {
        let far = |delay: &f64| *delay > 2.0 * TARGET_S;
        self.delays_s.windows(RUNAWAY).position(|window| window.iter().all(far))
    }

    /// Whether the mean delay of the third report interval after the load step differs from the target by at most 10 %.
    pub(super) fn is_back(&self) -> bool {
        (self.third_s / TARGET_S - 1.0).abs() <= 0.1
    }
}

/// Returns the mean delay in seconds and the mean rate in Mbit/s of the packets that were sent in the `length_s`
/// seconds from `start_s` on.
fn pooled(intervals: &[IntervalResult], start_s: f64, length_s: f64) -> (f64, f64) {
    let tolerance = length_s * 1e-6;
    let within = intervals
        .iter()
        .filter(|interval| interval.start_s >= start_s - tolerance && interval.end_s <= start_s + length_s + tolerance);
    let (mut received, mut delays, mut bits) = (0.0, 0.0, 0.0);
    for interval in within {
        let arrived = interval.packets.saturating_sub(interval.packets_lost) as f64;
        if let Some(delay) = interval.delay_mean_s {
            received += arrived;
            delays += arrived * delay;
        }
        bits += interval.rate_bps * (interval.end_s - interval.start_s);
    }
    (delays / received, bits / length_s / 1e6)
}

fn squared_error_ms2(delay_s: f64) -> f64 {
    let error_ms = (delay_s - TARGET_S) * 1e3;
    error_ms * error_ms
}

fn largest_error_ms(delays: impl Iterator<Item = f64>) -> f64 {
    delays.map(|delay| (delay - TARGET_S).abs() * 1e3).fold(f64::NAN, f64::max)
}

/// Returns the mean of the values; `NaN` if there are no values.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    sum / f64::from(count)
}

/// Returns one value of each run.
pub(super) fn of_all(outcomes: &[Outcome], number: impl Fn(&Outcome) -> f64) -> Vec<f64> {
    outcomes.iter().map(number).collect()
}

/// Returns the median of a value over many runs.
pub(super) fn median(outcomes: &[Outcome], number: impl Fn(&Outcome) -> f64) -> Option<Estimate> {
    median_95(&of_all(outcomes, number))
}

/// Returns the median of a value in the runs `over`, divided by its median in the runs `under`.
pub(super) fn medians_ratio(over: &[Outcome], under: &[Outcome], number: fn(&Outcome) -> f64) -> Option<Estimate> {
    median(over, number).zip(median(under, number)).and_then(|(over, under)| ratio(over, under))
}

/// Returns the runs without a runaway. A runaway is a delay above twice the target in three consecutive intervals. Runs
/// with a runaway are left out, because even their values before the runaway are not typical.
pub(super) fn kept(outcomes: &[Outcome]) -> Vec<Outcome> {
    outcomes.iter().filter(|outcome| outcome.runs_away_at().is_none()).cloned().collect()
}

/// Returns the mean of a value over all runs, including runaways: runs in which the delay exceeds twice the target in
/// three consecutive intervals.
pub(super) fn plain_mean(outcomes: &[Outcome], number: impl Fn(&Outcome) -> f64) -> f64 {
    mean(outcomes.iter().map(number))
}

/// Returns the number of runs with a runaway: three consecutive intervals with a delay above twice the target.
pub(super) fn runaways(outcomes: &[Outcome]) -> usize {
    outcomes.iter().filter(|outcome| outcome.runs_away_at().is_some()).count()
}

/// Returns the minimum, the quartiles and the maximum of the values.
pub(super) fn five_numbers(values: &[f64]) -> [f64; 5] {
    let sorted = sorted(values);
    [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| quantile(&sorted, share))
}
