//! Runs flow pairs over the kernel's TCP. Translates scenarios into settings of flow pairs, and states of flow pairs
//! into results.

use std::sync::mpsc::Sender as Post;

use equipoise_net::NetError;
use equipoise_net::flow_pair::{PairEnds, PairHosts, PairPlan, PairState, RunningPair};
use equipoise_session::Half;

use super::ground::{Ground, Note, Poster};
use super::{LiveError, tcp};
use crate::ends;
use crate::result::PairHost;
use crate::scenario::{Flow, PairFlow};

/// UDP and TCP port of the first flow at both hosts; it is below the kernel's ephemeral ports.
const FIRST_PORT: u16 = 5004;

/// Returns the hosts of flow number `index`. They contain the `WindowControl` for the flow's congestion control, if the
/// run has such a `WindowControl`.
pub(super) fn hosts(flow: &Flow, pair: &PairFlow, index: usize, ground: &Ground<'_>) -> PairHosts {
    let tcp = tcp::hosts(flow, &pair.tcp, pair.segment);
    PairHosts {
        port: FIRST_PORT.saturating_add(u16::try_from(index).unwrap_or(u16::MAX)),
        window_control: (ground.window_control)(&tcp.congestion_control),
        tcp,
    }
}

/// Starts both endpoints of flow number `index`, which is a flow pair.
pub(super) fn run(
    (flow, pair): (&Flow, &PairFlow),
    index: usize,
    ground: &Ground<'_>,
    ends: PairEnds,
    post: &Post<Note>,
) -> Result<RunningPair, LiveError> {
    let (near, far) = ends::pair_ends(flow, pair, (index, ground.seed), ground.origin.assume_clock());
    let plan = PairPlan { start: ground.origin + flow.start, adu: pair.adu, near, far };
    let poster = |half| Poster { flow: index, half, post: post.clone(), receives: None, load: None };
    ends.run(plan, poster(Half::Sending), poster(Half::Receiving)).map_err(|error| match error {
        NetError::Pair(source) => LiveError::Ends { flow: flow.name.clone(), source: source.into() },
        error => error.into(),
    })
}

/// Returns the window settings of a flow pair's host.
pub(super) fn host(state: &PairState) -> PairHost {
    PairHost {
        congestion_control: state.congestion_control.clone(),
        window: state.window_preset.name().to_owned(),
        idle_window: state.idle_window.name().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::mpsc;

    use equipoise::units::Size;
    use equipoise_net::flow_pair::WindowControl;
    use equipoise_net::{Clock, Observer as _, Time};
    use equipoise_session::{Event, Transport};

    use super::super::ground::Said;
    use super::*;
    use crate::scenario::{FlowKind, Scenario};

    const TEXT: &str = "name = \"one\"\nduration = \"3 s\"\n\n[[link]]\nname = \"link\"\nrate = \"1 Mbit/s\"\n\
        delay = \"1 ms\"\nqueue = \"10 packets\"\n\n[[flow]]\nname = \"pair\"\npath = [\"link\"]\npacket_size = \"588 B\"\n\
        report_interval = \"1 s\"\nwindow = { name = \"reno\" }\nkernel = \"cubic\"\ntcp = { receive_window = 11 }\n\
        pair = { adu = \"5120 B\", segment = \"1000 B\" }\n";

    /// If this test fails, a flow pair's TCP settings differ from those in the scenario, or its congestion window is
    /// never set.
    #[test]
    fn the_hosts_are_those_of_the_scenario_each_flow_has_a_port_and_the_window_is_set_for_the_kernels_control() {
        let scenario = Scenario::parse(TEXT).expect("right");
        let FlowKind::Pair(pair) = &scenario.flows[0].kind else { panic!("a flow pair") };
        let clock = Clock::new();
        let control = |name: &str| {
            let refused = |_: std::os::fd::BorrowedFd<'_>, _| Err(io::Error::other("no right"));
            (name == "cubic").then(|| WindowControl::new("cubic_preset", refused))
        };
        let ground = Ground { clock: &clock, origin: Time::ZERO, seed: 1, bed: None, window_control: &control };
        let found = hosts(&scenario.flows[0], pair, 3, &ground);
        assert_eq!((found.port, found.tcp.congestion_control.as_str()), (FIRST_PORT + 3, "cubic"));
        assert_eq!((found.tcp.packet, found.tcp.receive_window), (Size::from_bytes(1000), Some(11)));
        assert_eq!(found.window_control.expect("there is one").congestion_control(), "cubic_preset");
    }

    /// If this test fails, events of a flow pair are missing from the trace or recorded for another flow.
    #[test]
    fn what_an_end_sees_is_posted_with_its_time_and_flow() {
        let (post, notes) = mpsc::channel();
        let mut poster = Poster { flow: 2, half: Half::Receiving, post, receives: None, load: None };
        let (number, size) = (7, Size::from_bytes(5120));
        let event = Event::AduReceived { number, missing: 0, over: Transport::Tcp, size };
        poster.on_event(Time::from_nanos(5), &event);
        poster.on_stream(Time::from_nanos(6), size);
        let found: Vec<_> = notes.try_iter().map(|note| (note.at.as_nanos(), note.flow, note.said)).collect();
        assert!(matches!(found[0], (5, 2, Said::Event(None, Half::Receiving, seen)) if seen == event));
        assert!(matches!(found[1], (6, 2, Said::Stream(read)) if read == size));
    }
}
