//! Requests for key frames: how a receiver sends them, and how a sender processes them.

use equipoise::units::{Instant, SenderClock, Span};

use super::outbox::Outbox;
use crate::wire::key_frames::{KeyFrameFeedback, KeyFrameRequest, encode_key_frame_request};
use crate::wire::rtcp::RtcpPacket;
use crate::{DropReason, Event};

/// Minimum time between two requests that a receiver sends. Our choice: a key frame arrives only after a round trip,
/// and is as large as some tenths of a second of video. A request that the application makes within this time is sent
/// when the time has passed.
const SPACING: Span = Span::from_millis(300);
/// Minimum time between two requests that a sender accepts. Our choice: less than the minimum time between two requests
/// of a receiver, because the delay of the network varies.
const LEAST: Span = Span::from_millis(100);

/// A receiver's state for the key frame requests of its application.
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

    /// Records a request of the application. If a weaker request waits to be sent, the stronger one replaces it.
    pub(crate) fn want(&mut self, request: KeyFrameRequest) {
        self.wanted = self.wanted.max(Some(request));
    }

    /// Returns when the application's request is due to be sent; `None` if there is no request.
    pub(crate) fn due(&self) -> Option<Instant<C>> {
        self.wanted?;
        Some(self.last.map_or(Instant::ZERO, |last| last + SPACING))
    }

    /// Sends the request that is due at `now`, if any. The request comes from the source `ssrc` and asks for a key
    /// frame of the source `media_ssrc`.
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

/// A sender's state for the key frame requests that it receives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyFrameTaker {
    last: Option<Instant<SenderClock>>,
    /// Number of the last full intra request.
    number: Option<u8>,
}

impl KeyFrameTaker {
    /// Processes one packet of an RTCP compound at `now`. If the packet requests a key frame from the source `ssrc`,
    /// adds an event to `outbox`.
    ///
    /// # Errors
    /// [`DropReason::Malformed`] if the request does not parse; [`DropReason::Foreign`] if it does not come from the
    /// receiver or is not for this source; [`DropReason::Duplicate`] if it repeats an earlier request;
    /// [`DropReason::Full`] if it follows another request too soon.
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
