use std::fmt::Write as _;

use equipoise::pace::Traffic;
use equipoise::units::{Rate, Span};

use super::{Flow, FlowKind, Scenario};

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
    }
    Ok(())
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
        FlowKind::Session { .. } => 0.0,
    });
    Rate::from_bps_f64(sum.sum()).unwrap_or(Rate::ZERO)
}
