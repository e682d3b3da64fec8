use super::LinkError;
use equipoise::units::{Instant, Rate, Schedule, Size, Span};

/// How a link works off packets, one after the other: when it takes up the next, and when it is done with it.
///
/// The queue before it is somebody else's, so that every discipline goes with every service.
pub(super) trait Service<C> {
    /// There was nothing to do until `now`.
    fn rest(&mut self, now: Instant<C>);
    /// When a packet is taken up that is first in the queue from `from` on: then, or later.
    fn ready(&self, from: Instant<C>) -> Instant<C>;
    /// When the service of `size` ends that begins at `start`.
    fn serve(&mut self, start: Instant<C>, size: Size) -> Instant<C>;
}

/// Service at a rate that changes in steps.
///
/// Fractions of a nanosecond are carried from packet to packet, so that a long busy period does not drift.
#[derive(Clone, Debug)]
pub(super) struct RateService<C> {
    rate: Schedule<Rate>,
    origin: Instant<C>,
    /// Work left over at the end of the last service by rounding down, in bit·ns/s; less than the rate.
    carry: u64,
    /// The rate at that end.
    segment: Segment<C>,
    /// How long the last packet's size takes at the segment's rate, and the work that rounding down leaves.
    division: Division,
}

/// A stretch of time in which the rate stays.
#[derive(Clone, Copy, Debug)]
struct Segment<C> {
    rate: u64,
    /// When the next one begins.
    until: Instant<C>,
}

/// The division of a packet's work by a rate, done once for packets of one size.
#[derive(Clone, Copy, Debug)]
struct Division {
    size: Size,
    rate: u64,
    nanos: u64,
    rest: u64,
}

impl<C> RateService<C> {
    /// A service whose schedule of rates starts at `origin`; its last rate is to be above zero.
    pub(super) fn new(rate: Schedule<Rate>, origin: Instant<C>) -> Result<Self, LinkError> {
        if rate.values().last().is_none_or(|rate| rate.as_bps() == 0) {
            return Err(LinkError::RateEndsAtZero);
        }
        let segment = Segment::at(&rate, origin, Span::ZERO);
        let division = Division { size: Size::ZERO, rate: 1, nanos: 0, rest: 0 };
        Ok(Self { rate, origin, carry: 0, segment, division })
    }

    /// The division for `size` at `rate`; `None` where it does not fit, or where nothing is served.
    fn divide(&mut self, rate: u64, size: Size) -> Option<Division> {
        if (self.division.size, self.division.rate) != (size, rate) {
            let work = size.as_bits().checked_mul(NANOS_PER_S)?;
            let nanos = work.checked_div(rate)?;
            self.division = Division { size, rate, nanos, rest: work % rate };
        }
        Some(self.division)
    }

    /// End of the service of `size` that begins at `at` since the origin, through every step of the rate.
    fn serve_through_steps(&mut self, mut at: Span, size: Size) -> Instant<C> {
        let mut work = u128::from(size.as_bits()) * u128::from(NANOS_PER_S) + u128::from(self.carry);
        loop {
            let rate = u128::from(self.rate.at(at).as_bps());
            let step = self.rate.next_step(at);
            let until_step = step.map(|step| rate * u128::from((step - at).as_nanos().unsigned_abs()));
            match (until_step, step) {
                (Some(possible), Some(step)) if possible < work => {
                    work -= possible;
                    at = step;
                }
                _ => {
                    // The last rate is above zero by construction.
                    let rate = rate.max(1);
                    self.carry = (work % rate) as u64;
                    let nanos = i64::try_from(work / rate).unwrap_or(i64::MAX);
                    return self.origin + (at + Span::from_nanos(nanos));
                }
            }
        }
    }
}

impl<C> Service<C> for RateService<C> {
    fn rest(&mut self, _: Instant<C>) {
        self.carry = 0;
    }

    fn ready(&self, from: Instant<C>) -> Instant<C> {
        from
    }

    fn serve(&mut self, start: Instant<C>, size: Size) -> Instant<C> {
        if start >= self.segment.until {
            self.segment = Segment::at(&self.rate, self.origin, start - self.origin);
        }
        let Segment { rate, until } = self.segment;
        // What is left over from another rate may exceed this one.
        if let Some(division) = self.divide(rate, size).filter(|_| self.carry < rate) {
            let (rest, nanos) = if self.carry >= rate - division.rest {
                (self.carry - (rate - division.rest), division.nanos + 1)
            } else {
                (self.carry + division.rest, division.nanos)
            };
            let end = Instant::from_nanos(start.as_nanos().saturating_add(nanos));
            if end < until {
                self.carry = rest;
                return end;
            }
        }
        self.serve_through_steps(start - self.origin, size)
    }
}

const NANOS_PER_S: u64 = 1_000_000_000;

impl<C> Segment<C> {
    fn at(rate: &Schedule<Rate>, origin: Instant<C>, elapsed: Span) -> Self {
        let until = rate.next_step(elapsed).map_or(Instant::MAX, |step| origin + step);
        Self { rate: rate.at(elapsed).as_bps(), until }
    }
}
