//! All media together, and the phases of the run, as tables.

use super::chart::Mark;
use super::figure::STEP_DASH;
use super::tables::{over_runs, table, world_heads};
use super::worlds::{InWorld, worlds};
use crate::metrics::{self, Metric};
use crate::result::{MediaResult, PhaseResult, Report};

/// What all media did together in each world; empty without media.
pub(super) fn section(report: &Report) -> String {
    let worlds = worlds(report);
    if worlds.iter().all(|world| results(world).next().is_none()) {
        return String::new();
    }
    format!("<h2>All media</h2>\n{}{}{READING}", together(&worlds), phases(&worlds))
}

/// What the words of the tables mean.
const READING: &str = "<p class=\"note\">A phase lasts from one planned change to the next. <em>Used</em> is what media received of the \
    capacity that background traffic leaves, or of the sum of their greatest rates if that is less. A wait in queues has no propagation, no jitter \
    and no transmission of the packet itself; <em>calm</em> leaves out the second after each fall of the capacity. Media have <em>converged</em> \
    when the means of a second of every sending rate stay within 20 % of its mean in the last third of the phase; <em>swings</em> are changes \
    from half that mean to twice of it, or back, within 500 ms. <em>Over TCP</em> is the mean throughput of a media flow over that of a \
    connection.</p>\n";

fn results<'a>(world: &InWorld<'a>) -> impl Iterator<Item = &'a MediaResult> {
    world.runs.iter().filter_map(|run| run.media.as_ref()).collect::<Vec<_>>().into_iter()
}

/// The metrics of the whole run, the worlds side by side.
fn together(worlds: &[InWorld<'_>]) -> String {
    let row = |metric: &Metric<MediaResult>| {
        let of_world = |world: &InWorld<'_>| results(world).filter_map(|media| metric.of(media)).collect::<Vec<_>>();
        let measured: Vec<_> = worlds.iter().map(of_world).collect();
        let cell = |values: &Vec<f64>| format!("<td>{}</td>", over_runs(values, metric.scale, metric.decimals));
        let cells: String = measured.iter().map(cell).collect();
        let was_measured = measured.iter().any(|values| !values.is_empty());
        was_measured.then(|| format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", metric.label()))
    };
    let rows: String = metrics::RUN.iter().filter_map(row).collect();
    let head = format!("<th scope=\"col\">metric</th>{}", world_heads(worlds, "mean of"));
    table("Metrics of all media together", &head, &rows)
}

/// The phases, one below the other, in every world.
fn phases(worlds: &[InWorld<'_>]) -> String {
    let mut rows = String::new();
    for world in worlds {
        let longest = results(world).max_by_key(|media| media.phases.len());
        for (number, phase) in longest.into_iter().flat_map(|media| &media.phases).enumerate() {
            let cell = |metric: &Metric<PhaseResult>| {
                let values: Vec<_> = results(world)
                    .filter_map(|media| media.phases.get(number))
                    .filter_map(|phase| metric.of(phase))
                    .collect();
                format!("<td>{}</td>", over_runs(&values, metric.scale, metric.decimals))
            };
            let cells: String = metrics::PHASE.iter().map(cell).collect();
            let (start_s, end_s, world) = (phase.start_s, phase.end_s, world.name);
            rows.push_str(&format!(
                "<tr><th scope=\"row\">{start_s} s to {end_s} s</th><td class=\"text\">{world}</td>{cells}</tr>\n"
            ));
        }
    }
    let columns: String =
        metrics::PHASE.iter().map(|metric| format!("<th scope=\"col\">{}</th>", metric.label())).collect();
    let head = format!("<th scope=\"col\">phase</th><th scope=\"col\" class=\"text\">world</th>{columns}");
    table("Phases", &head, &rows)
}

/// The beginnings of phases at which no rate takes a step: flows come or go.
pub(super) fn marks(report: &Report) -> Vec<Mark> {
    let phases = report.runs.iter().find_map(|run| run.media.as_ref()).map(|media| media.phases.as_slice());
    let is_step = |at_s: f64| report.steps.iter().any(|step| (step.at_s - at_s).abs() < 1e-9);
    let begins = phases.unwrap_or_default().iter().zip(1..).skip(1).filter(|(phase, _)| !is_step(phase.start_s));
    let mark = |(phase, number): (&PhaseResult, u32)| Mark {
        at: phase.start_s,
        label: format!("phase {number}"),
        name: format!("{} s: a flow comes, pauses or goes (phase {number})", phase.start_s),
        dash: STEP_DASH,
    };
    begins.map(mark).collect()
}
