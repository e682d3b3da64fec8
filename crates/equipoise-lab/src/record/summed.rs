//! Computes the results of all media, for the whole run and for each phase, from the recorded data.

use equipoise::units::Span;

use super::phases::{FlowState, MediaState, Segment};
use super::waits::Waits;
use crate::phases::steady::{BIN_S, Sharing, Steadiness};
use crate::phases::{Bottleneck, Phase};
use crate::result::{BottleneckResult, FairnessResult, MediaResult, PhaseFlowResult, PhaseResult, QueueingResult};
use crate::statistics::jain;

/// Number of 200 ms bins in the windows over which fairness is measured: 1, 5 and 20 s (RFC 8868, Sec. 3, metric 7).
const FAIRNESS_BINS: [usize; 3] = [5, 25, 100];

impl MediaState {
    /// Returns the results of all media in a run of length `lasted`.
    pub(super) fn result(&self, flows: &[FlowState], lasted: Span) -> MediaResult {
        let sums = Sums { state: self, flows, lasted };
        let media = || flows.iter().filter(|flow| flow.is_media());
        let sent: u64 = media().map(|flow| flow.packets_sent).sum();
        let received: u64 = media().map(|flow| flow.packets_received).sum();
        let bytes: u64 = media().map(|flow| flow.sent.as_bytes()).sum();
        let returned =
            media().filter_map(|flow| flow.returned).map(equipoise::units::Size::as_bytes).reduce(|a, b| a + b);
        let settled = |segment: &Segment| segment.is_settled;
        let phases = self.plan.phases.iter().enumerate().filter(|(_, phase)| phase.start < lasted);
        MediaResult {
            utilisation: sums.utilisation(settled),
            queueing: sums.queueing(settled),
            calm_queueing: sums.queueing(|segment| segment.is_settled && segment.is_calm),
            loss: ratio(sent.saturating_sub(received) as f64, sent as f64),
            tcp_ratio: sums.tcp_ratio(settled),
            feedback_share: returned.and_then(|returned| ratio(returned as f64, bytes as f64)),
            phases: phases.map(|(number, phase)| sums.phase(number, phase)).collect(),
        }
    }
}

/// The data from which the results are computed.
struct Sums<'a> {
    state: &'a MediaState,
    flows: &'a [FlowState],
    lasted: Span,
}

impl<'a> Sums<'a> {
    /// Returns the segments that `keep` selects and that started before the run ended, each with its index and its
    /// length in seconds.
    fn segments<'b>(&'b self, keep: impl Fn(&Segment) -> bool + 'b) -> impl Iterator<Item = (usize, &'b Segment, f64)> {
        let all = self.state.segments.iter().enumerate().filter(|(_, segment)| segment.start < self.lasted);
        let kept = all.filter(move |(_, segment)| keep(segment));
        kept.map(|(number, segment)| (number, segment, (segment.end.min(self.lasted) - segment.start).as_secs_f64()))
    }

    fn plan_of(&self, segment: &Segment) -> Option<&'a Phase> {
        self.state.plan.phases.get(segment.phase)
    }

    /// Returns the number of bits of media that passed a bottleneck in a segment, which is a part of a phase of the
    /// run.
    fn through(&self, bottleneck: &Bottleneck, segment: usize) -> f64 {
        let ways = bottleneck.ways.iter();
        ways.filter_map(|way| Some(self.flows.get(way.flow)?.received_bits(segment, Some(way.path)))).sum()
    }

    fn utilisation(&self, keep: impl Fn(&Segment) -> bool) -> Option<f64> {
        let (mut received, mut usable) = (0.0, 0.0);
        for (number, segment, length_s) in self.segments(keep) {
            for bottleneck in self.plan_of(segment).into_iter().flat_map(|phase| &phase.bottlenecks) {
                received += self.through(bottleneck, number);
                usable += bottleneck.usable_bps * length_s;
            }
        }
        ratio(received, usable)
    }

    fn queueing(&self, keep: impl Fn(&Segment) -> bool) -> Option<QueueingResult> {
        let waits = self.segments(keep).filter_map(|(number, ..)| self.state.waits.get(number)?.as_ref());
        Some(Waits::all(waits)?.result())
    }

    /// Returns the ratio of a media flow's mean throughput to a TCP connection's mean throughput, in those phases that
    /// have both kinds of flows.
    fn tcp_ratio(&self, keep: impl Fn(&Segment) -> bool) -> Option<f64> {
        // For media and for TCP: the received bits and the durations in seconds, both summed over flows and segments.
        let [mut media, mut tcp] = [[0.0; 2]; 2];
        for (number, segment, length_s) in self.segments(keep) {
            let Some(phase) = self.plan_of(segment).filter(|phase| !phase.media.is_empty() && !phase.tcp.is_empty())
            else {
                continue;
            };
            for (sums, flows) in [(&mut media, &phase.media), (&mut tcp, &phase.tcp)] {
                let bits = flows.iter().filter_map(|&flow| Some(self.flows.get(flow)?.received_bits(number, None)));
                sums[0] += bits.sum::<f64>();
                sums[1] += flows.len() as f64 * length_s;
            }
        }
        let mean = |[bits, seconds]: [f64; 2]| ratio(bits, seconds);
        ratio(mean(media)?, mean(tcp)?)
    }

    fn phase(&self, number: usize, phase: &Phase) -> PhaseResult {
        let of_phase = |segment: &Segment| segment.phase == number;
        let end = phase.end.min(self.lasted);
        let length_s = (end - phase.start).as_secs_f64();
        let media: Vec<_> = phase.media.iter().filter_map(|&flow| self.flows.get(flow)).collect();
        let flows: Vec<_> = media.iter().map(|flow| self.flow(flow, (number, phase), length_s)).collect();
        let throughputs: Vec<_> = flows.iter().map(|flow| flow.received_bps).collect();
        let converged: Option<Vec<_>> = flows.iter().map(|flow| flow.convergence_s).collect();
        let received: Vec<_> = media.iter().map(|flow| flow.received_bins.rates(number, end - phase.start)).collect();
        let capacities = || phase.bottlenecks.iter().map(|bottleneck| bottleneck.capacity_bps);
        PhaseResult {
            start_s: phase.start.as_secs_f64(),
            end_s: end.as_secs_f64(),
            capacity_bps: capacities().reduce(|sum, capacity| sum + capacity),
            utilisation: self.utilisation(of_phase),
            queueing: self.queueing(of_phase),
            convergence_s: converged.and_then(|times| times.into_iter().reduce(f64::max)),
            jain: (throughputs.len() > 1 && throughputs.iter().any(|rate| *rate > 0.0)).then(|| jain(&throughputs)),
            tcp_ratio: self.tcp_ratio(of_phase),
            bottlenecks: phase.bottlenecks.iter().map(|found| self.bottleneck(found, number, length_s)).collect(),
            fairness: FAIRNESS_BINS.iter().filter_map(|&bins| fairness(&received, bins)).collect(),
            flows,
        }
    }

    fn flow(&self, flow: &FlowState, (number, phase): (usize, &Phase), length_s: f64) -> PhaseFlowResult {
        let bits: f64 = self
            .segments(|segment| segment.phase == number)
            .map(|(segment, ..)| flow.received_bits(segment, None))
            .sum();
        let rates = flow.sent_bins.rates(number, phase.end.min(self.lasted) - phase.start);
        let Steadiness { settled_bps, convergence_s, cv, oscillations } = Steadiness::of(&rates);
        PhaseFlowResult {
            name: flow.name.clone(),
            received_bps: ratio(bits, length_s).unwrap_or(0.0),
            settled_bps,
            convergence_s,
            rate_cv: cv,
            oscillations,
        }
    }

    fn bottleneck(&self, found: &Bottleneck, number: usize, length_s: f64) -> BottleneckResult {
        let segments = self.segments(|segment| segment.phase == number);
        let received: f64 = segments.map(|(segment, ..)| self.through(found, segment)).sum();
        BottleneckResult {
            link: found.link.clone(),
            capacity_bps: found.capacity_bps,
            utilisation: ratio(received, found.usable_bps * length_s),
        }
    }
}

fn fairness(received: &[Vec<f64>], bins: usize) -> Option<FairnessResult> {
    let Sharing { windows, jain, ratio, fair_share } = Sharing::of(received, bins)?;
    Some(FairnessResult { window_s: bins as f64 * BIN_S, windows, jain, ratio, fair_share })
}

/// Returns the quotient; `None` if the divisor is zero.
fn ratio(dividend: f64, divisor: f64) -> Option<f64> {
    (divisor > 0.0).then(|| dividend / divisor)
}
