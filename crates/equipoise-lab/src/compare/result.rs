use serde::Serialize;

use super::{OverTime, Place, Variant};
use crate::metrics::Metric;
use crate::result::{Mean, json};
use crate::statistics::mean_95;

/// The result of a comparison. Its fields are those of the JSON output.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Version of Equipoise that produced the result.
    pub version: String,
    /// Seed of the first run of each variant; run n, counted from 0, uses `seed + n`.
    pub seed: u64,
    /// Number of runs of each variant.
    pub runs: u32,
    /// The flow whose delay and rate are in `places` and `over_time`.
    pub flow: String,
    /// The variants; each further variant is compared with the first one.
    pub variants: Vec<VariantResult>,
    /// Mean delay and mean rate of `flow` in each variant, in the order of the variants.
    pub places: Vec<Place>,
    /// Rate and delay of `flow` over time in each variant, in the order of the variants.
    pub over_time: Vec<OverTime>,
    /// The comparison of each flow that all variants have. Background traffic is left out.
    pub flows: Vec<FlowComparison>,
}

/// A variant of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct VariantResult {
    /// Name of the variant in the comparison.
    pub name: String,
    /// Name of the scenario.
    pub scenario: String,
    /// The scenario's description.
    pub description: String,
    /// Complete text of the scenario that was run.
    pub scenario_text: String,
}

/// One flow, compared over all variants.
#[derive(Clone, Debug, Serialize)]
pub struct FlowComparison {
    /// The flow's name.
    pub name: String,
    /// The flow's metrics.
    pub metrics: Vec<MetricComparison>,
}

/// One metric of a flow, compared over all variants.
#[derive(Clone, Debug, Serialize)]
pub struct MetricComparison {
    /// The metric. JSON contains only the key of the metric, which shows the unit of all values.
    pub metric: &'static Metric,
    /// The metric's values in each variant, in the order of the variants.
    pub variants: Vec<Sample>,
}

/// One metric of a flow in one variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Mean over the runs; `null` if the metric has a value in no run.
    pub mean: Option<Mean>,
    /// Difference from the first variant; `null` for the first variant itself, and if no seed has a value in both
    /// variants.
    pub difference: Option<Difference>,
    /// Value of the metric in each run, in the order of the seeds; `null` if not measured.
    pub values: Vec<Option<f64>>,
}

/// A difference between two variants, computed seed by seed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Mean difference over the seeds that have a value in both variants, with its confidence interval.
    #[serde(flatten)]
    pub mean: Mean,
    /// The conclusion from the confidence interval.
    pub word: Word,
}

/// The conclusion from a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Word {
    /// Less than the first variant: the confidence interval is below zero.
    Less,
    /// More than the first variant: the confidence interval is above zero.
    More,
    /// At least two seeds have a value in both variants, and the two values are equal for each of these seeds.
    Equal,
    /// The confidence interval contains zero, or there is no interval.
    Undecided,
}

impl Word {
    /// Returns the word that tables show for this conclusion.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Less => "less",
            Self::More => "more",
            Self::Equal => "equal",
            Self::Undecided => "undecided",
        }
    }
}

impl Difference {
    /// The entries of `first` and `values` with the same index are a pair. The difference of a pair is its entry of
    /// `values` minus its entry of `first`. Returns the mean of the differences, and the conclusion from the mean's
    /// confidence interval. Returns `None` if no pair has both values.
    pub fn of(first: &[Option<f64>], values: &[Option<f64>]) -> Option<Self> {
        let pairs = first.iter().zip(values).filter_map(|(first, value)| Some((*value)? - (*first)?));
        let differences: Vec<f64> = pairs.collect();
        let mean = Mean::of(&differences)?;
        let is_equal = differences.iter().all(|difference| difference.abs() <= 0.0);
        let word = match mean_95(&differences).map(|estimate| estimate.ci95) {
            Some(_) if is_equal => Word::Equal,
            Some([_, high]) if high < 0.0 => Word::Less,
            Some([low, _]) if low > 0.0 => Word::More,
            _ => Word::Undecided,
        };
        Some(Self { mean, word })
    }
}

impl VariantResult {
    pub(super) fn of(variant: &Variant) -> Self {
        let Variant { name, scenario } = variant;
        Self {
            name: name.clone(),
            scenario: scenario.name.clone(),
            description: scenario.description.trim().to_owned(),
            scenario_text: scenario.text.clone(),
        }
    }
}

impl FlowComparison {
    /// Returns the metric with this key.
    pub fn metric(&self, key: &str) -> Option<&MetricComparison> {
        self.metrics.iter().find(|found| found.metric.key == key)
    }
}

impl MetricComparison {
    /// Formats a mean difference in the unit that tables use, with its sign and half the width of its confidence
    /// interval.
    pub fn difference(&self, mean: &Mean) -> String {
        let text = self.metric.mean(mean.mean, mean.half_width());
        if mean.mean > 0.0 { format!("+{text}") } else { text.replace('-', "−") }
    }
}

impl Comparison {
    /// Returns the comparison as JSON that ends with a line break.
    pub fn to_json(&self) -> String {
        json(self)
    }

    /// Returns the number of runs and their seeds in words: "20 runs on the seeds 1 to 20".
    pub fn seeds(&self) -> String {
        let last = self.seed.wrapping_add(u64::from(self.runs.saturating_sub(1)));
        format!("{} runs on the seeds {} to {last}", self.runs, self.seed)
    }

    /// Returns the names of the variants that are Pareto-optimal.
    pub fn pareto_optimal(&self) -> Vec<&str> {
        let placed = self.variants.iter().zip(&self.places);
        placed
            .filter(|(_, place)| place.is_pareto_optimal == Some(true))
            .map(|(variant, _)| variant.name.as_str())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::statistics::half_width_95;

    fn all(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    /// The differences 1, 2 and 3 have mean 2 and standard deviation 1. Student's t is 4.303 at two degrees of freedom,
    /// so half the width of the interval is 4.303 · 1 / √3 = 2.484.
    #[test]
    fn differences_are_taken_run_by_run() {
        let (first, other) = (all(&[10.0, 20.0, 30.0]), all(&[11.0, 22.0, 33.0]));
        let found = Difference::of(&first, &other).expect("pairs");
        assert!(
            (found.mean.mean - 2.0).abs() < 1e-12
                && (found.mean.half_width().expect("an interval") - 2.484).abs() < 1e-3
        );
        assert_eq!(found.word, Word::Undecided);
        // The two samples vary widely, but their differences run by run vary little.
        let steady = Difference::of(&first, &all(&[11.0, 21.1, 30.9])).expect("pairs");
        assert_eq!(steady.word, Word::More);
        assert_eq!(Difference::of(&all(&[11.0, 21.1, 30.9]), &first).expect("pairs").word, Word::Less);
        assert_eq!(Difference::of(&first, &first).expect("pairs").word, Word::Equal);
    }

    #[test]
    fn what_was_not_measured_in_both_is_left_out_and_one_pair_decides_nothing() {
        let found = Difference::of(&[Some(1.0), None, Some(3.0)], &[Some(2.0), Some(9.0), None]).expect("a pair");
        assert_eq!((found.mean.runs, found.mean.ci95, found.word), (1, None, Word::Undecided));
        assert_eq!(Difference::of(&[None], &[Some(1.0)]), None);
    }

    proptest! {
        /// If this test fails, swapping the variants changes more than the sign, noise that both variants share has an
        /// effect, or the confidence interval is not computed from the differences.
        #[test]
        fn a_difference_is_odd_and_knows_nothing_of_common_noise(
            values in proptest::collection::vec((-1e3..1e3f64, -1e3..1e3f64, -1e3..1e3f64), 2..20),
        ) {
            let column = |of: fn(&(f64, f64, f64)) -> f64| all(&values.iter().map(of).collect::<Vec<_>>());
            let there = Difference::of(&column(|v| v.0), &column(|v| v.1)).expect("pairs");
            let back = Difference::of(&column(|v| v.1), &column(|v| v.0)).expect("pairs");
            prop_assert!((there.mean.mean + back.mean.mean).abs() < 1e-9);
            let turned = match there.word { Word::Less => Word::More, Word::More => Word::Less, same => same };
            prop_assert_eq!(turned, back.word);
            let noisy = Difference::of(&column(|v| v.0 + v.2), &column(|v| v.1 + v.2)).expect("pairs");
            prop_assert!((there.mean.mean - noisy.mean.mean).abs() < 1e-9);
            let differences: Vec<_> = values.iter().map(|v| v.1 - v.0).collect();
            prop_assert!((there.mean.half_width().expect("pairs") - half_width_95(&differences).expect("pairs")).abs() < 1e-9);
        }
    }
}
