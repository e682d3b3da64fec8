//! Metrics, links and counters as tables.

use super::format::{NOTHING, escape, half_width_95, scaled};
use crate::result::{FlowResult, LinkResult, Report, Run, World};

/// A row: what it is, its scale to the printed unit, its decimals, and where it comes from.
type Metric = (&'static str, f64, usize, fn(&FlowResult) -> Option<f64>);

const METRICS: &[Metric] = &[
    ("mean rate (Mbit/s)", 1e-6, 3, |flow| flow.mean_rate_bps),
    ("one-way delay: mean (ms)", 1e3, 3, |flow| flow.delay.mean_s),
    ("variance (ms²)", 1e6, 3, |flow| flow.delay.variance_s2),
    ("median (ms)", 1e3, 3, |flow| flow.delay.p50_s),
    ("95th percentile (ms)", 1e3, 3, |flow| flow.delay.p95_s),
    ("99th percentile (ms)", 1e3, 3, |flow| flow.delay.p99_s),
    ("maximum (ms)", 1e3, 3, |flow| flow.delay.max_s),
    ("target (ms)", 1e3, 3, |flow| flow.target_s),
    ("settled delay (ms)", 1e3, 3, |flow| flow.settled_delay_s),
    ("mean squared error (ms²)", 1e6, 3, |flow| flow.mse_s2),
    ("coefficient of variation", 1.0, 4, |flow| flow.cv),
    ("delay jitter (ms)", 1e3, 3, |flow| flow.jitter_s),
    ("packets sent", 1.0, 0, |flow| Some(flow.packets_sent as f64)),
    ("packets received", 1.0, 0, |flow| Some(flow.packets_received as f64)),
    ("packets lost (%)", 100.0, 3, |flow| {
        (flow.packets_sent > 0).then(|| flow.packets_lost as f64 / flow.packets_sent as f64)
    }),
    ("schedule begun anew", 1.0, 0, |flow| Some(flow.pacing_resets as f64)),
    ("three reports missing", 1.0, 0, |flow| Some(flow.reports_missing as f64)),
];

/// The worlds that a report has runs of, with their names.
fn worlds(report: &Report) -> Vec<(World, &'static str)> {
    let all = [(World::Sim, "simulated"), (World::Live, "live")];
    all.into_iter().filter(|(world, _)| report.runs.iter().any(|run| run.world == *world)).collect()
}

/// Mean over the runs and, of several, the 95 % confidence interval of that mean.
fn over_runs(values: &[f64], scale: f64, decimals: usize) -> String {
    if values.is_empty() {
        return NOTHING.to_owned();
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let interval = half_width_95(values).map(|half| format!(" ± {:.decimals$}", half * scale)).unwrap_or_default();
    format!("{:.decimals$}{interval}", mean * scale)
}

/// One flow's metrics, the worlds side by side.
pub(super) fn metrics(report: &Report, flow: usize) -> String {
    let worlds = worlds(report);
    let head: String = worlds
        .iter()
        .map(|(world, name)| {
            let runs = report.runs.iter().filter(|run| run.world == *world).count();
            let runs = if runs == 1 { String::new() } else { format!(", {runs} runs") };
            format!("<th scope=\"col\">{name}{runs}</th>")
        })
        .collect();
    let row = |(name, scale, decimals, get): &Metric| {
        let cells: String = worlds
            .iter()
            .map(|(world, _)| {
                let runs = report.runs.iter().filter(|run| run.world == *world);
                let values: Vec<_> = runs.filter_map(|run| run.flows.get(flow)).filter_map(get).collect();
                format!("<td>{}</td>", over_runs(&values, *scale, *decimals))
            })
            .collect();
        format!("<tr><th scope=\"row\">{name}</th>{cells}</tr>\n")
    };
    let rows: String = METRICS.iter().map(row).collect();
    table(&format!("<th scope=\"col\">metric</th>{head}"), &rows)
}

/// Every link of the first run of each world.
pub(super) fn links(report: &Report) -> String {
    let row = |world: &str, link: &LinkResult| {
        format!(
            "<tr><th scope=\"row\">{}</th><td>{world}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            escape(&link.name),
            scaled(link.utilisation, 100.0, 2),
            link.packets_forwarded,
            link.packets_dropped,
            scaled(link.mean_queue_packets, 1.0, 2),
            link.max_queue_packets
        )
    };
    let rows: String = worlds(report)
        .iter()
        .filter_map(|(world, name)| report.runs.iter().find(|run| run.world == *world).map(|run| (run, name)))
        .flat_map(|(run, name)| run.links.iter().map(move |link| row(name, link)))
        .collect();
    let head = "<th scope=\"col\">link</th><th scope=\"col\">world</th><th scope=\"col\">utilisation (%)</th>\
        <th scope=\"col\">packets forwarded</th><th scope=\"col\">packets dropped</th>\
        <th scope=\"col\">mean queue (packets)</th><th scope=\"col\">longest queue (packets)</th>";
    table(head, &rows)
}

/// What was counted beside the packets: dropped datagrams and decisions by reason.
pub(super) fn counters(report: &Report) -> String {
    let mut rows = String::new();
    for run in &report.runs {
        let world = if run.world == World::Sim { "simulated" } else { "live" };
        for flow in &run.flows {
            let counts = [("dropped as", &flow.ignored), ("decided by", &flow.decisions)];
            for (what, reasons) in counts {
                for (reason, count) in reasons {
                    rows.push_str(&counter(run, world, &flow.name, &format!("{what} {reason}"), *count));
                }
            }
        }
        if let Some(emulator) = &run.emulator {
            let counts =
                [("foreign datagrams", emulator.packets_foreign), ("lost by the machine", emulator.packets_lost)];
            for (what, count) in counts {
                rows.push_str(&counter(run, world, "emulator", what, count));
            }
        }
    }
    let head = "<th scope=\"col\">flow</th><th scope=\"col\">world</th><th scope=\"col\">seed</th>\
        <th scope=\"col\">what</th><th scope=\"col\">count</th>";
    table(head, &rows)
}

fn counter(run: &Run, world: &str, flow: &str, what: &str, count: u64) -> String {
    let (flow, what, seed) = (escape(flow), escape(what), run.seed);
    format!("<tr><th scope=\"row\">{flow}</th><td>{world}</td><td>{seed}</td><td>{what}</td><td>{count}</td></tr>\n")
}

fn table(head: &str, rows: &str) -> String {
    format!("<div class=\"scroll\"><table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table></div>\n")
}
