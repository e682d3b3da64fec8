use alloc::collections::VecDeque;
use alloc::string::ToString;

use super::service::{RateService, Service};
use super::stats::{LinkStats, Usage};
use super::{LinkConfig, LinkError, QueueLimit};
use equipoise::units::{Instant, Size, Span};

/// A drop-tail FIFO link with exact departure times.
///
/// Source: Lindley's recursion, `departure = max(arrival, previous departure) + size / rate`. A packet arrives at the
/// receiver one propagation delay after its departure. Fractions of a nanosecond are carried from packet to packet, so
/// that rounding errors do not add up in a long busy period.
#[derive(Clone, Debug)]
pub struct FifoLink<C> {
    config: LinkConfig,
    delay_ns: u64,
    queue: Fifo<C, RateService<C>>,
}

/// The queue of a [`FifoLink`], with any kind of service.
#[derive(Clone, Debug)]
pub(super) struct Fifo<C, S> {
    service: S,
    limit: QueueLimit,
    origin: Instant<C>,
    /// The time from which the service is free for the next packet. It is in the past if the link is idle.
    free_at: Instant<C>,
    /// The accepted packets that had to wait, in order of service. The list may begin with packets that are already in
    /// service or sent, because packets are removed only when necessary.
    waiting: VecDeque<Waiting<C>>,
    totals: Totals,
}

/// The waiting time of a packet, and when its service ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn<C> {
    /// Time from the arrival of the packet to the start of its service.
    pub(super) wait: Span,
    /// When the service of the packet ends.
    pub(super) end: Instant<C>,
}

#[derive(Clone, Debug)]
struct Waiting<C> {
    service_start: Instant<C>,
    /// Total bytes of the packets that the link accepted before this packet.
    behind_bytes: u64,
}

/// Sums over all packets offered so far. An accepted packet counts at once, with its whole waiting time. `Fifo::usage`
/// subtracts the part of the waiting times that is still in the future.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    forwarded: u64,
    dropped: u64,
    forwarded_bytes: u64,
    dropped_bytes: u64,
    waited_ns: u64,
    /// Total time before `Fifo::free_at` in which the link was idle, in nanoseconds.
    idle_ns: u64,
    longest_queue: usize,
}

/// When a packet arrives at the end of a link, and how long it waits in the link's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage<C> {
    /// When the packet arrives at the receiving end of the link.
    pub arrives_at: Instant<C>,
    /// Waiting time of the packet in the queue, without transmission time and propagation delay.
    pub wait: Span,
}

impl<C> FifoLink<C> {
    /// An idle link whose schedule of rates starts at `origin`.
    ///
    /// # Errors
    /// [`LinkError`] if the link would never send a packet again, or if the propagation delay is negative.
    pub fn new(config: LinkConfig, origin: Instant<C>) -> Result<Self, LinkError> {
        let service = RateService::new(config.rate.clone(), origin)?;
        if config.propagation_delay < Span::ZERO {
            return Err(LinkError::NegativeDelay { found: config.propagation_delay.to_string() });
        }
        let queue = Fifo::new(service, config.queue, origin);
        let delay_ns = config.propagation_delay.as_nanos().unsigned_abs();
        Ok(Self { config, delay_ns, queue })
    }

    /// Offers a packet of `size` at `now`. Returns its passage, or `None` if the queue is full.
    ///
    /// Calls must be in time order. If `now` is earlier than in the previous call, the packet is still served after the
    /// previous packet.
    #[expect(clippy::inline_always, reason = "a simulator's inner loop: a call takes a third of its time")]
    #[inline(always)]
    pub fn offer(&mut self, now: Instant<C>, size: Size) -> Option<Passage<C>> {
        let Turn { wait, end } = self.queue.offer(now, size)?;
        Some(Passage { arrives_at: Instant::from_nanos(end.as_nanos().saturating_add(self.delay_ns)), wait })
    }

    /// IP bytes offered to the link so far, including the bytes of dropped packets.
    pub const fn offered(&self) -> Size {
        let Totals { forwarded_bytes, dropped_bytes, .. } = self.queue.totals;
        Size::from_bytes(forwarded_bytes + dropped_bytes)
    }

    /// The counters at `now`.
    pub fn stats(&self, now: Instant<C>) -> LinkStats {
        let Totals { forwarded, dropped, forwarded_bytes, .. } = self.queue.totals;
        LinkStats {
            entered: forwarded + dropped,
            entered_bytes: self.offered(),
            left: forwarded,
            left_bytes: Size::from_bytes(forwarded_bytes),
            dropped_full: dropped,
            usage: self.queue.usage(now),
            ..LinkStats::default()
        }
    }

    /// The configuration of the link.
    pub const fn config(&self) -> &LinkConfig {
        &self.config
    }
}

impl<C, S: Service<C>> Fifo<C, S> {
    /// Creates an empty queue in front of `service`.
    pub(super) fn new(service: S, limit: QueueLimit, origin: Instant<C>) -> Self {
        let (waiting, totals) = (VecDeque::new(), Totals::default());
        Self { service, limit, origin, free_at: origin, waiting, totals }
    }

    /// Offers a packet of `size` at `now`. Returns its waiting time and the end of its service, or `None` if the queue
    /// is full.
    #[expect(clippy::inline_always, reason = "as of a link's")]
    #[inline(always)]
    pub(super) fn offer(&mut self, now: Instant<C>, size: Size) -> Option<Turn<C>> {
        if self.free_at <= now {
            self.totals.idle_ns += now.as_nanos() - self.free_at.as_nanos();
            self.free_at = now;
            self.service.rest(now);
        }
        let service_start = self.service.ready(self.free_at);
        let mut wait = Span::ZERO;
        if service_start > now {
            wait = service_start - now;
            if self.is_full(size, wait) && self.is_full_at(now, size, wait) {
                self.totals.dropped += 1;
                self.totals.dropped_bytes += size.as_bytes();
                return None;
            }
            self.totals.waited_ns += service_start.as_nanos() - now.as_nanos();
            self.waiting.push_back(Waiting { service_start, behind_bytes: self.totals.forwarded_bytes });
            if self.waiting.len() > self.totals.longest_queue {
                self.begin_services(now);
                self.totals.longest_queue = self.totals.longest_queue.max(self.waiting.len());
            }
        }
        self.free_at = self.service.serve(service_start, size);
        self.totals.forwarded += 1;
        self.totals.forwarded_bytes += size.as_bytes();
        Some(Turn { wait, end: self.free_at })
    }

    /// The usage of the queue and the service until `now`.
    pub(super) fn usage(&self, now: Instant<C>) -> Usage {
        let elapsed = (now - self.origin).as_secs_f64();
        let per_time = |nanos: u64| (elapsed > 0.0).then(|| nanos as f64 / 1e9 / elapsed);
        let future_waits = self
            .waiting
            .iter()
            .filter(|packet| packet.service_start > now)
            .fold(0, |sum, packet| sum + (packet.service_start.as_nanos() - now.as_nanos()));
        let idle_ns = self.totals.idle_ns + now.as_nanos().saturating_sub(self.free_at.as_nanos());
        Usage {
            utilisation: per_time((now - self.origin).as_nanos().unsigned_abs().saturating_sub(idle_ns)),
            mean_queue: per_time(self.totals.waited_ns.saturating_sub(future_waits)),
            longest_queue: self.totals.longest_queue,
        }
    }

    /// Whether the queue has no room for a packet of `size` that would wait for `wait`. All packets in `waiting` count,
    /// even if their service has begun.
    fn is_full(&self, size: Size, wait: Span) -> bool {
        match self.limit {
            QueueLimit::Packets(limit) => self.waiting.len() >= limit as usize,
            QueueLimit::Bytes(limit) => self.waiting_bytes() + size > limit,
            QueueLimit::Time(limit) => wait > limit,
        }
    }

    /// Like [`is_full`](Self::is_full), but counts only packets that still wait at `now`.
    #[cold]
    fn is_full_at(&mut self, now: Instant<C>, size: Size, wait: Span) -> bool {
        self.begin_services(now);
        self.is_full(size, wait)
    }

    /// Total bytes of the packets in `waiting`.
    fn waiting_bytes(&self) -> Size {
        let behind = self.waiting.front().map_or(self.totals.forwarded_bytes, |first| first.behind_bytes);
        Size::from_bytes(self.totals.forwarded_bytes - behind)
    }

    /// Removes all packets from `waiting` whose service begins no later than `now`. For speed, this is called only if
    /// the queue seems to be full, or if `waiting` is longer than the longest queue so far.
    fn begin_services(&mut self, now: Instant<C>) {
        let begun = self.waiting.iter().take_while(|packet| packet.service_start <= now).count();
        self.waiting.drain(..begun);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use equipoise::units::{Rate, Schedule, SenderClock};

    type At = Instant<SenderClock>;

    fn link(rate: Schedule<Rate>, queue: QueueLimit) -> FifoLink<SenderClock> {
        let config = LinkConfig { rate, propagation_delay: Span::from_millis(5), queue };
        FifoLink::new(config, At::ZERO).expect("a valid link")
    }

    fn mbps(mbps: u64) -> Rate {
        Rate::from_bps(mbps * 1_000_000)
    }

    const PACKET: Size = Size::from_bytes(1000);

    /// Offers a packet at `nanos`. Returns when it arrives, or `None` if the queue is full.
    fn arrival(link: &mut FifoLink<SenderClock>, nanos: u64) -> Option<At> {
        Some(link.offer(At::from_nanos(nanos), PACKET)?.arrives_at)
    }

    #[test]
    fn a_long_busy_period_does_not_drift() {
        let mut link = link(Schedule::constant(mbps(15)), QueueLimit::Packets(100_000));
        let last = (0..75_000).filter_map(|_| arrival(&mut link, 0)).last();
        // 75 000 packets of 8000 bits at 15 Mbit/s take exactly 40 s, although one packet takes 533 333.3 ns.
        assert_eq!(last, Some(At::ZERO + Span::from_secs(40) + Span::from_millis(5)));
    }

    #[test]
    fn a_rate_step_takes_hold_in_the_middle_of_a_service() {
        // In 0.5 ms at 8 Mbit/s, 4000 of 8000 bits are sent. The remaining 4000 bits take 1 ms at 4 Mbit/s. The
        // propagation delay is 5 ms.
        let rate = Schedule::new(mbps(8), vec![(Span::from_micros(500), mbps(4))]);
        let mut link = link(rate, QueueLimit::Packets(10));
        assert_eq!(arrival(&mut link, 0), Some(At::from_nanos(6_500_000)));
    }

    #[test]
    fn an_outage_delays_but_does_not_lose() {
        let rate = Schedule::new(mbps(8), vec![(Span::ZERO, Rate::ZERO), (Span::from_secs(1), mbps(8))]);
        let mut link = link(rate, QueueLimit::Packets(10));
        assert_eq!(arrival(&mut link, 0), Some(At::from_nanos(1_006_000_000)));
    }

    #[test]
    fn the_limit_counts_waiting_packets_or_bytes_and_not_the_one_in_service() {
        for limit in [QueueLimit::Packets(2), QueueLimit::Bytes(Size::from_bytes(2000))] {
            let mut link = link(Schedule::constant(mbps(8)), limit);
            let dropped = (0..4).map(|_| link.offer(At::ZERO, PACKET)).filter(Option::is_none).count();
            assert_eq!(dropped, 1, "{limit}: one in service, two waiting, the fourth dropped");
        }
    }

    #[test]
    fn a_link_that_would_hold_packets_for_ever_is_refused() {
        let config = LinkConfig {
            rate: Schedule::constant(Rate::ZERO),
            propagation_delay: Span::ZERO,
            queue: QueueLimit::Packets(1),
        };
        assert_eq!(FifoLink::new(config, At::ZERO).err(), Some(LinkError::RateEndsAtZero));
    }

    #[test]
    fn statistics_count_only_what_has_passed() {
        let mut link = link(Schedule::constant(mbps(8)), QueueLimit::Packets(10));
        for _ in 0..3 {
            link.offer(At::ZERO, PACKET);
        }
        // The transmissions end at 1, 2 and 3 ms. Until 2 ms, the link was always busy. Two packets waited in the first
        // millisecond, and one packet in the second millisecond.
        let stats = link.stats(At::from_nanos(2_000_000));
        assert_eq!(
            (stats.usage.utilisation, stats.usage.mean_queue, stats.usage.longest_queue),
            (Some(1.0), Some(1.5), 2)
        );
        let later = link.stats(At::from_nanos(6_000_000));
        assert_eq!((later.usage.utilisation, later.usage.mean_queue), (Some(0.5), Some(0.5)));
    }

    #[test]
    fn a_limit_in_time_lets_nobody_wait_longer_and_turns_nobody_away_sooner() {
        // Each transmission takes 1 ms, so the n-th packet of a burst would wait for n - 1 ms.
        let mut link = link(Schedule::constant(mbps(8)), QueueLimit::Time(Span::from_millis(2)));
        let arrivals: Vec<_> = (0..5).map(|_| arrival(&mut link, 0)).collect();
        let arrives = |ms: u64| Some(At::from_nanos(ms * 1_000_000 + 5_000_000));
        assert_eq!(arrivals, [arrives(1), arrives(2), arrives(3), None, None]);
        // The accepted packets keep the link busy until 3 ms. A packet that arrives 1 ns before 1 ms would wait 1 ns
        // longer than the limit; a packet that arrives at 1 ms would not.
        assert_eq!(arrival(&mut link, 999_999), None);
        assert_eq!(arrival(&mut link, 1_000_000), arrives(4));
    }

    proptest! {
        /// Every packet is forwarded or dropped, no packet overtakes another packet, and the link never sends more than
        /// its capacity.
        #[test]
        fn packets_are_conserved_in_order_and_within_capacity(gaps in proptest::collection::vec((0u64..3_000_000, 40u64..1500), 1..200)) {
            let mut link = link(Schedule::constant(mbps(8)), QueueLimit::Packets(5));
            let mut now = 0;
            let mut arrivals: Vec<(At, Size)> = Vec::new();
            for (gap, bytes) in &gaps {
                now += gap;
                if let Some(Passage { arrives_at: at, .. }) = link.offer(At::from_nanos(now), Size::from_bytes(*bytes)) {
                    arrivals.push((at, Size::from_bytes(*bytes)));
                }
            }
            let stats = link.stats(At::from_nanos(now));
            prop_assert_eq!((stats.left + stats.dropped(), stats.entered), (gaps.len() as u64, gaps.len() as u64));
            prop_assert!(stats.usage.longest_queue <= 5);
            for pair in arrivals.windows(2) {
                let service = mbps(8).time_to_send(pair[1].1).expect("rate above zero");
                prop_assert!(pair[1].0 - pair[0].0 >= service - Span::from_nanos(1));
            }
        }
    }
}
