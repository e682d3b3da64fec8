//! The suite `bars`: limits (pass criteria) by which our control law is judged. Other laws run with the same cases and
//! seeds for comparison.
//!
//! ```text
//!   cases with their bars ──▶ sim, packet by packet ──▶ measures of each run ──▶ means ──▶ verdicts
//!                                    └──▶ values that all suites record ──▶ the suite's result
//! ```
//!
//! The cases are those of RFC 8867, with additional variants, and four cases of our own: losses without a queue, a
//! policer, starts, and idle paths. A verdict depends on the mean over the runs. The result also contains the
//! confidence interval of this mean.

mod cases;
mod judge;
mod measure;
mod result;
#[cfg(test)]
mod tests;

use super::kept::Kept;
use super::{Item, Plan, SuiteError, SuiteResult, case_result, prepare, run_each, suite_result};
use crate::result::{Run, World};
use crate::scenario::Catalogue;
use crate::scenario::nearest::similar;
pub use cases::{Case, Variant, all as cases};
use judge::{Compared, Found};
use measure::{Measure, Packets};
pub use result::{BarResult, FOOTNOTES, LawValue, Limit, Unit};

/// The name of the suite.
pub const NAME: &str = "bars";
/// The control law that is judged.
pub const JUDGED: &str = "equipoise";
/// The control laws that run by default; the judged law is the first.
pub const CONTROLLERS: [&str; 4] = [JUDGED, "gcc", "nada", "scream"];
/// Number of seeds for each variant in a full run.
pub const RUNS: u32 = 10;
/// Number of seeds for each variant with `--quick`, which does not shorten the runs.
pub const QUICK_RUNS: u32 = 3;
/// The default seed of the first run. `equipoise` was designed with the seeds 1 to 100 and 1001 to 1010, so the default
/// seeds are different.
pub const SEED: u64 = 2001;

/// Returns the variants with these names. Each name is the name of a case, such as "5.1" or "loss", or of a single
/// variant, such as "5.1/50ms-link". Without names, returns the variants of all cases. If `is_quick` is set, a case has
/// only its first variant, and single variants can still be named. If the bars (pass criteria) of a returned variant
/// compare this variant with a second variant, the second variant is returned too.
///
/// # Errors
/// [`SuiteError::UnknownCase`] and [`SuiteError::UnknownVariant`], which suggest the most similar name.
pub fn variants(names: &[String], is_quick: bool) -> Result<Vec<Variant>, SuiteError> {
    let cases = cases();
    let is_whole = |name: &String| !name.contains('/');
    for name in names {
        check(&cases, name)?;
    }
    let mut chosen = Vec::new();
    for case in cases {
        let has_all = names.is_empty() || names.iter().any(|name| is_whole(name) && name == case.name);
        let count = if is_quick { 1 } else { case.variants.len() };
        let is_chosen = |(place, variant): (usize, &Variant)| {
            let full = format!("{}/{}", case.name, variant.item.variant);
            (has_all && place < count) || names.contains(&full)
        };
        let mut flags: Vec<_> = case.variants.iter().enumerate().map(is_chosen).collect();
        let references = case.variants.iter().zip(&flags).filter(|(_, is_chosen)| **is_chosen);
        let references: Vec<_> = references.filter_map(|(variant, _)| variant.reference()).collect();
        for (flag, variant) in flags.iter_mut().zip(&case.variants) {
            *flag |= references.contains(&variant.item.variant.as_str());
        }
        chosen.extend(case.variants.into_iter().zip(flags).filter(|(_, flag)| *flag).map(|(variant, _)| variant));
    }
    Ok(chosen)
}

/// Refuses a name of a case or variant that does not exist.
fn check(cases: &[Case], name: &str) -> Result<(), SuiteError> {
    let (case_name, variant) = name.split_once('/').map_or((name, None), |(case, name)| (case, Some(name)));
    let known = || cases.iter().map(|case| case.name);
    let unknown = || SuiteError::UnknownCase {
        name: case_name.to_owned(),
        known: known().collect::<Vec<_>>().join(", "),
        similar: similar(case_name, known()),
    };
    let case = cases.iter().find(|case| case.name == case_name).ok_or_else(unknown)?;
    let names = || case.variants.iter().map(|variant| variant.item.variant.as_str());
    match variant {
        Some(name) if !names().any(|known| known == name) => Err(SuiteError::UnknownVariant {
            case: case_name.to_owned(),
            name: name.to_owned(),
            known: names().collect::<Vec<_>>().join(", "),
            similar: similar(name, names()),
        }),
        _ => Ok(()),
    }
}

/// The data that the suite keeps of a run.
struct Taken {
    kept: Kept,
    measured: Vec<(Measure, Vec<f64>)>,
}

/// Runs the variants under every control law with the same seeds, and judges our law.
///
/// # Errors
/// The errors of [`super::run`].
pub fn run(
    variants: &[Variant],
    (catalogue, controllers): (&Catalogue, &[String]),
    plan: &Plan,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<SuiteResult, SuiteError> {
    let items: Vec<Item> = variants.iter().map(|variant| variant.item.clone()).collect();
    let (prepared, not_run) = prepare(&items, (catalogue, controllers), plan)?;
    let measures = |item: &Item| {
        let variant = variants.iter().find(|it| it.item.case == item.case && it.item.variant == item.variant);
        variant.into_iter().flat_map(|variant| &variant.bars).map(|bar| bar.of.measure())
    };
    let take = |prepared: &super::Prepared<'_>, run: Run, mut packets: Packets| {
        packets.keep_media(&run);
        let measured = measures(prepared.item)
            .map(|measure| (measure, measure::of(measure, &prepared.scenario, &run, &packets)))
            .collect();
        Taken { measured, kept: Kept::of(run, packets.watch) }
    };
    let taken = run_each(&prepared, plan, Packets::default, take, progress)?;
    let (mut results, mut found) = (Vec::new(), Vec::new());
    let mut taken = taken.into_iter();
    for prepared in &prepared {
        let runs = taken.by_ref().take(plan.runs as usize);
        let (kept, measured): (Vec<_>, Vec<_>) = runs.map(|taken| (taken.kept, taken.measured)).unzip();
        let result = case_result(prepared, &kept, plan, World::Sim);
        found.push(Found {
            case: &prepared.item.case,
            variant: &prepared.item.variant,
            controller: prepared.controller,
            runs: measured,
            compared: Compared {
                rate_bps: result.media_rate_bps(),
                queueing_p95_s: result.metric("queueing_p95_s").map(|found| found.mean),
            },
        });
        results.push(result);
    }
    let bars = judge::all(variants, &found);
    Ok(SuiteResult { bars, ..suite_result(NAME, plan, results, not_run) })
}
