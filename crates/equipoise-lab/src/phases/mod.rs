//! The phases of a run, which are the time spans between the planned changes of a scenario, and the capacity that the
//! scenario leaves to media in each phase.
//!
//! RFC 8868, Sec. 3 defines metrics on such time spans: convergence "after the available link capacity changes, or when
//! new flows get added", fairness "during static periods". RFC 8867, Sec. 4.1 demands the time of each convergence. The
//! time spans follow from the scenario alone, so they are the same in simulated and live runs, and for all seeds.

mod capacity;
pub(crate) mod steady;
#[cfg(test)]
mod tests;

use equipoise::units::Span;

use crate::scenario::{Direction, Flow, FlowKind, Outage, Scenario};
use capacity::Capacities;

/// A capacity or background load with more steps than this in a run counts as varying continuously, and its steps do
/// not start new phases. Our choice.
pub(crate) const MOST_STEPS: usize = 64;
/// A scenario that would have more phases than this is treated as one phase. Our choice.
const MOST_PHASES: usize = 256;

/// The phases of a scenario that sends media.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// The phases in order of time, without gaps, from the start of the run to its planned end.
    pub(crate) phases: Vec<Phase>,
    /// Times, in order, at which the capacity that is left to media becomes lower on at least one link that media pass.
    pub(crate) falls: Vec<Span>,
}

/// A time span of a run without planned changes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Phase {
    pub(crate) start: Span,
    pub(crate) end: Span,
    /// Indices of the flows that send media in this phase.
    pub(crate) media: Vec<usize>,
    /// Indices of the TCP connections that are active in this phase.
    pub(crate) tcp: Vec<usize>,
    /// The bottleneck links of the routes of media; empty if no link limits the media.
    pub(crate) bottlenecks: Vec<Bottleneck>,
}

/// A link direction that is the bottleneck of a route of media.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bottleneck {
    /// Name of the link direction, as in [`Scenario::watched_links`].
    pub(crate) link: String,
    /// Capacity left to media and to TCP, in bit/s including IP headers: the link's mean rate in the phase minus the
    /// planned rate of background traffic.
    pub(crate) capacity_bps: f64,
    /// The part of `capacity_bps` that the media on this link can use, in bit/s: at most the sum of the media's maximum
    /// rates.
    pub(crate) usable_bps: f64,
    /// The routes of media that pass this link.
    pub(crate) ways: Vec<Way>,
}

/// A route of a flow's media: the index of the flow and the index of the path. The only path of a flow has index 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) flow: usize,
    pub(crate) path: usize,
}

/// How a flow counts in the phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A flow that sends media at a controller's rate.
    Media,
    Tcp,
    /// Background traffic, web traffic, or a flow pair, which sends over both RTP and TCP.
    Other,
}

impl Kind {
    pub(crate) const fn of(flow: &Flow) -> Self {
        match &flow.kind {
            FlowKind::Session { .. } | FlowKind::Multipath(_) => Self::Media,
            // Web traffic is idle between fetches, so it does not count as a flow with a share of the capacity.
            FlowKind::Tcp(tcp) if tcp.web.is_none() => Self::Tcp,
            FlowKind::Tcp(_) | FlowKind::Background { .. } | FlowKind::Pair(_) => Self::Other,
        }
    }
}

/// Returns the routes of a flow; each route is a list of indices of link directions.
fn ways(scenario: &Scenario, flow: &Flow) -> Vec<Vec<usize>> {
    let several: Vec<_> = scenario.paths_of(flow).map(|path| scenario.way(&path.links, flow.direction)).collect();
    if several.is_empty() { vec![scenario.way(flow.network(), flow.direction)] } else { several }
}

impl Plan {
    /// Returns the phases of a scenario; `None` if no flow of the scenario sends media.
    pub(crate) fn new(scenario: &Scenario) -> Option<Self> {
        let media: Vec<_> = scenario.flows.iter().filter(|flow| Kind::of(flow) == Kind::Media).collect();
        if media.is_empty() {
            return None;
        }
        let capacities = Capacities::new(scenario, &media);
        let inside = |at: &Span| *at > Span::ZERO && *at < scenario.duration;
        let mut changes: Vec<Span> =
            capacities.changes(scenario.duration).into_iter().chain(comings(scenario)).filter(inside).collect();
        changes.sort_unstable();
        changes.dedup();
        if changes.len() >= MOST_PHASES {
            changes.clear();
        }
        let falls = changes.iter().copied().filter(|at| capacities.falls_at(*at)).collect();
        let starts = std::iter::once(Span::ZERO).chain(changes.iter().copied());
        let ends = changes.iter().copied().chain([scenario.duration]);
        let phases = starts.zip(ends).map(|(start, end)| Phase::new(scenario, &capacities, (start, end)));
        Some(Self { phases: phases.collect(), falls })
    }
}

/// Returns the times at which flows start and stop: starts of media and TCP, pauses of media, ends of TCP connections,
/// and outages of paths.
fn comings(scenario: &Scenario) -> Vec<Span> {
    let mut changes = Vec::new();
    let outage = |outage: &Outage| [Some(outage.at), outage.until].into_iter().flatten();
    for flow in scenario.flows.iter().filter(|flow| Kind::of(flow) != Kind::Other) {
        changes.push(flow.start);
        changes.extend(flow.pauses.iter().flat_map(outage));
        changes.extend(scenario.paths_of(flow).flat_map(|path| &path.down).flat_map(outage));
        if let FlowKind::Tcp(tcp) = &flow.kind {
            changes.extend(tcp.stop);
        }
    }
    changes
}

/// Whether an outage covers the whole time span from `start` to `end`.
fn covers(outage: &Outage, (start, end): (Span, Span)) -> bool {
    outage.at <= start && outage.until.is_none_or(|until| until >= end)
}

impl Phase {
    fn new(scenario: &Scenario, capacities: &Capacities<'_>, (start, end): (Span, Span)) -> Self {
        let of_kind = |kind| {
            let flows = scenario.flows.iter().enumerate();
            flows
                .filter(move |(_, flow)| Kind::of(flow) == kind && is_active(flow, (start, end)))
                .map(|(number, _)| number)
        };
        let media: Vec<_> = of_kind(Kind::Media).collect();
        let bottlenecks = bottlenecks(scenario, capacities, &media, (start, end));
        Self { start, end, tcp: of_kind(Kind::Tcp).collect(), media, bottlenecks }
    }
}

/// Whether a flow may send at some time in a time span.
fn is_active(flow: &Flow, stretch: (Span, Span)) -> bool {
    let is_over = match &flow.kind {
        FlowKind::Tcp(tcp) => tcp.stop.is_some_and(|stop| stop <= stretch.0),
        _ => false,
    };
    flow.start < stretch.1 && !is_over && !flow.pauses.iter().any(|pause| covers(pause, stretch))
}

/// Returns the bottleneck links of the routes of media in a time span.
fn bottlenecks(
    scenario: &Scenario,
    capacities: &Capacities<'_>,
    media: &[usize],
    stretch: (Span, Span),
) -> Vec<Bottleneck> {
    let mut taken = Vec::new();
    for (number, flow) in media.iter().filter_map(|&number| Some((number, scenario.flows.get(number)?))) {
        let down: Vec<_> =
            scenario.paths_of(flow).map(|path| path.down.iter().any(|outage| covers(outage, stretch))).collect();
        let up =
            ways(scenario, flow).into_iter().enumerate().filter(|(path, _)| !down.get(*path).copied().unwrap_or(false));
        taken.extend(up.map(|(path, links)| (Way { flow: number, path }, links)));
    }
    let narrowest = |links: &Vec<usize>| {
        let known = links.iter().filter_map(|&link| Some((link, capacities.left_bps(link, stretch)?)));
        known.min_by(|one, other| one.1.total_cmp(&other.1))
    };
    let mut found: Vec<(usize, f64)> = Vec::new();
    for (link, capacity_bps) in taken.iter().filter_map(|(_, links)| narrowest(links)) {
        if found.iter().all(|(known, _)| *known != link) {
            found.push((link, capacity_bps));
        }
    }
    let bottleneck = |(link, capacity_bps): (usize, f64)| {
        let passing: Vec<_> = taken.iter().filter(|(_, links)| links.contains(&link)).map(|(way, _)| *way).collect();
        let greatest = passing
            .iter()
            .map(|way| scenario.flows.get(way.flow).and_then(capacity::greatest_bps).unwrap_or(f64::INFINITY));
        let usable_bps = greatest.sum::<f64>().min(capacity_bps);
        Bottleneck { link: name(scenario, link), capacity_bps, usable_bps, ways: passing }
    };
    found.into_iter().map(bottleneck).collect()
}

/// Returns the name of a link direction by its index.
fn name(scenario: &Scenario, place: usize) -> String {
    let links = scenario.links.len();
    let (number, direction) =
        if place < links { (place, Direction::Forward) } else { (place - links, Direction::Back) };
    let name = scenario.links.get(number).map_or("", |link| link.name.as_str());
    match direction {
        Direction::Forward => name.to_owned(),
        Direction::Back => format!("{name} (back)"),
    }
}
