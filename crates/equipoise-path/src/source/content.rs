use alloc::sync::Arc;

use crate::video::Video;
use equipoise::units::{Rate, Size, Span};

/// The complete data that an application sends, and when each packet of this data is available for sending.
///
/// If the sending rate is lower than the rate at which packets become available, the transmission takes longer:
/// available packets wait, and are sent as fast as the sending rate allows (Subramanya 2003, Eq. 7). All packets have
/// the same size; the last packet is padded. The last bytes of a frame share a packet with the first bytes of the next
/// frame; otherwise half a packet per frame would be wasted on average.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Constant { rate: Rate, packet: Size, packets: u64 },
    Video { interval: Span, payload: u64, produced: Arc<[u64]> },
}

impl Content {
    /// Content with a constant rate: packets of size `packet` at `rate` for `length`. The first packet is available at
    /// once.
    pub fn constant(rate: Rate, packet: Size, length: Span) -> Self {
        let bits = rate.as_bps_f64() * length.as_secs_f64().max(0.0);
        // A rounding error of `bits` must not change the number of packets.
        let packets = libm::floor(bits / packet.as_bits().max(1) as f64 + 1e-9) as u64;
        Self(Kind::Constant { rate, packet, packets: if packet == Size::ZERO { 0 } else { packets } })
    }

    /// Content with the frames of a video, in packets of `payload` bytes. The data of a frame is available at the
    /// frame's time.
    pub fn video(video: &Video, payload: Size) -> Self {
        let mut sum = 0u64;
        let produced = video.frames().iter().map(|frame| {
            sum = sum.saturating_add(frame.size.as_bytes());
            sum
        });
        Self(Kind::Video {
            interval: video.interval(),
            payload: payload.as_bytes().max(1),
            produced: produced.collect(),
        })
    }

    /// Number of packets of the content.
    pub fn packets(&self) -> u64 {
        match &self.0 {
            Kind::Constant { packets, .. } => *packets,
            Kind::Video { payload, produced, .. } => produced.last().map_or(0, |all| all.div_ceil(*payload)),
        }
    }

    /// When packet `number` (from 0) is available, as time since the start; `None` for numbers after the last packet.
    pub fn ready_at(&self, number: u64) -> Option<Span> {
        if number >= self.packets() {
            return None;
        }
        match &self.0 {
            Kind::Constant { rate, packet, .. } => {
                rate.time_to_send(Size::from_bytes(packet.as_bytes().saturating_mul(number)))
            }
            Kind::Video { interval, payload, produced } => {
                let last = produced.last().copied().unwrap_or(0);
                let needed = payload.saturating_mul(number.saturating_add(1)).min(last);
                let frame = produced.partition_point(|so_far| *so_far < needed);
                Some(*interval * i64::try_from(frame).unwrap_or(i64::MAX))
            }
        }
    }

    /// Number of packets that are available at `elapsed` after the start.
    pub fn ready(&self, elapsed: Span) -> u64 {
        let (mut low, mut high) = (0, self.packets());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.ready_at(middle).is_some_and(|at| at <= elapsed) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const PACKET: Size = Size::from_bytes(1000);

    #[test]
    fn a_constant_rate_has_a_packet_every_gap() {
        let content = Content::constant(Rate::from_bps(2_000_000), PACKET, Span::from_secs(30));
        assert_eq!(content.packets(), 7500);
        assert_eq!(content.ready_at(0), Some(Span::ZERO));
        assert_eq!(content.ready_at(7499), Some(Span::from_millis(29_996)));
        assert_eq!(content.ready_at(7500), None);
        let ready = [-1, 0, 3, 4, 60_000].map(|millis| content.ready(Span::from_millis(millis)));
        assert_eq!(ready, [0, 1, 1, 2, 7500]);
        assert_eq!(Content::constant(Rate::ZERO, PACKET, Span::from_secs(1)).packets(), 0);
        assert_eq!(Content::constant(Rate::from_bps(1), Size::ZERO, Span::from_secs(1)).packets(), 0);
    }

    /// Frames of 1500, 100 and 900 bytes, in packets of 1000 bytes. The first frame completes the first packet. The
    /// third frame completes the second packet, and its last 500 bytes are in the third packet.
    #[test]
    fn frames_fill_packets_one_after_another() {
        let video = Video::parse(["1500", "100", "900"], Span::from_millis(40)).expect("a trace");
        let content = Content::video(&video, PACKET);
        assert_eq!(content.packets(), 3);
        let at: Vec<_> = (0..4).map(|number| content.ready_at(number)).collect();
        assert_eq!(at, [Some(0), Some(80), Some(80), None].map(|at| at.map(Span::from_millis)));
        assert_eq!([39, 40, 79, 80].map(|millis| content.ready(Span::from_millis(millis))), [1, 1, 1, 3]);
    }
}
