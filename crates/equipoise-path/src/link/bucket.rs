//! Token buckets: rate limits that allow bursts.

use super::service::Service;
use equipoise::units::{Instant, Rate, Size, Span};

/// A token bucket: tokens are added at a rate until the bucket is full. Each byte of a packet uses one token (RFC 2697,
/// Sec. 3, but with a single bucket).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// The rate at which tokens are added. A token is one byte of an IP packet.
    pub rate: Rate,
    /// Size of the bucket in bytes. The bucket is full at the start.
    pub burst: Size,
}

impl TokenBucket {
    /// A token bucket that holds the tokens of 100 ms at `rate` (our choice). At 1 Mbit/s, it holds about eight packets
    /// of 1500 bytes.
    pub const fn of(rate: Rate) -> Self {
        Self { rate, burst: Size::from_bytes(rate.as_bps() / 80) }
    }
}

/// The state of a bucket.
#[derive(Clone, Debug)]
pub(super) struct Bucket<C> {
    config: TokenBucket,
    /// Number of tokens at the time `at`, in bit·ns/s (10⁻⁹ bit), so that nothing is rounded.
    tokens: u128,
    /// The time of the last update of `tokens`.
    at: Instant<C>,
}

const NANOS_PER_S: u128 = 1_000_000_000;

const fn tokens(size: Size) -> u128 {
    size.as_bits() as u128 * NANOS_PER_S
}

impl<C> Bucket<C> {
    /// A full bucket at `origin`.
    pub(super) const fn new(config: TokenBucket, origin: Instant<C>) -> Self {
        Self { config, tokens: tokens(config.burst), at: origin }
    }

    fn fill(&mut self, now: Instant<C>) {
        let passed = u128::from((now - self.at).max(Span::ZERO).as_nanos().unsigned_abs());
        let filled = self.tokens.saturating_add(passed.saturating_mul(self.config.rate.as_bps().into()));
        self.tokens = filled.min(tokens(self.config.burst));
        self.at = self.at.max(now);
    }

    /// Takes the tokens for a packet of `size` if the bucket has enough tokens at `now`. Returns whether it had enough.
    pub(super) fn take(&mut self, now: Instant<C>, size: Size) -> bool {
        self.fill(now);
        let left = self.tokens.checked_sub(tokens(size));
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }
}

/// Traffic shaping: a packet leaves as soon as the bucket has enough tokens for it.
impl<C> Service<C> for Bucket<C> {
    /// Does nothing: the next call of `serve` adds the tokens of the idle time.
    fn rest(&mut self, _: Instant<C>) {}

    fn ready(&self, from: Instant<C>) -> Instant<C> {
        from
    }

    fn serve(&mut self, start: Instant<C>, size: Size) -> Instant<C> {
        self.fill(start);
        let missing = tokens(size).saturating_sub(self.tokens);
        let rate = u128::from(self.config.rate.as_bps()).max(1);
        let wait = missing.div_ceil(rate);
        self.tokens = (self.tokens + wait * rate).saturating_sub(tokens(size));
        let end = start.as_nanos().saturating_add(u64::try_from(wait).unwrap_or(u64::MAX));
        self.at = Instant::from_nanos(end);
        self.at
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use equipoise::units::SenderClock;

    type At = Instant<SenderClock>;

    /// A token bucket of 8 Mbit/s, which is 1000 bytes per millisecond, with a burst of 5000 bytes.
    fn bucket() -> Bucket<SenderClock> {
        let config = TokenBucket { rate: Rate::from_bps(8_000_000), burst: Size::from_bytes(5000) };
        Bucket::new(config, At::ZERO)
    }

    fn micros(micros: u64) -> At {
        At::from_nanos(micros * 1000)
    }

    const PACKET: Size = Size::from_bytes(1000);

    #[test]
    fn a_burst_passes_at_once_and_then_a_packet_for_each_ones_tokens() {
        let mut shaper = bucket();
        let mut free = micros(0);
        let ends: [_; 8] = core::array::from_fn(|_| {
            free = shaper.serve(free, PACKET);
            free.as_nanos() / 1000
        });
        assert_eq!(ends, [0, 0, 0, 0, 0, 1000, 2000, 3000]);
    }

    #[test]
    fn what_finds_no_tokens_is_refused_and_takes_none() {
        let mut policer = bucket();
        let taken: [_; 6] = core::array::from_fn(|_| policer.take(micros(0), PACKET));
        assert_eq!(taken, [true, true, true, true, true, false]);
        assert!(!policer.take(micros(999), PACKET) && policer.take(micros(1000), PACKET));
        assert!(!policer.take(micros(1999), PACKET) && policer.take(micros(2000), PACKET));
    }

    proptest! {
        /// In any time interval, at most the burst plus rate × interval passes a token bucket.
        #[test]
        fn no_stretch_of_time_has_more_than_the_burst_and_the_rate(
            gaps in proptest::collection::vec(0u64..3000, 2..100),
            shapes in any::<bool>(),
        ) {
            let (mut bucket, mut now, mut free, mut passed) = (bucket(), micros(0), micros(0), Vec::new());
            for gap in gaps {
                now = now + Span::from_micros(gap as i64);
                if shapes {
                    free = bucket.serve(free.max(now), PACKET);
                    passed.push(free);
                } else if bucket.take(now, PACKET) {
                    passed.push(now);
                }
            }
            for (first, from) in passed.iter().enumerate() {
                for (more, until) in passed[first..].iter().enumerate() {
                    let most = 5000.0 + 1000.0 * (*until - *from).as_millis_f64();
                    prop_assert!(1000.0 * (more + 1) as f64 <= most + 0.01, "{} packets from {from:?} to {until:?}", more + 1);
                }
            }
        }
    }
}
