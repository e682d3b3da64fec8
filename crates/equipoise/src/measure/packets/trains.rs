use alloc::collections::VecDeque;

use super::Sample;

/// The rate at which trains of packets come out of the path.
///
/// A frame of video leaves as a train of packets that follow each other faster than the rate is on the mean. If they arrive as far apart as they
/// left, the path takes that rate at the moment; if farther, the rate of their arrivals is what it takes: a measurement of the available
/// bandwidth by the packets that are sent anyway, as `ImTCP` measures by its acknowledgements (Cao 2004, which Kodama 2009 uses).
///
/// A train ends where packets follow each other more slowly than the pacer lets them, with a packet that did not arrive, or after
/// [`LONGEST_S`](Self::LONGEST_S). Three packets and 4 ms make one. Limits are ours.
#[derive(Clone, Debug, Default)]
pub struct Trains {
    current: Option<Train>,
    before: Option<Sample>,
    ended: VecDeque<Train>,
}

#[derive(Clone, Copy, Debug)]
struct Train {
    first: Sample,
    last: Sample,
    /// Bits behind the first packet.
    bits: f64,
    packets: u32,
}

impl Train {
    const fn of(first: Sample) -> Self {
        Self { first, last: first, bits: 0.0, packets: 1 }
    }

    fn leaving_s(&self) -> f64 {
        self.last.departed_s - self.first.departed_s
    }
}

impl Trains {
    /// A train is cut after so much time of its departure, in s: a frame of 30 a second.
    pub const LONGEST_S: f64 = 0.033;
    const LEAST_PACKETS: u32 = 3;
    const LEAST_S: f64 = 0.004;
    /// For how long a train counts, in s, and how many there have to be.
    const WINDOW_S: f64 = 0.35;
    const LEAST_TRAINS: usize = 3;
    /// A bound on memory; in the window there are no more than some eighty.
    const MOST: usize = 128;
    /// By how much a packet may follow later than the pacer allows, and be of the same train.
    const SLACK: f64 = 1.5;

    /// Nothing has arrived yet.
    pub const fn new() -> Self {
        Self { current: None, before: None, ended: VecDeque::new() }
    }

    /// Takes the next packet that arrived, where packets follow each other at `pace_bps` at the fastest. Whether it goes on with a train.
    pub fn push(&mut self, sample: Sample, pace_bps: f64) -> bool {
        let follows = self.before.is_some_and(|before| {
            sample.number == before.number + 1
                && sample.departed_s - before.departed_s <= Self::SLACK * before.bits / pace_bps
        });
        self.before = Some(sample);
        match &mut self.current {
            Some(train) if follows => {
                train.bits += sample.bits;
                train.last = sample;
                train.packets += 1;
                if train.leaving_s() >= Self::LONGEST_S {
                    self.end();
                    self.current = Some(Train::of(sample));
                }
            }
            _ => {
                self.end();
                self.current = Some(Train::of(sample));
            }
        }
        follows
    }

    /// The rate of the trains that arrived within the window, in bit/s; `None` if there are too few.
    pub fn rate_bps(&mut self, last_arrival_s: f64) -> Option<f64> {
        while self.ended.front().is_some_and(|it| it.last.arrived_s < last_arrival_s - Self::WINDOW_S) {
            self.ended.pop_front();
        }
        if self.ended.len() < Self::LEAST_TRAINS {
            return None;
        }
        let arriving = |it: &Train| (it.last.arrived_s - it.first.arrived_s).max(1e-4);
        let (bits, arriving_s) = self.ended.iter().fold((0.0, 0.0), |sum, it| (sum.0 + it.bits, sum.1 + arriving(it)));
        Some(bits / arriving_s)
    }

    fn end(&mut self) {
        let is_one = |it: &Train| it.packets >= Self::LEAST_PACKETS && it.leaving_s() > Self::LEAST_S;
        if let Some(train) = self.current.take().filter(is_one) {
            if self.ended.len() >= Self::MOST {
                self.ended.pop_front();
            }
            self.ended.push_back(train);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of six packets each 33 ms, which leave at `pace` and arrive at no more than `available`.
    fn rate(pace: f64, available: f64) -> Option<f64> {
        let mut trains = Trains::default();
        let mut last = 0.0;
        for frame in 0..10_u64 {
            for packet in 0..6_u64 {
                let start = frame as f64 / 30.0;
                let departed_s = start + packet as f64 * 9600.0 / pace;
                let arrived_s = start + 0.05 + packet as f64 * 9600.0 / pace.min(available);
                trains.push(Sample { number: frame * 6 + packet, departed_s, arrived_s, bits: 9600.0, over_s: 0.0 }, pace);
                last = arrived_s;
            }
        }
        trains.rate_bps(last)
    }

    #[test]
    fn a_train_comes_out_at_its_own_rate_or_at_what_the_path_takes() {
        for (pace, available) in [(2e6, 4e6), (4e6, 2.5e6)] {
            let rate = rate(pace, available).expect("ten trains");
            assert!((rate / pace.min(available) - 1.0).abs() < 1e-9, "{rate}");
        }
    }

    #[test]
    fn packets_that_follow_slowly_or_behind_a_loss_are_no_train() {
        let mut trains = Trains::default();
        for number in 0..60_u64 {
            let departed_s = number as f64 * 0.02;
            let sample = Sample { number, departed_s, arrived_s: departed_s + 0.05, bits: 1600.0, over_s: 0.0 };
            assert!(!trains.push(sample, 1e6));
        }
        assert_eq!(trains.rate_bps(1.25), None);
        let lossy = |number| Sample { number, departed_s: 0.01 * number as f64, arrived_s: 1.0, bits: 9600.0, over_s: 0.0 };
        assert!(!trains.push(lossy(200), 1e6) && trains.push(lossy(201), 1e6) && !trains.push(lossy(203), 1e6));
    }
}
