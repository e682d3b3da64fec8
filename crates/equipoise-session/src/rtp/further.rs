use equipoise::units::{Instant, Rate, SenderClock, Span};

use super::payload::{Payload, PayloadQueue};
use crate::DropReason;

/// The queued packets of one further RTP source, which a session carries in addition to its main source: for example an
/// audio encoder in addition to a video encoder. Packets of the further source are sent first.
#[derive(Debug)]
pub(crate) struct FurtherSource {
    pub(crate) queue: PayloadQueue,
    /// SSRC of the session's additional source, such as audio, and when its last packet was queued.
    source: Option<(u32, Instant<SenderClock>)>,
}

/// After this time without a packet of the further source, another source may replace the further source. This is
/// necessary because a restarted program chooses a new SSRC.
const FORGOTTEN: Span = Span::from_secs(2);

impl FurtherSource {
    /// Creates an empty queue for a further source, which is not known yet. Packets that have been queued for longer
    /// than `patience` are dropped.
    pub(crate) fn new(patience: Span) -> Self {
        Self { queue: PayloadQueue::new(None, patience), source: None }
    }

    /// Queues a packet of the source `ssrc`, which is not the session's main source. The first such source becomes the
    /// further source. After [`FORGOTTEN`] without a packet of the further source, another source may replace it.
    ///
    /// # Errors
    /// [`DropReason::Foreign`] if another source is the further source and must not be replaced yet; otherwise the same
    /// errors as [`PayloadQueue::offer`].
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

/// Returns the SSRC of an RTP packet; `None` if the packet is too short.
pub(crate) fn source_of(packet: &[u8]) -> Option<u32> {
    packet.get(8..12)?.try_into().ok().map(u32::from_be_bytes)
}
