//! The testbed of Tobe 1999, Fig. 1 and 8, and the values that the experiments use from its runs.

use equipoise::units::Span;
use equipoise_lab::result::{PairTransport, Run};
use equipoise_lab::scenario::{Flow, FlowKind, PairFlow, Scenario};
use equipoise_lab::sim::{RunObserver, SimError};
use equipoise_lab::{Event, Transport};

use super::super::experiment::{Lab, Options};

pub(super) const FIG3: &str = include_str!("../../scenarios/tobe1999/fig3.toml");
pub(super) const FIG10: &str = include_str!("../../scenarios/tobe1999/fig10.toml");
pub(super) const FIG19: &str = include_str!("../../scenarios/tobe1999/fig19.toml");
pub(super) const FIG22: &str = include_str!("../../scenarios/tobe1999/fig22.toml");
pub(super) const FIG24: &str = include_str!("../../scenarios/tobe1999/fig24.toml");
pub(super) const FIG26: &str = include_str!("../../scenarios/tobe1999/fig26.toml");
pub(super) const TABLE3: &str = include_str!("../../scenarios/tobe1999/table3.toml");
pub(super) const RIVALS: &str = include_str!("../../scenarios/tobe1999/beyond-rivals.toml");
pub(super) const CEILING: &str = include_str!("../../scenarios/tobe1999/beyond-ceiling.toml");

/// TCP's window in segments of 1460 bytes: the default socket buffer of FreeBSD 2.2, 16 kB.
pub(super) const PAPER_WINDOW: u64 = 11;
/// TCP's window in segments, so large that it never limits a flow, as on today's hosts.
pub(super) const OPEN_WINDOW: u64 = 1 << 20;
/// Distance between the RTCP seeds of two runs. The RTCP seed of a flow is this number times the run's seed, plus the
/// flow's index.
const SEEDS_A_RUN: u64 = 1000;

/// An interpretation of the testbed. The paper states neither the size of TCP's window nor the length of the
/// bottleneck's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Testbed {
    pub(super) name: &'static str,
    /// TCP's window in segments.
    window: u64,
    /// Length of the bottleneck's queue, in bytes of IP packets; `None` for 100 packets, as in the scenario files.
    queue: Option<&'static str>,
}

const fn testbed(name: &'static str, window: u64, queue: &'static str) -> Testbed {
    Testbed { name, window, queue: Some(queue) }
}

impl Testbed {
    pub(super) const MAIN: Self =
        Self { name: "windows of 16 kB, a queue of 100 packets", window: PAPER_WINDOW, queue: None };
    /// All interpretations. The main interpretation is the first. Some queues are limited in bytes, like the buffer of
    /// an ATM card.
    pub(super) const ALL: [Self; 8] = [
        Self::MAIN,
        testbed("windows of 16 kB, a queue of 24 kB", PAPER_WINDOW, "24 kB"),
        testbed("windows of 16 kB, a queue of 32 kB", PAPER_WINDOW, "32 kB"),
        testbed("windows of 16 kB, a queue of 48 kB", PAPER_WINDOW, "48 kB"),
        Self { name: "windows of 32 kB, a queue of 100 packets", window: 2 * PAPER_WINDOW, queue: None },
        testbed("windows of 32 kB, a queue of 24 kB", 2 * PAPER_WINDOW, "24 kB"),
        testbed("windows of 32 kB, a queue of 32 kB", 2 * PAPER_WINDOW, "32 kB"),
        testbed("windows of 32 kB, a queue of 48 kB", 2 * PAPER_WINDOW, "48 kB"),
    ];
    /// In a full run, each interpretation other than the main one has fewer runs: the number of runs of the main
    /// interpretation, divided by this value.
    const FEWER: u32 = 2;

    /// Returns the scenario, changed to this interpretation of the testbed.
    pub(super) fn of(&self, scenario: Scenario) -> Scenario {
        let mut scenario = with_window(scenario, self.window);
        let bottleneck = scenario.links.iter_mut().find(|link| link.name == "bottleneck");
        if let Some((link, queue)) = bottleneck.zip(self.queue) {
            // `parse` cannot fail here: the texts are those in `ALL`, and a test parses all of them.
            link.change(|direction| direction.queue = queue.parse().unwrap_or(direction.queue));
        }
        scenario
    }

    /// Returns the number of runs under this interpretation. `paper` is the number under the main interpretation in a
    /// full run.
    pub(super) fn runs(&self, options: &Options, paper: u32) -> u32 {
        options.runs(if *self == Self::MAIN { paper } else { paper / Self::FEWER }, 2)
    }

    /// Returns the number of runs of an experiment under all interpretations together.
    pub(super) fn runs_of_all(options: &Options, paper: u32) -> u32 {
        Self::ALL.iter().map(|testbed| testbed.runs(options, paper)).sum()
    }
}

/// The values that the experiments take from a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Trace {
    /// For each flow except the noise traffic, the rate of received IP packets in each sample interval, in bit/s.
    pub(super) rates: Vec<Vec<f64>>,
    /// The ADUs that the receiver delivered, in order.
    pub(super) adus: Vec<AduSeen>,
    /// The beginnings of the probing and running periods of the flow pairs.
    pub(super) began: Vec<Began>,
    /// The shares of lost packets that the RTCP reports contain.
    pub(super) reported_losses: Vec<f64>,
    /// For each flow, the mean one-way delay of its RTP packets, in seconds.
    pub(super) delays_s: Vec<f64>,
}

/// An ADU that the receiver delivered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AduSeen {
    pub(super) at_s: f64,
    pub(super) number: u64,
    pub(super) over: PairTransport,
}

/// The beginning of a probing or running period of a flow pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Began {
    pub(super) at_s: f64,
    pub(super) over: PairTransport,
    pub(super) first_adu: u64,
}

/// Observes a run to get the values that are not in its results.
struct Watch {
    /// The end of the run. Later events are ignored.
    end: Span,
    adus: Vec<AduSeen>,
    reported_losses: Vec<f64>,
    delays: Vec<MeanDelay>,
}

/// The sum and the number of delays, from which their mean is computed.
#[derive(Clone, Default)]
struct MeanDelay {
    sum_s: f64,
    count: u64,
}

impl Watch {
    fn new(scenario: &Scenario) -> Self {
        let delays = vec![MeanDelay::default(); scenario.flows.len()];
        Self { end: scenario.duration, adus: Vec::new(), reported_losses: Vec::new(), delays }
    }

    fn trace(self, run: &Run) -> Trace {
        Trace {
            adus: self.adus,
            reported_losses: self.reported_losses,
            delays_s: self.delays.iter().map(|delay| delay.sum_s / delay.count as f64).collect(),
            ..Trace::of(run)
        }
    }
}

impl Trace {
    /// Copies the values that the results of a run contain. The fields that only `Watch` can fill stay empty.
    pub(super) fn of(run: &Run) -> Self {
        // The last flow is the noise traffic, which is left out.
        let flows = run.flows.split_last().map_or(&[][..], |(_, flows)| flows);
        let periods = run.flows.iter().filter_map(|flow| flow.pair.as_ref()).flat_map(|pair| &pair.periods);
        Self {
            rates: flows.iter().map(|flow| flow.received.iter().map(|sample| sample.rate_bps).collect()).collect(),
            began: periods
                .map(|period| Began { at_s: period.at_s, over: period.transport, first_adu: period.first_adu })
                .collect(),
            ..Self::default()
        }
    }
}

impl RunObserver for Watch {
    fn on_event(&mut self, at: Span, flow: usize, event: &Event) {
        if at > self.end {
            return;
        }
        match *event {
            Event::MediaReceived { delay, .. } => {
                if let Some(mean) = self.delays.get_mut(flow) {
                    mean.sum_s += delay.as_secs_f64();
                    mean.count += 1;
                }
            }
            Event::ReportApplied { fraction_lost, .. } => self.reported_losses.push(fraction_lost),
            Event::AduReceived { number, over, .. } => {
                let over = match over {
                    Transport::Tcp => PairTransport::Tcp,
                    Transport::Rtp => PairTransport::Rtp,
                };
                self.adus.push(AduSeen { at_s: at.as_secs_f64(), number, over });
            }
            _ => {}
        }
    }
}

/// Runs a scenario of the testbed `runs` times. Returns what `keep` returns for each run.
pub(super) fn run_all<T: Send>(
    lab: &Lab<'_>,
    scenario: &Scenario,
    runs: u32,
    keep: impl Fn(Trace) -> T + Sync,
) -> Result<Vec<T>, SimError> {
    let spread = |number: u32| (seeded(scenario, lab.options.seed.wrapping_add(number.into())), number);
    let observer = || Watch::new(scenario);
    lab.each_observed((0..runs).map(spread), observer, |run, watch| keep(watch.trace(run)))
}

/// Returns the scenario with RTCP seeds for a run whose seed is `seed`.
pub(super) fn seeded(scenario: &Scenario, seed: u64) -> Scenario {
    let mut scenario = scenario.clone();
    let flows = scenario.flows.iter_mut().filter(|flow| !matches!(flow.kind, FlowKind::Background { .. }));
    for (index, flow) in (0..).zip(flows) {
        flow.rtcp.seed = Some(seed.wrapping_mul(SEEDS_A_RUN).wrapping_add(index));
    }
    scenario
}

/// Returns the scenario with the round-trip time `round_trip`, which does not include queueing. In the forward
/// direction, the access link has a fifth of the delay, and the bottleneck has the rest. The link `back` has the whole
/// delay of the backward direction.
pub(super) fn over(mut scenario: Scenario, round_trip: Span) -> Scenario {
    let way = Span::from_nanos(round_trip.as_nanos() / 2);
    let access = Span::from_nanos(way.as_nanos() / 5);
    for link in &mut scenario.links {
        let delay = match link.name.as_str() {
            "bottleneck" => way - access,
            "back" => way,
            _ => access,
        };
        link.change(|direction| direction.delay = delay.into());
    }
    scenario
}

/// Returns the scenario with a receive window of `segments` segments for TCP flows and flow pairs. Flows without a
/// receive window are not changed.
pub(super) fn with_window(mut scenario: Scenario, segments: u64) -> Scenario {
    for flow in &mut scenario.flows {
        if let FlowKind::Tcp(tcp) | FlowKind::Pair(PairFlow { tcp, .. }) = &mut flow.kind {
            tcp.receive_window = tcp.receive_window.and(Some(segments));
        }
    }
    scenario
}

/// Returns the scenario in which `flows` replace all flows except the noise traffic. Each flow has its own access link.
pub(super) fn with_flows(mut scenario: Scenario, flows: Vec<Flow>) -> Scenario {
    let noise = scenario.flows.pop();
    let Some(access) = scenario.links.last().cloned() else { return scenario };
    let place = |(index, mut flow): (usize, Flow)| {
        flow.name = format!("flow {}", index + 1);
        if let Some(first) = flow.path.first_mut() {
            *first = scenario.links.len();
            let name = format!("access of flow {}", index + 1);
            scenario.links.push(equipoise_lab::scenario::Link { name, ..access.clone() });
        }
        flow
    };
    scenario.flows = flows.into_iter().enumerate().map(place).chain(noise).collect();
    scenario
}

/// Returns the scenario in which flow number `index` has the packet size, the kind and the RTCP settings of `like`.
pub(super) fn with_flow_like(mut scenario: Scenario, index: usize, like: &Flow) -> Scenario {
    if let Some(flow) = scenario.flows.get_mut(index) {
        flow.packet_size = like.packet_size;
        flow.kind = like.kind.clone();
        flow.rtcp = like.rtcp.clone();
    }
    scenario
}
