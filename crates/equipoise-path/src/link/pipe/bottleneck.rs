use super::parcel::Parcel;
use super::service::AnyService;
use super::{Capacity, Discipline, PipeConfig, PipeError};
use crate::link::aqm::{Drop, ManagedQueue, Queued, Told};
use crate::link::bucket::Bucket;
use crate::link::fifo::Fifo;
use crate::link::impairment::Chance;
use crate::link::service::RateService;
use crate::link::stats::Usage;
use crate::link::trace::TraceService;
use equipoise::units::Instant;

/// The queue and the transmission (service) of the bottleneck in the middle of a path.
#[derive(Clone, Debug)]
pub(super) enum Bottleneck<C, P> {
    /// No bottleneck: unlimited capacity without a queue.
    Open,
    /// A drop-tail queue: the end of a packet's service is known when the packet arrives.
    DropTail(Fifo<C, AnyService<C>>),
    /// A queue with active queue management: the end of a packet's service is known only when this service begins.
    Managed(ManagedQueue<C, Parcel<P>, AnyService<C>>),
}

/// A packet, and the time at which its service ends.
type Served<C, P> = (Instant<C>, Parcel<P>);

impl<C, P: Queued> Bottleneck<C, P> {
    pub(super) fn new(config: &PipeConfig, origin: Instant<C>, chance: Chance) -> Result<Self, PipeError> {
        let service = match &config.capacity {
            Capacity::Unlimited => return Ok(Self::Open),
            Capacity::Rate(rate) => AnyService::Rate(RateService::new(rate.clone(), origin)?),
            Capacity::Trace(trace) => AnyService::Trace(TraceService::new(trace.clone(), origin)),
            Capacity::Shaped(bucket) => AnyService::Shaper(Bucket::new(*bucket, origin)),
        };
        let limit = config.queue;
        Ok(match config.discipline {
            Discipline::DropTail => Self::DropTail(Fifo::new(service, limit, origin)),
            Discipline::Codel(codel) => Self::Managed(ManagedQueue::codel(service, limit, codel, origin)),
            Discipline::FqCodel(fq) => Self::Managed(ManagedQueue::fq_codel(service, limit, (fq, chance), origin)),
            Discipline::Pie(pie) => Self::Managed(ManagedQueue::pie(service, limit, (pie, chance), origin)),
            Discipline::DualPi2(dual) => Self::Managed(ManagedQueue::dual_pi2(service, limit, dual, origin)),
        })
    }

    /// Adds a packet to the queue. If the end of the packet's service is already known, returns this time and the
    /// packet.
    pub(super) fn offer(
        &mut self,
        now: Instant<C>,
        mut parcel: Parcel<P>,
        told: &mut impl Told<Parcel<P>>,
    ) -> Option<Served<C, P>> {
        match self {
            Self::Open => Some((now, parcel)),
            Self::DropTail(queue) => {
                if let Some(turn) = queue.offer(now, parcel.size) {
                    parcel.on_waited(turn.wait);
                    return Some((turn.end, parcel));
                }
                told.dropped(parcel, Drop::Full);
                None
            }
            Self::Managed(queue) => {
                queue.offer(now, parcel.size, parcel, told);
                None
            }
        }
    }

    /// Returns the next packet whose service begins no later than `horizon`, for a queue with active queue management.
    /// Always `None` for the other variants, because [`offer`](Self::offer) has already returned their packets.
    pub(super) fn take(&mut self, horizon: Instant<C>, told: &mut impl Told<Parcel<P>>) -> Option<Served<C, P>> {
        match self {
            Self::Open | Self::DropTail(_) => None,
            Self::Managed(queue) => queue.take(horizon, told),
        }
    }

    /// The smallest `horizon` for which [`take`](Self::take) can return the next packet.
    pub(super) fn next(&self) -> Option<Instant<C>> {
        match self {
            Self::Open | Self::DropTail(_) => None,
            Self::Managed(queue) => queue.next(),
        }
    }

    /// Number of queued packets for which the end of the service is not known yet.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Open | Self::DropTail(_) => 0,
            Self::Managed(queue) => queue.len(),
        }
    }

    /// The share of the time until `now` in which the bottleneck was busy, and the mean and maximum number of waiting
    /// packets.
    pub(super) fn usage(&self, now: Instant<C>) -> Usage {
        match self {
            Self::Open => Usage::default(),
            Self::DropTail(queue) => queue.usage(now),
            Self::Managed(queue) => queue.usage(now),
        }
    }
}
