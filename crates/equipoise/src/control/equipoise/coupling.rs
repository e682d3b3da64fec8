use super::{Equipoise, LEAST_WINDOW_BITS};
use crate::units::{Instant, Rate, SenderClock, Size};

impl Equipoise {
    /// Continues from `rate`, which was decided for all flows of a bottleneck together. The law's own rates and windows
    /// are scaled by the ratio of the new rate to the old rate, so that the next report does not undo the change.
    pub(super) fn go_on_from(&mut self, now: Instant<SenderClock>, rate: Rate) {
        let before_bps = self.rate_bps.max(1.0);
        self.rate_bps = self.limits.clamp(rate.as_bps_f64()).0.as_bps_f64();
        let scale = self.rate_bps / before_bps;
        self.delay.scale(scale);
        if let Some(rival) = &mut self.rival {
            rival.scale(scale);
        }
        self.media_bps *= scale;
        self.pace_bps *= scale;
        self.window = self.window.map(|window| {
            let scaled_bits = (window.as_bits() as f64 * scale).max(LEAST_WINDOW_BITS);
            Size::from_bytes((scaled_bits / 8.0) as u64)
        });
        if let Some(now_s) = self.path.seconds(now) {
            self.path.grant(now_s, self.rate_bps);
        }
    }
}
