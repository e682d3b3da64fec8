//! Periodically samples TCP connections and web traffic in the simulator.

use equipoise::units::{Size, Span};
use equipoise_sim::pair::PairFar;
use equipoise_sim::web::{WebFar, WebNear};
use equipoise_sim::{FlowId, Time, World, tcp};

use crate::record::{Recorder, TcpReading, WebReading};

/// Records the current state of all TCP connections.
pub(super) fn connections(world: &World, flows: &[FlowId], at: Span, recorder: &mut Recorder) {
    for (index, &flow) in flows.iter().enumerate() {
        let (Some(near), Some(far)) = (world.near::<tcp::Sender>(flow), world.far::<tcp::Receiver>(flow)) else {
            continue;
        };
        recorder.on_tcp(at, index, &reading(&near.stats(), far.delivered()));
    }
}

/// Records the current state of all web traffic, and the fetches that were completed since the last sample.
pub(super) fn web(world: &mut World, flows: &[FlowId], at: Span, recorder: &mut Recorder) {
    let now = world.now();
    for (index, &flow) in flows.iter().enumerate() {
        let Some(near) = world.near::<WebNear>(flow) else { continue };
        let (stats, web) = (near.stats(), WebReading { begun: near.opened(), time_on: near.time_on(now) });
        let Some(far) = world.far_mut::<WebFar>(flow) else { continue };
        recorder.on_tcp(at, index, &reading(&stats, far.delivered()));
        recorder.on_web(at, index, web);
        for fetched in far.take_fetched() {
            recorder.on_fetch(index, fetched.opened - Time::ZERO, fetched.completed - Time::ZERO);
        }
    }
}

fn reading(stats: &tcp::SenderStats, delivered: Size) -> TcpReading {
    TcpReading {
        window: stats.window,
        slow_start_threshold: stats.slow_start_threshold,
        in_flight: stats.in_flight,
        smoothed_round_trip: stats.smoothed_round_trip,
        min_round_trip: stats.min_round_trip,
        sent: stats.sent,
        retransmissions: stats.resent_in_recovery + stats.resent_after_timeout,
        resent_after_timeout: Some(stats.resent_after_timeout),
        recoveries: Some(stats.recoveries),
        timeouts: Some(stats.timeouts),
        delivered,
        finished: stats.finished.map(|at| at - Time::ZERO),
        law: stats.law,
    }
}

/// Records the TCP bytes that arrived at the receivers of connections, web traffic and flow pairs since the last
/// sample: the new data, and the headers of all data segments. `flows` contains each flow with its total number of
/// bytes at the last sample; this function updates the totals.
pub(super) fn received<'a>(
    world: &World,
    at: Span,
    flows: impl Iterator<Item = (&'a FlowId, &'a mut Size)>,
    recorder: &mut Recorder,
) {
    for (index, (&flow, before)) in flows.enumerate() {
        let receiver = world.far::<tcp::Receiver>(flow).or_else(|| world.far(flow).map(PairFar::tcp));
        let of_one = receiver.map(|receiver| (receiver.received().0, receiver.delivered()));
        let of_web = || world.far::<WebFar>(flow).map(|far| (far.received(), far.delivered()));
        let Some((segments, delivered)) = of_one.or_else(of_web) else { continue };
        let come = delivered + Size::from_bytes(tcp::HEADER.as_bytes() * segments);
        recorder.on_tcp_received(at, index, come - std::mem::replace(before, come));
    }
}
