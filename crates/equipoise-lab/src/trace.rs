//! Every event of a run as a line of CSV: the one trace form of both worlds, written only where it is asked for.

use std::fmt::Write as _;

use equipoise::units::{Instant, SenderClock, Size, Span};
use equipoise_session::{Ecn, Event};

use crate::csv::quoted;

/// Names of the columns. What an event does not have stays empty.
pub const HEADER: &str = "time_s,flow,event,number,sent_s,delay_s,variance_s2,size_bytes,rate_bps,detail,path\n";

/// An event of flow `flow`, and of one of its paths where it is of one, at `at` after the run's start, which was at
/// `origin`; with a line break at its end.
pub fn line(at: Span, (flow, path): (&str, Option<&str>), origin: Instant<SenderClock>, event: &Event) -> String {
    let row = row(origin, event);
    let mut text = format!("{:.9},{},{}", at.as_secs_f64(), quoted(flow), row.name);
    let columns = [
        row.number.map(|number| number.to_string()),
        row.sent.map(|sent| format!("{:.9}", sent.as_secs_f64())),
        row.delay_s.map(|delay| format!("{delay:.9}")),
        row.variance_s2.map(|variance| format!("{variance:e}")),
        row.size_bytes.map(|size| size.to_string()),
        row.rate_bps.map(|rate| rate.to_string()),
        row.detail.map(str::to_owned),
        path.map(quoted),
    ];
    for column in columns {
        // Writing to a string does not fail.
        let _ = write!(text, ",{}", column.unwrap_or_default());
    }
    text.push('\n');
    text
}

/// The columns of an event.
#[derive(Default)]
struct Row {
    name: &'static str,
    number: Option<u64>,
    sent: Option<Span>,
    delay_s: Option<f64>,
    variance_s2: Option<f64>,
    size_bytes: Option<u64>,
    rate_bps: Option<u64>,
    detail: Option<&'static str>,
}

fn row(origin: Instant<SenderClock>, event: &Event) -> Row {
    let named = |name| Row { name, ..Row::default() };
    match *event {
        Event::MediaSent { sequence, size, .. } => {
            Row { number: Some(sequence), size_bytes: Some(size.as_bytes()), ..named("media-sent") }
        }
        Event::MediaReceived { sequence, sent, delay, size, ecn } => Row {
            number: Some(sequence),
            sent: Some(sent - origin),
            delay_s: Some(delay.as_secs_f64()),
            size_bytes: Some(size.as_bytes()),
            detail: (ecn == Ecn::Marked).then_some("marked"),
            ..named("media-received")
        },
        Event::FrameCaptured { medium, number, size } => Row {
            number: Some(number),
            size_bytes: size.map(Size::as_bytes),
            detail: Some(medium.name()),
            ..named(if size.is_some() { "frame-captured" } else { "frame-skipped" })
        },
        Event::ContentKnown { packets } => Row { number: Some(packets), ..named("content-known") },
        Event::Buffered { sequence, wait } => {
            Row { number: Some(sequence), delay_s: Some(wait.as_secs_f64()), ..named("buffered") }
        }
        Event::Discarded { sequence } => Row { number: Some(sequence), ..named("discarded") },
        Event::ReportRequested { number } => Row { number: Some(number), ..named("report-requested") },
        Event::ReportSent { delay } => Row {
            delay_s: delay.map(|delay| delay.mean_s),
            variance_s2: delay.map(|delay| delay.variance_s2),
            ..named("report-sent")
        },
        Event::ReportApplied { number, delay, .. } => Row {
            number: Some(number),
            delay_s: delay.map(|delay| delay.mean_s),
            variance_s2: delay.map(|delay| delay.variance_s2),
            ..named("report-applied")
        },
        Event::EcnFailed { packets } => Row { number: Some(packets), ..named("ecn-failed") },
        Event::ReportsMissing => named("reports-missing"),
        Event::RateDecided { rate, snapshot } => Row {
            rate_bps: Some(rate.as_bps()),
            detail: snapshot.reason.map(equipoise::control::Reason::name),
            ..named("rate-decided")
        },
        Event::Believed(beliefs) => {
            Row { delay_s: Some(f64::from(beliefs.queue_s)), detail: Some(beliefs.mode.name()), ..named("believed") }
        }
        Event::ClockStepped { by } => Row { delay_s: Some(by.as_secs_f64()), ..named("clock-stepped") },
        Event::ClocksCompared { base, .. } => Row { delay_s: Some(base.as_secs_f64()), ..named("clocks-compared") },
        Event::CircuitStrained => named("circuit-strained"),
        Event::CircuitBroken(breaker) => Row { detail: Some(breaker.name()), ..named("circuit-broken") },
        Event::CircuitClosed => named("circuit-closed"),
        Event::PacingReset { late } => Row { delay_s: Some(late.as_secs_f64()), ..named("pacing-reset") },
        Event::Probed { rate } => Row { rate_bps: Some(rate.as_bps()), ..named("rate-probed") },
        Event::Switched { to, adu, rate } => Row {
            number: Some(adu),
            rate_bps: Some(rate.as_bps()),
            detail: Some(to.name()),
            ..named("transport-switched")
        },
        Event::AduReceived { number, over, size, .. } => Row {
            number: Some(number),
            size_bytes: Some(size.as_bytes()),
            detail: Some(over.name()),
            ..named("adu-received")
        },
        Event::Ignored(reason) => Row { detail: Some(reason.name()), ..named("ignored") },
        Event::Ended { by_peer } => {
            Row { detail: Some(if by_peer { "by the peer" } else { "by itself" }), ..named("ended") }
        }
        // Sessions may learn to tell of more than this trace has columns for.
        _ => named("other"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_as_many_columns_as_the_header_and_names_are_quoted_where_they_must_be() {
        let event = Event::MediaReceived {
            sequence: 7,
            sent: Instant::from_nanos(1_500_000_000),
            delay: Span::from_micros(8200),
            size: Size::from_bytes(1000),
            ecn: Ecn::Marked,
        };
        let received = line(Span::from_millis(1508), ("media", Some("lte")), Instant::from_nanos(500_000_000), &event);
        assert_eq!(received, "1.508000000,media,media-received,7,1.000000000,0.008200000,,1000,,marked,lte\n");
        assert_eq!(received.matches(',').count(), HEADER.matches(',').count());
        let ended = line(Span::ZERO, ("a \"b\", c", None), Instant::ZERO, &Event::Ended { by_peer: true });
        assert!(ended.starts_with("0.000000000,\"a \"\"b\"\", c\",ended,"), "{ended}");
    }
}
