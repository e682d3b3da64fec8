//! Builds the simulated network that a scenario describes.

use equipoise::control::PathLoad;
use equipoise::units::{Instant, Span};
use equipoise_path::link::PipeConfig;
use equipoise_path::source::WebConfig;
use equipoise_sim::{FlowError, FlowId, LinkId, PathLinks, Stream, Time, World};

use super::SimError;
use crate::coupling::Groups;
use crate::ends::{self, EndsError};
use crate::playout::SharedPlayout;
use crate::scenario::{Choice, DuplexPart, Flow, FlowKind, Link, MultipathFlow, Scenario, TcpFlow};

/// The simulator with the network of a scenario: the directions of the links, the flows, and for each link its playout
/// buffer, if any.
pub(super) struct Stage {
    pub(super) world: World,
    /// Both directions of each link: first the forward directions of all links, then the reverse directions.
    pub(super) links: Vec<LinkId>,
    pub(super) flows: Vec<FlowId>,
    pub(super) playouts: Vec<Option<SharedPlayout>>,
    groups: Groups,
}

/// The links that a flow's packets pass in the forward and in the backward direction.
struct Ways {
    forward: Vec<LinkId>,
    backward: Vec<LinkId>,
}

/// Adds both directions of each link of a scenario to the simulator. Returns first the forward directions of all links,
/// then the reverse directions.
fn add_links(world: &mut World, scenario: &Scenario) -> Result<Vec<LinkId>, SimError> {
    let mut add = |(link, config): (&Link, &PipeConfig)| {
        let added = world.add_link(config.clone());
        added.map_err(|source| SimError::Link { link: link.name.clone(), source })
    };
    let forward = scenario.links.iter().map(|link| (link, &link.forward));
    forward.chain(scenario.links.iter().map(|link| (link, &link.back))).map(&mut add).collect()
}

impl Stage {
    pub(super) fn new(scenario: &Scenario, seed: u64) -> Result<Self, SimError> {
        scenario.check_budget()?;
        let mut world = World::seeded(seed);
        let links = add_links(&mut world, scenario)?;
        let playouts = SharedPlayout::of(scenario, Instant::ZERO).into_iter().zip(&scenario.links);
        let playouts = playouts
            .map(|(playout, link)| {
                playout.map_err(|source| SimError::Link { link: link.name.clone(), source: source.into() })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut stage = Self { world, links, flows: Vec::new(), playouts, groups: Groups::default() };
        for (index, flow) in scenario.flows.iter().enumerate() {
            let place = Place { scenario, flow, index, seed };
            let added = match flow.part {
                None => stage.add(&place).map(|id| stage.flows.push(id)),
                Some(DuplexPart::There) => stage.add_duplex(&place).map(|ids| stage.flows.extend(ids)),
                // The step for the forward media has already added the reverse media.
                Some(DuplexPart::Back) => Ok(()),
            };
            added.map_err(|error| match error {
                Refused::Ends(source) => SimError::Ends { flow: flow.name.clone(), source },
                Refused::Flow(error) => SimError::Flow(error),
            })?;
        }
        Ok(stage)
    }

    fn add(&mut self, place: &Place<'_>) -> Result<FlowId, Refused> {
        let Place { flow, index, seed, .. } = *place;
        match &flow.kind {
            FlowKind::Session { controller, report_interval, .. } => {
                self.add_session(place, controller, *report_interval)
            }
            FlowKind::Multipath(multipath) => self.add_multipath(place, multipath),
            FlowKind::Background { traffic, rate } => {
                let source = ends::source(flow, (traffic, rate), index, seed, Time::ZERO)?;
                Ok(self.world.add_stream(Stream { source, forward: self.ways(place).forward })?)
            }
            FlowKind::Tcp(tcp) => match tcp.web {
                Some(web) => self.add_web(place, tcp, web),
                None => self.add_tcp(place, tcp),
            },
            FlowKind::Pair(pair) => {
                let (near, far) = ends::pair(flow, pair, index, seed)?;
                let Ways { forward, backward } = self.ways(place);
                Ok(self.world.add_flow(equipoise_sim::Flow::new(near, far, forward, backward))?)
            }
        }
    }

    /// Returns the links that the packets of a flow with one path pass, in both directions.
    fn ways(&self, place: &Place<'_>) -> Ways {
        self.ways_over(place, place.flow.network())
    }

    fn ways_over(&self, Place { scenario, flow, .. }: &Place<'_>, path: &[usize]) -> Ways {
        let links = |way: Vec<usize>| way.into_iter().filter_map(|place| self.links.get(place)).copied().collect();
        let [there, back] = scenario.ways(flow, path);
        Ways { forward: links(there), backward: links(back) }
    }

    fn add_session(
        &mut self,
        place: &Place<'_>,
        controller: &Choice,
        report_interval: Span,
    ) -> Result<FlowId, Refused> {
        let playout = place.flow.playout().and_then(|link| self.playouts.get(link)?.clone());
        let load = PathLoad::default();
        let how = (controller, report_interval, &load);
        let shared = (playout, &mut self.groups);
        let (near, far) = ends::session(place.flow, how, (place.index, place.seed), shared, Instant::ZERO)?;
        let Ways { forward, backward } = self.ways(place);
        let id = self.world.add_flow(equipoise_sim::Flow::new(near, far, forward, backward))?;
        if load.is_shared() {
            self.world.share_load(id, load)?;
        }
        Ok(id)
    }

    /// Adds a session with media in both directions. The next flow of the scenario describes the media in the reverse
    /// direction.
    fn add_duplex(&mut self, place: &Place<'_>) -> Result<Vec<FlowId>, Refused> {
        let loads = [PathLoad::default(), PathLoad::default()];
        let Some(ways) = ends::both_ways(place.scenario, place.index, &loads) else { return Ok(Vec::new()) };
        let (near, far) = ends::duplex(ways, place.seed, Instant::ZERO)?;
        let Ways { forward, backward } = self.ways(place);
        let ids = self.world.add_duplex(equipoise_sim::Flow::new(near, far, forward, backward))?;
        let [load, _] = loads;
        if load.is_shared() {
            self.world.share_load(ids[0], load)?;
        }
        Ok(ids.to_vec())
    }

    fn add_multipath(&mut self, place: &Place<'_>, multipath: &MultipathFlow) -> Result<FlowId, Refused> {
        let (near, far) = ends::multipath(place.flow, multipath, (place.index, place.seed), Instant::ZERO)?;
        let paths = place.scenario.paths_of(place.flow).map(|path| {
            let Ways { forward, backward } = self.ways_over(place, &path.links);
            let changes = path.changes().into_iter().map(|(at, change)| (Time::ZERO + at, change)).collect();
            PathLinks { forward, backward, changes }
        });
        let paths = paths.collect();
        Ok(self.world.add_flow(equipoise_sim::Flow { near: Box::new(near), far: Box::new(far), paths })?)
    }

    fn add_tcp(&mut self, place: &Place<'_>, tcp: &TcpFlow) -> Result<FlowId, Refused> {
        let Place { flow, index, seed, .. } = *place;
        let oracle = ends::bandwidth_oracle(flow, tcp, index, seed);
        let told = oracle.as_ref().map(|oracle| oracle.told.clone());
        let (near, far) = ends::tcp(flow, tcp, (index, seed), told)?;
        let Ways { forward, backward } = self.ways(place);
        let id = self.world.add_flow(equipoise_sim::Flow::new(near, far, forward, backward))?;
        if let Some(oracle) = oracle {
            self.world.share_bandwidth(id, oracle)?;
        }
        Ok(id)
    }

    fn add_web(&mut self, place: &Place<'_>, tcp: &TcpFlow, web: WebConfig) -> Result<FlowId, Refused> {
        let (near, far) = ends::web(place.flow, tcp, web, (place.index, place.seed))?;
        let Ways { forward, backward } = self.ways(place);
        let paths = vec![PathLinks::new(forward, backward); near.places()];
        Ok(self.world.add_flow(equipoise_sim::Flow { near: Box::new(near), far: Box::new(far), paths })?)
    }
}

/// A flow of a scenario, the flow's index, and the run's seed.
struct Place<'a> {
    scenario: &'a Scenario,
    flow: &'a Flow,
    /// The flow's index in the scenario.
    index: usize,
    /// The run's seed.
    seed: u64,
}

/// Why a flow cannot be added.
enum Refused {
    Ends(EndsError),
    Flow(FlowError),
}

impl From<EndsError> for Refused {
    fn from(error: EndsError) -> Self {
        Self::Ends(error)
    }
}

impl From<FlowError> for Refused {
    fn from(error: FlowError) -> Self {
        Self::Flow(error)
    }
}
