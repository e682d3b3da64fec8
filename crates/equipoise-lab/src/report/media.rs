//! The table of metrics that cover all media together, and the table of the phases of a run.

use super::chart::Mark;
use super::figure::STEP_DASH;
use super::table::{Column, Table};
use super::tables::{add, of_world, of_worlds, over_runs, world_heads};
use super::worlds::{InWorld, worlds};
use crate::metrics::{self, Metric};
use crate::result::{MediaResult, PhaseResult, Report};

/// Text that explains the terms in the table of phases.
const READING: &str = "<p class=\"note\">A phase lasts from one planned change to the next. <em>Used</em> is what media received of the \
    capacity that background traffic leaves, or of the sum of their greatest rates if that is less. A wait in queues has no propagation, no jitter \
    and no transmission of the packet itself; <em>calm</em> leaves out the second after each planned fall of the capacity that \
    background traffic leaves. A delivery trace, and a capacity with more than 64 steps, have no planned falls. Media have <em>converged</em> \
    when the means of a second of every sending rate stay within 20 % of its mean in the last third of the phase; <em>swings</em> are changes \
    from half that mean to twice of it, or back, within 500 ms. <em>Over TCP</em> is the mean throughput of a media flow over that of a \
    connection.</p>\n";

fn results<'a>(world: &InWorld<'a>) -> impl Iterator<Item = &'a MediaResult> {
    world.runs.iter().filter_map(|run| run.media.as_ref()).collect::<Vec<_>>().into_iter()
}

/// Returns the table of metrics of all media together in the whole run, with columns for simulated and live runs. Empty
/// if no flow sends media.
pub(super) fn together(report: &Report) -> String {
    let worlds = worlds(report);
    let mut table = Table::new("Metrics of all media together")
        .column("metric", Column::Text)
        .numbers(world_heads(&worlds, "mean of"));
    for metric in metrics::RUN {
        let of_world = |world: &InWorld<'_>| results(world).filter_map(|media| metric.of(media)).collect::<Vec<_>>();
        add(&mut table, metric, &worlds.iter().map(of_world).collect::<Vec<_>>());
    }
    table.to_html()
}

/// Returns the table of phases, in order of time, for simulated and for live runs. Empty if no flow sends media.
pub(super) fn phases(report: &Report) -> String {
    let worlds = worlds(report);
    let mut table = of_worlds("Phases", "phase", &worlds).numbers(metrics::PHASE.iter().map(Metric::label));
    for world in &worlds {
        let longest = results(world).max_by_key(|media| media.phases.len());
        for (number, phase) in longest.into_iter().flat_map(|media| &media.phases).enumerate() {
            let cell = |metric: &Metric<PhaseResult>| {
                let values: Vec<_> = results(world)
                    .filter_map(|media| media.phases.get(number))
                    .filter_map(|phase| metric.of(phase))
                    .collect();
                over_runs(&values, metric.scale, metric.decimals)
            };
            let first = of_world(format!("{} s to {} s", phase.start_s, phase.end_s), world, &worlds);
            table.push(first.into_iter().chain(metrics::PHASE.iter().map(cell)).collect());
        }
    }
    let html = table.to_html();
    if html.is_empty() { html } else { html + READING }
}

/// Returns marks for the starts of phases, except where a rate takes a step. At a marked time, a flow starts, pauses
/// or ends, or a path outage begins or ends.
pub(super) fn marks(report: &Report) -> Vec<Mark> {
    let phases = report.runs.iter().find_map(|run| run.media.as_ref()).map(|media| media.phases.as_slice());
    let is_step = |at_s: f64| report.steps.iter().any(|step| (step.at_s - at_s).abs() < 1e-9);
    let begins = phases.unwrap_or_default().iter().zip(1..).skip(1).filter(|(phase, _)| !is_step(phase.start_s));
    let is_of_path = |at_s: f64| {
        let mut times = report.outages.iter().flat_map(|outage| [outage.start_s, outage.end_s]);
        times.any(|time_s| (time_s - at_s).abs() < 1e-9)
    };
    let mark = |(phase, number): (&PhaseResult, u32)| {
        let at = phase.start_s;
        let why = if is_of_path(at) { "a path is taken away or is back" } else { "a flow comes, pauses or goes" };
        let name = format!("{at} s: {why} (phase {number})");
        Mark { at, label: format!("phase {number}"), name, dash: STEP_DASH }
    };
    begins.map(mark).collect()
}
