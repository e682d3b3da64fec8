//! Tests that a duplex session consists of two flows.

use equipoise::control::Cbr;
use equipoise::measure::ClockMap;
use equipoise::units::{Instant, Schedule, Span};
use equipoise_session::Event;
use equipoise_session::rtp::{Clocks, Duplex, DuplexConfig, SenderConfig, StreamConfig};
use equipoise_sim::{Flow, FlowId, Side, Time, World};

use crate::support::{PACKET, at, link, mbps};

fn config(ssrc: u32, peer: u32) -> DuplexConfig {
    let stream = StreamConfig::new(ssrc, 96, PACKET, "end@test");
    let sending = SenderConfig::new(stream, Span::from_secs(1), Instant::ZERO, u64::from(ssrc));
    DuplexConfig::new(sending, peer, Clocks::Known(ClockMap::SYNCHRONISED))
}

/// For one flow: number of packets sent at the near side, number of packets received at the far side, and number of
/// reports applied.
type Seen = [u64; 3];

#[test]
fn each_direction_is_a_flow_whose_packets_all_arrive_and_whose_reports_are_its_own() {
    let mut world = World::new();
    let [there, back] =
        [15.0, 15.0].map(|rate| world.add_link(link(Schedule::constant(mbps(rate)), 100)).expect("a valid link"));
    let near = Duplex::new(config(7, 8), Box::new(Cbr::new(mbps(3.0)))).expect("valid");
    let far = Duplex::new(config(8, 7), Box::new(Cbr::new(mbps(1.0)))).expect("valid");
    let ids = world.add_duplex(Flow::new(near, far, vec![there], vec![back])).expect("links of this world");
    assert_eq!(ids.map(FlowId::index), [0, 1]);
    let mut seen = [Seen::default(); 2];
    let mut observe = |_: Time, flow: FlowId, side: Side, event: &Event| match (event, side) {
        (Event::MediaSent { .. }, Side::Near) => seen[flow.index()][0] += 1,
        (Event::MediaReceived { .. }, Side::Far) => seen[flow.index()][1] += 1,
        (Event::ReportApplied { .. }, Side::Near) => seen[flow.index()][2] += 1,
        (Event::MediaSent { .. } | Event::MediaReceived { .. } | Event::ReportApplied { .. }, _) => {
            panic!("{flow:?} {side:?}")
        }
        _ => {}
    };
    world.run(at(10.5), &mut observe);
    world.stop(&mut observe);
    world.run(at(11.0), &mut observe);
    // The two flows send 375 and 125 packets per second, for 10.5 s.
    for ([sent, received, applied], expected) in seen.into_iter().zip([3938, 1313]) {
        assert!(sent.abs_diff(expected) <= 2 && sent == received, "{sent} sent, {received} received");
        assert_eq!(applied, 10);
    }
}
