use alloc::boxed::Box;
use alloc::collections::VecDeque;

use crate::wire::PlayoutReport;
use equipoise::units::{Instant, Rate, ReceiverClock, Size};
use equipoise_path::link::FifoLink;

/// A buffer at the receiver. A session's packets wait in it until they are served: played out, or forwarded over an
/// outgoing link.
///
/// Several sessions may share a buffer. Each session counts only its own packets.
pub trait PlayoutBuffer: Send {
    /// Offers a packet of `size` at `now`. Returns when the packet's service is complete, or `None` if the buffer has
    /// no room for the packet.
    fn offer(&mut self, now: Instant<ReceiverClock>, size: Size) -> Option<Instant<ReceiverClock>>;
}

/// A drop-tail buffer in front of a link. The link's propagation delay is ignored.
impl PlayoutBuffer for FifoLink<ReceiverClock> {
    fn offer(&mut self, now: Instant<ReceiverClock>, size: Size) -> Option<Instant<ReceiverClock>> {
        Some(Self::offer(self, now, size)?.arrives_at - self.config().propagation_delay)
    }
}

/// One session's statistics of a playout buffer.
pub(super) struct PlayoutMeter {
    playout: Box<dyn PlayoutBuffer>,
    /// For each of the session's packets in the buffer: when its service is complete, and its size.
    waiting: VecDeque<(Instant<ReceiverClock>, Size)>,
    /// Time of the last report, or of the first packet if there was no report yet.
    since: Option<Instant<ReceiverClock>>,
    arrived: Size,
    served: Size,
    discarded: u32,
}

impl PlayoutMeter {
    /// Maximum number of packets in the buffer. Further packets are discarded. A real playout buffer never holds that
    /// many packets.
    const MOST: usize = 1 << 16;

    pub(super) const fn new(playout: Box<dyn PlayoutBuffer>) -> Self {
        Self { playout, waiting: VecDeque::new(), since: None, arrived: Size::ZERO, served: Size::ZERO, discarded: 0 }
    }

    /// Records that a packet arrived at `now`. Returns the time at which the packet's service will be complete, or
    /// `None` if the packet was discarded.
    pub(super) fn on_packet(&mut self, now: Instant<ReceiverClock>, size: Size) -> Option<Instant<ReceiverClock>> {
        self.serve(now);
        self.since.get_or_insert(now);
        self.arrived = self.arrived + size;
        let room = self.waiting.len() < Self::MOST;
        let served = room.then(|| self.playout.offer(now, size)).flatten();
        match served {
            Some(at) => self.waiting.push_back((at, size)),
            None => self.discarded = self.discarded.wrapping_add(1),
        }
        served
    }

    /// Returns the buffer statistics for a report at `now`, and restarts the interval over which rates are measured.
    pub(super) fn report(&mut self, now: Instant<ReceiverClock>) -> PlayoutReport {
        self.serve(now);
        let rate = |size: Size| size.over(now - self.since.unwrap_or(now));
        let report = PlayoutReport {
            occupancy: u32::try_from(self.waiting.len()).unwrap_or(u32::MAX),
            arrival: rate(self.arrived).unwrap_or(Rate::ZERO),
            service: rate(self.served).unwrap_or(Rate::ZERO),
            discarded: self.discarded,
        };
        (self.since, self.arrived, self.served) = (Some(now), Size::ZERO, Size::ZERO);
        report
    }

    fn serve(&mut self, now: Instant<ReceiverClock>) {
        while self.waiting.front().is_some_and(|(at, _)| *at <= now) {
            self.served = self.served + self.waiting.pop_front().map_or(Size::ZERO, |(_, size)| size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use equipoise::units::{Schedule, Span};
    use equipoise_path::link::{LinkConfig, QueueLimit};

    const PACKET: Size = Size::from_bytes(1000);

    fn at(millis: i64) -> Instant<ReceiverClock> {
        Instant::ZERO + Span::from_millis(millis)
    }

    /// Creates a meter whose buffer serves one packet every 10 ms and has room for three more packets.
    fn meter() -> PlayoutMeter {
        let config = LinkConfig {
            rate: Schedule::constant(Rate::from_bps(800_000)),
            propagation_delay: Span::from_millis(7),
            queue: QueueLimit::Packets(3),
        };
        PlayoutMeter::new(Box::new(FifoLink::new(config, Instant::ZERO).expect("a valid link")))
    }

    #[test]
    fn it_counts_what_came_what_was_served_what_waits_and_what_was_discarded() {
        let mut meter = meter();
        let served = [0, 1, 2, 3, 4, 5].map(|millis| meter.on_packet(at(millis), PACKET));
        assert_eq!(served, [Some(at(10)), Some(at(20)), Some(at(30)), Some(at(40)), None, None]);
        let report = meter.report(at(20));
        // In 20 ms, six packets arrived and two were served.
        assert_eq!((report.occupancy, report.discarded), (2, 2));
        assert_eq!((report.arrival, report.service), (Rate::from_bps(2_400_000), Rate::from_bps(800_000)));
        let report = meter.report(at(60));
        assert_eq!((report.occupancy, report.arrival, report.service), (0, Rate::ZERO, Rate::from_bps(400_000)));
        assert_eq!(report.discarded, 2, "since the start");
        assert_eq!(meter.report(at(60)).service, Rate::ZERO, "no time, no rate");
    }
}
