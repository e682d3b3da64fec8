use alloc::collections::VecDeque;

use crate::units::{Instant, ReceiverClock, SenderClock, Size, Span};

/// A packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub number: u64,
    pub size: Size,
    pub departed: Instant<SenderClock>,
    pub arrived: Instant<ReceiverClock>,
}

/// Measures the delivery rate ("acknowledged bitrate") over about the last second.
///
/// The result is the smaller of two rates over one window of packets: the bytes sent between the first and the last
/// departure, and the bytes received between the first and the last arrival. Because n packets have n - 1 gaps, the
/// bytes sent do not include the last packet to depart, and the bytes received do not include the first packet to
/// arrive. The longest gap between arrivals is replaced by the second longest, because a link that pauses and
/// then delivers a burst has the same capacity as before.
///
/// Source: libwebrtc, `robust_throughput_estimator`.
///
/// Special cases: with fewer than 10 packets there is no rate. A window shorter than a millisecond counts as a
/// millisecond. If reordering leaves fewer than 10 packets for the sending rate, the result is the receiving rate. If a
/// packet's arrival time is more than a second before the latest arrival time, the receiver's clock was set back, and
/// the window is reset.
#[derive(Clone, Debug)]
pub(super) struct Throughput {
    /// The packets in the window, in arrival order.
    window: VecDeque<Arrival>,
    /// The latest departure among the packets that were removed from the window.
    dropped: Option<Instant<SenderClock>>,
}

/// A window with at most this number of packets may be longer than [`USUAL`], but not longer than [`LONGEST`]
/// (libwebrtc, `robust_throughput_estimator`).
const FEW: usize = 20;
/// Maximum number of packets in the window (libwebrtc, `robust_throughput_estimator`).
const MOST: usize = 500;
/// Maximum length of the window if it has more packets than [`FEW`]. With a larger value, the rate is steadier and
/// reacts later (libwebrtc, `robust_throughput_estimator`).
const USUAL: Span = Span::from_secs(1);
/// Maximum length of the window (libwebrtc, `robust_throughput_estimator`).
const LONGEST: Span = Span::from_secs(5);
/// Minimum number of packets for a rate (libwebrtc, `robust_throughput_estimator`).
const REQUIRED: usize = 10;
/// If a packet's arrival time is earlier than the latest arrival time by more than this, the packet is not treated as
/// reordered: the receiver's clock was set back (libwebrtc, `robust_throughput_estimator`).
const REORDERING: Span = Span::from_secs(1);
/// The minimum time over which rates are computed (libwebrtc, `robust_throughput_estimator`).
const SHORTEST: Span = Span::from_millis(1);

impl Throughput {
    pub(super) fn new() -> Self {
        Self { window: VecDeque::with_capacity(MOST + 1), dropped: None }
    }

    /// Records a packet that arrived.
    pub(super) fn push(&mut self, packet: Arrival) {
        let behind = self.window.iter().rev().take_while(|known| known.arrived > packet.arrived).count();
        if self.window.back().is_some_and(|last| last.arrived - packet.arrived > REORDERING) {
            self.window.clear();
            self.dropped = None;
            return;
        }
        self.window.push_back(packet);
        let last = self.window.len() - 1;
        (0..behind).for_each(|step| self.window.swap(last - step, last - step - 1));
        while self.is_too_long() {
            let Some(oldest) = self.window.pop_front() else { return };
            self.dropped = self.dropped.max(Some(oldest.departed));
        }
    }

    fn is_too_long(&self) -> bool {
        let (Some(first), Some(last)) = (self.window.front(), self.window.back()) else { return false };
        let (count, length) = (self.window.len(), last.arrived - first.arrived);
        count > MOST || length > LONGEST || (count > FEW && length > USUAL)
    }

    /// Returns the delivery rate in bit/s; `None` if there are too few packets.
    pub(super) fn bps(&self) -> Option<f64> {
        if self.window.len() < REQUIRED {
            return None;
        }
        let received = self.received_bps()?;
        // A packet in the window may have left before a packet that was already removed from the window, because the
        // path reordered the two packets. The packet in the window is then excluded, because its departure would extend
        // the time between the first and the last departure.
        let sent: Sent = self
            .window
            .iter()
            .filter(|packet| self.dropped.is_none_or(|dropped| packet.departed >= dropped))
            .fold(Sent::default(), Sent::with);
        if sent.count < REQUIRED { Some(received) } else { sent.bps().map(|sent| sent.min(received)) }
    }

    fn received_bps(&self) -> Option<f64> {
        let (first, last) = (self.window.front()?, self.window.back()?);
        let gaps =
            self.window.iter().zip(self.window.iter().skip(1)).map(|(before, behind)| behind.arrived - before.arrived);
        let (longest, second) = gaps.fold((Span::ZERO, Span::ZERO), |(longest, second), gap| {
            if gap > longest { (gap, longest) } else { (longest, second.max(gap)) }
        });
        let size: Size = self.window.iter().skip(1).map(|packet| packet.size).sum();
        let time = (last.arrived - first.arrived) - longest + second;
        Some(size.as_bits() as f64 / time.max(SHORTEST).as_secs_f64())
    }
}

/// Summary of the departures of the packets in the window. The packets may be added in any order.
#[derive(Clone, Copy, Default)]
struct Sent {
    count: usize,
    size: Size,
    first: Option<Instant<SenderClock>>,
    last: Option<Arrival>,
}

impl Sent {
    fn with(self, packet: &Arrival) -> Self {
        let is_last = self.last.is_none_or(|last| packet.departed > last.departed);
        Self {
            count: self.count + 1,
            size: self.size + packet.size,
            first: Some(self.first.map_or(packet.departed, |first| first.min(packet.departed))),
            last: if is_last { Some(*packet) } else { self.last },
        }
    }

    fn bps(&self) -> Option<f64> {
        let (first, last) = (self.first?, self.last?);
        let time = (last.departed - first).max(SHORTEST);
        Some((self.size - last.size).as_bits() as f64 / time.as_secs_f64())
    }
}

/// Measures the delivery rate within the last half second, as in the draft: the sum of packet sizes divided by the
/// length of the window.
///
/// Source: draft-ietf-rmcat-gcc-02, Sec. 5.5: `R_hat(i) = 1/T sum(L(j))`, with T from 0.5 to 1 s.
///
/// Our interpretation: there is no rate before packets cover half a second. A packet that is reported late counts if it
/// arrived within the window. At most [`MOST_RECENT`] packets are remembered, enough for 0.5 s at
/// 98 Mbit/s with packets of 1500 bytes.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    window: VecDeque<Arrival>,
    is_full: bool,
}

/// T, the length of the window, which is the shortest that the draft allows (draft-ietf-rmcat-gcc-02, Sec. 5.5).
const RECENT: Span = Span::from_millis(500);
/// Maximum number of packets that are remembered. The value is our choice, a bound on memory.
const MOST_RECENT: usize = 4096;

impl Recent {
    pub(super) const fn new() -> Self {
        Self { window: VecDeque::new(), is_full: false }
    }

    /// Records a packet that arrived.
    pub(super) fn push(&mut self, packet: Arrival) {
        if self.window.back().is_some_and(|last| last.arrived - packet.arrived > REORDERING) {
            *self = Self::new();
        }
        self.window.push_back(packet);
        let Some(newest) = self.window.iter().map(|packet| packet.arrived).max() else { return };
        while self
            .window
            .front()
            .is_some_and(|first| newest - first.arrived >= RECENT || self.window.len() > MOST_RECENT)
        {
            self.is_full = true;
            self.window.pop_front();
        }
    }

    /// Returns the delivery rate in bit/s; `None` before packets cover half a second.
    pub(super) fn bps(&self) -> Option<f64> {
        let size: Size = self.window.iter().map(|packet| packet.size).sum();
        self.is_full.then(|| size.as_bits() as f64 / RECENT.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(number: u64, departed_ms: u64, arrived_ms: u64) -> Arrival {
        Arrival {
            number,
            size: Size::from_bytes(1250),
            departed: Instant::from_nanos(departed_ms * 1_000_000),
            arrived: Instant::from_nanos(arrived_ms * 1_000_000),
        }
    }

    fn of(packets: impl IntoIterator<Item = (u64, u64)>) -> Throughput {
        let mut throughput = Throughput::new();
        packets.into_iter().for_each(|(departed, arrived)| throughput.push(arrival(0, departed, arrived)));
        throughput
    }

    fn kbps(throughput: &Throughput) -> Option<f64> {
        throughput.bps().map(|bps| bps / 1e3)
    }

    /// 1250 bytes every 10 ms are 1 Mbit/s. The result is the lower of the sending rate and the arrival rate.
    #[test]
    fn a_steady_stream_has_its_rate_and_a_slower_end_decides() {
        assert_eq!(kbps(&of((0..100).map(|n| (10 * n, 10 * n + 30)))), Some(1000.0));
        assert_eq!(kbps(&of((0..100).map(|n| (10 * n, 12 * n + 30)))).map(f64::round), Some(833.0));
        assert_eq!(kbps(&of((0..100).map(|n| (20 * n, 10 * n + 30)))), Some(500.0));
    }

    #[test]
    fn nine_packets_have_no_rate_and_ten_have() {
        assert_eq!(kbps(&of((0..9).map(|n| (10 * n, 10 * n)))), None);
        assert_eq!(kbps(&of((0..10).map(|n| (10 * n, 10 * n)))), Some(1000.0));
    }

    /// A link that pauses for 300 ms and then delivers all packets at once must not lower the measured rate.
    #[test]
    fn a_pause_of_the_link_does_not_count() {
        let arrived = |n: u64| if (40..70).contains(&n) { 700 + n / 10 } else { 10 * n };
        let found = kbps(&of((0..100).map(|n| (10 * n, arrived(n))))).expect("many packets");
        assert!(found >= 999.0, "{found}");
    }

    #[test]
    fn a_packet_from_seconds_before_begins_anew() {
        let mut throughput = of((0..100).map(|n| (10 * n, 5000 + 10 * n)));
        throughput.push(arrival(0, 1000, 100));
        assert_eq!(throughput.bps(), None);
    }

    #[test]
    fn packets_that_arrive_at_once_have_the_rate_that_they_were_sent_at() {
        assert_eq!(kbps(&of((0..20).map(|n| (10 * n, 300)))), Some(1000.0));
    }

    #[test]
    fn the_window_is_bounded_and_reordering_within_it_changes_nothing() {
        let mut packets: alloc::vec::Vec<_> = (0..100).map(|n| (10 * n, 10 * n + 30)).collect();
        packets.swap(50, 53);
        packets.swap(97, 99);
        assert_eq!(kbps(&of(packets)), Some(1000.0));
        assert_eq!(of((0..5000).map(|n| (n / 10, n / 10))).window.len(), MOST);
    }

    #[test]
    fn the_drafts_window_is_half_a_second() {
        let mut recent = Recent::new();
        (0..50).for_each(|n| recent.push(arrival(n, 10 * n, 10 * n)));
        assert_eq!(recent.bps(), None);
        (50..90).for_each(|n| recent.push(arrival(n, 10 * n, 10 * n)));
        assert_eq!(recent.bps(), Some(1e6));
        (90..20_000).for_each(|n| recent.push(arrival(n, 900, 900)));
        assert!(recent.window.len() <= MOST_RECENT);
    }
}
