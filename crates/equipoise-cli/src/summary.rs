//! The summary of results for the terminal: the main values of each flow after one run, or means over several runs.

mod many;
mod media;

use equipoise_lab::result::{
    FlowResult, FramesResult, PairResult, PathResult, Report, Run, TcpResult, WebResult, World,
};
use equipoise_lab::verdict::{self, FlowJudgement};

/// Returns a time as text in ms, at least nine columns wide; a dash if the time was not measured.
pub(crate) fn millis(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| format!("{:>9}", "-"), |seconds| format!("{:6.2} ms", seconds * 1e3))
}

/// Returns how often something happened: "once", "2 times".
pub(crate) fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// Returns the results of all runs and the judgements as text, separately for simulated and for live runs. A single run
/// has a line for each flow; several runs have a table of their means.
pub(crate) fn of(report: &Report) -> String {
    let mut text = String::new();
    let in_world = |world| report.runs.iter().filter(|run| run.world == world).collect::<Vec<_>>();
    let alone: Vec<_> = [World::Sim, World::Live]
        .into_iter()
        .filter_map(|world| match in_world(world).as_slice() {
            [only] => Some(*only),
            _ => None,
        })
        .collect();
    if !alone.is_empty() {
        text.push_str("world  seed  flow            rate        delay: mean      p95  settled   target    lost\n");
    }
    text.extend(alone.into_iter().map(of_run));
    text.extend(report.summary.iter().map(|summary| many::of(summary, &in_world(summary.world))));
    for FlowJudgement { world, flow, judgement } in verdict::judge(&report.runs) {
        text.push_str(&format!("{:4} {flow}: {}\n", world.name(), judgement.sentence));
    }
    text
}

/// Returns the main values of each flow of a run, and the disturbances during the run.
fn of_run(run: &Run) -> String {
    let mut text = String::new();
    let world = run.world.name();
    for flow in &run.flows {
        text.push_str(&format!("{world:4} {:6}  {}\n", run.seed, flow_line(flow)));
        text.extend(breakers(flow).map(|words| format!("             {}: {words}\n", flow.name)));
        let web = flow.tcp.as_ref().and_then(|tcp| tcp.web.as_ref());
        text.extend(web.map(|web| format!("             {}\n", web_line(web))));
        let media = [("video", &flow.video), ("audio", &flow.audio)];
        let frames = media.iter().filter_map(|(medium, frames)| Some(frames_line(medium, frames.as_ref()?)));
        text.extend(frames.map(|line| format!("             {line}\n")));
        text.extend(flow.paths.iter().map(|path| format!("{world:4} {:6}  {}\n", run.seed, path_line(path))));
    }
    text.extend(run.media.iter().map(media::of_run));
    for (flow, host) in run.flows.iter().filter_map(|flow| Some((flow, flow.pair.as_ref()?.host.as_ref()?))) {
        text.push_str(&format!("             {}: {}\n", flow.name, host.words()));
    }
    if !run.stalls.is_empty() {
        let stood: f64 = run.stalls.iter().map(|stall| stall.end_s - stall.start_s).sum();
        let stalled = times(run.stalls.len() as u64);
        text.push_str(&format!("             the machine stalled {stalled}, {:.0} ms in total\n", stood * 1e3));
    }
    if !run.complete {
        text.push_str(&format!("             ended early, after {:.1} s\n", run.lasted_s));
    }
    text
}

fn flow_line(flow: &FlowResult) -> String {
    if let Some(tcp) = &flow.tcp {
        return tcp_line(flow, tcp);
    }
    if let Some(pair) = &flow.pair {
        return pair_line(flow, pair);
    }
    let rate = flow.mean_rate_bps.map_or_else(|| format!("{:>14}", "-"), |rate| format!("{:7.3} Mbit/s", rate / 1e6));
    let lost = if flow.packets_sent == 0 { 0.0 } else { 100.0 * flow.packets_lost as f64 / flow.packets_sent as f64 };
    let marked = flow.packets_marked.filter(|_| flow.packets_received > 0).map_or(String::new(), |marked| {
        format!(", {:.2} % marked", 100.0 * marked as f64 / flow.packets_received as f64)
    });
    format!(
        "{:12} {rate}   {} {} {} {}  {lost:5.2} %{marked}",
        flow.name,
        millis(flow.delay.mean_s),
        millis(flow.delay.p95_s),
        millis(flow.settled_delay_s),
        millis(flow.target_s),
    )
}

/// Returns the statistics of the fetches of a web-traffic flow.
fn web_line(web: &WebResult) -> String {
    let WebResult { fetches_begun, fetches, time, on_share } = web;
    let seconds = |time: Option<f64>| time.map_or_else(|| "-".to_owned(), |time| format!("{time:.3} s"));
    let on = on_share.map_or(String::new(), |share| format!("; ON {:.1} % of the time", 100.0 * share));
    let (p50, p95) = (seconds(time.p50_s), seconds(time.p95_s));
    format!("{fetches} of {fetches_begun} fetches complete, in {p50} (p95 {p95}){on}")
}

/// Returns the statistics of the frames of a live medium, such as video.
fn frames_line(medium: &str, frames: &FramesResult) -> String {
    let millis = |delay| millis(delay).trim_start().to_owned();
    let (p50, p95, p99) = (millis(frames.delay.p50_s), millis(frames.delay.p95_s), millis(frames.delay.p99_s));
    let FramesResult { captured, skipped, lost, late, freezes, frozen_s, .. } = frames;
    let skipped = if *skipped > 0 { format!(" {skipped} skipped,") } else { String::new() };
    let freezes = match freezes {
        0 => String::new(),
        1 => format!("; frozen once, {frozen_s:.1} s"),
        _ => format!("; frozen {freezes} times, {frozen_s:.1} s in total"),
    };
    format!("{medium}: {captured} frames in {p50} (p95 {p95}, p99 {p99}),{skipped} {lost} lost, {late} late{freezes}")
}

/// Returns lines that describe how often circuit breakers acted on the flow and on its paths.
fn breakers(flow: &FlowResult) -> impl Iterator<Item = String> + use<'_> {
    let cut = (flow.circuit_strained > 0).then(|| format!("cut to a tenth {}", times(flow.circuit_strained)));
    let stopped = flow.circuit_broken.iter();
    let stopped =
        stopped.map(move |(breaker, count)| format!("stopped {} by the circuit breaker {breaker}", times(*count)));
    let of_path = flow.paths.iter().flat_map(move |path| {
        let left = path.circuit_broken.iter();
        left.map(move |(breaker, count)| {
            format!("{} stopped {} by the circuit breaker {breaker}", path.name, times(*count))
        })
    });
    cut.into_iter().chain(stopped).chain(of_path)
}

/// Returns the values of a flow pair. Its rate is the sum of the TCP rate and the RTP rate at the receiver.
fn pair_line(flow: &FlowResult, pair: &PairResult) -> String {
    let rate = pair.received_bps.map_or_else(|| format!("{:>14}", "-"), |rate| format!("{:7.3} Mbit/s", rate / 1e6));
    let running = pair.running_periods();
    let PairResult { adus, adus_missing, .. } = pair;
    format!("{:12} {rate}   received; {running} running periods, {adus} ADUs, {adus_missing} missing", flow.name)
}

/// Returns the values of one path of a session.
fn path_line(path: &PathResult) -> String {
    let rate = path.mean_rate_bps.map_or_else(|| format!("{:>14}", "-"), |rate| format!("{:7.3} Mbit/s", rate / 1e6));
    let lost = if path.packets_sent == 0 { 0.0 } else { 100.0 * path.packets_lost as f64 / path.packets_sent as f64 };
    let (mean, p95) = (millis(path.delay.mean_s), millis(path.delay.p95_s));
    format!("  {:10} {rate}   {mean} {p95} {:>9} {:>9}  {lost:5.2} %", path.name, "", "")
}

/// Returns the values of a TCP connection. One-way delays are not known for TCP.
fn tcp_line(flow: &FlowResult, tcp: &TcpResult) -> String {
    let goodput = tcp.goodput_bps.map_or_else(|| format!("{:>14}", "-"), |rate| format!("{:7.3} Mbit/s", rate / 1e6));
    let resent = tcp.retransmissions as f64;
    let count = |count: Option<u64>, what: &str| count.map_or(String::new(), |count| format!("{count} {what}, "));
    let share = if flow.packets_sent == 0 { 0.0 } else { 100.0 * resent / flow.packets_sent as f64 };
    format!(
        "{:12} {goodput}   of data; minimum round trip {}, {}{}{share:.2} % sent again",
        flow.name,
        millis(tcp.min_round_trip_s).trim_start(),
        count(tcp.recoveries, "fast recoveries"),
        count(tcp.timeouts, "timeouts"),
    )
}
