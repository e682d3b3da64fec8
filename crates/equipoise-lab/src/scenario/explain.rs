use std::fmt::Write as _;

use equipoise::pace::Traffic;
use equipoise::units::{Rate, Span};

use equipoise_sim::tcp::{LossRecovery, Supply};

use super::{BandwidthSource, Flow, FlowKind, Scenario, TcpFlow};

/// The scenario in words.
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
        let config = &link.config;
        writeln!(
            out,
            "  {}: {}, propagation {}, queue {}",
            link.name,
            config.rate.initial(),
            config.propagation_delay,
            config.queue
        )?;
        for (at, rate) in config.rate.steps() {
            writeln!(out, "    {rate} from {at} on")?;
        }
        for at in std::iter::once(Span::ZERO).chain(scenario.steps_on(&[number])) {
            let load = background_load(scenario, number, at);
            let capacity = config.rate.at(at);
            if capacity == Rate::ZERO {
                writeln!(out, "    from {at} on: background {load}, and no capacity at all")?;
            } else {
                let share = 100.0 * load.as_bps_f64() / capacity.as_bps_f64();
                writeln!(out, "    from {at} on: background {load} of {capacity}, {share:.0} %")?;
            }
        }
    }
    writeln!(out, "flows")?;
    scenario.flows.iter().try_for_each(|flow| describe_flow(scenario, flow, out))
}

fn describe_flow(scenario: &Scenario, flow: &Flow, out: &mut String) -> std::fmt::Result {
    let path: Vec<_> =
        flow.path.iter().filter_map(|&link| scenario.links.get(link)).map(|link| link.name.as_str()).collect();
    writeln!(
        out,
        "  {}: packets of {} from {} on, over {} (propagation {})",
        flow.name,
        flow.packet_size,
        flow.start,
        path.join(", "),
        scenario.propagation_delay(&flow.path)
    )?;
    match &flow.kind {
        FlowKind::Session { controller, report_interval, .. } => {
            let intervals = ((scenario.duration - flow.start) / *report_interval).unwrap_or(0);
            writeln!(out, "    RTP session under `{}`: {}", controller.entry.name, controller.entry.summary)?;
            writeln!(out, "    reports every {report_interval}: {intervals} control intervals")?;
            for ((name, value), parameter) in controller.parameters.iter().zip(controller.entry.parameters) {
                writeln!(out, "      {name} = {value}: {}", parameter.meaning)?;
            }
        }
        FlowKind::Background { traffic, rate } => {
            let model = match traffic {
                Traffic::Poisson => "Poisson traffic".to_owned(),
                Traffic::Constant => "constant bit rate".to_owned(),
                Traffic::OnOff { on, off } => {
                    format!("bursts of {on} and silences of {off} in the mean, within a burst")
                }
            };
            writeln!(out, "    {model} of {}", rate.initial())?;
            for (at, rate) in rate.steps() {
                writeln!(out, "      {rate} from {} on", flow.start + *at)?;
            }
        }
        FlowKind::Tcp(tcp) => describe_tcp(tcp, out)?,
    }
    Ok(())
}

fn describe_tcp(tcp: &TcpFlow, out: &mut String) -> std::fmt::Result {
    let TcpFlow { law, supply, recovery, .. } = tcp;
    writeln!(out, "    TCP connection under `{}`: {}", law.entry.name, law.entry.summary)?;
    for ((name, value), parameter) in law.parameters.iter().zip(law.entry.parameters) {
        writeln!(out, "      {name} = {value}: {}", parameter.meaning)?;
    }
    let recovery = match recovery {
        LossRecovery::NewReno => "duplicate acknowledgements (NewReno)",
        LossRecovery::Sack => "selective acknowledgements",
    };
    let data = match supply {
        Supply::Unlimited => "as much as it can".to_owned(),
        Supply::Transfer(size) => size.to_string(),
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

/// Mean rate that background flows offer to a link at a time.
fn background_load(scenario: &Scenario, link: usize, at: Span) -> Rate {
    let flows = scenario.flows.iter().filter(|flow| flow.path.contains(&link) && flow.start <= at);
    let sum = flows.map(|flow| match &flow.kind {
        FlowKind::Background { traffic, rate } => {
            let rate = rate.at(at - flow.start).as_bps_f64();
            match traffic {
                Traffic::OnOff { on, off } => rate * on.as_secs_f64() / (*on + *off).as_secs_f64(),
                Traffic::Poisson | Traffic::Constant => rate,
            }
        }
        FlowKind::Session { .. } | FlowKind::Tcp(_) => 0.0,
    });
    Rate::from_bps_f64(sum.sum()).unwrap_or(Rate::ZERO)
}
