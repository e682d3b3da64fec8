//! Computes the result of each bar (pass criterion) from the measures of each run.

use super::super::result::Estimate;
use super::JUDGED;
use super::cases::{Bar, Of, Variant};
use super::measure::Measure;
use super::result::{BarResult, LawValue, Limit};

/// The measures of one variant under one control law.
#[derive(Clone, Debug)]
pub(super) struct Found<'a> {
    pub(super) case: &'a str,
    pub(super) variant: &'a str,
    pub(super) controller: &'a str,
    /// The values of each measure, for each run.
    pub(super) runs: Vec<Vec<(Measure, Vec<f64>)>>,
    /// Quantities by which control laws are compared.
    pub(super) compared: Compared,
}

/// Quantities by which control laws are compared, as means over the runs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Compared {
    /// Total rate of the media that arrived, in bit/s.
    pub(super) rate_bps: Option<f64>,
    /// 95th percentile of queueing delays, in seconds.
    pub(super) queueing_p95_s: Option<f64>,
}

/// Another law counts as equally fast if its rate is at least this share of our law's rate.
const AS_FAST: f64 = 0.95;
/// For `Limit::NotBehindOthers`: another law is ahead of ours if its value (a share) exceeds ours by more than this
/// number, unless its queue is much longer (see [`QUEUE_RATIO`]).
const AHEAD: f64 = 0.05;
/// For `Limit::NotBehindOthers`: another law does not count as ahead of our law if its 95th percentile of queueing
/// delays is at least this many times the 95th percentile of our law.
const QUEUE_RATIO: f64 = 2.0;

/// Returns the results of all bars (pass criteria) of the variants that ran, in order.
pub(super) fn all(variants: &[Variant], found: &[Found<'_>]) -> Vec<BarResult> {
    let of_variant = |variant: &Variant| {
        let (case, name) = (variant.item.case.clone(), variant.item.variant.clone());
        let judged: Vec<_> = variant.bars.iter().map(|bar| one(&case, &name, bar, found)).collect();
        judged
    };
    variants.iter().flat_map(of_variant).filter(|bar| !bar.laws.is_empty()).collect()
}

fn one(case: &str, variant: &str, bar: &Bar, found: &[Found<'_>]) -> BarResult {
    let ran: Vec<_> = found.iter().filter(|law| law.case == case && law.variant == variant).collect();
    let value = |law: &&Found<'_>| LawValue { controller: law.controller.to_owned(), value: estimate(bar, law, found) };
    let laws: Vec<_> = ran.iter().map(value).collect();
    let (met, behind) = verdict(bar.limit, &laws, &ran);
    BarResult {
        case: case.to_owned(),
        variant: variant.to_owned(),
        key: bar.key.to_owned(),
        quantity: bar.quantity.clone(),
        unit: bar.unit,
        limit: bar.limit,
        laws,
        met,
        behind,
    }
}

/// Returns whether the Equipoise law meets a bar (pass criterion), or `None` if there is no verdict. Also returns the
/// names of the other laws because of which the Equipoise law fails.
fn verdict(limit: Limit, laws: &[LawValue], ran: &[&Found<'_>]) -> (Option<bool>, Vec<String>) {
    let mean = |name: &str| laws.iter().find(|law| law.controller == name)?.value.map(|value| value.mean);
    let compared = |name: &str| ran.iter().find(|law| law.controller == name).map(|law| law.compared);
    let (Some(own), Some(own_compared)) = (mean(JUDGED), compared(JUDGED)) else { return (None, Vec::new()) };
    let fails_by = |name: &str| {
        let (Some(theirs), Some(their)) = (mean(name), compared(name)) else { return false };
        match limit {
            Limit::BelowOthers => {
                let is_as_fast = their.rate_bps.zip(own_compared.rate_bps).is_some_and(|(t, o)| t >= o * AS_FAST);
                is_as_fast && own >= theirs
            }
            Limit::NotBehindOthers => {
                let queues = their.queueing_p95_s.zip(own_compared.queueing_p95_s);
                let is_longer = queues.is_some_and(|(t, o)| t >= o * QUEUE_RATIO);
                theirs > own + AHEAD && !is_longer
            }
            _ => false,
        }
    };
    match limit {
        Limit::BelowOthers | Limit::NotBehindOthers => {
            let others: Vec<_> = laws.iter().map(|law| law.controller.as_str()).filter(|law| *law != JUDGED).collect();
            let behind: Vec<_> = others.iter().filter(|law| fails_by(law)).map(|law| (*law).to_owned()).collect();
            // If no other law ran, there is no comparison and so no verdict.
            ((!others.is_empty()).then_some(behind.is_empty()), behind)
        }
        _ => (limit.is_met_by(own), Vec::new()),
    }
}

/// Returns the mean, over the runs of a control law, of the quantity that the pass criterion `bar` limits.
fn estimate(bar: &Bar, law: &Found<'_>, found: &[Found<'_>]) -> Option<Estimate> {
    let other = |variant: &str, controller: &str| {
        found.iter().find(|other| other.case == law.case && other.variant == variant && other.controller == controller)
    };
    let paired = |measure, other: Option<&Found<'_>>, of: fn(f64, f64) -> f64| {
        let other = other?;
        let runs = law.runs.iter().zip(&other.runs);
        Estimate::of(runs.map(|(run, beside)| Some(of(single(run, measure)?, single(beside, measure)?))))
    };
    match bar.of {
        Of::Run(measure) if measure.is_share() => {
            let values: Vec<_> = law.runs.iter().filter_map(|run| single(run, measure)).collect();
            Estimate::of_share(values.iter().filter(|value| **value > 0.5).count(), values.len())
        }
        Of::Run(measure) => worst(bar.limit, law, measure),
        Of::Less(measure, variant) => paired(measure, other(variant, law.controller), |own, there| there - own),
        Of::Lower(measure, variant) => paired(measure, other(variant, law.controller), |own, there| 1.0 - own / there),
        Of::OverLaw(measure, beside) => paired(measure, other(law.variant, beside), |own, there| own / there),
    }
}

fn values(run: &[(Measure, Vec<f64>)], measure: Measure) -> &[f64] {
    run.iter().find(|(known, _)| *known == measure).map_or(&[], |(_, values)| values)
}

fn single(run: &[(Measure, Vec<f64>)], measure: Measure) -> Option<f64> {
    values(run, measure).first().copied()
}

/// A measure can have several values in each run, such as one for each phase. Each of these values is averaged over the
/// runs. Returns the worst of these means.
fn worst(limit: Limit, law: &Found<'_>, measure: Measure) -> Option<Estimate> {
    let count = law.runs.iter().map(|run| values(run, measure).len()).max().unwrap_or(0);
    let of_place = |place| Estimate::of(law.runs.iter().map(|run| values(run, measure).get(place).copied()));
    let all = (0..count).filter_map(of_place);
    match limit {
        Limit::AtLeast(_) => all.min_by(|one, other| one.mean.total_cmp(&other.mean)),
        _ => all.max_by(|one, other| one.mean.total_cmp(&other.mean)),
    }
}
