//! The criteria by which a run over a random path is bad.

use equipoise::control::Equipoise;
use equipoise::units::{Rate, Span};
use serde::{Deserialize, Serialize};

use super::draw::Path;
use super::watch::{BIN, Watch, Watched, bins};

/// A reason why a run over a random path is bad.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Fault {
    /// A control law chose a rate above its maximum, or a rate below its minimum although no safety mechanism required
    /// the lower rate.
    OutsideLimits {
        /// The name of the flow.
        flow: String,
        /// Time of the first decision outside the limits, in seconds since the run's start.
        at_s: f64,
        /// The chosen rate, in bit/s.
        rate_bps: u64,
        /// The control law's reason for the rate.
        reason: String,
    },
    /// In a window of 2 s, a flow's sent rate was more than twice its delivered rate. The worst window is the one with
    /// the largest difference between these rates.
    Overload {
        /// The name of the flow.
        flow: String,
        /// End of the first window of 2 s in which the flow sent at more than twice its delivered rate, in seconds
        /// since the run's start.
        at_s: f64,
        /// Rate at which the flow sent in the window with the largest overload, in bit/s.
        sent_bps: f64,
        /// The flow's delivered rate in the window with the largest overload, in bit/s.
        delivered_bps: f64,
    },
    /// For at least 5 s, the minimum queueing delay over the preceding 5 s was above the target.
    StandingQueue {
        /// Start of the first standing queue, in seconds since the run's start.
        at_s: f64,
        /// Total duration of the standing queues, in seconds. During this time, all packets had a queueing delay above
        /// the target.
        lasted_s: f64,
        /// Queueing delay during the standing queues, in seconds. For each tenth of a second, the minimum delay is
        /// taken. This value is the mean of these minima.
        queue_s: f64,
        /// The target queueing delay at the end of the run, in seconds.
        target_s: f64,
    },
    /// From 30 s to the end, the fastest flow received more than 60 % of the total rate of the fastest and the slowest
    /// flow.
    Unequal {
        /// The name of the flow with the higher rate.
        more: String,
        /// The name of the flow with the lower rate.
        less: String,
        /// Share of the flow with the higher rate in the total rate of both flows.
        share: f64,
    },
}

/// Length of the windows in which the sent rate is compared with the delivered rate.
const COMPARED: Span = Span::from_secs(2);
/// Largest allowed ratio of the sent rate to the delivered rate.
const MOST_SENT: f64 = 2.0;
/// There is a standing queue if the queueing delays of all packets exceed the target for at least twice this time.
const STANDING: Span = Span::from_secs(5);
/// From this time after the run's start, the flows must have similar rates.
const EQUAL_FROM: Span = Span::from_secs(30);
/// Largest allowed share of one flow in the total rate of two flows.
const MOST_SHARE: f64 = 0.6;

impl Fault {
    /// Returns the kind of fault as in the results' JSON.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::OutsideLimits { .. } => "outside-limits",
            Self::Overload { .. } => "overload",
            Self::StandingQueue { .. } => "standing-queue",
            Self::Unequal { .. } => "unequal",
        }
    }

    /// Returns a description of the fault with its numbers.
    pub fn in_words(&self) -> String {
        let mbps = |bps: f64| bps / 1e6;
        match self {
            Self::OutsideLimits { flow, at_s, rate_bps, reason } => {
                format!("{flow} outside of its limits at {at_s:.1} s: {:.3} Mbit/s ({reason})", mbps(*rate_bps as f64))
            }
            Self::Overload { flow, at_s, sent_bps, delivered_bps } => format!(
                "{flow} overloads the path at {at_s:.1} s: {:.3} Mbit/s sent, {:.3} delivered",
                mbps(*sent_bps),
                mbps(*delivered_bps)
            ),
            Self::StandingQueue { at_s, lasted_s, queue_s, target_s } => format!(
                "a queue stands from {at_s:.1} s on, for {lasted_s:.1} s: {:.0} ms, target {:.0} ms",
                queue_s * 1e3,
                target_s * 1e3
            ),
            Self::Unequal { more, less, share } => {
                format!("{more} has {:.0} % of what it and {less} have", share * 100.0)
            }
        }
    }
}

/// Returns the faults of a run, always in the same order of kinds.
pub(super) fn faults(path: &Path, watch: &Watch) -> Vec<Fault> {
    let named = || watch.flows.iter().enumerate().map(|(place, flow)| (Path::flow_name(place), flow));
    let outside = named().filter_map(|(flow, watched)| {
        let found = watched.outside?;
        Some(Fault::OutsideLimits {
            flow,
            at_s: found.at.as_secs_f64(),
            rate_bps: found.rate.as_bps(),
            reason: found.reason.to_owned(),
        })
    });
    let started = named().zip(&path.starts);
    let overloads = started.filter_map(|((flow, watched), start)| overload(flow, watched, *start));
    let targets: Vec<_> =
        (0..bins()).map(|bin| target_s(path, Span::from_nanos(bin as i64 * BIN.as_nanos()))).collect();
    let waits: Vec<_> = watch.least_waits_s().collect();
    outside.chain(overloads).chain(standing_queue(&waits, &targets)).chain(unequal(&watch.flows)).collect()
}

/// Returns the target queueing delay of the bottleneck at the time `at`, in seconds. It is the highest target of our
/// control law for a flow that has an equal share of the capacity and is as old as the newest flow. Other control laws
/// are judged by the same target.
pub(super) fn target_s(path: &Path, at: Span) -> f64 {
    let started = path.starts.iter().filter(|start| **start <= at);
    let (count, youngest) = started.fold((0u64, Span::ZERO), |(count, last), start| (count + 1, last.max(*start)));
    let share = Rate::from_bps(path.capacity.as_bps() / count.max(1));
    Equipoise::most_queue(share, at - youngest).as_secs_f64()
}

/// Returns the fault if a flow sent more than twice what was delivered, in any window of 2 s after its start.
fn overload(flow: String, watched: &Watched, start: Span) -> Option<Fault> {
    let length = usize::try_from((COMPARED / BIN)?).ok()?;
    let skipped = usize::try_from((start / BIN)?).ok()?;
    let rate = |bins: &[u64]| bins.iter().sum::<u64>() as f64 * 8.0 / COMPARED.as_secs_f64();
    let windows = watched.sent.windows(length).zip(watched.delivered.windows(length));
    let rates =
        windows.enumerate().skip(skipped).map(|(place, (sent, delivered))| (place, rate(sent), rate(delivered)));
    let too_much: Vec<_> = rates.filter(|(_, sent, delivered)| *sent > MOST_SENT * delivered).collect();
    let (first, ..) = *too_much.first()?;
    let in_vain = |(_, sent, delivered): &&(usize, f64, f64)| sent - delivered;
    let worst = too_much.iter().max_by(|one, other| in_vain(one).total_cmp(&in_vain(other)))?;
    let &(_, sent_bps, delivered_bps) = worst;
    Some(Fault::Overload { flow, at_s: seconds(first + length), sent_bps, delivered_bps })
}

/// Returns the length of a number of bins, in seconds.
fn seconds(bins: usize) -> f64 {
    Span::from_nanos(bins as i64 * BIN.as_nanos()).as_secs_f64()
}

/// Returns the fault if there was a standing queue: for at least 10 s, the delays of all packets exceeded the target.
fn standing_queue(waits: &[Option<f64>], targets: &[f64]) -> Option<Fault> {
    let least = usize::try_from((STANDING / BIN)?).ok()? * 2;
    let above: Vec<_> =
        waits.iter().zip(targets).map(|(wait, target)| wait.is_none_or(|wait| wait > *target)).collect();
    let (mut first, mut lasted, mut waited, mut counted) = (None, 0usize, 0.0, 0u32);
    let mut start = 0;
    for run in above.chunk_by(|one, other| one == other) {
        let end = start + run.len();
        let seen = waits.get(start..end).unwrap_or_default();
        // A bin without packets does not end a standing queue. But packets must have arrived in the first bin of the
        // queue, and in more than half of its bins.
        let has_told = seen.first().is_some_and(Option::is_some) && seen.iter().flatten().count() * 2 > seen.len();
        if run.first() == Some(&true) && run.len() >= least && has_told {
            first = first.or(Some(start));
            lasted += run.len();
            waited += seen.iter().flatten().sum::<f64>();
            counted += u32::try_from(seen.iter().flatten().count()).unwrap_or(0);
        }
        start = end;
    }
    Some(Fault::StandingQueue {
        at_s: seconds(first?),
        lasted_s: seconds(lasted),
        queue_s: waited / f64::from(counted),
        target_s: *targets.last()?,
    })
}

/// Returns the rate that arrived from 30 s on, divided by the capacity of the path. Before that time, flows may still
/// be increasing their rates.
pub(super) fn late_utilisation(path: &Path, watch: &Watch) -> f64 {
    let from = (EQUAL_FROM / BIN).and_then(|bins| usize::try_from(bins).ok()).unwrap_or(0);
    let bytes: u64 = watch.flows.iter().flat_map(|flow| flow.delivered.iter().skip(from)).sum();
    let most = path.capacity.as_bps_f64() * seconds(bins().saturating_sub(from));
    bytes as f64 * 8.0 / most.max(1.0)
}

/// Returns the fault if the rates of the fastest and the slowest flow differ too much.
fn unequal(flows: &[Watched]) -> Option<Fault> {
    let from = usize::try_from((EQUAL_FROM / BIN)?).ok()?;
    let had = |flow: &Watched| flow.delivered.iter().skip(from).sum::<u64>() as f64;
    let by_had = |one: &(usize, f64), other: &(usize, f64)| one.1.total_cmp(&other.1);
    let all = || flows.iter().map(had).enumerate();
    let (most, least) = (all().max_by(by_had)?, all().min_by(by_had)?);
    let share = most.1 / (most.1 + least.1);
    (share > MOST_SHARE).then(|| Fault::Unequal {
        more: Path::flow_name(most.0),
        less: Path::flow_name(least.0),
        share,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(sent: &[u64], delivered: &[u64]) -> Watched {
        let filled = |given: &[u64]| (0..bins()).map(|bin| given[bin * given.len() / bins()]).collect();
        Watched { sent: filled(sent), delivered: filled(delivered), outside: None }
    }

    #[test]
    fn twice_of_what_is_delivered_may_be_sent_and_no_more_for_two_seconds() {
        let name = || "F1".to_owned();
        assert_eq!(overload(name(), &flow(&[2000], &[1000]), Span::ZERO), None);
        let found = overload(name(), &flow(&[1000, 2001, 1000], &[1000]), Span::ZERO).expect("too much");
        let Fault::Overload { at_s, sent_bps, delivered_bps, .. } = found else { panic!("an overload") };
        assert!((at_s - 17.0).abs() < 1e-9, "the first 2 s after 15 s: {at_s}");
        assert!((sent_bps - 160_080.0).abs() < 1e-6 && (delivered_bps - 80_000.0).abs() < 1e-6);
        let mut short = flow(&[1000], &[1000]);
        short.sent[100..119].fill(2000);
        assert_eq!(overload(name(), &short, Span::ZERO), None, "1.9 s");
        let first = flow(&[9000, 1000, 1000], &[1000]);
        assert_eq!(overload(name(), &first, Span::from_secs(15)), None, "before the start nothing is compared");
    }

    #[test]
    fn a_queue_stands_where_no_packet_waits_less_for_ten_seconds() {
        let targets = vec![0.02; 450];
        let mut waits = vec![Some(0.0); 450];
        waits[100..199].fill(Some(0.05));
        assert_eq!(standing_queue(&waits, &targets), None, "9.9 s");
        waits[199] = Some(0.05);
        waits[150] = None;
        let found = standing_queue(&waits, &targets).expect("it stands");
        let Fault::StandingQueue { at_s, lasted_s, queue_s, .. } = found else { panic!("a queue") };
        assert!((at_s - 10.0).abs() < 1e-9 && (lasted_s - 10.0).abs() < 1e-9 && (queue_s - 0.05).abs() < 1e-12);
        waits[150] = Some(0.02);
        assert_eq!(standing_queue(&waits, &targets), None, "one packet that did not wait");
        assert_eq!(standing_queue(&vec![None; 450], &targets), None, "nothing arrives");
    }

    #[test]
    fn of_three_flows_the_two_that_are_the_least_equal_are_named() {
        let of = |shares: &[u64]| unequal(&shares.iter().map(|share| flow(&[0], &[*share])).collect::<Vec<_>>());
        assert_eq!(of(&[1000]), None);
        assert_eq!(of(&[600, 400]), None);
        let found = of(&[500, 590, 390]).expect("590 to 390");
        let Fault::Unequal { more, less, share } = found else { panic!("unequal") };
        assert_eq!((more.as_str(), less.as_str()), ("F2", "F3"));
        assert!((share - 590.0 / 980.0).abs() < 1e-12);
        assert!(of(&[100, 0]).is_some(), "a flow that has nothing");
        let early = [flow(&[0], &[900, 900, 500]), flow(&[0], &[100, 100, 500])];
        assert_eq!(unequal(&early), None, "what was before 30 s does not count");
    }

    /// The expected target of the queueing delay is the sum of two parts. The first part is 5 ms divided by the flow's
    /// equal share of the capacity in Mbit/s. For a new flow, the first part is multiplied by 1.8. The second part is
    /// 12 ms, for noisy delays.
    #[test]
    fn the_target_is_that_of_an_equal_share() {
        let path =
            Path { capacity: Rate::from_bps(2_000_000), starts: vec![Span::ZERO, Span::from_secs(4)], ..Path::draw(1) };
        for (at_s, expected_ms) in [(0, 16.5), (4, 21.0), (10_000, 17.0)] {
            let found = target_s(&path, Span::from_secs(at_s)) * 1e3;
            assert!((found - expected_ms).abs() < 1e-6, "{at_s} s: {found} ms");
        }
    }
}
