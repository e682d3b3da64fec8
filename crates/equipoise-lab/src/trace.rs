//! Formats the events of a simulated or live run as lines of CSV, and rate decisions as lines of JSON.

use std::fmt;

use equipoise::control::Reason;
use equipoise::units::{Instant, SenderClock, Size, Span};
use equipoise_session::{Ecn, Event};
use serde::Serialize;

use crate::csv::Row;
use crate::result::json_line;

/// Names of the columns. A column that does not apply to an event is empty.
pub const HEADER: &str = "time_s,flow,event,number,sent_s,delay_s,variance_s2,size_bytes,rate_bps,detail,path\n";

/// Returns the line of an event of flow `flow`, with a line break at its end. `path` names the path to which the event
/// belongs, if any. `at` is the time since the run's start. `origin` is the run's start on the sender's clock.
pub fn line(at: Span, (flow, path): (&str, Option<&str>), origin: Instant<SenderClock>, event: &Event) -> String {
    let Details { number, sent_s, delay_s, variance_s2, size_bytes, rate_bps, detail } = details(origin, event);
    let mut text = String::new();
    Row::after(&mut text)
        .number(format_args!("{:.9}", at.as_secs_f64()))
        .text(flow)
        .text(event.name())
        .measured(number)
        .measured(sent_s.map(Nanos))
        .measured(delay_s.map(Nanos))
        .measured(variance_s2.map(Exponential))
        .measured(size_bytes)
        .measured(rate_bps)
        .text(detail.unwrap_or_default())
        .text(path.unwrap_or_default())
        .end();
    text
}

/// Returns a rate decision as a line of JSON, with a line break at its end; `None` for every other event.
///
/// The keys are `time_s`, `flow`, `path`, `rate_bps`, `reason`, `law_step_bps` and `response`. A key without a value is
/// `null`. Only flows with several paths have a `path`. `law_step_bps` is the rate change computed by the control law
/// before any limit. `response` is the coefficient of response of attractor-perturbation (AP) control, called b, in
/// 1/(s·Mbit/s).
pub fn decision(at: Span, (flow, path): (&str, Option<&str>), event: &Event) -> Option<String> {
    #[derive(Serialize)]
    struct Line<'a> {
        time_s: f64,
        flow: &'a str,
        path: Option<&'a str>,
        rate_bps: u64,
        reason: Option<&'static str>,
        law_step_bps: Option<f64>,
        response: Option<f64>,
    }
    let Event::RateDecided { rate, snapshot } = *event else { return None };
    Some(json_line(&Line {
        time_s: at.as_secs_f64(),
        flow,
        path,
        rate_bps: rate.as_bps(),
        reason: snapshot.reason.map(Reason::name),
        law_step_bps: snapshot.law_step_bps.filter(|step| step.is_finite()),
        response: snapshot.response.filter(|response| response.is_finite()),
    }))
}

/// Formats a number of seconds with nine decimals.
struct Nanos(f64);

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.9}", self.0)
    }
}

/// Formats a number in exponential notation.
struct Exponential(f64);

impl fmt::Display for Exponential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:e}", self.0)
    }
}

/// The data of an event in addition to its time and name. Each field is a column of the trace. The book describes the
/// columns.
#[derive(Default, Serialize)]
pub(crate) struct Details {
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    variance_s2: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_bps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'static str>,
}

impl Details {
    fn number(number: u64) -> Self {
        Self { number: Some(number), ..Self::default() }
    }

    fn detail(detail: &'static str) -> Self {
        Self { detail: Some(detail), ..Self::default() }
    }

    fn delay(delay: Span) -> Self {
        Self { delay_s: Some(delay.as_secs_f64()), ..Self::default() }
    }
}

/// Returns the data of an event, except its time and its name. The run starts at `origin`.
pub(crate) fn details(origin: Instant<SenderClock>, event: &Event) -> Details {
    match *event {
        Event::MediaSent { sequence, size, .. } | Event::MediaRepeated { sequence, size } => {
            Details { size_bytes: Some(size.as_bytes()), ..Details::number(sequence) }
        }
        Event::MediaReceived { sequence, sent, delay, size, ecn } => Details {
            number: Some(sequence),
            sent_s: Some((sent - origin).as_secs_f64()),
            size_bytes: Some(size.as_bytes()),
            detail: (ecn == Ecn::Marked).then_some("marked"),
            ..Details::delay(delay)
        },
        Event::FrameCaptured { medium, number, size } => {
            Details { number: Some(number), size_bytes: size.map(Size::as_bytes), ..Details::detail(medium.name()) }
        }
        Event::Buffered { sequence, wait } => Details { number: Some(sequence), ..Details::delay(wait) },
        Event::ContentKnown { packets: number }
        | Event::PayloadExpired { packets: number }
        | Event::EcnFailed { packets: number }
        | Event::RepetitionAsked { packets: number }
        | Event::Discarded { sequence: number }
        | Event::MediaRepaired { sequence: number }
        | Event::ReportRequested { number } => Details::number(number),
        Event::ReportSent { delay } => Details {
            delay_s: delay.map(|delay| delay.mean_s),
            variance_s2: delay.map(|delay| delay.variance_s2),
            ..Details::default()
        },
        Event::ReportApplied { number, delay, .. } => Details {
            delay_s: delay.map(|delay| delay.mean_s),
            variance_s2: delay.map(|delay| delay.variance_s2),
            ..Details::number(number)
        },
        Event::PacketsReported { arrived, round_trip, .. } => {
            Details { delay_s: round_trip.map(Span::as_secs_f64), ..Details::number(arrived) }
        }
        Event::RateDecided { rate, snapshot } => {
            Details { rate_bps: Some(rate.as_bps()), detail: snapshot.reason.map(Reason::name), ..Details::default() }
        }
        Event::Believed(beliefs) => {
            Details { delay_s: Some(f64::from(beliefs.queue_s)), ..Details::detail(beliefs.mode.name()) }
        }
        Event::ClockStepped { by } => Details::delay(by),
        Event::ClocksCompared { base, .. } => Details::delay(base),
        Event::CircuitBroken(breaker) => Details::detail(breaker.name()),
        Event::PacingReset { late } => Details::delay(late),
        Event::Probed { rate } => Details { rate_bps: Some(rate.as_bps()), ..Details::default() },
        Event::Switched { to, adu, rate } => {
            Details { number: Some(adu), rate_bps: Some(rate.as_bps()), ..Details::detail(to.name()) }
        }
        Event::AduReceived { number, over, size, .. } => {
            Details { number: Some(number), size_bytes: Some(size.as_bytes()), ..Details::detail(over.name()) }
        }
        Event::KeyFrameWanted(request) | Event::KeyFrameAsked(request) => Details::detail(request.name()),
        Event::Ignored(reason) => Details::detail(reason.name()),
        Event::Ended { by_peer } => Details::detail(if by_peer { "by the peer" } else { "by itself" }),
        // This case is for events without data, and for events that sessions may define in the future.
        _ => Details::default(),
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
