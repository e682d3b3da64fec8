//! Values that the paper computes from the rates: the fairness, and the three deviations of Tobe 1999, Sec. 6.2.

use super::setting::{AduSeen, Trace};
use equipoise_lab::result::PairTransport;
use equipoise_lab::statistics::jain;

/// An interval of a run: its start and its end, in seconds.
pub(super) type Stretch = (f64, f64);

/// Returns the mean rate of a flow in an interval, in bit/s.
pub(super) fn mean_rate(trace: &Trace, flow: usize, (from, to): Stretch) -> f64 {
    let rates = trace.rates.get(flow).map(Vec::as_slice).unwrap_or_default();
    let to = (to as usize).min(rates.len());
    let within = rates.get((from as usize).min(to)..to).unwrap_or_default();
    within.iter().sum::<f64>() / within.len() as f64
}

/// Computes the fairness among the flows `flows` in each second of an interval, and returns the mean.
pub(super) fn mean_fairness(trace: &Trace, flows: &[usize], (from, to): Stretch) -> f64 {
    let seconds = from.ceil() as usize..to.floor() as usize;
    let at = |second: usize| -> Vec<f64> {
        flows.iter().filter_map(|flow| trace.rates[*flow].get(second).copied()).collect()
    };
    let values: Vec<_> = seconds.map(|second| jain(&at(second))).filter(|value| value.is_finite()).collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the running periods of the flow pair, each with its start and end in seconds. The end of the run may cut the
/// last period.
pub(super) fn running_periods(trace: &Trace, end: f64) -> Vec<Stretch> {
    let starts = trace.began.iter().enumerate().filter(|(_, began)| began.over == PairTransport::Rtp);
    starts.map(|(place, began)| (began.at_s, trace.began.get(place + 1).map_or(end, |next| next.at_s))).collect()
}

/// Inter-arrival times of ADUs, in seconds: at switches between periods, within probing periods, and within running
/// periods.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Gaps {
    pub(super) at_switches: Vec<f64>,
    pub(super) probing: Vec<f64>,
    pub(super) running: Vec<f64>,
}

/// Computes the inter-arrival times of the ADUs that were delivered from `from` seconds on. If an ADU is the first of a
/// probing or running period, its inter-arrival time belongs to `at_switches`.
pub(super) fn gaps(trace: &Trace, from: f64) -> Gaps {
    let firsts: std::collections::BTreeSet<u64> = trace.began.iter().map(|began| began.first_adu).collect();
    let mut gaps = Gaps::default();
    for pair in trace.adus.windows(2).filter(|pair| pair[0].at_s >= from) {
        let [AduSeen { at_s: before, .. }, AduSeen { at_s: at, number, over }] = pair else { continue };
        let place = match over {
            _ if firsts.contains(number) => &mut gaps.at_switches,
            PairTransport::Tcp => &mut gaps.probing,
            PairTransport::Rtp => &mut gaps.running,
        };
        place.push(at - before);
    }
    gaps
}

/// The paper's three deviations of the flows' rates, in bit/s: one within a flow, two between flows (Tobe 1999, Sec.
/// 6.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Deviations {
    /// `δR_intra`: the range of a flow's rate in the steady state. The largest range of flows 1 to 3 counts.
    pub(super) intra: f64,
    /// `δR_ave1`: the largest difference between the mean rates of flows 1 to 3 in the steady state.
    pub(super) average: f64,
    /// `δR_ave2`: the largest difference between the mean rates of flows 1 to 4, from the time at which flow 4 reaches
    /// the rate of flow 1 or 2.
    pub(super) average_after: f64,
}

/// The steady state begins when flow 3 reaches the rate of flow 1 or 2. If flow 3 never reaches these rates, the steady
/// state begins when the rate of flow 3 has varied by less than 20 kbit/s for 10 s (Tobe 1999, Sec. 6.2).
const STEADY_BPS: f64 = 20_000.0;
const STEADY_S: usize = 10;

/// Computes the [`Deviations`] of the rates of flows 1 to 4 (indices 0 to 3). Flow 4 starts at second `change`. Returns
/// `None` if there is no steady state, or if flow 4 never reaches the rate of flow 1 or 2.
pub(super) fn deviations(rates: &[Vec<f64>], change: usize) -> Option<Deviations> {
    let [first, second, third, fourth] = rates else { return None };
    let reaches = |flow: &[f64], from: usize, to: usize| {
        (from..to).find(|&second_| flow[second_] >= first[second_] || flow[second_] >= second[second_])
    };
    let cross = reaches(third, 0, change).or_else(|| steady(third, change))?;
    let join = reaches(fourth, change, fourth.len())?;
    let mean = |flow: &[f64], from: usize, to: usize| flow[from..to].iter().sum::<f64>() / (to - from) as f64;
    let spread = |values: &[f64]| {
        values.iter().copied().fold(f64::MIN, f64::max) - values.iter().copied().fold(f64::MAX, f64::min)
    };
    let three = [first, second, third];
    let before: Vec<_> = three.iter().map(|flow| mean(flow, cross, change)).collect();
    let after: Vec<_> = rates.iter().map(|flow| mean(flow, join, flow.len())).collect();
    Some(Deviations {
        intra: three.iter().map(|flow| spread(&flow[cross..change])).fold(0.0, f64::max),
        average: spread(&before),
        average_after: spread(&after),
    })
}

/// Returns the first second before `end` at which the rate has been steady for `STEADY_S` seconds.
pub(super) fn steady(rates: &[f64], end: usize) -> Option<usize> {
    (STEADY_S..end).find(|&second| {
        let ten = &rates[second - STEADY_S..=second];
        let (low, high) = ten.iter().fold((f64::MAX, f64::MIN), |(low, high), rate| (low.min(*rate), high.max(*rate)));
        high - low < STEADY_BPS
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rate of flow 3 rises by 100 bit/s per second and reaches that of flow 2 in second 3. Flow 4 starts in second
    /// 8, and its rate reaches that of flow 2 in second 9.
    #[test]
    fn the_deviations_of_a_small_example() {
        let first = vec![500.0, 500.0, 500.0, 400.0, 500.0, 450.0, 450.0, 450.0, 300.0, 300.0];
        let second = vec![300.0; 10];
        let third = vec![0.0, 100.0, 200.0, 300.0, 350.0, 350.0, 350.0, 350.0, 350.0, 350.0];
        let fourth = vec![0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 250.0, 310.0];
        let found = deviations(&[first, second, third, fourth], 8).expect("a steady state");
        // From second 3 to 7, the rates of flows 1 to 3 have ranges of 100, 0 and 50 bit/s, and means of 450, 300 and
        // 340 bit/s. In second 9, the rates of all flows are from 300 to 350 bit/s.
        assert!((found.intra - 100.0).abs() < 1e-9 && (found.average - 150.0).abs() < 1e-9, "{found:?}");
        assert!((found.average_after - 50.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_flow_that_never_reaches_the_others_is_steady_where_it_stays() {
        let climbing: Vec<_> =
            (0..40).map(|second| if second < 15 { 10_000.0 * f64::from(second) } else { 150_000.0 }).collect();
        // From second 14 to 24, the rate has a range of 10 000 bit/s. From second 13 to 23, the range is 20 000 bit/s,
        // which is not below `STEADY_BPS`.
        assert_eq!(steady(&climbing, 40), Some(24));
        let others = vec![500_000.0; 40];
        let late: Vec<_> = (0..40).map(|second| if second < 30 { 0.0 } else { 600_000.0 }).collect();
        let found = deviations(&[others.clone(), others, climbing, late], 30).expect("a steady state");
        assert!((found.average - 350_000.0).abs() < 2000.0, "{found:?}");
    }
}
