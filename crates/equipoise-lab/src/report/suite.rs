//! The page of a suite: one table of all cases and controllers, and one section for each case.

use super::format::{NOTHING, escape};
use super::table::{Column, Table};
use super::{HANDLING, head, suite_charts};
use crate::metrics::{self, Metric};
use crate::suite::{
    CaseFlow, CaseResult, Estimate, FlowKind, Machine, NotRun, PhaseResult, SuiteResult, bars, rfc8867,
};

/// Additional style sheet: the page of a suite is wider than other pages, so that charts fit next to each other.
const STYLE: &str = "<style>\nbody { max-width: 100rem; }\n\
    .side { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(34rem, 100%), 1fr)); gap: 0 1.5rem; }\n\
    .side figure { min-width: 0; }\n.side h4 { margin: 0.6rem 0 0; font-size: 0.95rem; }\n</style>\n</head>";

/// Returns a suite's result as an HTML page.
pub fn suite_html(result: &SuiteResult) -> String {
    let title = match result.suite.as_str() {
        rfc8867::NAME => "RFC 8867: test cases for interactive real-time media",
        bars::NAME => "Bars of our own law",
        _ => "Media over recorded links",
    };
    let mut page = head(title).replacen("</head>", STYLE, 1);
    page.push_str(&format!("<h1>{}</h1>\n{}", escape(title), about(result)));
    page.push_str(&judged(result));
    page.push_str(&format!("<h2>All cases</h2>\n{}{OVERVIEW}", overview(result)));
    page.push_str(&not_run(&result.not_run));
    for (number, case) in cases(result).into_iter().enumerate() {
        page.push_str(&case_section(result, number, case));
    }
    page.push_str(READING);
    if result.live_runs.is_some() {
        page.push_str(READING_LIVE);
    }
    page.push_str(HANDLING);
    page.push_str("</body>\n</html>\n");
    page
}

const OVERVIEW: &str = "<p class=\"note\">In each cell: what media received of what they could use · 95th percentile of the time that their \
    packets waited in queues · share of their packets that was lost. Means over the runs; the intervals stand with each case.</p>\n";

const READING: &str = "<h2>How to read this</h2>\n\
    <p>All controllers ran on the same seeds. Numbers are means over the runs with their 95 % confidence interval (Student's t). Rates count \
    IP packets of media and audio, headers included; of TCP, the rate is that of its packets and the goodput that of new data. What media could use is \
    the capacity that other traffic leaves, or the sum of the media's greatest rates if that is less. A wait in queues has no propagation, no jitter \
    and no transmission of the packet itself; <em>calm</em> leaves out the second after each planned fall of the capacity that \
    background traffic leaves. A delivery trace, and a capacity with more than 64 steps, have no planned falls. Media have <em>converged</em> \
    when the means of a second of every sending rate stay within 20 % of its mean in the last third of the phase; the time is that of the runs that \
    converged, whose number stands behind it if not all did. <em>Over TCP</em> is the mean throughput of a media flow over that of a \
    connection. A frame's delay is from its capture until it is complete; a freeze is 200 ms and more without a complete frame.</p>\n\
    <p>Charts have a point a second, the mean of all runs: of the rate at the receiver, of the wait of the packets that arrived, of the delay of the \
    frames captured, of the loss of the packets sent. Where nothing was measured, a line has a gap and a table a dash (–).</p>\n";

const READING_LIVE: &str = "<p><em>Live</em> is the same scenario over real sockets in network namespaces of one machine, through an emulated \
    path: the same code of the laws, from the same seed, one run after another, and TCP is the kernel's. Charts draw live runs as solid lines and \
    simulated ones as dashed lines of the same colour. How long a packet waited in queues is what the emulated queues say, which the machine's own \
    delays are no part of; all other delays are from end to end. With each variant stands how late the emulator was, and how long the machine \
    ran nothing: where that is as much as what two results differ by, it may be why.</p>\n";

fn about(result: &SuiteResult) -> String {
    let queue = result.aqm.as_ref().map(|aqm| format!(" · all narrow queues are {}", escape(aqm))).unwrap_or_default();
    let controllers = result.controllers().into_iter().map(escape).collect::<Vec<_>>().join(", ");
    let (version, seeds) = (escape(&result.version), result.seeds());
    format!("<p class=\"meta\">Equipoise {version} · {seeds} · {controllers}{queue}</p>\n")
}

/// Returns the results grouped by case, in the order of the cases.
fn cases(result: &SuiteResult) -> Vec<&[CaseResult]> {
    result.results.chunk_by(|one, other| one.case == other.case).collect()
}

/// Returns the results of a case grouped by variant.
fn variants(case: &[CaseResult]) -> Vec<&[CaseResult]> {
    case.chunk_by(|one, other| one.variant == other.variant).collect()
}

/// Returns the table of all results, with one column per controller. Each variant has one row, or two if it ran both
/// simulated and live.
fn overview(result: &SuiteResult) -> String {
    let controllers = result.controllers();
    let cases = cases(result);
    let mut table = Table::new("All cases and controllers").column("case", Column::Text).numbers(&controllers);
    for row in result.rows() {
        let cell = |name: &&str| row.of(name).map_or_else(|| NOTHING.to_owned(), CaseResult::in_short);
        let (case, variant) = (escape(&row.case), escape(&row.label()));
        let number = cases.iter().position(|case| case.first().is_some_and(|first| first.case == row.case));
        let name = number.map_or_else(|| case.clone(), |number| format!("<a href=\"#case-{number}\">{case}</a>"));
        table.push(std::iter::once(format!("{name} {variant}")).chain(controllers.iter().map(cell)).collect());
    }
    table.to_html()
}

/// Returns the table of bars (pass criteria), with one row per bar, one column per control law, and the verdict. Empty
/// if the suite has no bars.
fn judged(result: &SuiteResult) -> String {
    if result.bars.is_empty() {
        return String::new();
    }
    let controllers = result.controllers();
    let mut table = Table::new("Bars")
        .column("case", Column::Text)
        .column("quantity", Column::Text)
        .column("bar", Column::Number)
        .numbers(&controllers)
        .column("verdict", Column::Text);
    for bar in &result.bars {
        let [case, variant, label, verdict] =
            [&bar.case, &bar.variant, &bar.label(), &bar.verdict()].map(|it| escape(it));
        let first = [format!("{case} {variant}"), label, bar.limit_in_short()];
        let laws = controllers.iter().map(|law| bar.of(law));
        table.push(first.into_iter().chain(laws).chain([verdict]).collect());
    }
    let (all, notes) = (result.verdicts(), bars::FOOTNOTES.join("; "));
    format!("<h2>Bars</h2>\n<p>{all}</p>\n{}<p class=\"note\">{notes}.</p>\n", table.to_html())
}

/// Returns the table of the cases that were not run, with the reason in each row.
fn not_run(all: &[NotRun]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut table = Table::new("What was not run")
        .column("case", Column::Text)
        .column("controller", Column::Text)
        .column("why", Column::Text);
    for found in all {
        let NotRun { case, variant, reason, .. } = found;
        let controller = &found.controller_in_words();
        let [case, variant, controller, reason] = [case, variant, controller, reason].map(|text| escape(text));
        table.push(vec![format!("{case} {variant}"), controller, reason]);
    }
    format!("<h2>Not run</h2>\n{}", table.to_html())
}

fn case_section(result: &SuiteResult, number: usize, case: &[CaseResult]) -> String {
    let Some(first) = case.first() else { return String::new() };
    let (name, title) = (escape(&first.case), escape(&first.title));
    let has_cases = [rfc8867::NAME, bars::NAME].contains(&result.suite.as_str());
    let heading = if has_cases { format!("{name} {title}") } else { title };
    let mut section = format!("<h2 id=\"case-{number}\">{heading}</h2>\n");
    if let Some(case) = rfc8867::case(&first.case).filter(|_| has_cases) {
        section.push_str(&format!("<p>Expected: {}</p>\n", escape(case.expected)));
    }
    for (place, variant) in variants(case).into_iter().enumerate() {
        let Some(first) = variant.first() else { continue };
        section.push_str(&format!("<h3>{} {}</h3>\n", escape(&first.case), escape(&first.variant)));
        section.push_str(&format!("<p class=\"note\">{}</p>\n", escape(&first.description)));
        section.push_str(&together(variant));
        section.push_str(&suite_charts::side_by_side(&format!("{number}-{place}"), variant));
        section.push_str(&details("Flows", &flows(variant)));
        section.push_str(&details("Phases", &phases(variant)));
        section.push_str(&machine(variant));
    }
    section
}

fn controller_labels(variant: &[CaseResult]) -> impl Iterator<Item = String> {
    variant.iter().map(CaseResult::label)
}

/// Formats an estimate in the unit that tables use, with its confidence interval. If not all runs have the metric, adds
/// the number of runs that have it.
fn estimate<T>(metric: &Metric<T>, found: Option<Estimate>, runs: u32) -> String {
    let Some(found) = found else { return NOTHING.to_owned() };
    let few = if found.runs < runs { format!(" ({} of {runs})", found.runs) } else { String::new() };
    metric.mean(found.mean, found.half_width()) + &few
}

/// Returns the table of the metrics of all media together, with one row per metric. Each controller has one column, or
/// two if it also ran live.
fn together(variant: &[CaseResult]) -> String {
    let mut table =
        Table::new("All media together").column("all media", Column::Text).numbers(controller_labels(variant));
    for metric in metrics::RUN.iter().filter(|metric| variant.iter().any(|found| found.metric(metric.key).is_some())) {
        let cell = |found: &CaseResult| estimate(metric, found.metric(metric.key), found.runs);
        table.push(std::iter::once(metric.label()).chain(variant.iter().map(cell)).collect());
    }
    table.to_html()
}

/// Returns the table that shows how the machine disturbed the live runs of a variant; empty if there are no live runs.
fn machine(variant: &[CaseResult]) -> String {
    let heads = ["emulator late: 99th percentile (ms)", "latest (ms)", "stalls (s)", "packets lost by the machine"];
    let mut table = Table::new("The machine in live runs").column("live runs", Column::Text).numbers(heads);
    for (found, machine) in variant.iter().filter_map(|found| Some((found, found.machine?))) {
        let Machine { stalled_s, packets_lost, late_p99_s, late_max_s } = machine;
        let millis = |late: Option<f64>| late.map_or_else(|| NOTHING.to_owned(), |late| format!("{:.2}", late * 1e3));
        let (late, latest, name) = (millis(late_p99_s), millis(late_max_s), escape(&found.label()));
        table.push(vec![name, late, latest, format!("{stalled_s:.3}"), packets_lost.to_string()]);
    }
    details("The machine in live runs", &table)
}

/// Returns a table that stays collapsed until the reader opens it.
fn details(summary: &str, table: &Table) -> String {
    let table = table.to_html();
    if table.is_empty() { table } else { format!("<details>\n<summary>{summary}</summary>\n{table}</details>\n") }
}

/// A column of the table of flows: its key, its name, the factor that converts values to the unit in the table, and its
/// number of decimals.
type FlowColumn = (&'static str, &'static str, f64, usize);

const FLOW_COLUMNS: &[FlowColumn] = &[
    ("mean_rate_bps", "rate (Mbit/s)", 1e-6, 3),
    ("goodput_bps", "goodput (Mbit/s)", 1e-6, 3),
    ("loss", "lost (%)", 100.0, 2),
    ("queueing_mean_s", "wait in queues: mean (ms)", 1e3, 1),
    ("queueing_p95_s", "95th percentile (ms)", 1e3, 1),
    ("frame_delay_p95_s", "frames: 95th percentile (ms)", 1e3, 0),
    ("freezes", "freezes", 1.0, 1),
    ("frozen_s", "frozen (s)", 1.0, 2),
    ("fetch_p95_s", "fetches: 95th percentile (s)", 1.0, 2),
];

/// Returns the table of flows, with one row for each flow and controller, or two if the controller also ran live.
fn flows(variant: &[CaseResult]) -> Table {
    let mut table = Table::new("Flows")
        .column("flow", Column::Text)
        .column("kind", Column::Text)
        .column("controller", Column::Text)
        .numbers(FLOW_COLUMNS.iter().map(|column| column.1));
    let count = variant.first().map_or(0, |found| found.flows.len());
    for place in 0..count {
        for (found, flow) in variant.iter().filter_map(|found| Some((found, found.flows.get(place)?))) {
            let kind = match flow.kind {
                FlowKind::Media => "media",
                FlowKind::Audio => "audio",
                FlowKind::Tcp => "TCP",
            };
            let first = [escape(&flow.name), kind.to_owned(), escape(&found.label())];
            table.push(first.into_iter().chain(FLOW_COLUMNS.iter().map(|column| flow_cell(flow, column))).collect());
        }
    }
    table
}

fn flow_cell(flow: &CaseFlow, (key, _, scale, decimals): &FlowColumn) -> String {
    let Some(found) = flow.metric(key) else { return NOTHING.to_owned() };
    let half = found.half_width().map(|half| format!(" ± {:.*}", decimals, half * scale)).unwrap_or_default();
    format!("{:.*}{half}", decimals, found.mean * scale)
}

/// Returns the table of phases, with one row for each phase and controller, or two if the controller also ran live.
fn phases(variant: &[CaseResult]) -> Table {
    let mut table = Table::new("Phases")
        .without_zeros()
        .column("phase", Column::Text)
        .column("controller", Column::Text)
        .numbers(metrics::PHASE.iter().map(Metric::label));
    let count = variant.first().map_or(0, |found| found.phases.len());
    for place in 0..count {
        for (found, phase) in variant.iter().filter_map(|found| Some((found, found.phases.get(place)?))) {
            let of = |metric: &Metric<crate::result::PhaseResult>| match (metric.key, phase.capacity_bps) {
                ("capacity_bps", planned) => {
                    planned.map_or_else(|| NOTHING.to_owned(), |capacity| metric.number(capacity))
                }
                (key, _) => estimate(metric, phase.metric(key), found.runs),
            };
            let PhaseResult { start_s, end_s, .. } = phase;
            let first = [format!("{start_s} s to {end_s} s"), escape(&found.label())];
            table.push(first.into_iter().chain(metrics::PHASE.iter().map(of)).collect());
        }
    }
    table
}
