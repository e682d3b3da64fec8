use crate::units::{Rate, Span};

/// The rates of a session's packets at both ends of the network in one interval, and the number of packets in the
/// playout buffer.
///
/// As in Subramanya 2003, Fig. 1, packets enter the network at the ingress, which is the sender. They leave the network
/// at the egress and wait there in the playout buffer until their playout.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlayoutSummary {
    /// Length of the interval, measured at the ingress: T.
    pub interval: Span,
    /// Rate at which packets entered the network: `I_n`.
    pub ingress: Rate,
    /// Rate at which packets arrived at the egress, discarded packets included: `I_r`.
    pub arrival: Rate,
    /// Rate at which the playout buffer delivered packets: `S_r`.
    pub service: Rate,
    /// Number of the session's packets in the playout buffer at the end of the interval: x.
    pub occupancy: u64,
}

/// Traffic at the two ends of the network, in the units of Subramanya 2003: packets and packets/s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Length of the interval, in seconds, above zero: T.
    pub interval_s: f64,
    /// Arrival rate at the ingress, in packets/s: `I_n`.
    pub ingress: f64,
    /// Arrival rate at the egress, in packets/s: `I_r`.
    pub arrival: f64,
    /// Service rate at the egress, in packets/s: `S_r`.
    pub service: f64,
    /// Packets in the playout buffer: x.
    pub occupancy: f64,
    /// Mean delay from ingress to egress in the interval, in seconds; `None` if the delay is not known. Only the
    /// difference from the least delay is used, so the clocks need not be synchronised.
    pub delay_s: Option<f64>,
}

/// The predicted number of packets between the ingress and the output of the playout buffer, if the rates do not
/// change.
///
/// Source: Subramanya 2003, Sec. 2: `f = x + q + (I_n - S_r) T` with the bottleneck's queue `q = (I_n - I_r) T`.
/// [`Traffic`] explains the other symbols. Units: packets.
///
/// The variant [`accumulated`](Self::accumulated) is our interpretation. By the paper's formula, q covers one interval
/// only, so a queue of constant length is not detected. In this variant, q is the number of all packets queued in the
/// network. By Little's law, this number is the arrival rate times the queueing delay, which is the delay minus the
/// least delay so far.
///
/// The variant [`adaptive`](Self::adaptive) is our interpretation of the adaptive estimator (Subramanya 2003, Eq. 6),
/// because the paper does not state how the estimator learns. The variant adds a bias to q. After each interval, the
/// bias moves by `LEARNING` times the difference between the occupancy of the playout buffer and its prediction
/// (Eq. 1). This removes any constant error of q, such as the error that packet loss causes. Without the bias, a
/// constant error d of q would leave an error of `d / (1 - k_v)` in the occupancy. `k_v` is the gain of
/// [`TqLaw`](crate::control::TqLaw) (Eq. 5).
#[derive(Clone, Copy, Debug)]
pub struct TrafficAccumulation(Queue);

#[derive(Clone, Copy, Debug)]
enum Queue {
    /// q is the number of packets by which the bottleneck's queue grew in the last interval.
    Printed,
    /// The bottleneck's queue q is the number of all queued packets; `least_s` is the least delay so far, in seconds.
    Standing { least_s: f64 },
    /// The bottleneck's queue q is the number of packets that the last interval added, plus a bias learned from the
    /// occupancy of the playout buffer.
    Adaptive {
        /// The learned bias of q, in packets.
        bias: f64,
        /// The occupancy of the playout buffer, plus the packets that the last interval added to the bottleneck's
        /// queue, minus the packets that the buffer delivered in that interval; all in packets. The sum of this value,
        /// the bias and the packets that enter the network in the next interval predicts the next occupancy.
        carried: Option<f64>,
    },
}

/// In each interval, the bias of the adaptive estimator moves by this share of the error in the predicted occupancy of
/// the playout buffer. The value is our choice: with intervals of 100 ms the bias adapts with a time constant of about
/// a second. With a larger share, rounding the occupancy to whole packets would disturb the bias.
const LEARNING: f64 = 0.1;

impl TrafficAccumulation {
    /// Creates an estimator in which the bottleneck's queue q is the number of packets that the last interval added
    /// (Subramanya 2003, Sec. 2).
    pub const fn printed() -> Self {
        Self(Queue::Printed)
    }

    /// Creates an estimator in which the bottleneck's queue q is the number of all queued packets. It is computed from
    /// the queueing delay.
    pub const fn accumulated() -> Self {
        Self(Queue::Standing { least_s: f64::INFINITY })
    }

    /// Creates an estimator in which the bottleneck's queue q is the number of packets that the last interval added,
    /// plus a learned bias (Subramanya 2003, Eq. 6).
    pub const fn adaptive() -> Self {
        Self(Queue::Adaptive { bias: 0.0, carried: None })
    }

    /// Processes an interval and returns the accumulation f at the end of the interval, in packets.
    ///
    /// NaN and infinite inputs propagate, except in `delay_s`: without a valid delay, the bottleneck's queue is
    /// computed by the paper's formula.
    pub fn after(&mut self, traffic: &Traffic) -> f64 {
        let Traffic { interval_s, ingress, arrival, service, occupancy, delay_s } = *traffic;
        let added = (ingress - arrival) * interval_s;
        let queue = match (&mut self.0, delay_s.filter(|delay| delay.is_finite())) {
            (Queue::Standing { least_s }, Some(delay_s)) => {
                *least_s = least_s.min(delay_s);
                arrival * (delay_s - *least_s)
            }
            (Queue::Adaptive { bias, carried }, _) => {
                if let Some(before) = *carried {
                    // Subramanya 2003, Eq. 1, but without an upper bound of the occupancy, because the buffer's size is
                    // not reported. The occupancy is never negative.
                    let predicted = (before + *bias + ingress * interval_s).max(0.0);
                    let learned = *bias + LEARNING * (occupancy - predicted);
                    *bias = if learned.is_finite() { learned } else { *bias };
                }
                *carried = Some(occupancy + added - service * interval_s);
                added + *bias
            }
            (Queue::Printed, _) | (Queue::Standing { .. }, None) => added,
        };
        occupancy + queue + (ingress - service) * interval_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Per second, 125 packets enter the network and 100 packets leave it. Therefore the network's queue grows by 5
    /// packets per interval of 0.2 s. At 100 packets/s, these 5 packets cause 50 ms of delay.
    const GROWING: Traffic =
        Traffic { interval_s: 0.2, ingress: 125.0, arrival: 100.0, service: 125.0, occupancy: 3.0, delay_s: None };
    const STANDING: Traffic = Traffic { ingress: 100.0, service: 100.0, ..GROWING };

    fn delayed(traffic: Traffic, millis: f64) -> Traffic {
        Traffic { delay_s: Some(millis / 1e3), ..traffic }
    }

    #[track_caller]
    fn gives(mut accumulation: TrafficAccumulation, cases: &[(Traffic, f64)]) {
        for (traffic, expected) in cases {
            let found = accumulation.after(traffic);
            assert!((found - expected).abs() < 1e-9, "{found} for {traffic:?}");
        }
    }

    #[test]
    fn as_printed_a_standing_queue_is_not_seen() {
        let cases = [(delayed(GROWING, 70.0), 8.0), (delayed(GROWING, 120.0), 8.0), (delayed(STANDING, 120.0), 3.0)];
        gives(TrafficAccumulation::printed(), &cases);
    }

    #[test]
    fn the_accumulated_queue_is_seen_by_the_delay_that_it_makes() {
        let cases = [
            (delayed(STANDING, 20.0), 3.0),
            (delayed(GROWING, 70.0), 8.0),
            (delayed(GROWING, 120.0), 13.0),
            (delayed(STANDING, 120.0), 13.0),
            (delayed(STANDING, f64::NAN), 3.0),
            (GROWING, 8.0),
            (delayed(STANDING, 10.0), 3.0),
        ];
        gives(TrafficAccumulation::accumulated(), &cases);
    }

    /// In each interval, 25 packets are sent, 5 of them are lost in the network, and the buffer stays at 3 packets. The
    /// paper's formula treats lost packets as packets that will still arrive. It counts the 5 packets twice: as the
    /// bottleneck's queue, and as packets that entered and were not delivered. So the accumulation is 3 + 5 + 5 = 13.
    ///
    /// The adaptive estimator adds a bias, which begins at 0. After each interval, the bias moves towards -10 by a
    /// tenth of the remaining distance. So the accumulation in interval k, counted from 0, is 3 + 10 * 0.9^k.
    #[test]
    fn the_adaptive_estimator_learns_that_lost_packets_do_not_come() {
        let lossy = Traffic { service: 100.0, ..GROWING };
        let cases = [13.0, 12.0, 11.1, 10.29, 9.561].map(|f| (lossy, f));
        gives(TrafficAccumulation::adaptive(), &cases);
    }

    /// There are two cases in which the adaptive estimator does not change the bias that it learned. In the first case,
    /// a negative occupancy was predicted and the buffer is empty. In the second case, an input is NaN.
    #[test]
    fn an_empty_buffer_and_nonsense_teach_nothing() {
        let idle = Traffic { ingress: 50.0, arrival: 50.0, service: 125.0, occupancy: 0.0, ..GROWING };
        let mut adaptive = TrafficAccumulation::adaptive();
        for traffic in [idle, idle, Traffic { occupancy: f64::NAN, ..idle }, idle, idle] {
            let printed = TrafficAccumulation::printed().after(&traffic);
            let found = adaptive.after(&traffic);
            assert!(
                found.is_nan() == printed.is_nan() && (found.is_nan() || (found - printed).abs() < 1e-12),
                "{found}"
            );
        }
    }
}
