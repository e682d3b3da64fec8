use alloc::collections::VecDeque;

use super::Sample;

/// Measures the rate at which the path delivers packet trains.
///
/// A video frame leaves as a train of packets, faster than the mean rate of the stream. If the packets arrive as far
/// apart as they left, the path carries the rate at which they left. If they arrive further apart, the path carries
/// only the rate at which they arrive. The available bandwidth is thus measured without probe packets, as in `ImTCP`
/// (Kodama 2009, Sec. 2.2.1).
///
/// A new train begins in three cases: a packet left clearly later than the pacer requires, the previous packet did not
/// arrive, or the train has lasted for [`LONGEST_S`](Self::LONGEST_S) seconds. A train counts if it has at least three
/// packets and its departure lasts more than 4 ms. The limits are our choice.
#[derive(Clone, Debug)]
pub struct Trains {
    /// Departure time of the last packet sent, in s, and its size in bits.
    left: Option<(f64, f64)>,
    /// One bit for each recent packet number: whether the packet followed the previous one as fast as the pacer allows.
    followed: [u64; REMEMBERED / 64],
    current: Option<Train>,
    /// Number of the last packet that arrived.
    before: Option<u64>,
    ended: VecDeque<Train>,
}

/// The rates of trains, in bit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainRates {
    /// Arrival rate at the receiver.
    pub arrived_bps: f64,
    /// Departure rate at the sender.
    pub left_bps: f64,
}

/// Number of packet numbers that are remembered until their packets arrive, enough for 0.8 s at 100 Mbit/s with packets
/// of 1200 bytes.
const REMEMBERED: usize = 1 << 13;

#[derive(Clone, Copy, Debug)]
struct Train {
    first: Sample,
    last: Sample,
    /// Bits of all packets after the first packet.
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

impl Default for Trains {
    fn default() -> Self {
        Self::new()
    }
}

impl Trains {
    /// Maximum duration of a train at its departure, in s: one frame at 30 frames/s. A longer train is divided.
    pub const LONGEST_S: f64 = 0.033;
    const LEAST_PACKETS: u32 = 3;
    const LEAST_S: f64 = 0.004;
    /// A train counts for `WINDOW_S`, in s, after its arrival. A result needs at least `LEAST_TRAINS` trains.
    const WINDOW_S: f64 = 0.35;
    const LEAST_TRAINS: usize = 3;
    /// Maximum number of trains, to bound memory; the window contains at most about eighty.
    const MOST: usize = 128;
    /// Tolerances for a packet that continues a train. The time since the previous packet may be `SLACK` times the time
    /// that the pacer requires, plus `LATE_S`, in s. The tolerances are needed because hosts wake late.
    const SLACK: f64 = 1.1;
    const LATE_S: f64 = 0.0005;

    /// Creates a meter without packets.
    pub const fn new() -> Self {
        Self { left: None, followed: [0; REMEMBERED / 64], current: None, before: None, ended: VecDeque::new() }
    }

    /// Records that packet `number` leaves at `now_s`. The pacer sends packets at `pace_bps` at most.
    pub fn on_sent(&mut self, number: u64, now_s: f64, bits: f64, pace_bps: f64) {
        let follows = self
            .left
            .is_some_and(|(at_s, before_bits)| now_s - at_s <= Self::SLACK * before_bits / pace_bps + Self::LATE_S);
        self.left = Some((now_s, bits));
        let (word, bit) = (number as usize % REMEMBERED / 64, number % 64);
        self.followed[word] = self.followed[word] & !(1 << bit) | u64::from(follows) << bit;
    }

    /// Records the next packet that arrived. Returns whether it continues a train.
    pub fn push(&mut self, sample: Sample) -> bool {
        let (word, bit) = (sample.number as usize % REMEMBERED / 64, sample.number % 64);
        let follows =
            self.before.is_some_and(|before| sample.number == before + 1) && self.followed[word] >> bit & 1 == 1;
        self.before = Some(sample.number);
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

    /// Returns the rates of the trains within the window; `None` if there are too few trains.
    pub fn rates(&mut self, last_arrival_s: f64) -> Option<TrainRates> {
        while self.ended.front().is_some_and(|it| it.last.arrived_s < last_arrival_s - Self::WINDOW_S) {
            self.ended.pop_front();
        }
        if self.ended.len() < Self::LEAST_TRAINS {
            return None;
        }
        let arriving = |it: &Train| (it.last.arrived_s - it.first.arrived_s).max(1e-4);
        let (mut bits, mut arriving_s, mut leaving_s) = (0.0, 0.0, 0.0);
        for train in &self.ended {
            bits += train.bits;
            arriving_s += arriving(train);
            leaving_s += train.leaving_s();
        }
        Some(TrainRates { arrived_bps: bits / arriving_s, left_bps: bits / leaving_s })
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

    /// Sends a packet and records its arrival. Returns whether the packet continues a train.
    fn pass(trains: &mut Trains, number: u64, (departed_s, arrived_s): (f64, f64), pace: f64) -> bool {
        trains.on_sent(number, departed_s, 9600.0, pace);
        trains.push(Sample { number, departed_s, arrived_s, bits: 9600.0, over_s: 0.0 })
    }

    /// Sends a frame of six packets every 33 ms. The packets of a frame leave at the rate `pace` and arrive at no more
    /// than the rate `available`, both in bit/s. Returns the rates of the trains.
    fn rates(pace: f64, available: f64) -> Option<TrainRates> {
        let mut trains = Trains::new();
        let mut last = 0.0;
        for frame in 0..10_u64 {
            for packet in 0..6_u64 {
                let start = frame as f64 / 30.0;
                let departed_s = start + packet as f64 * 9600.0 / pace;
                last = start + 0.05 + packet as f64 * 9600.0 / pace.min(available);
                pass(&mut trains, frame * 6 + packet, (departed_s, last), pace);
            }
        }
        trains.rates(last)
    }

    #[test]
    fn a_train_comes_out_at_its_own_rate_or_at_what_the_path_takes() {
        for (pace, available) in [(2e6, 4e6), (4e6, 2.5e6)] {
            let rates = rates(pace, available).expect("ten trains");
            assert!((rates.arrived_bps / pace.min(available) - 1.0).abs() < 1e-9, "{rates:?}");
            assert!((rates.left_bps / pace - 1.0).abs() < 1e-9, "{rates:?}");
        }
    }

    #[test]
    fn packets_that_follow_slowly_or_behind_a_loss_are_no_train() {
        let mut trains = Trains::new();
        for number in 0..60_u64 {
            let departed_s = number as f64 * 0.02;
            assert!(!pass(&mut trains, number, (departed_s, departed_s + 0.05), 1e6));
        }
        assert_eq!(trains.rates(1.25), None);
        let mut lossy = |number: u64| pass(&mut trains, number, (0.005 * number as f64, 2.0), 1e6);
        assert!(!lossy(400) && lossy(401) && !lossy(403));
    }
}
