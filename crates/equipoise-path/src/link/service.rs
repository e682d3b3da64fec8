use core::hint::select_unpredictable;

use super::LinkError;
use equipoise::units::{Instant, Rate, Schedule, Size, Span};

/// The service of a link, one packet after the other: when the next service begins and ends.
///
/// It does not include the queue, so that every discipline can be combined with every service.
pub(super) trait Service<C> {
    /// Records that there was nothing to serve until `now`.
    fn rest(&mut self, now: Instant<C>);
    /// When the service begins for a packet that is first in the queue from `from` on; not before `from`.
    fn ready(&self, from: Instant<C>) -> Instant<C>;
    /// The end of a service of `size` that begins at `start`.
    fn serve(&mut self, start: Instant<C>, size: Size) -> Instant<C>;
}

/// Service at a rate that changes in steps.
///
/// Fractions of a nanosecond are carried from packet to packet, so that a long busy period does not drift.
#[derive(Clone, Debug)]
pub(super) struct RateService<C> {
    rate: Schedule<Rate>,
    origin: Instant<C>,
    /// Work left at the end of the last service by rounding down, in bit·ns/s; less than the rate.
    carry: u64,
    /// The rate at the end of the last service.
    segment: Segment<C>,
    /// Service time for the last packet's size at the segment's rate; used only if the carry is less than the rate.
    division: Division<C>,
}

/// A period with a constant rate.
#[derive(Clone, Copy, Debug)]
struct Segment<C> {
    rate: u64,
    /// When the next period begins.
    until: Instant<C>,
}

/// Service time of packets of one size at the segment's rate, computed once for all of them.
#[derive(Clone, Copy, Debug)]
struct Division<C> {
    size: Size,
    nanos: u64,
    /// The work left by rounding down, and by how much it is less than the rate.
    rest: u64,
    room: u64,
    /// It is valid for services that end before this time.
    until: Instant<C>,
}

impl<C> Division<C> {
    /// Valid for no service.
    const NONE: Self = Self { size: Size::ZERO, nanos: 0, rest: 0, room: 0, until: Instant::ZERO };

    /// The service time of a packet in a segment; `None` if the numbers overflow, or at rate zero.
    fn of(size: Size, segment: &Segment<C>) -> Option<Self> {
        let work = size.as_bits().checked_mul(NANOS_PER_S)?;
        let nanos = work.checked_div(segment.rate).filter(|nanos| *nanos < u64::MAX)?;
        let rest = work % segment.rate;
        Some(Self { size, nanos, rest, room: segment.rate - rest, until: segment.until })
    }
}

impl<C> RateService<C> {
    /// A service whose schedule of rates starts at `origin`; its last rate must be above zero.
    pub(super) fn new(rate: Schedule<Rate>, origin: Instant<C>) -> Result<Self, LinkError> {
        if rate.values().last().is_none_or(|rate| rate.as_bps() == 0) {
            return Err(LinkError::RateEndsAtZero);
        }
        let segment = Segment::at(&rate, origin, Span::ZERO);
        Ok(Self { rate, origin, carry: 0, segment, division: Division::NONE })
    }

    /// Like [`RateService::serve_divided`], for a packet with another size or at another rate than the last packet.
    #[cold]
    fn serve_anew(&mut self, start: Instant<C>, size: Size) -> Instant<C> {
        if start >= self.segment.until {
            self.segment = Segment::at(&self.rate, self.origin, start - self.origin);
        }
        // The carry from another rate may exceed this rate.
        let is_usual = self.carry < self.segment.rate;
        self.division = Division::of(size, &self.segment).filter(|_| is_usual).unwrap_or(Division::NONE);
        self.serve_divided(start, size).unwrap_or_else(|| self.serve_through_steps(start - self.origin, size))
    }

    /// End of the service of a packet with the cached size, if the rate stays until then.
    #[inline]
    fn serve_divided(&mut self, start: Instant<C>, size: Size) -> Option<Instant<C>> {
        let Division { size: divided, nanos, rest, room, until } = self.division;
        // Whether the fractions add up to another nanosecond cannot be predicted, so a branch would be slow.
        let is_more = self.carry >= room;
        let carry = self.carry.wrapping_add(select_unpredictable(is_more, room.wrapping_neg(), rest));
        let end = Instant::from_nanos(start.as_nanos().saturating_add(nanos + u64::from(is_more)));
        // A service that ends within the segment also begins within it.
        if size != divided || end >= until {
            return None;
        }
        self.carry = carry;
        Some(end)
    }

    /// End of a service of `size` that begins at `at` after the origin, across all steps of the rate.
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
