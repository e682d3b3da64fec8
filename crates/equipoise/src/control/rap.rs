use super::{Allowance, Controller, Feedback, IntervalSummary, RateLimits, Reason, Snapshot};
use crate::units::{Instant, Rate, SenderClock, Size, Span};

/// The rate adaptation protocol (RAP): each round trip adds one packet per round trip to the rate, and a loss halves
/// the rate.
///
/// Source: Rejaie 1999, Sec. III. Without loss, the inter-packet gap IPG changes once per smoothed round-trip time C:
/// `IPG ← IPG C / (IPG + C)`. This adds `packet / C` to the rate. A loss doubles IPG. Further losses are ignored until
/// the new gap can have an effect. The paper's fine-grain adaptation is left out.
///
/// Our choices: the paper's RAP acts once per round trip, but this implementation acts once per report. After a report
/// without loss, the rate grows by one step for each round trip since the last report. After a report with loss, the
/// rate is halved, unless it was already halved less than a round trip ago. If reports are more than a round trip
/// apart, this implementation reacts to losses later than the paper's RAP. Three consecutive report intervals without a
/// report halve the rate.
#[derive(Clone, Debug)]
pub struct Rap {
    limits: RateLimits,
    packet: Size,
    rate: Rate,
    round_trip_s: Option<f64>,
    last_report: Option<Instant<SenderClock>>,
    last_decrease: Option<Instant<SenderClock>>,
    snapshot: Snapshot,
}

/// Weight of a new round-trip time in the smoothed round-trip time (RFC 6298, Sec. 2.3). Rejaie 1999, Sec. III smooths
/// as TCP does.
const NEW_ROUND_TRIP: f64 = 1.0 / 8.0;
/// Maximum number of round trips that one report counts for. There is a maximum because a report after a long silence
/// says little about the path during the silence. The value is our choice.
const MOST_STEPS: f64 = 100.0;

impl Rap {
    /// Creates a controller at the start rate, for IP packets of the size `packet`.
    pub const fn new(limits: RateLimits, packet: Size) -> Self {
        let snapshot = Snapshot { reason: None, law_step_bps: None, response: None };
        let rate = limits.start();
        Self { limits, packet, rate, round_trip_s: None, last_report: None, last_decrease: None, snapshot }
    }

    fn smooth(&mut self, sample: Option<Span>) {
        let Some(sample) = sample.map(Span::as_secs_f64).filter(|sample| *sample > 0.0) else { return };
        let smoothed = self.round_trip_s.map_or(sample, |before| before + NEW_ROUND_TRIP * (sample - before));
        self.round_trip_s = Some(smoothed);
    }
}

impl Rap {
    fn on_interval(&mut self, now: Instant<SenderClock>, interval: &IntervalSummary) {
        self.smooth(interval.round_trip);
        let since = self.last_report.replace(now);
        let bps = self.rate.as_bps_f64();
        let Some(round_trip_s) = self.round_trip_s else {
            self.snapshot = Snapshot { reason: Some(Reason::NoStatistics), ..Snapshot::default() };
            return;
        };
        let next = if interval.has_losses() {
            let is_same = self.last_decrease.is_some_and(|last| (now - last).as_secs_f64() < round_trip_s);
            if !is_same {
                self.last_decrease = Some(now);
            }
            if is_same { bps } else { bps / 2.0 }
        } else {
            let steps = since.map_or(1.0, |since| (now - since).as_secs_f64() / round_trip_s).clamp(0.0, MOST_STEPS);
            bps + steps * self.packet.as_bits() as f64 / round_trip_s
        };
        let mut reason = Reason::Law;
        let step = next - bps;
        if step > 0.0 && interval.app_limited {
            reason = Reason::AppLimited;
        } else {
            let (rate, cut) = self.limits.clamp(next);
            self.rate = rate;
            reason = RateLimits::reason(reason, cut);
        }
        self.snapshot = Snapshot { reason: Some(reason), law_step_bps: Some(step), response: None };
    }

    /// Halves the rate because no report arrives.
    fn on_silence(&mut self) {
        self.rate = self.limits.halve(self.rate);
        self.snapshot = Snapshot { reason: Some(Reason::ReportsMissing), ..Snapshot::default() };
    }
}

impl Controller for Rap {
    fn on_feedback(&mut self, now: Instant<SenderClock>, feedback: &Feedback<'_>) {
        match feedback {
            Feedback::Interval(interval) => self.on_interval(now, interval),
            Feedback::Silent { .. } => self.on_silence(),
            _ => {}
        }
    }

    fn allowance(&self) -> Allowance {
        Allowance::rate(self.rate)
    }

    fn lowest_rate(&self) -> Rate {
        self.limits.min()
    }

    fn snapshot(&self) -> Snapshot {
        self.snapshot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rap() -> Rap {
        let limits = RateLimits::new(Rate::from_bps(100_000), Rate::from_bps(10_000_000)).expect("in order");
        Rap::new(limits, Size::from_bytes(1000))
    }

    fn report(rap: &mut Rap, millis: i64, fraction_lost: f64) -> u64 {
        let round_trip = Some(Span::from_millis(100));
        let summary =
            IntervalSummary { fraction_lost: Some(fraction_lost), round_trip, ..IntervalSummary::unmeasured() };
        rap.on_feedback(Instant::ZERO + Span::from_millis(millis), &Feedback::Interval(summary));
        rap.rate.as_bps() / 1000
    }

    /// In each round trip of 100 ms, one more packet of 8000 bits is sent, which adds 80 kbit/s. The gap between
    /// packets first changes from 80 ms (100 kbit/s) to 80 * 100 / 180 = 44.4 ms (180 kbit/s).
    #[test]
    fn a_round_trip_without_loss_adds_a_packet_to_each() {
        let mut rap = rap();
        let rates = [0, 100, 200, 400].map(|millis| report(&mut rap, millis, 0.0));
        assert_eq!(rates, [180, 260, 340, 500]);
    }

    #[test]
    fn losses_of_one_round_trip_halve_the_rate_once() {
        let mut rap = rap();
        (0..10).for_each(|step| _ = report(&mut rap, step * 100, 0.0));
        assert_eq!([1000, 1050, 1100].map(|millis| report(&mut rap, millis, 0.1)), [450, 450, 225]);
    }

    /// If this test fails, the rate changes although the round-trip time, from which a step is calculated, is unknown.
    #[test]
    fn without_a_round_trip_the_rate_is_kept() {
        let mut rap = rap();
        rap.on_feedback(Instant::ZERO, &Feedback::Interval(IntervalSummary::unmeasured()));
        assert_eq!(rap.allowance().rate, Some(Rate::from_bps(100_000)));
        assert_eq!(rap.snapshot().reason, Some(Reason::NoStatistics));
    }
}
