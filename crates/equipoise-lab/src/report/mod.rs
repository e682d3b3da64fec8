//! The report: one HTML file that opens offline, prints, and reads in light, in dark and on a phone.
//!
//! Everything that comes from a scenario is text to be escaped; nothing is fetched; equal results give equal bytes.

mod chart;
mod charts;
mod format;
mod tables;

use format::{escape, millis, signed_percent};

use crate::result::{FlowResult, Report, Run, World};

/// How near the settled delay has to be to its target for the session to have held it (ours).
const HELD_WITHIN: f64 = 0.15;

/// The report as a page.
pub fn html(report: &Report) -> String {
    let title = escape(&report.scenario);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title} – Equipoise</title>\n\
         <style>\n{}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<p>{}</p>\n",
        include_str!("style.css"),
        escape(&report.description)
    );
    page.push_str(&about(report));
    page.push_str("<h2>Did it hold?</h2>\n");
    report.runs.iter().for_each(|run| page.push_str(&verdicts(run)));
    for (index, flow) in report.runs.first().map(|run| run.flows.as_slice()).unwrap_or_default().iter().enumerate() {
        page.push_str(&flow_section(report, index, flow));
    }
    page.push_str("<h2>Links</h2>\n");
    page.push_str(&tables::links(report));
    page.push_str("<h2>Counters</h2>\n");
    page.push_str(&tables::counters(report));
    page.push_str(READING);
    page.push_str(&format!("<h2>Scenario</h2>\n<pre>{}</pre>\n</body>\n</html>\n", escape(&report.scenario_text)));
    page
}

/// How to read the page, and what it takes for granted.
const READING: &str = "<h2>How to read this</h2>\n\
    <p>A packet belongs to the control interval in which it was sent. <em>Settled delay</em> is the median of the \
    intervals' mean delays, the warm-up and the three intervals after each step left out. Mean squared error, \
    coefficient of variation and delay jitter are those of Waki 2013, Eq. 18 to 22, over all intervals after the \
    warm-up.</p>\n\
    <p>Lengths and rates are those of IP packets, header included. Both worlds run the same control code, and the \
    background's departures are drawn from the same seed in both. Live delays are taken from the receive timestamps \
    named above; both ends share one clock. The live bottleneck is an emulator on the same host: what it adds by waking \
    late is in the delays, and stated here. Where several runs are shown, figures are means over the runs with their \
    95 % confidence interval, and charts show the first run of each world.</p>\n";

fn about(report: &Report) -> String {
    let mut text = format!(
        "<p class=\"meta\">Equipoise {} · {:.0} s a run, the first {:.0} s left out of the means",
        escape(&report.version),
        report.duration_s,
        report.warm_up_s
    );
    for (world, name) in [(World::Sim, "simulated"), (World::Live, "live")] {
        let runs: Vec<_> = report.runs.iter().filter(|run| run.world == world).collect();
        if let (Some(first), Some(last)) = (runs.first(), runs.last()) {
            let seeds =
                if runs.len() == 1 { first.seed.to_string() } else { format!("{} to {}", first.seed, last.seed) };
            text.push_str(&format!(" · {name}: seed {seeds}, {}", escape(&first.clock)));
        }
    }
    text.push_str("</p>\n");
    text
}

/// What became of every controlled flow of a run, in a sentence each, and what disturbed the run.
fn verdicts(run: &Run) -> String {
    let world = if run.world == World::Sim { "Simulated" } else { "Live" };
    let mut text: String =
        run.flows.iter().filter(|flow| flow.controller.is_some()).map(|flow| verdict(world, run.seed, flow)).collect();
    if !run.complete {
        text.push_str(&format!("<p class=\"note\">{world}: ended after {:.1} s, before its time.</p>\n", run.lasted_s));
    }
    if !run.stalls.is_empty() {
        let stood: f64 = run.stalls.iter().map(|stall| stall.end_s - stall.start_s).sum();
        text.push_str(&format!(
            "<p class=\"note\">{world}: the machine itself stood still {} times, {} in all; the intervals concerned are shaded.</p>\n",
            run.stalls.len(),
            millis(stood)
        ));
    }
    if let Some((median, largest)) = run.emulator.and_then(|emulator| emulator.late_p50_s.zip(emulator.late_max_s)) {
        text.push_str(&format!(
            "<p class=\"note\">{world}: the emulated bottleneck let packets go {} late in the median, {} at the most.</p>\n",
            millis(median),
            millis(largest)
        ));
    }
    text
}

fn verdict(world: &str, seed: u64, flow: &FlowResult) -> String {
    let name = escape(&flow.name);
    let (held, sentence) = match (flow.settled_delay_s, flow.target_s) {
        (Some(settled), Some(target)) => {
            let error = settled / target - 1.0;
            let held = error.abs() <= HELD_WITHIN;
            let verdict = if held { "held" } else { "not held" };
            let (settled, target, error) = (millis(settled), millis(target), signed_percent(error));
            let within = HELD_WITHIN * 100.0;
            (
                held,
                format!("settled at {settled} against a target of {target} ({error}): {verdict} within {within:.0} %."),
            )
        }
        (None, _) => (false, "nothing was measured after the warm-up.".to_owned()),
        (Some(settled), None) => (true, format!("settled at {}; it has no target.", millis(settled))),
    };
    let class = if held { "verdict" } else { "verdict missed" };
    format!("<p class=\"{class}\"><strong>{world}, {name}</strong> (seed {seed}): {sentence}</p>\n")
}

/// One flow: figures where it is controlled, and its metrics.
fn flow_section(report: &Report, index: usize, flow: &FlowResult) -> String {
    let controller = flow.controller.as_deref().unwrap_or("background");
    let mut text = format!("<h2>{} ({})</h2>\n", escape(&flow.name), escape(controller));
    if flow.controller.is_some() {
        for figure in charts::figures(report, index) {
            let title = escape(&figure.title);
            text.push_str(&format!("<figure>\n<h3>{title}</h3>\n{}</figure>\n", figure.html));
        }
        text.push_str("<h3>Metrics</h3>\n");
    }
    text.push_str(&tables::metrics(report, index));
    text
}
