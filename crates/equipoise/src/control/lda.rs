use super::{
    AdaptationPoints, Allowance, Controller, Feedback, IntervalSummary, Needs, RateLimits, Reason, Snapshot, reduced,
};
use crate::units::{Instant, Rate, SenderClock, Size, Span};

/// The configuration of [`Lda`], the loss-delay based adjustment algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LdaConfig {
    /// `r_0`, the rate at which the session starts.
    pub initial_rate: Rate,
    /// The lowest rate `r_min`, and the highest rate that the session may use.
    pub limits: RateLimits,
    /// `AIR_0`, the first additive increase. With a larger value, the rate reaches the fair share sooner, but
    /// overshoots it further.
    pub initial_increase: Rate,
    /// `R_f`: if a fraction p of the packets is lost, the rate falls by the share `p R_f`.
    pub reduction_factor: f64,
    /// `T_adapt`: time between adaptation points, which are the times when the rate is adapted.
    pub adapt: Span,
    /// Whether the additive increase shrinks from step to step.
    pub increase: Increase,
}

/// How the increase `AIR` follows from the rate r and the bottleneck's rate b. This is line B of Tobe 1999, Fig. 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Increase {
    /// LDA: the next increase is `AIR (1 - r/b)`. `AIR` is the previous increase, r is the rate, and b is the
    /// bottleneck's rate.
    Shrinking,
    /// LDAF: each increase is computed from the first one, `AIR_0`, as `AIR_0 (1 - r/b)` (Tobe 1999, Sec. 6.2).
    Fixed,
}

/// The loss-delay based adjustment algorithm (LDA): an increase that shrinks near the bottleneck's rate, and a decrease
/// in proportion to the loss.
///
/// Source: Sisalem 1998, in the form of Tobe 1999, Fig. 2. Line A of this figure limits the rate to the bottleneck's
/// rate, line B computes the increase, and line C limits the increase to TCP's increase.
///
/// | symbol | name | unit |
/// | --- | --- | --- |
/// | `r`, `b` | rate, bottleneck's rate from packet pairs | bit/s |
/// | `AIR` | additive increase of the rate at an adaptation point | bit/s |
/// | τ | round-trip time | s |
///
/// What the source leaves open is our choice: loss and round-trip time are means over the reports since the last
/// adaptation point. `b` is the last reported value, but at most the upper rate limit. Before the first report, `b` is
/// this limit. Without a round-trip time, line C does not limit the increase. Three missing reports halve the rate.
#[derive(Clone, Debug)]
pub struct Lda {
    config: LdaConfig,
    packet: Size,
    rate: Rate,
    increase_bps: f64,
    bottleneck: Rate,
    losses: AdaptationPoints,
    round_trips: (f64, u32),
    snapshot: Snapshot,
}

/// The state of LDA at an adaptation point; rates in bit/s, times in seconds.
#[derive(Clone, Copy, Debug)]
struct Point {
    rate: f64,
    bottleneck: f64,
    packet_bits: f64,
    adapt_s: f64,
    round_trip_s: Option<f64>,
}

/// Returns the next rate and the next increase `AIR`, from the current `AIR` (Tobe 1999, Fig. 2, lines A to C).
fn raised(point: Point, increase: f64) -> (f64, f64) {
    let Point { rate, bottleneck, packet_bits, adapt_s, round_trip_s } = point;
    // Line A of Tobe 1999, Fig. 2: the rate is at most the bottleneck's rate. Otherwise the increase would become
    // negative.
    if rate >= bottleneck {
        return (bottleneck, increase);
    }
    // Line B of Tobe 1999, Fig. 2: the increase shrinks near the bottleneck's rate.
    let increase = increase * (1.0 - rate / bottleneck);
    // Line C of Tobe 1999, Fig. 2: the increase is at most what TCP would add until the next adaptation point.
    let tcp = round_trip_s.filter(|tau| *tau > 0.0).map(|tau| packet_bits / (2.0 * tau) * (adapt_s / tau + 1.0));
    let increase = tcp.map_or(increase, |tcp| increase.min(tcp));
    // As in line A of Tobe 1999, Fig. 2, the new rate is at most the bottleneck's rate.
    ((rate + increase).min(bottleneck), increase)
}

impl Lda {
    /// Creates a controller that starts at the initial rate, for IP packets of the size `packet`.
    pub fn new(config: LdaConfig, packet: Size) -> Self {
        Self {
            packet,
            rate: config.limits.clamp(config.initial_rate.as_bps_f64()).0,
            increase_bps: config.initial_increase.as_bps_f64(),
            bottleneck: config.limits.max(),
            losses: AdaptationPoints::default(),
            round_trips: (0.0, 0),
            snapshot: Snapshot::default(),
            config,
        }
    }

    fn point(&mut self) -> Point {
        let (sum, count) = core::mem::take(&mut self.round_trips);
        Point {
            rate: self.rate.as_bps_f64(),
            bottleneck: self.bottleneck.min(self.config.limits.max()).as_bps_f64(),
            packet_bits: self.packet.as_bits() as f64,
            adapt_s: self.config.adapt.as_secs_f64(),
            round_trip_s: (count > 0).then(|| sum / f64::from(count)),
        }
    }
}

impl Lda {
    fn on_interval(&mut self, now: Instant<SenderClock>, interval: &IntervalSummary) {
        self.snapshot = Snapshot { reason: Some(Reason::Fixed), ..Snapshot::default() };
        if let Some(round_trip) = interval.round_trip {
            self.round_trips = (self.round_trips.0 + round_trip.as_secs_f64(), self.round_trips.1 + 1);
        }
        if let Some(bottleneck) = interval.bottleneck {
            self.bottleneck = bottleneck;
        }
        let Some(lost) = self.losses.push(now, interval.fraction_lost.unwrap_or(0.0), self.config.adapt) else {
            return;
        };
        let point = self.point();
        let initial = self.config.initial_increase.as_bps_f64();
        let next = if lost > 0.0 {
            self.increase_bps = initial;
            reduced(point.rate, lost, self.config.reduction_factor)
        } else {
            let so_far = if self.config.increase == Increase::Fixed { initial } else { self.increase_bps };
            let (next, increase) = raised(point, so_far);
            if next > point.rate && interval.app_limited {
                self.snapshot.reason = Some(Reason::AppLimited);
                return;
            }
            self.increase_bps = increase;
            next
        };
        let (rate, cut) = self.config.limits.clamp(next);
        self.rate = rate;
        self.snapshot.reason = Some(RateLimits::reason(Reason::Law, cut));
        self.snapshot.law_step_bps = Some(next - point.rate);
    }

    /// Halves the rate because no report arrives.
    fn on_silence(&mut self) {
        self.rate = self.config.limits.halve(self.rate);
        self.snapshot = Snapshot { reason: Some(Reason::ReportsMissing), ..Snapshot::default() };
    }
}

impl Controller for Lda {
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
        self.config.limits.min()
    }

    fn snapshot(&self) -> Snapshot {
        self.snapshot
    }

    fn needs(&self) -> Needs {
        Needs::INTERVALS.and(Needs::PACKET_PAIRS)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::control::IntervalSummary;

    fn kbit(kbit_s: u64) -> Rate {
        Rate::from_bps(kbit_s * 1000)
    }

    /// Returns a controller for packets of 512 bytes, with an adaptation point every 3 s.
    fn controller(increase: Increase) -> Lda {
        let config = LdaConfig {
            initial_rate: kbit(600),
            limits: RateLimits::new(kbit(10), kbit(10_000)).expect("in order"),
            initial_increase: kbit(10),
            reduction_factor: 3.0,
            adapt: Span::from_secs(3),
            increase,
        };
        Lda::new(config, Size::from_bytes(512))
    }

    fn report(lda: &mut Lda, second: i64, fraction_lost: f64) -> f64 {
        let summary = IntervalSummary {
            fraction_lost: Some(fraction_lost),
            round_trip: Some(Span::from_millis(12)),
            bottleneck: Some(kbit(1200)),
            ..IntervalSummary::unmeasured()
        };
        lda.on_feedback(Instant::ZERO + Span::from_secs(second), &Feedback::Interval(summary));
        lda.rate.as_bps_f64() / 1e3
    }

    /// The expected values are those of the paper: an increase of 5 kbit/s raises 600 kbit/s to 605 kbit/s, and a loss
    /// of 2 % reduces 600 kbit/s to 564 kbit/s.
    #[test]
    fn one_step_up_and_one_down_are_those_of_the_paper() {
        let mut lda = controller(Increase::Shrinking);
        assert_eq!([0, 3].map(|second| report(&mut lda, second, 0.0) as u64), [600, 605]);
        assert!((lda.increase_bps - 5000.0).abs() < 1e-9, "{}", lda.increase_bps);
        let mut lda = controller(Increase::Shrinking);
        assert_eq!([0, 3].map(|second| report(&mut lda, second, 0.02) as u64), [600, 564]);
        assert!((lda.increase_bps - 10_000.0).abs() < 1e-9, "loss sets it back");
    }

    /// Each increase of LDAF is `AIR_0 (1 - r/b)`. The first increase of LDA is the same. Each later increase of LDA is
    /// the previous increase, multiplied by `1 - r/b`. `AIR_0` is the configured increase, r the rate, and b the
    /// bottleneck's rate.
    #[test]
    fn the_increase_of_lda_dies_out_and_that_of_ldaf_does_not() {
        let [lda, ldaf] = [Increase::Shrinking, Increase::Fixed].map(|increase| {
            let mut lda = controller(increase);
            [0, 3, 6, 9].map(|second| report(&mut lda, second, 0.0))
        });
        let second = 605.0 + 5.0 * (1.0 - 605.0 / 1200.0);
        assert!((lda[2] - second).abs() < 1e-3, "{lda:?}");
        let second = 605.0 + 10.0 * (1.0 - 605.0 / 1200.0);
        assert!((ldaf[2] - second).abs() < 1e-3, "{ldaf:?}");
        assert!(ldaf[3] - ldaf[2] > lda[3] - lda[2]);
    }

    /// By line C of Tobe 1999, Fig. 2, TCP would add 4096 bit / (2 τ) · (`T_adapt` / τ + 1) = 1365 bit/s, with packets
    /// of 512 bytes, τ = 3 s and `T_adapt` = 3 s.
    #[test]
    fn the_increase_is_not_above_what_tcp_would_add() {
        let point = Point { rate: 6e5, bottleneck: 1.2e6, packet_bits: 4096.0, adapt_s: 3.0, round_trip_s: Some(3.0) };
        let (rate, increase) = raised(point, 1e4);
        assert!((increase - 4096.0 / 3.0).abs() < 1e-9 && (rate - 6e5 - increase).abs() < 1e-9);
    }

    /// By line A of Tobe 1999, Fig. 2, the rate falls to the bottleneck's rate, even without a loss.
    #[test]
    fn the_rate_is_not_above_the_bottleneck() {
        let point = Point { rate: 1.3e6, bottleneck: 1.2e6, packet_bits: 4096.0, adapt_s: 3.0, round_trip_s: None };
        let (rate, increase) = raised(point, 1e4);
        assert!((rate - 1.2e6).abs() < 1e-9 && (increase - 1e4).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn the_rate_stays_within_its_limits(reports in proptest::collection::vec((0i64..100, any::<f64>(), any::<i64>(), any::<u64>()), 1..100)) {
            let mut lda = controller(Increase::Shrinking);
            let mut now = Instant::ZERO;
            for (seconds, fraction_lost, nanos, bps) in reports {
                now = now + Span::from_secs(seconds);
                let round_trip = Some(Span::from_nanos(nanos));
                let bottleneck = Some(Rate::from_bps(bps));
                let summary = IntervalSummary { fraction_lost: Some(fraction_lost), round_trip, bottleneck, ..IntervalSummary::unmeasured() };
                lda.on_feedback(now, &Feedback::Interval(summary));
                let rate = lda.allowance().rate.expect("a rate");
                prop_assert!((kbit(10)..=kbit(10_000)).contains(&rate), "{rate}");
                prop_assert!(lda.increase_bps >= 0.0 && lda.increase_bps.is_finite());
            }
        }
    }
}
