//! Determines which variants are Pareto-optimal in delay and rate.

use serde::Serialize;

use super::FlowComparison;
use crate::metrics::{DELIVERED, MEAN_DELAY};
use crate::result::Mean;

/// The mean delay and the mean rate of a variant over its runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Place {
    /// Mean delivered rate, in bit/s.
    pub delivered_rate_bps: Option<Mean>,
    /// Mean one-way delay, in seconds; `null` for a TCP flow.
    pub delay_mean_s: Option<Mean>,
    /// Whether this variant is Pareto-optimal by its means: every other variant has a lower rate, a higher delay, or
    /// the same rate and delay. `null` if delay or rate was not measured.
    pub is_pareto_optimal: Option<bool>,
}

/// Returns the mean delay and the mean rate of each variant, in the order of the variants.
pub(super) fn places(flow: &FlowComparison) -> Vec<Place> {
    let mean = |key: &str, variant: usize| flow.metric(key)?.variants.get(variant)?.mean;
    let count = flow.metrics.first().map_or(0, |metric| metric.variants.len());
    let means = (0..count).map(|variant| (mean(DELIVERED.key, variant), mean(MEAN_DELAY.key, variant)));
    let means: Vec<_> = means.collect();
    let points: Vec<_> = means
        .iter()
        .filter_map(|(rate, delay)| Some(Point { rate: rate.as_ref()?.mean, delay: delay.as_ref()?.mean }))
        .collect();
    let place = |&(rate, delay): &(Option<Mean>, Option<Mean>)| {
        let point = rate.zip(delay).map(|(rate, delay)| Point { rate: rate.mean, delay: delay.mean });
        let is_pareto_optimal = point.map(|point| !points.iter().any(|other| other.is_better_than(point)));
        Place { delivered_rate_bps: rate, delay_mean_s: delay, is_pareto_optimal }
    };
    means.iter().map(place).collect()
}

#[derive(Clone, Copy, Debug)]
struct Point {
    rate: f64,
    delay: f64,
}

impl Point {
    /// Whether this point has a higher rate or a lower delay than `other`, and is worse in neither.
    fn is_better_than(self, other: Self) -> bool {
        self.rate >= other.rate && self.delay <= other.delay && (self.rate > other.rate || self.delay < other.delay)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{MetricComparison, Sample};
    use super::*;

    /// The rate and the delay of a variant; `None` if not measured.
    type Measured = (Option<f64>, Option<f64>);

    /// Returns a flow whose variants have these rates and delays.
    fn flow(points: &[Measured]) -> FlowComparison {
        static RATE: crate::metrics::Metric = DELIVERED;
        static DELAY: crate::metrics::Metric = MEAN_DELAY;
        let sample = |value: Option<f64>| Sample {
            mean: value.map(|mean| Mean { runs: 1, mean, ci95: None }),
            difference: None,
            values: vec![value],
        };
        let metric = |metric, of: fn(&Measured) -> Option<f64>| MetricComparison {
            metric,
            variants: points.iter().map(of).map(sample).collect(),
        };
        FlowComparison {
            name: "media".to_owned(),
            metrics: vec![metric(&RATE, |point| point.0), metric(&DELAY, |point| point.1)],
        }
    }

    fn optimal(points: &[Measured]) -> Vec<Option<bool>> {
        places(&flow(points)).iter().map(|place| place.is_pareto_optimal).collect()
    }

    #[test]
    fn who_is_beaten_in_both_is_not_optimal_and_equals_share_their_place() {
        let measured = |rate, delay| (Some(rate), Some(delay));
        let points =
            [measured(3.0, 10.0), measured(4.0, 20.0), measured(2.0, 10.0), measured(3.0, 10.0), (Some(9.0), None)];
        assert_eq!(optimal(&points), [Some(true), Some(true), Some(false), Some(true), None]);
        assert_eq!(optimal(&[]), []);
    }

    proptest! {
        /// At least one point is optimal. No optimal point dominates another optimal point. Each point that is not
        /// optimal is dominated by an optimal point.
        #[test]
        fn the_front_beats_all_others(points in proptest::collection::vec((0..9u8, 0..9u8), 1..12)) {
            let points: Vec<_> = points.into_iter().map(|(rate, delay)| (f64::from(rate), f64::from(delay))).collect();
            let found = optimal(&points.iter().map(|&(rate, delay)| (Some(rate), Some(delay))).collect::<Vec<_>>());
            let front: Vec<_> = points.iter().zip(&found).filter(|(_, optimal)| **optimal == Some(true)).map(|(point, _)| *point).collect();
            prop_assert!(!front.is_empty());
            for (point, optimal) in points.iter().zip(found) {
                let beaten = front.iter().any(|other| other.0 >= point.0 && other.1 <= point.1 && other != point);
                prop_assert_eq!(optimal, Some(!beaten));
            }
        }
    }
}
