use alloc::collections::VecDeque;

use super::QueueLimit;
use super::service::Service;
use equipoise::units::{Instant, Size, Span};

/// Controlled delay: a queue whose standing delay is kept short by dropping at its head, more and more often.
///
/// Source: RFC 8289. `target` is the delay that may stand, `interval` how long it may be exceeded: the round-trip times
/// for which the control is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codel {
    /// A minimum of the waiting time above this is a standing queue; shorter, and the link idles now and then.
    pub target: Span,
    /// The time over which the minimum counts; about the longest usual round-trip time.
    pub interval: Span,
}

/// 5 ms and 100 ms (RFC 8289, Sec. 4.2, 4.3).
impl Default for Codel {
    fn default() -> Self {
        Self { target: Span::from_millis(5), interval: Span::from_millis(100) }
    }
}

/// The decision whether to drop a packet that is taken from the queue.
///
/// Source: RFC 8289, Sec. 5.4 to 5.6, whose names stand behind the fields.
#[derive(Clone, Debug)]
struct Law<C> {
    codel: Codel,
    /// When the delay will have been above target for an interval (`first_above_time_`); `None` while it is below.
    first_above: Option<Instant<C>>,
    /// When to drop next (`drop_next_`).
    drop_next: Instant<C>,
    /// Drops since entering the dropping state (`count_`), and what it began with (`lastcount_`).
    count: u32,
    last_count: u32,
    dropping: bool,
}

/// If the state is entered again within so many intervals, it goes on with about the frequency it had (RFC 8289,
/// Sec. 5.4).
const MEMORY_INTERVALS: i64 = 16;

impl<C> Law<C> {
    fn new(codel: Codel) -> Self {
        Self { codel, first_above: None, drop_next: Instant::ZERO, count: 0, last_count: 0, dropping: false }
    }

    /// Whether a packet may be dropped that waited for `sojourn`, with `small` where hardly anything waits behind it
    /// (`dodequeue`).
    fn may_drop(&mut self, now: Instant<C>, sojourn: Span, small: bool) -> bool {
        if sojourn < self.codel.target || small {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + self.codel.interval);
                false
            }
            Some(at) => now >= at,
        }
    }

    /// Time of the drop after one at `at` (`control_law`).
    fn after(&self, at: Instant<C>) -> Instant<C> {
        let gap = self.codel.interval.as_nanos() as f64 / libm::sqrt(f64::from(self.count.max(1)));
        at + Span::from_nanos(gap as i64)
    }

    /// The dropping state begins.
    fn enter(&mut self, now: Instant<C>) {
        self.dropping = true;
        let delta = self.count.wrapping_sub(self.last_count);
        let recent = now - self.drop_next < self.codel.interval * MEMORY_INTERVALS;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = self.after(now);
        self.last_count = self.count;
    }
}

/// A queue under CoDel before a service. Unlike drop-tail's, its fate is decided when packets leave it.
#[derive(Clone, Debug)]
pub(super) struct CodelQueue<C, P, S> {
    service: S,
    /// In packets or bytes.
    limit: QueueLimit,
    law: Law<C>,
    origin: Instant<C>,
    /// End of the last service.
    free_at: Instant<C>,
    waiting: VecDeque<Waiting<C, P>>,
    waiting_bytes: Size,
    /// The largest packet so far (`maxpacket_`).
    largest: Size,
    /// Waiting times of all that no longer wait.
    waited_ns: u64,
    longest: usize,
}

#[derive(Clone, Debug)]
struct Waiting<C, P> {
    arrived: Instant<C>,
    size: Size,
    packet: P,
}

impl<C, P, S: Service<C>> CodelQueue<C, P, S> {
    /// An empty queue; `limit` is to be in packets or bytes.
    pub(super) fn new(service: S, limit: QueueLimit, codel: Codel, origin: Instant<C>) -> Self {
        Self {
            service,
            limit,
            law: Law::new(codel),
            origin,
            free_at: origin,
            waiting: VecDeque::new(),
            waiting_bytes: Size::ZERO,
            largest: Size::ZERO,
            waited_ns: 0,
            longest: 0,
        }
    }

    /// A packet comes in at `now`, after all that was to be taken until then; given back where there is no room.
    pub(super) fn offer(&mut self, now: Instant<C>, size: Size, packet: P) -> Result<(), P> {
        if self.waiting.is_empty() && self.free_at <= now {
            self.free_at = now;
            self.service.rest(now);
        }
        let at_once = self.waiting.is_empty() && self.service.ready(self.free_at) <= now;
        let full = match self.limit {
            QueueLimit::Packets(limit) => self.waiting.len() >= limit as usize,
            QueueLimit::Bytes(limit) => self.waiting_bytes + size > limit,
            QueueLimit::Time(_) => false,
        };
        if full && !at_once {
            return Err(packet);
        }
        self.largest = self.largest.max(size);
        self.waiting_bytes = self.waiting_bytes + size;
        self.waiting.push_back(Waiting { arrived: now, size, packet });
        // As elsewhere the packet in service does not wait.
        self.longest = self.longest.max(self.waiting.len() - usize::from(at_once));
        Ok(())
    }

    /// When the next packet is taken from the queue; `None` while there is none.
    pub(super) fn next(&self) -> Option<Instant<C>> {
        (!self.waiting.is_empty()).then(|| self.service.ready(self.free_at))
    }

    /// Packets in the queue.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Takes the next packet, if its time is no later than `horizon`: the end of its service, and the packet. Those that
    /// are dropped before it go to `dropped`.
    pub(super) fn take(&mut self, horizon: Instant<C>, mut dropped: impl FnMut(P)) -> Option<(Instant<C>, P)> {
        let now = self.next().filter(|at| *at <= horizon)?;
        let (mut first, mut may_drop) = self.pop(now);
        if self.law.dropping {
            self.law.dropping = may_drop;
            while self.law.dropping && now >= self.law.drop_next {
                if let Some(first) = first {
                    dropped(first.packet);
                }
                self.law.count = self.law.count.saturating_add(1);
                (first, may_drop) = self.pop(now);
                if may_drop {
                    self.law.drop_next = self.law.after(self.law.drop_next);
                } else {
                    self.law.dropping = false;
                }
            }
        } else if may_drop {
            if let Some(first) = first {
                dropped(first.packet);
            }
            (first, _) = self.pop(now);
            self.law.enter(now);
        }
        // A packet may be dropped only while more than the largest one's bytes wait behind it, so there is one.
        let Waiting { size, packet, .. } = first?;
        self.free_at = self.service.serve(now, size);
        Some((self.free_at, packet))
    }

    /// Waiting packets: the mean until `now`, `None` before any time has passed, and the most.
    pub(super) fn lengths(&self, now: Instant<C>) -> (Option<f64>, usize) {
        let elapsed = (now - self.origin).as_secs_f64();
        let still = self
            .waiting
            .iter()
            .fold(0, |sum: u64, packet| sum.saturating_add(now.as_nanos().saturating_sub(packet.arrived.as_nanos())));
        let mean = (elapsed > 0.0).then(|| self.waited_ns.saturating_add(still) as f64 / 1e9 / elapsed);
        (mean, self.longest)
    }

    /// The head of the queue, and whether it may be dropped.
    fn pop(&mut self, now: Instant<C>) -> (Option<Waiting<C, P>>, bool) {
        let Some(head) = self.waiting.pop_front() else {
            self.law.first_above = None;
            return (None, false);
        };
        self.waiting_bytes = self.waiting_bytes - head.size;
        let sojourn = now - head.arrived;
        self.waited_ns = self.waited_ns.saturating_add(sojourn.as_nanos().unsigned_abs());
        let small = self.waiting_bytes <= self.largest;
        let may_drop = self.law.may_drop(now, sojourn, small);
        (Some(head), may_drop)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::link::service::RateService;
    use equipoise::units::{Rate, Schedule, SenderClock};

    type At = Instant<SenderClock>;

    /// 1 ms a packet.
    const PACKET: Size = Size::from_bytes(1000);

    /// Waiting times in ms and times of drops in s, for a packet every `gap_us` over `seconds`.
    fn run(gap_us: u64, seconds: u64) -> (Vec<f64>, Vec<f64>) {
        let rate = RateService::new(Schedule::constant(Rate::from_bps(8_000_000)), At::ZERO).expect("above zero");
        let mut queue = CodelQueue::new(rate, QueueLimit::Packets(10_000), Codel::default(), At::ZERO);
        let (mut waits, mut drops) = (Vec::new(), Vec::new());
        for number in 0..seconds * 1_000_000 / gap_us {
            let now = At::from_nanos(number * gap_us * 1000);
            while let Some(at) = queue.next().filter(|at| *at <= now) {
                let dropped = |_: At| drops.push(at.as_nanos() as f64 / 1e9);
                if let Some((_, arrived)) = queue.take(now, dropped) {
                    waits.push((at - arrived).as_millis_f64());
                }
            }
            queue.offer(now, PACKET, now).expect("room");
        }
        (waits, drops)
    }

    #[test]
    fn below_the_link_s_rate_nothing_is_dropped() {
        assert!(run(1010, 20).1.is_empty());
    }

    #[test]
    fn the_first_drop_comes_an_interval_after_the_delay_has_passed_the_target() {
        // Every packet finds 0.1 ms more than the one before: 5 ms are passed by the one that is sent some 51 ms later.
        let first = run(900, 2).1[0];
        assert!((0.150..0.170).contains(&first), "{first}");
    }

    #[test]
    fn drops_come_closer_by_the_inverse_square_root_of_their_count() {
        let (_, drops) = run(900, 2);
        assert!(drops.len() > 30, "{}", drops.len());
        // RFC 8289, Sec. 5.6: after the n-th drop the next follows in 100 ms / √n. Each waits for the next service, of 1 ms.
        let mut expected = drops[0];
        for (n, drop) in (1u32..).zip(&drops) {
            assert!((drop - expected).abs() < 0.0021, "drop {n} at {drop}, not at {expected}");
            expected += 0.1 / f64::from(n).sqrt();
        }
    }

    #[test]
    fn an_overload_of_a_tenth_is_shed_and_no_standing_queue_is_left() {
        let (waits, drops) = run(909, 60);
        let settled = &waits[waits.len() / 2..];
        let mean = settled.iter().sum::<f64>() / settled.len() as f64;
        // Traffic that does not yield makes CoDel swing round its target; a queue without it would hold 3000 packets by
        // the middle of the run, 3 s.
        assert!(mean < 40.0, "{mean} ms");
        assert!(settled.iter().any(|wait| *wait < 5.0), "the delay comes below the target again and again");
        let shed = drops.len() as f64 / (waits.len() + drops.len()) as f64;
        assert!((shed - 1.0 / 11.0).abs() < 0.01, "{shed}");
    }
}
