use equipoise::units::Size;

use super::segment::Encoded;
use super::timer::Timer;
use super::{Ack, DelayedAcks, ReceiverConfig, SackBlocks, Segment, TcpError};
use crate::Time;

/// The receiver of a TCP connection.
///
/// Source: RFC 5681, Sec. 4.2. By default, the receiver sends an acknowledgement after every second segment, or when
/// its timer expires. If a segment is out of order or fills part of a gap, the receiver acknowledges it at once. SACK
/// blocks follow RFC 2018, Sec. 4. The application reads data as soon as the data is in order.
#[derive(Clone, Debug)]
pub struct Receiver {
    window: u64,
    delayed_acks: Option<DelayedAcks>,
    sack: bool,
    next: u64,
    /// Ranges of segments that were received after a gap, in ascending order.
    held: Vec<Held>,
    /// The ranges in which segments arrived most recently, the most recent first. Each is identified by the number of
    /// one of its segments.
    recent: [Option<u64>; SackBlocks::MOST],
    /// Number of segments that were received in order and are not acknowledged yet.
    untold: u64,
    timer: Timer,
    delivered: Size,
    received: u64,
    duplicates: u64,
    /// The acknowledgement that the endpoint will send next.
    pub(super) answer: Option<Encoded>,
    /// The acknowledgement that the endpoint is sending.
    pub(super) encoded: Encoded,
}

/// A range of received segments, from `first` up to, but not including, `end`.
#[derive(Clone, Copy, Debug)]
struct Held {
    first: u64,
    end: u64,
    /// The value of `Receiver::received` when a segment of this range last arrived.
    last: u64,
}

impl Receiver {
    /// A receiver that has not received a segment.
    ///
    /// # Errors
    /// [`TcpError::NoWindow`] if the receive window is zero.
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

    /// Processes a received segment. Returns the segment to send in reply at once, if any.
    pub fn on_segment(&mut self, now: Time, segment: Segment) -> Option<Segment> {
        match segment {
            Segment::Syn => Some(Segment::SynAck { window: self.window }),
            Segment::Data { number, payload } => self.on_data(now, number, payload).then(|| self.acknowledge()),
            Segment::SynAck { .. } | Segment::Ack(_) => None,
        }
    }

    /// Must be called at the time of [`wake`](Self::wake). Returns the acknowledgement to send, if it is due.
    pub fn on_timer(&mut self, now: Time) -> Option<Segment> {
        self.timer.is_due(now).then(|| self.acknowledge())
    }

    /// When to call [`on_timer`](Self::on_timer); `None` if no call is needed.
    pub const fn wake(&self) -> Option<Time> {
        self.timer.wake()
    }

    /// Number of the next expected segment: all earlier segments were received.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Size of all data accepted, in order or not; duplicates count once.
    pub const fn delivered(&self) -> Size {
        self.delivered
    }

    /// Number of segments received, including duplicates, and number of duplicates.
    pub const fn received(&self) -> (u64, u64) {
        (self.received, self.duplicates)
    }

    /// Processes a data segment. Returns whether the segment must be acknowledged at once.
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
        // Segment number `u64::MAX` is never accepted: the number after it does not exist, so the segment could not be
        // acknowledged.
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

    /// The index of the range in `held` that contains segment `number`; `None` if no range contains it.
    fn place_of(&self, number: u64) -> Option<usize> {
        let place = self.held.partition_point(|held| held.end <= number);
        self.held.get(place).filter(|held| held.first <= number).map(|_| place)
    }

    /// Adds segment `number`, which is new and after a gap, to the ranges in `held`.
    fn hold(&mut self, number: u64) {
        let place = self.held.partition_point(|held| held.end < number);
        match self.held.get_mut(place) {
            Some(held) if held.end == number => held.end += 1,
            Some(held) if held.first == number + 1 => held.first = number,
            _ => self.held.insert(place, Held { first: number, end: number + 1, last: 0 }),
        }
        // The new segment may connect its range to the next range.
        if let [.., first, second] = self.held.get_mut(..place + 2).unwrap_or_default()
            && first.end == second.first
        {
            first.end = second.end;
            self.held.remove(place + 1);
        }
        self.tell_first(place, number);
    }

    /// Records that segment `number` arrived in the range at index `place`, so that acknowledgements report this range
    /// first (RFC 2018, Sec. 4).
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

    /// Returns at most three ranges for an acknowledgement: the ranges in which segments arrived most recently.
    fn blocks(&mut self) -> SackBlocks {
        let known = self.recent.iter().flatten().filter(|number| self.place_of(**number).is_some()).count();
        if known < self.held.len().min(SackBlocks::MOST) {
            self.recent = self.search();
        }
        let places = self.recent.iter().flatten().filter_map(|&number| self.place_of(number));
        SackBlocks::new(places.filter_map(|place| self.held.get(place)).map(|held| (held.first, held.end)))
    }

    /// Searches all ranges for the ranges in which segments arrived most recently. This search is needed if a range in
    /// `recent` no longer exists.
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
