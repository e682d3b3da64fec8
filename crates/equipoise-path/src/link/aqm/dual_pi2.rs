use equipoise::units::{Instant, Size, Span};

use super::line::{Line, Waiting};
use super::{Aqm, Drop, Ecn, Queued, Room, Told, marks};

/// Two queues with coupled congestion signals: a classic queue, and a low-latency queue for traffic that responds to
/// fine-grained marks (L4S).
///
/// Source: RFC 9332, Sec. 2.4, 2.5 and App. A, including the edge cases in App. A.2. A PI controller computes a base
/// probability from the longer of the two queues' delays. The classic queue drops or marks packets with the square of
/// this probability. The low-latency queue marks packets with the larger of two probabilities: `coupling` times the
/// base probability, and a probability that follows from the delay of this queue. If both queues have packets, the
/// classic queue sends 1 of every 16 bytes (weighted round robin, as the RFC recommends).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2 {
    /// The target delay of the classic queue.
    pub target: Span,
    /// The longest usual round-trip time of the flows (`RTT_max`).
    pub longest_round_trip: Span,
    /// k: the low-latency queue's marking probability divided by the base probability.
    pub coupling: f64,
    /// If the delay of the low-latency queue exceeds this threshold, the queue marks some packets (`minTh`).
    pub min_threshold: Span,
    /// If the delay of the low-latency queue exceeds `min_threshold` by `range` or more, the queue marks all packets.
    pub range: Span,
}

/// Target 15 ms, longest round-trip time 100 ms, coupling 2, threshold 800 µs, range 400 µs (RFC 9332, App. A.1).
impl Default for DualPi2 {
    fn default() -> Self {
        Self {
            target: Span::from_millis(15),
            longest_round_trip: Span::from_millis(100),
            coupling: 2.0,
            min_threshold: Span::from_micros(800),
            range: Span::from_micros(400),
        }
    }
}

/// If both queues have packets, the classic queue sends 1 of every 16 bytes.
const CLASSIC_SHARE: i64 = 16;

/// The controller that computes probabilities from the delays of the two queues (RFC 9332, App. A).
#[derive(Clone, Copy, Debug)]
struct Law {
    dual: DualPi2,
    /// The base probability p', from 0 to 1.
    base: f64,
    before: Span,
}

impl Law {
    /// Time between two updates of the base probability (`Tupdate`).
    fn every(dual: &DualPi2) -> Span {
        dual.target.min(Span::from_nanos(dual.longest_round_trip.as_nanos() / 3))
    }

    /// Updates the base probability (`dualpi2_update`). `delay` is the longer of the delays of the two queues.
    fn update(&mut self, delay: Span) {
        let (update, longest) = (Self::every(&self.dual).as_secs_f64(), self.dual.longest_round_trip.as_secs_f64());
        let (alpha, beta) = (0.1 * update / (longest * longest), 0.3 / longest);
        let [error, change] = [delay - self.dual.target, delay - self.before].map(Span::as_secs_f64);
        self.base = (self.base + alpha * error + beta * change).clamp(0.0, 1.0);
        self.before = delay;
    }

    /// `p_CL`: the low-latency queue's marking probability that follows from the base probability.
    fn coupled(&self) -> f64 {
        self.dual.coupling * self.base
    }

    /// The classic queue's probability to drop or mark a packet (`p_C`).
    fn classic(&self) -> f64 {
        self.base * self.base
    }

    /// Whether the classic queue's probability is so high that senders apparently ignore marks (`p_Cmax`).
    fn is_overloaded(&self) -> bool {
        self.classic() >= (1.0 / (self.dual.coupling * self.dual.coupling)).min(1.0)
    }

    /// The low-latency queue's own marking probability, from its delay alone (`laqm`).
    fn native(&self, delay: Span) -> f64 {
        let above = (delay - self.dual.min_threshold).as_secs_f64();
        (above / self.dual.range.as_secs_f64().max(1e-9)).clamp(0.0, 1.0)
    }
}

/// Makes events occur with a given probability, but evenly spaced instead of at random (the function `recur` in RFC
/// 9332, App. A.1). If marks came at random, senders would have to average them, and this would delay the signal.
#[derive(Clone, Copy, Debug, Default)]
struct Recurrence(f64);

impl Recurrence {
    fn happens(&mut self, probability: f64) -> bool {
        self.0 += probability;
        let happens = self.0 > 1.0;
        if happens {
            self.0 -= 1.0;
        }
        happens
    }
}

/// The two queues of DualPI2 and their controller.
#[derive(Clone, Debug)]
pub(super) struct DualQueue<C, P> {
    low_latency: Line<C, P>,
    classic: Line<C, P>,
    law: Law,
    recurrences: [Recurrence; 2],
    next_update: Instant<C>,
    /// Bytes that have left the low-latency queue, minus 15 times the bytes that have left the classic queue. Dropped
    /// packets count as well. If a packet is taken while one of the queues is empty, the count restarts at zero. If the
    /// value is above zero, the classic queue sends next.
    credit: i64,
}

impl<C, P: Queued> DualQueue<C, P> {
    pub(super) fn new(dual: DualPi2, origin: Instant<C>) -> Self {
        let law = Law { dual, base: 0.0, before: Span::ZERO };
        let next_update = origin + Law::every(&dual);
        let (low_latency, classic) = (Line::default(), Line::default());
        Self { low_latency, classic, law, recurrences: [Recurrence::default(); 2], next_update, credit: 0 }
    }

    fn look(&mut self, now: Instant<C>) {
        let every = Law::every(&self.law.dual);
        while self.next_update <= now {
            let delays = [&self.low_latency, &self.classic].map(|line| line.delay(self.next_update));
            self.law.update(delays[0].max(delays[1]));
            self.next_update = self.next_update + every;
            let rests = self.len() == 0 && self.law.base == 0.0 && self.law.before == Span::ZERO;
            if rests && self.next_update <= now {
                // After a long idle time, all updates that change nothing are skipped in one step.
                let looks = (now - self.next_update).as_nanos() / every.as_nanos().max(1);
                self.next_update = self.next_update + every * (looks + 1);
            }
        }
    }

    /// Whether the low-latency queue sends the next packet. If one of the queues is empty, sets `credit` to zero.
    fn is_low_latency_next(&mut self) -> bool {
        match (self.low_latency.is_empty(), self.classic.is_empty()) {
            (false, false) => self.credit <= 0,
            (is_empty, _) => {
                self.credit = 0;
                !is_empty
            }
        }
    }

    fn is_kept_low_latency(&mut self, head: &mut Waiting<C, P>, now: Instant<C>, told: &mut impl Told<P>) -> bool {
        let (coupled, recurrence) = (self.law.coupled(), &mut self.recurrences[0]);
        if coupled < 1.0 {
            // The delay of a packet counts only if another packet is queued behind it: the transmission time of a
            // single packet may already exceed the threshold.
            let native = if self.low_latency.is_empty() { 0.0 } else { self.law.native(now - head.arrived) };
            if recurrence.happens(native.max(coupled)) {
                marks(&mut head.packet, told);
            }
            return true;
        }
        if recurrence.happens(self.law.classic()) {
            return false;
        }
        marks(&mut head.packet, told);
        true
    }

    fn is_kept_classic(&mut self, head: &mut Waiting<C, P>, told: &mut impl Told<P>) -> bool {
        !self.recurrences[1].happens(self.law.classic()) || (!self.law.is_overloaded() && marks(&mut head.packet, told))
    }
}

impl<C, P: Queued> Aqm<C, P> for DualQueue<C, P> {
    fn offer(&mut self, packet: Waiting<C, P>, room: Room, told: &mut impl Told<P>) {
        self.look(packet.arrived);
        let bytes: Size = self.low_latency.bytes() + self.classic.bytes();
        if !room.holds(self.len(), bytes, packet.size) {
            return told.dropped(packet.packet, Drop::Full);
        }
        match packet.packet.ecn() {
            Ecn::Ect1 | Ecn::Marked => self.low_latency.push(packet),
            Ecn::NotCapable | Ecn::Ect0 => self.classic.push(packet),
        }
    }

    fn take(&mut self, now: Instant<C>, told: &mut impl Told<P>) -> Option<Waiting<C, P>> {
        self.look(now);
        while self.len() > 0 {
            let is_low_latency = self.is_low_latency_next();
            let line = if is_low_latency { &mut self.low_latency } else { &mut self.classic };
            let mut head = line.pop(now)?;
            let bytes = head.size.as_bytes() as i64;
            self.credit += if is_low_latency { bytes } else { -bytes * (CLASSIC_SHARE - 1) };
            let is_kept = if is_low_latency {
                self.is_kept_low_latency(&mut head, now, told)
            } else {
                self.is_kept_classic(&mut head, told)
            };
            if is_kept {
                return Some(head);
            }
            told.dropped(head.packet, Drop::Early);
        }
        None
    }

    fn len(&self) -> usize {
        self.low_latency.len() + self.classic.len()
    }

    fn waited_ns(&self, now: Instant<C>) -> u64 {
        self.low_latency.waited_ns(now).saturating_add(self.classic.waited_ns(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law() -> Law {
        Law { dual: DualPi2::default(), base: 0.0, before: Span::ZERO }
    }

    /// Constants that follow from RFC 9332, App. A.1: update interval 15 ms, alpha 0.15 Hz, beta 3 Hz.
    #[test]
    fn the_probabilities_are_those_of_the_hand() {
        let mut law = law();
        assert_eq!(Law::every(&law.dual), Span::from_millis(15));
        law.update(Span::from_millis(35));
        let first = 0.15 * 0.020 + 3.0 * 0.035;
        assert!((law.base - first).abs() < 1e-12);
        law.update(Span::from_millis(35));
        assert!((law.base - first - 0.15 * 0.020).abs() < 1e-12, "the delay stands: its error alone counts");
        assert!((law.coupled() - 2.0 * law.base).abs() < 1e-12 && (law.classic() - law.base * law.base).abs() < 1e-12);
        assert!(!law.is_overloaded());
        law.base = 0.5;
        assert!(law.is_overloaded() && law.coupled() >= 1.0, "a quarter, where the other one marks all");
        let native = [800, 900, 1000, 1200, 5000].map(|us| law.native(Span::from_micros(us)));
        for (found, hand) in native.into_iter().zip([0.0, 0.25, 0.5, 1.0, 1.0]) {
            assert!((found - hand).abs() < 1e-9, "{native:?}");
        }
    }

    #[test]
    fn a_probability_recurs_as_often_as_it_says() {
        let mut recurrence = Recurrence::default();
        let often = (0..10_000).filter(|_| recurrence.happens(0.3)).count();
        assert!((2999..=3000).contains(&often), "{often}");
        assert!(!Recurrence::default().happens(1.0));
    }
}
