use equipoise_lab::result::{FlowResult, Run};
use equipoise_lab::statistics::{Estimate, median_95, quantile, sorted};

/// The target of all experiments, in seconds (Waki 2013, Sec. 6.1.2).
pub(super) const TARGET_S: f64 = 8.2e-3;
/// Length of an interval of the criteria, in seconds.
const INTERVAL_S: f64 = 10.0;
/// Intervals of the initial transient.
const TRANSIENT: usize = 5;
/// Intervals of the paper's run, and those before its load step.
const ALL: usize = 40;
const BEFORE: usize = 20;
/// Intervals in a row above twice the target that make a runaway.
const RUNAWAY: usize = 3;

/// What a run of the setting of Sec. 6.1 gives: means over intervals of 10 s, the paper's 400 s alone.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// `T_i`, in seconds; NaN where nothing arrived.
    pub(super) delays_s: Vec<f64>,
    /// Sending rate, in Mbit/s.
    pub(super) rates_mbps: Vec<f64>,
    /// Mean delay of the third report interval behind the step, in seconds.
    pub(super) third_s: f64,
}

impl Outcome {
    /// The outcome of the first flow, the session.
    pub(super) fn of(run: &Run) -> Self {
        let Some(session) = run.flows.first() else {
            return Self { delays_s: Vec::new(), rates_mbps: Vec::new(), third_s: f64::NAN };
        };
        // What lies before the paper's 400 s is a longer transient.
        let start_s = run.lasted_s - ALL as f64 * INTERVAL_S;
        let pooled: Vec<_> =
            (0..ALL).map(|index| pooled(session, start_s + index as f64 * INTERVAL_S, INTERVAL_S)).collect();
        let step_s = start_s + BEFORE as f64 * INTERVAL_S;
        let own = session.intervals.first().map_or(INTERVAL_S, |interval| interval.end_s - interval.start_s);
        Self {
            delays_s: pooled.iter().map(|(delay, _)| *delay).collect(),
            rates_mbps: pooled.iter().map(|(_, rate)| *rate).collect(),
            third_s: pooled_exactly(session, step_s + 2.0 * own, own),
        }
    }

    fn counted(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        self.delays_s.iter().copied().skip(TRANSIENT).filter(|delay| !delay.is_nan())
    }

    fn after(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        self.delays_s.iter().copied().skip(BEFORE).filter(|delay| !delay.is_nan())
    }

    /// Mean squared error in ms² (Waki 2013, Eq. 18).
    pub(super) fn mse_ms2(&self) -> f64 {
        mean(self.counted().map(squared_error_ms2))
    }

    /// The same with a transient of 20 s instead of 50.
    pub(super) fn mse_early_ms2(&self) -> f64 {
        mean(self.delays_s.iter().copied().skip(2).filter(|delay| !delay.is_nan()).map(squared_error_ms2))
    }

    /// Coefficient of variation (Waki 2013, Eq. 19 to 21).
    pub(super) fn cv(&self) -> f64 {
        let centre = mean(self.counted());
        mean(self.counted().map(|delay| (delay - centre) * (delay - centre))).sqrt() / centre
    }

    /// Delay jitter in ms (Waki 2013, Eq. 22).
    pub(super) fn jitter_ms(&self) -> f64 {
        largest_error_ms(self.counted())
    }

    /// The mean squared error of the intervals from the step on, in ms².
    pub(super) fn mse_after_ms2(&self) -> f64 {
        mean(self.after().map(squared_error_ms2))
    }

    /// The delay jitter of the intervals from the step on, in ms.
    pub(super) fn jitter_after_ms(&self) -> f64 {
        largest_error_ms(self.after())
    }

    /// Mean rate between transient and step, in Mbit/s.
    pub(super) fn rate_before_mbps(&self) -> f64 {
        mean(self.rates_mbps.iter().copied().take(BEFORE).skip(TRANSIENT))
    }

    /// Mean rate from the step on, in Mbit/s.
    pub(super) fn rate_after_mbps(&self) -> f64 {
        mean(self.rates_mbps.iter().copied().skip(BEFORE))
    }

    /// Mean of the intervals' delays from the fourth behind the step on, in ms.
    pub(super) fn settled_after_ms(&self) -> f64 {
        mean(self.delays_s.iter().copied().skip(BEFORE + 3)) * 1e3
    }

    /// The interval in which the run begins to run away; `None` where it does not.
    pub(super) fn runs_away_at(&self) -> Option<usize> {
        let far = |delay: &f64| *delay > 2.0 * TARGET_S;
        self.delays_s.windows(RUNAWAY).position(|window| window.iter().all(far))
    }

    /// Whether the third report interval behind the step has its mean within 10 % of the target.
    pub(super) fn is_back(&self) -> bool {
        (self.third_s / TARGET_S - 1.0).abs() <= 0.1
    }
}

/// Mean delay in seconds and rate in Mbit/s of the packets sent within `length_s` from `start_s`.
fn pooled(session: &FlowResult, start_s: f64, length_s: f64) -> (f64, f64) {
    let tolerance = length_s * 1e-6;
    let within = session
        .intervals
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

fn pooled_exactly(session: &FlowResult, start_s: f64, length_s: f64) -> f64 {
    pooled(session, start_s, length_s).0
}

fn squared_error_ms2(delay_s: f64) -> f64 {
    let error_ms = (delay_s - TARGET_S) * 1e3;
    error_ms * error_ms
}

fn largest_error_ms(delays: impl Iterator<Item = f64>) -> f64 {
    delays.map(|delay| (delay - TARGET_S).abs() * 1e3).fold(f64::NAN, f64::max)
}

/// Mean of some numbers; NaN of none.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    sum / f64::from(count)
}

/// One number of each of many runs.
pub(super) fn of_all(outcomes: &[Outcome], number: impl Fn(&Outcome) -> f64) -> Vec<f64> {
    outcomes.iter().map(number).collect()
}

/// The median of one number over many runs.
pub(super) fn median(outcomes: &[Outcome], number: impl Fn(&Outcome) -> f64) -> Option<Estimate> {
    median_95(&of_all(outcomes, number))
}

/// The mean of one number over many runs, runaways and all.
pub(super) fn plain_mean(outcomes: &[Outcome], number: impl Fn(&Outcome) -> f64) -> f64 {
    mean(outcomes.iter().map(number))
}

/// How many of the runs have run away.
pub(super) fn runaways(outcomes: &[Outcome]) -> usize {
    outcomes.iter().filter(|outcome| outcome.runs_away_at().is_some()).count()
}

/// Minimum, quartiles and maximum.
pub(super) fn five_numbers(values: &[f64]) -> [f64; 5] {
    let sorted = sorted(values);
    [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| quantile(&sorted, share))
}
