use equipoise::units::Size;

use super::timer::Timer;
use super::{Ack, DelayedAcks, ReceiverConfig, SackBlocks, Segment, TcpError};
use crate::Time;

/// The end that data comes to.
///
/// Source: RFC 5681, Sec. 4.2: an acknowledgement behind every second segment or when its timer runs out, at once for a
/// segment out of order or one that fills part of a gap; RFC 2018, Sec. 4 for its blocks. The application takes data as
/// soon as they are in order.
#[derive(Clone, Debug)]
pub struct Receiver {
    window: u64,
    delayed_acks: Option<DelayedAcks>,
    sack: bool,
    next: u64,
    /// What came behind the gap, in order.
    held: Vec<(u64, u64)>,
    /// A segment each of the ranges that changed last, the last first.
    recent: [Option<u64>; SackBlocks::MOST],
    /// Segments in order that no acknowledgement has told of.
    untold: u64,
    timer: Timer,
    delivered: Size,
    received: u64,
    duplicates: u64,
}

impl Receiver {
    /// A receiver that has seen nothing yet.
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
        })
    }

    /// A segment came in; what is to be answered at once.
    pub fn on_segment(&mut self, now: Time, segment: Segment) -> Option<Segment> {
        match segment {
            Segment::Syn => Some(Segment::SynAck { window: self.window }),
            Segment::Data { number, payload } => self.on_data(now, number, payload).then(|| self.acknowledge()),
            Segment::SynAck { .. } | Segment::Ack(_) => None,
        }
    }

    /// It is [`wake`](Self::wake)'s time; what is to be sent.
    pub fn on_timer(&mut self, now: Time) -> Option<Segment> {
        self.timer.is_due(now).then(|| self.acknowledge())
    }

    /// When to call [`on_timer`](Self::on_timer).
    pub const fn wake(&self) -> Option<Time> {
        self.timer.wake()
    }

    /// Data that came, each byte once, whether in order yet or not.
    pub const fn delivered(&self) -> Size {
        self.delivered
    }

    /// Segments that came, and how many of them had come before.
    pub const fn received(&self) -> (u64, u64) {
        (self.received, self.duplicates)
    }

    /// Whether the segment wants an acknowledgement at once.
    fn on_data(&mut self, now: Time, number: u64, payload: Size) -> bool {
        self.received += 1;
        let seen = number < self.next || self.range_of(number).is_some();
        if seen || number - self.next >= self.window {
            self.duplicates += u64::from(seen);
            return true;
        }
        self.delivered = self.delivered + payload;
        if number > self.next {
            self.hold(number);
            return true;
        }
        let had_gap = !self.held.is_empty();
        self.next += 1;
        if self.held.first().is_some_and(|&(first, _)| first == self.next) {
            self.next = self.held.remove(0).1;
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

    /// The range of what is held that segment `number` lies in.
    fn range_of(&self, number: u64) -> Option<(u64, u64)> {
        let place = self.held.partition_point(|&(_, end)| end <= number);
        self.held.get(place).copied().filter(|&(first, _)| first <= number)
    }

    /// Keeps segment `number`, which came too early and has not come before; its range is the one to tell of first.
    fn hold(&mut self, number: u64) {
        let place = self.held.partition_point(|&(_, end)| end < number);
        match self.held.get_mut(place) {
            Some(range) if range.1 == number => range.1 += 1,
            Some(range) if range.0 == number + 1 => range.0 = number,
            _ => self.held.insert(place, (number, number + 1)),
        }
        // It may have closed the gap to the next.
        if let [.., first, second] = self.held.get_mut(..place + 2).unwrap_or_default()
            && first.1 == second.0
        {
            first.1 = second.1;
            self.held.remove(place + 1);
        }
        let range = self.range_of(number).unwrap_or((number, number + 1));
        let others = self.recent.into_iter().flatten().filter(|other| !(range.0..range.1).contains(other));
        let mut recent = [Some(number), None, None];
        for (place, other) in recent.iter_mut().skip(1).zip(others) {
            *place = Some(other);
        }
        self.recent = recent;
    }

    fn acknowledge(&mut self) -> Segment {
        self.untold = 0;
        self.timer.set(None);
        let sacked = if self.sack && !self.held.is_empty() {
            SackBlocks::new(self.recent.iter().flatten().filter_map(|&number| self.range_of(number)))
        } else {
            SackBlocks::NONE
        };
        Segment::Ack(Ack { next: self.next, window: self.window, sacked })
    }
}
