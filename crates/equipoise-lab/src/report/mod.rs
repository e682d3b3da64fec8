//! The report of a run: one HTML file that opens offline, can be printed, and is readable in light mode, in dark mode
//! and on a phone.
//!
//! All text from a scenario is escaped, the file loads nothing from other places, and equal results produce equal
//! bytes.

mod beliefs;
pub mod chart;
mod charts;
mod comparison;
mod distribution;
mod figure;
mod format;
mod media;
mod pair;
mod paths;
mod spread;
mod suite;
mod suite_charts;
pub mod table;
mod tables;
mod tcp;
#[cfg(test)]
pub(crate) mod tests;
mod worlds;

use format::counted;
pub(crate) use format::signed_percent;
pub use format::{NOTHING, escape, millis};

use crate::result::{FlowResult, Report, TcpResult, WebResult};
use crate::verdict::Judgement;
use chart::Chart;
pub use comparison::comparison_html;
use figure::{Figure, Question};
pub use suite::suite_html;
use worlds::{InWorld, worlds};

/// Returns the report of a scenario as an HTML page.
pub fn html(report: &Report) -> String {
    let mut page = head(&report.scenario);
    page.push_str(&scenario(report, ""));
    page.push_str("</body>\n</html>\n");
    page
}

/// Returns the reports of several scenarios as one HTML page, one report after another.
pub fn html_of_several(reports: &[Report]) -> String {
    let names = reports.iter().map(|report| report.scenario.as_str()).collect::<Vec<_>>().join(", ");
    let mut page = head(&names);
    page.extend(reports.iter().zip(1..).map(|(report, number)| scenario(report, &format!("{number}-"))));
    page.push_str("</body>\n</html>\n");
    page
}

/// Returns the part of a page that covers one scenario. Every HTML identifier in this part begins with `prefix`.
fn scenario(report: &Report, prefix: &str) -> String {
    let title = escape(&report.scenario);
    let mut page = format!("<h1>{title}</h1>\n<p>{}</p>\n", escape(&report.description));
    page.push_str(&about(report));
    let all = charts::figures(report);
    let answers = |asked: Question| -> String {
        all.iter().filter(|found| found.question == asked).map(|found| figure(found, prefix)).collect()
    };
    let verdicts: String = worlds(report).iter().map(verdicts).collect();
    for (question, answer) in [
        ("Did it hold?", verdicts + &answers(Question::Held)),
        ("What did it cost?", answers(Question::Cost)),
        ("What happened when?", media::phases(report) + &answers(Question::When)),
        ("Numbers", numbers(report)),
    ] {
        if !answer.is_empty() {
            page.push_str(&format!("<h2>{question}</h2>\n{answer}"));
        }
    }
    page.push_str(&reading(report));
    page.push_str(&format!("<h2>Scenario</h2>\n<pre tabindex=\"0\">{}</pre>\n", escape(&report.scenario_text)));
    page
}

/// Returns the beginning of a page with this title, up to the opening tag of the body. The beginning includes the style
/// sheet and the script that every report uses.
pub fn head(title: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{} – Equipoise</title>\n\
         <style>\n{}</style>\n<script type=\"module\">\n{}</script>\n</head>\n<body>\n",
        escape(title),
        include_str!("style.css"),
        include_str!("script.js"),
    )
}

/// Text that explains how to read the page, and which assumptions the page makes.
const READING: &str = "<h2>How to read this</h2>\n\
    <p>A packet belongs to the control interval in which it was sent. <em>Settled delay</em> is the median of the \
    intervals' mean delays, the warm-up and the three intervals after each step left out. A session <em>held</em> its \
    target if its settled delay is within 15 % of it, or below it because what there is to send or the highest rate \
    limits the session, and if its intervals' mean delays were above twice the target for no longer than 2 s at a \
    stretch. Flows without a target have no verdict. Mean squared error, \
    coefficient of variation and delay jitter are those of Waki 2013, Eq. 18 to 22, over all intervals after the \
    warm-up.</p>\n\
    <p>Lengths and rates are those of IP packets, header included. Both worlds run the same control code, and the \
    background's departures are drawn from the same seed in both. Live delays are taken from the receive timestamps \
    named above; both ends share one clock. The live bottleneck is an emulator on the same host: what it adds by waking \
    late is in the delays, and stated here. Where several runs are shown, figures are means over the runs with their \
    95 % confidence interval (Student's t), and counters are totals; charts then show at each moment the median of the runs and the \
    band between their 10th and 90th percentile, where half of the runs or more have a value, and the first run as a thin line.</p>\n";

/// Returns the text that explains how to read the page, and what its charts and tables omit.
fn reading(report: &Report) -> String {
    let dashes = if worlds(report).len() > 1 {
        "Simulated lines are dashed and live ones solid; the upper edge of a band is dashed or solid likewise. "
    } else {
        ""
    };
    format!(
        "{READING}<p>{dashes}Where nothing was measured, a line has a gap and a table a dash (–). A line of more points than can be drawn keeps the first, the least, the largest and the last of each of some hundred \
         stretches.</p>\n{HANDLING}"
    )
}

/// Text that explains how to use the charts of a page.
const HANDLING: &str = "<p>Point at a chart, or go along it with the arrow keys, for its values; drag across it, pinch, or press + and − for \
    a part, and 0 or a double click for the whole. Charts over the same time show the same part. <em>Values</em> below a chart has them as a \
    table. Without scripts, and in print, the charts stand as they are. Counts that are zero throughout are left out of tables.</p>\n";

fn about(report: &Report) -> String {
    let mut text = format!(
        "<p class=\"meta\">Equipoise {} · {:.0} s a run, the first {:.0} s left out of the means",
        escape(&report.version),
        report.duration_s,
        report.warm_up_s
    );
    for world in worlds(report) {
        let clock = world.runs.first().map(|run| escape(&run.clock)).unwrap_or_default();
        text.push_str(&format!(" · {}: {}, {clock}", world.name, world.seeds()));
    }
    text.push_str("</p>\n");
    for world in worlds(report).into_iter().filter(|world| world.runs.len() > 1) {
        let (all, drawn) = (world.runs.len(), world.drawn());
        let runs = if drawn < all { format!("the first {drawn} of {all} runs") } else { format!("the {all} runs") };
        let name = world.name;
        text.push_str(&format!(
            "<p class=\"meta\">Charts of the {name} world show the median of {runs}, the band between the 10th and the 90th percentile \
             of these runs, and the first run as a thin line; numbers are means over all runs.</p>\n",
        ));
    }
    text
}

/// Returns one sentence about the result of each flow with a controller, in the simulated or the live runs, and notes
/// about what disturbed these runs.
fn verdicts(world: &InWorld<'_>) -> String {
    let flows = world.runs.first().map(|run| run.flows.as_slice()).unwrap_or_default();
    let controlled = flows.iter().enumerate().filter(|(_, flow)| flow.controller.is_some());
    let mut text: String = controlled.map(|(index, flow)| verdict(world, index, flow)).collect();
    for disturbance in [early_ends(world), stalls(world), lateness(world)].into_iter().flatten() {
        text.push_str(&format!("<p class=\"note\">{}: {disturbance}</p>\n", world.title()));
    }
    text
}

fn verdict(world: &InWorld<'_>, index: usize, first: &FlowResult) -> String {
    if first.tcp.is_some() {
        return tcp_verdict(world, index, first);
    }
    if first.pair.is_some() {
        return pair::verdict(world, index, first);
    }
    let runs: Vec<_> = world.runs.iter().filter_map(|run| run.flows.get(index)).collect();
    let Judgement { is_held, sentence } = Judgement::of(&runs);
    let class = match is_held {
        Some(true) => "verdict held",
        Some(false) => "verdict missed",
        None => "verdict",
    };
    let (title, name, seeds) = (world.title(), escape(&first.name), world.seeds());
    format!("<p class=\"{class}\"><strong>{title}, {name}</strong> ({seeds}): {sentence}</p>\n")
}

/// Returns a sentence about the goodput of a TCP flow, its fast recoveries or retransmissions, and its timeouts.
fn tcp_verdict(world: &InWorld<'_>, index: usize, first: &FlowResult) -> String {
    let results: Vec<_> = world.runs.iter().filter_map(|run| run.flows.get(index)?.tcp.as_ref()).collect();
    // There is a mean only if all runs have measured the value.
    let mean = |of: &dyn Fn(&TcpResult) -> Option<f64>| {
        let values: Option<Vec<_>> = results.iter().map(|tcp| of(tcp)).collect();
        values.map(|values| values.iter().sum::<f64>() / values.len().max(1) as f64)
    };
    let over_runs = if results.len() == 1 { "" } else { " on average" };
    let goodput = mean(&|tcp| tcp.goodput_bps)
        .map_or_else(|| "goodput not measured".to_owned(), |bps| format!("{:.3} Mbit/s of data{over_runs}", bps / 1e6));
    let count = |of: fn(&TcpResult) -> Option<u64>, one, several| {
        mean(&|tcp| of(tcp).map(|count| count as f64)).map(|count| counted(count, one, several))
    };
    let counts = [
        count(|tcp| tcp.recoveries, "fast recovery", "fast recoveries")
            .or_else(|| count(|tcp| Some(tcp.retransmissions), "segment sent again", "segments sent again")),
        count(|tcp| tcp.timeouts, "timeout", "timeouts"),
    ];
    let counts = counts.into_iter().flatten().collect::<Vec<_>>().join(" and ");
    let fetched = fetched(&results);
    let (title, name, seeds) = (world.title(), escape(&first.name), world.seeds());
    format!("<p class=\"verdict\"><strong>{title}, {name}</strong> ({seeds}): {goodput}, {counts}{fetched}.</p>\n")
}

/// Returns the end of a sentence that states what web traffic fetched, on average over the runs. The text is empty if
/// the flow is not web traffic.
fn fetched(results: &[&TcpResult]) -> String {
    let webs: Option<Vec<_>> = results.iter().map(|tcp| tcp.web).collect();
    let Some(webs) = webs.filter(|webs| !webs.is_empty()) else { return String::new() };
    let mean = |of: fn(&WebResult) -> Option<f64>| {
        let values: Option<Vec<_>> = webs.iter().map(of).collect();
        values.map(|values| values.iter().sum::<f64>() / webs.len() as f64)
    };
    let count = counted(mean(|web| Some(web.fetches as f64)).unwrap_or(0.0), "fetch", "fetches");
    let times = mean(|web| web.time.p50_s).zip(mean(|web| web.time.p95_s));
    let times = times.map(|(p50, p95)| format!(", half of them in {p50:.3} s and 95 % in {p95:.3} s"));
    format!("; {count} complete{}", times.unwrap_or_default())
}

/// Returns a sentence about the runs that were shorter than planned.
fn early_ends(world: &InWorld<'_>) -> Option<String> {
    let lengths = world.runs.iter().filter(|run| !run.complete).map(|run| run.lasted_s);
    let shortest = lengths.clone().reduce(f64::min)?;
    let (ended, runs) = (lengths.count(), world.runs.len());
    Some(if runs == 1 {
        format!("incomplete; the run ended after {shortest:.1} s, before its time.")
    } else {
        format!("incomplete; {ended} of {runs} runs ended before their time, the first of them after {shortest:.1} s.")
    })
}

/// Returns a sentence about how long the machine stalled.
fn stalls(world: &InWorld<'_>) -> Option<String> {
    let lengths = world.runs.iter().flat_map(|run| &run.stalls).map(|stall| stall.end_s - stall.start_s);
    let stood = millis(lengths.clone().sum());
    let times = match lengths.count() {
        0 => return None,
        1 => "once".to_owned(),
        times => format!("{times} times"),
    };
    let shaded = if world.runs.len() == 1 { "the intervals concerned" } else { "those intervals of the first run" };
    Some(format!("the machine itself stalled {times}, {stood} in total; {shaded} are shaded."))
}

/// Returns a sentence about how late the emulated bottleneck sent packets: the largest median and the largest maximum
/// of all runs.
fn lateness(world: &InWorld<'_>) -> Option<String> {
    let late = world.runs.iter().filter_map(|run| run.emulator.and_then(|late| late.late_p50_s.zip(late.late_max_s)));
    let (median, largest) = late.reduce(|one, other| (one.0.max(other.0), one.1.max(other.1)))?;
    let (median, largest) = (millis(median), millis(largest));
    Some(format!("the emulated bottleneck sent packets late, by {median} in the median and by at most {largest}."))
}

fn figure(Figure { title, chart, note, .. }: &Figure, prefix: &str) -> String {
    let named = |chart: &Chart| Chart { id: format!("{prefix}{}", chart.id), ..chart.clone() }.to_html();
    let chart = chart.as_ref().map(named).unwrap_or_default();
    let note = if note.is_empty() { String::new() } else { format!("<p class=\"note\">{}</p>\n", escape(note)) };
    format!("<figure>\n<h3>{}</h3>\n{chart}{note}</figure>\n", escape(title))
}

/// Returns all numbers as tables. The tables of each flow with a controller come first. The tables of all media, of the
/// links, of the counters and of the background traffic follow.
fn numbers(report: &Report) -> String {
    let mut text = String::new();
    let mut background = String::new();
    for (index, flow) in report.runs.first().map(|run| run.flows.as_slice()).unwrap_or_default().iter().enumerate() {
        let name = escape(&flow.name);
        let metrics = tables::metrics(report, index, flow);
        let Some(controller) = &flow.controller else {
            background.push_str(&format!("<h3>{name}</h3>\n{metrics}"));
            continue;
        };
        let split = flow.split.as_ref().map(|split| format!(", split by {}", escape(split))).unwrap_or_default();
        text.push_str(&format!("<h3>{name} ({}{split})</h3>\n{metrics}", escape(controller)));
        text.push_str(&titled("Paths", &tables::paths(report, index, flow)));
    }
    text.push_str(&titled("All media", &media::together(report)));
    text.push_str(&titled("Links", &tables::links(report)));
    text.push_str(&titled("Counters", &tables::counters(report)));
    if !background.is_empty() {
        text.push_str(&format!("<details>\n<summary>Background traffic</summary>\n{background}</details>\n"));
    }
    text
}

/// Returns a table below a title; empty if the table is empty.
fn titled(title: &str, table: &str) -> String {
    if table.is_empty() { String::new() } else { format!("<h3>{title}</h3>\n{table}") }
}
