use equipoise::units::{Rate, Size};

/// The share of media sent for the first time in all data sent: the part of a rate of IP packets that an encoder may
/// use.
#[derive(Clone, Copy, Debug, Default)]
pub struct MediaShare {
    media: f64,
    all: f64,
}

impl MediaShare {
    /// Memory of the average, in bytes; older data weighs less. Our choice: a few seconds at 0.5 Mbit/s.
    const WEIGHS_BYTES: f64 = 200_000.0;

    /// Records an IP packet of `size` that contains `media_bytes` of media; zero for a retransmission or repair.
    pub fn take(&mut self, media_bytes: u64, size: Size) {
        let bytes = size.as_bytes() as f64;
        let kept = 1.0 - (bytes / Self::WEIGHS_BYTES).min(1.0);
        self.media = self.media * kept + media_bytes as f64;
        self.all = self.all * kept + bytes;
    }

    /// The part of `rate` that is for media, from recent packets: at least half, and all of it before the first packet.
    pub fn of(&self, rate: Rate) -> Rate {
        let share = if self.all > 0.0 { (self.media / self.all).clamp(0.5, 1.0) } else { 1.0 };
        Rate::from_bps_f64(rate.as_bps_f64() * share).unwrap_or(rate)
    }
}
