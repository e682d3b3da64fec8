//! Formats the result of a suite as tables for the terminal.

use equipoise_lab::suite::{CaseResult, FlowKind, NotRun, SuiteResult};

const HEADS: [&str; 10] = [
    "variant",
    "controller",
    "used (%)",
    "queues (ms)",
    "p95 (ms)",
    "calm p95 (ms)",
    "lost (%)",
    "frames p95 (ms)",
    "over TCP",
    "feedback (%)",
];
/// Number of leading columns that contain words and are aligned to the left. The other columns contain numbers.
const WORDS: usize = 2;

type Row = [String; HEADS.len()];

/// Returns a table for each test case, then the list of variants that were not run.
pub(super) fn of(result: &SuiteResult) -> String {
    let mut text = format!("{}, {}\n", result.suite, result.seeds());
    for case in result.results.chunk_by(|one, other| one.case == other.case) {
        let Some(first) = case.first() else { continue };
        text.push_str(&format!("\n{} {}\n", first.case, first.title));
        text.push_str(&lines(case));
    }
    let mut heads = "\nnot run:\n";
    for not_run @ NotRun { reason, .. } in &result.not_run {
        text.push_str(&format!("{heads}  {}: {reason}\n", not_run.name()));
        heads = "";
    }
    text
}

fn lines(case: &[CaseResult]) -> String {
    let mut rows: Vec<Row> = vec![HEADS.map(str::to_owned)];
    let mut last = "";
    for found in case {
        rows.push(row(found, found.variant != last));
        last = &found.variant;
    }
    let widths: Vec<_> =
        (0..HEADS.len()).map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
    let line = |row: &Row| {
        let cell = |(column, cell): (usize, &String)| {
            let width = widths[column];
            if column < WORDS { format!("{cell:width$}") } else { format!("{cell:>width$}") }
        };
        let cells: Vec<_> = row.iter().enumerate().map(cell).collect();
        format!("  {}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

fn row(found: &CaseResult, is_first: bool) -> Row {
    let metric = |key: &str, scale: f64, decimals: usize| {
        let Some(found) = found.metric(key) else { return "-".to_owned() };
        let half = found.half_width().map(|half| format!(" ± {:.decimals$}", half * scale)).unwrap_or_default();
        format!("{:.decimals$}{half}", found.mean * scale)
    };
    let frames = found.flow_mean(FlowKind::Media, "frame_delay_p95_s");
    [
        if is_first { found.variant.clone() } else { String::new() },
        found.label(),
        metric("utilisation", 100.0, 1),
        metric("queueing_mean_s", 1e3, 1),
        metric("queueing_p95_s", 1e3, 1),
        metric("queueing_calm_p95_s", 1e3, 1),
        metric("loss", 100.0, 2),
        frames.map_or_else(|| "-".to_owned(), |delay| format!("{:.0}", delay * 1e3)),
        metric("tcp_ratio", 1.0, 3),
        metric("feedback_share", 100.0, 1),
    ]
}
