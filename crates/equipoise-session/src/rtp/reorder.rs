use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use super::payload::Payload;
use crate::DropReason;
use crate::wire::relay;
use equipoise::units::{Instant, ReceiverClock, Span};

/// How received payload is put into order and delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReorderConfig {
    /// How long to wait for a missing packet before the packets after it are delivered.
    pub hold: Span,
    /// Maximum number of bytes that are buffered while a packet is missing. Above this, the receiver stops waiting for
    /// the packet.
    pub most: usize,
    /// Whether payload is delivered in sending order. Otherwise it is delivered on arrival, for an application that
    /// reorders packets itself.
    pub in_order: bool,
}

impl Default for ReorderConfig {
    /// Waits for 100 ms and buffers at most 256 KiB. Our choice: a session should tolerate reordering by 50 ms, and the
    /// wait is twice as long.
    fn default() -> Self {
        Self { hold: Span::from_millis(100), most: 256 << 10, in_order: true }
    }
}

/// A media packet that arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Came<'a> {
    /// The packet's sequence number, extended beyond 16 bits.
    pub(crate) sequence: u64,
    pub(crate) payload: &'a [u8],
    /// The whole datagram.
    pub(crate) datagram: &'a [u8],
}

/// When the payload of a packet is delivered: in sending order, or on arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    InOrder,
    AtOnce,
}

/// Minimum size, in bytes, that an entry adds to the total size of the buffer. Since the total size is limited, the
/// number of entries without payload is limited, too.
const KEPT_PLACE: usize = 64;

/// Returns the size, in bytes, that an entry adds to the total size of the buffer.
fn weight(payload: Option<&[u8]>) -> usize {
    payload.map_or(0, <[u8]>::len).max(KEPT_PLACE)
}

/// A receiver's buffer that puts payload into the order of sequence numbers.
#[derive(Debug)]
pub(crate) struct ReorderBuffer {
    config: ReorderConfig,
    /// The next sequence number to deliver; `None` at the start, because the first packet that arrives need not be the
    /// first packet that was sent.
    next: Option<u64>,
    /// Arrival time and payload of the packets after a missing packet, by sequence number. The payload is `None` if it
    /// was delivered on arrival; then the entry only records that the packet is not missing.
    early: BTreeMap<u64, (Instant<ReceiverClock>, Option<Vec<u8>>)>,
    /// Total size of the entries of `early`, in bytes.
    held: usize,
    /// Number of packets that are missing before the next payload.
    missing: u64,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
    /// Payloads that are ready to be delivered, in order. The number is the number of missing packets before the
    /// payload.
    ready: VecDeque<(u64, Vec<u8>)>,
    /// The payload that was delivered last.
    given: Vec<u8>,
}

impl ReorderBuffer {
    /// Maximum number of buffers kept for reuse.
    const SPARE: usize = 64;

    pub(crate) const fn new(config: ReorderConfig) -> Self {
        Self {
            config,
            next: None,
            early: BTreeMap::new(),
            held: 0,
            missing: 0,
            spare: Vec::new(),
            ready: VecDeque::new(),
            given: Vec::new(),
        }
    }

    /// Processes a media packet. `kind` is the session's kind of payload. Missing packets delay only packets of the
    /// session's main source. A packet of any other source is delivered on arrival.
    ///
    /// # Errors
    /// [`DropReason::Late`] if a packet with a higher number was already delivered, or if the packet is a duplicate.
    pub(crate) fn play(
        &mut self,
        now: Instant<ReceiverClock>,
        kind: Payload,
        Came { sequence, payload, datagram }: Came<'_>,
    ) -> Result<(), DropReason> {
        let in_time = match kind {
            Payload::Generated => true,
            Payload::Stream => self.push(now, sequence, |out| {
                out.extend_from_slice(payload);
                Place::InOrder
            }),
            Payload::Rtp => self.push(now, sequence, |out| {
                // The datagram was parsed as RTP, so removing our extensions cannot fail.
                let _ = relay::unstamp(datagram, out);
                if out.get(8..12) == datagram.get(8..12) { Place::InOrder } else { Place::AtOnce }
            }),
        };
        if in_time { Ok(()) } else { Err(DropReason::Late) }
    }

    /// Adds a packet. Returns false if the packet is a duplicate, or if a packet with a higher number was already
    /// delivered. Without [`in_order`](ReorderConfig::in_order), each packet is delivered on arrival, and the function
    /// always returns true.
    fn push(&mut self, now: Instant<ReceiverClock>, sequence: u64, write: impl FnOnce(&mut Vec<u8>) -> Place) -> bool {
        if !self.config.in_order {
            let mut payload = self.spare.pop().unwrap_or_default();
            payload.clear();
            write(&mut payload);
            self.ready.push_back((0, payload));
            return true;
        }
        if self.next.is_some_and(|next| sequence < next) || self.early.contains_key(&sequence) {
            return false;
        }
        let mut payload = self.spare.pop().unwrap_or_default();
        payload.clear();
        match write(&mut payload) {
            Place::InOrder => {
                self.held += weight(Some(&payload));
                self.early.insert(sequence, (now, Some(payload)));
            }
            Place::AtOnce => {
                self.held += weight(None);
                self.ready.push_back((0, payload));
                self.early.insert(sequence, (now, None));
            }
        }
        self.release(now);
        true
    }

    /// Prepares for a sender that restarts with other packet numbers: releases all buffered packets, and forgets the
    /// next number to deliver. Therefore, no packets count as missing between the old and the new numbers.
    pub(crate) fn begin_anew(&mut self) {
        self.flush();
        self.next = None;
    }

    /// Returns when to stop waiting for a missing packet; `None` if the buffer is empty.
    pub(crate) fn due(&self) -> Option<Instant<ReceiverClock>> {
        let came = if self.next.is_some() {
            self.early.values().map(|(came, _)| *came).next()
        } else {
            self.early.values().map(|(came, _)| *came).min()
        };
        came.map(|came| came + self.config.hold)
    }

    /// Releases packets for delivery: packets that are in order, packets that have waited long enough, and the earliest
    /// packets while the buffer is above its maximum size.
    pub(crate) fn release(&mut self, now: Instant<ReceiverClock>) {
        while let Some((&sequence, _)) = self.early.first_key_value() {
            let waits = self.next != Some(sequence) && self.due().is_some_and(|due| due > now);
            if waits && self.held <= self.config.most {
                break;
            }
            self.pop_first();
        }
    }

    /// Releases all buffered packets for delivery, without waiting for missing packets.
    pub(crate) fn flush(&mut self) {
        while !self.early.is_empty() {
            self.pop_first();
        }
    }

    /// Whether payload is ready to be delivered.
    pub(crate) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns the number of packets that are missing before the next payload, and the payload.
    pub(crate) fn pop(&mut self) -> Option<(u64, &[u8])> {
        let (missing, payload) = self.ready.pop_front()?;
        let before = core::mem::replace(&mut self.given, payload);
        if self.spare.len() < Self::SPARE {
            self.spare.push(before);
        }
        Some((missing, &self.given))
    }

    fn pop_first(&mut self) {
        if let Some((sequence, (_, payload))) = self.early.pop_first() {
            let next = self.next.unwrap_or(sequence);
            self.missing = self.missing.saturating_add(sequence.saturating_sub(next));
            self.next = Some(sequence.saturating_add(1));
            self.held -= weight(payload.as_deref());
            if let Some(payload) = payload {
                self.ready.push_back((core::mem::take(&mut self.missing), payload));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: i64) -> Instant<ReceiverClock> {
        Instant::ZERO + Span::from_millis(millis)
    }

    /// Creates a buffer that waits for 50 ms for a missing packet, and has delivered everything before packet 10.
    fn reorder() -> ReorderBuffer {
        let mut reorder =
            ReorderBuffer::new(ReorderConfig { hold: Span::from_millis(50), most: 100 * KEPT_PLACE, in_order: true });
        reorder.next = Some(10);
        reorder
    }

    fn push(reorder: &mut ReorderBuffer, millis: i64, sequence: u64) -> bool {
        reorder.push(at(millis), sequence, |out| {
            out.push(sequence as u8);
            Place::InOrder
        })
    }

    /// Returns two numbers for each delivered packet: the number of the packet, which is the first byte of its payload,
    /// and the number of packets that are missing before it.
    fn drain(reorder: &mut ReorderBuffer) -> Vec<(u8, u64)> {
        core::iter::from_fn(|| reorder.pop().map(|(missing, payload)| (payload[0], missing))).collect()
    }

    #[test]
    fn the_first_packet_to_come_need_not_be_the_first() {
        let mut reorder = reorder();
        reorder.next = None;
        push(&mut reorder, 0, 11);
        push(&mut reorder, 20, 10);
        reorder.release(at(49));
        assert_eq!((drain(&mut reorder), reorder.due()), ([].into(), Some(at(50))));
        reorder.release(at(50));
        assert_eq!(drain(&mut reorder), [(10, 0), (11, 0)]);
    }

    #[test]
    fn what_comes_in_order_is_given_out_at_once_and_the_rest_when_the_gap_is_filled() {
        let mut reorder = reorder();
        push(&mut reorder, 0, 10);
        push(&mut reorder, 1, 12);
        assert_eq!((drain(&mut reorder), reorder.due()), ([(10, 0)].into(), Some(at(51))));
        push(&mut reorder, 2, 11);
        assert_eq!((drain(&mut reorder), reorder.due()), ([(11, 0), (12, 0)].into(), None));
    }

    #[test]
    fn a_gap_is_waited_for_and_then_passed_over_and_late_packets_are_refused() {
        let mut reorder = reorder();
        push(&mut reorder, 0, 10);
        push(&mut reorder, 5, 13);
        drain(&mut reorder);
        reorder.release(at(54));
        assert_eq!(drain(&mut reorder), []);
        reorder.release(at(55));
        assert_eq!(drain(&mut reorder), [(13, 2)]);
        assert!(!push(&mut reorder, 56, 11), "13 was given out");
        assert!(push(&mut reorder, 56, 14));
    }

    #[test]
    fn what_has_an_order_of_its_own_is_given_out_at_once_and_keeps_its_place() {
        let mut reorder = reorder();
        let apart = |reorder: &mut ReorderBuffer, millis, sequence: u64| {
            reorder.push(at(millis), sequence, |out| {
                out.push(sequence as u8);
                Place::AtOnce
            })
        };
        push(&mut reorder, 0, 10);
        assert!(apart(&mut reorder, 5, 12));
        assert_eq!(drain(&mut reorder), [(10, 0), (12, 0)], "11 is missing, and none of its");
        assert!(push(&mut reorder, 7, 13) && !apart(&mut reorder, 8, 12), "it came before");
        assert_eq!(drain(&mut reorder), []);
        reorder.release(at(55));
        assert_eq!((drain(&mut reorder), reorder.held), ([(13, 1)].into(), 0));
    }

    #[test]
    fn memory_is_bounded_and_the_end_gives_out_all() {
        let mut reorder = reorder();
        push(&mut reorder, 0, 10);
        for sequence in 12..200 {
            push(&mut reorder, 1, sequence);
        }
        assert_eq!((reorder.held, drain(&mut reorder).len()), (0, 189), "beyond the bound the gap is passed over");
        push(&mut reorder, 2, 202);
        reorder.flush();
        assert_eq!(drain(&mut reorder), [(202, 2)]);
    }

    proptest! {
        /// For any order of arrival, packets are delivered in the order of their numbers, each once, and no packet that
        /// arrived in time is dropped.
        #[test]
        fn the_order_is_that_of_the_numbers(shifts in proptest::collection::vec(0u64..20, 1..200)) {
            let mut arrivals: Vec<_> = shifts.iter().enumerate().map(|(number, shift)| (number as u64 + shift, number as u64)).collect();
            arrivals.sort_unstable();
            let mut reorder = ReorderBuffer::new(ReorderConfig { hold: Span::from_millis(50), most: 1 << 20, in_order: true });
            let mut found = Vec::new();
            for (time, number) in arrivals {
                prop_assert!(push(&mut reorder, time as i64, number), "{number} came within 20 ms");
                found.extend(drain(&mut reorder));
            }
            reorder.flush();
            found.extend(drain(&mut reorder));
            let expected: Vec<_> = (0..shifts.len()).map(|number| (number as u8, 0)).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
