//! Formats the lines that are printed at the start and at the end of a session.

use super::super::args::DelayKind;
use super::super::results::SendEnd;
use super::{Sessions, Start};
use crate::summary::times;

pub(super) fn head(start: &Start) -> String {
    let secure = if start.encrypted { "encrypted" } else { "not encrypted, not authenticated" };
    let target = start
        .target_delay_s
        .map_or(String::new(), |target| format!(", {} delay held at {:.1} ms", start.delay, target * 1e3));
    let from = start.local.map_or_else(
        || format!("by {} (split {})", start.paths.join(", "), start.split.as_deref().unwrap_or("-")),
        |local| format!("from {local}"),
    );
    if let Some(Sessions { sent, received }) = start.sessions {
        let sessions = |count: usize| if count == 1 { "a session".to_owned() } else { format!("{count} sessions") };
        let ways = [(sent, "to"), (received, "from")].into_iter().filter(|(count, _)| *count > 0);
        let ways: Vec<_> = ways.map(|(count, way)| format!("{} {way}", sessions(count))).collect();
        return format!("zeros in {} {}: {secure}; {}{target}\n", ways.join(" and "), start.peer, start.controller);
    }
    format!("sending {} {from} to {}: {secure}; {}{target}\n", start.payload, start.peer, start.controller)
}

pub(super) fn foot(end: &SendEnd, delay: DelayKind) -> String {
    let mut text =
        format!("{:.1} s, {} packets, {:.3} Mbit/s sent", end.duration_s, end.packets_sent, end.rate_bps / 1e6);
    if let Some(lost) = end.packets_lost {
        text.push_str(&format!("; {lost} lost according to the receiver's last report"));
    }
    if let Some(mean) = end.delay_mean_s {
        text.push_str(&format!("; {} delay {:.2} ms on average", words(delay), mean * 1e3));
    }
    text.push('\n');
    if let Some(clocks) = end.clocks {
        text.push_str(&format!(
            "the receiver's clock is ahead by {:.3} ± {:.3} ms",
            clocks.offset_s * 1e3,
            clocks.uncertainty_s * 1e3
        ));
        if let (Some(ppm), Some(within)) = (clocks.drift_ppm, clocks.drift_uncertainty_ppm) {
            text.push_str(&format!(", and gains {ppm:.1} ± {within:.1} ppm"));
        }
        text.push('\n');
    }
    for (count, [one, several], what) in counted(end).into_iter().filter(|(count, ..)| *count > 0) {
        text.push_str(&format!("{count} {} {what}\n", if count == 1 { one } else { several }));
    }
    for (breaker, count) in &end.circuit_broken {
        text.push_str(&format!("the media was stopped {} by the circuit breaker {breaker}\n", times(*count)));
    }
    for path in &end.paths {
        text.push_str(&format!("{}: {} packets", path.path, path.packets_sent));
        if path.times_down > 0 {
            text.push_str(&format!(", down {}", times(path.times_down)));
        }
        for (breaker, count) in &path.circuit_broken {
            text.push_str(&format!(", stopped {} by the circuit breaker {breaker}", times(*count)));
        }
        text.push('\n');
    }
    for (reason, count) in &end.ignored {
        text.push_str(&format!("{count} {} dropped as {reason}\n", if *count == 1 { "datagram" } else { "datagrams" }));
    }
    text
}

/// A count, the counted thing in the singular and in the plural, and what happened to it.
type Counted = (u64, [&'static str; 2], &'static str);

const TIMES: [&str; 2] = ["time", "times"];
const PACKETS: [&str; 2] = ["packet was", "packets were"];

/// Returns the counts of rare events in a session.
fn counted(end: &SendEnd) -> [Counted; 11] {
    [
        (end.clock_steps.len() as u64, ["step", "steps"], "between the clocks of both hosts"),
        (end.wall_clock_steps, TIMES, "this host's wall clock was set, without effect on measured delays"),
        (
            end.reports_missing,
            ["report request was", "report requests were"],
            "skipped because earlier reports were missing",
        ),
        (
            end.circuit_strained,
            TIMES,
            "the rate was cut to a tenth: it was more than ten times TCP's rate at these losses",
        ),
        (
            end.ecn_failed,
            ["path", "paths"],
            "on which ECN was turned off: no packet arrived with the ECN field that was sent",
        ),
        (end.pacing_resets, TIMES, "the sender was late by a packet or more"),
        (end.packets_repeated, PACKETS, "sent again at the receiver's request"),
        (end.key_frames_wanted, TIMES, "the receiver requested a key frame"),
        (end.audio_packets, ["packet", "packets"], "of audio sent with priority"),
        (end.payload_dropped, ["packet", "packets"], "of the other program dropped at a full queue"),
        (end.payload_expired, ["packet", "packets"], "of the other program dropped because of a long wait"),
    ]
}

pub(super) const fn words(delay: DelayKind) -> &'static str {
    match delay {
        DelayKind::Queueing => "queueing",
        DelayKind::OneWay => "one-way",
        DelayKind::Estimated => "estimated one-way",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// If this test fails, the text has the plural for a single event, such as "1 times".
    #[test]
    fn what_happened_once_is_told_in_the_singular() {
        let of = |count: u64| {
            let end = SendEnd {
                wall_clock_steps: count,
                reports_missing: count,
                packets_repeated: count,
                circuit_broken: BTreeMap::from([("media-timeout", count)]),
                ignored: BTreeMap::from([("late", count)]),
                ..SendEnd::default()
            };
            foot(&end, DelayKind::Queueing).lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
        };
        let once = [
            "1 time this host's wall clock was set, without effect on measured delays",
            "1 report request was skipped because earlier reports were missing",
            "1 packet was sent again at the receiver's request",
            "the media was stopped once by the circuit breaker media-timeout",
            "1 datagram dropped as late",
        ];
        assert_eq!(of(1), once);
        let twice = [
            "2 times this host's wall clock was set, without effect on measured delays",
            "2 report requests were skipped because earlier reports were missing",
            "2 packets were sent again at the receiver's request",
            "the media was stopped 2 times by the circuit breaker media-timeout",
            "2 datagrams dropped as late",
        ];
        assert_eq!(of(2), twice);
    }
}
