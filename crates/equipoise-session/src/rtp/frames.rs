use alloc::collections::VecDeque;

use crate::{Event, Fragment, Medium};
use equipoise::control::QueuedFrame;
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};
use equipoise_path::video::Encoder;

use super::outbox::Outbox;
use super::stream::Generated;

/// Live media: the frames of encoders, which are queued at the sender until the pacer releases their packets.
///
/// Lost packets are not retransmitted. A packet carries a part of one frame; its RTP timestamp is the capture time of
/// the frame, and the last packet of a frame has the marker bit (RFC 3551, Sec. 5, for video). Audio has priority: an
/// audio packet waits at most for the video packet that is being sent. Audio packets have their own payload type but
/// share sequence numbers with the video, so that one report covers both.
#[derive(Clone, Debug)]
pub struct LiveMedia {
    /// The video encoder. Its target is the session's rate minus the rate of packet headers and, if the audio rate is
    /// constant, the audio rate.
    pub video: Option<Encoder>,
    /// The audio encoder, usually with a constant rate.
    pub audio: Option<Encoder>,
    /// Pacing rate as a multiple of the session's rate, at least 1. The pacing rate should be higher than the session's
    /// rate, because a frame becomes available as a whole and should be sent before the next frame is captured. If the
    /// controller sets a pacing rate, that rate is used instead. In both cases, the delivery rate in the reports limits
    /// the pacing rate.
    pub pacing: f64,
    /// A video frame is skipped if the data already queued would take longer than this to send; with `None`, no frame
    /// is skipped for this reason.
    pub skip_after: Option<Span>,
}

impl LiveMedia {
    /// The usual value of [`pacing`](Self::pacing). Our choice, and also the value of `SCReAM` v2: a frame of
    /// average size is sent within two thirds of the time until the next frame.
    pub const PACING: f64 = 1.5;
}

/// The encoders of a session and the queued frames.
#[derive(Clone, Debug)]
pub(super) struct FrameQueue {
    media: LiveMedia,
    start: Instant<SenderClock>,
    audio: Waiting,
    video: Waiting,
}

/// Queued frames of one medium, oldest first.
#[derive(Clone, Debug)]
struct Waiting {
    medium: Medium,
    frames: VecDeque<Frame>,
    /// Bytes of the queued frames that are not sent yet.
    bytes: u64,
    /// Number of frames captured so far, including skipped ones.
    captured: u64,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    number: u64,
    captured: Instant<SenderClock>,
    /// Bytes of the frame that are not sent yet.
    left: u64,
}

/// What the encoders need to know about the session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// The rate available for media, counting whole IP packets.
    pub(super) rate: Rate,
    /// Size of a full IP packet, and size of the media in it.
    pub(super) packet: Size,
    pub(super) media: Size,
}

/// Maximum number of queued frames of a medium; further frames are skipped. The limit bounds memory. Our choice: about
/// half a minute of video. A frame that has waited longer is useless.
const MOST_FRAMES: usize = 1024;

impl FrameQueue {
    pub(super) fn new(media: LiveMedia, start: Instant<SenderClock>) -> Self {
        let waiting = |medium| Waiting { medium, frames: VecDeque::new(), bytes: 0, captured: 0 };
        Self { media, start, audio: waiting(Medium::Audio), video: waiting(Medium::Video) }
    }

    /// Returns the pacing rate as a multiple of the session's rate.
    pub(super) const fn pacing(&self) -> f64 {
        self.media.pacing.max(1.0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.audio.frames.is_empty() && self.video.frames.is_empty()
    }

    /// Returns when the next frame is captured; `None` after the last frame.
    pub(super) fn next_at(&self) -> Option<Instant<SenderClock>> {
        let encoders = [&self.media.audio, &self.media.video].into_iter().flatten();
        encoders.filter_map(Encoder::next_frame).min().map(|at| self.start + at)
    }

    /// Captures the frames that are due by `now`. Calls `tell` for each video frame that is queued. If the session has
    /// no video, calls `tell` for each audio frame that is queued.
    pub(super) fn capture(
        &mut self,
        now: Instant<SenderClock>,
        room: Room,
        tell: &mut dyn FnMut(QueuedFrame),
        outbox: &mut Outbox,
    ) {
        let target = self.video_target(room);
        let patience = self.media.skip_after.unwrap_or(Span::MAX);
        let is_stuck = |waiting: u64| Size::from_bytes(waiting).over(patience).is_some_and(|rate| rate > room.rate);
        while let Some((encoder, at)) = due(&mut self.media.audio, self.start, now) {
            let size = encoder.encode(room.rate);
            if let (Some(size), None) = (size, &self.media.video) {
                tell(self.audio.before(size, at));
            }
            self.audio.take(size, at, outbox);
        }
        while let Some((encoder, at)) = due(&mut self.media.video, self.start, now) {
            if is_stuck(self.audio.bytes + self.video.bytes) || self.video.frames.len() >= MOST_FRAMES {
                encoder.skip();
                self.video.take(None, at, outbox);
            } else {
                let size = encoder.encode(target);
                if let Some(size) = size {
                    tell(self.video.before(size, at));
                }
                self.video.take(size, at, outbox);
            }
        }
    }

    /// Skips the frames that are due by `now`.
    pub(super) fn pass_over(&mut self, now: Instant<SenderClock>) {
        for encoder in [&mut self.media.audio, &mut self.media.video] {
            while let Some((encoder, _)) = due(encoder, self.start, now) {
                encoder.skip();
            }
        }
    }

    /// Returns the content of the next packet, with at most `most` bytes of media.
    pub(super) fn next(&mut self, most: usize) -> Option<Generated> {
        self.audio.next(most).or_else(|| self.video.next(most))
    }

    /// Returns the rate for video frames, without audio and packet headers. The last packet of a frame is, on average,
    /// half full. Therefore half a packet header per frame is subtracted in addition to the headers of full packets.
    fn video_target(&self, room: Room) -> Rate {
        let header = (room.packet - room.media).as_bits() as f64;
        let frames_per_second = |encoder: &Encoder| Some(1.0 / encoder.frame_interval()?.as_secs_f64());
        let audio = self
            .media
            .audio
            .as_ref()
            .and_then(|audio| Some(audio.constant_rate()?.as_bps_f64() + header * frames_per_second(audio)?));
        let lost = self.media.video.as_ref().and_then(frames_per_second).unwrap_or(0.0) * header / 2.0;
        let share = room.media.as_bytes() as f64 / room.packet.as_bytes().max(1) as f64;
        let left = (room.rate.as_bps_f64() - audio.unwrap_or(0.0) - lost).max(0.0) * share;
        Rate::from_bps_f64(left).unwrap_or(Rate::ZERO)
    }
}

impl Waiting {
    /// Describes a frame that was captured at `at`: its size, the amount of data that is queued before it, and how long
    /// ago the oldest queued frame was captured.
    fn before(&self, size: Size, at: Instant<SenderClock>) -> QueuedFrame {
        let waited = self.frames.front().map_or(Span::ZERO, |oldest| at - oldest.captured);
        QueuedFrame::new(size, Size::from_bytes(self.bytes), waited)
    }

    fn take(&mut self, size: Option<Size>, at: Instant<SenderClock>, outbox: &mut Outbox) {
        let (medium, number) = (self.medium, self.captured);
        self.captured += 1;
        let size = size.filter(|_| self.frames.len() < MOST_FRAMES);
        outbox.event(Event::FrameCaptured { medium, number, size });
        if let Some(size) = size {
            let left = size.as_bytes().max(1);
            self.bytes = self.bytes.saturating_add(left);
            self.frames.push_back(Frame { number, captured: at, left });
        }
    }

    fn next(&mut self, most: usize) -> Option<Generated> {
        let frame = self.frames.front_mut()?;
        let bytes = frame.left.min(most.max(1) as u64);
        frame.left -= bytes;
        self.bytes -= bytes;
        let Frame { number, captured, left } = *frame;
        if left == 0 {
            self.frames.pop_front();
        }
        let fragment = Fragment { medium: self.medium, frame: number, is_last: left == 0 };
        Some(Generated { media: bytes as usize, captured, fragment: Some(fragment) })
    }
}

/// Returns the encoder and the capture time of its next frame, if this time is at or before `now`.
fn due(
    encoder: &mut Option<Encoder>,
    start: Instant<SenderClock>,
    now: Instant<SenderClock>,
) -> Option<(&mut Encoder, Instant<SenderClock>)> {
    let encoder = encoder.as_mut()?;
    let at = start + encoder.next_frame()?;
    (at <= now).then_some((encoder, at))
}
