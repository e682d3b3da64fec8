use super::path::Seen;

/// How flows that share a bottleneck come to equal shares: by the queue they all see, and the capacity they all measure.
///
/// ```text
/// x = clamp(ln(C/r), 0, 1.8)                 own distance from having it all: ln N in equilibrium
/// z ← z + dt/(3 s) (clamp((dq - T)/s, 0, 1.8) - z)    what the queue says of it
/// B ← B exp(dt k u min(1, x/ln 2) (x - z))   and s x is added to the target
/// ```
///
/// The target of the queue, `T + s x`, is the same for all flows whatever their loops, and tells each how many share. The queue is slow to tell, and its pull goes by
/// `1/D²`; the own rate is known at once. So the difference goes by the own rate, with a pull of `k` that no round trip slows, and what is added to the queue is
/// `s ln N`. Where the capacity is not known nothing is added.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sharing {
    /// `z`.
    others: f64,
}

/// What sharing asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Share {
    /// By how much the queue's target is longer, in s.
    pub(super) longer_s: f64,
    /// 0 for a flow that has the bottleneck for itself, 1 from an equal share of two on.
    pub(super) shared: f64,
    /// What is added to the logarithm of the base rate with this report.
    pub(super) pull: f64,
}

/// `s`, in s, for a factor of e: three flows add 2.5 ms. More, and their queues do not keep the bars of the 95th percentile (4 ms: 34 for 30 ms); less is
/// lost in the noise of delays.
const LONGER_S: f64 = 2.3e-3;
/// ln 6: six flows of one bottleneck are told apart.
const MOST: f64 = 1.8;
/// `k`, in 1/s, from an equal share of two on: from 5 : 1 to 3 : 2 within some 5 s.
const PULL: f64 = 0.3;
/// What the queue says is taken over so long, in s: longer than the loop at its longest, so that the two do not meet.
const OTHERS_S: f64 = 3.0;
/// The most by which own rate and queue are taken to disagree.
const MOST_APART: f64 = 1.5;

impl Sharing {
    pub(super) const fn new() -> Self {
        Self { others: 0.0 }
    }

    /// Takes a report in a flow with the rate `rate_bps`, where gauges show `capacity_bps` and the target without sharing is `target_s`.
    pub(super) fn step(&mut self, seen: &Seen, capacity_bps: Option<f64>, (rate_bps, target_s): (f64, f64)) -> Share {
        let told = ((seen.least_s - target_s) / LONGER_S).clamp(0.0, MOST);
        self.others += (seen.elapsed_s / OTHERS_S).min(1.0) * (told - self.others);
        let Some(capacity_bps) = capacity_bps else { return Share::default() };
        let own = libm::log(capacity_bps / rate_bps.max(1.0)).clamp(0.0, MOST);
        let shared = (own / core::f64::consts::LN_2).min(1.0);
        let apart = (own - self.others).clamp(-MOST_APART, MOST_APART);
        // What is not used says nothing of a share.
        let is_used = rate_bps <= 1.5 * seen.received_bps + 20e3;
        let pull = if is_used { seen.elapsed_s * PULL * shared * seen.usage * apart } else { 0.0 };
        Share { longer_s: LONGER_S * own, shared, pull }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(queue_s: f64) -> Seen {
        Seen { elapsed_s: 0.05, least_s: queue_s, usage: 1.0, received_bps: 10e6, ..Seen::default() }
    }

    /// If it fails, a flow alone holds a longer queue than it needs.
    #[test]
    fn who_has_it_all_is_left_alone() {
        let mut sharing = Sharing::new();
        for _ in 0..200 {
            assert_eq!(sharing.step(&seen(0.004), Some(4e6), (4e6, 0.002)), Share::default());
        }
        assert_eq!(sharing.step(&seen(0.004), None, (1e6, 0.002)), Share::default(), "what is not known adds nothing");
    }

    /// Where the queue says N and the own rate says N, nothing pulls: equal shares, whatever the round trips. If it fails, shares depend on them.
    #[test]
    fn equal_shares_stand_still_and_others_come_together() {
        for flows in [2.0, 3.0, 5.0] {
            let queue_s = 0.002 + LONGER_S * libm::log(flows);
            let mut sharing = Sharing::new();
            for _ in 0..2000 {
                sharing.step(&seen(queue_s), Some(6e6), (6e6 / flows, 0.002));
            }
            let of = |rate_bps: f64| { sharing }.step(&seen(queue_s), Some(6e6), (rate_bps, 0.002));
            let equal = of(6e6 / flows);
            assert!(equal.pull.abs() < 1e-6 && (equal.longer_s - (queue_s - 0.002)).abs() < 1e-12, "{equal:?}");
            assert!(of(4e6 / flows).pull > 0.002 && of(7.5e6 / flows).pull < -0.0005, "{flows}");
        }
    }

    /// If it fails, a report can make the rate any number.
    #[test]
    fn odd_numbers_pull_within_bounds() {
        let mut sharing = Sharing::new();
        for (capacity_bps, rate_bps, queue_s) in
            [(1e18, 1.0, 1e9), (1.0, 1e12, -1e9), (1e6, 0.0, f64::INFINITY), (f64::MIN_POSITIVE, 1e6, 0.0)]
        {
            let share = sharing.step(&seen(queue_s), Some(capacity_bps), (rate_bps, 0.002));
            assert!(
                share.pull.abs() <= 0.05 * PULL * MOST_APART && (0.0..0.005).contains(&share.longer_s),
                "{share:?}"
            );
        }
    }
}
