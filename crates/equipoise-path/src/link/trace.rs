//! Recorded link capacities: delivery opportunities, and rates over time.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use thiserror::Error;

use super::service::Service;
use super::table::{is_table, table_steps};
use equipoise::units::{Instant, Rate, Schedule, Size, Span};

/// Bytes that one delivery opportunity can carry: 1500, the Ethernet MTU (Netravali 2015, Sec. 3.2).
const OPPORTUNITY: u64 = 1500;

/// Delivery opportunities: at each of these times, a link delivers IP packets of up to 1500 bytes in total. After the
/// last time, the trace repeats.
///
/// Source: Netravali 2015, Sec. 3.2, the trace format of Mahimahi's `mm-link`. An opportunity is lost if the queue is
/// empty. An opportunity can deliver several small packets. If a packet does not fit into the remaining bytes of an
/// opportunity, the next opportunity delivers the other bytes of the packet. A packet that arrives exactly at the time
/// of an opportunity cannot use this opportunity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryTrace {
    /// A round is one pass through the trace. This list has, in order, the time of each opportunity since the start of
    /// the round. The last element is above zero, and is the length of a round.
    at: Arc<[Span]>,
    /// How far into the trace the first round starts. Each later round is a whole pass through the trace.
    begins: Span,
}

/// Why a text is not a valid trace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {kind}")]
pub struct TraceError {
    /// The number of the line with the error, from 1. If the text ends too early, this is the number of the last line.
    /// It is 1 if the text is empty, or if a download table has no rate above zero.
    pub line: usize,
    /// The error in that line.
    pub kind: TraceErrorKind,
}

/// The error in a line of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TraceErrorKind {
    /// A line is not a whole number of milliseconds.
    #[error("`{text}` is not a time in whole milliseconds, such as 25")]
    NoMilliseconds {
        /// The text of the line.
        text: String,
    },
    /// A line does not contain a valid time and a valid rate.
    #[error("`{text}` is not a time in seconds and a rate in Mbit/s, such as 1.5,15")]
    NoStep {
        /// The text of the line.
        text: String,
    },
    /// A line is not a valid row of a download table.
    #[error("`{text}` has no `Timestamp`, such as 2019.12.14_10.16.30, or no `DL_bitrate` in whole kbit/s")]
    NoRow {
        /// The text of the line.
        text: String,
    },
    /// The time of a line is before the time of the previous line.
    #[error("the time lies before that of the line above; times must not decrease")]
    Backwards,
    /// A schedule of rates has no rate at time 0.
    #[error("the first rate must be that of time 0")]
    NoStart,
    /// The trace has no times, or all its times are 0.
    #[error("the trace ends here; it must hold at least one time above 0")]
    Empty,
    /// The last rate of a schedule is zero, so a waiting packet would never leave.
    #[error("the rate ends at zero; the last one must be above zero")]
    EndsAtZero,
}

impl DeliveryTrace {
    /// Parses Mahimahi's format: one line for each opportunity, with its time in milliseconds. The time in the last
    /// line is the length of the trace. Empty lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// [`TraceError`] with the line number of the error.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut at: Vec<Span> = Vec::new();
        for (line, content) in lines(text) {
            let wrong = |kind| TraceError { line, kind };
            let millis: u32 =
                content.parse().map_err(|_| wrong(TraceErrorKind::NoMilliseconds { text: content.to_string() }))?;
            let time = Span::from_millis(millis.into());
            if at.last().is_some_and(|last| *last > time) {
                return Err(wrong(TraceErrorKind::Backwards));
            }
            at.push(time);
        }
        if at.last().is_none_or(|last| *last == Span::ZERO) {
            return Err(TraceError { line: text.lines().count().max(1), kind: TraceErrorKind::Empty });
        }
        Ok(Self { at: at.into(), begins: Span::ZERO })
    }

    /// The trace, started `offset` after its beginning. The offset may be longer than the trace; a negative offset
    /// counts as 0.
    #[must_use]
    pub fn from_offset(self, offset: Span) -> Self {
        let rounds = (offset / self.length()).unwrap_or(0);
        Self { begins: (offset - self.length() * rounds).max(Span::ZERO), ..self }
    }

    /// Number of bits that the trace can deliver after `from` and no later than `to`. Both are times since the origin.
    pub(super) fn bits(&self, from: Span, to: Span) -> f64 {
        let count = self.first_after(to).saturating_sub(self.first_after(from));
        (count * OPPORTUNITY * 8) as f64
    }

    /// The mean rate of the trace.
    pub fn mean_rate(&self) -> Rate {
        let bits = self.at.len() as f64 * (OPPORTUNITY * 8) as f64;
        Rate::from_bps_f64(bits / self.length().as_secs_f64()).unwrap_or(Rate::ZERO)
    }

    /// The length of a round, which is one pass through the trace; above zero.
    pub fn length(&self) -> Span {
        self.at.last().copied().unwrap_or(Span::MAX)
    }

    /// Returns the time of delivery opportunity `number`, since the start of the link. Numbers start at 0, and continue
    /// when the trace repeats.
    fn time(&self, number: u64) -> Span {
        let count = self.at.len() as u64;
        let round = i64::try_from(number / count).unwrap_or(i64::MAX);
        let within = self.at.get((number % count) as usize).copied().unwrap_or(Span::ZERO);
        self.length() * round + within - self.begins
    }

    /// The number of the trace's first delivery opportunity later than `elapsed` after the origin.
    fn first_after(&self, elapsed: Span) -> u64 {
        let elapsed = elapsed + self.begins;
        if elapsed < Span::ZERO {
            return 0;
        }
        let rounds = (elapsed / self.length()).unwrap_or(0);
        let within = elapsed - self.length() * rounds;
        rounds.unsigned_abs() * self.at.len() as u64 + self.at.partition_point(|at| *at <= within) as u64
    }
}

/// Parses a schedule of rates: lines of `time_s,rate_mbps` in time order. Times and rates may have decimal fractions.
/// The first time must be 0. A heading, empty lines and lines that begin with `#` are skipped. The last rate applies
/// without end.
///
/// If the heading has the columns `Timestamp` and `DL_bitrate`, the text is read as a table of a download (Raca 2020):
/// rates are in kbit/s, lines with a `State` other than `D` are skipped, and time 0 is the time of the first line that
/// is not skipped.
///
/// # Errors
/// [`TraceError`] with the line number of the error.
pub fn rate_steps(text: &str) -> Result<Schedule<Rate>, TraceError> {
    if lines(text).next().is_some_and(|(_, heading)| is_table(heading)) {
        return table_steps(lines(text));
    }
    let mut steps: Vec<(Span, Rate)> = Vec::new();
    let mut last_line = 1;
    for (number, (line, content)) in lines(text).enumerate() {
        let wrong = |kind| TraceError { line, kind };
        let no_step = || wrong(TraceErrorKind::NoStep { text: content.to_string() });
        let (time, rate) = content.split_once(',').ok_or_else(no_step)?;
        let is_heading = number == 0 && [time, rate].iter().all(|field| field.trim().parse::<f64>().is_err());
        if is_heading {
            continue;
        }
        let seconds = time.trim().parse().ok().filter(|seconds: &f64| (0.0..MAX_SECONDS).contains(seconds));
        let mbps = rate.trim().parse().ok().filter(|mbps: &f64| (0.0..MAX_MBPS).contains(mbps));
        let at = seconds.and_then(Span::from_secs_f64).ok_or_else(no_step)?;
        let rate = mbps.and_then(|mbps| Rate::from_bps_f64(mbps * 1e6)).ok_or_else(no_step)?;
        match steps.last() {
            None if at > Span::ZERO => return Err(wrong(TraceErrorKind::NoStart)),
            Some((last, _)) if *last > at => return Err(wrong(TraceErrorKind::Backwards)),
            _ => steps.push((at, rate)),
        }
        last_line = line;
    }
    let Some(&(_, initial)) = steps.first() else {
        return Err(TraceError { line: text.lines().count().max(1), kind: TraceErrorKind::NoStart });
    };
    if steps.last().is_none_or(|&(_, rate)| rate == Rate::ZERO) {
        return Err(TraceError { line: last_line, kind: TraceErrorKind::EndsAtZero });
    }
    Ok(Schedule::new(initial, steps))
}

/// Times of 10⁹ s (about 32 years) or more and rates of 1 Pbit/s or more are rejected. Our choice: below these limits,
/// times in nanoseconds and rates in bit/s fit into 64 bits.
const MAX_SECONDS: f64 = 1e9;
const MAX_MBPS: f64 = 1e9;

/// The lines of a text that are neither empty nor comments, each with its line number from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// Transmits packets at the delivery opportunities of a trace.
#[derive(Clone, Debug)]
pub(super) struct TraceService<C> {
    trace: DeliveryTrace,
    origin: Instant<C>,
    /// Number of the current or next opportunity.
    current: u64,
    /// Number of bytes that the delivery opportunity with the number `current` can still transmit.
    left: u64,
}

impl<C> TraceService<C> {
    /// A service whose trace starts at `origin`.
    pub(super) fn new(trace: DeliveryTrace, origin: Instant<C>) -> Self {
        // The search starts just before the origin, because an opportunity may be at the origin itself.
        let current = trace.first_after(Span::from_nanos(-1));
        Self { trace, origin, current, left: OPPORTUNITY }
    }
}

impl<C> Service<C> for TraceService<C> {
    fn rest(&mut self, now: Instant<C>) {
        let next = self.trace.first_after(now - self.origin);
        if next > self.current {
            (self.current, self.left) = (next, OPPORTUNITY);
        }
    }

    fn ready(&self, from: Instant<C>) -> Instant<C> {
        let number = if self.left > 0 { self.current } else { self.current.saturating_add(1) };
        (self.origin + self.trace.time(number)).max(from)
    }

    fn serve(&mut self, _: Instant<C>, size: Size) -> Instant<C> {
        let missing = size.as_bytes().saturating_sub(self.left);
        let further = missing.div_ceil(OPPORTUNITY);
        self.current = self.current.saturating_add(further);
        self.left = (self.left + further.saturating_mul(OPPORTUNITY)).saturating_sub(size.as_bytes());
        self.origin + self.trace.time(self.current)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;
    use crate::link::QueueLimit;
    use crate::link::fifo::Fifo;
    use equipoise::units::SenderClock;

    type At = Instant<SenderClock>;

    fn ms(ms: u64) -> At {
        At::from_nanos(ms * 1_000_000)
    }

    fn fifo(trace: &str, limit: u32) -> Fifo<SenderClock, TraceService<SenderClock>> {
        let trace = DeliveryTrace::parse(trace).expect("a good trace");
        Fifo::new(TraceService::new(trace, At::ZERO), QueueLimit::Packets(limit), At::ZERO)
    }

    const MTU: Size = Size::from_bytes(1500);

    #[test]
    fn an_opportunity_delivers_one_full_packet_and_the_trace_repeats() {
        let mut link = fifo("3\n3\n10\n", 100);
        let ends: Vec<_> = (0..5).map(|_| link.offer(At::ZERO, MTU).map(|turn| turn.end)).collect();
        assert_eq!(ends, [3, 3, 10, 13, 13].map(|at| Some(ms(at))));
    }

    #[test]
    fn an_opportunity_that_finds_nobody_is_lost() {
        let mut link = fifo("3\n6\n10\n", 100);
        assert_eq!(link.offer(ms(4), MTU).map(|turn| turn.end), Some(ms(6)));
        // A packet that arrives exactly at an opportunity cannot use it. This is also true for the last opportunity of
        // a round.
        assert_eq!(link.offer(ms(10), MTU).map(|turn| turn.end), Some(ms(13)));
        assert_eq!(link.offer(ms(1_000_006), MTU).map(|turn| turn.end), Some(ms(1_000_010)));
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_take_several() {
        let mut link = fifo("1\n2\n3\n4\n", 100);
        let ends = [700, 700, 700, 900, 3000, 1]
            .map(|bytes| link.offer(At::ZERO, Size::from_bytes(bytes)).map(|turn| turn.end));
        // Opportunities of 1500 bytes each: the first delivers 700 + 700 + 100 bytes, the second 600 + 900 bytes. The
        // packet of 3000 bytes takes two whole opportunities, and the packet of 1 byte takes a part of the fifth.
        assert_eq!(ends, [1, 1, 2, 2, 4, 5].map(|at| Some(ms(at))));
    }

    #[test]
    fn who_waits_for_an_opportunity_waits_in_the_queue() {
        let mut link = fifo("5\n", 2);
        let ends = [0, 0, 0, 5].map(|at| link.offer(ms(at), MTU).map(|turn| turn.end));
        assert_eq!(ends, [Some(ms(5)), Some(ms(10)), None, Some(ms(15))]);
    }

    #[test]
    fn the_mean_rate_is_what_the_opportunities_deliver() {
        let trace = DeliveryTrace::parse("# LTE\n1\n2\n\n2\n4\n").expect("a good trace");
        assert_eq!((trace.mean_rate(), trace.length()), (Rate::from_bps(12_000_000), Span::from_millis(4)));
    }

    #[test]
    fn a_wrong_trace_is_refused_by_its_line() {
        let line = |text: &str| DeliveryTrace::parse(text).expect_err("wrong").line;
        assert_eq!((line("1\n2\nx"), line("1\n\n3\n2"), line("0\n0\n"), line(""), line("-1")), (3, 4, 2, 1, 1));
        let steps = |text: &str| format!("{}", rate_steps(text).expect_err("wrong"));
        assert!(steps("time_s,rate_mbps\n0,15\n1;5").starts_with("line 3: `1;5`"));
        assert!(steps("0,15\n2,5\n1,6").starts_with("line 3: the time lies before"));
        assert!(steps("1,15").contains("time 0") && steps("").contains("time 0"));
        assert!(steps("0,15\n5,0").starts_with("line 2: the rate ends at zero"));
        assert!(steps("0,NaN").contains("NaN") && steps("0,-1").contains("-1") && steps("0,inf").contains("inf"));
        assert!(steps("0,1\na,b").contains("`a,b`"), "a heading stands at the top");
    }

    #[test]
    fn steps_of_a_rate_read_with_and_without_a_heading() {
        let schedule = Schedule::new(
            Rate::from_bps(15_000_000),
            vec![(Span::ZERO, Rate::from_bps(15_000_000)), (Span::from_millis(2500), Rate::from_bps(500_000))],
        );
        assert_eq!(rate_steps("time_s,rate_mbps\n0,15\n2.5, 0.5\n"), Ok(schedule.clone()));
        assert_eq!(rate_steps("0,15\n2.5,0.5"), Ok(schedule));
    }

    proptest! {
        /// If this test fails, an invalid trace file could crash the program.
        #[test]
        fn no_text_makes_the_parsers_panic(text in "[0-9,.#a-e\\-\n ]{0,60}") {
            let _ = (DeliveryTrace::parse(&text), rate_steps(&text));
        }

        #[test]
        fn a_busy_link_delivers_1500_bytes_an_opportunity_over_any_trace(
            times in proptest::collection::vec(0u32..50, 1..20),
            sizes in proptest::collection::vec(1u64..4000, 1..100),
        ) {
            let mut times = times;
            times.sort_unstable();
            times.push(50);
            let text: String = times.iter().map(|time| format!("{time}\n")).collect();
            let mut link = fifo(&text, 1000);
            let mut bytes = 0;
            // The expected times follow from the trace format: opportunity n of round m is at m times the trace's
            // length plus the n-th time. A packet cannot use an opportunity at the time of its own arrival, and all
            // packets arrive at time 0.
            let all = (0..).flat_map(|round| times.iter().map(move |time| u64::from(*time) + 50 * round));
            let opportunities: Vec<u64> = all.filter(|at| *at > 0).take(400).collect();
            for size in sizes {
                let end = link.offer(At::ZERO, Size::from_bytes(size)).map(|turn| turn.end);
                bytes += size;
                let needed = usize::try_from(bytes.div_ceil(1500)).expect("few");
                prop_assert_eq!(end, Some(ms(opportunities[needed - 1])));
            }
        }
    }
}
