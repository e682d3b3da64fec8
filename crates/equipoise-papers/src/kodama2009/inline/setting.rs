//! The settings in which the results of the inline measurement are compared with the true capacity and the true
//! available bandwidth.

use std::collections::BTreeMap;

use super::super::scenarios::INLINE;
use super::super::series::{goodput_mbps, samples};
use super::super::{Lab, parse_with};
use equipoise_lab::result::{Run, TcpSample};
use equipoise_lab::scenario::{Override, Scenario};

/// The section of the thesis that describes the inline measurement.
pub(super) const SECTION: &str = "Sec. 2.2.1";
/// Number of runs of each setting. Our choice: two are enough, because the claims judge all settings together.
pub(super) const RUNS: u32 = 2;
/// Index of the connection that measures, in every scenario of this experiment.
pub(super) const OWN: usize = 0;
/// Size of an IP packet of 1500 bytes, in bits.
const PACKET_BITS: f64 = 12_000.0;

/// A path: its capacity in Mbit/s, its round-trip time in ms, and the length of a run in s.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Path {
    pub(super) capacity: u64,
    pub(super) round_trip_ms: u64,
    pub(super) duration_s: u64,
}

const PATHS: [Path; 3] = [
    Path { capacity: 10, round_trip_ms: 120, duration_s: 120 },
    Path { capacity: 100, round_trip_ms: 120, duration_s: 60 },
    Path { capacity: 1000, round_trip_ms: 20, duration_s: 8 },
];
const TRAFFIC: [&str; 2] = ["constant", "poisson"];
/// Rates of the cross traffic, in percent of the capacity.
const LOADS: [u64; 2] = [30, 70];
pub(super) const ACKS: [&str; 2] = ["on", "off"];

/// What limits the rate of the connection that measures.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Own {
    /// The receive window. It allows this percentage of the available bandwidth.
    Limited(u64),
    Symbiosis,
}

const OWNS: [Own; 3] = [Own::Limited(50), Own::Limited(100), Own::Symbiosis];

/// Returns the number of runs of each setting.
pub(super) fn runs(lab: &Lab<'_>) -> u32 {
    lab.options.runs(RUNS, 1)
}

/// A setting of the experiment.
#[derive(Clone, Copy)]
pub(super) struct Setting {
    pub(super) path: Path,
    pub(super) traffic: &'static str,
    pub(super) load: u64,
    acks: &'static str,
    pub(super) own: Own,
}

/// The results of a run. The biases and the spread are in percent of the capacity.
pub(super) struct Outcome {
    pub(super) capacity_bias: f64,
    pub(super) available_bias: f64,
    pub(super) spread: f64,
    pub(super) round_trips: f64,
    /// Goodput of the connection that measures, in Mbit/s.
    pub(super) goodput: f64,
}

impl Setting {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        PATHS.into_iter().flat_map(|path| {
            TRAFFIC.into_iter().flat_map(move |traffic| {
                LOADS.into_iter().flat_map(move |load| {
                    OWNS.into_iter()
                        .flat_map(move |own| ACKS.into_iter().map(move |acks| Self { path, traffic, load, acks, own }))
                })
            })
        })
    }

    const fn available(&self) -> u64 {
        self.path.capacity * (100 - self.load) / 100
    }

    /// Returns the largest window, in segments, that uses at most `part` percent of the available bandwidth.
    fn window(&self, part: u64) -> u64 {
        let rate = self.available() as f64 * 1e6 * part as f64 / 100.0;
        (rate * self.path.round_trip_ms as f64 / 1e3 / PACKET_BITS) as u64
    }

    pub(super) fn scenario(&self, measures: bool, more: &[Override]) -> Scenario {
        let Self { path, traffic, load, acks, own } = *self;
        let mut overrides = vec![
            Override::set("duration", format!("{} s", path.duration_s)),
            Override::set("warm_up", format!("{} s", path.duration_s as f64 / 5.0)),
            Override::set("sample_interval", format!("{} ms", path.round_trip_ms / 2)),
            Override::set("link.bottleneck.rate", format!("{} Mbit/s", path.capacity)),
            Override::set("link.wire.rate", format!("{} Mbit/s", 10 * path.capacity)),
            Override::set("link.wire.delay", format!("{:.3} ms", path.round_trip_ms as f64 / 12.0)),
            Override::set("link.bottleneck.delay", format!("{:.3} ms", path.round_trip_ms as f64 * 5.0 / 12.0)),
            Override::set("flow.own.tcp.delayed_acks", acks),
            Override::set("flow.others.source.kind", traffic),
            Override::set("flow.others.source.rate", format!("{} Mbit/s", path.capacity * load / 100)),
        ];
        match own {
            Own::Limited(part) => {
                overrides.push(Override::set("flow.own.tcp.receive_window", self.window(part).max(1) as i64));
            }
            Own::Symbiosis => {
                let law = BTreeMap::from([("name", "symbiosis"), ("noise_aware", "off")]);
                overrides
                    .extend([Override::set("flow.own.window", law), Override::remove("flow.own.tcp.receive_window")]);
            }
        }
        if !measures {
            overrides.push(Override::remove("flow.own.bandwidth"));
        }
        overrides.extend_from_slice(more);
        parse_with(INLINE, &overrides)
    }

    pub(super) fn name(&self) -> String {
        let own = match self.own {
            Own::Limited(part) => format!("{part} % of what is available"),
            Own::Symbiosis => "Symbiosis".to_owned(),
        };
        format!("{} Mbit/s, others {} at {} %, {own}", self.path.capacity, self.traffic, self.load)
    }

    /// Returns a measurement result in percent of the true capacity: the error of the measured capacity, and the
    /// measured available bandwidth.
    pub(super) fn result(&self, sample: &TcpSample) -> Option<(f64, f64)> {
        let part = |bps: f64| bps / (self.path.capacity as f64 * 1e6) * 100.0;
        Some((part(sample.capacity_bps?) - 100.0, part(sample.available_bps?)))
    }

    pub(super) fn outcome(&self, run: &Run) -> Outcome {
        let from = self.path.duration_s as f64 / 5.0;
        let results: Vec<_> = samples(run, OWN)
            .iter()
            .filter(|sample| sample.at_s > from)
            .filter_map(|sample| self.result(sample))
            .collect();
        let mean = |of: &dyn Fn(&(f64, f64)) -> f64| results.iter().map(of).sum::<f64>() / results.len() as f64;
        let available = mean(&|result| result.1);
        // If a sample equals the previous sample exactly, no new measurement was made between them.
        let new = results.windows(2).filter(|pair| matches!(pair, [one, two] if one != two)).count();
        let round_trips = (self.path.duration_s as f64 - from) * 1e3 / self.path.round_trip_ms as f64;
        Outcome {
            capacity_bias: mean(&|result| result.0),
            available_bias: available - (100 - self.load) as f64,
            spread: mean(&|result| (result.1 - available).powi(2)).sqrt(),
            round_trips: round_trips / new as f64,
            goodput: goodput_mbps(run, OWN, (from, self.path.duration_s as f64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_a_scenario_and_differs_from_the_others() {
        let texts: std::collections::BTreeSet<_> =
            Setting::all().map(|setting| format!("{:?}", setting.scenario(true, &[]))).collect();
        assert_eq!(texts.len(), Setting::all().count());
    }
}
