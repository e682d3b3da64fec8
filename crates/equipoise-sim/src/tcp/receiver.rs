use equipoise::units::Size;

use super::segment::Encoded;
use super::timer::Timer;
use super::{Ack, DelayedAcks, ReceiverConfig, SackBlocks, Segment, TcpError};
use crate::Time;

/// The receiving end of a connection.
///
/// Source: RFC 5681, Sec. 4.2: an acknowledgement after every second segment or when its timer expires, and at once for
/// a segment out of order or one that fills part of a gap; SACK blocks by RFC 2018, Sec. 4. The application reads data
/// as soon as it is in order.
#[derive(Clone, Debug)]
pub struct Receiver {
    window: u64,
    delayed_acks: Option<DelayedAcks>,
    sack: bool,
    next: u64,
    /// Ranges received after the gap, in order.
    held: Vec<Held>,
    /// One segment of each of the most recently extended ranges, the latest first.
    recent: [Option<u64>; SackBlocks::MOST],
    /// Number of segments in order that are not acknowledged yet.
    untold: u64,
    timer: Timer,
    delivered: Size,
    received: u64,
    duplicates: u64,
    /// For the endpoint: the pending answer, and the one being sent.
    pub(super) answer: Option<Encoded>,
    pub(super) encoded: Encoded,
}

/// Segments from `first` up to, but not including, `end`.
#[derive(Clone, Copy, Debug)]
struct Held {
    first: u64,
    end: u64,
    /// The count of received segments when this range was last extended.
    last: u64,
}

impl Receiver {
    /// A receiver before the first segment.
    ///
    /// # Errors
    /// [`TcpError::NoWindow`].
    pub fn new(config: ReceiverConfig) -> Result<Self, TcpError> {
        let ReceiverConfig { window, delayed_acks, sack } = config;
        if window == 0 {
            return Err(TcpError::NoWindow);
        }
        Ok(Self {
            window,
            delayed_acks,
            sack,
            next: 0,
            held: Vec::new(),
            recent: [None; SackBlocks::MOST],
            untold: 0,
            timer: Timer::default(),
            delivered: Size::ZERO,
            received: 0,
            duplicates: 0,
            answer: None,
            encoded: Encoded::EMPTY,
        })
    }

    /// Processes a segment. Returns an immediate answer, if any.
    pub fn on_segment(&mut self, now: Time, segment: Segment) -> Option<Segment> {
        match segment {
            Segment::Syn => Some(Segment::SynAck { window: self.window }),
            Segment::Data { number, payload } => self.on_data(now, number, payload).then(|| self.acknowledge()),
            Segment::SynAck { .. } | Segment::Ack(_) => None,
        }
    }

    /// Called at the time of [`wake`](Self::wake). Returns the segment to send.
    pub fn on_timer(&mut self, now: Time) -> Option<Segment> {
        self.timer.is_due(now).then(|| self.acknowledge())
    }

    /// When to call [`on_timer`](Self::on_timer).
    pub const fn wake(&self) -> Option<Time> {
        self.timer.wake()
    }

    /// The next expected segment: all earlier segments were received.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Data received, each byte once, in order or not.
    pub const fn delivered(&self) -> Size {
        self.delivered
    }

    /// Number of segments received, and how many of them were duplicates.
    pub const fn received(&self) -> (u64, u64) {
        (self.received, self.duplicates)
    }

    /// Processes data. Returns whether the segment requires an immediate acknowledgement.
    fn on_data(&mut self, now: Time, number: u64, payload: Size) -> bool {
        self.received += 1;
        let held = self.place_of(number);
        if let Some(place) = held {
            self.tell_first(place, number);
        }
        if number < self.next || held.is_some() {
            self.duplicates += 1;
            return true;
        }
        // The last number is never used, because it could not be acknowledged.
        if number - self.next >= self.window.min(u64::MAX - self.next) {
            return true;
        }
        self.delivered = self.delivered + payload;
        if number > self.next {
            self.hold(number);
            return true;
        }
        let had_gap = !self.held.is_empty();
        self.next += 1;
        if self.held.first().is_some_and(|held| held.first == self.next) {
            self.next = self.held.remove(0).end;
        }
        self.untold += 1;
        let Some(delayed) = self.delayed_acks.filter(|_| !had_gap) else { return true };
        if self.untold >= delayed.segments {
            return true;
        }
        if !self.timer.is_set() {
            self.timer.set(Some(now + delayed.timeout));
        }
        false
    }

    /// The index of the held range that contains segment `number`.
    fn place_of(&self, number: u64) -> Option<usize> {
        let place = self.held.partition_point(|held| held.end <= number);
        self.held.get(place).filter(|held| held.first <= number).map(|_| place)
    }

    /// Holds segment `number`, which is early and new.
    fn hold(&mut self, number: u64) {
        let place = self.held.partition_point(|held| held.end < number);
        match self.held.get_mut(place) {
            Some(held) if held.end == number => held.end += 1,
            Some(held) if held.first == number + 1 => held.first = number,
            _ => self.held.insert(place, Held { first: number, end: number + 1, last: 0 }),
        }
        // The segment may have closed the gap to the next range.
        if let [.., first, second] = self.held.get_mut(..place + 2).unwrap_or_default()
            && first.end == second.first
        {
            first.end = second.end;
            self.held.remove(place + 1);
        }
        self.tell_first(place, number);
    }

    /// Records that a held range was extended, which is then reported first (RFC 2018, Sec. 4).
    fn tell_first(&mut self, place: usize, number: u64) {
        let Some(held) = self.held.get_mut(place) else { return };
        held.last = self.received;
        let range = held.first..held.end;
        let mut recent = [Some(number), None, None];
        let others =
            self.recent.iter().flatten().filter(|other| !range.contains(other) && self.place_of(**other).is_some());
        for (place, other) in recent.iter_mut().skip(1).zip(others) {
            *place = Some(*other);
        }
        self.recent = recent;
    }

    fn acknowledge(&mut self) -> Segment {
        self.untold = 0;
        self.timer.set(None);
        let sacked = if self.sack && !self.held.is_empty() { self.blocks() } else { SackBlocks::NONE };
        Segment::Ack(Ack { next: self.next, window: self.window, sacked })
    }

    /// The most recently extended ranges, as many as fit.
    fn blocks(&mut self) -> SackBlocks {
        let known = self.recent.iter().flatten().filter(|number| self.place_of(**number).is_some()).count();
        if known < self.held.len().min(SackBlocks::MOST) {
            self.recent = self.search();
        }
        let places = self.recent.iter().flatten().filter_map(|&number| self.place_of(number));
        SackBlocks::new(places.filter_map(|place| self.held.get(place)).map(|held| (held.first, held.end)))
    }

    /// Searches all ranges for the most recently extended ranges, if a known range is gone and an older range moves up.
    fn search(&self) -> [Option<u64>; SackBlocks::MOST] {
        let mut found: [Option<&Held>; SackBlocks::MOST] = [None; SackBlocks::MOST];
        for held in &self.held {
            let mut held = Some(held);
            for place in &mut found {
                if held.map(|held| held.last) > place.map(|held| held.last) {
                    std::mem::swap(place, &mut held);
                }
            }
        }
        found.map(|held| held.map(|held| held.first))
    }
}
