use equipoise::units::{Rate, Size};

/// How much of what leaves is media that leave for the first time: what an encoder may have of a rate of IP packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct MediaShare {
    media: f64,
    all: f64,
}

impl MediaShare {
    /// So much counts, about: what was sent before weighs less. Ours: a few seconds of 0.5 Mbit/s.
    const WEIGHS_BYTES: f64 = 200_000.0;

    /// An IP packet of `size` left, with so many bytes of media in it; a retransmission or repair has none.
    pub fn take(&mut self, media_bytes: u64, size: Size) {
        let bytes = size.as_bytes() as f64;
        let kept = 1.0 - (bytes / Self::WEIGHS_BYTES).min(1.0);
        self.media = self.media * kept + media_bytes as f64;
        self.all = self.all * kept + bytes;
    }

    /// What of `rate` is for media, by what was sent of late; half of it at least, and all of it before anything was sent.
    pub fn of(&self, rate: Rate) -> Rate {
        let share = if self.all > 0.0 { (self.media / self.all).clamp(0.5, 1.0) } else { 1.0 };
        Rate::from_bps_f64(rate.as_bps_f64() * share).unwrap_or(rate)
    }
}
