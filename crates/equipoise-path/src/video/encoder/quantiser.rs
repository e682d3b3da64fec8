use alloc::collections::VecDeque;

use super::super::Video;
use equipoise::units::{Rate, Size, Span};

/// Quantises the frames of a video so that its rate follows a target rate.
///
/// The frames of the video are assumed to be encoded with the finest quantiser. Each step of the quantiser parameter
/// makes a frame 2^(1/6) times smaller, because in H.264 six steps double the quantiser step size, which about halves
/// the bits. For each frame, the encoder uses the smallest parameter with which the mean rate of the last
/// [`Quantiser::WINDOW`] frames would not exceed the target. One step changes the rate by a factor of 2^(1/6), so the
/// rate is at most a ninth below the target if the video has enough data. At the start of a new scene the rate can be
/// lower, because the last frames still include frames of the previous scene. A frame is never enlarged and never
/// dropped.
///
/// This quantiser is for live sessions, which cannot wait for delayed data. The source
/// [`Content`](crate::source::Content) sends all data instead, even if it is delayed.
#[derive(Clone, Debug)]
pub(super) struct Quantiser {
    video: Video,
    next: usize,
    /// Sizes of the last frames, in bytes, each before its quantisation; `sum` is the total of these sizes.
    recent: VecDeque<u64>,
    sum: u64,
}

impl Quantiser {
    /// Number of frames whose mean size determines the quantiser parameter. Our choice: two groups of pictures with
    /// twelve frames each, about a second in most traces.
    const WINDOW: usize = 24;
    /// Number of steps of the quantiser parameter that halve the size of a frame.
    const STEPS: f64 = 6.0;
    /// The largest quantiser parameter of H.264.
    const COARSEST: f64 = 51.0;

    pub(super) fn new(video: Video) -> Self {
        Self { video, next: 0, recent: VecDeque::with_capacity(Self::WINDOW), sum: 0 }
    }

    pub(super) fn next_frame(&self) -> Option<Span> {
        let at = i64::try_from(self.next).ok()?;
        self.video.frames().get(self.next).map(|_| self.video.interval() * at)
    }

    pub(super) fn frame_interval(&self) -> Option<Span> {
        (self.video.frames().len() > 1).then(|| self.video.interval())
    }

    pub(super) fn skip(&mut self) {
        self.next += 1;
    }

    pub(super) fn encode(&mut self, target: Rate) -> Option<Size> {
        let bytes = self.video.frames().get(self.next)?.size.as_bytes();
        self.skip();
        if self.recent.len() >= Self::WINDOW {
            self.sum -= self.recent.pop_front().unwrap_or(0);
        }
        self.recent.push_back(bytes);
        self.sum += bytes;
        let mean = self.sum as f64 / self.recent.len() as f64;
        let room = target.as_bps_f64() / 8.0 * self.video.interval().as_secs_f64();
        let parameter = libm::ceil(Self::STEPS * libm::log2(mean / room)).clamp(0.0, Self::COARSEST);
        let quantised = libm::floor(bytes as f64 * libm::exp2(-parameter / Self::STEPS));
        Some(Size::from_bytes((quantised as u64).clamp(bytes.min(1), bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{FrameKind, Synthetic};
    use super::*;

    fn video() -> Video {
        use FrameKind::{B, I, P};
        let like = Synthetic {
            interval: Span::from_millis(40),
            frames: 3000,
            mean: Size::from_bytes(5000),
            peak: Size::from_bytes(25_000),
            cv: 0.6,
            pattern: [I, P, B, B, P, B, B, P, B, B, B, B].into(),
        };
        like.generate((3, 1)).expect("a video")
    }

    /// The mean rate of the quantised video for a target rate, in Mbit/s.
    fn rate(video: &Video, target: Rate) -> f64 {
        let mut encoder = Quantiser::new(video.clone());
        let mut bits = 0;
        while let Some(size) = encoder.encode(target) {
            bits += size.as_bits();
        }
        assert_eq!(encoder.next_frame(), None);
        bits as f64 / video.length().as_secs_f64() / 1e6
    }

    /// The unquantised video has a mean rate of 1 Mbit/s.
    #[test]
    fn the_rate_follows_the_target_from_below_and_never_exceeds_the_video() {
        let video = video();
        for mbps in [0.1, 0.25, 0.5] {
            let found = rate(&video, Rate::from_bps_f64(mbps * 1e6).expect("positive"));
            assert!((0.85..1.02).contains(&(found / mbps)), "{found} Mbit/s for {mbps}");
        }
        let all = rate(&video, Rate::from_bps(100_000_000));
        assert!((all - video.mean_rate().as_mbps_f64()).abs() < 1e-6, "{all}");
        assert!(rate(&video, Rate::ZERO) < 0.01, "the coarsest quantiser, and not nothing");
    }

    #[test]
    fn frames_come_an_interval_apart() {
        let mut encoder = Quantiser::new(video());
        assert_eq!(encoder.next_frame(), Some(Span::ZERO));
        encoder.encode(Rate::from_bps(1_000_000));
        assert_eq!(encoder.next_frame(), Some(Span::from_millis(40)));
    }
}
