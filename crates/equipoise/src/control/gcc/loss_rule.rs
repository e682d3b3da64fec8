use crate::control::{Fate, PacketReport};
use crate::units::{Instant, SenderClock, Span};

/// The draft's rule on losses: if the loss ratio is below 2 %, the rate rises by 5 %. If the loss ratio is above 10 %,
/// the rate falls by half of the loss ratio. Otherwise the rate is kept.
///
/// Source: draft-ietf-rmcat-gcc-02, Sec. 6.
///
/// Our interpretation: the rule is applied to the rate in use. If the rule had a separate rate, this rate could rise
/// far above the rate in use during minutes without loss. The separate rate would stay above the rate in use after the
/// next loss, so the loss would have no effect. The rate changes at most once per 200 ms, as in pion; in the draft, the
/// rate changes with each report. The loss ratio is the share of lost packets among the packets that were reported
/// since the previous change.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossRule {
    packets: u64,
    lost: u64,
    stepped: Option<Instant<SenderClock>>,
}

/// Loss ratio above which the rate falls (draft-ietf-rmcat-gcc-02, Sec. 6).
const MANY: f64 = 0.1;
/// Loss ratio below which the rate rises (draft-ietf-rmcat-gcc-02, Sec. 6).
const FEW: f64 = 0.02;
/// Factor by which the rate rises (draft-ietf-rmcat-gcc-02, Sec. 6).
const GROWTH: f64 = 1.05;
/// The rate is multiplied by 1 minus this value times the loss ratio (draft-ietf-rmcat-gcc-02, Sec. 6).
const CUT: f64 = 0.5;
/// Minimum time between two steps of the rate (pion).
const STEP: Span = Span::from_millis(200);

impl LossRule {
    /// Processes reports on packets. If a step is due, returns the factor for the rate.
    pub(super) fn update(&mut self, now: Instant<SenderClock>, packets: &[PacketReport]) -> Option<f64> {
        self.packets = self.packets.saturating_add(packets.len() as u64);
        let lost = packets.iter().filter(|packet| packet.fate == Fate::Lost).count();
        self.lost = self.lost.saturating_add(lost as u64);
        if self.packets == 0 || self.stepped.is_some_and(|stepped| now - stepped < STEP) {
            return None;
        }
        let share = self.lost as f64 / self.packets as f64;
        *self = Self { stepped: Some(now), ..Self::default() };
        Some(match share {
            _ if share > MANY => 1.0 - CUT * share,
            _ if share < FEW => GROWTH,
            _ => 1.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::control::Ecn;
    use crate::units::Size;

    fn update(rule: &mut LossRule, millis: u64, lost: u64) -> Option<f64> {
        let reports: Vec<_> = (0..100)
            .map(|number| {
                let arrived = Fate::Arrived { at: None, ecn: Ecn::NotEct };
                let fate = if number < lost { Fate::Lost } else { arrived };
                PacketReport::new(number, Size::from_bytes(1000), Instant::ZERO, fate)
            })
            .collect();
        rule.update(Instant::from_nanos(millis * 1_000_000), &reports)
    }

    #[test]
    fn the_steps_are_those_of_the_draft() {
        let found = [0, 1, 2, 10, 11, 40, 100].map(|lost| update(&mut LossRule::default(), 0, lost).unwrap_or(0.0));
        let expected = [1.05, 1.05, 1.0, 1.0, 0.945, 0.8, 0.5];
        assert!(found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-12), "{found:?}");
    }

    #[test]
    fn between_steps_losses_add_up() {
        let mut rule = LossRule::default();
        assert_eq!(update(&mut rule, 0, 0), Some(GROWTH));
        assert_eq!(update(&mut rule, 100, 40), None, "too soon");
        assert_eq!(update(&mut rule, 200, 0), Some(0.9), "20 %");
        assert_eq!(rule.update(Instant::from_nanos(900_000_000), &[]), None, "nothing told");
    }
}
