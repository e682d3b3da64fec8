//! Requests for key frames: a receiver's to its sender, and what a sender makes of them.

use equipoise::units::{Instant, SenderClock, Span};

use super::outbox::Outbox;
use crate::wire::key_frames::{KeyFrameFeedback, KeyFrameRequest, encode_key_frame_request};
use crate::wire::rtcp::RtcpPacket;
use crate::{DropReason, Event};

/// A receiver sends no two requests in less than this. Ours: a key frame is some tenths of a second's bits, and one that was asked for
/// needs a round trip to come. What is asked for meanwhile is asked for when the time has passed.
const SPACING: Span = Span::from_millis(300);
/// A sender takes no two requests in less than this. Ours: on the way two may come closer to each other than they left.
const LEAST: Span = Span::from_millis(100);

/// What a receiver's application wants of the encoder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyFrameAsker<C> {
    wanted: Option<KeyFrameRequest>,
    last: Option<Instant<C>>,
    /// Of the next full intra request.
    number: u8,
}

impl<C> KeyFrameAsker<C> {
    pub(crate) const fn new() -> Self {
        Self { wanted: None, last: None, number: 0 }
    }

    /// The application wants this; of two the one that asks for more counts.
    pub(crate) fn want(&mut self, request: KeyFrameRequest) {
        self.wanted = self.wanted.max(Some(request));
    }

    /// When there is something to send; `None` for nothing.
    pub(crate) fn due(&self) -> Option<Instant<C>> {
        self.wanted?;
        Some(self.last.map_or(Instant::ZERO, |last| last + SPACING))
    }

    /// Has `ssrc` ask the source `media_ssrc` for what is due at `now`, if something is.
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

/// What a sender has been asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyFrameTaker {
    last: Option<Instant<SenderClock>>,
    /// Of the last full intra request.
    number: Option<u8>,
}

impl KeyFrameTaker {
    /// Takes a packet of a compound that came to the source `ssrc` at `now` and tells of the request, if it is one.
    ///
    /// # Errors
    /// [`DropReason::Malformed`]; [`DropReason::Foreign`] if it is from somebody else than the receiver or to nobody here;
    /// [`DropReason::Duplicate`] of a repetition; [`DropReason::Full`] so soon behind another one.
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
