//! Computes the measures to which bars (pass criteria) apply, from the media packets and the results of a run.

use equipoise::units::Span;
use equipoise_session::Event;

use super::super::series::Watch;
use crate::phases;
use crate::record::Waits;
use crate::result::{FlowResult, Run};
use crate::scenario::Scenario;
use crate::sim::RunObserver;
use crate::statistics::jain;

/// A quantity of a run. Times are in seconds since the start of the run. Rates are those at the receivers, in bit/s of
/// IP packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Measure {
    /// Share of the usable capacity that media received, for each bottleneck in each phase. Each phase is measured from
    /// [`SETTLING_S`] after its start.
    ByPhase,
    /// Rate that one flow received in a time range, relative to the usable capacity of the flow's bottleneck.
    Used { flow: usize, from_s: f64, until_s: f64 },
    /// Share of the usable capacity that all media received in the whole run.
    UsedInAll,
    /// Mean queueing delay, in seconds.
    QueueMean,
    /// 95th percentile of the queueing delays, in seconds.
    QueueP95,
    /// 95th percentile of the queueing delays of the packets that arrived until `until_s`, in seconds.
    QueueP95Until { until_s: f64 },
    /// Share of lost packets among the media packets sent from second `from_s` of the run on.
    Loss { from_s: u32 },
    /// Time from `at_s`, in seconds, until the flow's received rate first reaches `rate_bps`. The received rate is the
    /// mean over the preceding `window_s`. The value is `most_s` if the flow does not reach `rate_bps` within `most_s`.
    Reached { flow: usize, at_s: f64, window_s: f64, rate_bps: f64, most_s: f64 },
    /// Jain's index of the rates of these flows in a time range.
    Jain { flows: &'static [usize], from_s: f64, until_s: f64 },
    /// Ratio of the largest to the smallest rate among the media flows, in a time range.
    Spread { from_s: f64, until_s: f64 },
    /// Rate of all media together in a time range, relative to `over_bps`.
    Rate { from_s: f64, until_s: f64, over_bps: f64 },
    /// Whether the queue becomes short again after `at_s`. The value is 1 if, in some second of the `within_s` seconds
    /// after `at_s`, the 95th percentile of the queueing delays is at most `p95_s`. Otherwise the value is 0.
    CalmAgain { at_s: f64, within_s: f64, p95_s: f64 },
    /// Rate of all media together in a time range, as a share of the rate that web traffic leaves: the capacity minus
    /// the goodput of web traffic.
    BesideWeb { from_s: f64, until_s: f64, capacity_bps: f64 },
    /// 1 if the video of any flow froze for longer than a second, else 0.
    Frozen,
    /// Mean duration of a fetch of web traffic, in seconds.
    Fetch,
    /// 95th percentile of the delays of a flow's video frames, averaged over the flows, in seconds. The delay of a
    /// frame is the time from its capture until the frame is complete at the receiver.
    Frames,
}

/// Length of the settling time at the start of each phase, in seconds. In this time, the control law adapts to the new
/// capacity, and the share of the capacity is not measured.
pub(super) const SETTLING_S: f64 = 3.0;
/// Minimum length of a phase after its settling time, in seconds. In shorter phases, no share of the capacity is
/// computed.
const LEAST_S: f64 = 1.0;
/// Resolution of the time until a rate is reached, in seconds.
const STEP_S: f64 = 0.01;

impl Measure {
    /// Whether each value of the measure is 0 or 1, so that the mean is a share of runs.
    pub(super) const fn is_share(self) -> bool {
        matches!(self, Self::CalmAgain { .. } | Self::Frozen)
    }
}

/// Observes a run and records every packet of media or of background traffic that arrives.
#[derive(Debug, Default)]
pub(super) struct Packets {
    pub(super) watch: Watch,
    flows: Vec<Arrivals>,
}

/// The packets that arrived on one flow, in order of time.
#[derive(Debug, Default)]
struct Arrivals {
    packets: Vec<Arrival>,
    /// Queueing delay of the packet that has just arrived. It is kept until the packet's event shows whether the packet
    /// was media.
    waited: Span,
}

#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: Span,
    bits: u32,
    waited_us: u32,
}

impl RunObserver for Packets {
    fn on_event(&mut self, at: Span, flow: usize, event: &Event) {
        if let Event::MediaReceived { size, .. } = event {
            let flow = self.flow(flow);
            let waited_us = u32::try_from(flow.waited.as_nanos() / 1000).unwrap_or(u32::MAX);
            let bits = u32::try_from(size.as_bits()).unwrap_or(u32::MAX);
            flow.packets.push(Arrival { at, bits, waited_us });
        }
        self.watch.on_event(at, flow, event);
    }

    fn on_waited(&mut self, at: Span, flow: usize, waited: Span) {
        self.flow(flow).waited = waited;
        self.watch.on_waited(at, flow, waited);
    }
}

impl Packets {
    fn flow(&mut self, number: usize) -> &mut Arrivals {
        if number >= self.flows.len() {
            self.flows.resize_with(number + 1, Arrivals::default);
        }
        &mut self.flows[number]
    }

    /// Removes the packets of all flows without a controller, such as background traffic.
    pub(super) fn keep_media(&mut self, run: &Run) {
        let is_media = |number: usize| run.flows.get(number).is_some_and(|flow| flow.controller.is_some());
        let others = self.flows.iter_mut().enumerate().filter(|(number, _)| !is_media(*number));
        others.for_each(|(_, flow)| flow.packets.clear());
    }

    /// Returns the packets of a flow that arrived after `from_s` and no later than `until_s`.
    fn between(&self, flow: usize, from_s: f64, until_s: f64) -> &[Arrival] {
        let packets = self.flows.get(flow).map_or(&[][..], |flow| &flow.packets);
        let place = |at_s: f64| packets.partition_point(|packet| packet.at.as_secs_f64() <= at_s);
        packets.get(place(from_s)..place(until_s)).unwrap_or_default()
    }

    /// Returns the mean rate at which a flow's packets arrived in a time range, in bit/s.
    fn rate_bps(&self, flow: usize, from_s: f64, until_s: f64) -> f64 {
        let bits: f64 = self.between(flow, from_s, until_s).iter().map(|packet| f64::from(packet.bits)).sum();
        bits / (until_s - from_s).max(f64::MIN_POSITIVE)
    }

    /// Returns the mean rate at which the packets of all flows together arrived in a time range, in bit/s.
    fn all_bps(&self, from_s: f64, until_s: f64) -> f64 {
        (0..self.flows.len()).map(|flow| self.rate_bps(flow, from_s, until_s)).sum()
    }

    /// Returns the 95th percentile of the queueing delays of all media packets that arrived in a time range, in
    /// seconds; `None` if no packet arrived.
    fn p95_s(&self, from_s: f64, until_s: f64) -> Option<f64> {
        let mut waits = Waits::default();
        let packets = (0..self.flows.len()).flat_map(|flow| self.between(flow, from_s, until_s));
        packets.for_each(|packet| waits.push(Span::from_micros(i64::from(packet.waited_us))));
        waits.result().p95_s
    }

    /// Returns the time in seconds from `at_s` to the end of the first window in which the flow received at least
    /// `rate_bps`. Returns `most_s` if no such window ends within `most_s` seconds after `at_s`.
    fn reached_s(&self, flow: usize, at_s: f64, (window_s, rate_bps): (f64, f64), most_s: f64) -> f64 {
        let steps = ((most_s - window_s) / STEP_S).max(0.0) as u32;
        let ends = (0..=steps).map(|step| window_s + f64::from(step) * STEP_S);
        let is_reached = |end: &f64| self.rate_bps(flow, at_s + end - window_s, at_s + end) >= rate_bps;
        ends.into_iter().find(is_reached).unwrap_or(most_s)
    }

    /// Whether the 95th percentile of the queueing delays is at most `p95_s` in at least one window of 1 s. The windows
    /// start every 0.1 s from `at_s` on, and end within `within_s` after `at_s`.
    fn is_calm_again(&self, at_s: f64, within_s: f64, p95_s: f64) -> bool {
        let steps = ((within_s - 1.0) * 10.0).max(0.0) as u32;
        let mut ends = (0..=steps).map(|step| at_s + 1.0 + f64::from(step) / 10.0);
        ends.any(|end| self.p95_s(end - 1.0, end).is_some_and(|found| found <= p95_s))
    }
}

/// Returns the values of a measure in a run: one value, or one for each bottleneck and phase. The result is empty if
/// the run has no value of the measure.
pub(super) fn of(measure: Measure, scenario: &Scenario, run: &Run, packets: &Packets) -> Vec<f64> {
    let one = |value: Option<f64>| value.filter(|value| value.is_finite()).into_iter().collect();
    let media = run.media.as_ref();
    match measure {
        Measure::ByPhase => by_phase(scenario, packets),
        Measure::Used { flow, from_s, until_s } => one(used(scenario, packets, flow, (from_s, until_s))),
        Measure::UsedInAll => one(media.and_then(|media| media.utilisation)),
        Measure::QueueMean => one(media.and_then(|media| media.queueing?.mean_s)),
        Measure::QueueP95 => one(media.and_then(|media| media.queueing?.p95_s)),
        Measure::QueueP95Until { until_s } => one(packets.p95_s(-1.0, until_s)),
        Measure::Loss { from_s: 0 } => one(media.and_then(|media| media.loss)),
        Measure::Loss { from_s } => one(loss(packets, from_s)),
        Measure::Reached { flow, at_s, window_s, rate_bps, most_s } => {
            one(Some(packets.reached_s(flow, at_s, (window_s, rate_bps), most_s)))
        }
        Measure::Jain { flows, from_s, until_s } => {
            let rates: Vec<_> = flows.iter().map(|&flow| packets.rate_bps(flow, from_s, until_s)).collect();
            one(Some(jain(&rates)))
        }
        Measure::Spread { from_s, until_s } => one(spread(packets, from_s, until_s)),
        Measure::Rate { from_s, until_s, over_bps } => one(Some(packets.all_bps(from_s, until_s) / over_bps)),
        Measure::CalmAgain { at_s, within_s, p95_s } => {
            one(Some(f64::from(u8::from(packets.is_calm_again(at_s, within_s, p95_s)))))
        }
        Measure::BesideWeb { from_s, until_s, capacity_bps } => {
            let goodput = run.flows.iter().find_map(|flow| flow.tcp.as_ref()?.goodput_bps);
            one(goodput.map(|goodput| packets.all_bps(from_s, until_s) / (capacity_bps - goodput)))
        }
        Measure::Frozen => {
            let longest = videos(run).map(|frames| frames.longest_freeze_s).reduce(f64::max);
            one(longest.map(|longest| f64::from(u8::from(longest > 1.0))))
        }
        Measure::Fetch => one(run.flows.iter().find_map(|flow| flow.tcp.as_ref()?.web?.time.mean_s)),
        Measure::Frames => {
            let found: Vec<_> = videos(run).filter_map(|frames| frames.delay.p95_s).collect();
            one((!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64))
        }
    }
}

fn videos(run: &Run) -> impl Iterator<Item = crate::result::FramesResult> {
    run.flows.iter().filter_map(|flow: &FlowResult| flow.video)
}

/// Returns the share of the usable capacity that media received, for each bottleneck in each phase that is long enough.
fn by_phase(scenario: &Scenario, packets: &Packets) -> Vec<f64> {
    let Some(plan) = phases::Plan::new(scenario) else { return Vec::new() };
    let of_phase = |phase: &phases::Phase| {
        let (from_s, until_s) = (phase.start.as_secs_f64() + SETTLING_S, phase.end.as_secs_f64());
        let bottlenecks = phase.bottlenecks.iter().filter(|_| until_s - from_s >= LEAST_S);
        let share = |found: &phases::Bottleneck| {
            let received: f64 = found.ways.iter().map(|way| packets.rate_bps(way.flow, from_s, until_s)).sum();
            received / found.usable_bps
        };
        bottlenecks.filter(|found| found.usable_bps > 0.0).map(share).collect::<Vec<_>>()
    };
    plan.phases.iter().flat_map(of_phase).collect()
}

/// Returns the rate that a flow received in a time range, relative to the usable capacity of the flow's bottleneck. In
/// a phase with several bottlenecks, the one with the least usable capacity counts.
fn used(scenario: &Scenario, packets: &Packets, flow: usize, (from_s, until_s): (f64, f64)) -> Option<f64> {
    let plan = phases::Plan::new(scenario)?;
    let usable = |phase: &phases::Phase| {
        let shared = phase.end.as_secs_f64().min(until_s) - phase.start.as_secs_f64().max(from_s);
        let passed = phase.bottlenecks.iter().filter(|found| found.ways.iter().any(|way| way.flow == flow));
        shared.max(0.0) * passed.map(|found| found.usable_bps).reduce(f64::min).unwrap_or(0.0)
    };
    let usable: f64 = plan.phases.iter().map(usable).sum();
    (usable > 0.0).then(|| packets.rate_bps(flow, from_s, until_s) * (until_s - from_s) / usable)
}

/// Returns the share of lost packets among the media packets that were sent from second `from_s` on.
fn loss(packets: &Packets, from_s: u32) -> Option<f64> {
    let flows = packets.watch.flows().iter().map(|flow| flow.sent_and_arrived(from_s as usize));
    let (sent, arrived) = flows.fold((0, 0), |all: (u64, u64), of| (all.0 + of.0, all.1 + of.1));
    (sent > 0).then(|| sent.saturating_sub(arrived) as f64 / sent as f64)
}

fn spread(packets: &Packets, from_s: f64, until_s: f64) -> Option<f64> {
    let media =
        (0..packets.flows.len()).filter(|&flow| packets.flows.get(flow).is_some_and(|it| !it.packets.is_empty()));
    let rates: Vec<_> = media.map(|flow| packets.rate_bps(flow, from_s, until_s)).collect();
    let (largest, smallest) = (rates.iter().copied().reduce(f64::max)?, rates.iter().copied().reduce(f64::min)?);
    (smallest > 0.0).then(|| largest / smallest)
}
