use std::collections::VecDeque;

use equipoise::units::{Size, Span};
use equipoise_session::{Fragment, Medium};

use super::delays::Delays;
use crate::result::FramesResult;
use crate::scenario::LiveChoice;

/// The data recorded so far about the frames of a flow's live media.
#[derive(Debug)]
pub(crate) struct LiveRecord {
    audio: Option<FramesRecord>,
    video: Option<FramesRecord>,
    /// The frame fragment in each of the most recent packets; the first entry belongs to packet number `first`.
    packets: VecDeque<Option<Fragment>>,
    first: u64,
}

/// The frame data in an arrived packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrived {
    /// The medium of the frame; `None` if the packet is not part of a frame.
    pub(crate) medium: Option<Medium>,
    /// Capture time of the frame that this packet completes; `None` if the packet completes no frame.
    pub(crate) completed: Option<Span>,
}

/// The data recorded so far about the frames of one medium.
#[derive(Debug)]
struct FramesRecord {
    warm_up: Span,
    deadline: Span,
    /// The most recent frames; the first entry is frame number `first`.
    frames: VecDeque<Frame>,
    first: u64,
    result: FramesResult,
    delays: Delays,
    waits: Delays,
    /// Capture time of the last frame.
    captured: Option<Span>,
    /// The time at which a possible freeze begins: the time when the last frame was completed, or the capture time of
    /// the first frame after a pause.
    moving: Option<Span>,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    captured: Span,
    sent: u32,
    received: u32,
    /// Whether all packets of the frame have been sent.
    is_whole: bool,
    /// Whether the frame is complete at the receiver, or was skipped by the sender.
    is_over: bool,
}

/// Shortest time without a completed frame that counts as a freeze, because a viewer notices it.
const FREEZE: Span = Span::from_millis(200);
/// Maximum number of packets and maximum number of frames that are kept. There are 65536 sequence numbers, so no two
/// kept packets have the same sequence number. A frame whose packets arrive after their entries were removed counts as
/// lost.
const MOST_PACKETS: usize = 1 << 16;
const MOST_FRAMES: usize = 1 << 13;

impl LiveRecord {
    /// Returns the record of a session that may send audio and video, with no warm-up.
    pub(crate) fn of_both() -> Self {
        let frames = || Some(FramesRecord::new(Span::ZERO, LiveChoice::DEADLINE));
        Self { audio: frames(), video: frames(), packets: VecDeque::new(), first: 0 }
    }

    pub(super) fn new(live: &LiveChoice, warm_up: Span) -> Self {
        let frames = |there: bool| there.then(|| FramesRecord::new(warm_up, live.deadline));
        Self {
            audio: frames(live.audio.is_some()),
            video: frames(live.video.is_some()),
            packets: VecDeque::new(),
            first: 0,
        }
    }

    pub(crate) fn on_captured(&mut self, at: Span, medium: Medium, size: Option<Size>) {
        if let Some(frames) = self.of(medium) {
            frames.on_captured(at, size.is_none());
        }
    }

    pub(crate) fn on_sent(&mut self, sequence: u64, waited: Span, fragment: Option<Fragment>) {
        if self.packets.is_empty() {
            self.first = sequence;
        }
        // One sender's packet numbers are consecutive. If a number is not consecutive, a new sender has started, so the
        // list of packets starts again.
        if sequence != self.first + self.packets.len() as u64 {
            self.packets.clear();
            self.first = sequence;
        }
        self.packets.push_back(fragment);
        if self.packets.len() > MOST_PACKETS {
            self.packets.pop_front();
            self.first += 1;
        }
        let Some(fragment) = fragment else { return };
        if let Some(frames) = self.of(fragment.medium) {
            frames.on_sent(waited, fragment);
        }
    }

    pub(crate) fn on_received(&mut self, at: Span, sequence: u64) -> Arrived {
        // Sender and receiver extend the sequence number from different starting points, so the two numbers share only
        // the 16 bits that the packet contains.
        let place = usize::from((sequence as u16).wrapping_sub(self.first as u16));
        let Some(fragment) = self.packets.get(place).copied().flatten() else { return Arrived::default() };
        let completed = self.of(fragment.medium).and_then(|frames| frames.on_received(at, fragment.frame));
        Arrived { medium: Some(fragment.medium), completed }
    }

    /// Returns the results of the video frames and of the audio frames, in a run of length `lasted`.
    pub(super) fn finish(self, lasted: Span) -> [Option<FramesResult>; 2] {
        [self.video, self.audio].map(|frames| frames.map(|frames| frames.finish(lasted)))
    }

    const fn of(&mut self, medium: Medium) -> Option<&mut FramesRecord> {
        match medium {
            Medium::Audio => self.audio.as_mut(),
            Medium::Video => self.video.as_mut(),
        }
    }
}

impl FramesRecord {
    fn new(warm_up: Span, deadline: Span) -> Self {
        Self {
            warm_up,
            deadline,
            frames: VecDeque::new(),
            first: 0,
            result: FramesResult { deadline_s: deadline.as_secs_f64(), ..FramesResult::default() },
            delays: Delays::default(),
            waits: Delays::default(),
            captured: None,
            moving: None,
        }
    }

    fn on_captured(&mut self, at: Span, is_skipped: bool) {
        // A time of at least `FREEZE` without captured frames is a pause. A pause has no frames to show, so the time
        // before the first frame after a pause is not a freeze.
        if self.captured.is_none_or(|before| at - before >= FREEZE) {
            self.moving = self.moving.max(Some(at));
        }
        self.captured = Some(at);
        if at >= self.warm_up {
            self.result.captured += 1;
            self.result.skipped += u64::from(is_skipped);
        }
        self.frames.push_back(Frame { captured: at, sent: 0, received: 0, is_whole: false, is_over: is_skipped });
        let is_done = |frame: &Frame| frame.is_over;
        while self.frames.len() > MOST_FRAMES || self.frames.front().is_some_and(is_done) {
            let Some(frame) = self.frames.pop_front() else { break };
            self.first += 1;
            self.result.lost += u64::from(!frame.is_over && frame.captured >= self.warm_up);
        }
    }

    fn on_sent(&mut self, waited: Span, fragment: Fragment) {
        let settled = self.warm_up;
        let Some(frame) = self.frame(fragment.frame) else { return };
        frame.sent += 1;
        frame.is_whole |= fragment.is_last;
        if frame.captured >= settled {
            self.waits.push(waited);
        }
    }

    /// Returns the capture time of frame `number` if the packet that arrived completes this frame.
    fn on_received(&mut self, at: Span, number: u64) -> Option<Span> {
        let frame = self.frame(number)?;
        frame.received += 1;
        frame.is_over = frame.is_whole && frame.received == frame.sent;
        let Frame { captured, is_over, .. } = *frame;
        if !is_over {
            return None;
        }
        self.freeze_until(at);
        self.moving = self.moving.max(Some(at));
        if captured >= self.warm_up {
            self.delays.push(at - captured);
            self.result.late += u64::from(at - captured > self.deadline);
        }
        Some(captured)
    }

    /// Records a freeze that ends at the time `at`, if the time without a completed frame was long enough.
    fn freeze_until(&mut self, at: Span) {
        let Some(since) = self.moving.map(|since| since.max(self.warm_up)) else { return };
        let stood = at - since;
        if stood >= FREEZE {
            self.result.freezes += 1;
            self.result.frozen_s += stood.as_secs_f64();
            self.result.longest_freeze_s = self.result.longest_freeze_s.max(stood.as_secs_f64());
        }
    }

    fn frame(&mut self, number: u64) -> Option<&mut Frame> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.frames.get_mut(place).filter(|frame| !frame.is_over)
    }

    fn finish(mut self, lasted: Span) -> FramesResult {
        if let Some(last) = self.captured {
            self.freeze_until(last);
        }
        let counts = |frame: &&Frame| {
            !frame.is_over && frame.captured >= self.warm_up && frame.captured + self.deadline <= lasted
        };
        let lost = self.result.lost + self.frames.iter().filter(counts).count() as u64;
        FramesResult { lost, delay: self.delays.result(), sender_wait: self.waits.result(), ..self.result }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Span = Span::from_millis(400);

    fn record(warm_up: i64) -> LiveRecord {
        let live = LiveChoice { video: None, audio: None, pacing: 1.0, skip_after: None, deadline: DEADLINE };
        let mut record = LiveRecord::new(&live, Span::from_millis(warm_up));
        record.video = Some(FramesRecord::new(Span::from_millis(warm_up), DEADLINE));
        record
    }

    fn at(millis: i64) -> Span {
        Span::from_millis(millis)
    }

    /// Captures frame `number` at `millis` and immediately sends it in two packets.
    fn frame(record: &mut LiveRecord, number: u64, millis: i64) {
        record.on_captured(at(millis), Medium::Video, Some(Size::from_bytes(2000)));
        for part in 0..2 {
            let fragment = Fragment { medium: Medium::Video, frame: number, is_last: part == 1 };
            record.on_sent(number * 2 + part, Span::ZERO, Some(fragment));
        }
    }

    fn video(record: LiveRecord, lasted: i64) -> FramesResult {
        record.finish(at(lasted))[0].expect("a video")
    }

    #[test]
    fn a_frame_is_complete_when_its_last_packet_has_come_in_whatever_order() {
        let mut record = record(0);
        frame(&mut record, 0, 0);
        frame(&mut record, 1, 40);
        for (packet, millis) in [(1, 50), (3, 90), (0, 100), (2, 540)] {
            record.on_received(at(millis), packet);
        }
        let result = video(record, 1000);
        assert_eq!((result.captured, result.lost, result.late), (2, 0, 1), "the second takes 500 ms");
        let (mean, most) = (result.delay.mean_s.expect("two"), result.delay.max_s.expect("two"));
        assert!((mean - 0.3).abs() < 1e-9 && (most - 0.5).abs() < 1e-3, "{mean} {most}");
    }

    #[test]
    fn what_never_comes_is_lost_unless_the_run_ends_before_its_time() {
        let mut record = record(0);
        for number in 0..4 {
            frame(&mut record, number, 200 * number as i64);
        }
        for packet in [0, 1, 2, 4, 5] {
            record.on_received(at(500), packet);
        }
        assert_eq!(video(record, 950).lost, 1, "of frames 1 and 3 the latter has until 1 s");
    }

    #[test]
    fn pictures_freeze_while_no_frame_becomes_complete_but_not_in_a_pause() {
        let mut record = record(100);
        for number in 0..20 {
            frame(&mut record, number, 40 * number as i64);
        }
        let deliver = |record: &mut LiveRecord, number: u64, millis: i64| {
            record.on_received(at(millis), number * 2);
            record.on_received(at(millis), number * 2 + 1);
        };
        // Frames arrive in time until 400 ms, and the next frame arrives at 700 ms: a freeze of 300 ms.
        (0..10).for_each(|number| deliver(&mut record, number, 40 * number as i64 + 40));
        (10..20).for_each(|number| deliver(&mut record, number, 40 * number as i64 + 300));
        // The pause of more than two seconds is not a freeze. The first frame after the pause arrives 250 ms after its
        // capture. This is a freeze of 250 ms.
        frame(&mut record, 20, 3000);
        deliver(&mut record, 20, 3250);
        let result = video(record, 4000);
        assert_eq!(result.freezes, 2);
        assert!((result.frozen_s - 0.55).abs() < 1e-9 && (result.longest_freeze_s - 0.3).abs() < 1e-9, "{result:?}");
    }

    #[test]
    fn a_run_that_ends_in_a_freeze_says_so() {
        let mut record = record(0);
        for number in 0..50 {
            frame(&mut record, number, 40 * number as i64);
        }
        record.on_received(at(10), 0);
        record.on_received(at(10), 1);
        let result = video(record, 2000);
        assert_eq!((result.freezes, result.lost), (1, 40), "those captured until 1.6 s, but the first");
        assert!((result.frozen_s - 1.95).abs() < 1e-9);
    }

    #[test]
    fn the_warm_up_is_left_out_and_skipped_frames_are_counted() {
        let mut record = record(100);
        frame(&mut record, 0, 0);
        record.on_captured(at(120), Medium::Video, None);
        frame(&mut record, 2, 160);
        let result = video(record, 2000);
        assert_eq!((result.captured, result.skipped, result.lost), (2, 1, 1));
    }
}
