//! Reads recorded tables of a phone's download rate, one line per second, as a schedule of rates.

use alloc::string::ToString;
use alloc::vec::Vec;

use super::trace::{TraceError, TraceErrorKind};
use equipoise::units::{Rate, Schedule, Span};

/// The column numbers of the relevant columns, from 0.
#[derive(Clone, Copy, Debug)]
struct Columns {
    time: usize,
    rate: usize,
    state: Option<usize>,
}

impl Columns {
    /// Finds these columns in a heading: `Timestamp`, `DL_bitrate` (in kbit/s) and, if present, `State` (`D` during a
    /// download).
    fn of(heading: &str) -> Option<Self> {
        let place = |name: &str| heading.split(',').position(|field| field.trim() == name);
        Some(Self { time: place("Timestamp")?, rate: place("DL_bitrate")?, state: place("State") })
    }
}

/// Whether a line is the heading of a download table.
pub(super) fn is_table(heading: &str) -> bool {
    Columns::of(heading).is_some()
}

const DAY: i64 = 86_400;

/// The second of the day for a time such as `2019.12.14_10.16.30`.
fn second_of_day(text: &str) -> Option<i64> {
    let (_, time) = text.trim().split_once('_')?;
    let mut fields = time.split('.').map(|field| field.parse::<i64>().ok());
    let [hours, minutes, seconds] = [fields.next()??, fields.next()??, fields.next()??];
    let is_time = (0..24).contains(&hours) && (0..60).contains(&minutes) && (0..=60).contains(&seconds);
    is_time.then_some(3600 * hours + 60 * minutes + seconds)
}

/// Reads a table of a download, including its heading (Raca 2020). Each line's rate applies until the next line.
///
/// Our interpretation: the download rate is the capacity of the link, because a download uses all available capacity.
/// Lines that are not part of a download (`State` other than `D`) are ignored. Time zero is the time of the first line
/// that is not ignored. If two lines have the same second, the later line applies. If the time of day decreases from
/// one line to the next, midnight has passed. Zero rates at the end are ignored, so that the last rate above zero
/// stays.
pub(super) fn table_steps<'a>(mut lines: impl Iterator<Item = (usize, &'a str)>) -> Result<Schedule<Rate>, TraceError> {
    let no_start = TraceError { line: 1, kind: TraceErrorKind::NoStart };
    let Some(columns) = lines.next().and_then(|(_, heading)| Columns::of(heading)) else { return Err(no_start) };
    let mut steps: Vec<(Span, Rate)> = Vec::new();
    let mut last: Option<(i64, i64)> = None;
    for (line, content) in lines {
        let no_step = || TraceError { line, kind: TraceErrorKind::NoRow { text: content.to_string() } };
        let field = |place: usize| content.split(',').nth(place).map(str::trim);
        if columns.state.is_some_and(|place| field(place) != Some("D")) {
            continue;
        }
        let second = field(columns.time).and_then(second_of_day).ok_or_else(no_step)?;
        let kbps = field(columns.rate).and_then(|rate| rate.parse::<u64>().ok()).filter(|kbps| *kbps <= MAX_KBPS);
        let rate = Rate::from_bps(1000 * kbps.ok_or_else(no_step)?);
        let elapsed = last.map_or(0, |(before, elapsed)| elapsed + (second - before).rem_euclid(DAY));
        last = Some((second, elapsed));
        let at = Span::from_secs(elapsed);
        match steps.last_mut() {
            Some(step) if step.0 == at => step.1 = rate,
            _ => steps.push((at, rate)),
        }
    }
    while steps.last().is_some_and(|(_, rate)| *rate == Rate::ZERO) {
        steps.pop();
    }
    let Some(&(_, initial)) = steps.first() else { return Err(no_start) };
    Ok(Schedule::new(initial, steps))
}

/// The maximum accepted rate: 1 Pbit/s.
const MAX_KBPS: u64 = 1_000_000_000_000;

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use equipoise::units::{Rate, Span};

    use crate::link::rate_steps;

    const HEADING: &str = "Timestamp,Speed,DL_bitrate,UL_bitrate,State";

    #[test]
    fn a_table_of_a_download_gives_a_step_a_second() {
        let lines =
            ["23.59.58,0,7,1,D", "23.59.58,0,9000,1,D", "23.59.59,0,500,1,I", "00.00.01,3,0,2,D", "00.00.02,3,42,2,D"];
        let lines: Vec<_> = lines.iter().map(|line| alloc::format!("2019.12.14_{line}\n")).collect();
        let read =
            rate_steps(&alloc::format!("{HEADING}\n{}2019.12.15_00.00.03,3,0,0,D\n", lines.concat())).expect("a table");
        let steps: Vec<_> = read.steps().iter().map(|(at, rate)| (*at, rate.as_bps())).collect();
        let expected = [(0, 9_000_000), (3, 0), (4, 42_000)].map(|(at, bps)| (Span::from_secs(at), bps));
        assert_eq!((read.initial(), steps), (Rate::from_bps(9_000_000), vec![expected[0], expected[1], expected[2]]));
    }

    #[test]
    fn a_wrong_table_is_refused_by_its_line() {
        let line = |text: &str| rate_steps(&alloc::format!("{HEADING}\n{text}")).expect_err("wrong").line;
        assert_eq!(line("2019.12.14_10.00.00,0,1,1,D\n2019.12.14_10.00,0,1,1,D"), 3);
        assert_eq!(line("2019.12.14_10.00.00,0,-,1,D"), 2);
        assert_eq!(line("2019.12.14_10.00.00,0"), 1, "no line of a download");
        assert_eq!(line(""), 1);
    }
}
