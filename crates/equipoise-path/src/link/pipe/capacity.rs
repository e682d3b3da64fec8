use super::super::{DeliveryTrace, TokenBucket};
use equipoise::units::{Rate, Schedule, Size, Span};

/// The capacity of the bottleneck. Rates and sizes are those of IP packets, with their headers and without link-layer
/// framing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Capacity {
    /// Unlimited: no queue.
    #[default]
    Unlimited,
    /// A rate that is constant or changes in steps. It may be zero for some time (an outage), but the last rate must be
    /// above zero.
    Rate(Schedule<Rate>),
    /// A traffic shaper: a token bucket. Packets that exceed the bucket's rate and burst size are delayed.
    Shaped(TokenBucket),
    /// The delivery opportunities of a recorded trace.
    Trace(DeliveryTrace),
}

impl From<Schedule<Rate>> for Capacity {
    fn from(rate: Schedule<Rate>) -> Self {
        Self::Rate(rate)
    }
}

impl Capacity {
    /// The rate over time, without the bursts of a shaper; for a trace, the mean rate; `None` if the capacity is
    /// unlimited.
    pub fn rate(&self) -> Option<Schedule<Rate>> {
        match self {
            Self::Unlimited => None,
            Self::Rate(rate) => Some(rate.clone()),
            Self::Shaped(bucket) => Some(bucket.rate.into()),
            Self::Trace(trace) => Some(trace.mean_rate().into()),
        }
    }

    /// The number of bits that the bottleneck can transmit from `from` to `to`, both measured from the start of the
    /// rate schedule or of the trace; `None` if unlimited.
    ///
    /// The bursts that a shaper sends above its rate are not included.
    pub fn bits(&self, from: Span, to: Span) -> Option<f64> {
        match self {
            Self::Unlimited => None,
            Self::Rate(rate) => Some(bits(rate, from, to)),
            Self::Shaped(bucket) => Some(bits(&bucket.rate.into(), from, to)),
            Self::Trace(trace) => Some(trace.bits(from, to)),
        }
    }

    /// `offered` divided by the amount of data that the bottleneck can transmit from `from` to `to`. Both times are
    /// measured from the start of the rate schedule or of the trace. `None` if this amount is zero or unlimited.
    pub fn load(&self, from: Span, to: Span, offered: Size) -> Option<f64> {
        self.bits(from, to).filter(|bits| *bits > 0.0).map(|bits| offered.as_bits() as f64 / bits)
    }

    /// Transmission time of a packet of `size`, at the rate that applies at the time `elapsed` since the start of the
    /// schedule. For a trace, the mean rate is used. Zero if the capacity is unlimited or the rate is zero.
    pub(super) fn serialisation(&self, elapsed: Span, size: Size) -> Span {
        let rate = match self {
            Self::Unlimited => return Span::ZERO,
            Self::Rate(rate) => rate.at(elapsed),
            Self::Shaped(bucket) => bucket.rate,
            Self::Trace(trace) => trace.mean_rate(),
        };
        rate.time_to_send(size).unwrap_or(Span::ZERO)
    }
}

/// The number of bits that are sent at `rate` from `from` to `to`. Both times are measured from the start of the
/// schedule.
fn bits(rate: &Schedule<Rate>, from: Span, to: Span) -> f64 {
    let (mut bits, mut at) = (0.0, from);
    while at < to {
        let until = rate.next_step(at).unwrap_or(Span::MAX).min(to);
        bits += rate.at(at).as_bps_f64() * (until - at).as_secs_f64();
        at = until;
    }
    bits
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn ms(ms: i64) -> Span {
        Span::from_millis(ms)
    }

    #[test]
    fn what_is_carried_counts_steps_outages_and_opportunities() {
        let mbps = |mbps: u64| Rate::from_bps(mbps * 1_000_000);
        let steps = vec![(ms(10), Rate::ZERO), (ms(20), mbps(4))];
        let rate = Capacity::Rate(Schedule::new(mbps(8), steps));
        let carried = |from, to| rate.bits(ms(from), ms(to)).map(f64::round);
        assert_eq!(carried(0, 30), Some(80_000.0 + 40_000.0));
        assert_eq!(carried(12, 18), Some(0.0));
        assert_eq!(rate.load(ms(12), ms(18), Size::from_bytes(100)), None, "nothing is carried then");
        assert_eq!(rate.load(ms(0), ms(10), Size::from_bytes(5000)), Some(0.5));
        // The trace has opportunities at 3, 3 and 10 ms. It repeats after 10 ms, so the next opportunities are at 13,
        // 13 and 20 ms.
        let trace = Capacity::Trace(DeliveryTrace::parse("3\n3\n10\n").expect("a good trace"));
        let opportunities = |from, to| trace.bits(ms(from), ms(to)).map(|bits| bits / 12_000.0);
        assert_eq!(
            [opportunities(0, 20), opportunities(0, 3), opportunities(3, 13)],
            [Some(6.0), Some(2.0), Some(3.0)]
        );
        assert_eq!((Capacity::Unlimited.bits(ms(0), ms(1)), Capacity::Unlimited.rate()), (None, None));
    }

    #[test]
    fn a_packet_is_as_long_as_its_rate_says() {
        let rate = Capacity::Rate(Rate::from_bps(8_000_000).into());
        assert_eq!(rate.serialisation(ms(0), Size::from_bytes(1000)), ms(1));
        assert_eq!(Capacity::Unlimited.serialisation(ms(0), Size::from_bytes(1000)), Span::ZERO);
    }
}
