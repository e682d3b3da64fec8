use equipoise::units::{Instant, Size, Span};

use super::line::{Line, Waiting};
use super::{Aqm, Drop, Queued, Room, Told, marks};
use crate::link::impairment::Chance;

/// Proportional integral controller enhanced (PIE): drops packets on arrival. The drop probability is computed from the
/// queue's delay and from the change of this delay.
///
/// Source: RFC 8033, Sec. 4 and App. A. While the probability is below 0.1, PIE marks ECN-capable packets instead of
/// dropping them (Sec. 5.1). The delay is the waiting time of the first packet in the queue, or zero if the queue is
/// empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pie {
    /// The target delay (`QDELAY_REF`).
    pub target: Span,
    /// Time between two updates of the probability (`T_UPDATE`).
    pub update: Span,
    /// When congestion begins, PIE drops nothing for this time, so that a burst of packets passes (`MAX_BURST`).
    pub burst: Span,
}

/// Target 15 ms, update interval 15 ms, burst 150 ms (RFC 8033, Sec. 4).
impl Default for Pie {
    fn default() -> Self {
        let target = Span::from_millis(15);
        Self { target, update: target, burst: Span::from_millis(150) }
    }
}

/// Weights of the delay's deviation from the target, and of the delay's change, in 1/s (RFC 8033, Sec. 4.2).
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
/// PIE drops and marks packets only if more bytes than this are queued. The value is the size of two packets of 1500
/// bytes.
const FEW: Size = Size::from_bytes(2 * 1500);
/// If the probability is above this, packets are dropped even if they are ECN-capable, because the senders seem to
/// ignore marks (RFC 8033, Sec. 5.1).
const MARKS_UP_TO: f64 = 0.1;
/// Pairs of an upper bound and a divisor (RFC 8033, Sec. 4.2, App. A). The change of the drop probability is divided by
/// the divisor of the first pair whose bound is above the drop probability.
const SCALES: [(f64, f64); 6] = [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];

/// The controller of PIE's drop probability.
#[derive(Clone, Copy, Debug)]
struct Law {
    pie: Pie,
    /// The drop probability (`drop_prob_`).
    probability: f64,
    /// The queue's delay at the last update (`qdelay_old_`).
    before: Span,
    /// The remaining time in which no packet is dropped, so that a burst passes (`burst_allowance_`).
    allowance: Span,
}

impl Law {
    /// Updates the probability from the queue's delay. Called once per update interval (`calculate_drop_prob`).
    fn update(&mut self, delay: Span) {
        let [error, change] = [delay - self.pie.target, delay - self.before].map(Span::as_secs_f64);
        let step = ALPHA * error + BETA * change;
        let scale = SCALES.iter().find(|(below, _)| self.probability < *below).map_or(1.0, |(_, scale)| *scale);
        self.probability += step / scale;
        if delay == Span::ZERO && self.before == Span::ZERO {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.before = delay;
        self.allowance = (self.allowance - self.pie.update).max(Span::ZERO);
    }

    /// Whether to drop a packet that arrives when `bytes` are queued (`drop_early`). `drawn` is a random number from 0
    /// to 1.
    fn drops(&mut self, delay: Span, bytes: Size, drawn: f64) -> bool {
        let half = Span::from_nanos(self.pie.target.as_nanos() / 2);
        if self.probability == 0.0 && delay < half && self.before < half {
            self.allowance = self.pie.burst;
        }
        let is_calm = self.before < half && self.probability < 0.2;
        self.allowance == Span::ZERO && !is_calm && bytes > FEW && drawn < self.probability
    }

    /// Whether further updates change nothing while the queue is idle.
    fn rests(&self) -> bool {
        self.probability == 0.0 && self.before == Span::ZERO && self.allowance == Span::ZERO
    }
}

/// A queue that is managed by PIE.
#[derive(Clone, Debug)]
pub(super) struct PieLine<C, P> {
    line: Line<C, P>,
    law: Law,
    chance: Chance,
    next_update: Instant<C>,
}

impl<C, P> PieLine<C, P> {
    pub(super) fn new(pie: Pie, chance: Chance, origin: Instant<C>) -> Self {
        let law = Law { pie, probability: 0.0, before: Span::ZERO, allowance: Span::ZERO };
        Self { line: Line::default(), law, chance, next_update: origin + pie.update }
    }

    /// Performs all updates of the probability that are due until `now`.
    fn look(&mut self, now: Instant<C>) {
        let every = self.law.pie.update;
        while self.next_update <= now {
            self.law.update(self.line.delay(self.next_update));
            self.next_update = self.next_update + every;
            if self.line.is_empty() && self.law.rests() && self.next_update <= now {
                // After a long idle time, all updates that change nothing are skipped in one step.
                let looks = (now - self.next_update).as_nanos() / every.as_nanos().max(1);
                self.next_update = self.next_update + every * (looks + 1);
            }
        }
    }
}

impl<C, P: Queued> Aqm<C, P> for PieLine<C, P> {
    fn offer(&mut self, mut packet: Waiting<C, P>, room: Room, told: &mut impl Told<P>) {
        let now = packet.arrived;
        self.look(now);
        // A random number is drawn for every packet, so that the random numbers of later packets do not depend on
        // drops.
        let drawn = self.chance.even();
        if !room.holds(self.line.len(), self.line.bytes(), packet.size) {
            return told.dropped(packet.packet, Drop::Full);
        }
        if self.law.drops(self.line.delay(now), self.line.bytes(), drawn) {
            let may_mark = self.law.probability < MARKS_UP_TO;
            if !(may_mark && marks(&mut packet.packet, told)) {
                return told.dropped(packet.packet, Drop::Early);
            }
        }
        self.line.push(packet);
    }

    fn take(&mut self, now: Instant<C>, _: &mut impl Told<P>) -> Option<Waiting<C, P>> {
        self.look(now);
        self.line.pop(now)
    }

    fn len(&self) -> usize {
        self.line.len()
    }

    fn waited_ns(&self, now: Instant<C>) -> u64 {
        self.line.waited_ns(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: i64) -> Span {
        Span::from_millis(ms)
    }

    fn law() -> Law {
        Law { pie: Pie::default(), probability: 0.0, before: Span::ZERO, allowance: Span::ZERO }
    }

    /// The first steps of the probability, computed by hand from RFC 8033, Sec. 4.2.
    #[test]
    fn the_probability_is_that_of_the_hand() {
        let mut law = law();
        law.update(ms(35));
        // Delay 35 ms, previous delay 0, target 15 ms: the step is (1/8 x 0.020 + 5/4 x 0.035) / 2048.
        assert!((law.probability - (0.0025 + 0.04375) / 2048.0).abs() < 1e-15);
        let before = law.probability;
        law.update(ms(35));
        // The probability is between 1e-5 and 1e-4, so the step is divided by 128. The delay has not changed, so only
        // its deviation from the target counts.
        assert!((law.probability - before - 0.0025 / 128.0).abs() < 1e-15);
        law.probability = 0.5;
        law.update(ms(5));
        assert!((law.probability - (0.5 - 0.125 * 0.010 - 1.25 * 0.030)).abs() < 1e-12);
        law.update(Span::ZERO);
        let before = law.probability;
        law.update(Span::ZERO);
        assert!((law.probability - (before - 0.125 * 0.015) * 0.98).abs() < 1e-12, "it decays without congestion");
        law.probability = 0.999;
        law.update(ms(5000));
        assert!((law.probability - 1.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_dropped_in_a_burst_in_calm_or_from_few_bytes() {
        let many = Size::from_bytes(100_000);
        let dropping = Law { probability: 0.3, before: ms(40), ..law() };
        assert!({ dropping }.drops(ms(40), many, 0.29) && !{ dropping }.drops(ms(40), many, 0.31));
        assert!(!{ dropping }.drops(ms(40), FEW, 0.0));
        assert!(!Law { allowance: ms(1), ..dropping }.drops(ms(40), many, 0.0));
        assert!(!Law { probability: 0.19, before: ms(7), ..law() }.drops(ms(7), many, 0.0));
        let mut idle = law();
        assert!(!idle.drops(Span::ZERO, many, 0.0));
        assert_eq!(idle.allowance, ms(150));
        (0..10).for_each(|_| idle.update(ms(30)));
        assert_eq!(idle.allowance, Span::ZERO, "ten looks are 150 ms");
    }
}
