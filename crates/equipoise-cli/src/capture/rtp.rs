//! `equipoise capture rtp`: analyses RTP streams.

use equipoise_papers::capture::{RoundTrip, RtpAnalysis, RtpOptions, RtpStream, analyse_rtp};

use super::args::Rtp;
use super::open;
use crate::error::{CliError, PaperError};
use crate::outcome::Outcome;
use crate::output::{Output, say};

/// Maximum number of RTP streams in the printed text, and maximum number of SSRC pairs with round-trip times.
const SHOWN: usize = 20;

/// Runs `equipoise capture rtp`.
pub(crate) fn rtp(options: &Rtp) -> Result<Outcome, CliError> {
    let failed = |source| PaperError::Capture { file: options.file.clone(), source };
    let source = open(&options.file).map_err(|source| failed(source.into()))?;
    let json = options.json.as_deref().map(Output::promise).transpose()?;
    let analysis = analyse_rtp(source, &RtpOptions { clock_rate: options.clock_rate }).map_err(failed)?;
    say(options.quiet || matches!(json, Some(Output::Stdout)), &text(&analysis));
    json.map_or(Ok(()), |json| json.fulfil(&analysis.to_json()))?;
    Ok(Outcome::Complete)
}

fn text(analysis: &RtpAnalysis) -> String {
    let RtpAnalysis { frames, rtp_packets, rtcp_packets, streams, .. } = analysis;
    let mut text =
        format!("{frames} frames, {rtp_packets} of RTP, {rtcp_packets} of RTCP, {} streams\n", streams.len());
    if let Some(ended) = &analysis.ended {
        text.push_str(&format!("the file is {ended}; the part before that is analysed\n"));
    }
    for (reason, count) in &analysis.skipped {
        text.push_str(&format!("  {count} skipped: {reason}\n"));
    }
    for stream in streams.iter().take(SHOWN) {
        text.push_str(&described(stream));
    }
    if streams.len() > SHOWN {
        text.push_str(&format!("\nand {} later streams\n", streams.len() - SHOWN));
    }
    for trip in analysis.round_trips.iter().take(SHOWN) {
        text.push_str(&round_trip(trip));
    }
    text
}

fn described(stream: &RtpStream) -> String {
    let types = stream.payload_types.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
    let RtpStream { from, to, ssrc, interface, packets, lost, duplicates, reordered, .. } = stream;
    let mut text = format!(
        "\n{from} > {to}  {ssrc}  payload type {types}  interface {interface}\n  {:.3} s to {:.3} s: {packets} packets, \
         {lost} lost ({:.1} %), {duplicates} duplicates, {reordered} reordered",
        stream.start_s,
        stream.end_s,
        100.0 * stream.lost_share
    );
    if let Some(rate) = stream.rate_bps {
        text.push_str(&format!(", {:.3} Mbit/s", rate / 1e6));
    }
    text.push('\n');
    match &stream.jitter {
        Some(jitter) => {
            let [mean, max, last] = [jitter.mean_s, jitter.max_s, jitter.last_s].map(millis);
            text.push_str(&format!("  jitter: mean {mean}  max {max}  last {last}\n"));
        }
        None => text.push_str("  jitter: unknown without the clock rate, which --clock-rate HZ sets\n"),
    }
    if let Some(delay) = &stream.delay {
        let [min, median, mean, high, max] =
            [delay.min_s, delay.p50_s, delay.mean_s, delay.p95_s, delay.max_s].map(millis);
        text.push_str(&format!(
            "  one-way delay from interface {}: min {min}  median {median}  mean {mean}  95 % {high}  max {max}\n",
            delay.from_interface
        ));
    }
    text
}

fn round_trip(trip: &RoundTrip) -> String {
    let RoundTrip { interface, sender_ssrc, reporter_ssrc, samples } = trip;
    let times = samples.iter().map(|sample| sample.round_trip_s);
    let (min, max) = times.clone().fold((f64::MAX, f64::MIN), |(min, max), time| (min.min(time), max.max(time)));
    let mean = times.sum::<f64>() / samples.len().max(1) as f64;
    format!(
        "\nround trips from interface {interface}, {sender_ssrc} to {reporter_ssrc} and back: {}\n  min {}  mean {}  max {}\n",
        samples.len(),
        millis(min),
        millis(mean),
        millis(max)
    )
}

fn millis(seconds: f64) -> String {
    format!("{:.3} ms", seconds * 1e3)
}
