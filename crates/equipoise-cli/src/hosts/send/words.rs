//! Formats the lines that are printed at the start and at the end of a session.

use super::super::args::DelayKind;
use super::super::results::SendEnd;
use super::{Sessions, Start};

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
    let counted = [
        (end.clock_steps.len() as u64, "steps between the clocks of both hosts"),
        (end.wall_clock_steps, "times this host's wall clock was set, without effect on measured delays"),
        (end.reports_missing, "times three reports were missing"),
        (
            end.circuit_strained,
            "times the rate was cut to a tenth: it was more than ten times TCP's rate at these losses",
        ),
        (end.ecn_failed, "paths on which ECN was turned off: no packet arrived with the ECN field that was sent"),
        (end.pacing_resets, "times the sender was late by a packet or more"),
        (end.packets_repeated, "packets were sent again at the receiver's request"),
        (end.key_frames_wanted, "times the receiver requested a key frame"),
        (end.audio_packets, "packets of audio were sent with priority"),
        (end.payload_dropped, "packets of the other program were dropped at a full queue"),
        (end.payload_expired, "packets of the other program were dropped because they waited too long"),
    ];
    for (count, what) in counted.iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!("{count} {what}\n"));
    }
    for (breaker, count) in &end.circuit_broken {
        text.push_str(&format!("{count} times the media was stopped by the circuit breaker {breaker}\n"));
    }
    for path in &end.paths {
        text.push_str(&format!("{}: {} packets", path.path, path.packets_sent));
        if path.times_down > 0 {
            text.push_str(&format!(", {} times down", path.times_down));
        }
        for (breaker, count) in &path.circuit_broken {
            text.push_str(&format!(", {count} times stopped by the circuit breaker {breaker}"));
        }
        text.push('\n');
    }
    for (reason, count) in &end.ignored {
        text.push_str(&format!("{count} datagrams dropped as {reason}\n"));
    }
    text
}

pub(super) const fn words(delay: DelayKind) -> &'static str {
    match delay {
        DelayKind::Queueing => "queueing",
        DelayKind::OneWay => "one-way",
        DelayKind::Estimated => "estimated one-way",
    }
}
