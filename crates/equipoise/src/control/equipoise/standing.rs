use alloc::collections::VecDeque;

use super::delay::clearing_s;
use super::path::{Path, Seen};

/// Detects whether a standing queue belongs to another flow.
///
/// A standing delay that persists although the flow's own rate fell has one of two causes: another flow fills the
/// queue, or the path became longer. If another flow fills the queue, the delay varies (Waki 2013: variance indicates
/// load). A standing delay without variance means a longer path.
#[derive(Clone, Debug, Default)]
pub(super) struct StandingQueue {
    /// The reports of the last seconds, oldest first.
    history: VecDeque<Noted>,
    /// The time of the last loss, in s.
    lost_s: Option<f64>,
    full: FullQueue,
    /// The time when [`Standing::Unsure`] was last returned, in s.
    unsure_s: Option<f64>,
}

/// Detects a loss-based flow by the losses at a full queue. If the bottleneck's buffer is small, a loss-based flow does
/// not cause a standing delay, so only the losses show it.
///
/// A delay-based flow does not fill a queue twice within seconds, so two episodes of losses indicate a loss-based flow.
/// If losses are not much more frequent in a long queue than in a short one, the link itself causes them.
#[derive(Clone, Copy, Debug, Default)]
struct FullQueue {
    /// The times when the last two episodes of losses at a full queue began, latest first, in s.
    episodes_s: [Option<f64>; 2],
    /// `short` counts packets while the queue was short, `long` while it was long. The first number of each counts all
    /// packets, the second number only lost packets. All four numbers decay with time.
    short: (f64, f64),
    long: (f64, f64),
}

/// The part of a report that is kept. All times are in s.
#[derive(Clone, Copy, Debug)]
struct Noted {
    at: f64,
    /// `least` is the minimum delay in the report minus the base delay. `target` is the target of the queueing delay.
    least: f64,
    target: f64,
}

/// What [`StandingQueue::judge`] needs to know in addition to the reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recently {
    /// The time since the last competing loss-based flow (rival) left, in s.
    pub(super) since_rival_s: f64,
    /// Whether the rate of service of the bottleneck fell a short time ago.
    pub(super) has_slowed: bool,
    /// The time that the bottleneck takes to transmit a large packet, in s, and whether the bottleneck is slow.
    pub(super) packet_s: f64,
    pub(super) is_slow: bool,
}

/// The cause of a standing queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Standing {
    /// There is no standing queue that indicates a rival or a longer path.
    Nothing,
    /// The path's delay increased by this value, in s.
    LongerPath(f64),
    /// It is not known whether there is a rival: on a slow link, flows of this law alone can cause a standing queue.
    /// The flow must lower its rate for a short time. If the queue then empties, there is no rival.
    Unsure,
    /// Another flow holds the queue. The value is the longest recent queueing delay, in s.
    Rival(f64),
}

/// A queue counts as standing after it has persisted for `STANDS_S`. After a fall of the service rate, the required
/// time is `STANDS_BEHIND_FALL_S`, because UDP traffic at a fixed rate may have filled the queue. Such a queue drains
/// within this time, because this flow lowers its own rate. If the last rival (a flow that held the queue) left less
/// than `AGAIN_S` ago, the required time is `STANDS_AGAIN_S` or a round trip, whichever is longer. All times are in s.
const STANDS_S: f64 = 1.8;
const STANDS_BEHIND_FALL_S: f64 = 3.5;
const STANDS_AGAIN_S: f64 = 0.5;
pub(super) const AGAIN_S: f64 = 8.0;
/// On a slow link, delay-based flows drain their queue slowly, and each flow could mistake it for the queue of a
/// loss-based flow (rival). So if the transmission of a large packet takes longer than `USUAL_PACKET_S`, the time after
/// which a queue counts as a rival's is longer in the same ratio, up to `MOST_STANDS_S`. Both are in s. The value of
/// `MOST_STANDS_S` is above 4 s, because flows of this control law lower their rates after 4 s to empty the queue.
pub(super) const USUAL_PACKET_S: f64 = 0.0075;
const MOST_STANDS_S: f64 = 5.0;
/// On a slow link, a standing queue first causes a clearing: the flow lowers its rate to empty the queue. If a queue
/// stands after the clearing, a competing loss-based flow (rival) causes it. This check begins `CLEARED_LOOPS` loop
/// delays after the end of the clearing, and lasts for `CLEARED_FOR_S`, in s. A loop delay is the time from a decision
/// to the report on it.
const CLEARED_LOOPS: f64 = 2.0;
const CLEARED_FOR_S: f64 = 15.0;
/// A standing queue must be longer than `LEAST_STANDING_S`, and longer than the smallest recent target by
/// `ABOVE_TARGET_S`, both in s.
const LEAST_STANDING_S: f64 = 0.035;
const ABOVE_TARGET_S: f64 = 0.010;
/// A queue counts as standing only if it persists for some time. At the end of this time, it must be longer than this
/// share of its length at the start.
const STILL_THERE: f64 = 0.7;
/// A queue that is shorter than this share of its maximum within the last second counts as draining, even if it is
/// still long.
const DRAINS: f64 = 0.8;
/// A constant delay indicates a longer path instead of a queue. A delay counts as constant if the delays of single
/// packets differ by less than `EVEN_S`, or by less than `EVEN_IF_SMOOTH_S` if the roughness is below `SMOOTH_S`.
/// Roughness is the variation that is not caused by queueing. A delay also counts as constant if the minima of the last
/// three half seconds differ by less than `EVEN_MINIMA_S`. All values are in s.
const EVEN_S: f64 = 0.006;
const EVEN_IF_SMOOTH_S: f64 = 0.012;
const SMOOTH_S: f64 = 0.001;
const EVEN_MINIMA_S: f64 = 0.005;
/// To detect a constant delay, the delays of the packets of the last `EVEN_OVER_S` are compared. A loss counts as
/// recent for `LOSSES_S`. Reports are kept for `HISTORY_S`. All times are in s.
const EVEN_OVER_S: f64 = 0.8;
const LOSSES_S: f64 = 1.2;
const HISTORY_S: f64 = 5.5;
const MOST_REPORTS: usize = 512;

impl StandingQueue {
    /// Records a report.
    pub(super) fn push(&mut self, seen: &Seen, target_s: f64) {
        // The delays before and after an outage of reports must not count as one standing queue.
        if seen.after_gap {
            self.history.clear();
        } else if seen.lost > 0.0 {
            self.lost_s = Some(seen.now_s);
        }
        self.history.push_back(Noted { at: seen.now_s, least: seen.least_over_s, target: target_s });
        while self.history.len() > MOST_REPORTS || self.history.front().is_some_and(|it| it.at < seen.now_s - HISTORY_S)
        {
            self.history.pop_front();
        }
        // Only a report with losses needs the longest delay. For other reports, the history is not searched.
        let longest_s = if seen.lost > 0.0 { self.extremes(seen.now_s, HISTORY_S, 0.0).1 } else { 0.0 };
        self.full.push(seen, target_s, longest_s);
    }

    /// Returns the cause of the queue that stands now.
    pub(super) fn judge(&mut self, seen: &Seen, path: &Path, recently: Recently) -> Standing {
        let cause = self.cause(seen, path, recently);
        if !matches!(cause, Standing::Rival(_)) || !recently.is_slow {
            return cause;
        }
        let known_after_s = clearing_s(seen.loop_s()) + CLEARED_LOOPS * seen.loop_s();
        let since_s = self.unsure_s.map_or(f64::INFINITY, |at| seen.now_s - at);
        if since_s > known_after_s + CLEARED_FOR_S {
            self.unsure_s = Some(seen.now_s);
            self.full.episodes_s = [None; 2];
            Standing::Unsure
        } else if since_s < known_after_s {
            Standing::Nothing
        } else {
            cause
        }
    }

    /// The cause of the queue, on the assumption that flows of this law never cause a standing queue.
    fn cause(&self, seen: &Seen, path: &Path, recently: Recently) -> Standing {
        let Recently { since_rival_s, has_slowed, packet_s, .. } = recently;
        if self.full.is_filled(seen.now_s, since_rival_s) {
            return Standing::Rival(self.extremes(seen.now_s, 2.0, 0.0).1);
        }
        let usual_s = match has_slowed {
            _ if since_rival_s < AGAIN_S => STANDS_AGAIN_S.max(seen.latest_round_trip_s),
            true => STANDS_BEHIND_FALL_S,
            false => STANDS_S,
        };
        let over_s = usual_s.max((usual_s * packet_s / USUAL_PACKET_S).min(MOST_STANDS_S));
        let target_s = self.history.iter().map(|it| it.target).fold(f64::INFINITY, f64::min);
        let least_s = (target_s + ABOVE_TARGET_S).max(LEAST_STANDING_S);
        if !self.stands(seen.now_s, over_s, least_s) {
            return Standing::Nothing;
        }
        let is_lossy = self.lost_s.is_some_and(|at| at > seen.now_s - LOSSES_S);
        if !is_lossy && self.is_even(seen, path) {
            return Standing::LongerPath(self.extremes(seen.now_s, over_s, 0.0).0);
        }
        Standing::Rival(self.extremes(seen.now_s, 2.0, 0.0).1)
    }

    /// Whether the queue was always longer than `least_s` within the last `over_s`, and does not drain.
    fn stands(&self, now_s: f64, over_s: f64, least_s: f64) -> bool {
        let Some(newest) = self.history.back().filter(|it| it.least > least_s) else { return false };
        let (standing_s, _) = self.extremes(now_s, over_s, 0.0);
        let (lately_s, _) = self.extremes(now_s, 0.5, 0.0);
        let (_, before_s) = self.extremes(now_s, over_s, over_s - 0.4);
        let (_, longest_s) = self.extremes(now_s, 1.0, 0.0);
        let drains = newest.least < DRAINS * longest_s;
        let is_known = self.history.front().is_some_and(|it| it.at <= now_s - over_s);
        is_known && !drains && standing_s > least_s && lately_s > STILL_THERE * before_s
    }

    fn is_even(&self, seen: &Seen, path: &Path) -> bool {
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for sample in path.recent.last(EVEN_OVER_S) {
            (least, most) = (least.min(sample.over_s), most.max(sample.over_s));
        }
        let range_s = most - least;
        if range_s < EVEN_S || range_s < EVEN_IF_SMOOTH_S && seen.roughness_s < SMOOTH_S {
            return true;
        }
        let minima = [(1.5, 1.0), (1.0, 0.5), (0.5, 0.0)].map(|(from, to)| self.extremes(seen.now_s, from, to).0);
        let spread = minima.iter().copied().fold(0.0, f64::max) - minima.iter().copied().fold(f64::INFINITY, f64::min);
        self.history.front().is_some_and(|it| it.at < seen.now_s - 1.45) && spread < EVEN_MINIMA_S
    }

    /// Takes the smallest queueing delay of each report from `now_s - from_s` to `now_s - to_s`. Returns the minimum
    /// and the maximum of these delays, in s.
    fn extremes(&self, now_s: f64, from_s: f64, to_s: f64) -> (f64, f64) {
        let within = self.history.iter().filter(|it| it.at >= now_s - from_s && it.at <= now_s - to_s);
        within.fold((f64::INFINITY, 0.0), |(least, most), it| (least.min(it.least), most.max(it.least)))
    }

    /// Whether the queue became much shorter within half a second, without losses. All flows that share the queue
    /// notice such a fall at the same time.
    pub(super) fn fell(&self, seen: &Seen) -> bool {
        let (_, before_s) = self.extremes(seen.now_s, 0.5, 0.3);
        let is_lossy = self.lost_s.is_some_and(|at| at > seen.now_s - LOSSES_S);
        before_s - seen.least_over_s > (0.2 * seen.least_over_s).max(0.020) && !is_lossy
    }

    /// Discards the history.
    pub(super) fn clear(&mut self) {
        self.history.clear();
    }
}

/// A queue is long if every packet of the report waited for more than `FULL_S`, in s, and for more than `FULL_TARGETS`
/// times the target. Losses in a long queue count as losses at a full queue only if every packet also waited for at
/// least `NEARLY_MOST` times the longest queueing delay of the last seconds. The reason is that a full queue drops
/// packets while it is longest, but a lossy link drops packets at any time.
const FULL_S: f64 = 0.020;
const FULL_TARGETS: f64 = 1.5;
const NEARLY_MOST: f64 = 0.92;
/// Losses at a full queue within `EPISODE_S` after the first loss are one episode. A second episode indicates a
/// competing loss-based flow only if the first episode started less than `FULL_AGAIN_S` ago. `FULL_AGAIN_S` is also the
/// time constant with which the numbers of packets and losses decay. Both constants are in s.
const EPISODE_S: f64 = 1.0;
const FULL_AGAIN_S: f64 = 10.0;
/// Losses indicate a competing loss-based flow only if they are more than this many times as frequent in a long queue
/// as in a short one.
const MORE_OFTEN: f64 = 4.0;

impl FullQueue {
    /// Records a report. `longest_s` is the longest queue of the last `HISTORY_S`, in s. The queue of a report is its
    /// smallest queueing delay. `longest_s` is used only if the recorded report has losses.
    fn push(&mut self, seen: &Seen, target_s: f64, longest_s: f64) {
        let fades = libm::exp(-seen.elapsed_s / FULL_AGAIN_S);
        for counted in [&mut self.short, &mut self.long] {
            *counted = (counted.0 * fades, counted.1 * fades);
        }
        let is_long = seen.least_over_s > FULL_S.max(FULL_TARGETS * target_s);
        let counted = if is_long { &mut self.long } else { &mut self.short };
        *counted = (counted.0 + seen.arrived + seen.lost, counted.1 + seen.lost);
        if seen.lost > 0.0 && is_long && seen.least_over_s >= NEARLY_MOST * longest_s && !seen.after_gap {
            let is_new = self.episodes_s[0].is_none_or(|last| seen.now_s - last > EPISODE_S);
            if is_new {
                self.episodes_s = [Some(seen.now_s), self.episodes_s[0]];
            }
        }
    }

    /// Whether another flow fills the queue. `since_rival_s` is the time since the last competing loss-based flow
    /// (rival) left, in s.
    fn is_filled(&self, now_s: f64, since_rival_s: f64) -> bool {
        let within = |at: Option<f64>, span_s: f64| at.is_some_and(|at| now_s - at < span_s);
        let is_again = since_rival_s < AGAIN_S && within(self.episodes_s[0], since_rival_s);
        let is_twice = within(self.episodes_s[0], EPISODE_S) && within(self.episodes_s[1], FULL_AGAIN_S);
        let rate = |(packets, lost): (f64, f64)| lost / packets.max(1.0);
        (is_again || is_twice) && rate(self.long) > MORE_OFTEN * rate(self.short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time, in s, of the first report with which a queue of 60 ms counts as the queue of a competing flow (rival).
    /// If `is_cleared`, the queue is empty for half a second after each [`Standing::Unsure`].
    fn rival_after_s(packet_s: f64, since_rival_s: f64, is_cleared: bool) -> Option<f64> {
        let (mut standing, mut unsure_s) = (StandingQueue::default(), f64::INFINITY);
        (1..100).map(f64::from).find_map(|report| {
            let now_s = 0.1 * report;
            let is_empty = is_cleared && (unsure_s..unsure_s + 0.5).contains(&now_s);
            // Every fifth report has losses. Recent losses rule out `Standing::LongerPath`. In a report with losses,
            // the delay is 10 ms shorter, so that its losses do not count as losses at a full queue.
            let is_lossy = report % 5.0 == 0.0;
            let least_over_s = if is_empty { 0.0 } else { 0.060 - 0.010 * f64::from(is_lossy) };
            let seen = Seen { now_s, elapsed_s: 0.1, least_over_s, lost: f64::from(is_lossy), ..Seen::default() };
            standing.push(&seen, 0.010);
            let recently = Recently { since_rival_s, has_slowed: false, packet_s, is_slow: packet_s > 0.010 };
            match standing.judge(&seen, &Path::new(), recently) {
                Standing::Nothing => None,
                Standing::Unsure => {
                    unsure_s = now_s;
                    None
                }
                Standing::Rival(_) => Some(now_s),
                Standing::LongerPath(_) => panic!("the path did not become longer"),
            }
        })
    }

    /// If this test fails, flows of this control law on a slow link take each other for loss-based flows, or they never
    /// find a loss-based flow on a slow link.
    #[test]
    fn a_queue_must_stand_for_longer_on_a_slow_link() {
        for (packet_s, since_rival_s, expected_s) in [
            (0.005, f64::INFINITY, STANDS_S),
            (0.009, f64::INFINITY, 1.2 * STANDS_S),
            (0.005, 1.0, STANDS_AGAIN_S),
            (0.009, 1.0, 1.2 * STANDS_AGAIN_S),
        ] {
            let found_s = rival_after_s(packet_s, since_rival_s, false).expect("it stands");
            assert!(found_s > expected_s && found_s < expected_s + 0.25, "{packet_s} {since_rival_s}: {found_s}");
        }
    }

    /// If this test fails, flows of this law on a slow link take each other for TCP flows when they together cause a
    /// queue, or a loss-based flow is never found on such a link.
    #[test]
    fn on_a_slow_link_a_queue_is_a_rivals_only_if_it_stands_after_a_clearing() {
        let rival_s = rival_after_s(0.015, f64::INFINITY, false).expect("the queue stands all the time");
        // `Seen::default` has a round trip of zero, so the loop delay is its minimum, 0.1 s. With this loop delay, the
        // flow clears the queue for 0.5 s (`clearing_s`). It then waits for two loop delays, 0.2 s.
        assert!((2.0 * STANDS_S + 0.7..2.0 * STANDS_S + 1.0).contains(&rival_s), "{rival_s}");
        let after_clearing_s = rival_after_s(0.015, f64::INFINITY, true).expect("the queue stands again");
        assert!(after_clearing_s > rival_s + 2.0 * STANDS_S - 0.3, "{after_clearing_s}");
    }

    /// If this test fails, the law makes one of two errors. Either the law mistakes random losses of a link for losses
    /// at a full queue, so that flows of this law on a lossy link take each other for rivals. Or the law does not
    /// detect a rival at a small buffer.
    #[test]
    fn a_full_queue_loses_packets_while_it_is_longest() {
        let is_found = |lost_at_s: f64| {
            let mut standing = StandingQueue::default();
            (1..80).map(|report| 0.1 * f64::from(report)).any(|now_s| {
                // In each period of 2 s, the queue grows from 25 to 45 ms, and then falls at once.
                let phase_s = now_s % 2.0;
                let lost = f64::from(now_s > 1.0 && (phase_s - lost_at_s).abs() < 0.05);
                let least_over_s = if now_s < 1.0 { 0.0 } else { 0.025 + 0.010 * phase_s };
                let seen = Seen { now_s, elapsed_s: 0.1, least_over_s, lost, arrived: 10.0, ..Seen::default() };
                standing.push(&seen, 0.010);
                standing.full.is_filled(now_s, f64::INFINITY)
            })
        };
        assert!(is_found(1.9) && !is_found(0.5));
    }

    /// If this test fails, the law mistakes a draining queue of UDP traffic for a queue that TCP holds. The law then
    /// fills the queue itself.
    #[test]
    fn a_queue_that_drains_is_no_rivals() {
        let stands = |falls_per_s: f64| {
            let mut standing = StandingQueue::default();
            (1..22).map(f64::from).any(|report| {
                let now_s = 0.1 * report;
                let least_over_s = 0.050 - falls_per_s * (now_s - 1.5).max(0.0);
                let seen = Seen { now_s, elapsed_s: 0.1, least_over_s, ..Seen::default() };
                standing.push(&seen, 0.010);
                let recently =
                    Recently { since_rival_s: f64::INFINITY, has_slowed: false, packet_s: 0.002, is_slow: false };
                standing.judge(&seen, &Path::new(), recently) != Standing::Nothing
            })
        };
        assert!(stands(0.0) && !stands(0.030));
    }
}
