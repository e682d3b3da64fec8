//! What a person sees while a scenario runs, and the summary after it.

use std::io::{self, IsTerminal as _, Write as _};

use equipoise_lab::record::IntervalRow;
use equipoise_lab::result::{FlowResult, PathResult, Run, TcpResult, World};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The live table: a line an interval on standard output, and a bar below them where standard error is a terminal.
#[derive(Debug)]
pub(crate) struct Table {
    bar: ProgressBar,
    quiet: bool,
    rows: usize,
}

/// Rows between two headers.
const PAGE: usize = 20;
/// Steps of the bar.
const BAR_STEPS: u64 = 1000;

impl Table {
    /// A table that prints nothing if `quiet`; `what` stands beside the bar.
    pub(crate) fn new(quiet: bool, what: &'static str) -> Self {
        let hidden = quiet || !io::stderr().is_terminal();
        let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(BAR_STEPS), target).with_message(what);
        if let Ok(style) = ProgressStyle::with_template("{msg:>9} [{bar:40}] {percent:>3} %  {eta} left") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar, quiet, rows: 0 }
    }

    /// The run has come this far, 0 to 1.
    pub(crate) fn progress(&self, share: f64) {
        self.bar.set_position((share.clamp(0.0, 1.0) * BAR_STEPS as f64) as u64);
    }

    /// An interval of a controlled session has ended.
    pub(crate) fn row(&mut self, row: &IntervalRow) {
        if self.quiet {
            return;
        }
        if self.rows.is_multiple_of(PAGE) {
            self.line("    time     rate     delay: mean      p95   target    lost  decided by");
        }
        self.rows += 1;
        let lost = if row.packets == 0 { 0.0 } else { 100.0 * row.packets_lost as f64 / row.packets as f64 };
        self.line(&format!(
            "{:6.1} s {:6.2} Mbit/s {} {} {} {:5.1} %  {}",
            row.end_s,
            row.rate_bps / 1e6,
            millis(row.delay_mean_s),
            millis(row.delay_p95_s),
            millis(row.target_s),
            lost,
            row.reason.as_deref().unwrap_or("-"),
        ));
    }

    /// The run is over: the bar goes.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }

    fn line(&self, text: &str) {
        // The bar steps aside for the line. Where nobody reads standard output any more, the run goes on for its report.
        self.bar.suspend(|| {
            let _ = writeln!(io::stdout(), "{text}");
        });
    }
}

/// Milliseconds in ten columns; a dash for what was not measured.
fn millis(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| format!("{:>9}", "-"), |seconds| format!("{:6.2} ms", seconds * 1e3))
}

/// The runs' main figures, one line a flow.
pub(crate) fn summary(runs: &[Run]) -> String {
    let mut text =
        String::from("world  seed  flow            rate        delay: mean      p95  settled   target    lost\n");
    for run in runs {
        let world = match run.world {
            World::Sim => "sim ",
            World::Live => "live",
        };
        for flow in &run.flows {
            text.push_str(&format!("{world} {:6}  {}\n", run.seed, flow_line(flow)));
            text.extend(flow.paths.iter().map(|path| format!("{world} {:6}  {}\n", run.seed, path_line(path))));
        }
        if !run.stalls.is_empty() {
            let stood: f64 = run.stalls.iter().map(|stall| stall.end_s - stall.start_s).sum();
            let count = run.stalls.len();
            text.push_str(&format!(
                "             the machine stood still {count} times, {:.0} ms in all\n",
                stood * 1e3
            ));
        }
        if !run.complete {
            text.push_str(&format!("             ended after {:.1} s, before its time\n", run.lasted_s));
        }
    }
    text
}

fn flow_line(flow: &FlowResult) -> String {
    if let Some(tcp) = &flow.tcp {
        return tcp_line(flow, tcp);
    }
    let rate = flow.mean_rate_bps.map_or_else(|| format!("{:>14}", "-"), |rate| format!("{:7.3} Mbit/s", rate / 1e6));
    let lost = if flow.packets_sent == 0 { 0.0 } else { 100.0 * flow.packets_lost as f64 / flow.packets_sent as f64 };
    format!(
        "{:12} {rate}   {} {} {} {}  {lost:5.2} %",
        flow.name,
        millis(flow.delay.mean_s),
        millis(flow.delay.p95_s),
        millis(flow.settled_delay_s),
        millis(flow.target_s),
    )
}

/// What of it a path carried.
fn path_line(path: &PathResult) -> String {
    let rate = path.mean_rate_bps.map_or_else(|| format!("{:>14}", "-"), |rate| format!("{:7.3} Mbit/s", rate / 1e6));
    let lost = if path.packets_sent == 0 { 0.0 } else { 100.0 * path.packets_lost as f64 / path.packets_sent as f64 };
    let (mean, p95) = (millis(path.delay.mean_s), millis(path.delay.p95_s));
    format!("  {:10} {rate}   {mean} {p95} {:>9} {:>9}  {lost:5.2} %", path.name, "", "")
}

/// A TCP connection has no one-way delays, and other things instead.
fn tcp_line(flow: &FlowResult, tcp: &TcpResult) -> String {
    let goodput = tcp.goodput_bps.map_or_else(|| format!("{:>14}", "-"), |rate| format!("{:7.3} Mbit/s", rate / 1e6));
    let resent = tcp.retransmissions as f64;
    let count = |count: Option<u64>, what: &str| count.map_or(String::new(), |count| format!("{count} {what}, "));
    let share = if flow.packets_sent == 0 { 0.0 } else { 100.0 * resent / flow.packets_sent as f64 };
    format!(
        "{:12} {goodput}   of data; least round trip {}, {}{}{share:.2} % sent again",
        flow.name,
        millis(tcp.min_round_trip_s).trim_start(),
        count(tcp.recoveries, "fast recoveries"),
        count(tcp.timeouts, "timeouts"),
    )
}
