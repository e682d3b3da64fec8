use crate::units::{Instant, SenderClock, Span};

/// The losses reported since the last adaptation point. An adaptation point is a time at which the rate is adapted
/// (Tobe 1999, Fig. 2; Sisalem 1998).
#[derive(Clone, Copy, Debug, Default)]
pub struct AdaptationPoints {
    since: Option<Instant<SenderClock>>,
    sum: f64,
    reports: u32,
}

impl AdaptationPoints {
    /// Records a report. If its time is an adaptation point, returns the mean fraction lost since the previous
    /// adaptation point. The time between two adaptation points is at least `adapt` minus half of the mean report
    /// interval.
    pub fn push(&mut self, now: Instant<SenderClock>, fraction_lost: f64, adapt: Span) -> Option<f64> {
        self.sum += if fraction_lost.is_finite() { fraction_lost.clamp(0.0, 1.0) } else { 0.0 };
        self.reports += 1;
        let since = *self.since.get_or_insert(now);
        let elapsed = now - since;
        // The first report of the session sets the start time, so it does not end a report interval.
        let intervals = i64::from(self.reports).saturating_sub(1).max(1);
        let half_interval = Span::from_nanos(elapsed.as_nanos() / intervals / 2);
        if elapsed == Span::ZERO || elapsed + half_interval < adapt {
            return None;
        }
        let mean = self.sum / f64::from(self.reports);
        *self = Self { since: Some(now), ..Self::default() };
        Some(mean)
    }
}

/// Returns the rate after losses, `r (1 - p R_f)`, in bit/s, from the rate r, the fraction lost p and the reduction
/// factor `R_f` (Tobe 1999, Sec. 4 and Fig. 2).
pub fn reduced(bps: f64, fraction_lost: f64, reduction_factor: f64) -> f64 {
    bps * (1.0 - fraction_lost * reduction_factor)
}
