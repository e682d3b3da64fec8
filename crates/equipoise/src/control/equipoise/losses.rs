use super::path::Seen;
use alloc::collections::VecDeque;

/// Handles losses that no queue causes. The cause is a link that loses packets at any rate, or a policer, which drops
/// the traffic above its own rate.
///
/// A test tells the two apart: if the sender's rate is a tenth lower than the arrival rate, a policer drops nothing,
/// but a lossy link loses the same share as before. The inherent losses of a link are tolerated. If there is a policer,
/// the rate is limited to slightly less than the policer's rate, and the limit rises slowly to try higher rates.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    /// The time of each report, in s, and its numbers of lost and of arrived packets. Losses in the first report after
    /// a gap in the reports do not count. `unqueued` also omits losses that a queue may have caused.
    all: VecDeque<(f64, f64, f64)>,
    unqueued: VecDeque<(f64, f64, f64)>,
    /// `inherent` is the share of packets that the link loses independently of the sending rate. `mean` is the slowly
    /// smoothed share of packets that are lost without a queue.
    inherent: f64,
    mean: f64,
    /// The time of the last long queue or gap in the reports, in s. Both explain losses.
    queued_s: f64,
    /// The time since which the losses exceed the link's inherent losses, in s.
    lossy_s: Option<f64>,
    state: State,
    /// `lost` and `arrived` count the lost and the arrived packets that were sent after `since_s`, in s. The counts
    /// start again when a test for a policer begins, and when a policer's limit on the rate is set.
    lost: f64,
    arrived: f64,
    since_s: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Free,
    Testing { since_s: f64, share: f64, received_bps: f64 },
    Policed { since_s: f64, share: f64, received_bps: f64, cap_bps: f64 },
}

/// Two shares of lost packets are measured. The first share includes all losses, and is measured over `ALL_S`, in s.
/// The second share includes only losses that no queue explains, and is measured over `UNQUEUED_S`, in s. The law
/// ignores the second share if the flow had fewer than `LEAST_PACKETS` packets, lost or not, in this time.
const ALL_S: f64 = 1.2;
const UNQUEUED_S: f64 = 1.5;
const LEAST_PACKETS: f64 = 50.0;
/// Losses are explained by a queue in two cases. In the first case, the queueing delay is now at least `LONG_S` and at
/// least the target. In the second case, it was above `HOT_S` and above the target within the last 1.5 s. Both
/// constants are in s.
const LONG_S: f64 = 0.015;
const HOT_S: f64 = 0.040;
/// Losses must last this long, in s, before a lower rate tests whether a policer causes them. By then a policer's token
/// bucket is usually empty, so that the arrival rate is the policer's rate.
const LOSSY_S: f64 = 0.7;
/// A test for a policer lowers the rate to `TEST` times the arrival rate. It counts the packets that are sent more than
/// `TEST_COUNTS_S`, in s, after its start. It ends when a lossy link would have lost at least `EXPECTED` of the counted
/// packets, when `TEST_S`, in s, has passed, or when a long queue or a gap in the reports explains the losses.
const TEST: f64 = 0.9;
const TEST_COUNTS_S: f64 = 0.3;
const EXPECTED: f64 = 6.0;
const TEST_S: f64 = 4.0;
/// Shares of the losses that a lossy link would cause. If at most `POLICED` of them occur in a test at a lower rate, a
/// policer is found. If more than `NOT_POLICED` of them occur later, below the policer's rate, there was no policer.
/// Both decisions require that a lossy link would have lost at least `EXPECTED` packets.
const POLICED: f64 = 0.3;
const NOT_POLICED: f64 = 0.7;
/// If a policer is found, the rate is limited to `CAP` times the arrival rate. After `HOLD_S`, the limit rises by the
/// share `RISES` per second, and after `LATER_S` by the share `RISES_LATER` per second. Both times are in s. The limit
/// ends when it exceeds `RELEASED` times the arrival rate from which it was computed.
const CAP: f64 = 0.93;
const RISES: f64 = 0.01;
const RISES_LATER: f64 = 0.03;
const HOLD_S: f64 = 2.0;
const LATER_S: f64 = 25.0;
const RELEASED: f64 = 1.3;
/// The highest share of losses that counts as the link's inherent losses. A link that loses more is overloaded, even if
/// the losses look random. Random losses that media can tolerate are below this share.
const MOST_INHERENT: f64 = 0.12;
/// Time constant of the slow mean of the losses without a queue, and of the decay of the link's inherent loss, in s.
const SLOW_S: f64 = 10.0;
/// With a queue, a share of losses above `OVERLOAD` plus 1.5 times the link's inherent share is an overload.
const OVERLOAD: f64 = 0.1;
const MOST_REPORTS: usize = 256;

impl Losses {
    pub(super) const fn new() -> Self {
        Self {
            all: VecDeque::new(),
            unqueued: VecDeque::new(),
            inherent: 0.0,
            mean: 0.0,
            queued_s: f64::NEG_INFINITY,
            lossy_s: None,
            state: State::Free,
            lost: 0.0,
            arrived: 0.0,
            since_s: f64::INFINITY,
        }
    }

    /// The upper limit of the rate, in bit/s, while the flow tests whether the path has a policer, and after a policer
    /// was found. Otherwise `None`.
    pub(super) const fn cap_bps(&self) -> Option<f64> {
        match self.state {
            State::Free => None,
            State::Testing { received_bps, .. } => Some(TEST * received_bps),
            State::Policed { cap_bps, .. } => Some(cap_bps),
        }
    }

    /// The upper limit of the rate, in bit/s, if a queue is present and the losses far exceed the link's inherent
    /// losses; otherwise `None`.
    pub(super) fn overload_bps(&self, seen: &Seen, target_s: f64) -> Option<f64> {
        let (share, _) = shares(&self.all);
        (share > OVERLOAD + 1.5 * self.inherent && seen.least_s > target_s)
            .then(|| seen.received_bps * (1.0 - share / 2.0))
    }

    /// Applies a report; `now_bps` is the arrival rate over the last second, in bit/s.
    pub(super) fn push(&mut self, seen: &Seen, target_s: f64, now_bps: f64) {
        let lost = if seen.after_gap { 0.0 } else { seen.lost };
        push(&mut self.all, (seen.now_s, lost, seen.arrived), ALL_S);
        let is_unqueued = seen.least_s < target_s.max(LONG_S) && seen.now_s - self.queued_s > 1.5;
        if seen.least_s > target_s.max(HOT_S) || seen.after_gap {
            self.queued_s = seen.now_s;
        }
        let unqueued = if is_unqueued { lost } else { 0.0 };
        push(&mut self.unqueued, (seen.now_s, unqueued, seen.arrived), UNQUEUED_S);
        let (share, packets) = shares(&self.unqueued);
        // A report covers packets that left about a round trip ago, and only those that left after `since_s` count.
        if seen.now_s - seen.latest_round_trip_s > self.since_s {
            (self.lost, self.arrived) = (self.lost + lost, self.arrived + seen.arrived);
        }
        match self.state {
            State::Free => self.watch(seen, (share, packets), now_bps, unqueued),
            State::Testing { since_s, share: before, received_bps } => {
                self.judge_test(seen, (since_s, before, received_bps), (share, now_bps));
            }
            State::Policed { .. } => self.police(seen, (share, packets), now_bps),
        }
    }

    fn watch(&mut self, seen: &Seen, (share, packets): (f64, f64), received_bps: f64, unqueued: f64) {
        let chance = 2.0 * libm::sqrt(self.inherent.max(0.01) / packets.max(1.0));
        let is_lossy = packets >= LEAST_PACKETS && share > 1.5 * self.inherent + 0.02 + chance;
        let since_s = *self.lossy_s.get_or_insert(seen.now_s);
        if !is_lossy {
            self.lossy_s = None;
        } else if seen.now_s - since_s >= LOSSY_S {
            self.lossy_s = None;
            self.state = State::Testing { since_s: seen.now_s, share, received_bps };
            self.count_from(seen.now_s + TEST_COUNTS_S);
            return;
        }
        let gain = seen.elapsed_s / SLOW_S;
        self.mean += gain * (unqueued / (unqueued + seen.arrived) - self.mean);
        self.inherent += gain * (share.min(self.inherent) - self.inherent);
    }

    fn judge_test(
        &mut self,
        seen: &Seen,
        (since_s, before, received_bps): (f64, f64, f64),
        (share, now_bps): (f64, f64),
    ) {
        let all = self.lost + self.arrived;
        let expected = before.min(self.mean.max(0.3 * before));
        if seen.now_s - self.queued_s < 1.0 {
            self.bear(share);
        } else if all * expected >= EXPECTED {
            if self.lost <= POLICED * expected * all {
                self.inherent *= 0.5;
                let cap_bps = CAP * received_bps;
                self.state = State::Policed { since_s: seen.now_s, share: expected, received_bps, cap_bps };
                self.count_from(seen.now_s);
            } else if self.lost > MOST_INHERENT * all && now_bps < received_bps {
                // The arrival rate before the test was probably above a policer's rate, because the policer's token
                // bucket was not empty yet. Repeat the test below the current arrival rate.
                self.state = State::Testing { since_s: seen.now_s, share: before, received_bps: now_bps };
                self.count_from(seen.now_s + TEST_COUNTS_S);
            } else {
                self.bear(self.lost / all.max(1.0));
            }
        } else if seen.now_s - since_s > TEST_S {
            // Too few packets were sent to tell a policer from a lossy link, so the losses count as the link's own.
            self.bear(expected);
        }
    }

    fn police(&mut self, seen: &Seen, (share, packets): (f64, f64), now_bps: f64) {
        let State::Policed { since_s, share: expected, received_bps, cap_bps } = &mut self.state else { return };
        let all = self.lost + self.arrived;
        let is_certain = all * *expected >= EXPECTED;
        if is_certain && self.lost > NOT_POLICED * *expected * all && *cap_bps < 0.98 * *received_bps {
            self.bear(self.lost / all);
            return;
        }
        let elapsed_s = seen.now_s - *since_s;
        let is_over =
            share > 0.015 + 1.5 * self.inherent && packets >= LEAST_PACKETS && *cap_bps > 0.97 * *received_bps;
        if is_over && elapsed_s > HOLD_S && !is_certain {
            // Losses continue, but too few packets were counted to decide that a policer causes them.
            self.bear(share);
        } else if is_over && elapsed_s > HOLD_S {
            // The policer's rate is estimated as the arrival rate of the last second. This rate is noisy, so the
            // estimate is at most the old limit times the share of packets that arrived.
            let passed_bps = now_bps.min(*cap_bps * (1.0 - share));
            (*since_s, *received_bps, *cap_bps) = (seen.now_s, passed_bps, CAP * passed_bps);
            self.count_from(seen.now_s + TEST_COUNTS_S);
        } else if elapsed_s > HOLD_S {
            let rises = if elapsed_s > LATER_S { RISES_LATER } else { RISES };
            *cap_bps *= libm::exp(seen.elapsed_s * rises);
            if *cap_bps > RELEASED * *received_bps {
                self.state = State::Free;
            }
        }
    }

    /// Raises the link's inherent losses to `share`, but at most to `MOST_INHERENT`. If a test for a policer runs, ends
    /// the test. If the rate is limited because of a policer, ends the limit.
    fn bear(&mut self, share: f64) {
        self.inherent = self.inherent.max(share).min(MOST_INHERENT);
        self.state = State::Free;
        self.count_from(f64::INFINITY);
    }

    fn count_from(&mut self, since_s: f64) {
        (self.lost, self.arrived, self.since_s) = (0.0, 0.0, since_s);
    }
}

fn push(window: &mut VecDeque<(f64, f64, f64)>, report: (f64, f64, f64), span_s: f64) {
    window.push_back(report);
    while window.len() > MOST_REPORTS || window.front().is_some_and(|it| it.0 < report.0 - span_s) {
        window.pop_front();
    }
}

/// The share of packets that were lost, and the number of all packets.
fn shares(window: &VecDeque<(f64, f64, f64)>) -> (f64, f64) {
    let (lost, arrived) = window.iter().fold((0.0, 0.0), |sum, it| (sum.0 + it.1, sum.1 + it.2));
    (lost / (lost + arrived).max(1.0), lost + arrived)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a sender for `seconds`, with a report every 50 ms. The sender's rate is 1.2 Mbit/s, but not above the
    /// limit that [`Losses`] sets. `lost` maps the sender's rate in bit/s to the share of its packets that is lost.
    /// Returns the state and the rate at the end.
    fn after(seconds: u32, lost: fn(f64) -> f64) -> (Losses, f64) {
        let mut losses = Losses::new();
        let (mut rate_bps, mut received_bps) = (1.2e6, 1.2e6);
        for report in 0..seconds * 20 {
            let packets = rate_bps * 0.05 / 9600.0;
            let share = lost(rate_bps);
            received_bps += 0.05 * (rate_bps * (1.0 - share) - received_bps);
            let seen = Seen {
                now_s: f64::from(report) / 20.0,
                elapsed_s: 0.05,
                latest_round_trip_s: 0.05,
                lost: packets * share,
                arrived: packets * (1.0 - share),
                least_s: 0.0,
                ..Seen::default()
            };
            losses.push(&seen, 0.005, received_bps);
            rate_bps = losses.cap_bps().map_or(1.2e6, |cap| cap.min(1.2e6));
        }
        (losses, rate_bps)
    }

    /// If this test fails, a lossy link is taken for a congested one.
    #[test]
    fn what_is_lost_whatever_the_rate_is_borne() {
        let (losses, rate_bps) = after(20, |_| 0.05);
        assert_eq!(losses.state, State::Free);
        assert!((losses.inherent - 0.05).abs() < 0.01 && rate_bps > 1.19e6, "{losses:?}");
    }

    /// If this test fails, a media flow keeps sending above a policer's rate and loses the excess.
    #[test]
    fn the_rate_stays_below_a_policer() {
        let (losses, rate_bps) = after(20, |rate_bps| (1.0 - 1e6 / rate_bps).max(0.0));
        assert!(matches!(losses.state, State::Policed { .. }), "{losses:?}");
        assert!((0.85e6..1.05e6).contains(&rate_bps), "{rate_bps}");
    }

    #[test]
    fn few_losses_are_no_reason() {
        let (losses, _) = after(20, |_| 0.01);
        assert_eq!((losses.state, losses.cap_bps()), (State::Free, None));
    }

    /// In a test for a policer, a slow flow sends few packets. By chance, a lossy link may lose none of them. If this
    /// unit test fails, the flow then assumes a policer and limits its rate.
    #[test]
    fn a_test_of_few_packets_finds_no_policer() {
        let mut losses = Losses::new();
        let (mut tested, mut policed) = (false, false);
        for report in 0..400u32 {
            let now_s = f64::from(report) * 0.1;
            // 4 packets a report; one in 16 is lost, until the test begins.
            let lost = f64::from(!tested && report % 4 == 0);
            let (elapsed_s, arrived) = (0.1, 4.0 - lost);
            let seen = Seen { now_s, elapsed_s, latest_round_trip_s: 0.1, lost, arrived, ..Seen::default() };
            losses.push(&seen, 0.020, 0.2e6);
            tested |= matches!(losses.state, State::Testing { .. });
            policed |= matches!(losses.state, State::Policed { .. });
        }
        assert!(tested && !policed && losses.state == State::Free, "{losses:?}");
    }
}
