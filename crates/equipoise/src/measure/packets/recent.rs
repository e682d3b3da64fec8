use alloc::collections::VecDeque;

use super::Sample;

/// The packets that arrived within the last second.
#[derive(Clone, Debug, Default)]
pub struct Recent {
    samples: VecDeque<Sample>,
}

/// The service rate of a busy bottleneck.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Service {
    /// The rate at which packets left the bottleneck, in bit/s.
    pub served_bps: f64,
    /// The rate at which the packets measured in `served_bps` left the sender, in bit/s.
    pub sent_bps: f64,
    /// The duration of the measurement: the time within which its packets arrived, in s.
    pub lasted_s: f64,
}

impl Recent {
    /// How long a packet is remembered after its arrival, in s.
    pub const WINDOW_S: f64 = 1.0;
    /// Maximum number of packets remembered, to bound memory: one second at 150 Mbit/s with packets of 1200 bytes.
    const MOST: usize = 1 << 14;
    /// Limits of a run of packets that shows a busy bottleneck: the maximum and minimum duration in s, and the minimum
    /// number of packets. Our choice. The maximum is the time of about ten video frames. The minimum is longer than
    /// most delays in the host's scheduling.
    const RUN_S: f64 = 0.3;
    const LEAST_RUN_S: f64 = 0.025;
    const LEAST_PACKETS: usize = 4;
    /// If the longest gap between arrivals is more than this many times the second longest gap, it is a pause of a
    /// radio link, and counts only with the length of the second longest gap (our choice). A slower link would lengthen
    /// all gaps, not only one.
    const PAUSE: f64 = 2.0;

    /// Creates a record without packets.
    pub const fn new() -> Self {
        Self { samples: VecDeque::new() }
    }

    /// Records a packet that arrived.
    pub fn push(&mut self, sample: Sample) {
        self.samples.push_back(sample);
        let last = sample.arrived_s;
        while self.samples.len() > Self::MOST
            || self.samples.front().is_some_and(|oldest| oldest.arrived_s < last - Self::WINDOW_S)
        {
            self.samples.pop_front();
        }
    }

    /// Removes all packets.
    pub fn clear(&mut self) {
        self.samples.clear();
    }

    /// Returns the packets, newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &Sample> {
        self.samples.iter().rev()
    }

    /// Returns the packets of the last `span_s`, in s, newest first. The iterator stops at the first packet that
    /// arrived `span_s` or longer before the newest packet.
    pub fn last(&self, span_s: f64) -> impl Iterator<Item = &Sample> {
        let from = self.samples.back().map_or(f64::INFINITY, |last| last.arrived_s - span_s);
        self.newest_first().take_while(move |it| it.arrived_s > from)
    }

    /// Returns the number of bits of the packets that [`last`](Self::last) returns.
    pub fn bits(&self, span_s: f64) -> f64 {
        self.last(span_s).map(|it| it.bits).sum()
    }

    /// Returns the rate of the newest unbroken run of packets that all waited longer than `threshold_s`, in s; `None`
    /// if they do not show a busy bottleneck.
    ///
    /// Packets that meet a queue leave this queue at the service rate (Dovrolis 2001). But the result is `None` if all
    /// packets of the run wait less than `calm_s`, in s, and the run's arrival rate differs from its sending rate by
    /// less than 5 %. In this case, cross traffic causes the queue.
    pub fn service(&self, threshold_s: f64, calm_s: f64) -> Option<Service> {
        let last = self.samples.back()?;
        let mut run = Run::default();
        for sample in self.last(Self::RUN_S).take_while(|it| it.over_s > threshold_s) {
            run.take(sample);
        }
        let first = run.first?;
        let (arriving, leaving) = (last.arrived_s - first.arrived_s, (last.departed_s - first.departed_s).max(1e-3));
        if run.packets < Self::LEAST_PACKETS || arriving <= Self::LEAST_RUN_S {
            return None;
        }
        if run.highest_s < calm_s && (arriving / leaving - 1.0).abs() < 0.05 {
            return None;
        }
        let paused = if run.packets > Self::LEAST_PACKETS && run.longest_s > Self::PAUSE * run.second_s {
            run.longest_s - run.second_s
        } else {
            0.0
        };
        let bits = run.bits - first.bits;
        Some(Service { served_bps: bits / (arriving - paused).max(1e-3), sent_bps: bits / leaving, lasted_s: arriving })
    }
}

/// The accumulated state of a run of packets, which are added from the newest to the oldest.
#[derive(Default)]
struct Run<'a> {
    packets: usize,
    bits: f64,
    highest_s: f64,
    /// `longest_s` and `second_s` are the longest and the second longest gap between arrivals, in s.
    longest_s: f64,
    second_s: f64,
    first: Option<&'a Sample>,
}

impl<'a> Run<'a> {
    fn take(&mut self, sample: &'a Sample) {
        if let Some(later) = self.first {
            let gap = later.arrived_s - sample.arrived_s;
            if gap > self.longest_s {
                (self.longest_s, self.second_s) = (gap, self.longest_s);
            } else {
                self.second_s = self.second_s.max(gap);
            }
        }
        self.packets += 1;
        self.bits += sample.bits;
        self.highest_s = self.highest_s.max(sample.over_s);
        self.first = Some(sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns packets of 1200 bytes that leave at `sent` bit/s and arrive at `served` bit/s. `pause` is a packet
    /// number and a time in s: the bottleneck serves nothing for this time before this packet.
    fn queued(sent: f64, served: f64, pause: Option<(u32, f64)>) -> Recent {
        let mut recent = Recent::new();
        for number in 0..30 {
            let paused = pause.filter(|(at, _)| number >= *at).map_or(0.0, |(_, pause_s)| pause_s);
            let (departed_s, arrived_s) =
                (f64::from(number) * 9600.0 / sent, 0.050 + f64::from(number) * 9600.0 / served + paused);
            let over_s = 0.010 + arrived_s - departed_s - 0.050;
            recent.push(Sample { number: number.into(), departed_s, arrived_s, bits: 9600.0, over_s });
        }
        recent
    }

    #[test]
    fn what_waited_comes_out_at_the_rate_of_service() {
        let service = queued(1.5e6, 1e6, None).service(0.006, 0.005).expect("busy");
        assert!((service.served_bps / 1e6 - 1.0).abs() < 1e-9 && (service.sent_bps / 1.5e6 - 1.0).abs() < 1e-9);
        assert_eq!(queued(1.5e6, 1e6, None).service(10.0, 0.005), None, "nothing waited");
        assert_eq!(queued(1e6, 1e6, None).service(0.006, 0.020), None, "the queue is another's");
    }

    /// If this test fails, a radio link that pauses for 30 ms is mistaken for a slower link.
    #[test]
    fn one_long_gap_among_equal_ones_is_a_pause() {
        let service = queued(2.5e6, 2e6, Some((20, 0.030))).service(0.006, 0.005).expect("busy");
        assert!((service.served_bps / 2e6 - 1.0).abs() < 1e-9, "{service:?}");
    }

    #[test]
    fn memory_is_bounded_by_time_and_number() {
        let mut recent = Recent::new();
        for number in 0..100_000_u64 {
            let at = number as f64 * 1e-6;
            recent.push(Sample { number, departed_s: at, arrived_s: at, bits: 9600.0, over_s: 0.0 });
        }
        assert_eq!(recent.newest_first().count(), Recent::MOST);
        recent.push(Sample { number: 0, departed_s: 9.0, arrived_s: 9.0, bits: 9600.0, over_s: 0.0 });
        assert_eq!(recent.newest_first().count(), 1);
    }
}
