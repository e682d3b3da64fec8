use equipoise::units::{Instant, Size, Span};

use super::codel::CodelLine;
use super::dual_pi2::DualQueue;
use super::fq_codel::FlowQueues;
use super::line::Waiting;
use super::pie::PieLine;
use super::{Aqm, Codel, DualPi2, FqCodel, Pie, Queued, Room, Told};
use crate::link::QueueLimit;
use crate::link::impairment::Chance;
use crate::link::service::Service;
use crate::link::stats::Usage;

/// A queue with active queue management, in front of a service. Unlike in drop-tail, a packet's fate is decided when it
/// leaves the queue.
#[derive(Clone, Debug)]
pub(in crate::link) struct ManagedQueue<C, P, S> {
    service: S,
    /// The queue's limit, in packets or bytes.
    limit: QueueLimit,
    queue: AnyQueue<C, P>,
    origin: Instant<C>,
    /// When the last service ends.
    free_at: Instant<C>,
    /// Total time without packets before `free_at`, in nanoseconds.
    idle_ns: u64,
    longest: usize,
}

#[derive(Clone, Debug)]
enum AnyQueue<C, P> {
    Codel(CodelLine<C, P>),
    FqCodel(FlowQueues<C, P>),
    Pie(PieLine<C, P>),
    DualPi2(DualQueue<C, P>),
}

/// Evaluates the same expression for any kind of queue.
macro_rules! of {
    ($queue:expr, $it:ident => $does:expr) => {
        match $queue {
            AnyQueue::Codel($it) => $does,
            AnyQueue::FqCodel($it) => $does,
            AnyQueue::Pie($it) => $does,
            AnyQueue::DualPi2($it) => $does,
        }
    };
}

impl<C, P: Queued, S: Service<C>> ManagedQueue<C, P, S> {
    /// An empty queue with CoDel.
    pub(in crate::link) fn codel(service: S, limit: QueueLimit, codel: Codel, origin: Instant<C>) -> Self {
        Self::new(service, limit, AnyQueue::Codel(CodelLine::new(codel)), origin)
    }

    /// Empty queues per flow, each with CoDel. `chance` provides the salt that assigns flows to queues.
    pub(in crate::link) fn fq_codel(
        service: S,
        limit: QueueLimit,
        (fq, chance): (FqCodel, Chance),
        origin: Instant<C>,
    ) -> Self {
        Self::new(service, limit, AnyQueue::FqCodel(FlowQueues::new(fq, chance)), origin)
    }

    /// An empty queue with PIE, which drops at random by `chance`.
    pub(in crate::link) fn pie(
        service: S,
        limit: QueueLimit,
        (pie, chance): (Pie, Chance),
        origin: Instant<C>,
    ) -> Self {
        Self::new(service, limit, AnyQueue::Pie(PieLine::new(pie, chance, origin)), origin)
    }

    /// Two empty queues with DualPI2.
    pub(in crate::link) fn dual_pi2(service: S, limit: QueueLimit, dual: DualPi2, origin: Instant<C>) -> Self {
        Self::new(service, limit, AnyQueue::DualPi2(DualQueue::new(dual, origin)), origin)
    }

    fn new(service: S, limit: QueueLimit, queue: AnyQueue<C, P>, origin: Instant<C>) -> Self {
        Self { service, limit, queue, origin, free_at: origin, idle_ns: 0, longest: 0 }
    }

    /// Adds a packet at `now`. All packets that leave before `now` must be taken first.
    pub(in crate::link) fn offer(&mut self, now: Instant<C>, size: Size, packet: P, told: &mut impl Told<P>) {
        let is_empty = self.len() == 0;
        if is_empty && self.free_at <= now {
            self.idle_ns += (now - self.free_at).as_nanos().unsigned_abs();
            self.free_at = now;
            self.service.rest(now);
        }
        let at_once = is_empty && self.service.ready(self.free_at) <= now;
        let (room, packet) = (Room { limit: self.limit, at_once }, Waiting { arrived: now, size, packet });
        of!(&mut self.queue, queue => queue.offer(packet, room, told));
        // The packet in service does not count as waiting, as in the other queues.
        self.longest = self.longest.max(self.len().saturating_sub(usize::from(at_once)));
    }

    /// When the next packet is taken from the queue; `None` if it is empty.
    pub(in crate::link) fn next(&self) -> Option<Instant<C>> {
        (self.len() > 0).then(|| self.service.ready(self.free_at))
    }

    /// Packets in the queue.
    pub(in crate::link) fn len(&self) -> usize {
        of!(&self.queue, queue => queue.len())
    }

    /// Takes the next packet if its service begins no later than `horizon`. Returns the end of its service, and the
    /// packet.
    pub(in crate::link) fn take(&mut self, horizon: Instant<C>, told: &mut impl Told<P>) -> Option<(Instant<C>, P)> {
        let now = self.next().filter(|at| *at <= horizon)?;
        let Waiting { arrived, size, mut packet } = of!(&mut self.queue, queue => queue.take(now, told))?;
        packet.on_waited(now - arrived);
        self.free_at = self.service.serve(now, size);
        Some((self.free_at, packet))
    }

    /// The usage until `now`.
    pub(in crate::link) fn usage(&self, now: Instant<C>) -> Usage {
        let elapsed = (now - self.origin).as_nanos();
        let share = |nanos: u64| (elapsed > 0).then(|| nanos as f64 / elapsed as f64);
        let resting = if self.len() == 0 { (now - self.free_at).max(Span::ZERO) } else { Span::ZERO };
        let idle_ns = self.idle_ns + resting.as_nanos().unsigned_abs();
        Usage {
            utilisation: share(elapsed.unsigned_abs().saturating_sub(idle_ns)),
            mean_queue: share(of!(&self.queue, queue => queue.waited_ns(now))),
            longest_queue: self.longest,
        }
    }
}
