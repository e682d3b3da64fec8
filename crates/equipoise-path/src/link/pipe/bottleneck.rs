use super::service::AnyService;
use super::under_way::Parcel;
use super::{Capacity, Discipline, PipeConfig, PipeError};
use crate::link::codel::CodelQueue;
use crate::link::fifo::Fifo;
use crate::link::service::RateService;
use crate::link::trace::TraceService;
use equipoise::units::Instant;

/// The queue and the service in the middle of a path.
#[derive(Clone, Debug)]
pub(super) enum Bottleneck<C, P> {
    /// None.
    Open,
    /// The end of a packet's service is known when it comes in.
    DropTail(Fifo<C, AnyService<C>>),
    /// It is known when the service begins.
    Codel(CodelQueue<C, Parcel<P>, AnyService<C>>),
}

/// A packet with the end of its service.
type Served<C, P> = (Instant<C>, Parcel<P>);

impl<C, P> Bottleneck<C, P> {
    pub(super) fn new(config: &PipeConfig, origin: Instant<C>) -> Result<Self, PipeError> {
        let service = match &config.capacity {
            Capacity::Unlimited => return Ok(Self::Open),
            Capacity::Rate(rate) => AnyService::Rate(RateService::new(rate.clone(), origin)?),
            Capacity::Trace(trace) => AnyService::Trace(TraceService::new(trace.clone(), origin)),
        };
        Ok(match config.discipline {
            Discipline::DropTail => Self::DropTail(Fifo::new(service, config.queue, origin)),
            Discipline::Codel(codel) => Self::Codel(CodelQueue::new(service, config.queue, codel, origin)),
        })
    }

    /// A packet comes in: the end of its service where that is known already, or the packet where there is no room.
    pub(super) fn offer(&mut self, now: Instant<C>, parcel: Parcel<P>) -> Result<Option<Served<C, P>>, Parcel<P>> {
        match self {
            Self::Open => Ok(Some((now, parcel))),
            Self::DropTail(queue) => match queue.offer(now, parcel.size) {
                Some(end) => Ok(Some((end, parcel))),
                None => Err(parcel),
            },
            Self::Codel(queue) => queue.offer(now, parcel.size, parcel).map(|()| None),
        }
    }

    /// The next packet whose service begins no later than `horizon`, where that was not known on its arrival.
    pub(super) fn take(&mut self, horizon: Instant<C>, dropped: impl FnMut(Parcel<P>)) -> Option<Served<C, P>> {
        match self {
            Self::Open | Self::DropTail(_) => None,
            Self::Codel(queue) => queue.take(horizon, dropped),
        }
    }

    /// When [`take`](Self::take) gives something next.
    pub(super) fn next(&self) -> Option<Instant<C>> {
        match self {
            Self::Open | Self::DropTail(_) => None,
            Self::Codel(queue) => queue.next(),
        }
    }

    /// Packets that it keeps.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Open | Self::DropTail(_) => 0,
            Self::Codel(queue) => queue.len(),
        }
    }

    /// Waiting packets at `now`: the mean, and the most.
    pub(super) fn lengths(&self, now: Instant<C>) -> (Option<f64>, usize) {
        match self {
            Self::Open => (None, 0),
            Self::DropTail(queue) => {
                let stats = queue.stats(now);
                (stats.mean_queue, stats.longest_queue)
            }
            Self::Codel(queue) => queue.lengths(now),
        }
    }
}
