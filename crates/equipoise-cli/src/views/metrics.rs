//! The metrics of a run in the `OpenMetrics` text format.
//!
//! Source: `OpenMetrics` 1.0, "Text Format" and "Summary". The text is written directly from the board (the state of
//! the run), because the registry of a library would be a second copy of the board.

use std::fmt::Write as _;

use super::board::{Board, Series};
use super::told::Way;

/// The media type of the metrics text.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Approximate number of bytes that the text contains for each session.
const A_SESSION: usize = 1600;

/// Returns the whole metrics text. `dropped` is the number of events that were dropped before they could change the
/// board.
pub(crate) fn text(board: &Board, dropped: u64) -> String {
    let mut page = Page { text: String::with_capacity((board.open.len() + 2) * A_SESSION) };
    page.run(board, dropped);
    page.all(board);
    page.each(board);
    page.text.push_str("# EOF\n");
    page.text
}

struct Page {
    text: String,
}

/// The `OpenMetrics` types of the metrics on the page.
#[derive(Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
    Info,
    Summary,
}

impl Page {
    /// Writes the header lines of a metric family. The family's name ends with the unit, if the metric has a unit.
    fn family(&mut self, name: &str, kind: Kind, unit: &str, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Info => "info",
            Kind::Summary => "summary",
        };
        // Writing to a `String` never fails, so the result is ignored.
        let _ = writeln!(self.text, "# TYPE equipoise_{name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(self.text, "# UNIT equipoise_{name} {unit}");
        }
        let _ = writeln!(self.text, "# HELP equipoise_{name} {help}");
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.text, "equipoise_{name}{{{labels}}} {value}");
    }

    /// Writes a sample if its value is known.
    fn maybe(&mut self, name: &str, labels: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.sample(name, labels, value);
        }
    }

    fn run(&mut self, board: &Board, dropped: u64) {
        self.family("run", Kind::Info, "", "The run.");
        if let Some(start) = &board.start {
            let labels = format!("version=\"{}\",command=\"{}\"", escape(start.version), escape(start.command));
            self.sample("run_info", &labels, 1);
        }
        self.family("views_dropped", Kind::Counter, "", "Events that were dropped on their way to the views.");
        let _ = writeln!(self.text, "equipoise_views_dropped_total {dropped}");
    }

    /// Writes the number of open series (sessions, flows or directions of a path) and the totals of all series, in each
    /// case separately for sent, received and carried packets. The totals include series that have ended.
    fn all(&mut self, board: &Board) {
        let ways: Vec<_> = board.sums.iter().map(|(way, total)| (*way, *total)).collect();
        self.family("sessions", Kind::Gauge, "", "Open sessions, flows or directions of a path.");
        for (way, _) in &ways {
            self.sample("sessions", &direction(*way), board.count(*way));
        }
        let counters = [
            ("sessions_opened", "", "Sessions, flows or directions of a path that were opened."),
            ("packets", "", "Packets of media that were sent or received, or that a path delivered."),
            ("bytes", "bytes", "Bytes of these IP packets."),
            ("packets_lost", "", "Packets that were lost; at a sender, according to the receiver's reports."),
        ];
        for (place, (name, unit, help)) in counters.into_iter().enumerate() {
            self.family(name, Kind::Counter, unit, help);
            for (way, total) in &ways {
                let value = [total.opened, total.packets, total.bytes, total.lost][place];
                self.sample(&format!("{name}_total"), &direction(*way), value);
            }
        }
    }

    /// Writes the values of each open series.
    fn each(&mut self, board: &Board) {
        let each: Vec<_> = board.open.values().map(|series| (labels(series), series)).collect();
        let of = |series: &Series| series.now;
        self.gauge(
            &each,
            "rate_bits_per_second",
            "bits_per_second",
            "Rate of IP packets in the last interval.",
            |it| Some(of(it).rate_bps),
        );
        self.gauge(
            &each,
            "allowed_rate_bits_per_second",
            "bits_per_second",
            "Rate that the controller allows.",
            |it| of(it).allowed_bps,
        );
        self.delays(&each);
        self.gauge(&each, "jitter_seconds", "seconds", "Interarrival jitter (RFC 3550, Sec. 6.4.1).", |it| {
            of(it).jitter_s
        });
        self.gauge(&each, "round_trip_seconds", "seconds", "Round-trip time by the last report.", |it| {
            of(it).round_trip_s
        });
        self.gauge(&each, "loss_ratio", "ratio", "Share of packets lost in the last interval or report.", |it| {
            of(it).lost_share
        });
        self.gauge(&each, "queue_packets", "packets", "Mean number of waiting packets in the last interval.", |it| {
            of(it).queue_packets
        });
        self.breakers(&each);
    }

    fn gauge(
        &mut self,
        each: &[(String, &Series)],
        name: &str,
        unit: &str,
        help: &str,
        value: impl Fn(&Series) -> Option<f64>,
    ) {
        self.family(name, Kind::Gauge, unit, help);
        for (labels, series) in each {
            self.maybe(name, labels, value(series));
        }
    }

    /// Writes the delays of each series as a summary. The quantiles cover the last interval of the series. The sum and
    /// the count cover all intervals of the series.
    fn delays(&mut self, each: &[(String, &Series)]) {
        let help = "Delay of packets: at a receiver above the minimum of the session, at a sender the one that its controller uses.";
        self.family("delay_seconds", Kind::Summary, "seconds", help);
        for (labels, series) in each.iter().filter(|(_, series)| series.total.delayed > 0) {
            let figures = series.now;
            let quantiles =
                [("0.5", figures.delay_p50_s), ("0.95", figures.delay_p95_s), ("0.99", figures.delay_p99_s)];
            for (quantile, delay_s) in quantiles {
                // A delay cannot be negative, but drift of the clocks may lead to negative values. These values are
                // omitted.
                let known = delay_s.filter(|delay_s| *delay_s >= 0.0);
                self.maybe("delay_seconds", &format!("{labels},quantile=\"{quantile}\""), known);
            }
            self.sample("delay_seconds_count", labels, series.total.delayed);
            self.sample("delay_seconds_sum", labels, series.total.delay_sum_s.max(0.0));
        }
    }

    fn breakers(&mut self, each: &[(String, &Series)]) {
        let help = "Times that a circuit breaker stopped the media (RFC 8083).";
        self.family("breaker_trips", Kind::Counter, "", help);
        for (labels, series) in each {
            for (breaker, count) in &series.breakers {
                self.sample("breaker_trips_total", &format!("{labels},breaker=\"{}\"", escape(breaker)), *count);
            }
        }
        self.family("stopped", Kind::Gauge, "", "1 while a circuit breaker keeps the media stopped.");
        for (labels, series) in each.iter().filter(|(_, series)| series.open.direction == Way::Sent) {
            self.sample("stopped", labels, u8::from(series.stopped_by.is_some()));
        }
    }
}

fn direction(way: Way) -> String {
    format!("direction=\"{}\"", way.name())
}

fn labels(series: &Series) -> String {
    let open = &series.open;
    format!("session=\"{}\",name=\"{}\",{}", open.series, escape(&open.name), direction(open.direction))
}

/// Escapes the value of a label.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::views::samples;
    use crate::views::told::Told;

    /// If this test fails, a scraper rejects the whole text. The test checks rules of `OpenMetrics` 1.0: the lines of a
    /// family are contiguous, names end with the unit, counters end in `_total`, samples are unique, and the text ends
    /// with `# EOF`.
    #[test]
    fn the_text_is_what_the_format_asks_for() {
        let board = samples::board(3);
        let text = text(&board, 7);
        assert!(text.ends_with("\n# EOF\n") && text.matches("# EOF").count() == 1);
        let mut kinds: BTreeMap<&str, &str> = BTreeMap::new();
        let (mut current, mut seen) = ("", BTreeSet::new());
        for line in text.lines().filter(|line| *line != "# EOF") {
            if let Some(head) = line.strip_prefix("# ") {
                let [word, name, rest] = head.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
                match word {
                    "TYPE" => assert!(kinds.insert(name, rest).is_none(), "twice: {line}"),
                    "UNIT" => assert!(name.ends_with(&format!("_{rest}")), "{line}"),
                    _ => assert_eq!(word, "HELP"),
                }
                current = name;
                continue;
            }
            let (name, rest) = line.split_once('{').or_else(|| line.split_once(' ')).unwrap_or_default();
            let suffix = name.strip_prefix(current).unwrap_or_else(|| panic!("{line} is not of {current}"));
            let allowed: &[&str] = match kinds[current] {
                "counter" => &["_total"],
                "gauge" => &[""],
                "info" => &["_info"],
                "summary" => &["", "_count", "_sum"],
                kind => panic!("{kind}"),
            };
            assert!(allowed.contains(&suffix), "{line}");
            let (labels, value) = rest.rsplit_once("} ").unwrap_or(("", rest));
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
            assert!(value.is_finite() && value >= 0.0, "{line}");
            assert!(seen.insert((name, labels)), "twice: {line}");
        }
        for line in [
            "equipoise_sessions{direction=\"received\"} 3",
            "equipoise_delay_seconds{session=\"1\",name=\"a \\\"quoted\\\" peer\",direction=\"received\",quantile=\"0.95\"} 0.012",
            "equipoise_rate_bits_per_second{session=\"1\",name=\"a \\\"quoted\\\" peer\",direction=\"received\"} 1000000",
            "equipoise_views_dropped_total 7",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
        }
        assert!(text.contains("breaker=\"media timeout\"} 1"), "{text}");
    }

    /// If this test fails, the metrics use too much processor time. The test measures one event of each of a thousand
    /// sessions, and one scrape. The goal is 10 ms, which is a hundredth of a core at one scrape per second. The test
    /// accepts five times this value, because the machine may be slow or busy.
    #[test]
    fn the_metrics_of_a_thousand_sessions_cost_little_of_a_core() {
        let mut board = samples::board(1000);
        let interval = samples::interval(0, 2.0);
        let [mut least, mut size] = [f64::INFINITY, 0.0];
        // Other programs may slow the processor down, so the fastest of several measurements is used.
        for _ in 0..10 {
            let begun = processor_time_s();
            for series in 0..1000 {
                let mut told = interval.clone();
                if let Told::Interval(interval) = &mut told {
                    interval.series = series;
                }
                board.take(&told);
            }
            board.sample();
            size = text(&board, 0).len() as f64;
            least = least.min(processor_time_s() - begun);
        }
        assert!(size > 5e5, "{size} B");
        println!("{:.2} ms for {size} B", least * 1e3);
        assert!(least < 0.05, "{:.2} ms for {size} B", least * 1e3);
    }

    /// Returns the processor time of this thread, in s. Other load on the machine hardly affects it.
    fn processor_time_s() -> f64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    }
}
