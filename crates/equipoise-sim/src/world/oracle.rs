//! Oracles: they pass exact information about links, which only the simulator has, to controllers. The results show how
//! much this information would improve a controller.

use equipoise::control::PathLoad;
use equipoise::measure::{BandwidthEstimate, Measured};
use equipoise::units::{Rate, Size, Span};
use equipoise_session::Input;

use super::noise::WhiteNoise;
use super::{EventKind, FlowError, FlowId, Observer, Side, Time, World};
use crate::tcp::KnownBandwidth;

/// Passes the exact bandwidth of a flow's path to the flow's near endpoint.
///
/// Each measurement is about the forward link on which cross traffic left the least bandwidth in the last interval. It
/// contains the capacity of this link and the bandwidth that was left.
#[derive(Debug)]
pub struct BandwidthOracle {
    /// When the measurement starts; the first result is available one interval later. After each timeout of the near
    /// endpoint, the measurement restarts, because the endpoint discards earlier measurements (Kodama 2009, Sec.
    /// 2.2.2).
    pub start: Time,
    /// Time between two measurements, above zero. Each measurement covers the interval since the previous measurement.
    pub interval: Span,
    /// The error that is added to each measurement.
    pub noise: WhiteNoise,
    /// The shared value into which measurements are written. The near endpoint reads this value.
    pub told: KnownBandwidth,
}

/// An oracle for one flow.
pub(super) enum Oracle {
    Load(Load),
    Bandwidth(Bandwidth),
}

/// Writes the load of a flow's path each time the flow's near endpoint has sent a report request.
pub(super) struct Load {
    flow: usize,
    cell: PathLoad,
    /// When the path's load was last written to `cell`; `offered` has the bytes that had arrived at each forward link
    /// by this time.
    since: Time,
    offered: Vec<Size>,
}

pub(super) struct Bandwidth {
    flow: usize,
    config: BandwidthOracle,
    /// The number of the measurement event.
    event: usize,
    /// When `offered` was last updated; `None` until the measurement starts or restarts.
    since: Option<Time>,
    next: Time,
    /// For each forward link, the bytes that had arrived at the link by the time `since`. The first value is for all
    /// packets, and the second value is for the packets of this flow.
    offered: Vec<(Size, Size)>,
}

impl World {
    /// Measures the load of the first path of `flow`: the largest of the offered loads of the path's forward links
    /// since the last report request (Waki 2013, Sec. 6.1.2). At each report request of the flow's near endpoint, the
    /// load is written to `cell`.
    ///
    /// # Errors
    /// [`FlowError`] if the flow is unknown or the simulation has started.
    pub fn share_load(&mut self, flow: FlowId, cell: PathLoad) -> Result<(), FlowError> {
        let route = self.forward_route(flow)?;
        let offered = vec![Size::ZERO; self.network.offered(route).count()];
        let load = Load { flow: flow.0, cell, since: self.now, offered };
        if let Some(Some(state)) = self.flows.get_mut(flow.0) {
            state.oracle = Some(self.oracles.len());
        }
        self.oracles.push(Oracle::Load(load));
        Ok(())
    }

    /// Periodically measures the bandwidth of the first path of `flow`, and passes it to the near endpoint of `flow`.
    ///
    /// # Errors
    /// [`FlowError`] if the flow is unknown, the interval is not above zero, or the simulation has started.
    pub fn share_bandwidth(&mut self, flow: FlowId, config: BandwidthOracle) -> Result<(), FlowError> {
        let interval = config.interval;
        if interval <= Span::ZERO {
            return Err(FlowError::MeasuringInterval { interval });
        }
        let route = self.forward_route(flow)?;
        let oracle = self.oracles.len();
        let (event, next) = (self.add_event(EventKind::Measurement { oracle }), config.start);
        if let Some(Some(state)) = self.flows.get_mut(flow.0) {
            state.bandwidth = Some(oracle);
        }
        self.network.count_own(route);
        self.events.set(event, Some(next));
        let offered = vec![(Size::ZERO, Size::ZERO); self.network.offered(route).count()];
        self.oracles.push(Oracle::Bandwidth(Bandwidth { flow: flow.0, config, event, since: None, next, offered }));
        Ok(())
    }

    /// The number of the route for the near endpoint's packets on the first path of a flow.
    fn forward_route(&self, flow: FlowId) -> Result<usize, FlowError> {
        if self.running {
            return Err(FlowError::Running);
        }
        let state = self.flows.get(flow.0).and_then(Option::as_ref);
        let route = state.and_then(|state| state.routes.first());
        route.map(|routes| routes[Side::Near as usize]).ok_or(FlowError::UnknownFlow { flow: flow.0 })
    }

    /// Sets the time up to which the network may be computed (the horizon): the end of the run or the next time at
    /// which an oracle reads the counters of links, whichever is earlier.
    ///
    /// Then processes the packets that waited at the old horizon. Otherwise the network could be computed beyond the
    /// time at which such a packet arrives at a session, and the session's answer would come too late.
    pub(super) fn set_horizon(&mut self, observer: &mut impl Observer) {
        let looks = self.oracles.iter().filter_map(|oracle| match oracle {
            // The load is read when the near endpoint has sent a report request. The endpoint sends no request before
            // its timer is due.
            Oracle::Load(load) => self.flows[load.flow].as_ref()?.wakes[Side::Near as usize],
            Oracle::Bandwidth(bandwidth) => Some(bandwidth.next),
        });
        self.network.horizon = looks.fold(self.end, Time::min);
        self.advance_to(self.network.known(), observer);
    }

    /// Called when a flow's near endpoint has sent a report request: writes the load of the flow's path to the cell
    /// that the flow's controller reads.
    pub(super) fn write_load(&mut self, oracle: usize, observer: &mut impl Observer) {
        self.advance_to(self.now, observer);
        let Self { oracles, flows, network, now, .. } = self;
        let Some(Oracle::Load(Load { flow, cell, since, offered })) = oracles.get_mut(oracle) else { return };
        let Some(state) = &flows[*flow] else { return };
        let since = std::mem::replace(since, *now);
        let mut largest: Option<f64> = None;
        for ((link, all), seen) in network.offered(state.routes[0][Side::Near as usize]).zip(offered) {
            let news = all - std::mem::replace(seen, all);
            let load = network.capacity(link).load(since - Time::ZERO, *now - Time::ZERO, news);
            largest = largest.into_iter().chain(load).reduce(f64::max);
        }
        if let Some(load) = largest {
            cell.set(load);
        }
    }

    /// Restarts the measurement of a path's bandwidth if the near endpoint has discarded the measured values.
    pub(super) fn restart_measuring(&mut self, oracle: usize, observer: &mut impl Observer) {
        let Some(Oracle::Bandwidth(bandwidth)) = self.oracles.get_mut(oracle) else { return };
        if !bandwidth.config.told.take_discarded() {
            return;
        }
        // The network may have been computed beyond the current time. The links' counters can be read only at the end
        // of the computed period, so the measurement restarts at this end, and not at the current time.
        (bandwidth.since, bandwidth.next) = (None, self.network.known().max(self.now));
        self.events.set(bandwidth.event, Some(bandwidth.next));
        self.set_horizon(observer);
    }

    /// Measures the bandwidth of a flow's path and passes the result to the flow's near endpoint.
    pub(super) fn measure(&mut self, oracle: usize, observer: &mut impl Observer) {
        let now = self.now;
        self.advance_to(now, observer);
        let Self { oracles, flows, network, events, .. } = self;
        let Some(Oracle::Bandwidth(known)) = oracles.get_mut(oracle) else { return };
        let flow = known.flow;
        let Some(state) = &flows[flow] else { return };
        let mut found: Option<(f64, f64)> = None;
        for ((link, all, own), seen) in network.offered_by(state.routes[0][Side::Near as usize]).zip(&mut known.offered)
        {
            let others = (all - seen.0) - (own - seen.1);
            *seen = (all, own);
            let Some(since) = known.since else { continue };
            let elapsed = (now - since).as_secs_f64();
            let Some(bits) = network.capacity(link).bits(since - Time::ZERO, now - Time::ZERO) else { continue };
            let capacity = bits / elapsed;
            let available = capacity - others.as_bits() as f64 / elapsed;
            if found.is_none_or(|(_, least)| available < least) {
                found = Some((capacity, available));
            }
        }
        known.since = Some(now);
        known.next = now + known.config.interval;
        events.set(known.event, Some(known.next));
        if let Some((capacity, available)) = found {
            let measured = |bps: f64| Measured::exact(Rate::from_bps_f64(bps.max(0.0)).unwrap_or(Rate::ZERO));
            let truth = BandwidthEstimate { capacity: measured(capacity), available: measured(available) };
            known.config.told.set(known.config.noise.blur(now - Time::ZERO, truth));
        }
        self.set_horizon(observer);
        self.turn(flow, Side::Near, Some(Input::Timer), observer);
    }
}
