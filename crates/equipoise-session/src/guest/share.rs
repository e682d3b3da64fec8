use equipoise::units::{Rate, Size};

/// Measures the share of new media in the data sent. The rest is headers, retransmissions and repair packets. An
/// encoder may use this share of the sending rate.
#[derive(Clone, Copy, Debug, Default)]
pub struct MediaShare {
    media: f64,
    all: f64,
}

impl MediaShare {
    /// Averaging length in bytes. The weight of sent data falls with each byte that is sent later. Our choice: a few
    /// seconds of data at 0.5 Mbit/s.
    const WEIGHS_BYTES: f64 = 200_000.0;

    /// Records an IP packet of `size`. `media_bytes` is the number of media bytes in the packet that were not sent
    /// before; zero for a retransmission or a repair packet.
    pub fn take(&mut self, media_bytes: u64, size: Size) {
        let bytes = size.as_bytes() as f64;
        let kept = 1.0 - (bytes / Self::WEIGHS_BYTES).min(1.0);
        self.media = self.media * kept + media_bytes as f64;
        self.all = self.all * kept + bytes;
    }

    /// Returns the part of `rate` that media may use, according to recent packets: at least half of `rate`, and all of
    /// it before the first packet.
    pub fn of(&self, rate: Rate) -> Rate {
        let share = if self.all > 0.0 { (self.media / self.all).clamp(0.5, 1.0) } else { 1.0 };
        Rate::from_bps_f64(rate.as_bps_f64() * share).unwrap_or(rate)
    }
}
