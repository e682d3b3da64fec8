use equipoise::units::{Instant, Rate, SenderClock, Span};

use super::payload::{Payload, PayloadQueue};
use crate::DropReason;

/// Packets of one further source that a session carries in addition to its own, such as an audio encoder next to a
/// video encoder. They have priority.
#[derive(Debug)]
pub(crate) struct FurtherSource {
    pub(crate) queue: PayloadQueue,
    /// The source, and when its last packet was received.
    source: Option<(u32, Instant<SenderClock>)>,
}

/// After this time of silence, another source may take the place: a restarted program draws a new SSRC.
const FORGOTTEN: Span = Span::from_secs(2);

impl FurtherSource {
    /// State without a source so far. Packets are dropped when they have been queued for longer than `patience`.
    pub(crate) fn new(patience: Span) -> Self {
        Self { queue: PayloadQueue::new(None, patience), source: None }
    }

    /// Queues a packet of the source `ssrc`; the first source seen becomes the further source.
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
