use equipoise::pace::Pacer;
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};

/// Keeps the mean of what has no end at the rate, where single packets follow each other faster.
///
/// A controller's pace is for frames, whose encoder keeps their mean within the rate. What comes without end would leave at the pace for ever. So it
/// leaves in trains like those of frames: at the pace until it is ahead of the rate by [`AHEAD`](Self::AHEAD), and then not until the rate has come up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Evenness {
    /// When all that left would have, at the rate.
    due: Option<Instant<SenderClock>>,
    /// Until when nothing leaves.
    rests_until: Option<Instant<SenderClock>>,
}

impl Evenness {
    /// How far a train runs ahead of the rate: that of a frame of 1/30 s which leaves at 1.35 times the rate. Ours.
    const AHEAD: Span = Span::from_micros(8600);

    /// A packet of `size` left at `now`, where the mean is to be `rate`. Gives until when the sender rests, if the train is over.
    pub(super) fn on_departure(
        &mut self,
        now: Instant<SenderClock>,
        size: Size,
        rate: Rate,
    ) -> Option<Instant<SenderClock>> {
        let own = rate.time_to_send(size)?;
        // Who was late makes up for as much as a pacer does; who was slower before owes nothing.
        let due = self.due.map_or(now, |due| due.clamp(now - Pacer::<SenderClock>::DEBT, now + Self::AHEAD)) + own;
        self.due = Some(due);
        // The packet that left takes its own time at the rate, which is no head start.
        self.rests_until = (due - now - own >= Self::AHEAD).then_some(due);
        self.rests_until
    }

    /// Until when nothing leaves, if that is later than `now`.
    pub(super) fn rests(&self, now: Instant<SenderClock>) -> Option<Instant<SenderClock>> {
        self.rests_until.filter(|until| *until > now)
    }

    /// When a rest ended that is over by `now`; once.
    pub(super) fn take_rested(&mut self, now: Instant<SenderClock>) -> Option<Instant<SenderClock>> {
        self.rests_until.take_if(|until| *until <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use equipoise::pace::Readiness;

    /// If it fails, `--max-rate 8M` sends 10.8 Mbit/s.
    #[test]
    fn the_mean_is_the_rate_whatever_the_pace() {
        for (kbps, pace) in [(300, 1.35), (8000, 1.35), (8000, 2.5), (50_000, 1.02)] {
            let rate = Rate::from_bps(kbps * 1000);
            let (mut pacer, mut even) =
                (Pacer::new(Rate::from_bps((kbps as f64 * 1e3 * pace) as u64)), Evenness::default());
            let (mut now, mut sent, size) = (Instant::ZERO, Size::ZERO, Size::from_bytes(1200));
            let mut longest = Span::ZERO;
            while now < Instant::ZERO + Span::from_secs(10) {
                if let Some(until) = even.take_rested(now) {
                    pacer.rested_until(until);
                }
                assert_eq!(pacer.poll(now), Readiness::Now);
                assert_eq!(pacer.on_departure(now, size), None, "a rest is no lateness");
                even.on_departure(now, size, rate);
                sent = sent + size;
                let before = now;
                if let Readiness::At(due) = pacer.poll(now) {
                    now = due;
                }
                now = even.rests(before).map_or(now, |until| until.max(now));
                longest = longest.max(now - before);
            }
            let mean = sent.as_bits() as f64 / 10.0;
            assert!((mean / rate.as_bps_f64() - 1.0).abs() < 0.005, "{kbps} kbit/s at {pace}: {mean}");
            let most =
                rate.time_to_send(size).expect("a rate") + rate.time_to_send(size).expect("a rate") + Evenness::AHEAD;
            assert!(longest <= most, "{longest:?}");
        }
    }
}
