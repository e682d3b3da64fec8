use equipoise::control::{ConfigError, Kind, Parameter};
use equipoise::random::Generator;
use equipoise::units::Size;
use equipoise_path::source::{TrafficEntry, TrafficModel};
use rand_distr::{Distribution as _, Pareto};

/// A traffic model in which the time gaps between packets have a heavy-tailed distribution (Pareto).
#[derive(Clone, Debug)]
struct ParetoGaps {
    /// The distribution of the gaps, scaled so that the mean gap is 1.
    gaps: Pareto<f64>,
}

impl TrafficModel for ParetoGaps {
    fn gap(&mut self, packet: Size, random: &mut Generator) -> f64 {
        packet.as_bits() as f64 * self.gaps.sample(random)
    }
}

const SHAPE: Parameter = Parameter {
    name: "shape",
    kind: Kind::Number { unit: "" },
    default: Some("1.5"),
    range: Some(("1.05", "100")),
    meaning: "how fast the tail of the gaps falls; below 2 their variance is infinite",
    source: "this example",
};

pub(crate) static PARETO: TrafficEntry = TrafficEntry {
    name: "pareto",
    summary: "gaps between packets with a heavy tail",
    source: "this example",
    parameters: &[SHAPE],
    make: |given, ()| {
        let shape = given.number(&SHAPE)?;
        let unfit = |error| ConfigError::Together { name: SHAPE.name, problem: format!("{error}") };
        let gaps = Pareto::new((shape - 1.0) / shape, shape).map_err(unfit)?;
        Ok(Box::new(ParetoGaps { gaps }))
    },
};
