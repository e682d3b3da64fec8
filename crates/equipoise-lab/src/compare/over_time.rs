//! Rate and delay of the compared flow over time, for each variant.

use serde::Serialize;

use crate::result::{FlowResult, TcpSample};
use crate::statistics::{Quantiles, quantiles_over};

/// Maximum number of runs per variant whose time series are kept.
pub(super) const MOST_RUNS: u64 = 100;

/// Rate and delay of a variant over time, computed from at most the variant's first hundred runs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OverTime {
    /// Number of runs from which the quantiles are computed.
    pub runs: u32,
    /// Sending rate of each interval, in bit/s; for a TCP connection, its goodput.
    pub rate_bps: Vec<Moment>,
    /// Mean one-way delay of each interval, in seconds; empty for a TCP connection.
    pub delay_mean_s: Vec<Moment>,
}

/// Quantiles over the runs at one time. A quantile is `null` if fewer than half of the runs have a value at that time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Moment {
    /// Time since the run's start, in seconds.
    pub at_s: f64,
    /// 10th percentile over the runs.
    pub p10: Option<f64>,
    /// Median over the runs.
    pub median: Option<f64>,
    /// 90th percentile over the runs.
    pub p90: Option<f64>,
}

/// The time series of one run, as pairs of a time in seconds and a value. The value is NaN if it was not measured.
pub(super) struct Course {
    rates: Vec<(f64, f64)>,
    delays: Vec<(f64, f64)>,
}

impl Course {
    pub(super) fn of(flow: &FlowResult) -> Self {
        if let Some(tcp) = &flow.tcp {
            let goodput = |sample: &TcpSample| (sample.at_s, sample.goodput_bps.unwrap_or(f64::NAN));
            return Self { rates: tcp.samples.iter().map(goodput).collect(), delays: Vec::new() };
        }
        Self {
            rates: flow.intervals.iter().map(|it| (it.middle_s(), it.rate_bps)).collect(),
            delays: flow.intervals.iter().map(|it| (it.middle_s(), it.delay_mean_s.unwrap_or(f64::NAN))).collect(),
        }
    }
}

impl OverTime {
    pub(super) fn of<'a>(courses: impl Iterator<Item = &'a Course>) -> Self {
        let (rates, delays): (Vec<_>, Vec<_>) =
            courses.map(|course| (course.rates.as_slice(), course.delays.as_slice())).unzip();
        Self { runs: rates.len() as u32, rate_bps: moments(&rates), delay_mean_s: moments(&delays) }
    }
}

fn moments(runs: &[&[(f64, f64)]]) -> Vec<Moment> {
    let moment = |found: Quantiles| {
        let measured = |value: f64| Some(value).filter(|value| value.is_finite());
        let [p10, median, p90] = [found.low, found.median, found.high].map(measured);
        Moment { at_s: found.at, p10, median, p90 }
    };
    quantiles_over(runs).into_iter().map(moment).collect()
}
