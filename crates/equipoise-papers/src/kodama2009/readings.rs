//! What the thesis leaves open from Fig. 10 on, and its possible readings.

use std::collections::BTreeMap;

use equipoise_lab::scenario::Override;

/// A reading: its changes to the scenario, which has the main reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// The thesis' words: the connection measures inline, time is in seconds, the hosts are those of ns-2.
    Main,
    /// The simulator provides the bandwidth to the connection, every 3.5 round trips.
    Known,
    /// As `Known`, every 10.5 round trips.
    KnownSeldom,
    /// The time of ε, and of the noise of strength m, is counted in round trips instead of seconds.
    RoundTrips,
    /// Both of the above.
    KnownRoundTrips,
    /// Hosts with selective acknowledgements, as today.
    Sack,
    /// A faster law.
    ThreeTimesEpsilon,
    /// Smaller UDP packets.
    SmallUdp,
}

/// The path's round-trip time without a queue, in seconds: the unit of time if time is counted in round trips.
const ROUND_TRIP_S: f64 = 0.12;
/// ε of all scenarios, in 1/s.
const EPSILON: f64 = 1.95;
/// Largest m that the law accepts, in 1/√s.
const LARGEST_STRENGTH: f64 = 1.0;

impl Way {
    /// All but the main one.
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

    /// The changes to the scenario's flows of this name.
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

    /// The scenario's m in 1/√s for the thesis' `m`; `None` if the law does not accept it.
    pub(super) fn strength(self, m: f64) -> Option<f64> {
        let per_root_s = match self {
            // A Brownian increment over a round trip has variance one; over a second, as many as the round trips in it.
            Self::RoundTrips | Self::KnownRoundTrips => m / ROUND_TRIP_S.sqrt(),
            _ => m,
        };
        (per_root_s <= LARGEST_STRENGTH).then_some(per_root_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1.95 in a round trip of 0.12 s is 16.25 in a second; 0.3 in the root of a round trip is 0.866 in the root of a
    /// second.
    #[test]
    fn where_time_is_counted_in_round_trips_a_second_has_eight_and_a_third() {
        assert!((Way::RoundTrips.strength(0.3).unwrap() - 0.866).abs() < 1e-3);
        assert_eq!(Way::RoundTrips.strength(0.5), None);
        assert_eq!(Way::Known.strength(0.5), Some(0.5));
        let expected = [Override::set("flow.a.window.epsilon", 16.25)];
        assert_eq!(format!("{:?}", Way::RoundTrips.overrides("a")), format!("{expected:?}"));
    }
}
