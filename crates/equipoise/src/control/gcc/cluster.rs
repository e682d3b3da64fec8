use super::throughput::Arrival;
use crate::control::{Probe, SentPacket};
use crate::units::{Instant, ReceiverClock, SenderClock, Size, Span};

/// Computes the rates that probes have proved. A probe is a burst of packets above the allowed rate.
///
/// ```text
/// sent     = (B - B_last)  / (last departure - first departure)
/// received = (B - B_first) / (last arrival - first arrival)
/// result   = 0.95 received         if received < 0.9 sent: the path is full
///            min(sent, received)   otherwise
/// ```
///
/// `B` is the size of all packets of the probe that arrived, `B_last` the size of the packet that left last, and
/// `B_first` the size of the packet that arrived first.
///
/// A result requires that 80 % of the requested packets and bytes arrive. If the packets arrive more than twice as fast
/// as they left, the path delayed the first ones, and the result is invalid. The result is also invalid if the sending
/// or the receiving time is zero or above a second.
///
/// Source: libwebrtc, `probe_bitrate_estimator`.
#[derive(Clone, Debug, Default)]
pub(super) struct Clusters {
    /// The last probes, the newest at the end.
    clusters: [Option<Cluster>; KEPT],
}

/// Number of probes that are remembered. The value is our choice: more probes than are in flight at the same time.
const KEPT: usize = 4;
/// Share of the requested packets and bytes that must arrive (libwebrtc, `probe_bitrate_estimator`).
const ENOUGH: f64 = 0.8;
/// Maximum receiving rate of a valid probe, as a multiple of its sending rate (libwebrtc, `probe_bitrate_estimator`).
const MOST_SQUEEZED: f64 = 2.0;
/// The path is full if the receiving rate is below this share of the sending rate (libwebrtc,
/// `probe_bitrate_estimator`).
const FULL: f64 = 0.9;
/// If the path was full, the probe's result is this share of the rate at which the probe was received (libwebrtc,
/// `probe_bitrate_estimator`).
const USED: f64 = 0.95;
/// Maximum sending time and receiving time of a probe (libwebrtc, `probe_bitrate_estimator`).
const LONGEST: Span = Span::from_secs(1);

#[derive(Clone, Copy, Debug)]
struct Cluster {
    probe: Probe,
    first: u64,
    last: u64,
    sent_packets: u32,
    sent_size: Size,
    arrived: Option<Proof>,
}

#[derive(Clone, Copy, Debug)]
struct Proof {
    packets: u32,
    size: Size,
    first_departed: Instant<SenderClock>,
    last_departed: Instant<SenderClock>,
    size_last_departed: Size,
    first_arrived: Instant<ReceiverClock>,
    size_first_arrived: Size,
    last_arrived: Instant<ReceiverClock>,
}

impl Clusters {
    /// Records a sent packet that belongs to probe `number`. `probe` is `None` if this probe is no longer requested.
    /// Returns whether all packets and bytes of the probe were sent.
    pub(super) fn on_sent(&mut self, probe: Option<Probe>, number: u64, packet: &SentPacket) -> bool {
        let is_known = self.clusters.iter().flatten().any(|cluster| cluster.probe.number == number);
        if let (false, Some(probe)) = (is_known, probe) {
            self.clusters.rotate_left(1);
            self.clusters[KEPT - 1] = Some(Cluster::new(probe, packet.number));
        }
        let Some(cluster) = self.clusters.iter_mut().flatten().find(|cluster| cluster.probe.number == number) else {
            return false;
        };
        cluster.last = cluster.last.max(packet.number);
        cluster.sent_packets = cluster.sent_packets.saturating_add(1);
        cluster.sent_size = cluster.sent_size + packet.size;
        cluster.sent_packets >= cluster.probe.packets && cluster.sent_size >= cluster.probe.size
    }

    /// Records a packet that arrived. Returns the rate in bit/s that the packet's probe has proved so far, if any. A
    /// packet sent between the packets of a probe counts as a part of the probe.
    pub(super) fn on_arrival(&mut self, packet: &Arrival) -> Option<f64> {
        let cluster = self
            .clusters
            .iter_mut()
            .flatten()
            .find(|cluster| (cluster.first..=cluster.last).contains(&packet.number))?;
        let arrived = cluster.arrived.map_or_else(|| Proof::new(packet), |arrived| arrived.with(packet));
        cluster.arrived = Some(arrived);
        let enough_packets = f64::from(arrived.packets) >= libm::floor(ENOUGH * f64::from(cluster.probe.packets));
        let enough_bytes = arrived.size.as_bytes() as f64 >= ENOUGH * cluster.probe.size.as_bytes() as f64;
        if enough_packets && enough_bytes { arrived.bps() } else { None }
    }
}

impl Cluster {
    const fn new(probe: Probe, first: u64) -> Self {
        Self { probe, first, last: first, sent_packets: 0, sent_size: Size::ZERO, arrived: None }
    }
}

impl Proof {
    const fn new(packet: &Arrival) -> Self {
        Self {
            packets: 1,
            size: packet.size,
            first_departed: packet.departed,
            last_departed: packet.departed,
            size_last_departed: packet.size,
            first_arrived: packet.arrived,
            size_first_arrived: packet.size,
            last_arrived: packet.arrived,
        }
    }

    fn with(mut self, packet: &Arrival) -> Self {
        self.packets = self.packets.saturating_add(1);
        self.size = self.size + packet.size;
        self.first_departed = self.first_departed.min(packet.departed);
        if packet.departed > self.last_departed {
            (self.last_departed, self.size_last_departed) = (packet.departed, packet.size);
        }
        if packet.arrived < self.first_arrived {
            (self.first_arrived, self.size_first_arrived) = (packet.arrived, packet.size);
        }
        self.last_arrived = self.last_arrived.max(packet.arrived);
        self
    }

    fn bps(&self) -> Option<f64> {
        let rate = |size: Size, time: Span| {
            (time > Span::ZERO && time <= LONGEST).then(|| size.as_bits() as f64 / time.as_secs_f64())
        };
        let sent = rate(self.size - self.size_last_departed, self.last_departed - self.first_departed)?;
        let received = rate(self.size - self.size_first_arrived, self.last_arrived - self.first_arrived)?;
        if received > MOST_SQUEEZED * sent {
            return None;
        }
        Some(if received < FULL * sent { USED * received } else { sent.min(received) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Rate;

    /// Returns the result of a probe with five packets of 1000 bytes, in kbit/s. A packet leaves every `sent_ms` ms,
    /// and a packet arrives every `received_ms` ms. The last `lost` packets do not arrive.
    fn result(sent_ms: u64, received_ms: u64, lost: u64) -> Option<f64> {
        let mut clusters = Clusters::default();
        let probe = Probe::new(1, Rate::from_bps(1), 5, Size::from_bytes(5000));
        let mut found = None;
        for number in 0..5 {
            clusters.on_sent(Some(probe), 1, &SentPacket::new(number, Size::from_bytes(1000), Size::ZERO));
        }
        for number in 0..5 - lost {
            found = clusters.on_arrival(&Arrival {
                number,
                size: Size::from_bytes(1000),
                departed: Instant::from_nanos(number * sent_ms * 1_000_000),
                arrived: Instant::from_nanos(77_000_000 + number * received_ms * 1_000_000),
            });
        }
        found.map(|bps| bps / 1e3)
    }

    /// The expected values are those of libwebrtc's `delay_based_bwe_unittest`.
    #[test]
    fn results_are_those_of_libwebrtc() {
        assert_eq!(result(10, 10, 0), Some(800.0));
        let full = [(result(5, 7, 0), 0.95 * 1140.0), (result(1, 2, 0), 0.95 * 4000.0)];
        assert!(
            full.iter().all(|(found, expected)| found.is_some_and(|found| (found - expected).abs() < 10.0)),
            "{full:?}"
        );
        assert_eq!(result(10, 1, 0), None, "squeezed together");
    }

    #[test]
    fn four_of_five_packets_suffice_and_three_do_not() {
        assert_eq!(result(10, 10, 1), Some(800.0));
        assert_eq!(result(10, 10, 2), None);
    }

    #[test]
    fn a_probe_that_took_no_time_or_more_than_a_second_has_no_result() {
        assert_eq!([result(0, 10, 0), result(10, 0, 0), result(251, 251, 0)], [None; 3]);
    }

    #[test]
    fn a_packet_of_no_probe_proves_nothing() {
        let packet = Arrival { number: 7, size: Size::from_bytes(1), departed: Instant::ZERO, arrived: Instant::ZERO };
        assert_eq!(Clusters::default().on_arrival(&packet), None);
        let mut clusters = Clusters::default();
        assert!(!clusters.on_sent(None, 9, &SentPacket::new(7, Size::from_bytes(1), Size::ZERO)));
        assert_eq!(clusters.on_arrival(&packet), None);
    }
}
