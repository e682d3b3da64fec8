//! Possible interpretations of the thesis, whose text does not state all details of Fig. 10 and the later figures.

use std::collections::BTreeMap;

use equipoise_lab::scenario::Override;

/// An interpretation of the thesis. It is a set of changes to the scenario of the main interpretation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// The interpretation that follows the text of the thesis. The connection measures the bandwidth inline. The unit
    /// of time of ε (speed of convergence) and m (strength of the oscillation) is the second. The hosts behave as in
    /// ns-2.
    Main,
    /// The connection does not measure the bandwidth: the simulator reports it every 3.5 round-trip times (420 ms).
    Known,
    /// The connection does not measure the bandwidth: the simulator reports it every 10.5 round-trip times (1260 ms).
    KnownSeldom,
    /// The unit of time of ε (speed of convergence) and m (strength of the oscillation) is the round-trip time instead
    /// of the second.
    RoundTrips,
    /// The changes of both `Known` and `RoundTrips`.
    KnownRoundTrips,
    /// The hosts use selective acknowledgements (SACK), as is usual today, and a minimum retransmission timeout of 1 s.
    Sack,
    /// ε, the speed of convergence, is three times as large as in the main interpretation.
    ThreeTimesEpsilon,
    /// The UDP packets have 1000 bytes.
    SmallUdp,
}

/// The round-trip time of the path without queueing, in seconds. It is the unit of time of [`Way::RoundTrips`].
const ROUND_TRIP_S: f64 = 0.12;
/// The value of ε, the speed of convergence of Symbiosis, in the main interpretation, in 1/s.
const EPSILON: f64 = 1.95;
/// Largest strength of the oscillation (m) that the control law accepts, in 1/√s.
const LARGEST_STRENGTH: f64 = 1.0;

impl Way {
    /// All interpretations except the main one.
    pub(super) const OTHERS: [Self; 7] = [
        Self::Known,
        Self::RoundTrips,
        Self::KnownRoundTrips,
        Self::KnownSeldom,
        Self::ThreeTimesEpsilon,
        Self::SmallUdp,
        Self::Sack,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Known => "bandwidth known every 420 ms",
            Self::KnownSeldom => "bandwidth known every 1260 ms",
            Self::RoundTrips => "ε and m per round trip",
            Self::KnownRoundTrips => "ε and m per round trip, bandwidth known every 420 ms",
            Self::Sack => "SACK, least timeout 1 s",
            Self::ThreeTimesEpsilon => "three times ε: 5.85 per second",
            Self::SmallUdp => "UDP packets of 1000 bytes",
        }
    }

    /// Returns the overrides of this interpretation for the flow named `flow`.
    pub(super) fn overrides(self, flow: &str) -> Vec<Override> {
        let of = |key: &str| format!("flow.{flow}.{key}");
        let known =
            |interval| Override::set(of("bandwidth"), BTreeMap::from([("kind", "known"), ("interval", interval)]));
        let faster = |times: f64| Override::set(of("window.epsilon"), EPSILON * times);
        match self {
            Self::Main => Vec::new(),
            Self::Known => vec![known("420 ms")],
            Self::KnownSeldom => vec![known("1260 ms")],
            Self::RoundTrips => vec![faster(1.0 / ROUND_TRIP_S)],
            Self::KnownRoundTrips => vec![known("420 ms"), faster(1.0 / ROUND_TRIP_S)],
            Self::Sack => vec![Override::set(of("tcp.recovery"), "sack"), Override::set(of("tcp.min_rto"), "1 s")],
            Self::ThreeTimesEpsilon => vec![faster(3.0)],
            Self::SmallUdp => vec![Override::set("flow.UDP.packet_size", "1000 B")],
        }
    }

    /// Converts the oscillation strength `m` of the thesis to the unit of the scenario, 1/√s. Returns `None` if the
    /// control law does not accept the converted strength.
    pub(super) fn strength(self, m: f64) -> Option<f64> {
        let per_root_s = match self {
            // With the round-trip time (0.12 s) as the unit of time, a Brownian increment over 0.12 s has variance 1.
            // So an increment over one second has variance 1 / 0.12, and m is multiplied by the root of this variance.
            Self::RoundTrips | Self::KnownRoundTrips => m / ROUND_TRIP_S.sqrt(),
            _ => m,
        };
        (per_root_s <= LARGEST_STRENGTH).then_some(per_root_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a round-trip time of 0.12 s, ε = 1.95 per round-trip time equals 16.25 per second. m = 0.3 per root of a
    /// round-trip time equals 0.866 per root of a second.
    #[test]
    fn where_time_is_counted_in_round_trips_a_second_has_eight_and_a_third() {
        assert!((Way::RoundTrips.strength(0.3).unwrap() - 0.866).abs() < 1e-3);
        assert_eq!(Way::RoundTrips.strength(0.5), None);
        assert_eq!(Way::Known.strength(0.5), Some(0.5));
        let expected = [Override::set("flow.a.window.epsilon", 16.25)];
        assert_eq!(format!("{:?}", Way::RoundTrips.overrides("a")), format!("{expected:?}"));
    }
}
