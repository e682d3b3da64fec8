use equipoise::units::{Instant, Size};

use crate::link::bucket::Bucket;
use crate::link::service::{RateService, Service};
use crate::link::trace::TraceService;

/// The kind of service of the bottleneck, as selected by the configuration.
#[derive(Clone, Debug)]
pub(super) enum AnyService<C> {
    Rate(RateService<C>),
    Trace(TraceService<C>),
    Shaper(Bucket<C>),
}

impl<C> Service<C> for AnyService<C> {
    fn rest(&mut self, now: Instant<C>) {
        match self {
            Self::Rate(service) => service.rest(now),
            Self::Trace(service) => service.rest(now),
            Self::Shaper(service) => service.rest(now),
        }
    }

    fn ready(&self, from: Instant<C>) -> Instant<C> {
        match self {
            Self::Rate(service) => service.ready(from),
            Self::Trace(service) => service.ready(from),
            Self::Shaper(service) => service.ready(from),
        }
    }

    fn serve(&mut self, start: Instant<C>, size: Size) -> Instant<C> {
        match self {
            Self::Rate(service) => service.serve(start, size),
            Self::Trace(service) => service.serve(start, size),
            Self::Shaper(service) => service.serve(start, size),
        }
    }
}
