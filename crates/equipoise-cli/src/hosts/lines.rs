//! Formats the results of sessions as lines for the terminal.

use super::results::{Direction, Interval, ReceiveEnd, ReceiveInterval, SendInterval, Sum, Sums};

/// Decides when headers are printed: for each direction, at the first call of `next`, and again after every 20 calls.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heads {
    sent: usize,
    received: usize,
}

impl Heads {
    /// Returns the header to print before the next line of `direction`; `None` if no header is due.
    pub(super) fn next(&mut self, direction: Direction) -> Option<&'static str> {
        let (rows, head) = match direction {
            Direction::Sent => (&mut self.sent, SENT),
            Direction::Received => (&mut self.received, RECEIVED),
        };
        let is_due = rows.is_multiple_of(20);
        *rows += 1;
        is_due.then_some(head)
    }
}

const SENT: &str =
    "     time          sent        allowed     waits   delay: mean   deviation  round trip   lost  decided by\n";

const RECEIVED: &str = "     time     received  packets   delay since the first     95 % within    jitter    lost\n";

/// Returns a line that begins with `name` and shows an interval, and one line for each of the interval's paths.
pub(super) fn interval(name: &str, interval: &Interval) -> Vec<String> {
    match interval {
        Interval::Sent(interval) => sent(name, interval),
        Interval::Received(interval) => received(name, interval),
    }
}

fn sent(name: &str, interval: &SendInterval) -> Vec<String> {
    let mut lines = vec![sent_line(name, interval, interval.decided_by().as_deref())];
    for part in &interval.paths {
        let by = if part.state == "up" { part.interval.decided_by() } else { Some(part.state.to_owned()) };
        lines.push(sent_line(&format!("{:>9}", part.path), &part.interval, by.as_deref()));
    }
    lines
}

fn received(name: &str, interval: &ReceiveInterval) -> Vec<String> {
    let mut lines = vec![received_line(name, interval)];
    lines.extend(interval.paths.iter().map(|(path, part)| received_line(&format!("path {path:11}"), part)));
    lines
}

/// Returns a line with the length and the totals of a session in which this host received the media.
pub(super) fn received_end(end: &ReceiveEnd) -> String {
    format!("{:.1} s, {}\n", end.duration_s, total(Direction::Received, &end.sum()))
}

/// Returns a line that begins with `name` and contains, for each direction, the totals over all sessions.
pub(super) fn sums(name: &str, sums: &Sums) -> String {
    let mut text = name.to_owned();
    for (direction, sum) in [(Direction::Sent, sums.sent), (Direction::Received, sums.received)] {
        if let Some(sum) = sum {
            text.push_str(&format!("  {}", total(direction, &sum)));
        }
    }
    text + "\n"
}

/// Returns the totals of sessions in one direction, as text.
pub(super) fn total(direction: Direction, sum: &Sum) -> String {
    let lost = sum.packets_lost.map_or(String::new(), |lost| format!(", {lost} lost"));
    let way = match direction {
        Direction::Sent => "sent",
        Direction::Received => "received",
    };
    format!("{:.3} Mbit/s, {} packets {way}{lost}", sum.rate_bps / 1e6, sum.packets)
}

fn sent_line(name: &str, of: &SendInterval, decided_by: Option<&str>) -> String {
    let millis = |seconds: Option<f64>| seconds.map_or(format!("{:>9}", "-"), |s| format!("{:6.2} ms", s * 1e3));
    let megabits = |bps: f64| format!("{:6.2}", bps / 1e6);
    format!(
        "{name} {} Mbit/s  {} Mbit/s {}     {}   {}   {} {:>6}  {}\n",
        megabits(of.rate_bps),
        of.target_rate_bps.map_or_else(|| "     -".to_owned(), megabits),
        millis(Some(of.waited_max_s)),
        millis(of.delay_mean_s),
        millis(of.delay_deviation_s),
        millis(of.round_trip_s),
        of.fraction_lost.map_or_else(|| "-".to_owned(), |lost| format!("{:.1} %", lost * 100.0)),
        decided_by.unwrap_or("-"),
    )
}

fn received_line(of: &str, interval: &ReceiveInterval) -> String {
    let delay = interval.shown_delay_mean_s.map_or("-".to_owned(), |delay| format!("{:+.2} ms", delay * 1e3));
    let millis = |seconds: Option<f64>| seconds.map_or("-".to_owned(), |seconds| format!("{:.2} ms", seconds * 1e3));
    format!(
        "{of} {:6.2} Mbit/s {:8}   {delay:>21}   {:>13} {:>9} {:>7}\n",
        interval.rate_bps / 1e6,
        interval.packets,
        millis(interval.delay_p95_s),
        millis(interval.jitter_s),
        interval.packets_lost.map_or_else(|| "-".to_owned(), |lost| lost.to_string()),
    )
}
