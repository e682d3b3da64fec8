//! The charts of a case in a suite: rate, queueing delay, frame delay and loss over time. The charts are next to each
//! other, and each of them shows all controllers. If there are several flows, one more chart for each controller shows
//! the rates of the flows.

use std::collections::BTreeSet;

use super::chart::{Axis, Chart, Layer, Shape, Style};
use super::figure::{heights, look, nice};
use super::format::escape;
use super::paths::variant_style;
use crate::result::World;
use crate::suite::{CaseResult, FlowSeries, PhaseResult, Second};

const CONTEXT: Style = Style { color: "var(--context)", dash: "2 3", width: 1.6 };

/// Returns all charts of a variant of a case.
pub(super) fn side_by_side(id: &str, variant: &[CaseResult]) -> String {
    let Some(first) = variant.first() else { return String::new() };
    let charts = Charts { id, variant, duration_s: first.duration_s };
    let mut figures = vec![
        charts.of_all("rate", "Media at the receivers, all together", "rate (Mbit/s)", &|flows| {
            over_flows(flows, &|second| second.rate_bps.map(|rate| rate / 1e6), Together::Sum)
        }),
        charts.of_all("queueing", "Wait in queues", "wait in queues (ms)", &|flows| {
            over_flows(flows, &|second| second.queueing_s.map(|wait| wait * 1e3), Together::Mean)
        }),
        charts.of_all("frames", "Delay of frames", "frame delay (ms)", &|flows| {
            over_flows(flows, &|second| second.frame_delay_s.map(|delay| delay * 1e3), Together::Mean)
        }),
        charts.of_all("loss", "Packets lost", "packets lost (%)", &|flows| {
            over_flows(flows, &|second| second.loss.map(|loss| loss * 100.0), Together::Mean)
        }),
    ];
    if first.series.len() > 1 {
        figures.extend(variant.iter().enumerate().map(|(number, found)| charts.rates_of(number, found)));
    }
    format!("<div class=\"side\">\n{}</div>\n", figures.concat())
}

/// How the values of several flows at the same time are combined.
#[derive(Clone, Copy)]
enum Together {
    Sum,
    Mean,
}

/// Combines the values of the flows in each second. Returns one point per second, at the middle of the second. The
/// point's value is NaN if no flow has a value in this second.
fn over_flows(flows: &[&FlowSeries], of: &dyn Fn(&Second) -> Option<f64>, together: Together) -> Vec<(f64, f64)> {
    let longest = flows.iter().map(|flow| flow.seconds.len()).max().unwrap_or(0);
    let point = |place: usize| {
        let values = flows.iter().filter_map(|flow| of(flow.seconds.get(place)?));
        let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
        let value = match (count, together) {
            (0, _) => f64::NAN,
            (_, Together::Sum) => sum,
            (count, Together::Mean) => sum / f64::from(count),
        };
        (place as f64 + 0.5, value)
    };
    (0..longest).map(point).collect()
}

struct Charts<'a> {
    id: &'a str,
    variant: &'a [CaseResult],
    duration_s: f64,
}

/// Points of a time in seconds and a value.
type Points = Vec<(f64, f64)>;

impl Charts<'_> {
    /// Returns a chart with one line for each controller, and a second line if the controller also ran live. Each line
    /// is computed from all media flows of the controller.
    fn of_all(&self, what: &str, title: &str, unit: &'static str, of: &dyn Fn(&[&FlowSeries]) -> Points) -> String {
        let mut layers = Vec::new();
        // With several bottlenecks, no single capacity limits all media together, so no capacity is drawn.
        if let ("rate", Some(first)) = (what, self.variant.first())
            && let [(_, points)] = capacities(first).as_slice()
        {
            layers.push(Layer { name: "capacity".to_owned(), style: CONTEXT, shape: Shape::Steps(points.clone()) });
        }
        layers.extend(self.variant.iter().enumerate().map(|(number, found)| {
            let media: Vec<_> = found.series.iter().filter(|flow| !flow.is_tcp).collect();
            Layer { name: found.label(), style: self.style_of(number, found), shape: Shape::Line(of(&media)) }
        }));
        self.figure(what, title, unit, layers)
    }

    /// Returns a chart of the runs with one controller. It has one line for the rate of each flow, and one for the
    /// capacity of each bottleneck.
    fn rates_of(&self, number: usize, found: &CaseResult) -> String {
        let several = capacities(found);
        let named = several.len() > 1;
        let mut layers: Vec<_> = several
            .into_iter()
            .map(|(link, points)| {
                let name = if named { format!("capacity of {link}") } else { "capacity".to_owned() };
                Layer { name, style: CONTEXT, shape: Shape::Steps(points) }
            })
            .collect();
        layers.extend(found.series.iter().enumerate().map(|(place, flow)| {
            let rate = |second: &Second| second.rate_bps.map(|rate| rate / 1e6);
            let shape = Shape::Line(over_flows(&[flow], &rate, Together::Sum));
            let name = if flow.is_tcp { format!("{} (goodput)", flow.name) } else { flow.name.clone() };
            Layer { name, style: variant_style(place), shape }
        }));
        let title = format!("{}: each flow at its receiver", found.label());
        self.figure(&format!("flows-{number}"), &title, "rate (Mbit/s)", layers)
    }

    /// Returns the style of a controller's line. If there are live results, each controller has one colour, and the
    /// dash pattern distinguishes simulated from live results.
    fn style_of(&self, number: usize, found: &CaseResult) -> Style {
        if self.variant.iter().all(|other| other.world == World::Sim) {
            return variant_style(number);
        }
        let earlier = self.variant.iter().take(number);
        let others: BTreeSet<_> =
            earlier.map(|other| &other.controller).filter(|name| **name != found.controller).collect();
        Style { dash: look(found.world).0.dash, ..variant_style(others.len()) }
    }

    fn figure(&self, what: &str, title: &str, unit: &'static str, layers: Vec<Layer>) -> String {
        let highest = heights(&layers).into_iter().fold(0.1, f64::max);
        let x = Axis::new("time (s)", 0.0, self.duration_s);
        let y = Axis::new(unit, 0.0, nice(highest * 1.02));
        let chart = Chart::new(format!("{}-{what}", self.id), title.to_owned(), x, y, layers);
        format!("<figure>\n<h4>{}</h4>\n{}</figure>\n", escape(title), chart.to_html())
    }
}

/// Returns capacities over time, in Mbit/s, each with the name of its link. If `found.capacity` is recorded, returns
/// only this capacity, which is that of the first link. Otherwise returns what background traffic leaves to media and
/// TCP on each bottleneck link.
fn capacities(found: &CaseResult) -> Vec<(String, Points)> {
    if !found.capacity.is_empty() {
        let points = found.capacity.iter().enumerate().map(|(second, bps)| (second as f64, bps / 1e6));
        return vec![("the link".to_owned(), points.collect())];
    }
    bottlenecks(&found.phases)
}

/// Returns the name and the capacity over time of each bottleneck link. The capacity is what background traffic leaves
/// to media and TCP, in Mbit/s.
fn bottlenecks(phases: &[PhaseResult]) -> Vec<(String, Points)> {
    let mut lines: Vec<(String, Points)> = Vec::new();
    for phase in phases {
        for (link, bps) in &phase.bottlenecks {
            let at = lines.iter().position(|(known, _)| known == link).unwrap_or_else(|| {
                lines.push((link.clone(), Vec::new()));
                lines.len() - 1
            });
            let Some((_, points)) = lines.get_mut(at) else { continue };
            // The results contain a link's capacity only for phases in which the link is a bottleneck of media. In
            // other phases the line has a gap.
            if let Some(&(end_s, _)) = points.last()
                && end_s < phase.start_s
            {
                points.push((end_s, f64::NAN));
            }
            points.extend([(phase.start_s, bps / 1e6), (phase.end_s, bps / 1e6)]);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Metrics;

    #[test]
    fn a_link_has_no_capacity_while_it_is_no_bottleneck() {
        let phase = |start_s: f64, link: &str| PhaseResult {
            start_s,
            end_s: start_s + 10.0,
            capacity_bps: None,
            metrics: Metrics::default(),
            bottlenecks: vec![(link.to_owned(), 1e6)],
        };
        let lines = bottlenecks(&[phase(0.0, "a"), phase(10.0, "a"), phase(20.0, "b"), phase(30.0, "a")]);
        assert_eq!(lines.len(), 2);
        let gaps: Vec<_> = lines[0].1.iter().filter(|(_, mbps)| mbps.is_nan()).map(|(at_s, _)| *at_s).collect();
        assert_eq!((lines[0].1.len(), gaps), (7, vec![20.0]), "{lines:?}");
    }

    #[test]
    fn flows_are_added_or_averaged_second_by_second_with_gaps() {
        let flow = |rates: &[Option<f64>]| FlowSeries {
            seconds: rates.iter().map(|&rate_bps| Second { rate_bps, ..Second::default() }).collect(),
            ..FlowSeries::default()
        };
        let (one, other) = (flow(&[Some(1.0), None, Some(3.0)]), flow(&[Some(3.0), None]));
        let of = |second: &Second| second.rate_bps;
        let values = |together| {
            let points = over_flows(&[&one, &other], &of, together);
            points.into_iter().map(|(_, value)| if value.is_nan() { -1.0 } else { value }).collect::<Vec<_>>()
        };
        assert_eq!(values(Together::Sum), [4.0, -1.0, 3.0]);
        assert_eq!(values(Together::Mean), [2.0, -1.0, 3.0]);
    }
}
