use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::tpba::Period;
use equipoise::units::{Instant, ReceiverClock, Span};
use equipoise_session::DropReason;

/// Merges the ADUs of both transports in the order of their numbers.
///
/// Each transport delivers its own ADUs in order: TCP all of them, RTP those that arrived. So if an ADU from each
/// waits, the lower one is next, whatever is missing before it. If an ADU from one transport waits alone, the other may
/// still deliver earlier ones. An ADU from RTP waits for all TCP ADUs before its run. An ADU from TCP waits for earlier
/// RTP ADUs, but only for a limited time.
#[derive(Debug)]
pub(super) struct Order {
    /// How long to wait for RTP's ADUs.
    hold: Span,
    most: usize,
    /// The number to be delivered next.
    next: u64,
    /// From RTP, in order.
    early: VecDeque<Early>,
    /// From TCP, with the time at which its wait ends.
    held: Option<(u64, Instant<ReceiverClock>, Vec<u8>)>,
    /// Whether TCP has ended.
    tcp_is_over: bool,
    /// Ready to be delivered.
    ready: VecDeque<Ready>,
    /// Bytes of all ADUs kept here.
    kept: usize,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Early {
    number: u64,
    /// The first ADU of its run over RTP.
    since: u64,
    data: Vec<u8>,
}

/// An ADU to be delivered.
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
    /// Memory of an ADU in addition to its bytes, so that the number of empty ones is bounded, too.
    const OVERHEAD: usize = 64;
    /// No honest sender is this far ahead of the delivered ADUs.
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

    /// An empty buffer.
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
    /// If it is not accepted, the reason and the ADU's buffer.
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

    /// Adds an ADU from TCP; one must be [wanted](Self::wants_tcp).
    ///
    /// # Errors
    /// The ADU's buffer, if an ADU with its number or a higher one was already delivered.
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

    /// When the wait of the held ADU ends.
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

    /// Makes all ADUs ready.
    pub(super) fn flush(&mut self) {
        self.end_tcp();
        self.settle(Instant::MAX);
    }

    /// The next ADU for the application.
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
            // The other transport's ADU of this number was delivered while this one waited.
            self.kept -= data.len() + Self::OVERHEAD;
            return self.recycle(data);
        };
        self.next = number.saturating_add(1);
        self.ready.push_back(Ready { number, missing, over, data });
    }
}
