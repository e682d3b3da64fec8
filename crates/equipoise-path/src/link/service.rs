use core::hint::select_unpredictable;

use super::LinkError;
use equipoise::units::{Instant, Rate, Schedule, Size, Span};

/// Computes when the transmission (service) of each packet begins and ends. A link serves one packet after the other.
///
/// The queue is not part of the service, so every queue discipline can be combined with every service.
pub(super) trait Service<C> {
    /// Informs the service that the queue was empty until `now`.
    fn rest(&mut self, now: Instant<C>);
    /// Returns when a packet's service begins, if the packet is first in the queue from the time `from` on. The
    /// returned time is never before `from`.
    fn ready(&self, from: Instant<C>) -> Instant<C>;
    /// Serves a packet of `size` from `start` on. Returns when this service ends.
    fn serve(&mut self, start: Instant<C>, size: Size) -> Instant<C>;
}

/// Service at a rate that changes in steps.
///
/// Fractions of a nanosecond are carried from packet to packet, so that rounding errors do not add up in a long busy
/// period.
#[derive(Clone, Debug)]
pub(super) struct RateService<C> {
    rate: Schedule<Rate>,
    origin: Instant<C>,
    /// The end of a service is rounded down to a whole nanosecond. This is the part of the data that is not yet sent at
    /// the rounded end of the last service, in bit·ns/s (10⁻⁹ bit). Sending this part takes less than 1 ns, so the
    /// number is less than the rate in bit/s at that time.
    carry: u64,
    /// The period of constant rate in which the last service began.
    segment: Segment<C>,
    /// Precomputed service time for packets with the size of the last packet, at the current constant rate.
    division: Division<C>,
}

/// A period in which the rate is constant.
#[derive(Clone, Copy, Debug)]
struct Segment<C> {
    rate: u64,
    /// When this period ends and the next period begins.
    until: Instant<C>,
}

/// Precomputed service time of packets of one size, for the current period of constant rate.
#[derive(Clone, Copy, Debug)]
struct Division<C> {
    size: Size,
    nanos: u64,
    /// `rest` is the work that remains because `nanos` is rounded down, in bit·ns/s. `room` is the rate in bit/s minus
    /// `rest`. If `RateService::carry` is at least `room`, the service takes one nanosecond more.
    rest: u64,
    room: u64,
    /// The precomputed values are valid for services that end before this time.
    until: Instant<C>,
}

impl<C> Division<C> {
    /// A value that is valid for no service.
    const NONE: Self = Self { size: Size::ZERO, nanos: 0, rest: 0, room: 0, until: Instant::ZERO };

    /// Computes the service time of a packet of `size` at the rate of `segment`; `None` if the numbers overflow or the
    /// rate is zero.
    fn of(size: Size, segment: &Segment<C>) -> Option<Self> {
        let work = size.as_bits().checked_mul(NANOS_PER_S)?;
        let nanos = work.checked_div(segment.rate).filter(|nanos| *nanos < u64::MAX)?;
        let rest = work % segment.rate;
        Some(Self { size, nanos, rest, room: segment.rate - rest, until: segment.until })
    }
}

impl<C> RateService<C> {
    /// A service whose schedule of rates starts at `origin`. The last rate must be above zero.
    pub(super) fn new(rate: Schedule<Rate>, origin: Instant<C>) -> Result<Self, LinkError> {
        if rate.values().last().is_none_or(|rate| rate.as_bps() == 0) {
            return Err(LinkError::RateEndsAtZero);
        }
        let segment = Segment::at(&rate, origin, Span::ZERO);
        Ok(Self { rate, origin, carry: 0, segment, division: Division::NONE })
    }

    /// Serves a packet for which [`RateService::serve_divided`] returned `None`.
    #[cold]
    fn serve_anew(&mut self, start: Instant<C>, size: Size) -> Instant<C> {
        if start >= self.segment.until {
            self.segment = Segment::at(&self.rate, self.origin, start - self.origin);
        }
        // `serve_divided` requires that `carry` is less than the rate. After a decrease of the rate, `carry` may be too
        // large.
        let is_usual = self.carry < self.segment.rate;
        self.division = Division::of(size, &self.segment).filter(|_| is_usual).unwrap_or(Division::NONE);
        self.serve_divided(start, size).unwrap_or_else(|| self.serve_through_steps(start - self.origin, size))
    }

    /// Returns the end of the service of a packet of `size`. `None` if no service time is precomputed for this size, or
    /// if the rate changes before or at the end of the service.
    #[inline]
    fn serve_divided(&mut self, start: Instant<C>, size: Size) -> Option<Instant<C>> {
        let Division { size: divided, nanos, rest, room, until } = self.division;
        // Whether the fractions add up to another nanosecond is unpredictable for the processor, so a branch would be
        // slow.
        let is_more = self.carry >= room;
        let carry = self.carry.wrapping_add(select_unpredictable(is_more, room.wrapping_neg(), rest));
        let end = Instant::from_nanos(start.as_nanos().saturating_add(nanos + u64::from(is_more)));
        // The precomputed time is valid only if the rate is constant during the service. The service begins after the
        // previous change of the rate, because packets are served in time order. Therefore it is sufficient to check
        // that the service ends before the next change.
        if size != divided || end >= until {
            return None;
        }
        self.carry = carry;
        Some(end)
    }

    /// Returns the end of the service of `size` bytes that begins when the time `at` has passed since the origin. The
    /// rate may change during this service.
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
                    // If the rate is zero here, `work` is zero, too, because the last rate of a schedule is above zero.
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

    #[inline]
    fn serve(&mut self, start: Instant<C>, size: Size) -> Instant<C> {
        self.serve_divided(start, size).unwrap_or_else(|| self.serve_anew(start, size))
    }
}

const NANOS_PER_S: u64 = 1_000_000_000;

impl<C> Segment<C> {
    fn at(rate: &Schedule<Rate>, origin: Instant<C>, elapsed: Span) -> Self {
        let until = rate.next_step(elapsed).map_or(Instant::MAX, |step| origin + step);
        Self { rate: rate.at(elapsed).as_bps(), until }
    }
}
