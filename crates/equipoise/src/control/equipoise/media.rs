use crate::control::QueuedFrame;

/// The rate that is requested of an encoder, so that a backlog at the sender drains soon.
///
/// If the backlog at the sender is more than half a frame, the media rate is lowered so that the excess drains within a
/// quarter of a second. The media rate approaches its new value gradually, because a step of the encoder's rate by more
/// than a tenth causes a large frame (RFC 8593, Sec. 5.2 and 7). The media rate jumps only if the new value is far from
/// the last one, or if the caller permits it.
#[derive(Clone, Copy, Debug)]
pub(super) struct MediaRate {
    /// The expected backlog when the next frame is captured, in bits.
    waiting_bits: f64,
    /// Smoothed time between frames, and the time of the last frame, in s.
    frame_s: f64,
    framed_s: Option<f64>,
    /// The last rate requested of the encoder, in bit/s, and the time of the request, in s.
    asked: Option<(f64, f64)>,
}

/// `SHARE` of the rate is for media. To drain a backlog at the sender, the media rate is lowered further, but not below
/// `LEAST_SHARE` of the rate.
const SHARE: f64 = 0.99;
const LEAST_SHARE: f64 = 0.7;
/// If the sender's backlog exceeds `FRAMES` frames, the media rate is lowered so that the excess drains within
/// `GONE_S`, in s.
const FRAMES: f64 = 0.5;
const GONE_S: f64 = 0.25;
/// The logarithm of the media rate changes by at most `SLOPE` per second. The media rate jumps instead if the ratio of
/// the new rate to the last one is at least `JUMP_UP` or at most `JUMP_DOWN`.
const SLOPE: f64 = 0.55;
const JUMP_UP: f64 = 1.22;
const JUMP_DOWN: f64 = 0.55;

impl MediaRate {
    pub(super) const fn new() -> Self {
        Self { waiting_bits: 0.0, frame_s: 1.0 / 30.0, framed_s: None, asked: None }
    }

    /// Adds a frame to the backlog at `now_s`; packets leave at `pace_bps`.
    pub(super) fn on_frame(&mut self, now_s: f64, frame: &QueuedFrame, pace_bps: f64) {
        let gap_s = self.framed_s.replace(now_s).map_or(self.frame_s, |last| now_s - last);
        if gap_s > 0.0 && gap_s < 0.5 {
            self.frame_s += 0.1 * (gap_s - self.frame_s);
        }
        let joined = frame.waiting.as_bits() as f64 + frame.size.as_bits() as f64;
        self.waiting_bits = (joined - pace_bps * self.frame_s).max(0.0);
    }

    /// The media's part of `rate_bps` at `now_s`, in bit/s. `free` says that the media rate may jump to any value, for
    /// example because there was no queue yet.
    pub(super) fn ask(&mut self, now_s: f64, rate_bps: f64, free: bool) -> f64 {
        let excess_bits = (self.waiting_bits - FRAMES * rate_bps * self.frame_s).max(0.0);
        let wanted = (SHARE * rate_bps - excess_bits / GONE_S).max(LEAST_SHARE * rate_bps);
        let asked = match self.asked {
            Some((before_bps, at_s)) if !free && wanted > JUMP_DOWN * before_bps && wanted < JUMP_UP * before_bps => {
                let most = libm::exp(SLOPE * (now_s - at_s).clamp(0.0, 0.2));
                wanted.clamp(before_bps / most, before_bps * most)
            }
            _ => wanted,
        };
        self.asked = Some((asked, now_s));
        asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Size, Span};

    /// An application may pass any size. If the test fails, the largest possible size causes a panic, or a media rate
    /// below its lower limit.
    #[test]
    fn frames_of_any_size_are_taken() {
        let mut media = MediaRate::new();
        let largest = Size::from_bytes(u64::MAX);
        media.on_frame(0.0, &QueuedFrame::new(largest, largest, Span::ZERO), 1e6);
        let asked_bps = media.ask(0.0, 1e6, true);
        assert!((asked_bps - LEAST_SHARE * 1e6).abs() < 1e-6, "{asked_bps}");
    }
}
