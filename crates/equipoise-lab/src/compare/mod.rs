//! Compares several variants of a scenario on the same seeds.
//!
//! The same seed generates the same background traffic in each variant, so differences are computed run by run. Random
//! effects that the variants share cancel out. Therefore fewer runs are needed than with different seeds.

mod over_time;
mod pareto;
mod result;

use std::sync::atomic::{AtomicU32, Ordering};

use thiserror::Error;

use crate::metrics::{DELIVERED, Metric};
use crate::result::{FlowResult, Mean, Run};
use crate::scenario::{FlowKind, Scenario};
use crate::sim::{self, Execution, SimError};

use over_time::{Course, MOST_RUNS};
pub use over_time::{Moment, OverTime};
pub use pareto::Place;
pub use result::{Comparison, Difference, FlowComparison, MetricComparison, Sample, VariantResult, Word};

/// A scenario and its name in a comparison.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The variant's name, unique among the variants of a comparison.
    pub name: String,
    /// The scenario of the variant.
    pub scenario: Scenario,
}

/// The seeds, the number of runs and the execution settings, which are the same for each variant.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Seed of the first run; each further run uses the next number.
    pub seed: u64,
    /// Number of runs of each variant.
    pub runs: u32,
    /// The number of threads, and a handle that can end the runs early.
    pub execution: Execution,
}

/// Why variants cannot be compared.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CompareError {
    /// There are fewer than two variants.
    #[error("a comparison takes two variants or more, and there is {found}")]
    TooFewVariants {
        /// The number of variants that were passed.
        found: usize,
    },
    /// Two variants have the same name.
    #[error("two variants have the name `{name}`; give each its own")]
    NameTaken {
        /// The name that two variants share.
        name: String,
    },
    /// A variant does not have the compared flow.
    #[error("{variant} has no flow `{flow}` that sends media or data; flows that all variants have: {known}")]
    NoSuchFlow {
        /// The name of the variant.
        variant: String,
        /// The name of the flow that the variant lacks.
        flow: String,
        /// Names of the flows that all variants have. Background traffic is left out.
        known: String,
    },
    /// No flow exists in all variants.
    #[error(
        "the variants have no flow in common that sends media or data; give flows that are to be compared one name"
    )]
    NoSharedFlow,
    /// Several flows could be compared, and the caller named none of them.
    #[error("which flow is to be compared? Name one that all variants have: {known}")]
    WhichFlow {
        /// Names of the flows that all variants have, without background traffic.
        known: String,
    },
    /// A variant cannot be simulated.
    #[error("{variant}")]
    Sim {
        /// The name of the variant.
        variant: String,
        /// Why the variant cannot be simulated.
        source: Box<SimError>,
    },
    /// A run failed.
    #[error("the simulated run failed")]
    Run(#[from] SimError),
}

/// Runs every variant on the same seeds and compares each variant with the first one. The delay and rate of the flow
/// named `flow` decide which variants are Pareto-optimal. If `flow` is `None`, the function uses the only session that
/// all variants have in common. If there is no such session, the function uses the only flow that all variants have in
/// common. `progress` is called with the completed share of the runs, 0 to 1.
///
/// # Errors
/// [`CompareError`] before the first run if the variants cannot be compared, or later if a run fails.
pub fn run(
    variants: &[Variant],
    flow: Option<&str>,
    plan: &Plan,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Comparison, CompareError> {
    let flows = shared_flows(variants)?;
    let flow = chosen_flow(variants, &flows, flow)?;
    for variant in variants {
        sim::check(&variant.scenario)
            .map_err(|source| CompareError::Sim { variant: variant.name.clone(), source: Box::new(source) })?;
    }
    let jobs = variants.iter().flat_map(|variant| {
        (0..plan.runs).map(|number| (&variant.scenario, plan.seed.wrapping_add(u64::from(number))))
    });
    let jobs: Vec<_> = jobs.collect();
    let done = AtomicU32::new(0);
    let keep = |run: Run| {
        let compared = run.flows.iter().find(|found| found.name == flow);
        let is_kept = run.seed.wrapping_sub(plan.seed) < MOST_RUNS;
        let course = compared.filter(|_| is_kept).map(Course::of);
        let kept = Kept { values: flows.iter().map(|flow| values(&run, flow)).collect(), course };
        progress(f64::from(done.fetch_add(1, Ordering::Relaxed) + 1) / jobs.len() as f64);
        kept
    };
    let runs = sim::simulate_each(&jobs, plan.execution.clone(), keep)?;
    let by_variant: Vec<_> = runs.chunks(plan.runs.max(1) as usize).collect();
    let compared = flows.iter().enumerate().map(|(place, flow)| compare_flow(flow, &by_variant, place));
    let compared: Vec<_> = compared.collect();
    Ok(Comparison {
        version: crate::VERSION.to_owned(),
        seed: plan.seed,
        runs: plan.runs,
        places: compared.iter().find(|found| found.name == flow).map(pareto::places).unwrap_or_default(),
        over_time: by_variant
            .iter()
            .map(|runs| OverTime::of(runs.iter().filter_map(|run| run.course.as_ref())))
            .collect(),
        flow,
        variants: variants.iter().map(VariantResult::of).collect(),
        flows: compared,
    })
}

/// A flow that all variants have, and the metrics of this flow that are compared.
struct SharedFlow {
    name: String,
    metrics: Vec<&'static Metric>,
}

/// Returns the flows that all variants have, in the order of the first variant. Background traffic is left out.
fn shared_flows(variants: &[Variant]) -> Result<Vec<SharedFlow>, CompareError> {
    let [first, others @ ..] = variants else { return Err(CompareError::TooFewVariants { found: 0 }) };
    if others.is_empty() {
        return Err(CompareError::TooFewVariants { found: 1 });
    }
    for (place, variant) in variants.iter().enumerate() {
        if variants.iter().take(place).any(|other| other.name == variant.name) {
            return Err(CompareError::NameTaken { name: variant.name.clone() });
        }
    }
    let flows = first.scenario.flows.iter().filter(|flow| variants.iter().all(|variant| sends(variant, &flow.name)));
    Ok(flows.map(|flow| SharedFlow { name: flow.name.clone(), metrics: compared(&flow.kind) }).collect())
}

/// Whether a variant has a flow with the name `flow` that is not background traffic.
fn sends(variant: &Variant, flow: &str) -> bool {
    let is_it =
        |found: &crate::scenario::Flow| found.name == flow && !matches!(found.kind, FlowKind::Background { .. });
    variant.scenario.flows.iter().any(is_it)
}

/// Returns the metrics of a flow that are compared, starting with the delivered rate.
fn compared(kind: &FlowKind) -> Vec<&'static Metric> {
    static RATE: Metric = DELIVERED;
    let all = crate::metrics::of_kind(kind).iter().filter(|metric| metric.is_compared && metric.key != RATE.key);
    std::iter::once(&RATE).chain(all).collect()
}

fn chosen_flow(variants: &[Variant], flows: &[SharedFlow], named: Option<&str>) -> Result<String, CompareError> {
    let known = || {
        let names = flows.iter().map(|flow| flow.name.as_str()).collect::<Vec<_>>().join(", ");
        if names.is_empty() { "none".to_owned() } else { names }
    };
    if let Some(named) = named {
        let lacking = variants.iter().find(|variant| !sends(variant, named));
        return lacking.map_or(Ok(named.to_owned()), |lacking| {
            Err(CompareError::NoSuchFlow { variant: lacking.name.clone(), flow: named.to_owned(), known: known() })
        });
    }
    let is_session = |flow: &&SharedFlow| {
        let mut all = variants.first().into_iter().flat_map(|variant| &variant.scenario.flows);
        let kind = all.find(|found| found.name == flow.name).map(|found| &found.kind);
        matches!(kind, Some(FlowKind::Session { .. } | FlowKind::Multipath(_)))
    };
    let sessions: Vec<_> = flows.iter().filter(is_session).collect();
    match (sessions.as_slice(), flows) {
        ([only], _) => Ok(only.name.clone()),
        ([], [only]) => Ok(only.name.clone()),
        ([], []) => Err(CompareError::NoSharedFlow),
        _ => Err(CompareError::WhichFlow { known: known() }),
    }
}

/// Returns the values of a flow's metrics in one run.
fn values(run: &Run, flow: &SharedFlow) -> Vec<Option<f64>> {
    let found: Option<&FlowResult> = run.flows.iter().find(|found| found.name == flow.name);
    flow.metrics.iter().map(|metric| metric.of(found?).filter(|value| value.is_finite())).collect()
}

/// The results of one run that a comparison keeps.
struct Kept {
    /// Values by flow, then by metric.
    values: Vec<Vec<Option<f64>>>,
    /// Time series of the compared flow; `None` if the run is not among the first [`MOST_RUNS`] runs.
    course: Option<Course>,
}

fn compare_flow(flow: &SharedFlow, variants: &[&[Kept]], place: usize) -> FlowComparison {
    let metric = |(index, metric): (usize, &&'static Metric)| {
        let of_run = |run: &Kept| run.values.get(place).and_then(|values| values.get(index)).copied().flatten();
        let values: Vec<Vec<_>> = variants.iter().map(|runs| runs.iter().map(of_run).collect()).collect();
        let first = values.first().cloned().unwrap_or_default();
        let sample = |(number, values): (usize, Vec<Option<f64>>)| Sample {
            mean: Mean::of(&values.iter().copied().flatten().collect::<Vec<_>>()),
            difference: if number == 0 { None } else { Difference::of(&first, &values) },
            values,
        };
        MetricComparison { metric, variants: values.into_iter().enumerate().map(sample).collect() }
    };
    FlowComparison { name: flow.name.clone(), metrics: flow.metrics.iter().enumerate().map(metric).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Override;
    use crate::{DEMO, DEMO_SHORT};

    fn variant(name: &str, overrides: &[Override]) -> Variant {
        let scenario = Scenario::parse_with(DEMO_SHORT, overrides).expect("a right scenario");
        Variant { name: name.to_owned(), scenario }
    }

    fn plan(threads: usize) -> Plan {
        Plan { seed: 3, runs: 4, execution: Some(threads).into() }
    }

    #[test]
    fn the_same_seeds_give_the_same_bytes_on_any_number_of_threads() {
        let variants = [variant("half", &[Override::set("flow.media.controller.b", 150)]), variant("whole", &[])];
        let json = |threads| run(&variants, None, &plan(threads), &|_| {}).expect("it runs").to_json();
        let one = json(1);
        assert!(one == json(1) && one == json(3));
        let page =
            |threads| crate::report::comparison_html(&run(&variants, None, &plan(threads), &|_| {}).expect("it runs"));
        assert!(page(1) == page(2));
    }

    /// If this test fails, values of a comparison differ from those of separate runs, or two equal variants have
    /// different results.
    #[test]
    fn equal_variants_are_equal_in_every_run() {
        let variants =
            [variant("one", &[]), variant("other", &[]), variant("late", &[Override::set("flow.media.start", "1 s")])];
        let found = run(&variants, None, &plan(2), &|_| {}).expect("it runs");
        assert_eq!((found.flow.as_str(), found.flows.len()), ("media", 1), "background traffic is left out");
        let alone = sim::simulate(&variants[0].scenario, 4, &mut |_| {}).expect("it runs");
        for metric in &found.flows[0].metrics {
            let [first, same, late] = metric.variants.as_slice() else { panic!("three variants") };
            assert_eq!(first.values, same.values);
            assert_eq!(first.difference, None);
            let word = same.difference.as_ref().map(|difference| difference.word);
            assert_eq!(word, first.mean.map(|_| Word::Equal), "{}", metric.metric.key);
            assert_eq!(first.values[1], metric.metric.of(&alone.flows[0]), "{}", metric.metric.key);
            assert_eq!(late.values.len(), 4);
        }
        assert!(found.places[0] == found.places[1], "{:?}", found.places);
    }

    #[test]
    fn variants_that_cannot_be_compared_are_refused_before_a_run() {
        let one = variant("one", &[]);
        let refused = |variants: &[Variant], flow| {
            run(variants, flow, &plan(1), &|_| {}).expect_err("wrong on purpose").to_string()
        };
        assert!(refused(&[], None).contains("two variants or more"));
        assert!(refused(std::slice::from_ref(&one), None).contains("there is 1"));
        assert!(refused(&[one.clone(), one.clone()], None).contains("the name `one`"));
        let renamed = Variant { name: "two".to_owned(), scenario: one.scenario.clone() };
        let mut other = renamed.clone();
        other.scenario.flows[0].name = "call".to_owned();
        assert!(refused(&[one.clone(), other.clone()], None).contains("no flow in common"));
        assert!(refused(&[one.clone(), other], Some("media")).contains("two has no flow `media`"));
        assert!(
            refused(&[one.clone(), renamed.clone()], Some("background"))
                .contains("flows that all variants have: media")
        );
        let long = Scenario::parse_with(DEMO, &[Override::set("duration", "10000 h")]).expect("a right scenario");
        let long = Variant { name: "long".to_owned(), scenario: long };
        assert!(refused(&[one, long], None).contains("long"));
    }
}
