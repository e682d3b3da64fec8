use std::mem;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use equipoise::units::{Size, Span};
use equipoise_path::link::{LinkStats, Pipe};

use super::punctuality::PunctualityMeter;
use crate::engine::{Arrival, Departure, Manner, Medium, Packet};
use crate::{HostClock, Time};

/// Maximum number of bytes in flight in one direction, including [`OVERHEAD`] for each packet. Our choice: about
/// the bytes that arrive in two seconds at 1 Gbit/s.
const MEMORY: u64 = 256 << 20;

/// Upper bound of the memory per packet in addition to the packet's bytes.
const OVERHEAD: u64 = 256;

/// Maximum number of buffers kept for reuse. Our choice: at 1 Gbit/s, fewer packets than this arrive between two reads.
const SPARES: usize = 4096;

/// One direction of a bridge: the emulated path on which packets wait between two sockets.
#[derive(Debug)]
pub(super) struct Direction {
    pipe: Pipe<HostClock, Packet>,
    pub(super) punctuality: PunctualityMeter,
    /// Packets that were read, but are not yet sorted by arrival time.
    staged: Vec<(Time, Manner, Packet)>,
    /// Bytes of the packets in `staged`.
    staged_bytes: u64,
    spare: Vec<Vec<u8>>,
    refused: u64,
}

impl Direction {
    pub(super) fn new(pipe: Pipe<HostClock, Packet>, punctuality: PunctualityMeter) -> Self {
        Self { pipe, punctuality, staged: Vec::new(), staged_bytes: 0, spare: Vec::new(), refused: 0 }
    }

    /// Stores a packet that arrived at the time `at`. The packets of different sockets need not be stored in the order
    /// of arrival.
    pub(super) fn stage(&mut self, Arrival { at, manner, client, header }: Arrival, bytes: &[u8]) {
        let packets = (self.pipe.in_flight() + self.staged.len()) as u64;
        let bytes_held = self.pipe.held().as_bytes().saturating_add(self.staged_bytes);
        if bytes_held.saturating_add(packets.saturating_mul(OVERHEAD)) > MEMORY {
            self.refused += 1;
            return;
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        self.staged_bytes += bytes.len() as u64;
        self.staged.push((at, manner, Packet { bytes: buffer, client, header }));
    }

    /// Passes all stored packets that arrived no later than `horizon` to the path, in the order of arrival.
    pub(super) fn enter(&mut self, horizon: Time) {
        let mut staged = mem::take(&mut self.staged);
        staged.sort_by_key(|(at, ..)| *at);
        let ready = staged.partition_point(|(at, ..)| *at <= horizon);
        for (at, manner, packet) in staged.drain(..ready) {
            self.staged_bytes -= packet.bytes.len() as u64;
            match manner {
                Manner::Ip(size) => {
                    self.pipe.enter(at, size, packet);
                }
                Manner::Beside => self.pipe.bypass(at, Size::from_bytes(packet.bytes.len() as u64), packet),
            }
            self.reclaim();
        }
        self.staged = staged;
    }

    /// The time of the next event on the path; `None` if no packet is in flight.
    pub(super) fn next(&self) -> Option<Time> {
        self.pipe.next()
    }

    /// Returns the next packet that is due no later than `horizon`, and its due time.
    pub(super) fn leave(&mut self, horizon: Time) -> Option<(Time, Packet)> {
        let left = self.pipe.leave(horizon);
        self.reclaim();
        left
    }

    /// Stores the buffer of a packet for reuse.
    pub(super) fn recycle(&mut self, packet: Packet) {
        if self.spare.len() < SPARES {
            self.spare.push(packet.bytes);
        }
    }

    /// The emulated path of this direction.
    pub(super) const fn pipe(&self) -> &Pipe<HostClock, Packet> {
        &self.pipe
    }

    /// Number of packets that were dropped for lack of memory.
    pub(super) const fn refused(&self) -> u64 {
        self.refused
    }

    fn reclaim(&mut self) {
        while let Some(packet) = self.pipe.discarded() {
            self.recycle(packet);
        }
    }
}

/// Both directions of a bridge, and the periodic samples of their counters.
#[derive(Debug)]
pub(super) struct Directions {
    pub(super) both: [Direction; 2],
    pub(super) sampling: Option<Sampling>,
}

/// Records the counters of both directions once per interval.
#[derive(Debug)]
pub(super) struct Sampling {
    interval: Span,
    next: Time,
    post: SyncSender<BridgeSample>,
}

/// The counters of both directions of a bridge at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BridgeSample {
    /// When the sample was taken.
    pub at: Time,
    /// Counters of the direction from the clients to the target, or from the first interface to the second.
    pub forward: LinkStats,
    /// Counters of the opposite direction.
    pub back: LinkStats,
}

/// Maximum number of samples that wait for the reader; further samples are dropped. Our choice: more samples than
/// usually wait.
const SAMPLES: usize = 64;

impl Sampling {
    /// Starts sampling once per `interval`; the first sample is due at `start + interval`. Samples are sent to the
    /// returned receiver.
    pub(super) fn new(start: Time, interval: Span) -> (Self, Receiver<BridgeSample>) {
        let (post, samples) = sync_channel(SAMPLES);
        (Self { interval, next: start + interval, post }, samples)
    }
}

impl Directions {
    /// Sends a sample to the reader if it is due. If the reader's queue is full, the sample is dropped.
    fn sample(&mut self, now: Time) {
        let Self { both: [forward, back], sampling } = self;
        let Some(sampling) = sampling.as_mut().filter(|sampling| sampling.next <= now) else { return };
        // After a stall of the machine, one sample replaces all samples that were missed.
        while sampling.next <= now {
            sampling.next = sampling.next + sampling.interval;
        }
        let sample = BridgeSample { at: now, forward: forward.pipe.stats(now), back: back.pipe.stats(now) };
        let _ = sampling.post.try_send(sample);
    }
}

/// The packets pass the emulated path of their direction. Packets with [`Manner::Beside`] only get the path's delay.
impl Medium for Directions {
    fn stage(&mut self, direction: usize, arrival: Arrival, bytes: &[u8]) {
        if let Some(direction) = self.both.get_mut(direction) {
            direction.stage(arrival, bytes);
        }
    }

    fn enter(&mut self, horizon: Time) {
        for direction in &mut self.both {
            direction.enter(horizon);
        }
        self.sample(horizon);
    }

    fn next(&self) -> Option<Time> {
        self.both.iter().filter_map(Direction::next).min()
    }

    fn leave(&mut self, horizon: Time) -> Option<Departure> {
        self.both.iter_mut().enumerate().find_map(|(direction, path)| {
            let (due, packet) = path.leave(horizon)?;
            Some(Departure { due, direction, packet })
        })
    }

    fn left(&mut self, Departure { due, direction, packet }: Departure, at: Time) {
        if let Some(direction) = self.both.get_mut(direction) {
            direction.punctuality.record(at, due);
            direction.recycle(packet);
        }
    }

    fn least_delay(&self) -> Span {
        self.both.iter().map(|direction| direction.pipe().config().least_delay()).min().unwrap_or(Span::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use equipoise::units::{Rate, Schedule, Span};
    use equipoise_path::link::{Capacity, Ecn, PipeConfig};

    use super::*;
    use crate::engine::Header;
    use crate::watchdog::StallLog;

    const HEADER: Header = Header::Apart(Ecn::NotCapable);

    fn micros(micros: i64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    /// A direction with a rate of 8 Mbit/s.
    fn direction() -> Direction {
        let capacity = Capacity::Rate(Schedule::constant(Rate::from_bps(8_000_000)));
        let pipe = Pipe::new(PipeConfig { capacity, ..PipeConfig::default() }, Time::ZERO, 1).unwrap();
        Direction::new(pipe, PunctualityMeter::new(StallLog::default()))
    }

    /// If this test fails, samples are late, or packets are delayed by a slow reader of samples.
    #[test]
    fn counters_are_sampled_each_interval_and_a_reader_who_is_slow_misses_some() {
        let (sampling, samples) = Sampling::new(Time::ZERO, Span::from_micros(100));
        let mut both = Directions { both: [direction(), direction()], sampling: Some(sampling) };
        let arrival = Arrival { at: micros(10), manner: Manner::Ip(Size::from_bytes(1000)), client: 0, header: HEADER };
        both.stage(0, arrival, &[1]);
        for at in [50, 120, 130, 450] {
            both.enter(micros(at));
        }
        let seen: Vec<_> = samples.try_iter().map(|it| (it.at, it.forward.entered, it.back.entered)).collect();
        assert_eq!(seen, [(micros(120), 1, 0), (micros(450), 1, 0)]);
        for number in 0..2 * SAMPLES as i64 {
            both.enter(micros(1000 + 100 * number));
        }
        assert_eq!(samples.try_iter().count(), SAMPLES);
    }

    /// If this test fails, packets from the socket that is read first overtake earlier packets from other sockets.
    #[test]
    fn packets_of_several_sockets_enter_in_the_order_of_their_arrival() {
        let mut direction = direction();
        let manner = Manner::Ip(Size::from_bytes(1000));
        let arrival = |at, client| Arrival { at: micros(at), manner, client, header: HEADER };
        direction.stage(arrival(300, 0), &[3]);
        direction.stage(arrival(100, 1), &[1]);
        direction.stage(arrival(900, 1), &[9]);
        direction.enter(micros(500));
        let mut out = Vec::new();
        while let Some((at, packet)) = direction.leave(Time::MAX) {
            out.push((at, packet.bytes.clone()));
            direction.recycle(packet);
        }
        // The transmission of each packet takes 1 ms. The propagation delay has its minimum, 1 ns.
        let due = |at| micros(at) + Span::from_nanos(1);
        assert_eq!(out, [(due(1100), vec![1]), (due(2100), vec![3])], "one has not come yet");
        assert_eq!(direction.spare.len(), 2);
    }

    #[test]
    fn memory_is_bounded_whatever_comes_in() {
        let packet = vec![0; 60_000];
        let most = MEMORY + 60_000;
        for is_sorted_at_once in [true, false] {
            let mut direction = direction();
            for _ in 0..MEMORY / 60_000 + 1000 {
                direction.stage(Arrival { at: micros(0), manner: Manner::Beside, client: 0, header: HEADER }, &packet);
                if is_sorted_at_once {
                    direction.enter(micros(0));
                }
            }
            let staged: usize = direction.staged.iter().map(|(.., packet)| packet.bytes.len()).sum();
            assert!(direction.pipe.held().as_bytes() + staged as u64 <= most);
            assert!(direction.refused() > 0);
            direction.enter(micros(0));
            assert_eq!(direction.staged_bytes, 0);
        }
    }
}
