use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::tpba::Period;
use equipoise::units::{Instant, ReceiverClock, Span};
use equipoise_session::DropReason;

/// Brings the ADUs of both transports into the order of their numbers.
///
/// Each transport brings its own in order: TCP all of its, RTP those that came. So of two that wait the lower is next,
/// whatever is missing before it. An ADU that waits alone has to know what the other transport still owes: TCP all before
/// the first of the run that an ADU over RTP belongs to; RTP those before one over TCP, which are waited for a while.
#[derive(Debug)]
pub(super) struct Order {
    /// How long RTP's ADUs are waited for.
    hold: Span,
    most: usize,
    /// The number to be given out next.
    next: u64,
    /// From RTP, in order.
    early: VecDeque<Early>,
    /// From TCP: when it is waited for no longer.
    held: Option<(u64, Instant<ReceiverClock>, Vec<u8>)>,
    /// TCP brings nothing more.
    tcp_is_over: bool,
    /// To be given out.
    ready: VecDeque<Ready>,
    /// Bytes of all that is kept.
    kept: usize,
    /// Buffers to use again.
    spare: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Early {
    number: u64,
    /// The first ADU of its run over RTP.
    since: u64,
    data: Vec<u8>,
}

/// An ADU to be given out.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) number: u64,
    pub(super) missing: u64,
    pub(super) over: Period,
    pub(super) data: Vec<u8>,
}

impl Order {
    /// Buffers that are kept for use again.
    const SPARE: usize = 16;
    /// What an ADU takes beside its bytes, so that empty ones are bounded, too.
    const OVERHEAD: usize = 64;
    /// No honest sender is this far ahead of what is given out.
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

    /// Takes a buffer back.
    pub(super) fn recycle(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() < Self::SPARE {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    /// Whether an ADU from TCP would be taken.
    pub(super) fn wants_tcp(&self) -> bool {
        self.held.is_none() && self.kept < self.most
    }

    /// An ADU came over RTP.
    ///
    /// # Errors
    /// The reason, and the ADU's buffer, where it is not taken.
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

    /// An ADU came over TCP, which is [wanted](Self::wants_tcp).
    ///
    /// # Errors
    /// The ADU's buffer, where another with its number or a higher one was given out.
    pub(super) fn push_tcp(&mut self, now: Instant<ReceiverClock>, number: u64, data: Vec<u8>) -> Result<(), Vec<u8>> {
        if number < self.next || self.held.is_some() {
            return Err(data);
        }
        self.kept += data.len() + Self::OVERHEAD;
        self.held = Some((number, now + self.hold, data));
        Ok(())
    }

    /// TCP brings nothing more.
    pub(super) const fn end_tcp(&mut self) {
        self.tcp_is_over = true;
    }

    /// When an ADU is waited for no longer.
    pub(super) fn due(&self) -> Option<Instant<ReceiverClock>> {
        self.held.as_ref().map(|(_, due, _)| *due)
    }

    /// Finds what may be given out at `now`.
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

    /// Gives out all there is.
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
            // The other transport's ADU of this number was given out while this one waited.
            self.kept -= data.len() + Self::OVERHEAD;
            return self.recycle(data);
        };
        self.next = number.saturating_add(1);
        self.ready.push_back(Ready { number, missing, over, data });
    }
}
