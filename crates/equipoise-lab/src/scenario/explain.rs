use std::fmt::Write as _;

use equipoise::control::coupled::Coupling;
use equipoise::control::{Parameter, Parameters};
use equipoise::units::{Rate, Share, Span};
use equipoise_pair::tpba::{EarlyReturn, ProbeInterval, RunningConfig, Tolerance};

use equipoise_path::link::{Capacity, Discipline, Jitter, Loss, PipeConfig, Reordering, TokenBucket};
use equipoise_path::source::WebConfig;
use equipoise_path::video::VideoModel;
use equipoise_session::Ecn;
use equipoise_session::feedback::{Format, Reporting};
use equipoise_sim::tcp::{LossRecovery, Supply};

use super::{
    AudioChoice, BandwidthSource, ContentKind, CoupledFlow, Direction, DuplexPart, Flow, FlowKind, Frames, Link,
    LiveChoice, MultipathFlow, Outage, PairFlow, Path, RunningLaw, Scenario, TcpFlow, VideoChoice,
};

/// Returns a description of the scenario in words.
pub(super) fn explain(scenario: &Scenario) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = describe(scenario, &mut text);
    text
}

fn describe(scenario: &Scenario, out: &mut String) -> std::fmt::Result {
    writeln!(out, "{}: {}", scenario.name, scenario.description.trim())?;
    writeln!(
        out,
        "  runs for {}, the first {} left out of the means; seed {}",
        scenario.duration, scenario.warm_up, scenario.seed
    )?;
    writeln!(out, "links")?;
    for (number, link) in scenario.links.iter().enumerate() {
        describe_link(link, out)?;
        let Capacity::Rate(rate) = &link.forward.capacity else { continue };
        let times: Vec<_> = std::iter::once(Span::ZERO).chain(scenario.steps_on(&[number])).collect();
        few(&times, out, |&at, out| {
            let load = background_load(scenario, number, at);
            let capacity = rate.at(at);
            if capacity == Rate::ZERO {
                writeln!(out, "    from {at} on: background {load}, and no capacity at all")
            } else {
                let share = 100.0 * load.as_bps_f64() / capacity.as_bps_f64();
                writeln!(out, "    from {at} on: background {load} of {capacity}, {share:.0} %")
            }
        })?;
    }
    if !scenario.paths.is_empty() {
        writeln!(out, "paths")?;
    }
    scenario.paths.iter().try_for_each(|path| describe_path(scenario, path, out))?;
    writeln!(out, "flows")?;
    scenario.flows.iter().try_for_each(|flow| describe_flow(scenario, flow, out))
}

fn describe_link(link: &Link, out: &mut String) -> std::fmt::Result {
    writeln!(out, "  {}: {}", link.name, direction(&link.forward))?;
    if let Capacity::Rate(rate) = &link.forward.capacity {
        few(rate.steps(), out, |(at, rate), out| writeln!(out, "    {rate} from {at} on"))?;
    }
    few(link.forward.delay.steps(), out, |(at, delay), out| writeln!(out, "    propagation {delay} from {at} on"))?;
    few(link.forward.loss.steps(), out, |(at, loss), out| writeln!(out, "    {} from {at} on", lost(loss)))?;
    if link.half_duplex {
        writeln!(out, "    both directions in one queue")?;
    } else if link.back != link.forward {
        writeln!(out, "    back: {}", direction(&link.back))?;
    }
    Ok(())
}

/// Returns a description of what happens to packets in one direction of a link.
fn direction(config: &PipeConfig) -> String {
    let PipeConfig { loss, policer, duplication, queue, discipline, capacity, delay, jitter, reordering } = config;
    let bucket = |TokenBucket { rate, burst }: &TokenBucket| format!("{rate} with bursts of {burst}");
    let capacity = match capacity {
        Capacity::Unlimited => "unlimited".to_owned(),
        Capacity::Rate(rate) => rate.initial().to_string(),
        Capacity::Shaped(shaper) => bucket(shaper),
        Capacity::Trace(trace) => {
            format!("a trace with a mean of {}, repeated after {}", trace.mean_rate(), trace.length())
        }
    };
    let mut text = format!("{capacity}, propagation {}, queue {queue}", delay.initial());
    let mut and = |more: String| text.extend([", ", &more]);
    if *discipline != Discipline::DropTail {
        and(format!("under {}", discipline.name()));
    }
    if loss.initial() != Loss::None {
        and(lost(&loss.initial()));
    }
    match jitter {
        Jitter::None => {}
        Jitter::Uniform(most) => and(format!("jitter of {most} either way")),
        Jitter::Normal(deviation) => and(format!("normal jitter of {deviation}")),
        Jitter::HalfNormal(deviation) => and(format!("half-normal jitter of {deviation}")),
    }
    if let Some(policer) = policer {
        and(format!("policed to {}", bucket(policer)));
    }
    if *duplication != Share::NONE {
        and(format!("{duplication} twice"));
    }
    if let Some(Reordering { share, by }) = reordering {
        and(format!("{share} later by {by}"));
    }
    text
}

/// Returns a description of which packets are lost at random.
fn lost(loss: &Loss) -> String {
    match loss {
        Loss::None => "none lost".to_owned(),
        Loss::Random(share) => format!("{share} lost"),
        Loss::Burst(bursts) => format!("lost in bursts (p {}, r {})", bursts.to_bad, bursts.to_good),
    }
}

/// Writes a line for each of the first steps, and the number of the remaining steps.
fn few<T>(
    steps: &[T],
    out: &mut String,
    mut line: impl FnMut(&T, &mut String) -> std::fmt::Result,
) -> std::fmt::Result {
    /// Maximum number of steps that are written, because more lines would be unreadable.
    const SHOWN: usize = 100;
    steps.iter().take(SHOWN).try_for_each(|step| line(step, out))?;
    match steps.len().checked_sub(SHOWN) {
        None | Some(0) => Ok(()),
        Some(more) => writeln!(out, "    and {more} more"),
    }
}

/// Returns a text with the names of consecutive links and the total propagation delay of these links.
fn chain(scenario: &Scenario, links: &[usize], direction: Direction) -> String {
    let names = links.iter().filter_map(|&link| scenario.links.get(link)).map(|link| link.name.as_str());
    format!("{} (propagation {})", names.collect::<Vec<_>>().join(", "), scenario.propagation_delay(links, direction))
}

fn describe_path(scenario: &Scenario, path: &Path, out: &mut String) -> std::fmt::Result {
    writeln!(out, "  {}: over {}", path.name, chain(scenario, &path.links, Direction::Forward))?;
    path.down.iter().try_for_each(|Outage { at, until }| match until {
        Some(until) => writeln!(out, "    taken away from {at} to {until}"),
        None => writeln!(out, "    taken away from {at} on"),
    })
}

fn describe_flow(scenario: &Scenario, flow: &Flow, out: &mut String) -> std::fmt::Result {
    let several = scenario.paths_of(flow).enumerate().map(|(number, path)| format!("{number} {}", path.name));
    let several = several.collect::<Vec<_>>().join(", ");
    let over =
        if several.is_empty() { chain(scenario, &flow.path, flow.direction) } else { format!("the paths {several}") };
    writeln!(out, "  {}: packets of {} from {} on, over {over}", flow.name, flow.packet_size, flow.start)?;
    if flow.direction == Direction::Back {
        writeln!(out, "    in the other direction of its links")?;
    }
    if flow.part == Some(DuplexPart::Back) {
        writeln!(out, "    in the session of the flow before it, whose ends send and receive")?;
    }
    match flow.ecn {
        Ecn::NotCapable => {}
        Ecn::Ect1 => writeln!(out, "    queues may mark its packets, ECT(1)")?,
        Ecn::Ect0 | Ecn::Marked => writeln!(out, "    queues may mark its packets, ECT(0)")?,
    }
    if let Some(back) = &flow.back {
        writeln!(out, "    back over {}", chain(scenario, back, Direction::Forward))?;
    }
    if let Some(content) = flow.content() {
        let what = match &content.kind {
            ContentKind::Constant => "constant bit rate".to_owned(),
            ContentKind::Video(frames) => format!("{}, all of it, however long that takes", name_of(frames)),
        };
        writeln!(out, "    has to send {} of {}: {what}", content.length, content.rate)?;
    }
    if let Some(live) = flow.live() {
        describe_live(live, out)?;
    }
    flow.pauses.iter().try_for_each(|Outage { at, until }| match until {
        Some(until) => writeln!(out, "    pauses from {at} to {until}"),
        None => writeln!(out, "    sends nothing from {at} on"),
    })?;
    if let Some(link) = flow.playout().and_then(|playout| scenario.links.get(playout)) {
        writeln!(out, "    leaves the network in front of {}, whose queue is its playout buffer", link.name)?;
    }
    match &flow.kind {
        FlowKind::Session { controller, report_interval, reporting, coupled, .. } => {
            let intervals = ((scenario.duration - flow.start) / *report_interval).unwrap_or(0);
            writeln!(out, "    RTP session under `{}`: {}", controller.entry.name(), controller.entry.summary())?;
            writeln!(out, "    reports every {report_interval}: {intervals} control intervals")?;
            describe_reporting(*reporting, out)?;
            if let Some(CoupledFlow { group, priority, coupling }) = coupled {
                let name = match coupling {
                    Coupling::Active => "RFC 8699",
                    Coupling::Conservative => "the conservative form of RFC 8699",
                };
                writeln!(out, "    shares the rate of group {group} with priority {priority}: {name}")?;
            }
            if !flow.circuit_breakers {
                writeln!(out, "    no circuit breaker acts on it")?;
            }
            describe_parameters(&controller.parameters, controller.entry.parameters(), out)?;
        }
        FlowKind::Multipath(multipath) => describe_multipath(multipath, scenario.duration - flow.start, out)?,
        FlowKind::Background { traffic, rate } => {
            writeln!(out, "    `{}` traffic of {}: {}", traffic.entry.name(), rate.initial(), traffic.entry.summary())?;
            describe_parameters(&traffic.parameters, traffic.entry.parameters(), out)?;
            few(rate.steps(), out, |(at, rate), out| writeln!(out, "      {rate} from {} on", flow.start + *at))?;
        }
        FlowKind::Tcp(tcp) => describe_tcp(tcp, out)?,
        FlowKind::Pair(pair) => describe_pair(pair, out)?,
    }
    Ok(())
}

/// Returns a description of the source of a video's frames.
fn name_of(frames: &Frames) -> String {
    match frames {
        Frames::Trace(file) => format!("the trace {}", file.display()),
        Frames::Synthetic(like) => format!("synthetic video, frames varying by {}", like.cv),
    }
}

fn describe_live(live: &LiveChoice, out: &mut String) -> std::fmt::Result {
    match &live.video {
        None => {}
        Some(VideoChoice::Quantised { frames, rate, length }) => {
            writeln!(out, "    live video: {length} of {rate}: {}, quantised to follow the rate", name_of(frames))?;
        }
        Some(VideoChoice::Modelled(model)) => {
            let VideoModel { frame_rate, min_rate, max_rate, .. } = model.as_ref();
            let sizes = if model.traces.is_some() { "sizes from traces" } else { "sizes by statistics" };
            writeln!(
                out,
                "    live video: an encoder (RFC 8593) of {frame_rate} frames/s and {min_rate} to {max_rate}, {sizes}"
            )?;
        }
    }
    if let Some(AudioChoice { rate, interval }) = live.audio {
        writeln!(out, "    audio of {rate} in frames of {interval}, which go first")?;
    }
    writeln!(out, "    packets leave at {} times the rate; a frame is late after {}", live.pacing, live.deadline)?;
    live.skip_after.map_or(Ok(()), |wait| writeln!(out, "    frames are skipped while what waits takes over {wait}"))
}

fn describe_pair(pair: &PairFlow, out: &mut String) -> std::fmt::Result {
    let PairFlow { adu, tpba, law, report_interval, segment, tcp } = pair;
    writeln!(
        out,
        "    flow pair: ADUs of {adu}, over TCP with packets of {segment} while it probes, over RTP while it runs"
    )?;
    let interval = match tpba.interval {
        ProbeInterval::Fixed(interval) => format!("over {interval}"),
        ProbeInterval::BetweenReductions { at_least, at_most } => {
            format!("from one reduction of the window to the next, over {at_least} to {at_most}")
        }
    };
    let tolerance = match tpba.tolerance {
        Tolerance::Absolute(rate) => rate.to_string(),
        Tolerance::Share(share) => format!("{:.0} %", share * 100.0),
    };
    writeln!(out, "    probes until three rates of TCP, each {interval}, differ by less than {tolerance}")?;
    write!(out, "    runs for {} with reports every {report_interval}", tpba.running)?;
    if let Some(early) = tpba.early_return {
        let EarlyReturn { reductions, share } = early;
        write!(out, ", or until {reductions} reductions in a row by {:.0} % or more", share * 100.0)?;
    }
    writeln!(out)?;
    match law {
        RunningLaw::Loss(RunningConfig { adapt, reduction_factor, min_rate }) => writeln!(
            out,
            "    its rate falls by {reduction_factor} times the loss every {adapt}, to {min_rate} at the lowest"
        )?,
        RunningLaw::Ap { target, min_rate } => writeln!(
            out,
            "    its rate is AP's with a target of {target}, from {min_rate} up to the rate that TCP had"
        )?,
    }
    describe_tcp(tcp, out)
}

fn describe_parameters(given: &Parameters, known: &[Parameter], out: &mut String) -> std::fmt::Result {
    given
        .iter()
        .zip(known)
        .try_for_each(|((name, value), parameter)| writeln!(out, "      {name} = {value}: {}", parameter.meaning))
}

fn describe_reporting(reporting: Option<Reporting>, out: &mut String) -> std::fmt::Result {
    let Some(Reporting { format, interval }) = reporting else { return Ok(()) };
    let name = match format {
        Format::CongestionFeedback => "RFC 8888",
        Format::TransportWide => "transport-wide numbers",
    };
    writeln!(out, "    feedback by packet every {interval}: {name}")
}

fn describe_multipath(multipath: &MultipathFlow, lasts: Span, out: &mut String) -> std::fmt::Result {
    let MultipathFlow { controller, reporting, report_interval, period, scheduler, .. } = multipath;
    let periods = (lasts / *period).unwrap_or(0);
    let whose = if reporting.is_some() { "each" } else { "its total" };
    writeln!(
        out,
        "    RTP session over several paths; {whose} under `{}`: {}",
        controller.entry.name(),
        controller.entry.summary()
    )?;
    describe_reporting(*reporting, out)?;
    describe_parameters(&controller.parameters, controller.entry.parameters(), out)?;
    writeln!(out, "    divided by `{}`: {}", scheduler.entry.name(), scheduler.entry.summary())?;
    describe_parameters(&scheduler.parameters, scheduler.entry.parameters(), out)?;
    writeln!(out, "    reports every {report_interval}, split every {period}: {periods} periods")
}

fn describe_tcp(tcp: &TcpFlow, out: &mut String) -> std::fmt::Result {
    let TcpFlow { law, supply, recovery, .. } = tcp;
    let what = if tcp.web.is_some() { "TCP connections" } else { "TCP connection" };
    if let Some(law) = law {
        writeln!(out, "    {what} under `{}`: {}", law.entry.name(), law.entry.summary())?;
        describe_parameters(&law.parameters, law.entry.parameters(), out)?;
        writeln!(out, "    live under the kernel's `{}`, with its own parameters and hosts", tcp.congestion_control())?;
    } else {
        writeln!(out, "    {what} under the kernel's `{}`, live only", tcp.congestion_control())?;
    }
    let recovery = match recovery {
        LossRecovery::NewReno => "duplicate acknowledgements (NewReno)",
        LossRecovery::Sack => "selective acknowledgements",
    };
    if let Some(web) = &tcp.web {
        return describe_web(web, tcp, out);
    }
    let data = match supply {
        _ if tcp.content.is_some() => "this".to_owned(),
        Supply::Content(content) => format!("{} segments", content.packets()),
        Supply::Unlimited => "as much as it can".to_owned(),
        Supply::Transfer(size) => size.to_string(),
        Supply::Written => "what it is given".to_owned(),
        Supply::Rate(rate) => format!("data at {rate}"),
    };
    let until = tcp.stop.map_or(String::new(), |stop| format!(" until {stop}"));
    writeln!(out, "    sends {data}{until}; losses are told by {recovery}")?;
    match &tcp.bandwidth {
        BandwidthSource::Unknown => Ok(()),
        BandwidthSource::Inline => writeln!(out, "    bandwidth is measured by the connection's own packets"),
        BandwidthSource::Known { interval, noise } => {
            writeln!(out, "    bandwidth is known every {interval}, with a relative error of {}", noise.initial())?;
            noise.steps().iter().try_for_each(|(at, noise)| writeln!(out, "      an error of {noise} from {at} on"))
        }
    }
}

fn describe_web(web: &WebConfig, tcp: &TcpFlow, out: &mut String) -> std::fmt::Result {
    let WebConfig { flows, on, connections, smallest, largest, idle } = web;
    let each = match connections {
        1 => "one connection a burst".to_owned(),
        several => format!("{several} connections a burst"),
    };
    let until = tcp.stop.map_or(String::new(), |stop| format!("; no burst begins after {stop}"));
    writeln!(
        out,
        "    web traffic of {flows} on/off flows, {on} of them ON at first, {each}: each connection fetches {smallest} to {largest}"
    )?;
    writeln!(
        out,
        "    idle between bursts for {idle} on average: at most {:.2} Mbit/s of data{until}",
        web.most_bps() / 1e6
    )
}

/// Returns the mean rate that background flows offer to a link in the forward direction, at the time `at`.
fn background_load(scenario: &Scenario, link: usize, at: Span) -> Rate {
    let flows = scenario
        .flows
        .iter()
        .filter(|flow| flow.direction == Direction::Forward && flow.path.contains(&link) && flow.start <= at);
    let sum = flows.map(|flow| match &flow.kind {
        FlowKind::Background { traffic, rate } => {
            let rate = rate.at(at - flow.start).as_bps_f64();
            rate * traffic.build(()).map_or(1.0, |model| model.mean_share())
        }
        FlowKind::Session { .. } | FlowKind::Tcp(_) | FlowKind::Multipath(_) | FlowKind::Pair(_) => 0.0,
    });
    Rate::from_bps_f64(sum.sum()).unwrap_or(Rate::ZERO)
}
