//! Runs TCP connections of the kernel. Translates scenarios into settings of connections, and states of connections
//! into records.

use equipoise::control::window::WindowSnapshot;
use equipoise::units::{Size, Span};
use equipoise_net::{
    NetError, RunningTcp, TcpEnds, TcpHosts, TcpPlan, TcpState, TcpSupply, TestHost, Time, WebEnds, WebPlan,
};
use equipoise_path::source::WebConfig;
use equipoise_sim::tcp::Supply;

use super::ground::{Ground, Note, Poster, Said};
use crate::ends::{self, EndsError};
use crate::record::{TcpReading, WebReading};
use crate::scenario::{Direction, Flow, Scenario, TcpFlow};

/// Returns the hosts of a flow's connection; `packet` is the size of the connection's IP packets.
pub(super) fn hosts(flow: &Flow, tcp: &TcpFlow, packet: Size) -> TcpHosts {
    TcpHosts {
        sender: sender(flow),
        congestion_control: tcp.congestion_control().to_owned(),
        packet,
        receive_window: tcp.receive_window,
    }
}

/// Returns the host that sends the data of a flow.
pub(super) const fn sender(flow: &Flow) -> TestHost {
    match flow.direction {
        Direction::Forward => TestHost::Near,
        Direction::Back => TestHost::Far,
    }
}

/// Returns the source of the data that the application of a connection writes.
pub(super) fn supply(flow: &Flow, tcp: &TcpFlow, (index, seed): (usize, u64)) -> Result<TcpSupply, EndsError> {
    Ok(match ends::tcp_supply(flow, tcp, index, seed)? {
        // Only the TCP half of a flow pair has the supply `Written`, and that half does not use this function.
        Supply::Unlimited | Supply::Written => TcpSupply::Unlimited,
        Supply::Transfer(data) => TcpSupply::Transfer(data),
        Supply::Rate(rate) => TcpSupply::Rate(rate),
        Supply::Content(content) => TcpSupply::Content(content),
    })
}

/// Starts the sending and the receiving application of a TCP connection.
pub(super) fn run(
    scenario: &Scenario,
    (flow, tcp, supply): (&Flow, &TcpFlow, TcpSupply),
    ground: &Ground<'_>,
    ends: TcpEnds,
    poster: Poster,
) -> Result<RunningTcp, NetError> {
    let origin = ground.origin;
    let plan = TcpPlan {
        start: origin + flow.start,
        stop: tcp.stop.map(|stop| origin + stop),
        supply,
        sample_interval: scenario.sample_interval,
        origin,
    };
    ends.run(ground.clock, plan, move |at, state| {
        poster.tell(Note { at, flow: poster.flow, said: Said::Tcp(reading(state, origin)) });
    })
}

/// Starts both applications of web traffic.
pub(super) fn run_web(
    scenario: &Scenario,
    (flow, web, stop): (&Flow, WebConfig, Option<Span>),
    ground: &Ground<'_>,
    ends: WebEnds,
    poster: Poster,
) -> Result<RunningTcp, NetError> {
    let origin = ground.origin;
    let plan = WebPlan {
        web,
        seed: ends::web_seed(poster.flow, ground.seed),
        start: origin + flow.start,
        stop: stop.map(|stop| origin + stop),
        sample_interval: scenario.sample_interval,
        origin,
    };
    ends.run(ground.clock, plan, move |at, look| {
        let tell = |said| poster.tell(Note { at, flow: poster.flow, said });
        tell(Said::Tcp(reading(look.tcp, origin)));
        tell(Said::Web(WebReading { begun: look.begun, time_on: look.time_on }, look.fetched.to_vec()));
    })
}

fn reading(state: &TcpState, origin: Time) -> TcpReading {
    TcpReading {
        window: state.window.into(),
        slow_start_threshold: state.slow_start_threshold.map(f64::from),
        in_flight: state.in_flight.into(),
        smoothed_round_trip: state.smoothed_round_trip,
        min_round_trip: state.min_round_trip,
        sent: state.sent,
        retransmissions: state.retransmissions,
        resent_after_timeout: None,
        recoveries: None,
        timeouts: state.timeouts,
        delivered: state.delivered,
        finished: state.finished.map(|at| at - origin),
        law: WindowSnapshot::default(),
    }
}
