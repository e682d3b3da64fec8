use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::tpba::Period;
use equipoise::units::{Instant, ReceiverClock, Span};
use equipoise_session::DropReason;

/// Merges the ADUs of both transports into the order of their numbers.
///
/// Each transport delivers ADUs in the order of their numbers. TCP delivers all of its ADUs. RTP delivers only those
/// that arrived. If an ADU from TCP and an ADU from RTP wait, neither transport will deliver an ADU whose number is
/// below both numbers. Therefore the ADU with the lower number is next, and all missing ADUs before this ADU are lost.
/// If ADUs of only one transport wait, the other transport may still deliver earlier ADUs. In this case, an ADU from
/// RTP waits until TCP has delivered all ADUs that precede the running period in which the RTP ADU was sent. An ADU
/// from TCP waits for earlier RTP ADUs for a limited time.
#[derive(Debug)]
pub(super) struct Order {
    /// Maximum time that an ADU from TCP waits for earlier ADUs from RTP.
    hold: Span,
    most: usize,
    /// The lowest ADU number that can be delivered next.
    next: u64,
    /// Waiting ADUs from RTP, in order.
    early: VecDeque<Early>,
    /// The waiting ADU from TCP: its number, the time at which its wait ends, and its bytes.
    held: Option<(u64, Instant<ReceiverClock>, Vec<u8>)>,
    /// Whether TCP has ended.
    tcp_is_over: bool,
    /// ADUs that are ready to be delivered.
    ready: VecDeque<Ready>,
    /// Total bytes of the waiting and the ready ADUs, with [`OVERHEAD`](Self::OVERHEAD) added for each.
    kept: usize,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Early {
    number: u64,
    /// Number of the first ADU of the running period in which this ADU was sent.
    since: u64,
    data: Vec<u8>,
}

/// An ADU that is ready to be delivered.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) number: u64,
    pub(super) missing: u64,
    pub(super) over: Period,
    pub(super) data: Vec<u8>,
}

impl Order {
    /// Maximum number of buffers kept for reuse.
    const SPARE: usize = 16;
    /// Number of bytes that are added to the size of each buffered ADU. Without this addition, the number of empty ADUs
    /// would not be limited.
    const OVERHEAD: usize = 64;
    /// Maximum difference between the number of an ADU from RTP and the next number to be delivered. A correct sender
    /// is never this far ahead.
    const FAR: u64 = 1 << 24;

    pub(super) const fn new(hold: Span, most: usize) -> Self {
        Self {
            hold,
            most,
            next: 0,
            early: VecDeque::new(),
            held: None,
            tcp_is_over: false,
            ready: VecDeque::new(),
            kept: 0,
            spare: Vec::new(),
        }
    }

    /// Returns an empty buffer.
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Keeps a buffer for reuse.
    pub(super) fn recycle(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() < Self::SPARE {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    /// Whether an ADU from TCP would be accepted.
    pub(super) fn wants_tcp(&self) -> bool {
        self.held.is_none() && self.kept < self.most
    }

    /// Adds an ADU from RTP.
    ///
    /// # Errors
    /// If the ADU is not accepted, returns the reason and the ADU's buffer.
    pub(super) fn push_rtp(&mut self, number: u64, since: u64, data: Vec<u8>) -> Result<(), (DropReason, Vec<u8>)> {
        let reason = if number < self.next || self.early.back().is_some_and(|last| last.number >= number) {
            DropReason::Late
        } else if number - self.next > Self::FAR || since > number {
            DropReason::Implausible
        } else if self.kept + data.len() > self.most {
            DropReason::Full
        } else {
            self.kept += data.len() + Self::OVERHEAD;
            self.early.push_back(Early { number, since, data });
            return Ok(());
        };
        Err((reason, data))
    }

    /// Adds an ADU from TCP. Call it only if [`wants_tcp`](Self::wants_tcp) is true.
    ///
    /// # Errors
    /// Returns the ADU's buffer if an ADU with this number or a higher one was already delivered.
    pub(super) fn push_tcp(&mut self, now: Instant<ReceiverClock>, number: u64, data: Vec<u8>) -> Result<(), Vec<u8>> {
        if number < self.next || self.held.is_some() {
            return Err(data);
        }
        self.kept += data.len() + Self::OVERHEAD;
        self.held = Some((number, now + self.hold, data));
        Ok(())
    }

    /// Records that TCP has ended.
    pub(super) const fn end_tcp(&mut self) {
        self.tcp_is_over = true;
    }

    /// Returns when the waiting ADU from TCP stops waiting; `None` if no ADU from TCP waits.
    pub(super) fn due(&self) -> Option<Instant<ReceiverClock>> {
        self.held.as_ref().map(|(_, due, _)| *due)
    }

    /// Moves the ADUs that can be delivered at `now` to the ready queue.
    pub(super) fn settle(&mut self, now: Instant<ReceiverClock>) {
        loop {
            let tcp = self.held.as_ref().map(|(number, due, _)| (*number, *due));
            let rtp = self.early.front().map(|early| (early.number, early.since));
            match (tcp, rtp) {
                (Some((tcp, _)), Some((rtp, _))) if tcp < rtp => self.give_tcp(),
                (Some(_), Some(_)) => self.give_rtp(),
                (Some((number, due)), None) if number <= self.next || now >= due => self.give_tcp(),
                (None, Some((_, since))) if since <= self.next || self.tcp_is_over => self.give_rtp(),
                _ => break,
            }
        }
    }

    /// Makes all waiting ADUs ready, because no further ADUs are expected.
    pub(super) fn flush(&mut self) {
        self.end_tcp();
        self.settle(Instant::MAX);
    }

    /// Returns the next ADU for the application.
    pub(super) fn pop(&mut self) -> Option<Ready> {
        let ready = self.ready.pop_front()?;
        self.kept -= ready.data.len() + Self::OVERHEAD;
        Some(ready)
    }

    fn give_tcp(&mut self) {
        if let Some((number, _, data)) = self.held.take() {
            self.give(number, Period::Probing, data);
        }
    }

    fn give_rtp(&mut self) {
        if let Some(Early { number, data, .. }) = self.early.pop_front() {
            self.give(number, Period::Running, data);
        }
    }

    fn give(&mut self, number: u64, over: Period, data: Vec<u8>) {
        let Some(missing) = number.checked_sub(self.next) else {
            // An ADU with this number or a higher one was delivered from the other transport while this ADU waited.
            self.kept -= data.len() + Self::OVERHEAD;
            return self.recycle(data);
        };
        self.next = number.saturating_add(1);
        self.ready.push_back(Ready { number, missing, over, data });
    }
}
