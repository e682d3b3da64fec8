//! Requests for key frames: from a receiver to its sender, and their processing at the sender.

use equipoise::units::{Instant, SenderClock, Span};

use super::outbox::Outbox;
use crate::wire::key_frames::{KeyFrameFeedback, KeyFrameRequest, encode_key_frame_request};
use crate::wire::rtcp::RtcpPacket;
use crate::{DropReason, Event};

/// Minimum time between two requests of a receiver. Our choice: a key frame takes the bits of some tenths of a second,
/// and needs a round trip to arrive. A request in the meantime is sent when this time has passed.
const SPACING: Span = Span::from_millis(300);
/// Minimum time between two requests that a sender accepts. Our choice: the network may bring two requests closer
/// together.
const LEAST: Span = Span::from_millis(100);

/// The key frame request of a receiver's application.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyFrameAsker<C> {
    wanted: Option<KeyFrameRequest>,
    last: Option<Instant<C>>,
    /// Number of the next full intra request.
    number: u8,
}

impl<C> KeyFrameAsker<C> {
    pub(crate) const fn new() -> Self {
        Self { wanted: None, last: None, number: 0 }
    }

    /// Records a request of the application; of two requests the stronger one counts.
    pub(crate) fn want(&mut self, request: KeyFrameRequest) {
        self.wanted = self.wanted.max(Some(request));
    }

    /// When a request is due; `None` for never.
    pub(crate) fn due(&self) -> Option<Instant<C>> {
        self.wanted?;
        Some(self.last.map_or(Instant::ZERO, |last| last + SPACING))
    }

    /// Sends the request that is due at `now`, if any, from `ssrc` to the source `media_ssrc`.
    pub(crate) fn ask(&mut self, now: Instant<C>, (ssrc, media_ssrc): (u32, u32), outbox: &mut Outbox) {
        if self.due().is_none_or(|due| now < due) {
            return;
        }
        let Some(request) = self.wanted.take() else { return };
        outbox.whole(|out| encode_key_frame_request(ssrc, media_ssrc, (request, self.number), out));
        outbox.event(Event::KeyFrameAsked(request));
        self.number = self.number.wrapping_add(u8::from(request == KeyFrameRequest::FullIntra));
        self.last = Some(now);
    }
}

/// The key frame requests at a sender.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyFrameTaker {
    last: Option<Instant<SenderClock>>,
    /// Number of the last full intra request.
    number: Option<u8>,
}

impl KeyFrameTaker {
    /// Processes a packet of a compound for the source `ssrc` at `now`. If it is a request, adds an event to `outbox`.
    ///
    /// # Errors
    /// [`DropReason::Malformed`]; [`DropReason::Foreign`] if it is not from the receiver or not for this source;
    /// [`DropReason::Duplicate`] for a repetition; [`DropReason::Full`] if it follows another request too soon.
    pub(crate) fn take(
        &mut self,
        now: Instant<SenderClock>,
        packet: &RtcpPacket<'_>,
        (ssrc, is_peer): (u32, impl Fn(u32) -> bool),
        outbox: &mut Outbox,
    ) -> Result<(), DropReason> {
        let Some(feedback) = KeyFrameFeedback::of(packet) else { return Ok(()) };
        let feedback = feedback.map_err(|_| DropReason::Malformed)?;
        let asked = feedback.asked().find(|asked| asked.media_ssrc == ssrc).filter(|_| is_peer(feedback.ssrc));
        let asked = asked.ok_or(DropReason::Foreign)?;
        if asked.number.is_some() && asked.number == self.number {
            return Err(DropReason::Duplicate);
        }
        if self.last.is_some_and(|last| now - last < LEAST) {
            return Err(DropReason::Full);
        }
        self.last = Some(now);
        self.number = asked.number.or(self.number);
        outbox.event(Event::KeyFrameWanted(asked.request));
        Ok(())
    }
}
