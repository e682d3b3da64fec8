use equipoise::units::{Instant, Rate, SenderClock, Span};

use super::payload::{Payload, PayloadQueue};
use crate::DropReason;

/// Packets of one further source that a session carries beside its own: an audio encoder's beside a video encoder's. They go first.
#[derive(Debug)]
pub(crate) struct FurtherSource {
    pub(crate) queue: PayloadQueue,
    /// The source, and when it was last heard of.
    source: Option<(u32, Instant<SenderClock>)>,
}

/// A source that was silent for so long makes room for another one: a program that was started again draws another.
const FORGOTTEN: Span = Span::from_secs(2);

impl FurtherSource {
    /// No source yet, whose packets will be given up when they have waited for longer than `patience`.
    pub(crate) fn new(patience: Span) -> Self {
        Self { queue: PayloadQueue::new(None, patience), source: None }
    }

    /// Puts a packet of the source `ssrc` behind what waits; the first source that is heard of is the one.
    ///
    /// # Errors
    /// As [`PayloadQueue::offer`].
    pub(crate) fn offer(
        &mut self,
        now: Instant<SenderClock>,
        packet: &[u8],
        (ssrc, rate): (u32, Rate),
    ) -> Result<(), DropReason> {
        if self.source.is_some_and(|(known, heard)| known != ssrc && now - heard < FORGOTTEN) {
            return Err(DropReason::Foreign);
        }
        if self.source.is_some_and(|(known, _)| known != ssrc) {
            self.queue.forget_numbers();
        }
        self.queue.offer(now, (packet, false), Payload::Rtp, (ssrc, rate))?;
        self.source = Some((ssrc, now));
        Ok(())
    }
}

/// The source of an RTP packet.
pub(crate) fn source_of(packet: &[u8]) -> Option<u32> {
    packet.get(8..12)?.try_into().ok().map(u32::from_be_bytes)
}
