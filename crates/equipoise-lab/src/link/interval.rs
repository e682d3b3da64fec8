use equipoise_net::{BridgeSample, Time};
use equipoise_path::link::LinkStats;
use serde::Serialize;

/// Counters of one direction of the path in one interval. Rates and sizes are those of whole IP packets,
/// headers included.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LinkInterval {
    /// Start of the interval, in seconds since the path's start.
    pub start_s: f64,
    /// End of the interval, in seconds since the path's start.
    pub end_s: f64,
    /// Rate of the packets that left, in bit/s.
    pub rate_bps: f64,
    /// Packets that entered the path.
    pub packets_in: u64,
    /// Packets that left the path, including duplicates.
    pub packets: u64,
    /// Bytes of the packets that left.
    pub bytes: u64,
    /// Packets lost at random.
    pub packets_lost: u64,
    /// Packets dropped by a policer, dropped because a queue was full, or dropped by a queue to signal congestion.
    pub packets_dropped: u64,
    /// Packets that a queue marked with ECN instead of dropping them.
    pub packets_marked: u64,
    /// Packets in the queue or in flight at the end of the interval.
    pub packets_in_flight: u64,
    /// Number of packets waiting in the queue, averaged over the interval.
    pub queue_mean_packets: Option<f64>,
}

/// The sample that ended the previous interval and so starts the current one.
pub(super) struct Sampled {
    start: Time,
    last: BridgeSample,
}

impl Sampled {
    /// Creates the sample that starts the first interval. The path started at `start`, and all its counters are zero.
    pub(super) fn of(start: Time) -> Self {
        let (forward, back) = (LinkStats::default(), LinkStats::default());
        Self { start, last: BridgeSample { at: start, forward, back } }
    }

    /// Whether `sample` is later than the last sample.
    pub(super) fn is_before(&self, sample: &BridgeSample) -> bool {
        self.last.at < sample.at
    }

    /// Returns the interval that ends with `sample`, for the forward and the backward direction.
    pub(super) fn until(&mut self, sample: &BridgeSample) -> (LinkInterval, LinkInterval) {
        let last = std::mem::replace(&mut self.last, *sample);
        let [start_s, end_s] = [last.at, sample.at].map(|at| (at - self.start).as_secs_f64());
        let between = |from: &LinkStats, to: &LinkStats| LinkInterval::between((start_s, from), (end_s, to));
        (between(&last.forward, &sample.forward), between(&last.back, &sample.back))
    }
}

impl LinkInterval {
    fn between((start_s, from): (f64, &LinkStats), (end_s, to): (f64, &LinkStats)) -> Self {
        let more = |of: fn(&LinkStats) -> u64| of(to).saturating_sub(of(from));
        let lasted_s = end_s - start_s;
        let bytes = more(|stats| stats.left_bytes.as_bytes());
        // Total waiting time of all packets since the path's start, in packet seconds.
        let waited = |at_s: f64, stats: &LinkStats| stats.usage.mean_queue.map(|mean| mean * at_s);
        let queue = waited(end_s, to).map(|all| (all - waited(start_s, from).unwrap_or(0.0)).max(0.0) / lasted_s);
        Self {
            start_s,
            end_s,
            rate_bps: if lasted_s > 0.0 { bytes as f64 * 8.0 / lasted_s } else { 0.0 },
            packets_in: more(|stats| stats.entered),
            packets: more(|stats| stats.left),
            bytes,
            packets_lost: more(|stats| stats.lost),
            packets_dropped: more(LinkStats::dropped),
            packets_marked: more(|stats| stats.marked),
            packets_in_flight: to.in_flight,
            queue_mean_packets: queue.filter(|_| lasted_s > 0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use equipoise::units::{Size, Span};
    use equipoise_path::link::Usage;

    use super::*;

    #[test]
    fn an_interval_is_what_two_samples_lie_apart() {
        let stats = |left, lost, mean_queue| LinkStats {
            entered: left + lost,
            left,
            left_bytes: Size::from_bytes(1000 * left),
            lost,
            usage: Usage { mean_queue: Some(mean_queue), ..Usage::default() },
            ..LinkStats::default()
        };
        let sample = |seconds: i64, left, lost, mean_queue| BridgeSample {
            at: Time::ZERO + Span::from_secs(10 + seconds),
            forward: stats(left, lost, mean_queue),
            back: LinkStats::default(),
        };
        let mut sampled = Sampled::of(Time::ZERO + Span::from_secs(10));
        let (first, _) = sampled.until(&sample(1, 100, 2, 4.0));
        assert_eq!((first.packets, first.packets_lost, first.bytes), (100, 2, 100_000));
        // The mean queue is 4 packets over the first second and 3 packets over both seconds. So it is 2 · 3 - 4 = 2
        // packets over the second interval.
        let (second, back) = sampled.until(&sample(2, 150, 2, 3.0));
        assert_eq!((second.packets, second.packets_in, second.packets_lost), (50, 50, 0));
        assert!((second.rate_bps - 400_000.0).abs() < 1e-6 && (second.start_s - 1.0).abs() < 1e-9);
        assert!((second.queue_mean_packets.unwrap_or(0.0) - 2.0).abs() < 1e-9);
        assert_eq!((back.packets, back.queue_mean_packets), (0, None));
    }
}
