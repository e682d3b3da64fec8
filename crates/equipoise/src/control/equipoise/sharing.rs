use super::delay::Situation;
use super::path::Seen;
use super::standing::USUAL_PACKET_S;

/// Pulls flows that share a bottleneck towards equal rates.
///
/// Each flow estimates the logarithm of the number of flows in two ways: `z` follows from the length of the queue, and
/// `x` follows from the flow's own share of the measured capacity. `k` is `PULL`, `u` is `Seen::usage`, and `τ` is
/// `OTHERS_S`. The table of [`Equipoise`](super::Equipoise) explains the other symbols.
///
/// ```text
/// x = clamp(ln(p C/r), 0, 1.8)                        by the own rate; ln N in equilibrium
/// s = 1.8 ms + 0.2 jp + 0.6 (t - 7.5 ms)+
/// z ← z + dt/τ (clamp((dp - T)/s, -1, 2.8) - z)       by the queue
/// B ← B exp(dt k u min(1, x/ln 2) (x - clamp(z, 0, 1.8)))
///                                                     and the queue's target becomes T + s x
/// ```
///
/// Two pulls move the rates of the flows together:
/// - A slower flow has a longer target `T + s x`. This pull is slow on long paths, because its strength is proportional
///   to `1/D²`.
/// - The gain `k` raises or lowers the base rate until `x` and `z` are equal. This pull does not depend on the round
///   trip, because a flow knows its own rate at once.
///
/// In equilibrium, the target is `s ln N` longer than without sharing. A flow of the priority `p` counts as `p` flows.
/// If the capacity is unknown, the target is `T`, and there is no pull with the gain `k`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sharing {
    /// `z`.
    others: f64,
}

/// The result of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Share {
    /// The addition to the queue's target, in s.
    pub(super) longer_s: f64,
    /// The addition to the logarithm of the base rate, which is the law's rate without its short-term corrections.
    pub(super) pull: f64,
}

/// In equilibrium, N flows lengthen the target of the queue by `s ln N`, where `s` is a time in seconds. On a fast link
/// without jitter, `s` is `LONGER_S`, so three flows lengthen the target by 2 ms. If `LONGER_S` is 4 ms, queues exceed
/// the limit of our test suite (34 ms instead of 30 ms at the 95th percentile). If `LONGER_S` is less than 1.8 ms, the
/// effect is lost in the noise of delays. Jitter makes this noise larger, so `s` is longer by `BY_JITTER` times the
/// jitter.
///
/// On a slow link, each packet of another flow lengthens the queue by its transmission time. A single packet must not
/// count as a further flow. Therefore, if the transmission time exceeds [`USUAL_PACKET_S`], `s` is longer by
/// `BY_PACKET` times the excess.
const LONGER_S: f64 = 1.8e-3;
const BY_JITTER: f64 = 0.2;
const BY_PACKET: f64 = 0.6;
/// Upper limit of `x` and of `z`, the two estimates of the logarithm of the number of flows. It is ln 6, so that more
/// than six flows count as six.
const MOST: f64 = 1.8;
/// `k`, in 1/s: how fast two or more flows that share a bottleneck are pulled towards equal rates. With a
/// value of 1, the queues of several flows exceed the limit of our test suite.
const PULL: f64 = 0.6;
/// Time constant, in s, of `z`, the logarithm of the number of flows as estimated from the queue. It is longer than
/// usual loop delays, so that the pull to equal rates and the control of the queue do not oscillate together.
const OTHERS_S: f64 = 3.0;
/// From the queue, each report gives an estimate of the logarithm of the number of flows. This estimate is limited to
/// the range from `-BEYOND` to `MOST + BEYOND`. `z`, the smoothed mean of the estimates, is used within the range from
/// 0 to `MOST`. If each estimate were limited to this narrower range, a varying queue would move `z` towards the middle
/// of the range, and the rates of flows with unequal round trips would differ more.
const BEYOND: f64 = 1.0;
/// Maximum difference between `x` and `z` that counts; a larger difference is limited to this value. `x` and `z` are
/// two estimates of the logarithm of the number of flows: `x` from the flow's own rate, and `z` from the queue.
const MOST_APART: f64 = 1.5;

impl Sharing {
    pub(super) const fn new() -> Self {
        Self { others: 0.0 }
    }

    /// Applies a report.
    pub(super) fn step(&mut self, seen: &Seen, situation: &Situation) -> Share {
        let Situation { target_s, rate_bps, packet_s, weighted_bps, .. } = *situation;
        let longer_s = LONGER_S + BY_JITTER * seen.paired_jitter_s + BY_PACKET * (packet_s - USUAL_PACKET_S).max(0.0);
        let told = ((seen.paired_s - target_s) / longer_s).clamp(-BEYOND, MOST + BEYOND);
        self.others += (seen.elapsed_s / OTHERS_S).min(1.0) * (told - self.others);
        let Some(weighted_bps) = weighted_bps else { return Share::default() };
        let own = libm::log(weighted_bps / rate_bps.max(1.0)).clamp(0.0, MOST);
        let shared = (own / core::f64::consts::LN_2).min(1.0);
        let apart = (own - self.others.clamp(0.0, MOST)).clamp(-MOST_APART, MOST_APART);
        // If the flow does not use its rate, the rate does not show which share of the capacity the flow takes.
        let is_used = rate_bps <= 1.5 * seen.received_bps + 20e3;
        let pull = if is_used { seen.elapsed_s * PULL * shared * seen.usage * apart } else { 0.0 };
        Share { longer_s: longer_s * own, pull }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn situation(weighted_bps: Option<f64>, rate_bps: f64) -> Situation {
        Situation { weighted_bps, rate_bps, target_s: 0.002, ..Situation::default() }
    }

    fn seen(queue_s: f64) -> Seen {
        Seen { elapsed_s: 0.05, paired_s: queue_s, usage: 1.0, received_bps: 10e6, ..Seen::default() }
    }

    /// If this test fails, a flow that is alone holds a longer queue than it needs.
    #[test]
    fn a_flow_that_has_the_whole_capacity_is_not_changed() {
        let mut sharing = Sharing::new();
        for _ in 0..200 {
            assert_eq!(sharing.step(&seen(0.004), &situation(Some(4e6), 4e6)), Share::default());
        }
        assert_eq!(
            sharing.step(&seen(0.004), &situation(None, 1e6)),
            Share::default(),
            "an unknown capacity adds nothing"
        );
    }

    /// If this test fails, flows of equal rates move apart, or flows of unequal rates do not approach each other.
    #[test]
    fn equal_shares_stay_and_unequal_ones_approach_each_other() {
        for flows in [2.0, 3.0, 5.0] {
            let queue_s = 0.002 + LONGER_S * libm::log(flows);
            let mut sharing = Sharing::new();
            for _ in 0..2000 {
                sharing.step(&seen(queue_s), &situation(Some(6e6), 6e6 / flows));
            }
            let of = |rate_bps: f64| { sharing }.step(&seen(queue_s), &situation(Some(6e6), rate_bps));
            let equal = of(6e6 / flows);
            assert!(equal.pull.abs() < 1e-6 && (equal.longer_s - (queue_s - 0.002)).abs() < 1e-12, "{equal:?}");
            assert!(of(4e6 / flows).pull > 0.002 && of(7.5e6 / flows).pull < -0.0005, "{flows}");
        }
    }

    /// If this test fails, flows of unequal round trips have unequal rates on links whose queue varies.
    #[test]
    fn a_queue_that_varies_counts_as_its_mean() {
        let (mut sharing, mean_s) = (Sharing::new(), 0.002 + LONGER_S * 1.6);
        for report in 0..2000 {
            let swing_s = if report % 2 == 0 { LONGER_S } else { -LONGER_S };
            sharing.step(&seen(mean_s + swing_s), &situation(None, 1e6));
        }
        assert!((sharing.others - 1.6).abs() < 0.02, "{}", sharing.others);
    }

    /// If this test fails, flows on a path with jitter mistake the noise of the delays for further flows, and leave
    /// capacity unused.
    #[test]
    fn with_jitter_the_same_number_of_flows_holds_a_longer_queue() {
        let others = |queue_s: f64, paired_jitter_s: f64| {
            let mut sharing = Sharing::new();
            for _ in 0..2000 {
                sharing.step(&Seen { paired_jitter_s, ..seen(queue_s) }, &situation(Some(6e6), 3e6));
            }
            (
                sharing.others,
                sharing.step(&Seen { paired_jitter_s, ..seen(queue_s) }, &situation(Some(6e6), 3e6)).longer_s,
            )
        };
        let two = core::f64::consts::LN_2;
        let rough_s = LONGER_S + BY_JITTER * 0.006;
        let (even, rough) = (others(0.002 + LONGER_S * two, 0.0), others(0.002 + rough_s * two, 0.006));
        assert!((even.0 - two).abs() < 1e-6 && (rough.0 - two).abs() < 1e-6, "{even:?} {rough:?}");
        assert!((rough.1 - even.1 - BY_JITTER * 0.006 * two).abs() < 1e-9, "{even:?} {rough:?}");
    }

    /// A single packet of another flow is a long queue on a slow link. If the test fails, a flow counts this packet as
    /// a further flow.
    #[test]
    fn on_a_slow_link_the_same_number_of_flows_holds_a_longer_queue() {
        let longer_s = |packet_s: f64| {
            let slow = Situation { packet_s, ..situation(Some(0.3e6), 0.1e6) };
            Sharing::new().step(&seen(0.0), &slow).longer_s
        };
        let three = libm::log(3.0);
        assert!((longer_s(USUAL_PACKET_S) - LONGER_S * three).abs() < 1e-12);
        assert!((longer_s(0.0275) - (LONGER_S + BY_PACKET * 0.020) * three).abs() < 1e-12);
    }

    /// If this test fails, a single report can change the rate without limit.
    #[test]
    fn odd_numbers_pull_within_limits() {
        let mut sharing = Sharing::new();
        for (capacity_bps, rate_bps, queue_s) in
            [(1e18, 1.0, 1e9), (1.0, 1e12, -1e9), (1e6, 0.0, f64::INFINITY), (f64::MIN_POSITIVE, 1e6, 0.0)]
        {
            let share = sharing.step(&seen(queue_s), &situation(Some(capacity_bps), rate_bps));
            assert!(
                share.pull.abs() <= 0.05 * PULL * MOST_APART && (0.0..0.005).contains(&share.longer_s),
                "{share:?}"
            );
        }
    }
}
