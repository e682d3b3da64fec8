use alloc::collections::VecDeque;
use alloc::vec::Vec;

use equipoise::units::{Instant, Size};

use super::codel::{Codel, CodelLine};
use super::line::Waiting;
use super::{Aqm, Drop, Queued, Room, Told};
use crate::link::QueueLimit;
use crate::link::impairment::Chance;

/// FQ-CoDel: a queue per flow, each managed by CoDel. The queues send in turn (round robin), new flows first.
///
/// Source: RFC 8290, Sec. 4. If all queues together exceed the limit, half of the packets of the longest queue are
/// dropped (at most 64), from the head of that queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCodel {
    /// The CoDel parameters of each queue.
    pub codel: Codel,
    /// Number of queues: 1 to 65 536.
    pub flows: u32,
    /// Bytes that a queue may send per turn, at least 64.
    pub quantum: Size,
}

/// 1024 queues and a quantum of 1500 bytes (RFC 8290, Sec. 5.2, without the 14 bytes of the Ethernet header).
impl Default for FqCodel {
    fn default() -> Self {
        Self { codel: Codel::default(), flows: 1024, quantum: Size::from_bytes(1500) }
    }
}

/// Maximum number of packets dropped from the longest queue at once (RFC 8290, Sec. 4.1).
const MOST_AT_ONCE: usize = 64;

/// The list that contains a flow's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    None,
    New,
    Old,
}

#[derive(Clone, Debug)]
struct Flow<C, P> {
    queue: CodelLine<C, P>,
    /// Bytes that the flow may still send in this turn.
    credits: i64,
    list: List,
}

/// The queues of all flows.
#[derive(Clone, Debug)]
pub(super) struct FlowQueues<C, P> {
    fq: FqCodel,
    salt: u64,
    flows: Vec<Flow<C, P>>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    len: usize,
    bytes: Size,
}

impl<C, P: Queued> FlowQueues<C, P> {
    pub(super) fn new(fq: FqCodel, mut chance: Chance) -> Self {
        let flow = || Flow { queue: CodelLine::new(fq.codel), credits: 0, list: List::None };
        let flows = (0..fq.flows.max(1)).map(|_| flow()).collect();
        let (new, old) = (VecDeque::new(), VecDeque::new());
        Self { fq, salt: chance.number(), flows, new, old, len: 0, bytes: Size::ZERO }
    }

    /// Returns the index of a flow's queue: a hash of the flow's number and a secret salt (`SplitMix64`). Without the
    /// salt, an attacker could choose flow numbers that share another flow's queue.
    fn place(&self, flow: u64) -> usize {
        let mut mixed = flow.wrapping_add(self.salt).wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % self.flows.len() as u64) as usize
    }

    fn is_too_long(&self, limit: QueueLimit) -> bool {
        match limit {
            QueueLimit::Packets(limit) => self.len > limit as usize,
            QueueLimit::Bytes(limit) => self.bytes > limit,
            QueueLimit::Time(_) => false,
        }
    }

    /// Drops half of the packets of the longest queue, from the head of that queue, but at most [`MOST_AT_ONCE`].
    fn shorten(&mut self, now: Instant<C>, told: &mut impl Told<P>) {
        let Some(longest) = self.flows.iter_mut().max_by_key(|flow| flow.queue.line().bytes()) else { return };
        for _ in 0..(longest.queue.line().len() / 2).clamp(1, MOST_AT_ONCE) {
            if let Some(head) = longest.queue.pop(now) {
                self.len -= 1;
                self.bytes = self.bytes - head.size;
                told.dropped(head.packet, Drop::Full);
            }
        }
    }

    /// Returns the index of the next queue to serve, and whether it is in the list of new queues. A queue that has used
    /// up its credits is moved to the end of the list of old queues.
    fn turn(&mut self) -> Option<(usize, bool)> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let at = *list.front()?;
            let flow = self.flows.get_mut(at)?;
            if flow.credits > 0 {
                return Some((at, is_new));
            }
            list.pop_front();
            flow.credits += self.fq.quantum.as_bytes() as i64;
            flow.list = List::Old;
            self.old.push_back(at);
        }
    }

    /// Handles a queue that is empty when its turn comes. A new queue moves to the end of the list of old queues: if it
    /// were removed, its flow could come back as new and delay the other flows forever. An old queue is removed from
    /// its list.
    fn on_empty(&mut self, at: usize, is_new: bool) {
        let list = if is_new { &mut self.new } else { &mut self.old };
        list.pop_front();
        let stays = if is_new { List::Old } else { List::None };
        if is_new {
            self.old.push_back(at);
        }
        if let Some(flow) = self.flows.get_mut(at) {
            flow.list = stays;
        }
    }
}

/// Counts the packets that CoDel drops from a flow's queue.
struct Counting<'a, T> {
    told: &'a mut T,
    dropped: usize,
}

impl<P, T: Told<P>> Told<P> for Counting<'_, T> {
    fn dropped(&mut self, packet: P, why: Drop) {
        self.dropped += 1;
        self.told.dropped(packet, why);
    }

    fn marked(&mut self) {
        self.told.marked();
    }
}

impl<C, P: Queued> Aqm<C, P> for FlowQueues<C, P> {
    fn offer(&mut self, packet: Waiting<C, P>, room: Room, told: &mut impl Told<P>) {
        let (now, size, at) = (packet.arrived, packet.size, self.place(packet.packet.flow()));
        let Some(flow) = self.flows.get_mut(at) else { return told.dropped(packet.packet, Drop::Full) };
        flow.queue.push(packet);
        if flow.list == List::None {
            (flow.list, flow.credits) = (List::New, self.fq.quantum.as_bytes() as i64);
            self.new.push_back(at);
        }
        self.len += 1;
        self.bytes = self.bytes + size;
        if self.is_too_long(room.limit) && !room.at_once {
            self.shorten(now, told);
        }
    }

    fn take(&mut self, now: Instant<C>, told: &mut impl Told<P>) -> Option<Waiting<C, P>> {
        loop {
            let (at, is_new) = self.turn()?;
            let flow = self.flows.get_mut(at)?;
            let before = flow.queue.line().bytes();
            let mut counting = Counting { told: &mut *told, dropped: 0 };
            let taken = flow.queue.take(now, &mut counting);
            self.len -= counting.dropped + usize::from(taken.is_some());
            self.bytes = self.bytes - (before - flow.queue.line().bytes());
            let Some(packet) = taken else {
                self.on_empty(at, is_new);
                continue;
            };
            flow.credits -= packet.size.as_bytes() as i64;
            return Some(packet);
        }
    }

    fn len(&self) -> usize {
        self.len
    }

    fn waited_ns(&self, now: Instant<C>) -> u64 {
        self.flows.iter().fold(0, |sum, flow| sum.saturating_add(flow.queue.line().waited_ns(now)))
    }
}
