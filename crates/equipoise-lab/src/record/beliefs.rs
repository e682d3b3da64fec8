use equipoise::control::{Beliefs, Snapshot};
use equipoise::units::{Rate, Span};

use crate::result::BeliefResult;
use crate::scenario::MOST_INTERVALS;

/// The estimates of a flow's control law and the reasons for its decisions, sampled every 0.1 s and when the reason or
/// the mode changes.
#[derive(Debug, Default)]
pub(super) struct BeliefRecord {
    /// Rate and reason of the last decision. The next sample contains them.
    decided: (Option<Rate>, Option<&'static str>),
    samples: Vec<BeliefResult>,
}

/// Minimum time between two samples, unless the reason for the rate or the mode of the control law has changed.
const EVERY: Span = Span::from_millis(100);

impl BeliefRecord {
    pub(super) fn on_decided(&mut self, rate: Rate, snapshot: &Snapshot) {
        self.decided = (Some(rate), snapshot.reason.map(equipoise::control::Reason::name));
    }

    pub(super) fn on_believed(&mut self, at: Span, beliefs: &Beliefs) {
        let (Some(rate), reason) = self.decided else { return };
        let at_s = at.as_secs_f64();
        let is_new = self.samples.last().is_none_or(|last| {
            at_s - last.at_s >= EVERY.as_secs_f64()
                || last.reason.as_deref() != reason
                || last.mode != beliefs.mode.name()
        });
        if !is_new || self.samples.len() as u64 >= MOST_INTERVALS {
            return;
        }
        self.samples.push(BeliefResult {
            at_s,
            mode: beliefs.mode.name().to_owned(),
            reason: reason.map(str::to_owned),
            rate_bps: rate.as_bps(),
            capacity_bps: beliefs.capacity_bps,
            available_bps: beliefs.available_bps,
            base_s: beliefs.base_s,
            noise_s: beliefs.noise_s,
            queue_s: beliefs.queue_s,
            target_s: beliefs.target_s,
        });
    }

    pub(super) fn finish(self) -> Vec<BeliefResult> {
        self.samples
    }
}

#[cfg(test)]
mod tests {
    use equipoise::control::{Mode, Reason};

    use super::*;

    #[test]
    fn a_sample_is_kept_each_tenth_of_a_second_and_where_the_reason_or_the_mode_changes() {
        let mut record = BeliefRecord::default();
        let mut believe = |millis: i64, reason: Reason, mode: Mode| {
            let snapshot = Snapshot { reason: Some(reason), ..Snapshot::default() };
            record.on_decided(Rate::from_bps(1_000_000), &snapshot);
            let beliefs = Beliefs {
                mode,
                capacity_bps: None,
                available_bps: Some(2e6),
                base_s: 0.1,
                noise_s: 0.0,
                queue_s: 0.01,
                target_s: 0.005,
            };
            record.on_believed(Span::from_millis(millis), &beliefs);
        };
        for millis in (0..300).step_by(20) {
            believe(millis, Reason::Law, Mode::Delay);
        }
        believe(290, Reason::RateLimit, Mode::Delay);
        believe(295, Reason::RateLimit, Mode::Rival);
        let kept: Vec<_> = record.finish().iter().map(|it| ((it.at_s * 1e3).round() as u32, it.mode.clone())).collect();
        let expected = [(0, "delay"), (100, "delay"), (200, "delay"), (290, "delay"), (295, "rival")];
        assert_eq!(kept, expected.map(|(at, mode)| (at, mode.to_owned())));
    }
}
