use alloc::sync::Arc;

use crate::video::Video;
use equipoise::units::{Rate, Size, Span};

/// The complete data that an application has to send, and when each packet of it is available.
///
/// If the sending rate is lower than the content's own rate, the transmission takes longer: available packets wait, and
/// are sent as fast as the rate allows (Subramanya 2003, Eq. 7). All packets are full; the last one is padded. The last
/// bytes of a frame share a packet with the first bytes of the next frame, because otherwise half a packet would be
/// lost per frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Constant { rate: Rate, packet: Size, packets: u64 },
    Video { interval: Span, payload: u64, produced: Arc<[u64]> },
}

impl Content {
    /// Packets of size `packet` at a constant rate for `length`, the first at once.
    pub fn constant(rate: Rate, packet: Size, length: Span) -> Self {
        let bits = rate.as_bps_f64() * length.as_secs_f64().max(0.0);
        // A rounding error of the product must not add a packet.
        let packets = libm::floor(bits / packet.as_bits().max(1) as f64 + 1e-9) as u64;
        Self(Kind::Constant { rate, packet, packets: if packet == Size::ZERO { 0 } else { packets } })
    }

    /// The frames of a video in packets with `payload` bytes each; a frame's packets are available at its time.
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

    /// Number of packets.
    pub fn packets(&self) -> u64 {
        match &self.0 {
            Kind::Constant { packets, .. } => *packets,
            Kind::Video { payload, produced, .. } => produced.last().map_or(0, |all| all.div_ceil(*payload)),
        }
    }

    /// When packet `number` (from 0) is available, since the start; `None` after the last packet.
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

    /// Number of packets available at `elapsed` after the start.
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

    /// Frames of 1500, 100 and 900 bytes: packets are full after the first, and after the third, whose end fills the
    /// last one.
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
