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

/// A queue with active queue management, followed by a link (the service). A drop-tail queue drops packets only on
/// arrival; this queue can also drop a packet that would be sent next.
#[derive(Clone, Debug)]
pub(in crate::link) struct ManagedQueue<C, P, S> {
    service: S,
    /// The queue's limit, in packets or bytes.
    limit: QueueLimit,
    queue: AnyQueue<C, P>,
    origin: Instant<C>,
    /// From this time on, the link can transmit the next packet. If a packet arrives while the queue is empty and the
    /// link is idle, `free_at` is set to the arrival time.
    free_at: Instant<C>,
    /// Total time before `free_at` in which no packet was queued or in service, in nanoseconds.
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

/// Evaluates the same expression for any variant of `AnyQueue`.
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
    /// Creates an empty queue with CoDel.
    pub(in crate::link) fn codel(service: S, limit: QueueLimit, codel: Codel, origin: Instant<C>) -> Self {
        Self::new(service, limit, AnyQueue::Codel(CodelLine::new(codel)), origin)
    }

    /// Creates the empty queues of FQ-CoDel. `chance` provides the salt of the hash that assigns flows to queues.
    pub(in crate::link) fn fq_codel(
        service: S,
        limit: QueueLimit,
        (fq, chance): (FqCodel, Chance),
        origin: Instant<C>,
    ) -> Self {
        Self::new(service, limit, AnyQueue::FqCodel(FlowQueues::new(fq, chance)), origin)
    }

    /// Creates an empty queue with PIE, which drops packets at random; `chance` provides the random numbers.
    pub(in crate::link) fn pie(
        service: S,
        limit: QueueLimit,
        (pie, chance): (Pie, Chance),
        origin: Instant<C>,
    ) -> Self {
        Self::new(service, limit, AnyQueue::Pie(PieLine::new(pie, chance, origin)), origin)
    }

    /// Creates the two empty queues of DualPI2.
    pub(in crate::link) fn dual_pi2(service: S, limit: QueueLimit, dual: DualPi2, origin: Instant<C>) -> Self {
        Self::new(service, limit, AnyQueue::DualPi2(DualQueue::new(dual, origin)), origin)
    }

    fn new(service: S, limit: QueueLimit, queue: AnyQueue<C, P>, origin: Instant<C>) -> Self {
        Self { service, limit, queue, origin, free_at: origin, idle_ns: 0, longest: 0 }
    }

    /// Adds a packet at `now`. The caller must already have taken all packets that leave before `now`.
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
        // A packet in service does not count as waiting. Drop-tail queues count in the same way.
        self.longest = self.longest.max(self.len().saturating_sub(usize::from(at_once)));
    }

    /// When the next packet can be taken from the queue; `None` if the queue is empty.
    pub(in crate::link) fn next(&self) -> Option<Instant<C>> {
        (self.len() > 0).then(|| self.service.ready(self.free_at))
    }

    /// Number of packets in the queue.
    pub(in crate::link) fn len(&self) -> usize {
        of!(&self.queue, queue => queue.len())
    }

    /// Takes the next packet if its service begins no later than `horizon`. Returns when its service ends, and the
    /// packet.
    pub(in crate::link) fn take(&mut self, horizon: Instant<C>, told: &mut impl Told<P>) -> Option<(Instant<C>, P)> {
        let now = self.next().filter(|at| *at <= horizon)?;
        let Waiting { arrived, size, mut packet } = of!(&mut self.queue, queue => queue.take(now, told))?;
        packet.on_waited(now - arrived);
        self.free_at = self.service.serve(now, size);
        Some((self.free_at, packet))
    }

    /// The usage of the bottleneck until `now`.
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
